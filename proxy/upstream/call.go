package upstream

import (
	"sync/atomic"
)

// The states of a Call. The reader moves it to done; the owner moves it between pending and
// waiting, and to abandoned when it is released before the reply.
const (
	callPending   uint32 = iota // nobody waits yet
	callWaiting                 // the owner is parked on Call.done
	callDone                    // frame or err is set; the owner alone touches the Call
	callAbandoned               // the owner is gone; whoever completes the Call recycles it
	callFree                    // in the pool
)

// keptFrame is the largest reply buffer, in bytes, that a recycled Call keeps.
const keptFrame = 16 << 10

// heldFrom is the size in bytes from which a reply counts toward Options.ReplyBytes. Smaller ones
// are bounded by the number of commands, and counting them would cost more than it tells.
const heldFrom = 1 << 10

// Call is one command, or one block of commands, on its way. It belongs to the goroutine that got
// it from Do and must be released exactly once, answered or not.
type Call struct {
	pool  *Pool
	state atomic.Uint32
	done  chan struct{} // one token when state went from waiting to done

	point int    // unless this many bytes of its batch were written, nothing of it was executed
	want  int    // reply frames still missing
	frame []byte // the reply frames, one after the other
	ends  []int  // of a block: where each frame ends in frame
	block bool
	held  int64 // bytes counted toward Options.ReplyBytes
	err   error
}

// Wait returns the bytes of the reply, an error reply included; of a block the last command's. They
// are valid until Release and must not be changed. If cancel is closed first (nil: never) it
// returns ErrCanceled, and Wait may be called again; the command is not recalled. Any other error is an
// [*Error] and final.
func (c *Call) Wait(cancel <-chan struct{}) ([]byte, error) {
	if c.state.CompareAndSwap(callPending, callWaiting) {
		if cancel == nil {
			<-c.done
		} else {
			select {
			case <-c.done:
			case <-cancel:
				if c.state.CompareAndSwap(callWaiting, callPending) {
					return nil, ErrCanceled
				}
				<-c.done // the reply came at the same moment, its token is under way
			}
		}
	}
	if c.err != nil {
		return nil, c.err
	}
	if c.block {
		return c.Frame(len(c.ends) - 1), nil
	}
	return c.frame, nil
}

// Ready says that Wait will not block.
func (c *Call) Ready() bool { return c.state.Load() == callDone }

// Frames is the number of replies of an answered Call: 1, or the number of commands of a block.
func (c *Call) Frames() int {
	if c.block {
		return len(c.ends)
	}
	return 1
}

// Frame is the i-th reply of an answered Call, as the bytes that Wait returns. It may only be
// called after a Wait without an error.
func (c *Call) Frame(i int) []byte {
	if !c.block {
		return c.frame
	}
	start := 0
	if i > 0 {
		start = c.ends[i-1]
	}
	return c.frame[start:c.ends[i]]
}

// Release gives the Call back; neither it nor a frame may be touched afterwards. Before the reply
// it abandons the Call: the command takes its course, and the reply is dropped. It panics if the
// Call is found to be released already.
func (c *Call) Release() {
	if c.state.CompareAndSwap(callPending, callAbandoned) {
		return
	}
	if state := c.state.Load(); state != callDone {
		panic("upstream: Call released twice or while Wait runs")
	}
	c.recycle()
}

func (p *Pool) newCall() *Call {
	c := p.calls.Get().(*Call)
	c.want = 1
	c.state.Store(callPending)
	return c
}

func (c *Call) recycle() {
	if c.held > 0 {
		c.pool.held.Add(-c.held)
		c.held = 0
	}
	if cap(c.frame) > keptFrame {
		c.frame = nil
	}
	c.frame, c.ends = c.frame[:0], c.ends[:0]
	c.block, c.err, c.point = false, nil, 0
	c.state.Store(callFree)
	c.pool.calls.Put(c)
}

// answer takes the next reply frame, which it copies, and says whether it was the last one. Only
// the reader that has the Call at the head of its queue calls it.
func (c *Call) answer(frame []byte) bool {
	c.want--
	if c.err == nil && c.state.Load() != callAbandoned {
		c.keep(frame)
	}
	return c.want == 0
}

func (c *Call) keep(frame []byte) {
	if n := int64(len(frame)); n >= heldFrom {
		c.held += n
		if c.pool.held.Add(n) > c.pool.opt.ReplyBytes {
			c.pool.held.Add(-c.held)
			c.held, c.frame = 0, nil
			c.err = c.pool.errDropped
			return
		}
	}
	c.frame = append(c.frame, frame...)
	if c.block {
		c.ends = append(c.ends, len(c.frame))
	}
}

// complete wakes the owner, or recycles the Call if there is none any more. The Call must not be
// touched afterwards.
func (c *Call) complete() {
	switch c.state.Swap(callDone) {
	case callWaiting:
		c.done <- struct{}{}
	case callAbandoned:
		c.recycle()
	}
}

func (c *Call) fail(err error) {
	c.err = err
	c.complete()
}
