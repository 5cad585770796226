// Command 6-extend-watchdog shows work that takes longer than its lock: without an extension others come in;
// with GET, compare and PEXPIRE a client that is stopped in between prolongs another's lock and takes it for
// its own; a script prolongs its own lock or none, and a watchdog sends it in time.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-proxy/latchkey/examples/locks/contention"
	"github.com/latchkey-proxy/latchkey/examples/locks/internal/demo"
	"github.com/latchkey-proxy/latchkey/examples/locks/lock"
)

const (
	ttl = 30 * time.Second

	// For the races in real time. A third of the TTL is the usual interval; a sixth spares a busy machine the
	// one thing that a watchdog cannot help: being stopped for longer than the TTL.
	shortTTL = 600 * time.Millisecond
	interval = shortTTL / 6
	longWork = 1500 * time.Millisecond
)

func wrong(ctx context.Context, held *lock.Held, hook lock.Hook) error {
	return lock.WrongCompareExtend(ctx, held, ttl, hook)
}

// right has nothing between two commands, so it is stopped before its only one.
func right(ctx context.Context, held *lock.Held, hook lock.Hook) error {
	if err := hook(ctx, lock.StepCompared); err != nil {
		return err
	}
	return held.Extend(ctx, ttl)
}

func main() {
	demo.Main("6-extend-watchdog", 1, play)
}

func play(ctx context.Context, s *demo.Stage) error {
	return s.Show(ctx,
		demo.Race{Label: "wrong: GET, compare, PEXPIRE", Round: stopped(s, wrong), Watched: true, Contenders: 1},
		demo.Race{Label: "right: a script compares and prolongs", Round: stopped(s, right), Watched: true, Contenders: 1},
		demo.Race{Label: "wrong: 1500 ms of work, 600 ms of lock", Round: working(s, false), Rounds: 2},
		demo.Race{Label: "right: the same with the watchdog", Round: working(s, true), Rounds: 2},
	)
}

// stopped: A holds the lock and wants to go on; it is stopped on the way, its time runs out, another takes the
// lock, and A's extension arrives.
func stopped(s *demo.Stage, way demo.Step) func(*contention.Section) contention.Round {
	return demo.Stopped{
		Token: func(name string) lock.Token { return token(s, name, ttl) },
		Step:  way,
		Wants: "A needs more time, and extends its lock", GoesOn: "A goes on, and works on if it is told that it still holds the lock",
		Holds: true,
	}.Round(s)
}

// working: A works for longer than its lock lasts, in real time, while the others try.
func working(s *demo.Stage, watchdog bool) func(*contention.Section) contention.Round {
	return func(section *contention.Section) contention.Round {
		a := token(s, "A", shortTTL)
		contenders := demo.Contenders(s, func(name string) lock.Token { return token(s, name, ttl) })
		var held *lock.Held
		var inside *contention.Visit
		return contention.Round{
			Before: func(ctx context.Context) (err error) {
				if held, err = a.TryAcquire(ctx); err == nil {
					inside = section.Enter()
				}
				return err
			},
			Try: func(ctx context.Context, contender int) (bool, error) {
				_, err := contenders[contender].TryAcquire(ctx)
				if errors.Is(err, lock.ErrTaken) { // a second of trying is long enough to leave the server some rest
					rest := time.NewTimer(2 * time.Millisecond)
					defer rest.Stop()
					select {
					case <-rest.C:
					case <-ctx.Done():
					}
				}
				return contention.Got(err)
			},
			Late: func(ctx context.Context) (bool, error) {
				working, stop := ctx, func() {}
				if watchdog {
					working, stop = lock.Keep(ctx, held, shortTTL, interval)
				}
				defer stop()
				work := time.NewTimer(longWork)
				defer work.Stop()
				select {
				case <-work.C:
				case <-working.Done(): // lost: stop working at once
				}
				inside.Leave()
				stop()
				_, err := contention.Kept(held.Release(ctx))
				return false, err
			},
		}
	}
}

func token(s *demo.Stage, name string, ttl time.Duration) lock.Token {
	return lock.Token{Client: s.Client(name), Key: s.Key, TTL: ttl}
}
