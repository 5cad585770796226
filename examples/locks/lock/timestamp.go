package lock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Timestamp is way 1, done right: the key's value is the time at which the lock ends, and who finds that time
// passed takes over with GETSET. It needs nothing but SETNX, GET, GETSET and DEL.
//
//	SETNX lock.foo <now + timeout + 1>   1: held
//	GET lock.foo                         a time to come: taken
//	GETSET lock.foo <now + timeout + 1>  returned a passed time: held; a time to come: somebody was faster
//
// Its limits, all of which a token and a server-side expiry do away with: every client's own wall clock
// decides, so clocks must agree; the loser's GETSET has moved the winner's time a little; and Release looks at
// the clock and then sends DEL, so that a client stopped in between deletes another's lock.
type Timestamp struct {
	Client  redis.UniversalClient
	Key     string
	Timeout time.Duration    // how long the lock lasts; must be above the difference between the clients' clocks
	Now     func() time.Time // wall clock; nil means time.Now
	Hook    Hook             // for demonstrations; nil in applications
}

// TimestampHeld is a lock taken by Timestamp or WrongTimestamp.
type TimestampHeld struct {
	lock  Timestamp
	until int64
}

// TryAcquire takes the lock, or returns ErrTaken.
func (l *Timestamp) TryAcquire(ctx context.Context) (*TimestampHeld, error) {
	until, free, err := l.setNX(ctx)
	if err != nil || free {
		return l.held(until), err
	}
	if err := l.readExpired(ctx); err != nil {
		return nil, err
	}
	until = l.end()
	old, err := l.Client.Do(ctx, "GETSET", l.Key, until).Text()
	if errors.Is(err, redis.Nil) {
		// The lock was released since we read it. Nobody held it at the moment of our GETSET, which has put it
		// there: it is ours, and nobody else would know.
		return l.held(until), nil
	}
	if err != nil {
		return nil, err
	}
	// GETSET is atomic: of all who came this far, one gets the passed time back. The others get the time which
	// that one has written, and have overwritten it with their own.
	if live, err := l.live(old); err != nil {
		return nil, err
	} else if live {
		return nil, ErrTaken
	}
	return l.held(until), nil
}

// WrongTimestamp is way 1 as it is often written: who finds the time passed deletes the key and starts again.
// Two clients read the same passed time; the first deletes it and sets its own; the second deletes that, and
// sets its own.
type WrongTimestamp Timestamp

// TryAcquire takes the lock, or returns ErrTaken. Two callers may both take it.
func (w *WrongTimestamp) TryAcquire(ctx context.Context) (*TimestampHeld, error) {
	l := (*Timestamp)(w)
	until, free, err := l.setNX(ctx)
	if err != nil || free {
		return l.held(until), err
	}
	if err := l.readExpired(ctx); err != nil {
		return nil, err
	}
	if err := l.Client.Del(ctx, l.Key).Err(); err != nil {
		return nil, err
	}
	until, free, err = l.setNX(ctx)
	if err != nil {
		return nil, err
	}
	if !free {
		return nil, ErrTaken
	}
	return l.held(until), nil
}

// Until is the time that this holder has written, by its own wall clock. The key may hold a later one, written
// by somebody who lost.
func (h *TimestampHeld) Until() time.Time { return time.UnixMilli(h.until) }

// Release deletes the lock, unless its time has passed: then it may be another's, and ErrLost is returned.
// Between the look at the clock and DEL the time can pass; nothing in this way prevents that.
func (h *TimestampHeld) Release(ctx context.Context) error {
	if h.lock.now().UnixMilli() >= h.until {
		return ErrLost
	}
	if err := h.lock.Hook.reach(ctx, StepBeforeDel); err != nil {
		return err
	}
	n, err := h.lock.Client.Del(ctx, h.lock.Key).Result()
	if err == nil && n == 0 {
		return ErrLost
	}
	return err
}

func (l *Timestamp) setNX(ctx context.Context) (until int64, created bool, err error) {
	if err := checkTTL(l.Timeout); err != nil {
		return 0, false, err
	}
	until = l.end()
	created, err = l.Client.Do(ctx, "SETNX", l.Key, until).Bool()
	return until, created, err
}

// readExpired returns nil when the key holds a time that has passed, and ErrTaken when it holds one to come, or
// nothing: it has just been released, and the caller starts over.
func (l *Timestamp) readExpired(ctx context.Context) error {
	value, err := l.Client.Get(ctx, l.Key).Result()
	if errors.Is(err, redis.Nil) {
		return ErrTaken
	}
	if err != nil {
		return err
	}
	if live, err := l.live(value); err != nil {
		return err
	} else if live {
		return ErrTaken
	}
	return l.Hook.reach(ctx, StepReadExpired)
}

func (l *Timestamp) live(value string) (bool, error) {
	ms, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return false, fmt.Errorf("lock: key %q holds %q, which is not a time in milliseconds", l.Key, value)
	}
	return l.now().UnixMilli() < ms, nil
}

// end is when a lock taken now ends, in milliseconds since 1970; the one more makes up for the fraction cut
// off.
func (l *Timestamp) end() int64 { return l.now().Add(l.Timeout).UnixMilli() + 1 }

func (l *Timestamp) now() time.Time {
	if l.Now != nil {
		return l.Now()
	}
	return time.Now()
}

func (l *Timestamp) held(until int64) *TimestampHeld { return &TimestampHeld{lock: *l, until: until} }
