package store

import (
	"sync"
	"sync/atomic"
)

// gate lets transactions in, or one exclusive transaction alone.
//
// Short transactions only read closed, under a latch of theirs; longer ones are
// counted in active. To close the gate is to set closed, to pass through every
// latch once (whoever had read closed as open before has then ended, and who it
// has handed a key to is counted), and then to wait until active is zero.
type gate struct {
	closed atomic.Bool
	active atomic.Int64

	mu     sync.Mutex
	opened chan struct{} // closed when the gate opens again
	idle   chan struct{} // receives when active falls to zero while closed
}

func (g *gate) init() { g.idle = make(chan struct{}, 1) }

// tryEnter counts a longer transaction in, unless the gate is closed.
func (g *gate) tryEnter() bool {
	g.active.Add(1)
	if !g.closed.Load() {
		return true
	}
	g.leave()
	return false
}

func (g *gate) leave() {
	if g.active.Add(-1) == 0 && g.closed.Load() {
		select {
		case g.idle <- struct{}{}:
		default:
		}
	}
}

// pass waits until the gate is open.
func (g *gate) pass(s *Store, w *Wait) error {
	for {
		g.mu.Lock()
		if !g.closed.Load() {
			g.mu.Unlock()
			return nil
		}
		ch := g.opened
		g.mu.Unlock()
		if err := w.forChan(s, ch); err != nil {
			return err
		}
	}
}

// close waits for its turn and then until no other transaction runs.
func (g *gate) close(s *Store, w *Wait) error {
	for {
		g.mu.Lock()
		if !g.closed.Load() {
			g.opened = make(chan struct{})
			select { // a wake-up left over from before
			case <-g.idle:
			default:
			}
			g.closed.Store(true)
			g.mu.Unlock()
			break
		}
		ch := g.opened
		g.mu.Unlock()
		if err := w.forChan(s, ch); err != nil {
			return err
		}
	}
	for i := range s.shards {
		s.shards[i].latch.Lock()
		//lint:ignore SA2001 passing through is the point
		s.shards[i].latch.Unlock()
	}
	for g.active.Load() != 0 {
		if err := w.forChan(s, g.idle); err != nil {
			g.open()
			return err
		}
	}
	return nil
}

func (g *gate) open() {
	g.mu.Lock()
	g.closed.Store(false)
	close(g.opened)
	g.mu.Unlock()
}
