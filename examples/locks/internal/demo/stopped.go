package demo

import (
	"context"

	"github.com/latchkey-proxy/latchkey/examples/locks/contention"
	"github.com/latchkey-proxy/latchkey/examples/locks/lock"
)

// Step is something that a holder does with its lock, such as to release it, in one of the ways to do it. It
// calls hook between two commands.
type Step func(ctx context.Context, held *lock.Held, hook lock.Hook) error

// Stopped is the race of a holder that is stopped on its way: A takes the lock and begins a step; it is stopped
// at lock.StepCompared, its time runs out, others take the lock, and A goes on.
type Stopped struct {
	Token         func(name string) lock.Token // the lock as the client of that name takes it
	Step          Step
	Wants, GoesOn string // what the story says when A begins the step, and when it goes on
	Holds         bool   // A works on if the step tells it that the lock is still its own
}

// Round is what Race.Round wants.
func (r Stopped) Round(s *Stage) func(*contention.Section) contention.Round {
	return func(*contention.Section) contention.Round {
		a := r.Token("A")
		paused := contention.PauseAt(lock.StepCompared)
		contenders := Contenders(s, r.Token)
		return contention.Round{
			Before: func(ctx context.Context) error {
				held, err := a.TryAcquire(ctx)
				if err != nil {
					return err
				}
				s.Note("%s", r.Wants)
				if err := paused.Start(ctx, func(ctx context.Context) error { return r.Step(ctx, held, paused.Hook) }); err != nil {
					return err
				}
				s.Note("A is stopped")
				return s.Lapse(ctx)
			},
			Try: func(ctx context.Context, contender int) (bool, error) {
				_, err := contenders[contender].TryAcquire(ctx)
				return contention.Got(err)
			},
			Late: func(context.Context) (bool, error) {
				s.Note("%s", r.GoesOn)
				kept, err := contention.Kept(paused.Finish())
				return kept && r.Holds, err
			},
		}
	}
}
