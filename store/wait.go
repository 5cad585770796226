package store

import (
	"errors"
	"time"
)

// Errors of waiting.
var (
	// ErrCancelled: the one who waited was killed, went away, or the store is
	// shutting down.
	ErrCancelled = errors.New("store: waiting was cancelled")
	// ErrBusy: who holds the key has been running for longer than Wait.Busy.
	ErrBusy = errors.New("store: the key is held by a slow script")
	// ErrTimeout: Wait.Timeout passed.
	ErrTimeout = errors.New("store: waiting timed out")
	// ErrUnblocked: CLIENT UNBLOCK with ERROR ended a blocked command.
	ErrUnblocked = errors.New("store: waiting was ended by CLIENT UNBLOCK")
)

// Wait says how long a transaction is ready to wait for locked keys and who
// may end that. The zero value and nil wait for ever.
type Wait struct {
	// Done ends the wait with ErrCancelled when it is closed.
	Done <-chan struct{}
	// Busy ends the wait with ErrBusy once the owner of the key has been
	// running for that long. 0: never.
	Busy time.Duration
	// Timeout ends the wait of a blocked command with ErrTimeout. 0: never.
	Timeout time.Duration
	// Unblocked ends the wait of a blocked command with the error that it
	// receives: ErrTimeout or ErrUnblocked. nil: nobody does.
	Unblocked <-chan error
	// Abandoned ends the wait of a blocked command with ErrUnblocked when it is
	// closed. nil: nobody does.
	Abandoned <-chan struct{}
	// Parked is called before the first time the goroutine really waits; what
	// it returns is called when the wait has ended. The proxy watches the
	// socket meanwhile. blocked tells the wait of a blocked command, which
	// Timeout and Unblocked end, from that for a lock.
	Parked func(blocked bool) (unpark func())
	// Watch has the client watched after some time, for a transaction that
	// runs for long: when the client goes away Done is closed. nil: nobody can.
	Watch func(after time.Duration) (stop func())
}

func (w *Wait) done() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.Done
}

func (w *Wait) abandoned() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.Abandoned
}

func (w *Wait) unblocked() <-chan error {
	if w == nil {
		return nil
	}
	return w.Unblocked
}

// Pass lets Timeout pass, for a blocked command that waits for what never comes
// (WAIT without replicas). It ends as the wait for a key does: ErrTimeout,
// ErrCancelled or ErrUnblocked.
func (w *Wait) Pass() error {
	var timeout <-chan time.Time
	if w != nil && w.Timeout > 0 {
		timer := time.NewTimer(w.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	defer w.parked(true)()
	select {
	case <-timeout:
		return ErrTimeout
	case err := <-w.unblocked():
		return err
	case <-w.done():
		return ErrCancelled
	}
}

func (w *Wait) parked(blocked bool) func() {
	if w == nil || w.Parked == nil {
		return func() {}
	}
	return w.Parked(blocked)
}

// forChan waits at the gate until ch is closed or receives. Who has stood there
// for Busy gives up: before the gate or behind it runs a slow script.
func (w *Wait) forChan(s *Store, ch <-chan struct{}) error {
	select {
	case <-ch:
		return nil
	default:
	}
	defer w.parked(false)()
	var busy <-chan time.Time
	if w != nil && w.Busy > 0 {
		timer := time.NewTimer(w.Busy)
		defer timer.Stop()
		busy = timer.C
	}
	select {
	case <-ch:
		return nil
	case <-w.done():
		return ErrCancelled
	case <-s.closed:
		return ErrCancelled
	case <-busy:
		return ErrBusy
	}
}
