package proxy

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy/config"
)

// output is the way to a client's socket.
//
// As long as only the client's own goroutine has something to say, it writes by
// itself. Once others may speak to the client (subscriptions, MONITOR), all of
// it goes through a queue that a writer goroutine empties, so that whoever
// publishes never waits for whoever does not read.
type output struct {
	c *client

	mu     sync.Mutex
	shared bool
	queue  []byte
	spare  []byte // the buffer written last
	closed bool
	over   time.Time     // since when the soft limit is exceeded
	room   chan struct{} // receives when the queue was taken
	wake   chan struct{}
	ended  chan struct{}

	pending atomic.Int64 // bytes queued or being written
}

// queueHigh is how many queued bytes make the client's own goroutine wait: its
// replies must not outrun the reader. Messages of others are not held back; the
// output buffer limit judges them.
const queueHigh = 1 << 20

type bufferLimits struct{ normal, pubsub config.BufferLimit }

func (o *output) init(c *client) { o.c = c }

func (o *output) isShared() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.shared
}

// limit is the class that the client belongs to. Under mu.
func (o *output) limit() config.BufferLimit {
	l := o.c.s.bufferLimit.Load()
	if o.c.subs.any.Load() || o.c.monitoring.Load() {
		return l.pubsub
	}
	return l.normal
}

// write sends replies of the client's own goroutine.
func (o *output) write(b []byte) error {
	o.mu.Lock()
	if !o.shared {
		o.mu.Unlock()
		return o.direct(b)
	}
	o.awaitRoom()
	err := o.enqueue(b)
	o.mu.Unlock()
	return err
}

// awaitRoom keeps the client's own goroutine for as long as too much is queued.
// Under mu, which it lets go meanwhile.
func (o *output) awaitRoom() {
	for len(o.queue) > queueHigh && !o.closed && !o.done() {
		o.mu.Unlock()
		o.c.leaveLoop()
		o.c.lastUsed.Store(o.c.s.seconds()) // timeout counts from here
		o.c.stuck.Store(true)
		select {
		case <-o.room:
		case <-o.c.done:
		}
		o.c.stuck.Store(false)
		o.mu.Lock()
	}
}

func (o *output) done() bool {
	select {
	case <-o.c.done:
		return true
	default:
		return false
	}
}

// direct writes in the client's own goroutine.
func (o *output) direct(b []byte) error {
	l := o.c.s.bufferLimit.Load().normal
	if l.Hard > 0 && int64(len(b)) > l.Hard {
		o.overflow(len(b))
		return errOutputLimit
	}
	o.pending.Store(int64(len(b)))
	timed := l.Soft > 0 && int64(len(b)) > l.Soft && l.SoftSeconds > 0
	if timed {
		o.c.conn.SetWriteDeadline(time.Now().Add(time.Duration(l.SoftSeconds) * time.Second))
	}
	n, err := o.put(b)
	if timed {
		o.c.conn.SetWriteDeadline(time.Time{})
	}
	o.c.s.stats.writes.Add(1)
	o.c.s.stats.netOut.Add(int64(n))
	o.pending.Store(0)
	return err
}

// put writes all of b to the socket. On an event loop it writes what the socket
// takes, and waits for the rest beside the loop.
func (o *output) put(b []byte) (n int, err error) {
	c := o.c
	if c.loop != nil {
		n, err = c.loop.TryWrite(b)
		if err != nil || n == len(b) {
			return n, err
		}
		c.leaveLoop()
	}
	c.stuck.Store(true)
	m, err := c.conn.Write(b[n:])
	c.stuck.Store(false)
	return n + m, err
}

// share makes all output go through the queue from now on. Called by the
// client's own goroutine.
func (o *output) share() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shared || o.closed {
		return
	}
	o.shared = true
	o.room = make(chan struct{}, 1)
	o.wake = make(chan struct{}, 1)
	o.ended = make(chan struct{})
	go o.run()
}

// push queues what someone else says to the client. Any goroutine may call it;
// it never blocks. A client that does not read is closed at its limit.
func (o *output) push(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.enqueue(b)
}

// enqueue appends to the queue. Under mu.
func (o *output) enqueue(b []byte) error {
	if o.closed {
		return errOutputLimit
	}
	l := o.limit()
	size := o.pending.Load() + int64(len(b))
	if l.Hard > 0 && size > l.Hard {
		o.overflow(int(size))
		return errOutputLimit
	}
	if l.Soft > 0 && size > l.Soft {
		now := time.Now()
		if o.over.IsZero() {
			o.over = now
		} else if now.Sub(o.over) > time.Duration(l.SoftSeconds)*time.Second {
			o.overflow(int(size))
			return errOutputLimit
		}
	} else {
		o.over = time.Time{}
	}
	o.queue = append(o.queue, b...)
	o.pending.Add(int64(len(b)))
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return nil
}

var errOutputLimit = errors.New("proxy: client-output-buffer-limit exceeded")

func (o *output) overflow(size int) {
	o.c.s.stats.outputLimit.Add(1)
	o.c.s.log.Warn("a client reads too slowly and was closed at client-output-buffer-limit", "client", o.c.id, "bytes", size)
	o.closed = o.shared
	o.queue = nil
	o.c.kill()
}

// run is the writer goroutine.
func (o *output) run() {
	defer close(o.ended)
	for range o.wake {
		for {
			o.mu.Lock()
			batch := o.queue
			o.queue, o.spare = o.spare[:0], nil
			select {
			case o.room <- struct{}{}:
			default:
			}
			o.mu.Unlock()
			if len(batch) == 0 {
				break
			}
			n, err := o.c.conn.Write(batch)
			o.c.s.stats.writes.Add(1)
			o.c.s.stats.netOut.Add(int64(n))
			o.pending.Add(-int64(len(batch)))
			if err != nil {
				o.c.kill()
				o.mu.Lock()
				o.closed = true
				o.mu.Unlock()
			}
			o.mu.Lock()
			if cap(batch) <= queueHigh {
				o.spare = batch
			}
			o.mu.Unlock()
		}
	}
}

// close ends the writer goroutine after what is queued was written.
func (o *output) close() {
	o.mu.Lock()
	if !o.shared {
		o.closed = true
		o.mu.Unlock()
		return
	}
	if !o.closed {
		o.closed = true
	}
	o.shared = false
	close(o.wake)
	o.mu.Unlock()
	o.c.conn.SetWriteDeadline(time.Now().Add(time.Second))
	<-o.ended
}
