package lock

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

var extendScript = redis.NewScript(`
if redis.call('get', KEYS[1]) == ARGV[1] then
	return redis.call('pexpire', KEYS[1], ARGV[2])
else
	return 0
end`)

// Extend is way 6, done right: the lock ends ttl from now if it is still ours; if not, ErrLost is returned and
// nothing has changed. After another error the outcome is unknown, and ValidUntil stays what it was.
func (h *Held) Extend(ctx context.Context, ttl time.Duration) error {
	if err := checkTTL(ttl); err != nil {
		return err
	}
	start := time.Now()
	extended, err := extendScript.Run(ctx, h.client, []string{h.key}, h.token, ttl.Milliseconds()).Bool()
	if err != nil {
		return err
	}
	if !extended {
		return ErrLost
	}
	h.extendTo(validUntil(start, ttl))
	return nil
}

// WrongCompareExtend is way 6 as it is often written: GET, compare, PEXPIRE. When the lock ends in between and
// another takes it, PEXPIRE prolongs the other's lock, answers 1, and both believe that they hold it.
func WrongCompareExtend(ctx context.Context, h *Held, ttl time.Duration, hook Hook) error {
	if err := h.compare(ctx, h.client, hook); err != nil {
		return err
	}
	extended, err := h.client.PExpire(ctx, h.key, ttl).Result()
	if err == nil && !extended {
		return ErrLost
	}
	return err
}

// Extender is a lock that can be kept alive: Held and RedlockHeld.
type Extender interface {
	Extend(ctx context.Context, ttl time.Duration) error
	ValidUntil() time.Time
}

// Keep is the watchdog: it extends held by ttl every interval (a third of ttl leaves room for two failures)
// until stop is called or ctx ends. The context it returns is cancelled with the cause ErrLost as soon as the
// lock is known to be lost, or its validity has run out without an answer. The caller must call stop, once or
// more, before it releases the lock; stop returns when the watchdog's goroutine has ended.
//
// The watchdog lives in the process that works. If that is stopped, so is the watchdog, and the lock ends: that
// is the intention. If only the work hangs, the watchdog goes on: give ctx a deadline.
func Keep(ctx context.Context, held Extender, ttl, interval time.Duration) (working context.Context, stop func()) {
	working, cancel := context.WithCancelCause(ctx)
	// A timer of its own, not a case of the loop: it must fire on time while an Extend hangs.
	lapse := time.AfterFunc(time.Until(held.ValidUntil()), func() { cancel(ErrLost) })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer lapse.Stop()
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-working.Done():
				return
			case <-tick.C:
			}
			switch err := held.Extend(working, ttl); {
			case err == nil:
				lapse.Reset(time.Until(held.ValidUntil()))
			case errors.Is(err, ErrLost):
				cancel(ErrLost)
				return
			}
			// Any other error: the server could not be asked. The lock is still valid for a while, so the next
			// tick tries again; lapse ends it when that was too late.
		}
	}()
	return working, func() {
		cancel(nil)
		<-ended
	}
}
