package contention

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Load is plain use of a lock: contenders wait for it, enter, leave and release, until it was held often
// enough.
type Load struct {
	Contenders int
	Holds      int // how often the lock is taken, all contenders together
	// Acquire waits for the lock and returns how to let go of it. Required.
	Acquire func(ctx context.Context, contender int) (release func(context.Context) error, err error)
	// Work happens inside the section. It should give way to others, as a trip to the server does; without that
	// a lock that does not lock might go unnoticed. Required.
	Work func(ctx context.Context) error
}

// Run returns when the lock was held Holds times, or with the first error. All goroutines have ended then.
func (l Load) Run(ctx context.Context, section *Section) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var drawn atomic.Int64
	var contending sync.WaitGroup
	for contender := range l.Contenders {
		contending.Go(func() {
			for drawn.Add(1) <= int64(l.Holds) && ctx.Err() == nil {
				if err := l.hold(ctx, section, contender); err != nil {
					cancel(fmt.Errorf("contender %d: %w", contender, err))
					return
				}
			}
		})
	}
	contending.Wait()
	return context.Cause(ctx)
}

func (l Load) hold(ctx context.Context, section *Section, contender int) error {
	release, err := l.Acquire(ctx, contender)
	if err != nil {
		return fmt.Errorf("acquire: %w", err)
	}
	visit := section.Enter()
	err = l.Work(ctx)
	visit.Leave()
	if err != nil {
		return fmt.Errorf("work: %w", err)
	}
	if err := release(ctx); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}
