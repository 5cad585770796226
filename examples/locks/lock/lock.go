package lock

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrTaken is returned by TryAcquire when somebody else holds the lock. It is the one error after which trying
// again makes sense; Wait does that.
var ErrTaken = errors.New("lock: taken by another holder")

// ErrLost is returned by Release and Extend when the lock is no longer the caller's: its time ran out, and
// perhaps another holds it by now. Whatever is in the key has not been touched. A holder that was finished
// anyway may ignore it; one in the middle of its work must stop.
var ErrLost = errors.New("lock: no longer held")

// Step names a point between two commands of one way to lock, where another client's command can come in
// between. Every race of this package happens at one of them.
type Step string

// The steps at which a Hook is called.
const (
	// StepReadExpired: the timestamp lock was read and its time has passed; the takeover comes next.
	StepReadExpired Step = "read an expired time"
	// StepBeforeDel: the timestamp lock's holder has looked at its clock; DEL comes next.
	StepBeforeDel Step = "about to DEL"
	// StepSet: SETNX has created the key, EXPIRE has not yet given it an end.
	StepSet Step = "set, without an expiry"
	// StepNotSet: the atomic counterpart of StepSet, before the one command that does both.
	StepNotSet Step = "about to set, with its expiry"
	// StepCompared: GET returned the caller's token; DEL or PEXPIRE comes next.
	StepCompared Step = "compared, the token is ours"
	// StepMajority: Redlock has the keys of a majority, and has not yet looked at its clock.
	StepMajority Step = "a majority has answered"
)

// Hook is called between two commands. Tests and demonstrations use it to stop a client at that point while
// others go on. An error means that the client died there: nothing more is sent, and the call returns the
// error. A nil Hook costs nothing; applications leave it nil.
type Hook func(ctx context.Context, at Step) error

func (h Hook) reach(ctx context.Context, at Step) error {
	if h == nil {
		return nil
	}
	return h(ctx, at)
}

// Wait calls try until it succeeds or fails with an error other than ErrTaken, pausing between half of pause
// and all of it, at random, so that waiters do not march in step. It returns ErrTaken joined with the context's
// error when ctx ends first. Who waits longest is not served first: nothing here queues.
func Wait[H any](ctx context.Context, pause time.Duration, try func(context.Context) (H, error)) (H, error) {
	for {
		held, err := try(ctx)
		if !errors.Is(err, ErrTaken) {
			return held, err
		}
		d := pause
		if half := pause / 2; half > 0 {
			d = half + mathrand.N(half)
		}
		timer := time.NewTimer(d)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return held, errors.Join(ErrTaken, context.Cause(ctx))
		}
	}
}

// newToken returns 128 random bits in hex. A token must not be guessable from, or equal to, that of any other
// attempt, of this process or another: not a host name, not a process id, not a goroutine's.
func newToken() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: it ends the program rather than return weak bytes
	return hex.EncodeToString(b[:])
}

// setNXPX sends SET key token NX PX ms, and says whether the key was created.
func setNXPX(ctx context.Context, c redis.UniversalClient, key, token string, ttl time.Duration) (bool, error) {
	err := c.Do(ctx, "SET", key, token, "NX", "PX", ttl.Milliseconds()).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

// checkTTL refuses what the server would refuse, or would round to nothing.
func checkTTL(ttl time.Duration) error {
	if ttl < time.Millisecond {
		return fmt.Errorf("lock: TTL is %v; it must be at least 1ms", ttl)
	}
	return nil
}

// validUntil is how long a lock asked for at start may be relied on. It counts from before the command was
// sent, because the server's count begins somewhere between sending and reply, and gives away 1% + 2 ms for
// clocks that do not run at the same speed and for the server's resolution.
func validUntil(start time.Time, ttl time.Duration) time.Time {
	return start.Add(ttl - ttl/100 - 2*time.Millisecond)
}

// letGo bounds a clean-up that must happen even when the caller's context is already over.
func letGo(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), time.Second)
}
