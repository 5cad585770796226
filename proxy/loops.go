package proxy

import (
	"errors"
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy/netloop"
)

// loops are the event loops of a server, none where each client has a goroutine
// of its own.
//
// More loops than the load needs cost CPU: each wakes for fewer clients (two in
// place of one took half as much again at depth 1). So one serves all, and another
// joins when those there are have had no pause for a while.
type loops struct {
	all    []*netloop.Loop
	active atomic.Int32 // how many of them take clients, the first ones

	// Of balance.
	at     time.Time
	waited []time.Duration
	full   int // looks in a row at which all were busy
	slack  int // at which one less would have done
}

// What balance goes by; it looks ten times a second.
const (
	fullShare   = 0.9 // of the time, without which a loop counts as full
	fullLooks   = 5
	slackShare  = 0.6 // of the loops that would be left
	slackLooks  = 50
	evenedAfter = 8 // clients more than another loop's that are too many
)

// startLoops starts as many loops as event-loops says, once. Under mu.
func (s *Server) startLoops() {
	if s.loops.all != nil || s.router.Load() != nil {
		// A proxy waits for its upstream in nearly every batch.
		return
	}
	n := int(s.cfg.Int("event-loops"))
	if n < 0 {
		n = max(1, runtime.NumCPU()/2)
	}
	keep := 2*n <= runtime.GOMAXPROCS(0)
	for range n {
		l, err := netloop.New(keep)
		if err != nil {
			if !errors.Is(err, netloop.ErrUnsupported) {
				s.log.Warn("cannot start an event loop; clients without one get a goroutine each", "err", err)
			}
			return
		}
		s.loops.all = append(s.loops.all, l)
		s.loops.active.Store(1)
	}
}

// take hands a connection to the loop with the fewest. It returns what the client
// is to talk through: conn itself if no loop takes it.
func (l *loops) take(conn net.Conn) net.Conn {
	active := l.all[:l.active.Load()]
	if len(active) == 0 {
		return conn
	}
	c, err := slices.MinFunc(active, fewer).Take(conn)
	if err != nil {
		return conn
	}
	return c
}

func fewer(a, b *netloop.Loop) int { return a.Len() - b.Len() }

// balance has as many loops take part as there is work for, and spreads the
// clients over them.
func (l *loops) balance(now time.Time) {
	if len(l.all) < 2 {
		return
	}
	elapsed := now.Sub(l.at)
	first := l.at.IsZero()
	l.at = now
	active := int(l.active.Load())
	busy, allFull := 0.0, true
	if first {
		l.waited = make([]time.Duration, len(l.all))
	}
	for i, one := range l.all {
		waited := one.Waited()
		share := 1 - float64(waited-l.waited[i])/float64(elapsed)
		l.waited[i] = waited
		if i < active {
			busy += share
			allFull = allFull && share > fullShare
		}
	}
	if first {
		return
	}
	l.full, l.slack = l.full+1, l.slack+1
	if !allFull || active == len(l.all) {
		l.full = 0
	}
	if busy > slackShare*float64(active-1) {
		l.slack = 0
	}
	switch {
	case l.full >= fullLooks:
		active++
		l.full = 0
	case l.slack >= slackLooks:
		active--
		l.slack = 0
	}
	l.active.Store(int32(active))
	l.spread(active)
}

// spread moves clients from loops that have too many, or should have none.
func (l *loops) spread(active int) {
	total, have := 0, make([]int, len(l.all))
	for i, one := range l.all {
		have[i] = one.Len()
		total += have[i]
	}
	fair := total / active
	for i, from := range l.all {
		much := have[i]
		if i < active {
			much -= fair + evenedAfter
		}
		for to := range active {
			if n := min(much, fair+1-have[to]); to != i && n > 0 {
				from.Give(n, l.all[to])
				have[to] += n
				much -= n
			}
		}
	}
}

// close ends the loops, after their clients.
func (l *loops) close() {
	for _, one := range l.all {
		one.Close()
	}
}
