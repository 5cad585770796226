//go:build linux && (amd64 || arm64)

package netloop

import (
	"slices"
	"syscall"
	"time"
)

var epoch = time.Now()

// now is the cheapest clock there is, in ns, never 0.
func now() int64 { return int64(time.Since(epoch)) + 1 }

// Len is how many connections the loop serves. Any goroutine may call it.
func (l *Loop) Len() int { return int(l.length.Load()) }

// Waited is how long the loop has waited for events in all: what passes without
// being waited is load. Any goroutine may call it.
func (l *Loop) Waited() time.Duration {
	waited, since := l.waited.Load(), l.since.Load()
	if since != 0 {
		waited += now() - since
	}
	return time.Duration(waited)
}

// Give has the loop pass up to n of its connections to another, soon. Those that
// are away stay. Any goroutine may call it.
func (l *Loop) Give(n int, to *Loop) { l.post(letter{what: give, n: n, to: to}) }

// give passes connections on. Between two rounds nobody acts for those that are
// not away, and what has come for one is told again by the other loop's epoll.
func (l *Loop) give(n int, to *Loop) {
	if to == l {
		return
	}
	var leaving []*Conn
	for fd, c := range l.conns {
		if len(leaving) == n {
			break
		}
		if c == nil || c.away {
			continue
		}
		var none syscall.EpollEvent
		if syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_DEL, fd, &none) != nil {
			continue
		}
		l.conns[fd] = nil
		c.queued, c.joined = false, false
		leaving = append(leaving, c)
	}
	l.length.Add(-int64(len(leaving)))
	l.next = slices.DeleteFunc(l.next, func(c *Conn) bool { return !c.queued })
	for _, c := range leaving {
		c.loop.Store(to)
		to.post(letter{c: c, what: join})
	}
}
