package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy/resp"
)

// wire is one connection whose handshake is done.
type wire struct {
	conn   net.Conn
	frames *resp.FrameReader
	moved  atomic.Uint64 // bytes read and written
	born   time.Time
	onLost func() // called once, after the connection is closed; may be nil

	once sync.Once
	lost atomic.Bool
	gone chan struct{} // closed when lost
	why  error         // set before lost
	pool *Pool
}

// Read counts the bytes on their way to the frame reader.
func (w *wire) Read(b []byte) (int, error) {
	n, err := w.conn.Read(b)
	w.moved.Add(uint64(n))
	return n, err
}

// send writes all of b and returns how many bytes the network took.
func (w *wire) send(b []byte) (int, error) {
	sent := 0
	for sent < len(b) {
		n, err := w.conn.Write(b[sent:min(sent+writeChunk, len(b))])
		sent += n
		w.moved.Add(uint64(n))
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// lose closes the connection; the first reason counts.
func (w *wire) lose(why error) {
	w.once.Do(func() {
		w.why = why
		w.lost.Store(true)
		w.conn.Close()
		w.pool.connected.Add(-1)
		close(w.gone)
		if w.onLost != nil {
			w.onLost()
		}
	})
}

func (w *wire) isLost() bool { return w.lost.Load() }

// reason is why the connection was lost; it must be.
func (w *wire) reason() error {
	<-w.gone
	return w.why
}

// open waits for its turn and makes a connection. While the upstream is down it fails at once.
func (p *Pool) open(db, proto int) (*wire, *Error) {
	select {
	case p.gate.turn <- struct{}{}:
	case <-p.ctx.Done():
		return nil, p.errClosed
	}
	defer func() { <-p.gate.turn }()
	if down := p.gate.down.Load(); down != nil {
		return nil, down
	}
	w, err := p.dial(db, proto)
	if err != nil && !err.only && p.ctx.Err() == nil {
		p.gate.fail(err)
	}
	return w, err
}

// dial connects and shakes hands. The caller has the gate's turn.
func (p *Pool) dial(db, proto int) (*wire, *Error) {
	ctx, cancel := context.WithTimeout(p.ctx, p.opt.DialTimeout)
	defer cancel()
	conn, err := p.opt.Dial(ctx, p.target.Network, p.target.Address)
	if err != nil {
		return nil, p.dialError(err)
	}
	// The hook's connection may know no deadlines; closing it ends every wait.
	hung := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		conn.Close()
		close(hung)
	})
	w, fail := p.greet(ctx, conn, db, proto)
	if !stop() {
		<-hung
		if fail == nil {
			fail = p.dialError(ctx.Err())
		}
	}
	if fail != nil {
		conn.Close()
		return nil, fail
	}
	w.born = time.Now()
	p.connected.Add(1)
	p.connects.Add(1)
	p.opt.Logger.Debug("upstream connected", "address", p.target.Address, "db", db, "protocol", proto)
	return w, nil
}

// dialError words a failure before the connection is usable.
func (p *Pool) dialError(err error) *Error {
	if p.ctx.Err() != nil {
		return p.errClosed
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return newError(ErrUnavailable, err, "UPSTREAMDOWN upstream ", p.target.Address, " is unreachable: no connection within ", p.opt.DialTimeout.String())
	}
	return unreachable(p.target.Address, err)
}

// greet does TLS, HELLO or AUTH, SELECT and PING, the commands in one write.
func (p *Pool) greet(ctx context.Context, conn net.Conn, db, proto int) (*wire, *Error) {
	fail := func(err error) (*wire, *Error) {
		if ctx.Err() != nil {
			err = ctx.Err() // it closed the connection
		}
		return nil, p.dialError(err)
	}
	if p.target.TLS {
		secured := tls.Client(conn, p.opt.TLS)
		if err := secured.HandshakeContext(ctx); err != nil {
			return fail(err)
		}
		conn = secured
	}
	w := &wire{conn: conn, pool: p, gone: make(chan struct{})}
	w.frames = resp.NewFrameReader(w, p.opt.MaxReply, nil)

	var out []byte
	var steps []string
	step := func(name string, args ...string) {
		steps = append(steps, name)
		out = AppendCommand(out, append([]string{name}, args...)...)
	}
	user, password := p.target.Username, p.target.Password
	switch {
	case proto == 3 && password == "":
		step("HELLO", "3")
	case proto == 3:
		if user == "" {
			user = "default"
		}
		step("HELLO", "3", "AUTH", user, password)
	case user != "":
		step("AUTH", user, password)
	case password != "":
		step("AUTH", password)
	}
	step("SELECT", strconv.Itoa(db))
	// For who looks at CLIENT LIST upstream; may fail.
	step("CLIENT", "SETNAME", "latchkey")
	// SELECT is answered while the data set is loading, PING is not.
	step("PING")
	if _, err := w.send(out); err != nil {
		return fail(err)
	}
	for _, name := range steps {
		frame, err := w.frames.Next()
		if err != nil {
			return fail(err)
		}
		if !frame.IsError() {
			continue
		}
		if bad := p.handshakeError(name, oneLine(string(frame.ErrorText()))); bad != nil {
			return nil, bad
		}
	}
	return w, nil
}

// handshakeError judges an error reply in the handshake; nil if it can be lived with.
func (p *Pool) handshakeError(step, line string) *Error {
	err := refused(p.target.Address, step, line)
	code, _, _ := strings.Cut(line, " ")
	switch step {
	case "CLIENT":
		return nil
	case "PING":
		// A user may lack the right to PING; what matters is what all commands would get.
		if code != "LOADING" && code != "NOAUTH" {
			return nil
		}
	case "HELLO":
		// An upstream that is too old for RESP3 still serves RESP2.
		err.only = code == "NOPROTO" || code == "ERR"
	case "SELECT":
		err.only = code == "ERR" || code == "NOPERM"
	}
	return err
}

// gate stands before all dialing: one at a time, none while the upstream is down but the prober's.
type gate struct {
	pool *Pool
	turn chan struct{} // holds one element while somebody dials
	down atomic.Pointer[Error]

	mu      sync.Mutex // guards what follows, and setting down
	fails   int        // in a row
	upSince time.Time
	up      chan struct{} // closed when down becomes nil
}

func (g *gate) init(p *Pool) {
	g.pool = p
	g.turn = make(chan struct{}, 1)
	g.upSince = time.Now()
	g.up = make(chan struct{})
	close(g.up)
}

// fail declares the upstream down, unless it is already, and starts the prober.
func (g *gate) fail(err *Error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down.Load() != nil {
		return
	}
	if time.Since(g.upSince) >= youngLoss {
		g.fails = 0
	}
	g.up = make(chan struct{})
	g.down.Store(err)
	g.pool.opt.Logger.Warn("upstream is down", "address", g.pool.target.Address, "error", err.Error())
	g.pool.running.Go(g.probe)
}

// probe dials, with pauses, until the upstream answers or the pool is closed. Its connection is
// then dropped: who needs one of its kind dials in turn.
func (g *gate) probe() {
	p := g.pool
	for {
		g.mu.Lock()
		pause := g.pause()
		g.fails++
		g.mu.Unlock()
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-p.ctx.Done():
			timer.Stop()
			return
		}
		select {
		case g.turn <- struct{}{}:
		case <-p.ctx.Done():
			return
		}
		w, err := p.dial(p.target.DB, 2)
		<-g.turn
		if err != nil && !err.only {
			if p.ctx.Err() != nil {
				return
			}
			g.down.Store(err)
			p.opt.Logger.Debug("upstream is still down", "address", p.target.Address, "error", err.Error())
			continue
		}
		if w != nil {
			w.lose(ErrClosed)
		}
		g.mu.Lock()
		g.down.Store(nil)
		g.upSince = time.Now()
		close(g.up)
		g.mu.Unlock()
		p.opt.Logger.Info("upstream is back", "address", p.target.Address)
		return
	}
}

// pause is how long to wait after the failures so far. The caller holds mu.
func (g *gate) pause() time.Duration {
	o := &g.pool.opt
	d := o.BackoffMin
	for i := 0; i < g.fails && d < o.BackoffMax; i++ {
		d *= 2
	}
	d = min(d, o.BackoffMax)
	return time.Duration(float64(d) * (0.5 + 0.5*o.Jitter()))
}

// whenUp is closed as soon as the upstream is not down.
func (g *gate) whenUp() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.up
}
