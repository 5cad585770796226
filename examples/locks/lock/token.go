package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Token is way 3, done right, and the lock to use with one server: SET key token NX PX ms. The server ends the
// lock by its own clock, and the token says whose it is, so that nobody releases another's.
type Token struct {
	Client redis.UniversalClient
	Key    string
	TTL    time.Duration // at least 1ms; how long the others wait when a holder dies. Seconds, usually.
	Retry  time.Duration // longest pause between two attempts of Do; 0 means 50ms
}

// TryAcquire takes the lock, or returns ErrTaken. After any other error the outcome is unknown (the server may
// have done what it was told, and the reply was lost), so the lock is released, if it can be.
func (l *Token) TryAcquire(ctx context.Context) (*Held, error) {
	if err := checkTTL(l.TTL); err != nil {
		return nil, err
	}
	token, start := newToken(), time.Now()
	held := newHeld(l.Client, l.Key, token, validUntil(start, l.TTL))
	created, err := setNXPX(ctx, l.Client, l.Key, token, l.TTL)
	if err != nil {
		cleanup, cancel := letGo(ctx)
		defer cancel()
		_ = held.Release(cleanup) // the error that matters is err; what is left ends with its TTL
		return nil, err
	}
	if !created {
		return nil, ErrTaken
	}
	return held, nil
}

// Do waits for the lock, runs work while it is held, and releases it. The lock is extended as long as work
// runs. The context given to work is cancelled with the cause ErrLost when that fails; work must then stop at
// once. Do returns work's error, joined with ErrLost if the lock was lost on the way (then part of the work may
// have run beside another holder's), or with the error of a release that failed (then the lock ends with its
// TTL).
func (l *Token) Do(ctx context.Context, work func(ctx context.Context) error) (err error) {
	retry := l.Retry
	if retry == 0 {
		retry = 50 * time.Millisecond
	}
	held, err := Wait(ctx, retry, l.TryAcquire)
	if err != nil {
		return err
	}
	working, stop := Keep(ctx, held, l.TTL, l.TTL/3)
	defer func() { // deferred: a panic in work releases the lock, too
		stop()
		cleanup, cancel := letGo(ctx)
		defer cancel()
		if releaseErr := held.Release(cleanup); releaseErr != nil {
			err = errors.Join(err, fmt.Errorf("release %q: %w", l.Key, releaseErr))
		}
	}()
	return work(working)
}

// Held is a lock that was taken, with the token that proves it. Its methods may be called from several
// goroutines.
type Held struct {
	client     redis.UniversalClient
	key, token string

	mu    sync.Mutex
	until time.Time
}

func newHeld(c redis.UniversalClient, key, token string, until time.Time) *Held {
	return &Held{client: c, key: key, token: token, until: until}
}

// Token is the value that the key holds as long as the lock is ours: 32 hex digits.
func (h *Held) Token() string { return h.token }

// ValidUntil is the time after which the lock must not be relied on, by this process's monotonic clock, which
// on Linux stands still while the machine is suspended. It lies a little before the server's end.
func (h *Held) ValidUntil() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until
}

func (h *Held) extendTo(until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = until
}

// WrongNoToken is way 3 without the token: every holder writes the same value, and DEL releases. A holder whose
// time has run out deletes the lock of the next.
type WrongNoToken struct {
	Client redis.UniversalClient
	Key    string
	TTL    time.Duration
}

// TryAcquire takes the lock, or returns ErrTaken.
func (w *WrongNoToken) TryAcquire(ctx context.Context) error {
	created, err := setNXPX(ctx, w.Client, w.Key, "locked", w.TTL)
	if err == nil && !created {
		return ErrTaken
	}
	return err
}

// Release deletes the lock, whoever's it is.
func (w *WrongNoToken) Release(ctx context.Context) error {
	return w.Client.Del(ctx, w.Key).Err()
}
