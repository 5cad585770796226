package store

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// gate lets transactions in, or one exclusive transaction alone.
//
// Short transactions only read closed, under a latch of theirs; longer ones are
// counted in. To close the gate is to set closed, to pass through every latch once
// (whoever had read closed as open before has then ended, and who it has handed a
// key to is counted), and then to wait until nobody is counted any more.
//
// That wait keeps everybody out, so it is short: after gatePatience the gate opens
// again, and who wants to be alone waits, with the gate open, until all those have
// ended that were in the way. Then it tries again. So nobody stands before the gate
// because of a slow script that somebody else waits for; who wants to be alone
// stands there in the end and is told that it is busy. To know when the old ones
// have ended, each transaction is counted in one of two generations: a try that
// fails begins the other.
//
// Those who want to be alone take turns in the order in which they came, and whoever
// stood before the gate while one was alone goes in before the next.
type gate struct {
	closed     atomic.Bool
	active     [2]atomic.Int64 // the longer transactions, by generation
	generation atomic.Uint32   // of those that come in; the other is the older
	standing   atomic.Int64    // those kept out, until they are in
	wanted     atomic.Bool     // somebody waits for the above to fall to zero

	turn chan struct{} // full while somebody is alone or next to be
	idle chan struct{} // receives when a count falls to zero while wanted

	failed int64 // when the last try failed, in ns since the store was made; of whose turn it is

	mu     sync.Mutex
	opened chan struct{} // closed when the gate opens again
	shutAt int64         // when it was closed, in ns since the store was made
	named  []*Tx         // those that say what they are: see Tx.BusyAs
}

// gatePatience is how long the gate may be kept closed by a transaction that was
// there before: much longer than a script that is not slow takes, and too short
// for anybody to mind. Whoever has failed is twice and then four times as patient,
// so that scripts of some ten milliseconds, one after the other, do not keep it
// waiting for ever.
const gatePatience = 10 * time.Millisecond

func (g *gate) init() {
	g.turn = make(chan struct{}, 1)
	g.idle = make(chan struct{}, 1)
}

// tryEnter counts a longer transaction in, unless the gate is closed. It leaves with
// the generation that comes back.
func (g *gate) tryEnter() (generation uint32, ok bool) {
	generation = g.generation.Load()
	g.active[generation].Add(1)
	if !g.closed.Load() {
		return generation, true
	}
	g.leave(generation)
	return 0, false
}

// follow counts in who is handed a key, before the one who hands it over leaves,
// which is counted in itself or holds a latch: so the gate cannot have closed
// behind it. Under the latch of the key.
func (g *gate) follow() (generation uint32) {
	generation = g.generation.Load()
	g.active[generation].Add(1)
	return generation
}

func (g *gate) leave(generation uint32) { g.counted(&g.active[generation]) }

// counted takes one off a count, and tells who waits for it when it was the last.
func (g *gate) counted(n *atomic.Int64) {
	if n.Add(-1) == 0 && g.wanted.Load() {
		select {
		case g.idle <- struct{}{}:
		default:
		}
	}
}

// enter counts a longer transaction in, and waits until the gate is open for that.
func (g *gate) enter(s *Store, w *Wait) (generation uint32, err error) {
	generation, ok := g.tryEnter()
	if ok {
		return generation, nil
	}
	g.standing.Add(1)
	defer g.counted(&g.standing)
	v := w.atGate(s)
	defer v.end()
	for {
		g.mu.Lock()
		opened, since := g.opened, g.shutAt
		g.mu.Unlock()
		if err := v.until(opened, since); err != nil {
			return 0, err
		}
		if generation, ok = g.tryEnter(); ok {
			return generation, nil
		}
	}
}

// close waits for its turn and then until no other transaction runs.
func (g *gate) close(s *Store, w *Wait) error {
	v := w.atGate(s)
	defer v.end()
	if err := v.take(g.turn); err != nil {
		return err
	}
	g.wanted.Store(true)
	err := g.shut(s, &v)
	g.wanted.Store(false)
	if err != nil {
		<-g.turn
	}
	return err
}

// shut closes the gate for one whose turn it is.
func (g *gate) shut(s *Store, v *visit) error {
	for patience := gatePatience; ; patience = min(2*patience, 4*gatePatience) {
		if err := g.calm(v); err != nil {
			return err
		}
		g.mu.Lock()
		g.opened, g.shutAt = make(chan struct{}), s.elapsed()
		g.closed.Store(true)
		g.mu.Unlock()
		for i := range s.shards {
			s.shards[i].latch.Lock()
			//lint:ignore SA2001 passing through is the point
			s.shards[i].latch.Unlock()
		}
		alone, err := g.drained(v, patience)
		if alone {
			return nil
		}
		// Also when it was killed: the next one does not try before these have
		// ended.
		g.failed = s.elapsed()
		g.generation.Store(1 - g.generation.Load())
		g.reopen()
		if err != nil {
			return err
		}
	}
}

// calm waits, with the gate open, for those who were in the way of the try before
// and for those whom it kept out.
func (g *gate) calm(v *visit) error {
	for {
		var since int64
		switch {
		case g.older().Load() != 0:
			since = g.failed
		case g.standing.Load() != 0:
			since = v.began
		default:
			return nil
		}
		if err := v.until(g.idle, since); err != nil {
			return err
		}
	}
}

// drained waits behind the closed gate until nobody is counted any more, and
// returns false when that takes longer than patience.
func (g *gate) drained(v *visit, patience time.Duration) (bool, error) {
	var timeout <-chan time.Time
	for {
		// Whoever is handed a key comes into the younger generation before the one
		// it has it from leaves, so the older is looked at first.
		if g.older().Load() == 0 && g.younger().Load() == 0 {
			return true, nil
		}
		if timeout == nil && !mutantGateStays {
			timer := time.NewTimer(patience)
			defer timer.Stop()
			timeout = timer.C
		}
		if late, err := v.untilOr(g.idle, v.began, timeout); late || err != nil {
			return false, err
		}
	}
}

func (g *gate) younger() *atomic.Int64 { return &g.active[g.generation.Load()] }
func (g *gate) older() *atomic.Int64   { return &g.active[1-g.generation.Load()] }

// open lets all others in again.
func (g *gate) open() {
	g.reopen()
	<-g.turn
}

func (g *gate) reopen() {
	g.mu.Lock()
	g.closed.Store(false)
	close(g.opened)
	g.mu.Unlock()
}

// name makes a transaction say what it is to those who give up at the gate, or no
// longer.
func (g *gate) name(tx *Tx, says bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.named, tx)
	switch {
	case says && i < 0:
		g.named = append(g.named, tx)
	case !says && i >= 0:
		g.named = slices.Delete(g.named, i, i+1)
	}
}

// busy is what one is told who gives up at the gate: what one of those says who
// have been running for that long.
func (g *gate) busy(s *Store, after time.Duration) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, tx := range g.named {
		started, err := tx.started.Load(), tx.busyAs.Load()
		if started != 0 && err != nil && s.elapsed()-started >= int64(after) {
			return *err
		}
	}
	return ErrBusy
}
