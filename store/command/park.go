package command

import (
	"errors"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
)

// Parking is what a command waits for that has called Park.
type Parking struct {
	// Keys are those to wait for, of the session's database and among those that
	// the command holds. The names live until the command is done.
	Keys [][]byte
	// Timeout ends the wait; 0: never.
	Timeout time.Duration
	// Retry runs the command again, in a transaction that holds the same keys:
	// when one of Keys was changed, deleted or has expired, with nil, and for the
	// last time with store.ErrTimeout when the time is up. It answers, or calls
	// Park again, which keeps the command's place before those who came later.
	Retry func(c *Call, why error)
	// Abandoned ends the wait with -UNBLOCKED when it is closed; nil: never.
	Abandoned <-chan struct{}
	// Done, if it is set, is called when the wait has ended, however.
	Done func()
}

// MayPark tells whether the command may wait: it came from a client, outside of
// MULTI and of any script.
func (c *Call) MayPark() bool { return c.From == FromClient && !c.S.InMulti }

// Park has the command wait when its handler returns. What it has changed is
// undone then, and what it has answered is dropped.
func (c *Call) Park(p *Parking) { c.parked = p }

// errParkFailed unwinds a try that has answered with an error.
var errParkFailed = errors.New("command: the command has failed")

// wait parks the command, which has asked for it, until it is through.
func (e *Engine) wait(c *Call, mark int) {
	p := c.parked
	if p.Done != nil {
		defer p.Done()
	}
	var w store.Wait
	if c.S.Wait != nil {
		w = *c.S.Wait
	}
	w.Timeout, w.Abandoned = p.Timeout, p.Abandoned
	c.Reply.Rewind(mark)
	try := func(why error) {
		mark = c.Reply.Mark()
		c.parked, c.failed, c.undo, c.told = nil, "", false, false
		e.retry(c, mark, p.Retry, why)
	}
	err := c.Tx.Park(c.S.DB, p.Keys, &w, func() (store.Outcome, error) {
		try(nil)
		switch {
		case c.Tx.Clash():
			c.Reply.Rewind(mark)
			return store.NotYet, nil
		case c.undo:
			return store.Done, errParkFailed
		case c.parked != nil:
			c.Reply.Rewind(mark)
			return store.NotYet, nil
		}
		e.monitor(c, true)
		return store.Done, nil
	})
	switch {
	case err == nil:
	case errors.Is(err, errParkFailed):
		e.monitor(c, false)
	case errors.Is(err, store.ErrTimeout):
		e.timedOut(c, try, &mark)
	case errors.Is(err, store.ErrLogFailed):
		e.misconf(c, mark, err)
	default:
		e.waitFailed(c, err)
	}
}

// timedOut gives the command its last run.
func (e *Engine) timedOut(c *Call, try func(error), mark *int) {
	if !e.begin(c) {
		return
	}
	try(store.ErrTimeout)
	for c.Tx.Clash() {
		c.Reply.Rewind(*mark)
		if err := c.S.Again(); err != nil {
			e.waitFailed(c, err)
			return
		}
		try(store.ErrTimeout)
	}
	if c.parked != nil {
		c.Reply.Rewind(*mark)
		c.parked = nil
		c.Tx.Rollback()
		c.Reply.Null()
		return
	}
	e.end(c, *mark)
}

// retry runs a command again, which was counted when it ran first.
func (e *Engine) retry(c *Call, mark int, run func(*Call, error), why error) {
	c.S.stamp = monotonic()
	e.guarded(c, mark, func() { run(c, why) })
	switch {
	case c.Tx.Clash():
		c.S.inner.forget()
	case c.failed != "":
		c.S.acc.accounts[c.S.acc.find(c.Spec)].failed++
		e.failed(c.failed)
	}
}
