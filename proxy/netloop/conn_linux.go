//go:build linux && (amd64 || arm64)

package netloop

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Conn is a connection of a Loop. As a net.Conn it blocks, for whoever is not on
// the loop; TryRead and TryWrite never do.
//
// One goroutine may read and one write at a time. Close, Poke and the deadlines
// are for any.
type Conn struct {
	// loop serves it. It changes when nobody acts for it only.
	loop          atomic.Pointer[Loop]
	handler       Handler
	remote, local net.Addr

	// The role's holder's, but for turn, which is of the goroutine that acts.
	turn   uint64
	away   bool
	queued bool
	joined bool
	gone   bool

	readable atomic.Bool // something came, and no short read since
	hungUp   atomic.Bool // the end will come without another edge
	dead     atomic.Bool
	rd, wr   waiter

	mu sync.Mutex
	fd int // -1 once it is closed, which is the role's holder's to do
}

// Start has the loop serve the connection.
func (c *Conn) Start(h Handler) {
	c.handler = h
	c.loop.Load().post(letter{c: c, what: join})
}

// Poke gives the Handler a turn, unless it is having one.
func (c *Conn) Poke() { c.loop.Load().post(letter{c: c, what: poke}) }

// Readable tells whether a read may bring something.
func (c *Conn) Readable() bool { return c.readable.Load() || c.hungUp.Load() }

// TryRead reads what is there, or returns ErrAgain. It asks the kernel only if
// something has come since it last had all.
func (c *Conn) TryRead(p []byte) (int, error) {
	if !c.Readable() {
		return 0, ErrAgain
	}
	if c.dead.Load() {
		return 0, net.ErrClosed
	}
	// Before the read: what comes after it is told as a new edge.
	c.readable.Store(false)
	for {
		n, errno := receive(c.fd, p)
		switch {
		case errno == syscall.EINTR:
		case errno == syscall.EAGAIN:
			return 0, ErrAgain
		case errno != 0:
			return 0, os.NewSyscallError("recvfrom", errno)
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			if n == len(p) {
				c.readable.Store(true)
			}
			return n, nil
		}
	}
}

// TryWrite writes as much as the socket takes now; less than all is no error.
func (c *Conn) TryWrite(p []byte) (n int, err error) {
	for n < len(p) {
		if c.dead.Load() {
			return n, net.ErrClosed
		}
		m, errno := send(c.fd, p[n:])
		switch errno {
		case 0:
			n += m
		case syscall.EINTR:
		case syscall.EAGAIN:
			return n, nil
		default:
			return n, os.NewSyscallError("sendto", errno)
		}
	}
	return n, nil
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	c.rd.begin()
	defer c.rd.end()
	for {
		n, err := c.TryRead(p)
		if err != ErrAgain {
			return n, err
		}
		if err := c.rd.wait(c); err != nil {
			return 0, err
		}
	}
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (n int, err error) {
	c.wr.begin()
	defer c.wr.end()
	for {
		m, err := c.TryWrite(p[n:])
		n += m
		if err != nil || n == len(p) {
			return n, err
		}
		if err := c.wr.wait(c); err != nil {
			return n, err
		}
	}
}

// Close ends the connection: the peer sees it, and so does whoever reads or
// writes here. Its Handler gets a turn, in which it should end; after End the
// socket is given back.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead.Swap(true) || c.fd < 0 {
		return nil
	}
	c.hungUp.Store(true)
	syscall.Shutdown(c.fd, syscall.SHUT_RDWR) // an event for the loop
	c.rd.signal()
	c.wr.signal()
	return nil
}

// FD is the socket's descriptor, -1 if it is closed.
func (c *Conn) FD() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fd
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	c.rd.setDeadline(t)
	c.wr.setDeadline(t)
	return nil
}

// SetReadDeadline implements net.Conn; TryRead knows no deadline.
func (c *Conn) SetReadDeadline(t time.Time) error { c.rd.setDeadline(t); return nil }

// SetWriteDeadline implements net.Conn; TryWrite knows no deadline.
func (c *Conn) SetWriteDeadline(t time.Time) error { c.wr.setDeadline(t); return nil }

// waiter is one direction of a Conn, for the goroutine that blocks on it.
type waiter struct {
	// waiting is set before the socket is tried: an edge after it leaves a token.
	waiting  atomic.Bool
	token    chan struct{}
	mu       sync.Mutex
	deadline time.Time
}

func (w *waiter) begin() {
	if w.token == nil {
		w.token = make(chan struct{}, 1)
	}
	w.waiting.Store(true)
}

func (w *waiter) end() { w.waiting.Store(false) }

// wait returns when the socket is worth another try.
func (w *waiter) wait(c *Conn) error {
	w.mu.Lock()
	deadline := w.deadline
	w.mu.Unlock()
	if c.dead.Load() {
		return net.ErrClosed
	}
	if deadline.IsZero() {
		<-w.token
		return nil
	}
	left := time.Until(deadline)
	if left <= 0 {
		return os.ErrDeadlineExceeded
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-w.token:
	case <-timer.C:
	}
	return nil
}

func (w *waiter) signal() {
	if w.waiting.Load() {
		select {
		case w.token <- struct{}{}:
		default:
		}
	}
}

func (w *waiter) setDeadline(t time.Time) {
	w.mu.Lock()
	w.deadline = t
	w.mu.Unlock()
	w.signal()
}
