package upstream

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// keptBuffer is the largest write buffer, in bytes, that a link keeps for reuse.
	keptBuffer = 1 << 20
	// keptCalls is the longest batch that is kept for reuse.
	keptCalls = 4 << 10
	// writeChunk is how much one write is given, so that a slow but moving one is seen to move.
	writeChunk = 256 << 10
	// youngLoss is how long a connection must have lived for its loss not to count as a sign
	// that the upstream is down.
	youngLoss = time.Second
)

// link is the queue of one connection, and the goroutine that makes the connection, writes to it
// and settles what is left when it is lost.
type link struct {
	pool  *Pool
	db    int
	proto int

	unanswered atomic.Int64 // Calls queued or written
	wire       atomic.Pointer[wire]

	mu      sync.Mutex
	work    sync.Cond // the writer waits for: queue not empty, wire lost, pool closed
	asleep  bool      // the writer waits
	queue   *batch    // not taken by the writer
	out     []byte    // the bytes of queue
	writing int       // bytes the writer has taken and not written
	refused *Error    // why the upstream does not take this link's handshake
	until   time.Time // for how long refused is believed
	made    bool      // there was a connection before

	flight flight

	// Of the watch alone.
	seenWire  *wire
	seenMoved uint64
	since     time.Time
}

// batch is the Calls whose requests went out in one write.
type batch struct {
	calls []*Call
	head  int // the first one without a complete reply; the reader's
}

// flight is the batches from the writer to the reader, and empty ones back.
type flight struct {
	mu      sync.Mutex
	batches []*batch
	free    []*batch
}

func (f *flight) push(b *batch) {
	f.mu.Lock()
	f.batches = append(f.batches, b)
	f.mu.Unlock()
}

// next takes back the batch that is done with (or nil) and returns the oldest in flight, or nil.
func (f *flight) next(done *batch) *batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	if done != nil && cap(done.calls) <= keptCalls && len(f.free) < 4 {
		done.calls, done.head = done.calls[:0], 0
		f.free = append(f.free, done)
	}
	if len(f.batches) == 0 {
		return nil
	}
	b := f.batches[0]
	n := copy(f.batches, f.batches[1:])
	f.batches[n] = nil
	f.batches = f.batches[:n]
	return b
}

func (f *flight) empty() *batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.free)
	if n == 0 {
		return &batch{}
	}
	b := f.free[n-1]
	f.free[n-1] = nil
	f.free = f.free[:n-1]
	return b
}

func newLink(p *Pool, db, proto int) *link {
	l := &link{pool: p, db: db, proto: proto, queue: &batch{}}
	l.work.L = &l.mu
	return l
}

// enqueue queues a Call with the bytes of raw, or of cmds, or fails it.
func (l *link) enqueue(c *Call, raw []byte, cmds [][]byte) {
	size := len(raw)
	for _, cmd := range cmds {
		size += len(cmd)
	}
	l.mu.Lock()
	if err := l.admit(size); err != nil {
		l.mu.Unlock()
		l.pool.refuse(c, err)
		return
	}
	l.out = append(l.out, raw...)
	c.point = len(l.out)
	if cmds != nil {
		c.point += len(cmds[0])
		for _, cmd := range cmds {
			l.out = append(l.out, cmd...)
		}
		if isTransaction(cmds) {
			c.point = len(l.out)
		}
	}
	l.queue.calls = append(l.queue.calls, c)
	l.unanswered.Add(1)
	wake := l.asleep
	l.asleep = false
	l.mu.Unlock()
	if wake {
		l.work.Signal()
	}
}

// admit says why a request of that many bytes cannot be queued. The caller holds mu.
func (l *link) admit(size int) *Error {
	p := l.pool
	if p.ctx.Err() != nil {
		return p.errClosed
	}
	if l.wire.Load() == nil {
		if down := p.gate.down.Load(); down != nil {
			return down
		}
		if l.refused != nil {
			if time.Now().Before(l.until) {
				return l.refused
			}
			l.refused = nil
		}
	}
	if n := l.unanswered.Load(); n >= int64(p.opt.QueueCommands) {
		return newError(ErrBusy, nil, fmt.Sprintf("UPSTREAMBUSY %d commands already wait for upstream %s", n, p.target.Address))
	}
	if n := len(l.out) + l.writing; n > 0 && n+size > p.opt.QueueBytes {
		return newError(ErrBusy, nil, fmt.Sprintf("UPSTREAMBUSY %d bytes already wait to be sent to upstream %s", n, p.target.Address))
	}
	return nil
}

func (l *link) wakeUp() {
	l.mu.Lock()
	l.asleep = false
	l.mu.Unlock()
	l.work.Broadcast()
}

// shut ends the connection, if there is one, and the writer; the pool's context has ended.
func (l *link) shut() {
	// A writer that still saw the pool open has stored its wire before that.
	if w := l.wire.Load(); w != nil {
		w.lose(ErrClosed)
	}
	l.wakeUp()
}

// run is the writer: it waits for the first command, connects, serves the connection until it is
// lost, and begins again.
func (l *link) run() {
	defer l.failQueue(l.pool.errClosed)
	for l.awaitWork(nil) {
		w, err := l.pool.open(l.db, l.proto)
		if err != nil {
			if err.only {
				l.mu.Lock()
				l.refused, l.until = err, time.Now().Add(l.pool.opt.BackoffMax)
				l.mu.Unlock()
			}
			l.failQueue(err)
			continue
		}
		l.serve(w)
	}
}

// awaitWork waits until something is queued; false means that the pool is closed or w lost.
func (l *link) awaitWork(w *wire) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if l.pool.ctx.Err() != nil || w != nil && w.isLost() {
			return false
		}
		if len(l.queue.calls) > 0 {
			return true
		}
		l.asleep = true
		l.work.Wait()
	}
}

// take swaps the queue for an empty one. out is the buffer of the last batch, written by now.
func (l *link) take(out []byte) (*batch, []byte) {
	if cap(out) > keptBuffer {
		out = nil
	}
	next := l.flight.empty()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.queue
	l.queue = next
	out, l.out = l.out, out[:0]
	l.writing = len(out)
	return b, out
}

// serve writes what is queued until the connection is lost, then fails every Call that is left.
func (l *link) serve(w *wire) {
	p := l.pool
	if l.made {
		p.reconnects.Add(1)
	}
	l.made = true
	w.onLost = l.wakeUp
	l.wire.Store(w)
	readerDone := make(chan struct{})
	var rest *batch // what the reader had in hand
	p.running.Go(func() {
		rest = l.read(w)
		close(readerDone)
	})

	var last *batch
	var out []byte
	written := 0 // of last
	for l.awaitWork(w) {
		// Who was made runnable together with this writer may add to the batch; a turn of the
		// scheduler is cheaper than a system call (BenchmarkForward, 50 clients without pipelining:
		// a third of the time).
		runtime.Gosched()
		last, out = l.take(out)
		l.flight.push(last)
		p.sent.Add(uint64(len(last.calls)))
		n, err := w.send(out)
		written = n
		if err != nil {
			w.lose(err)
			break
		}
		l.mu.Lock()
		l.writing = 0
		l.mu.Unlock()
	}
	w.lose(ErrClosed) // unless it has another reason
	<-readerDone
	l.settle(w, rest, last, written)
}

// read matches replies to Calls until the connection is lost, and returns the batch it was at.
func (l *link) read(w *wire) *batch {
	var b *batch
	for {
		frame, err := w.frames.Next()
		if err != nil {
			w.lose(err)
			return b
		}
		if frame.IsPush() {
			if l.proto == 2 {
				w.lose(errProtocol)
				return b
			}
			continue // out of band, and nobody here asked for it
		}
		if b == nil || b.head == len(b.calls) {
			if b = l.flight.next(b); b == nil {
				w.lose(errProtocol)
				return nil
			}
		}
		c := b.calls[b.head]
		if !c.answer(frame.Raw) {
			continue
		}
		b.calls[b.head] = nil
		b.head++
		l.unanswered.Add(-1)
		c.complete()
	}
}

// settle fails every Call of a lost connection. Of the last batch, written bytes reached the
// network; the batches before it were written whole.
func (l *link) settle(w *wire, rest, last *batch, written int) {
	p := l.pool
	cause := w.reason()
	if errors.Is(cause, ErrClosed) {
		p.opt.Logger.Debug("upstream connection closed", "address", p.target.Address)
	} else {
		p.opt.Logger.Warn("upstream connection lost", "address", p.target.Address, "db", l.db, "error", reason(cause), "unanswered", l.unanswered.Load())
		if time.Since(w.born) < youngLoss {
			p.gate.fail(unreachable(p.target.Address, cause))
		}
	}
	unsent, unknown := notSent(p.target.Address, cause), outcomeUnknown(p.target.Address, cause)

	l.mu.Lock()
	l.wire.Store(nil)
	l.writing = 0
	l.mu.Unlock()
	for b := rest; ; {
		if b != nil {
			for _, c := range b.calls[b.head:] {
				if b == last && c.point > written {
					l.fail(c, unsent)
				} else {
					l.fail(c, unknown)
				}
			}
			clear(b.calls)
		}
		if b = l.flight.next(b); b == nil {
			break
		}
	}
	l.failQueue(unsent)
}

// failQueue fails what the writer has not taken.
func (l *link) failQueue(err *Error) {
	l.mu.Lock()
	b := l.queue
	l.queue, l.out = &batch{}, nil
	l.mu.Unlock()
	for _, c := range b.calls {
		l.fail(c, err)
	}
}

func (l *link) fail(c *Call, err *Error) {
	l.unanswered.Add(-1)
	l.pool.errors.Add(1)
	c.fail(err)
}

// checkStall loses a connection that moves no byte while a reply is owed. Only the watch calls it.
func (l *link) checkStall(now time.Time) {
	w := l.wire.Load()
	if w == nil || l.unanswered.Load() == 0 {
		l.seenWire = nil
		return
	}
	if moved := w.moved.Load(); w != l.seenWire || moved != l.seenMoved {
		l.seenWire, l.seenMoved, l.since = w, moved, now
		return
	}
	if now.Sub(l.since) >= l.pool.opt.ReplyTimeout {
		w.lose(fmt.Errorf("no byte from it for %v", l.pool.opt.ReplyTimeout))
	}
}
