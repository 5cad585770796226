// Command 7-redlock shows a lock over three independent servers. One server alone can forget a lock that is
// held; a majority of three still knows it. A client that leaves out the clock takes a majority that is already
// over for a lock. And the limit: when a lock stands on two of three servers and one of them forgets it,
// another client gets a majority.
package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-proxy/latchkey/examples/locks/contention"
	"github.com/latchkey-proxy/latchkey/examples/locks/internal/demo"
	"github.com/latchkey-proxy/latchkey/examples/locks/lock"
)

const ttl = 30 * time.Second

// attempt takes one of the locks.
type attempt func(context.Context) error

func single(s *demo.Stage, name string) attempt {
	l := &lock.Token{Client: s.Client(name), Key: s.Key, TTL: ttl}
	return func(ctx context.Context) error {
		_, err := l.TryAcquire(ctx)
		return err
	}
}

func right(l lock.Redlock) attempt {
	return func(ctx context.Context) error {
		_, err := l.TryAcquire(ctx)
		return err
	}
}

func wrong(l lock.Redlock) attempt {
	return func(ctx context.Context) error {
		_, err := (*lock.WrongRedlock)(&l).TryAcquire(ctx)
		return err
	}
}

func redlock(s *demo.Stage, name string) lock.Redlock {
	return lock.Redlock{Servers: s.Servers(name), Key: s.Key, TTL: ttl}
}

func three(s *demo.Stage, name string) attempt { return right(redlock(s, name)) }

// withoutThird is the lock of a client that cannot reach the third server.
func withoutThird(s *demo.Stage, name string) attempt {
	l := redlock(s, name)
	l.Servers[2] = unreachable()
	return right(l)
}

func main() {
	demo.Main("7-redlock", 3, play)
}

func play(ctx context.Context, s *demo.Stage) error {
	err := s.Show(ctx,
		demo.Race{Label: "wrong: one server, which forgets", Round: forgets(s, single, single), Watched: true, Contenders: 1},
		demo.Race{Label: "right: three servers, one forgets", Round: forgets(s, three, three), Watched: true, Contenders: 1},
		demo.Race{Label: "wrong: majority reached too late, clock left out", Round: slow(s, wrong), Watched: true, Contenders: 1},
		demo.Race{Label: "right: majority reached too late, clock looked at", Round: slow(s, right), Watched: true, Contenders: 1},
		demo.Race{Label: "limit: held on two of three, one of them forgets", Round: forgets(s, withoutThird, three), Watched: true, Contenders: 1},
	)
	if err != nil {
		return err
	}
	locks := demo.Contenders(s, func(name string) lock.Redlock { return redlock(s, name) })
	return s.Use(ctx, "Redlock", func(ctx context.Context, contender int) (func(context.Context) error, error) {
		held, err := lock.Wait(ctx, 10*time.Millisecond, locks[contender].TryAcquire)
		if err != nil {
			return nil, err
		}
		return held.Release, nil
	})
}

// forgets: A holds the lock, and the first server loses it: restarted without its data, or replaced by a
// replica which had not received it yet.
func forgets(s *demo.Stage, first, others func(*demo.Stage, string) attempt) func(*contention.Section) contention.Round {
	return func(section *contention.Section) contention.Round {
		a := first(s, "A")
		contenders := demo.Contenders(s, func(name string) attempt { return others(s, name) })
		var inside *contention.Visit
		return contention.Round{
			Before: func(ctx context.Context) error {
				if err := a(ctx); err != nil {
					return err
				}
				inside = section.Enter()
				s.Note("A holds the lock; server 1 loses its keys (restarted without its data, or failed over to a replica that lagged)")
				return s.Client("op").Del(ctx, s.Key).Err()
			},
			Try: func(ctx context.Context, contender int) (bool, error) {
				return contention.Got(contenders[contender](ctx))
			},
			Tries: 20, // contenders split the votes now and then
			After: func() { inside.Leave() },
		}
	}
}

// slow: A has asked all servers and is stopped before it looks at the result; its time runs out everywhere;
// another takes the lock; A goes on.
func slow(s *demo.Stage, way func(lock.Redlock) attempt) func(*contention.Section) contention.Round {
	return func(*contention.Section) contention.Round {
		paused := contention.PauseAt(lock.StepMajority)
		var passed atomic.Int64 // how far A's clock has moved while it was stopped
		a := redlock(s, "A")
		a.Hook = paused.Hook
		a.Now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
		contenders := demo.Contenders(s, func(name string) attempt { return three(s, name) })
		return contention.Round{
			Before: func(ctx context.Context) error {
				if err := paused.Start(ctx, way(a)); err != nil {
					return err
				}
				s.Note("A has three answers, and is stopped")
				passed.Store(int64(ttl))
				return s.Lapse(ctx)
			},
			Try: func(ctx context.Context, contender int) (bool, error) {
				return contention.Got(contenders[contender](ctx))
			},
			Tries: 20, // contenders split the votes now and then
			Late: func(context.Context) (bool, error) {
				s.Note("A goes on")
				return contention.Got(paused.Finish())
			},
		}
	}
}

// unreachable is a client of a server that cannot be reached.
func unreachable() *redis.Client {
	c := redis.NewClient(&redis.Options{})
	c.AddHook(cut{})
	return c
}

// cut is a redis.Hook in the place of a network that is down.
type cut struct{}

var errDown = errors.New("the network is down")

func (cut) DialHook(next redis.DialHook) redis.DialHook { return next }

func (cut) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { return errDown }
}

func (cut) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return errDown }
}
