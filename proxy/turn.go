package proxy

import (
	"errors"
	"runtime/debug"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy/netloop"
)

// A client is served in turns. With a goroutine of its own it takes one after the
// other, and reading waits; on an event loop (proxy/netloop) it is given one when
// there is something to read. All else is the same: who has to wait in a turn says
// so by leaveLoop.

// maxTurn is how many commands one turn may run while others wait for theirs.
const maxTurn = 1024

// serve takes turns until the connection ends, in a goroutine of the client's
// own.
func (c *client) serve() {
	for {
		switch c.Turn() {
		case netloop.Answered:
			if c.Answer() != netloop.Ended {
				continue
			}
		case netloop.Ended:
		default:
			continue
		}
		c.close()
		return
	}
}

// Turn implements netloop.Handler: it reads once, if there is no whole command
// left, and executes until there is none.
func (c *client) Turn() (next netloop.Verdict) {
	defer c.survive(&next)
	if c.loop != nil && !c.draining.Load() && !c.loop.Readable() && !c.r.Buffered() {
		return netloop.Idle
	}
	for n := 0; ; n++ {
		if !c.midBatch && c.draining.Load() {
			return netloop.Ended
		}
		args, frame, err := c.r.Next()
		if err != nil {
			if errors.Is(err, netloop.ErrAgain) {
				return netloop.Idle
			}
			c.readFailed(err)
			return netloop.Ended
		}
		if !c.midBatch {
			c.beginBatch()
			c.midBatch = true
			c.touched = 0
		}
		if c.touched--; c.touched < 0 {
			c.touched = c.touchAhead(args)
		}
		c.execute(args, frame)
		if c.quitting {
			c.flush()
			return netloop.Ended
		}
		if !c.r.Buffered() {
			c.s.engine.EndRun(&c.call) // the others' turns come before the replies leave
			c.midBatch = false
			return netloop.Answered
		}
		yield := c.loop != nil && n >= maxTurn
		if yield || c.w.Len() >= flushAt || len(c.forwards) >= maxForwards {
			c.lastUsed.Store(c.s.seconds())
			if c.flush() != nil {
				return netloop.Ended
			}
			c.sess.BeginBatch()
			if yield {
				return netloop.Again
			}
		}
	}
}

// Answer implements netloop.Handler: it ends a batch.
func (c *client) Answer() (next netloop.Verdict) {
	defer c.survive(&next)
	if c.endBatch() != nil {
		return netloop.Ended
	}
	return netloop.Idle
}

// End implements netloop.Handler.
func (c *client) End() {
	c.close()
	c.s.serving.Done()
}

// leaveLoop is called before the goroutine that serves the client waits for
// anything: if it runs an event loop, another goroutine does from now on.
func (c *client) leaveLoop() {
	if c.loop != nil {
		c.loop.Leave()
	}
}

// survive ends this client alone after a panic outside of a handler, such as one
// in the search for a command's keys. With keys or latches held nobody could let
// them go: then the process had better end.
func (c *client) survive(next *netloop.Verdict) {
	p := recover()
	if p == nil {
		return
	}
	if c.sess.Tx.Holds() {
		panic(p)
	}
	c.sess.Tx.Rollback()
	c.s.log.Error("panic outside of a command; its client was closed", "client", c.id, "panic", p, "stack", string(debug.Stack()))
	*next = netloop.Ended
}

func (c *client) beginBatch() {
	c.busy.Store(true)
	c.s.limits(c)
	c.wait.Busy = time.Duration(c.s.engine.Busy.Load())
	c.sess.BeginBatch()
}

func (c *client) endBatch() error {
	c.lastUsed.Store(c.s.seconds())
	c.snapshot(nil)
	err := c.flush()
	c.busy.Store(false)
	return err
}
