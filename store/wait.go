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
	// Watch is called on the goroutine of a transaction that runs for long. After
	// some time, 0 for never, the client is watched: when it goes away Done is
	// closed. nil: nobody can.
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

// visit is a wait at the gate, of several parts. Who has stood there for Wait.Busy
// gives up: before the gate or behind it runs a slow script.
type visit struct {
	s      *Store
	w      *Wait
	began  int64 // in ns since the store was made
	timer  *time.Timer
	unpark func()
}

func (w *Wait) atGate(s *Store) visit { return visit{s: s, w: w, began: s.elapsed()} }

// park is called before each part, and returns what ends it when it has lasted
// too long: since then they wait for the same, the visitor not longer than since
// it came.
func (v *visit) park(since int64) (busy <-chan time.Time) {
	if v.unpark == nil {
		v.unpark = v.w.parked(false)
	}
	if v.w == nil || v.w.Busy <= 0 {
		return nil
	}
	left := v.w.Busy - time.Duration(v.s.elapsed()-min(since, v.began))
	if v.timer == nil {
		v.timer = time.NewTimer(left)
	} else {
		v.timer.Reset(left)
	}
	return v.timer.C
}

// end ends the visit.
func (v *visit) end() {
	if v.timer != nil {
		v.timer.Stop()
	}
	if v.unpark != nil {
		v.unpark()
	}
}

// until waits until ch is closed or receives.
func (v *visit) until(ch <-chan struct{}, since int64) error {
	_, err := v.untilOr(ch, since, nil)
	return err
}

// untilOr waits until ch is closed or receives, or until it is too late.
func (v *visit) untilOr(ch <-chan struct{}, since int64, timeout <-chan time.Time) (late bool, err error) {
	select {
	case <-ch:
		return false, nil
	default:
	}
	busy := v.park(since)
	select {
	case <-ch:
		return false, nil
	case <-timeout:
		return true, nil
	case <-v.w.done():
		return false, ErrCancelled
	case <-v.s.closed:
		return false, ErrCancelled
	case <-busy:
		return false, v.s.gate.busy(v.s, v.w.Busy)
	}
}

// take waits until it can send to turn.
func (v *visit) take(turn chan<- struct{}) error {
	select {
	case turn <- struct{}{}:
		return nil
	default:
	}
	busy := v.park(v.began)
	select {
	case turn <- struct{}{}:
		return nil
	case <-v.w.done():
		return ErrCancelled
	case <-v.s.closed:
		return ErrCancelled
	case <-busy:
		return v.s.gate.busy(v.s, v.w.Busy)
	}
}
