// Command 3-set-nx-px shows the lock taken with one command, SET key token NX PX ms, and what the token is for:
// a holder whose time has run out comes late and releases. Without a token it deletes the next holder's lock.
// First it shows all the options of SET that have to do with locks.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-proxy/latchkey/examples/locks/contention"
	"github.com/latchkey-proxy/latchkey/examples/locks/internal/demo"
	"github.com/latchkey-proxy/latchkey/examples/locks/lock"
)

const ttl = 30 * time.Second

// client is what one client can do: take the lock, and release what it took or believes to have.
type client struct {
	take    func(context.Context) error
	release func(context.Context) error
}

func wrong(s *demo.Stage, name string) client {
	l := &lock.WrongNoToken{Client: s.Client(name), Key: s.Key, TTL: ttl}
	return client{l.TryAcquire, l.Release}
}

func right(s *demo.Stage, name string) client {
	l := &lock.Token{Client: s.Client(name), Key: s.Key, TTL: ttl}
	var held *lock.Held
	return client{
		take: func(ctx context.Context) (err error) {
			held, err = l.TryAcquire(ctx)
			return err
		},
		release: func(ctx context.Context) error { return held.Release(ctx) },
	}
}

func main() {
	demo.Main("3-set-nx-px", 1, play)
}

func play(ctx context.Context, s *demo.Stage) error {
	if err := s.Watch("what SET can do for a lock", func() error { return options(ctx, s) }); err != nil {
		return err
	}
	err := s.Show(ctx,
		demo.Race{Label: "wrong: no token, DEL", Round: late(s, wrong), Watched: true},
		demo.Race{Label: "right: token, compared when releasing", Round: late(s, right), Watched: true},
	)
	if err != nil {
		return err
	}
	locks := demo.Contenders(s, func(name string) lock.Token {
		return lock.Token{Client: s.Client(name), Key: s.Key, TTL: ttl}
	})
	return s.Use(ctx, "SET NX PX, release by script", func(ctx context.Context, contender int) (func(context.Context) error, error) {
		held, err := lock.Wait(ctx, 2*time.Millisecond, locks[contender].TryAcquire)
		if err != nil {
			return nil, err
		}
		return held.Release, nil
	})
}

// late: A's time runs out while it is busy; others take the lock; A comes late and releases.
func late(s *demo.Stage, way func(*demo.Stage, string) client) func(*contention.Section) contention.Round {
	return func(*contention.Section) contention.Round {
		a := way(s, "A")
		contenders := demo.Contenders(s, func(name string) client { return way(s, name) })
		return contention.Round{
			Before: func(ctx context.Context) error {
				if err := a.take(ctx); err != nil {
					return err
				}
				s.Note("A is busy")
				return s.Lapse(ctx)
			},
			Try: func(ctx context.Context, contender int) (bool, error) {
				return contention.Got(contenders[contender].take(ctx))
			},
			Late: func(ctx context.Context) (bool, error) {
				s.Note("A has finished, and releases")
				_, err := contention.Kept(a.release(ctx))
				return false, err // A releases; it does not hold
			},
		}
	}
}

// options sends each form of SET that a lock may use, and a few that it may not.
func options(ctx context.Context, s *demo.Stage) error {
	c, key := s.Client("A"), s.Key
	inAMinute := time.Now().Add(time.Minute)
	for _, step := range []struct {
		says string
		args []any
	}{
		{"create, with an end in milliseconds", []any{"SET", key, "token-a", "NX", "PX", 30000}},
		{"taken: NX does not overwrite", []any{"SET", key, "token-b", "NX", "PX", 30000}},
		{"taken, and by whom (NX with GET, since 7.0)", []any{"SET", key, "token-b", "NX", "GET", "PX", 30000}},
		{"only if it is there: prolongs anybody's lock, it compares nothing", []any{"SET", key, "token-c", "XX", "EX", 60}},
		{"a new value for the rest of the time", []any{"SET", key, "token-d", "XX", "KEEPTTL"}},
		{"", []any{"TTL", key}},
		{"without KEEPTTL the end is gone: the lock stays for ever", []any{"SET", key, "token-e"}},
		{"", []any{"TTL", key}},
		{"ends at a time, by the server's clock, in seconds", []any{"SET", key, "token-f", "EXAT", inAMinute.Unix()}},
		{"the same in milliseconds; GET returns what was there", []any{"SET", key, "token-g", "PXAT", inAMinute.UnixMilli(), "GET"}},
		{"an end in the past is no lock at all", []any{"SET", key, "token-h", "PXAT", 1}},
		{"", []any{"EXISTS", key}},
		{"refused: NX and XX", []any{"SET", key, "token-i", "NX", "XX", "PX", 30000}},
		{"refused: a lock of no length", []any{"SET", key, "token-i", "NX", "PX", 0}},
	} {
		if step.says != "" {
			s.Note("%s", step.says)
		}
		err := c.Do(ctx, step.args...).Err()
		var refused redis.Error // nil and the server's own errors are what is shown here
		if err != nil && !errors.As(err, &refused) {
			return err
		}
	}
	return nil
}
