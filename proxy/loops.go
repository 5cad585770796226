package proxy

import (
	"errors"
	"net"
	"runtime"

	"github.com/latchkey-proxy/latchkey/proxy/netloop"
)

// loops are the event loops of a server, none where each client has a goroutine
// of its own.
type loops struct {
	all  []*netloop.Loop
	next int
}

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
	for range n {
		l, err := netloop.New()
		if err != nil {
			if !errors.Is(err, netloop.ErrUnsupported) {
				s.log.Warn("cannot start an event loop; clients without one get a goroutine each", "err", err)
			}
			return
		}
		s.loops.all = append(s.loops.all, l)
	}
}

// take hands a connection to the loop whose turn it is. It returns what the
// client is to talk through: conn itself if no loop takes it.
func (l *loops) take(conn net.Conn) net.Conn {
	if len(l.all) == 0 {
		return conn
	}
	l.next = (l.next + 1) % len(l.all)
	c, err := l.all[l.next].Take(conn)
	if err != nil {
		return conn
	}
	return c
}

// close ends the loops, after their clients.
func (l *loops) close() {
	for _, one := range l.all {
		one.Close()
	}
}
