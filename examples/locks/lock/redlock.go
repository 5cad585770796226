package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redlock is way 7, done right: the same key and token on several servers that know nothing of each other. Who
// gets a majority of them, with time left, holds the lock. It survives the loss of a minority.
//
// Its limits: a server that forgets its keys (restarted without its data) while a lock is held counts as a vote
// that can be given twice. Keep such a server out for one TTL before it comes back, or have it write its log
// with fsync always. And like every lock with a timeout it cannot stop a holder that does not notice its end.
type Redlock struct {
	Servers []redis.UniversalClient // independent servers, no replicas of each other; 3 or 5
	Key     string
	TTL     time.Duration // at least 1ms, and far above ServerTimeout
	// ServerTimeout bounds how long one server is waited for, so that a dead one does not use up the validity;
	// 0 means a twentieth of TTL.
	ServerTimeout time.Duration
	Now           func() time.Time // monotonic clock; nil means time.Now
	Hook          Hook             // for demonstrations; nil in applications
}

// RedlockHeld is a lock taken by Redlock. Its methods may be called from several goroutines.
type RedlockHeld struct {
	lock  Redlock
	token string

	mu    sync.Mutex
	until time.Time
}

// TryAcquire takes the lock, or returns ErrTaken. It asks all servers at once. When too few answer for anybody
// to get a majority, the error holds each server's, and not ErrTaken. Whatever the reason for not holding the
// lock, the key is released on all servers, also on those which did not answer: they may have set it.
func (l *Redlock) TryAcquire(ctx context.Context) (*RedlockHeld, error) {
	if err := checkTTL(l.TTL); err != nil {
		return nil, err
	}
	held := &RedlockHeld{lock: *l, token: newToken()}
	start := l.now()
	votes, failures := l.ask(ctx, func(ctx context.Context, c redis.UniversalClient) (bool, error) {
		return setNXPX(ctx, c, l.Key, held.token, l.TTL)
	})
	if err := l.Hook.reach(ctx, StepMajority); err != nil {
		return nil, err
	}
	held.until = validUntil(start, l.TTL)
	if votes >= l.quorum() && l.now().Before(held.until) {
		return held, nil
	}
	cleanup, cancel := letGo(ctx)
	defer cancel()
	_ = held.Release(cleanup) // we hold nothing; what cannot be released now ends with its TTL
	if len(l.Servers)-len(failures) < l.quorum() {
		return nil, l.noQuorum(failures)
	}
	return nil, ErrTaken
}

// ValidUntil is the time after which the lock must not be relied on, by the lock's clock.
func (h *RedlockHeld) ValidUntil() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until
}

// Release deletes the key on every server where it is still ours. ErrLost means that it was ours on less than a
// majority. When too few servers answer to tell, the error holds theirs; what they keep ends with its TTL.
func (h *RedlockHeld) Release(ctx context.Context) error {
	return h.majority(h.lock.ask(ctx, func(ctx context.Context, c redis.UniversalClient) (bool, error) {
		return releaseScript.Run(ctx, c, []string{h.lock.Key}, h.token).Bool()
	}))
}

// Extend makes the lock end ttl from now if a majority of the servers still has it as ours and answers in time;
// otherwise ErrLost, or the servers' errors when too few answered to tell, and ValidUntil stays what it was.
// Bound the number of extensions: Redlock's liveness rests on locks that end.
func (h *RedlockHeld) Extend(ctx context.Context, ttl time.Duration) error {
	if err := checkTTL(ttl); err != nil {
		return err
	}
	start := h.lock.now()
	if err := h.majority(h.lock.ask(ctx, func(ctx context.Context, c redis.UniversalClient) (bool, error) {
		return extendScript.Run(ctx, c, []string{h.lock.Key}, h.token, ttl.Milliseconds()).Bool()
	})); err != nil {
		return err
	}
	until := validUntil(start, ttl)
	if !h.lock.now().Before(until) {
		return ErrLost
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = until
	return nil
}

func (h *RedlockHeld) majority(votes int, failures []error) error {
	switch {
	case votes >= h.lock.quorum():
		return nil
	case votes+len(failures) >= h.lock.quorum():
		return h.lock.noQuorum(failures)
	default:
		return ErrLost
	}
}

// ask runs one command on all servers at once, each within ServerTimeout, and returns how many said yes and the
// errors of those who said nothing. All have ended when it returns.
func (l *Redlock) ask(ctx context.Context, command func(context.Context, redis.UniversalClient) (bool, error)) (votes int, failures []error) {
	timeout := l.ServerTimeout
	if timeout == 0 {
		timeout = l.TTL / 20
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	type answer struct {
		yes bool
		err error
	}
	answers := make([]answer, len(l.Servers))
	var asked sync.WaitGroup
	for i, c := range l.Servers {
		asked.Go(func() {
			yes, err := command(ctx, c)
			answers[i] = answer{yes, err}
		})
	}
	asked.Wait()
	for i, a := range answers {
		switch {
		case a.err != nil:
			failures = append(failures, fmt.Errorf("server %d: %w", i+1, a.err))
		case a.yes:
			votes++
		}
	}
	return votes, failures
}

func (l *Redlock) quorum() int { return len(l.Servers)/2 + 1 }

func (l *Redlock) noQuorum(failures []error) error {
	return fmt.Errorf("lock: %d of %d servers gave no answer, a majority is needed: %w",
		len(failures), len(l.Servers), errors.Join(failures...))
}

func (l *Redlock) now() time.Time {
	if l.Now != nil {
		return l.Now()
	}
	return time.Now()
}

// WrongRedlock is way 7 with the clock left out: a majority is a majority, however long it took to get. When
// the asking takes longer than the TTL, the first servers have already given their key to another.
type WrongRedlock Redlock

// TryAcquire takes the lock, or returns ErrTaken.
func (w *WrongRedlock) TryAcquire(ctx context.Context) (*RedlockHeld, error) {
	l := (*Redlock)(w)
	held := &RedlockHeld{lock: *l, token: newToken()}
	votes, _ := l.ask(ctx, func(ctx context.Context, c redis.UniversalClient) (bool, error) {
		return setNXPX(ctx, c, l.Key, held.token, l.TTL)
	})
	if err := l.Hook.reach(ctx, StepMajority); err != nil {
		return nil, err
	}
	if votes >= l.quorum() {
		return held, nil
	}
	_ = held.Release(ctx)
	return nil, ErrTaken
}
