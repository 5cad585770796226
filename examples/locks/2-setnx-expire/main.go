// Command 2-setnx-expire shows what happens between SETNX and EXPIRE: a client that dies there leaves a lock
// that nobody ever gets again, and a mend that takes slow clients for dead ones lets two in. The right way is
// one script for both.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-proxy/latchkey/examples/locks/contention"
	"github.com/latchkey-proxy/latchkey/examples/locks/internal/demo"
	"github.com/latchkey-proxy/latchkey/examples/locks/lock"
)

// way is one of the locks for one client; the hook tells where that client dies or is stopped.
type way func(s *demo.Stage, name string, hook lock.Hook) attempt

// attempt is TryAcquire of one of the locks.
type attempt func(context.Context) (*lock.Held, error)

const ttl = 30 * time.Second

func wrong(repair bool) way {
	return func(s *demo.Stage, name string, hook lock.Hook) attempt {
		l := &lock.WrongSetThenExpire{Client: s.Client(name), Key: s.Key, TTL: ttl, Repair: repair, Hook: hook}
		return l.TryAcquire
	}
}

func right(s *demo.Stage, name string, hook lock.Hook) attempt {
	l := &lock.SetThenExpire{Client: s.Client(name), Key: s.Key, TTL: ttl, Hook: hook}
	return l.TryAcquire
}

func main() {
	demo.Main("2-setnx-expire", 1, play)
}

func play(ctx context.Context, s *demo.Stage) error {
	err := s.Show(ctx,
		demo.Race{Label: "wrong: SETNX, EXPIRE; A dies in between", Round: dies(s, wrong(false), lock.StepSet), Watched: true, Contenders: 1},
		demo.Race{Label: "wrong: who finds no expiry deletes; A is only slow", Round: slow(s, wrong(true), lock.StepSet), Watched: true, Contenders: 1},
		demo.Race{Label: "right: one script; A dies before it", Round: dies(s, right, lock.StepNotSet), Watched: true, Contenders: 1},
		demo.Race{Label: "right: one script; A dies after it", Round: diesHolding(s), Watched: true, Contenders: 1},
		demo.Race{Label: "right: one script; A is only slow", Round: slow(s, right, lock.StepNotSet), Watched: true, Contenders: 1},
	)
	if err != nil {
		return err
	}
	locks := demo.Contenders(s, func(name string) attempt { return right(s, name, nil) })
	return s.Use(ctx, "SETNX and PEXPIRE in a script", func(ctx context.Context, contender int) (func(context.Context) error, error) {
		held, err := lock.Wait(ctx, 2*time.Millisecond, locks[contender])
		if err != nil {
			return nil, err
		}
		return held.Release, nil
	})
}

// contend is the part of the contenders: each tries three times before it gives up.
func contend(s *demo.Stage, w way) contention.Round {
	contenders := demo.Contenders(s, func(name string) attempt { return w(s, name, nil) })
	return contention.Round{
		Tries: 3,
		Try: func(ctx context.Context, contender int) (bool, error) {
			_, err := contenders[contender](ctx)
			return contention.Got(err)
		},
	}
}

// dies: A dies at the step, and the time that its lock would have lasted passes.
func dies(s *demo.Stage, w way, at lock.Step) func(*contention.Section) contention.Round {
	return func(*contention.Section) contention.Round {
		a := w(s, "A", contention.DieAt(at))
		round := contend(s, w)
		round.Before = func(ctx context.Context) error {
			if _, err := a(ctx); !errors.Is(err, contention.ErrDied) {
				return err
			}
			s.Note("A has died")
			return s.Lapse(ctx)
		}
		return round
	}
}

// diesHolding: A has the lock and dies; its time passes.
func diesHolding(s *demo.Stage) func(*contention.Section) contention.Round {
	return func(*contention.Section) contention.Round {
		a := right(s, "A", nil)
		round := contend(s, right)
		round.Before = func(ctx context.Context) error {
			if _, err := a(ctx); err != nil {
				return err
			}
			s.Note("A has died")
			return s.Lapse(ctx)
		}
		return round
	}
}

// slow: A is stopped at the step, others try, and A goes on.
func slow(s *demo.Stage, w way, at lock.Step) func(*contention.Section) contention.Round {
	return func(*contention.Section) contention.Round {
		paused := contention.PauseAt(at)
		a := w(s, "A", paused.Hook)
		round := contend(s, w)
		round.Before = func(ctx context.Context) error {
			err := paused.Start(ctx, func(ctx context.Context) error {
				_, err := a(ctx)
				return err
			})
			s.Note("A is stopped")
			return err
		}
		round.Late = func(context.Context) (bool, error) {
			s.Note("A goes on")
			return contention.Got(paused.Finish())
		}
		return round
	}
}
