package contention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-proxy/latchkey/examples/locks/lock"
)

// Paused is a client stopped between two of its commands, as by a garbage collection, a swapped-out page or a
// slow network, for exactly as long as a race needs. Make one with PauseAt, hand Hook to the lock, then Start
// and Finish.
type Paused struct {
	at      lock.Step
	reached chan struct{}
	resume  chan struct{}
	ended   chan error
}

// PauseAt returns a client that will stop the first time it reaches the step.
func PauseAt(step lock.Step) *Paused {
	return &Paused{at: step, reached: make(chan struct{}), resume: make(chan struct{}), ended: make(chan error, 1)}
}

// Hook is the lock.Hook of this client. It returns when Finish is called, or ctx ends.
func (p *Paused) Hook(ctx context.Context, at lock.Step) error {
	if at != p.at || closed(p.reached) {
		return nil
	}
	close(p.reached)
	select {
	case <-p.resume:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Start runs client in a goroutine and returns when it has reached the step. A client that ends before is an
// error. The goroutine ends with Finish or ctx.
func (p *Paused) Start(ctx context.Context, client func(ctx context.Context) error) error {
	go func() { p.ended <- client(ctx) }()
	select {
	case <-p.reached:
		return nil
	case err := <-p.ended:
		if err == nil {
			return fmt.Errorf("the client succeeded without passing the step %q", p.at)
		}
		return fmt.Errorf("the client ended before the step %q: %w", p.at, err)
	}
}

// Finish lets the client go on, and returns its error when it has ended.
func (p *Paused) Finish() error {
	close(p.resume)
	return <-p.ended
}

// ErrDied is what DieAt's client returns.
var ErrDied = errors.New("contention: the client died")

// DieAt returns the hook of a client that dies at the step.
func DieAt(step lock.Step) lock.Hook {
	return func(_ context.Context, at lock.Step) error {
		if at == step {
			return ErrDied
		}
		return nil
	}
}

// Lapse makes the time of the lock in key pass, and returns true when the server says that the key is gone. So
// that nobody waits for seconds, it cuts the rest of the time to 1 ms. A key without an expiry would stay for
// ever: it is left alone, and the result is false.
func Lapse(ctx context.Context, c redis.UniversalClient, key string) (bool, error) {
	const none, missing = -1, -2 // PTTL's answers, which go-redis passes on as they are
	for {
		ttl, err := c.PTTL(ctx, key).Result()
		switch {
		case err != nil:
			return false, err
		case ttl == missing:
			return true, nil
		case ttl == none:
			return false, nil
		case ttl > time.Millisecond:
			if err := c.PExpire(ctx, key, time.Millisecond).Err(); err != nil {
				return false, err
			}
		}
	}
}
