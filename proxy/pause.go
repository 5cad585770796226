package proxy

import (
	"math"
	"sync"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// pause is CLIENT PAUSE: until a time all commands of clients, or those that may
// write, are held back. Engine.Pausing says, cheaply, whether there is one.
//
// A command is held twice: before it is queued or run, where Redis holds it, and
// once more when it has its keys. Without the second, one that had passed the
// first a moment before CLIENT PAUSE could still change a key after its reply.
type pause struct {
	mu      sync.Mutex
	all     bool
	until   time.Time
	changed chan struct{} // closed when the above changes
}

// pauseClients begins a pause, or adds to the one there is: the later end and
// the stricter mode count, as in Redis.
func (s *Server) pauseClients(d time.Duration, all bool) {
	p := &s.pause
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	on := s.engine.Pausing.Load() && p.until.After(now)
	p.all = all || on && p.all
	if end := now.Add(d); !on || end.After(p.until) {
		p.until = end
	}
	p.wake()
	s.engine.Pausing.Store(p.until.After(now))
}

// resumeClients ends the pause.
func (s *Server) resumeClients() {
	p := &s.pause
	p.mu.Lock()
	defer p.mu.Unlock()
	s.engine.Pausing.Store(false)
	p.all, p.until = false, time.Time{}
	p.wake()
}

// endPauseInTime ends a pause whose time has passed, and tells whether one goes
// on.
func (s *Server) endPauseInTime() bool {
	if !s.engine.Pausing.Load() {
		return false
	}
	left, _ := s.pauseLeft(true)
	return left > 0
}

// wake lets those held look anew. Under mu.
func (p *pause) wake() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// wakePaused lets clients that are held see that they are to drain.
func (s *Server) wakePaused() {
	s.pause.mu.Lock()
	defer s.pause.mu.Unlock()
	s.pause.wake()
}

// pauseLeft says for how long a command is to wait, and what tells of a change.
func (s *Server) pauseLeft(writes bool) (time.Duration, <-chan struct{}) {
	p := &s.pause
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.engine.Pausing.Load() {
		return 0, nil
	}
	left := time.Until(p.until)
	if left <= 0 {
		s.engine.Pausing.Store(false)
		return 0, nil
	}
	if !p.all && !writes {
		return 0, nil
	}
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return left, p.changed
}

// mayWrite tells whether CLIENT PAUSE WRITE holds the command: it writes, or is
// told to others (PUBLISH), or runs what may (EVAL, unless the script says no-writes).
func mayWrite(spec *command.Spec, args [][]byte) bool {
	flags := spec.Flags
	if spec.Declared != nil {
		flags = spec.Declared(args)
	}
	return flags&(command.Write|command.MayReplicate) != 0
}

// hold keeps the client's goroutine for as long as the pause concerns it, and
// tells whether it had to wait. before is called when it must, first of all. An
// error says that the client has ended meanwhile.
func (c *client) hold(writes bool, args [][]byte, before func()) (held bool, err error) {
	if c.monitoring.Load() {
		return false, nil // Redis holds its replicas not, and monitors are such
	}
	left, changed := c.s.pauseLeft(writes)
	if left <= 0 {
		return false, nil
	}
	before()
	defer c.sess.BeginBatch()
	c.flush() // it holds nothing now
	defer c.rest(args, false)()
	c.s.store.Counter.BlockedClients.Add(1) // as Redis counts them
	defer c.s.store.Counter.BlockedClients.Add(-1)
	timer := time.NewTimer(left)
	defer timer.Stop()
	for left > 0 {
		timer.Reset(left)
		select {
		case <-changed:
		case <-timer.C:
		case <-c.done:
			return true, store.ErrCancelled
		}
		if c.draining.Load() {
			return true, store.ErrCancelled
		}
		left, changed = c.s.pauseLeft(writes)
	}
	return true, nil
}

// holdCommand holds a command that arrives. It returns false when the client has
// ended and the command must not run.
func (c *client) holdCommand(spec *command.Spec, args [][]byte) bool {
	writes := mayWrite(spec, args)
	if c.multi != nil && spec.Name == "exec" && spec.Parent() == nil {
		writes = c.multi.mayWrite()
	}
	_, err := c.hold(writes, args, func() { c.lastSpec = spec })
	return err == nil
}

func (m *multi) mayWrite() bool { return queueMayWrite(m.queue) }

func queueMayWrite(queue []queued) bool {
	for i := range queue {
		if mayWrite(queue[i].spec, queue[i].args) {
			return true
		}
	}
	return false
}

// holdRun implements command.Engine's Hold: it holds a command that has its keys
// already, and gives them back before it waits.
func (s *Server) holdRun(c *command.Call) (bool, error) {
	cl, ok := c.S.Client.(*client)
	if !ok || c.From != command.FromClient {
		return false, nil
	}
	return cl.hold(mayWrite(c.Spec, c.Args), c.Args, c.Tx.Rollback)
}

func clientPause(c *command.Call) {
	all := true
	switch {
	case len(c.Args) > 4:
		c.Err(command.UnknownSubcommand(c.Spec, c.Args[1]))
		return
	case len(c.Args) == 3 || c.Is(3, "all"):
	case c.Is(3, "write"):
		all = false
	default:
		c.Err("ERR CLIENT PAUSE mode must be WRITE or ALL")
		return
	}
	ms, ok := command.ParseInt(c.Args[2])
	s := asServer(c)
	switch {
	case !ok:
		c.Err("ERR timeout is not an integer or out of range")
		return
	case ms < 0:
		c.Err("ERR timeout is negative")
		return
	case ms > math.MaxInt64-s.clock.NowMilli():
		c.Err("ERR timeout is out of range")
		return
	}
	s.pauseClients(time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond)))*time.Millisecond, all)
	if c.From == command.FromClient && ms > 0 {
		// Whoever was let through before has ended once the gate was closed.
		// Within EXEC it is closed already: the Spec says Outside.
		c.Tx.Begin()
		if err := c.Tx.AcquireAll(c.S.Wait); err != nil {
			c.Err(command.WaitError(err))
			return
		}
		c.Tx.Rollback()
	}
	c.OK()
}

func clientUnpause(c *command.Call) {
	asServer(c).resumeClients()
	c.OK()
}
