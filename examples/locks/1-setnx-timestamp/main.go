// Command 1-setnx-timestamp shows the lock whose value is the time at which it ends. A holder has died and its
// time has passed; two clients see that at the same moment. The wrong way deletes the key and sets it again,
// the right way takes over with GETSET.
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

// attempt is TryAcquire of the right or of the wrong lock.
type attempt func(context.Context) (*lock.TimestampHeld, error)

func right(l lock.Timestamp) attempt { return l.TryAcquire }
func wrong(l lock.Timestamp) attempt { return (*lock.WrongTimestamp)(&l).TryAcquire }

func main() {
	demo.Main("1-setnx-timestamp", 1, play)
}

func play(ctx context.Context, s *demo.Stage) error {
	err := s.Show(ctx,
		demo.Race{Label: "wrong: the time has passed: DEL, then SETNX", Round: takeover(s, wrong), Watched: true, Contenders: 1},
		demo.Race{Label: "right: the time has passed: GETSET", Round: takeover(s, right), Watched: true, Contenders: 1},
	)
	if err != nil {
		return err
	}
	locks := demo.Contenders(s, func(name string) lock.Timestamp { return timestamp(s, name) })
	return s.Use(ctx, "SETNX, GETSET", func(ctx context.Context, contender int) (func(context.Context) error, error) {
		held, err := lock.Wait(ctx, 2*time.Millisecond, locks[contender].TryAcquire)
		if err != nil {
			return nil, err
		}
		return held.Release, nil
	})
}

func timestamp(s *demo.Stage, name string) lock.Timestamp {
	return lock.Timestamp{Client: s.Client(name), Key: s.Key, Timeout: 30 * time.Second}
}

// takeover is the race for a dead holder's lock: A reads that its time has passed and is stopped there, others
// take the lock over, and A goes on.
func takeover(s *demo.Stage, way func(lock.Timestamp) attempt) func(*contention.Section) contention.Round {
	return func(*contention.Section) contention.Round {
		paused := contention.PauseAt(lock.StepReadExpired)
		a := timestamp(s, "A")
		a.Hook = paused.Hook
		a.Now = func() time.Time { return time.Now().Add(250 * time.Millisecond) } // A's clock is a little ahead
		contenders := demo.Contenders(s, func(name string) attempt { return way(timestamp(s, name)) })
		var winner *lock.TimestampHeld

		return contention.Round{
			Before: func(ctx context.Context) error {
				passed := time.Now().Add(-time.Minute).UnixMilli()
				if err := s.Client("old").Set(ctx, s.Key, passed, 0).Err(); err != nil {
					return err
				}
				s.Note("a holder has died, its time passed a minute ago; A sees that, and is stopped")
				return paused.Start(ctx, func(ctx context.Context) error {
					_, err := way(a)(ctx)
					return err
				})
			},
			Try: func(ctx context.Context, contender int) (bool, error) {
				held, err := contenders[contender](ctx)
				if contender == 0 && err == nil {
					winner = held
				}
				return contention.Got(err)
			},
			Late: func(ctx context.Context) (bool, error) {
				s.Note("A goes on")
				held, err := contention.Got(paused.Finish())
				if err != nil || held || winner == nil {
					return held, err
				}
				value, err := s.Client("A").Get(ctx, s.Key).Int64()
				if errors.Is(err, redis.Nil) {
					return false, nil // the wrong way again: yet another has deleted it
				}
				s.Note("A has lost, but its GETSET has moved the winner's time by %d ms: the known flaw", value-winner.Until().UnixMilli())
				return false, err
			},
		}
	}
}
