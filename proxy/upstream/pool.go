package upstream

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Pool is the connections to one upstream. All its methods may be called by any goroutine.
type Pool struct {
	opt    Options
	target Target
	gate   gate

	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	running sync.WaitGroup // links, their readers, the watch, the prober, subscribers

	mu     sync.Mutex // guards closed and making links
	closed bool
	lanes  [2][]atomic.Pointer[lane] // by protocol version, then database

	calls      sync.Pool
	held       atomic.Int64 // see Options.ReplyBytes
	errDropped *Error
	errClosed  *Error

	sent, errors, connects, reconnects atomic.Uint64
	connected                          atomic.Int64
}

// lane is the connections of one database and protocol version.
type lane struct{ links []*link }

// Request is one command for the upstream.
type Request struct {
	DB    int // the upstream's database
	Proto int // the version of RESP that the reply is wanted in: 2 or 3

	// Raw is the command as an array of bulk strings, exactly one; an inline command must be
	// encoded anew. It is copied before Do returns.
	Raw []byte

	// Sticky names who asks, such as a client's id: commands with the same number keep their
	// order. 0 wants no order, and takes the connection with the fewest commands.
	Sticky uint64
}

// Open makes a pool. It connects when the first command comes, so an upstream that is down is no
// error here; a bad URL or option is.
func Open(opt Options) (*Pool, error) {
	target, err := opt.check()
	if err != nil {
		return nil, err
	}
	p := &Pool{opt: opt, target: target}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.gate.init(p)
	p.calls.New = func() any { return &Call{pool: p, done: make(chan struct{}, 1)} }
	p.errDropped = newError(ErrUnknownOutcome, nil,
		"UPSTREAMLOST the command was executed, but its reply was dropped: replies of upstream ", target.Address,
		" that were not read yet hold more than ", strconv.FormatInt(opt.ReplyBytes, 10), " bytes")
	p.errClosed = newError(ErrUnavailable, ErrClosed, ErrClosed.Error())
	for i := range p.lanes {
		p.lanes[i] = make([]atomic.Pointer[lane], opt.Databases)
	}
	p.running.Go(p.watch)
	return p, nil
}

// Close ends all connections and waits for the pool's goroutines, subscribers included. Calls that
// are not answered fail with ErrUnavailable or ErrUnknownOutcome, later ones with ErrClosed. It
// must not be called from a Subscriber's callback.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	p.eachLink((*link).shut)
	p.running.Wait()
}

// Target is where the pool connects to.
func (p *Pool) Target() Target { return p.target }

// Do queues a command and returns at once. The Call has the reply or the error, and must be
// released.
func (p *Pool) Do(req Request) *Call {
	c := p.newCall()
	l, err := p.route(req)
	if err == nil && !oneCommand(req.Raw) {
		err = newError(ErrRequest, nil, "ERR request cannot be forwarded: it is not exactly one command")
	}
	if err != nil {
		p.refuse(c, err)
		return c
	}
	l.enqueue(c, req.Raw, nil)
	return c
}

// DoBlock queues several commands that go out together, with none of another client between them:
// MULTI ... EXEC. Each of cmds is as Request.Raw, which is itself unused. Wait gives the last
// command's reply, Call.Frame all of them. If the connection is lost when the block is half
// written, the error is ErrUnavailable for MULTI ... EXEC, which needs its last byte to be executed, and
// ErrUnknownOutcome for any other block.
func (p *Pool) DoBlock(req Request, cmds ...[]byte) *Call {
	c := p.newCall()
	l, err := p.route(req)
	for i := 0; err == nil && i < len(cmds); i++ {
		if !oneCommand(cmds[i]) {
			err = newError(ErrRequest, nil, "ERR request cannot be forwarded: command ", strconv.Itoa(i+1), " of the block is not exactly one command")
		}
	}
	if err == nil && len(cmds) == 0 {
		err = newError(ErrRequest, nil, "ERR request cannot be forwarded: the block is empty")
	}
	if err != nil {
		p.refuse(c, err)
		return c
	}
	c.block, c.want = true, len(cmds)
	l.enqueue(c, nil, cmds)
	return c
}

// refuse fails a Call that was not queued.
func (p *Pool) refuse(c *Call, err *Error) {
	p.errors.Add(1)
	c.fail(err)
}

// route finds the link for a request.
func (p *Pool) route(req Request) (*link, *Error) {
	if req.Proto != 2 && req.Proto != 3 {
		return nil, newError(ErrRequest, nil, "ERR request cannot be forwarded: unknown protocol version ", strconv.Itoa(req.Proto))
	}
	if req.DB < 0 || req.DB >= p.opt.Databases {
		return nil, newError(ErrRequest, nil, "ERR DB index is out of range")
	}
	ln := p.lanes[req.Proto-2][req.DB].Load()
	if ln == nil {
		if ln = p.makeLane(req.DB, req.Proto); ln == nil {
			return nil, p.errClosed
		}
	}
	if req.Sticky != 0 {
		return ln.links[req.Sticky%uint64(len(ln.links))], nil
	}
	best := ln.links[0]
	for _, l := range ln.links[1:] {
		if l.unanswered.Load() < best.unanswered.Load() {
			best = l
		}
	}
	return best, nil
}

func (p *Pool) makeLane(db, proto int) *lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	at := &p.lanes[proto-2][db]
	if ln := at.Load(); ln != nil {
		return ln
	}
	ln := &lane{links: make([]*link, p.opt.Conns)}
	for i := range ln.links {
		l := newLink(p, db, proto)
		ln.links[i] = l
		p.running.Go(l.run)
	}
	at.Store(ln)
	return ln
}

func (p *Pool) eachLink(f func(*link)) {
	for i := range p.lanes {
		for db := range p.lanes[i] {
			if ln := p.lanes[i][db].Load(); ln != nil {
				for _, l := range ln.links {
					f(l)
				}
			}
		}
	}
}

// watch ends connections that stand still while a reply is owed. One ticker for all of them spares
// every command a deadline of its own.
func (p *Pool) watch() {
	tick := time.NewTicker(p.opt.ReplyTimeout / 4)
	defer tick.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case now := <-tick.C:
			p.eachLink(func(l *link) { l.checkStall(now) })
		}
	}
}

// Stats is what a pool has done so far and is doing now.
type Stats struct {
	Address     string // host:port, or the path of the socket
	Connected   int    // connections that are up, subscribers' included
	InFlight    int    // commands queued or written and not answered, a block counting as one
	Sent        uint64 // commands handed to the network, a block counting as one
	Errors      uint64 // commands that failed for want of the upstream; error replies do not count
	Connects    uint64 // connections made
	Reconnects  uint64 // of those, the ones that replaced a lost one
	ReplyBytes  int64  // see Options.ReplyBytes
	Unreachable string // why nothing can be sent; empty while the upstream is up
}

// Snapshot returns the counters. They are read one by one, so they may not add up to the last one.
func (p *Pool) Snapshot() Stats {
	s := Stats{
		Address:    p.target.Address,
		Connected:  int(p.connected.Load()),
		Sent:       p.sent.Load(),
		Errors:     p.errors.Load(),
		Connects:   p.connects.Load(),
		Reconnects: p.reconnects.Load(),
		ReplyBytes: p.held.Load(),
	}
	p.eachLink(func(l *link) { s.InFlight += int(l.unanswered.Load()) })
	if down := p.gate.down.Load(); down != nil {
		s.Unreachable = down.Error()
	}
	return s
}
