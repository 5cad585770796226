// Command 4-get-compare-del shows a release by GET, compare and DEL, with a client that is stopped after the
// comparison: its time runs out, another takes the lock, and DEL deletes that one's. WATCH mends it without a
// script.
package main

import (
	"context"
	"time"

	"github.com/latchkey-proxy/latchkey/examples/locks/contention"
	"github.com/latchkey-proxy/latchkey/examples/locks/internal/demo"
	"github.com/latchkey-proxy/latchkey/examples/locks/lock"
)

func main() {
	demo.Main("4-get-compare-del", 1, play)
}

func play(ctx context.Context, s *demo.Stage) error {
	err := s.Show(ctx,
		demo.Race{Label: "wrong: GET, compare, DEL", Round: stopped(s, lock.WrongCompareRelease), Watched: true},
		demo.Race{Label: "right: WATCH, GET, compare, MULTI, DEL, EXEC", Round: stopped(s, lock.WatchRelease), Watched: true},
	)
	if err != nil {
		return err
	}
	locks := demo.Contenders(s, func(name string) lock.Token { return token(s, name) })
	return s.Use(ctx, "SET NX PX, release by WATCH", func(ctx context.Context, contender int) (func(context.Context) error, error) {
		held, err := lock.Wait(ctx, 2*time.Millisecond, locks[contender].TryAcquire)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) error { return lock.WatchRelease(ctx, held, nil) }, nil
	})
}

func token(s *demo.Stage, name string) lock.Token {
	return lock.Token{Client: s.Client(name), Key: s.Key, TTL: 30 * time.Second}
}

// stopped: A has compared, and is stopped; its time runs out; others take the lock; A goes on to its DEL.
func stopped(s *demo.Stage, way demo.Step) func(*contention.Section) contention.Round {
	return demo.Stopped{
		Token: func(name string) lock.Token { return token(s, name) },
		Step:  way,
		Wants: "A has finished, and releases", GoesOn: "A goes on",
	}.Round(s)
}
