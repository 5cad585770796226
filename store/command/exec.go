package command

import (
	"errors"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
)

// Engine runs commands on a store. Its fields are set before the first Run;
// the atomics may change at any time.
type Engine struct {
	Table *Table
	Store *store.Store
	Log   *slog.Logger
	// Owns tells whether a key is ours, when there is an upstream that others
	// may belong to; nil: all are. What scripts and plugins touch is asked for.
	Owns func(db int, name []byte) bool
	// Host is the server around the engine, for the handlers of its room.
	Host any

	// Busy is how long a script may hold a key before those who want it get
	// -BUSY, in ns (busy-reply-threshold).
	Busy atomic.Int64
	// SlowAfter is the duration in ns from which Slow is told of a command;
	// negative: never.
	SlowAfter atomic.Int64
	Slow      func(c *Call, nanos int64)
	// Monitors counts the clients in MONITOR; Monitor is told of each command
	// that has run while there are any. inTx says that the command's
	// transaction is open still and that the line must leave with it.
	Monitors atomic.Int32
	Monitor  func(c *Call, inTx bool)
	// Pausing is set while CLIENT PAUSE lasts. Hold is then asked before a
	// client's command runs that has its keys: it returns false if the pause
	// does not concern it; otherwise it rolls c.Tx back and returns when the
	// command may try again. An error ends the command.
	Pausing atomic.Bool
	Hold    func(c *Call) (held bool, err error)
	// ClientGone, when it is set, is told the id of every client whose connection
	// has ended, once nothing runs for it any more.
	ClientGone func(id int64)
	// OnError is told the text of every error reply (INFO errorstats).
	OnError func(msg string)
	// MaxWeight is how many bytes a transaction of several commands may hold until
	// it ends (transaction-max-memory); 0: no limit.
	MaxWeight atomic.Int64
	// MaxValue is the largest string a command may build (proto-max-bulk-len).
	MaxValue atomic.Int64
}

var epoch = time.Now()

// monotonic is the cheapest clock there is, in ns.
func monotonic() int64 { return int64(time.Since(epoch)) }

// fewKeys is the number of keys up to which a quick command takes their latches
// together; with more it locks them.
const fewKeys = 8

// Run runs a command of a client in a transaction of its own. The command's
// Spec is known, its arity right, and the client may run it.
func (e *Engine) Run(c *Call) {
	c.E, c.Tx = e, c.S.Tx
	if c.S.run.spec != c.Spec {
		c.S.Measure()
	}
	if c.Spec.Prepare != nil {
		c.Spec.Prepare(c)
	}
	e.run(c)
	if c.S.inner.open {
		e.settle(c.S)
	}
}

// Again begins a transaction anew that must run again (store.Tx.Again); what was
// counted for commands in it is forgotten.
func (s *Session) Again() error {
	s.inner.forget()
	return s.Tx.Again(s.Wait)
}

func (e *Engine) run(c *Call) {
	spec, tx := c.Spec, c.Tx
	if spec.Access == Free {
		e.exec(c, c.Reply.Mark())
		if c.undo {
			tx.Rollback() // a transaction of the handler's own, if it did not end it
		}
		e.monitor(c, false)
		return
	}
	if !e.begin(c) {
		return
	}
	// A wait for keys may have sent off the replies before this one, so the
	// mark is taken anew after each.
	mark := c.Reply.Mark()
	e.exec(c, mark)
	for tx.Clash() {
		c.Reply.Rewind(mark)
		c.failed, c.undo, c.told, c.parked = "", false, false, nil
		if err := c.S.Again(); err != nil {
			e.waitFailed(c, err)
			return
		}
		if e.Pausing.Load() && !e.pass(c) {
			return
		}
		mark = c.Reply.Mark()
		e.exec(c, mark)
	}
	if c.parked != nil {
		e.wait(c, mark)
		return
	}
	e.end(c, mark)
}

// end ends the transaction of a command that has run.
func (e *Engine) end(c *Call, mark int) {
	if c.undo {
		c.Tx.Rollback()
		e.monitor(c, false)
		return
	}
	e.monitor(c, true)
	if err := c.Tx.Commit(); err != nil {
		e.misconf(c, mark, err)
	}
}

func (e *Engine) misconf(c *Call, mark int, err error) {
	c.Reply.Rewind(mark)
	e.Log.Error("a write was undone", "command", c.Spec.FullName(), "err", err)
	c.Err(ErrMisconf)
}

// begin opens the transaction that the command asks for. Otherwise it has
// answered why not.
func (e *Engine) begin(c *Call) bool {
	return e.open(c) && (!e.Pausing.Load() || e.pass(c))
}

// pass lets a command that has its transaction by, or keeps it for as long as
// CLIENT PAUSE concerns it.
func (e *Engine) pass(c *Call) bool {
	c.S.Waits()
	for {
		held, err := e.Hold(c)
		switch {
		case err != nil:
			e.waitFailed(c, err)
			return false
		case !held:
			return true
		case !e.open(c):
			return false
		}
	}
}

// open acquires what the command asks for.
func (e *Engine) open(c *Call) bool {
	spec, tx := c.Spec, c.Tx
	if spec.single && spec.Access <= Bounded && !c.Lengthy {
		return tx.BeginOne(c.S.DB, c.Args[1]) || e.lock(c)
	}
	if spec.counted && spec.Access <= Bounded && !c.Lengthy {
		if name, ok := c.onlyCounted(); ok {
			return tx.BeginOne(c.S.DB, name) || e.lock(c)
		}
	}
	tx.Begin()
	switch {
	case spec.Access == Visits:
		tx.AcquireNone()
	case spec.Access == Alone:
		if err := tx.AcquireAll(c.S.Wait); err != nil {
			e.waitFailed(c, err)
			return false
		}
	case spec.single:
		tx.Add(c.S.DB, c.Args[1])
		return e.acquire(c, 1)
	default:
		keys := c.stage()
		if keys == 0 && spec.Access <= Bounded && !c.Lengthy {
			tx.AcquireNone() // of ByKeys the handler will say what is wrong
		} else {
			return e.acquire(c, keys)
		}
	}
	return true
}

// monitor tells those in MONITOR of a command that has run, whether it failed or
// not. One with SkipMonitor runs other commands (EVAL), and was told before
// them, as in Redis; if it was undone, what was told has gone with it.
func (e *Engine) monitor(c *Call, inTx bool) {
	if e.Monitors.Load() != 0 && c.ran && c.Spec.Flags&Admin == 0 && (c.Spec.Flags&SkipMonitor == 0 || c.undo) {
		e.Monitor(c, inTx)
	}
}

// acquire takes the staged keys in the way the command asks for.
func (e *Engine) acquire(c *Call, keys int) bool {
	if c.Spec.Access <= Bounded && keys <= fewKeys && !c.Lengthy && c.Tx.AcquireFast() {
		return true
	}
	return e.lock(c)
}

// lock takes the staged keys, waiting for each.
func (e *Engine) lock(c *Call) bool {
	c.S.Waits()
	if err := c.Tx.Acquire(c.S.Wait); err != nil {
		e.waitFailed(c, err)
		return false
	}
	return true
}

func (e *Engine) waitFailed(c *Call, err error) {
	c.Spec.Usage().Rejected.Add(1)
	e.failed(WaitError(err))
	c.Err(WaitError(err))
}

// WaitError is the error reply for a wait that ended without the keys.
func WaitError(err error) string {
	var slow *SlowError
	switch {
	case errors.As(err, &slow):
		return slow.reply
	case errors.Is(err, store.ErrBusy):
		return ErrBusyScript
	case errors.Is(err, store.ErrUnblocked):
		return ErrUnblocked
	case errors.Is(err, store.ErrCancelled):
		return ErrCancelled
	}
	return "ERR " + err.Error()
}

// exec runs a client's own command, which has its transaction. One that must run
// again (Tx.Clash) has not been counted yet.
func (e *Engine) exec(c *Call, mark int) {
	if e.refused(c) {
		return
	}
	e.handle(c, mark)
	if c.Tx.Clash() {
		return
	}
	e.count(c, mark)
}

// refused tells whether the command may not run now; then it was answered.
func (e *Engine) refused(c *Call) bool {
	spec := c.Spec
	switch {
	case spec.Flags&(Write|MayReplicate) != 0 && c.S.Denied != "":
		e.Reject(c, c.S.Denied)
		return true
	case spec.Flags&DenyOOM != 0 && !c.S.AllowOOM && e.Store.OverLimit():
		e.Reject(c, ErrOOM)
		return true
	case spec.Flags&SkipMonitor != 0 && e.Monitors.Load() != 0:
		e.Monitor(c, spec.Access != Free || c.From != FromClient)
	}
	return false
}

// Reject answers an error for a command that does not run, and counts it. Who
// finds that there is no such command has no Spec.
func (e *Engine) Reject(c *Call, msg string) {
	if c.From == FromClient {
		c.Spec.Usage().Rejected.Add(1)
		e.failed(msg)
	} else {
		if c.Spec != nil {
			c.S.inner.accounts[c.S.inner.find(c.Spec)].rejected++
		}
		e.innerFailed(c, msg)
	}
	c.Err(msg)
}

func (e *Engine) failed(msg string) {
	if e.OnError != nil {
		e.OnError(msg)
	}
}

// handle calls the handler. A panic in it is answered, logged once with its
// stack, and leaves nothing behind. So does a reply that has grown too large, which
// is how a Reply ends a handler that describes one.
func (e *Engine) handle(c *Call, mark int) {
	returned := false
	defer func() {
		if !returned { // to ask the runtime takes as long as a short handler
			e.recovered(c, mark, recover())
		}
	}()
	c.ran = true
	c.Spec.Handler(c)
	returned = true
}

// guarded is handle for a run that is not the handler's.
func (e *Engine) guarded(c *Call, mark int, run func()) {
	defer func() { e.recovered(c, mark, recover()) }()
	run()
}

// recovered answers for a command that has ended in the panic p; nil is none.
func (e *Engine) recovered(c *Call, mark int, p any) {
	if p == nil {
		return
	}
	if text, ok := TooLarge(p); ok {
		c.Reply.Rewind(min(mark, c.Reply.Mark()))
		c.Err(text)
		return
	}
	e.Log.Error("panic in a command", "command", c.Spec.FullName(), "panic", p, "stack", string(debug.Stack()))
	c.Reply.Rewind(min(mark, c.Reply.Mark())) // a wait may have sent off what was there
	c.Err(ErrInternal)
}

// TooLarge tells whether a panic is that of a Reply which has grown too large, and
// the text of the error reply for it. Whoever recovers panics around what describes
// a reply asks it.
func TooLarge(p any) (text string, ok bool) {
	r, ok := p.(interface{ ReplyTooLarge() string })
	if !ok {
		return "", false
	}
	return r.ReplyTooLarge(), true
}
