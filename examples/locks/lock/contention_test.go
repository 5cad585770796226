package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/examples/locks/contention"
	"github.com/latchkey-proxy/latchkey/examples/locks/lock"
)

// Sixteen clients want the lock again and again: never two at once, by any of the right ways.
func TestRightWaysUnderContention(t *testing.T) {
	const contenders, holds, retry = 16, 320, 4 * time.Millisecond
	type release = func(context.Context) error
	type acquire = func(context.Context) (release, error)
	all, key := clients(t)
	c := all[0]
	for _, test := range []struct {
		name    string
		acquire acquire
	}{
		{"1 SETNX, GETSET", func(ctx context.Context) (release, error) {
			l := lock.Timestamp{Client: c, Key: key, Timeout: ttl}
			held, err := lock.Wait(ctx, retry, l.TryAcquire)
			if err != nil {
				return nil, err
			}
			return held.Release, nil
		}},
		{"2 SETNX and PEXPIRE in a script", func(ctx context.Context) (release, error) {
			l := lock.SetThenExpire{Client: c, Key: key, TTL: ttl}
			held, err := lock.Wait(ctx, retry, l.TryAcquire)
			if err != nil {
				return nil, err
			}
			return held.Release, nil
		}},
		{"3 and 5 SET NX PX, release by script", func(ctx context.Context) (release, error) {
			l := lock.Token{Client: c, Key: key, TTL: ttl}
			held, err := lock.Wait(ctx, retry, l.TryAcquire)
			if err != nil {
				return nil, err
			}
			return held.Release, nil
		}},
		{"4 SET NX PX, release by WATCH", func(ctx context.Context) (release, error) {
			l := lock.Token{Client: c, Key: key, TTL: ttl}
			held, err := lock.Wait(ctx, retry, l.TryAcquire)
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) error { return lock.WatchRelease(ctx, held, nil) }, nil
		}},
		{"6 SET NX PX with the watchdog", func(ctx context.Context) (release, error) {
			l := lock.Token{Client: c, Key: key, TTL: ttl}
			held, err := lock.Wait(ctx, retry, l.TryAcquire)
			if err != nil {
				return nil, err
			}
			_, stop := lock.Keep(ctx, held, ttl, time.Millisecond)
			return func(ctx context.Context) error {
				stop()
				return held.Release(ctx)
			}, nil
		}},
		{"7 Redlock", func(ctx context.Context) (release, error) {
			l := lock.Redlock{Servers: all, Key: key, TTL: ttl}
			held, err := lock.Wait(ctx, 4*retry, l.TryAcquire)
			if err != nil {
				return nil, err
			}
			return held.Release, nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var section contention.Section
			err := contention.Load{
				Contenders: contenders,
				Holds:      holds,
				Acquire:    func(ctx context.Context, _ int) (func(context.Context) error, error) { return test.acquire(ctx) },
				Work:       func(ctx context.Context) error { return c.Ping(ctx).Err() },
			}.Run(bounded(t), &section)
			must(t, err)
			if got, want := section.Count(), (contention.Count{Holders: holds, Overlapped: 0, Most: 1}); got != want {
				t.Errorf("%d clients: counted %v, want %v", contenders, got, want)
			}
		})
	}
}

// Holders die one after the other without releasing, and all clients take over at once: each time one of them
// gets it.
func TestTimestampHoldersDieUnderContention(t *testing.T) {
	c, key := client(t)
	clock := newClock()
	var section contention.Section
	const rounds, contenders = 50, 16
	for range rounds {
		l := lock.Timestamp{Client: c, Key: key, Timeout: ttl, Now: clock.Now}
		round := contention.Round{Try: func(ctx context.Context, _ int) (bool, error) {
			_, err := l.TryAcquire(ctx)
			return contention.Got(err)
		}}
		must(t, round.AtOnce(bounded(t), &section, contenders))
		clock.pass(ttl + 2*time.Millisecond)
	}
	if got, want := section.Count(), (contention.Count{Holders: rounds, Overlapped: 0, Most: 1}); got != want {
		t.Errorf("counted %v, want %v", got, want)
	}
}
