// Command 5-release-script shows the release by script: EVALSHA, and EVAL where the script is not known yet.
// Beside it, what is often taken for the same: GET and DEL in MULTI and EXEC, which deletes first and compares
// afterwards.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-proxy/latchkey/examples/locks/contention"
	"github.com/latchkey-proxy/latchkey/examples/locks/internal/demo"
	"github.com/latchkey-proxy/latchkey/examples/locks/lock"
)

// release is one of the ways to let go.
type release func(ctx context.Context, held *lock.Held) error

func right(ctx context.Context, held *lock.Held) error { return held.Release(ctx) }

func main() {
	demo.Main("5-release-script", 1, play)
}

func play(ctx context.Context, s *demo.Stage) error {
	if err := s.Watch("a script that the server does not know, and how go-redis's Script.Run answers that", func() error { return unknown(ctx, s) }); err != nil {
		return err
	}
	err := s.Show(ctx,
		demo.Race{Label: "wrong: MULTI, GET, DEL, EXEC", Round: late(s, lock.WrongTransactionRelease), Watched: true},
		demo.Race{Label: "right: a script compares and deletes", Round: late(s, right), Watched: true},
	)
	if err != nil {
		return err
	}
	locks := demo.Contenders(s, func(name string) lock.Token { return token(s, name) })
	return s.Use(ctx, "SET NX PX, release by script", func(ctx context.Context, contender int) (func(context.Context) error, error) {
		held, err := lock.Wait(ctx, 2*time.Millisecond, locks[contender].TryAcquire)
		if err != nil {
			return nil, err
		}
		return held.Release, nil
	})
}

func token(s *demo.Stage, name string) lock.Token {
	return lock.Token{Client: s.Client(name), Key: s.Key, TTL: 30 * time.Second}
}

// unknown runs a script that no server has seen before, because its text is new, twice.
func unknown(ctx context.Context, s *demo.Stage) error {
	script := redis.NewScript(fmt.Sprintf(
		"-- %d\nif redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end", time.Now().UnixNano()))
	for range 2 {
		if err := script.Run(ctx, s.Client("A"), []string{s.Key}, "not-the-token").Err(); err != nil {
			return err
		}
	}
	return nil
}

// late: A's time runs out while it is busy; others take the lock; A comes late and releases.
func late(s *demo.Stage, way release) func(*contention.Section) contention.Round {
	return func(*contention.Section) contention.Round {
		a := token(s, "A")
		contenders := demo.Contenders(s, func(name string) lock.Token { return token(s, name) })
		var held *lock.Held
		return contention.Round{
			Before: func(ctx context.Context) (err error) {
				if held, err = a.TryAcquire(ctx); err != nil {
					return err
				}
				s.Note("A is busy")
				return s.Lapse(ctx)
			},
			Try: func(ctx context.Context, contender int) (bool, error) {
				_, err := contenders[contender].TryAcquire(ctx)
				return contention.Got(err)
			},
			Late: func(ctx context.Context) (bool, error) {
				s.Note("A has finished, and releases")
				_, err := contention.Kept(way(ctx, held))
				return false, err // A releases; it does not hold
			},
		}
	}
}
