package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-proxy/latchkey/examples/locks/contention"
	"github.com/latchkey-proxy/latchkey/examples/locks/internal/demo"
	"github.com/latchkey-proxy/latchkey/examples/locks/lock"
)

var errDown = errors.New("the network is down")

// down is a redis.Hook in the place of a network that does not work.
type down struct{}

func (down) DialHook(next redis.DialHook) redis.DialHook { return next }
func (down) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { return errDown }
}

func (down) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return errDown }
}

// without returns the servers as a client sees them that cannot reach the numbered ones.
func without(t *testing.T, all []redis.UniversalClient, missing ...int) []redis.UniversalClient {
	seen := append([]redis.UniversalClient(nil), all...)
	for _, i := range missing {
		c := demo.Dial(servers.Addrs[i])
		c.AddHook(down{})
		t.Cleanup(func() { _ = c.Close() })
		seen[i] = c
	}
	return seen
}

// hung is a redis.Hook in the place of a server that never answers.
type hung struct{ down }

func (hung) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, _ redis.Cmder) error {
		<-ctx.Done()
		return ctx.Err()
	}
}

func TestRedlock(t *testing.T) {
	all, key := clients(t)
	l := lock.Redlock{Servers: all, Key: key, TTL: ttl}
	held, err := l.TryAcquire(t.Context())
	must(t, err)
	if left := time.Until(held.ValidUntil()); left <= 0 || left > ttl-ttl/100 {
		t.Errorf("valid for %v, want more than 0 and at most the TTL of %v less 1%%", left, ttl)
	}
	_, err = l.TryAcquire(t.Context())
	wantErr(t, err, lock.ErrTaken, "TryAcquire of a held lock")
	must(t, held.Extend(t.Context(), 10*ttl))
	for i, c := range all {
		if left := c.PTTL(t.Context(), key).Val(); left <= ttl {
			t.Errorf("server %d: PTTL after Extend is %v, want more than %v", i+1, left, ttl)
		}
	}
	must(t, held.Release(t.Context()))
	for _, c := range all {
		wantValue(t, c, key, "", "after Release")
	}
	wantErr(t, held.Release(t.Context()), lock.ErrLost, "a second Release")
	wantErr(t, held.Extend(t.Context(), ttl), lock.ErrLost, "Extend after Release")
}

func TestRedlockServersMissing(t *testing.T) {
	all, key := clients(t)

	t.Run("one of three: held", func(t *testing.T) {
		l := lock.Redlock{Servers: without(t, all, 2), Key: key, TTL: ttl}
		held, err := l.TryAcquire(t.Context())
		must(t, err)
		must(t, held.Extend(t.Context(), ttl))
		must(t, held.Release(t.Context()))
	})

	t.Run("one never answers: held, with the time it took off", func(t *testing.T) {
		servers := append([]redis.UniversalClient(nil), all...)
		silent := demo.Dial("127.0.0.1:1") // never dialled: the hook answers
		defer silent.Close()
		silent.AddHook(hung{})
		servers[2] = silent
		l := lock.Redlock{Servers: servers, Key: key, TTL: ttl, ServerTimeout: 250 * time.Millisecond}
		start := time.Now()
		held, err := l.TryAcquire(t.Context())
		must(t, err)
		if took := time.Since(start); took < 250*time.Millisecond {
			t.Errorf("TryAcquire took %v, want at least the ServerTimeout: it waits for all", took)
		}
		if latest := start.Add(ttl); held.ValidUntil().After(latest) {
			t.Errorf("valid until %v, want at most %v, counted from the start", held.ValidUntil(), latest)
		}
		must(t, held.Release(t.Context()))
	})

	t.Run("two of three: an error that is not ErrTaken, and nothing left behind", func(t *testing.T) {
		l := lock.Redlock{Servers: without(t, all, 1, 2), Key: key, TTL: ttl}
		_, err := l.TryAcquire(t.Context())
		wantErr(t, err, errDown, "TryAcquire with one server of three")
		if errors.Is(err, lock.ErrTaken) {
			t.Errorf("TryAcquire returned %v; trying again at once does not help, so it must not be ErrTaken", err)
		}
		wantValue(t, all[0], key, "", "after the failure")
	})

	t.Run("two of three while held: not known whether it is lost", func(t *testing.T) {
		seen := without(t, all, 0, 1)
		servers := append([]redis.UniversalClient(nil), all...)
		l := lock.Redlock{Servers: servers, Key: key, TTL: ttl}
		held, err := l.TryAcquire(t.Context())
		must(t, err)
		copy(servers, seen)
		for what, err := range map[string]error{"Extend": held.Extend(t.Context(), ttl), "Release": held.Release(t.Context())} {
			wantErr(t, err, errDown, what+" with one server of three")
			if errors.Is(err, lock.ErrLost) {
				t.Errorf("%s returned %v, and cannot know that the lock is lost", what, err)
			}
		}
		for _, c := range all {
			must(t, c.Del(t.Context(), key).Err())
		}
	})
}

func TestRedlockRefusedLeavesNothingBehind(t *testing.T) {
	all, key := clients(t)
	for _, c := range all[:2] {
		must(t, c.Set(t.Context(), key, "another's", ttl).Err())
	}
	l := lock.Redlock{Servers: all, Key: key, TTL: ttl}
	_, err := l.TryAcquire(t.Context())
	wantErr(t, err, lock.ErrTaken, "TryAcquire of a lock held on two of three")
	wantValue(t, all[0], key, "another's", "after the attempt")
	wantValue(t, all[2], key, "", "after the attempt, on the server that had granted it,")
}

// A has asked all servers, and is stopped; its time runs out, B takes the lock, and A goes on.
func TestRedlockMajorityReachedTooLate(t *testing.T) {
	for _, test := range []struct {
		name string
		try  func(l *lock.Redlock) func(context.Context) (*lock.RedlockHeld, error)
		want error
	}{
		{"wrong: the clock left out", func(l *lock.Redlock) func(context.Context) (*lock.RedlockHeld, error) {
			return (*lock.WrongRedlock)(l).TryAcquire
		}, nil},
		{"right: the clock looked at", func(l *lock.Redlock) func(context.Context) (*lock.RedlockHeld, error) {
			return l.TryAcquire
		}, lock.ErrTaken},
	} {
		t.Run(test.name, func(t *testing.T) {
			all, key := clients(t)
			var passed atomic.Int64
			paused := contention.PauseAt(lock.StepMajority)
			a := &lock.Redlock{
				Servers: all, Key: key, TTL: ttl, Hook: paused.Hook,
				Now: func() time.Time { return time.Now().Add(time.Duration(passed.Load())) },
			}
			must(t, paused.Start(t.Context(), func(ctx context.Context) error {
				_, err := test.try(a)(ctx)
				return err
			}))
			passed.Store(int64(ttl))
			for _, c := range all {
				_, err := contention.Lapse(t.Context(), c, key)
				must(t, err)
			}
			b := lock.Redlock{Servers: all, Key: key, TTL: ttl}
			held, err := b.TryAcquire(t.Context())
			must(t, err)
			wantErr(t, paused.Finish(), test.want, "A's TryAcquire, while B holds the lock,")
			must(t, held.Release(t.Context())) // nil says that a majority still had it as B's
		})
	}
}

func TestRedlockServerForgets(t *testing.T) {
	t.Run("held on three: the majority still knows", func(t *testing.T) {
		all, key := clients(t)
		l := lock.Redlock{Servers: all, Key: key, TTL: ttl}
		_, err := l.TryAcquire(t.Context())
		must(t, err)
		must(t, all[0].Del(t.Context(), key).Err())
		_, err = l.TryAcquire(t.Context())
		wantErr(t, err, lock.ErrTaken, "another's TryAcquire")
	})
	t.Run("limit, held on two: another gets a majority", func(t *testing.T) {
		all, key := clients(t)
		a := lock.Redlock{Servers: without(t, all, 2), Key: key, TTL: ttl}
		held, err := a.TryAcquire(t.Context())
		must(t, err)
		must(t, all[0].Del(t.Context(), key).Err())
		b := lock.Redlock{Servers: all, Key: key, TTL: ttl}
		_, err = b.TryAcquire(t.Context())
		wantErr(t, err, nil, "another's TryAcquire, though A holds the lock,")
		if !time.Now().Before(held.ValidUntil()) {
			t.Error("A's validity is over; the limit is about one that is not")
		}
	})
}
