package contention

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/latchkey-proxy/latchkey/examples/locks/lock"
)

// Round is one race for a lock. A contender who gets it stays inside the section until the round is over, so an
// overlap is not a matter of luck with the scheduler: two who hold the lock in one round have met.
type Round struct {
	// Before prepares the lock: a dead holder's, or a client stopped in the middle. Whoever it leaves in the
	// section is a holder, too. Nil does nothing.
	Before func(ctx context.Context) error
	// Try is a contender's attempt; it reports whether the lock was taken. Required.
	Try func(ctx context.Context, contender int) (bool, error)
	// Tries is how often each contender tries before it gives up, or, if there is a Late, waits for that; 0
	// means once. In order it is always once.
	Tries int
	// Late happens when somebody is inside, or all have given up: a stopped client goes on. It reports whether
	// that client now believes to hold the lock. Contenders try until it is done, and once more. Nil does
	// nothing.
	Late func(ctx context.Context) (bool, error)
	// After is called when all have tried: who was left in the section by Before, and is still there, leaves.
	// It is not called when Before failed. Nil does nothing.
	After func()
}

// InOrder runs the round with one command after the other: Before, one try of contender 0, Late, one try of
// each other contender. It is the race, forced: the same commands in the same order each time.
func (r Round) InOrder(ctx context.Context, section *Section, contenders int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var visits visits
	defer visits.leave()
	if r.Before != nil {
		if err := r.Before(ctx); err != nil {
			return fmt.Errorf("prepare the round: %w", err)
		}
	}
	if r.After != nil {
		defer r.After()
	}
	for contender := range contenders {
		held, err := r.Try(ctx, contender)
		if err != nil {
			return fmt.Errorf("contender %d: %w", contender, err)
		}
		if held {
			visits.add(section.Enter())
		}
		if contender == 0 && r.Late != nil {
			held, err := r.Late(ctx)
			if err != nil {
				return fmt.Errorf("the late client: %w", err)
			}
			if held {
				visits.add(section.Enter())
			}
		}
	}
	return nil
}

// AtOnce runs the round with all contenders at the same time. All goroutines have ended when it returns, and
// ctx bounds how long that takes.
func (r Round) AtOnce(ctx context.Context, section *Section, contenders int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var visits visits
	defer visits.leave()
	if r.Before != nil {
		if err := r.Before(ctx); err != nil {
			return fmt.Errorf("prepare the round: %w", err)
		}
	}
	if r.After != nil {
		defer r.After()
	}

	start, lateGo, lateDone := make(chan struct{}), make(chan struct{}), make(chan struct{})
	goLate := sync.OnceFunc(func() { close(lateGo) })
	if r.Late == nil {
		close(lateDone)
	}
	if section.Inside() > 0 {
		goLate()
	}

	var trying atomic.Int64 // contenders who may still get in before Late
	trying.Store(int64(contenders))
	contend := func(contender int) error {
		for tries, spent := 1, false; ; tries++ {
			last := closed(lateDone)
			held, err := r.Try(ctx, contender)
			switch {
			case err != nil:
				return fmt.Errorf("contender %d: %w", contender, err)
			case held:
				visits.add(section.Enter())
				goLate()
				return nil
			case r.Late == nil:
				if tries >= r.Tries {
					return nil
				}
			case last:
				return nil
			case !spent && tries >= r.Tries:
				spent = true
				if trying.Add(-1) == 0 {
					goLate()
				}
				<-lateGo
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			runtime.Gosched() // to the late client, if Try has not given way
		}
	}

	var contending, late sync.WaitGroup
	for contender := range contenders {
		contending.Go(func() {
			<-start
			if err := contend(contender); err != nil {
				cancel(err)
				goLate() // nobody may wait for this contender
			}
		})
	}
	if r.Late != nil {
		late.Go(func() {
			defer close(lateDone)
			<-lateGo
			held, err := r.Late(ctx)
			if err != nil {
				cancel(fmt.Errorf("the late client: %w", err))
			}
			if held {
				visits.add(section.Enter())
			}
		})
	}
	close(start)
	contending.Wait()
	goLate()
	late.Wait()
	return context.Cause(ctx)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// visits is who stays until the end of the round.
type visits struct {
	mu  sync.Mutex
	all []*Visit
}

func (v *visits) add(one *Visit) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = append(v.all, one)
}

func (v *visits) leave() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.all {
		one.Leave()
	}
}

// Got turns the result of a TryAcquire into that of a Try: taken by another is no error.
func Got(err error) (bool, error) {
	if errors.Is(err, lock.ErrTaken) {
		return false, nil
	}
	return err == nil, err
}

// Kept turns the result of a Release or Extend of a stopped client into that of a Late: a lock that is lost is
// no error.
func Kept(err error) (bool, error) {
	if errors.Is(err, lock.ErrLost) {
		return false, nil
	}
	return err == nil, err
}
