package proxy

import (
	"github.com/latchkey-proxy/latchkey/store/command"
)

// multi is an open MULTI: the commands queued so far.
type multi struct {
	queue   []queued
	spoiled bool // a command was refused: EXEC will discard
	bytes   int
}

// queued is a command that waits for EXEC, with bytes of its own.
type queued struct {
	spec *command.Spec
	args [][]byte

	release  func() // of Spec.Queued, or nil
	prepared any    // of Call, from before the keys were acquired
	lengthy  bool
}

// call is the command as part of the client's transaction.
func (q *queued) call(c *client) command.Call {
	return command.Call{
		E: c.s.engine, S: &c.sess, Spec: q.spec, Args: q.args, Tx: c.sess.Tx, Reply: &c.w, From: command.FromExec,
		Prepared: q.prepared, Lengthy: q.lengthy,
	}
}

// transactionCommands are the Specs of this family, made anew for each server.
func transactionCommands() []*command.Spec {
	return []*command.Spec{
		{
			Name: "multi", Arity: 1, Access: command.Free, Handler: multiCommand,
			Flags:      command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy,
			Categories: command.CatTransaction, Group: "transactions", Since: "1.2.0", Complexity: "O(1)",
			Summary: "Begins a transaction: the commands that follow are queued until EXEC.",
		},
		{
			Name: "exec", Arity: 1, Access: command.Free, Handler: exec,
			Flags:      command.NoScript | command.Loading | command.Stale | command.SkipSlowlog,
			Categories: command.CatTransaction, Group: "transactions", Since: "1.2.0",
			Complexity: "Depends on the commands of the transaction",
			Summary:    "Runs the queued commands as one transaction.",
		},
		{
			Name: "discard", Arity: 1, Access: command.Free, Handler: discard,
			Flags:      command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy,
			Categories: command.CatTransaction, Group: "transactions", Since: "2.0.0",
			Complexity: "O(N), when N is the number of queued commands",
			Summary:    "Forgets the queued commands and all watched keys.",
		},
		{
			Name: "watch", Arity: -2, Access: command.Free, Handler: watch,
			Flags:      command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy,
			Categories: command.CatTransaction, Group: "transactions", Since: "2.2.0", Complexity: "O(1) for every key.",
			Keys:    command.AllKeys(command.KeyRO),
			Summary: "Makes the next EXEC depend on these keys staying as they are.", Syntax: "key [key ...]",
		},
		{
			Name: "unwatch", Arity: 1, Access: command.Free, Handler: unwatch,
			Flags:      command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy,
			Categories: command.CatTransaction, Group: "transactions", Since: "2.2.0", Complexity: "O(1)",
			Summary: "Forgets all watched keys.",
		},
	}
}

func multiCommand(c *command.Call) {
	cl := asClient(c)
	if cl.multi != nil {
		c.Err("ERR MULTI calls can not be nested")
		return
	}
	cl.multi = &multi{}
	c.OK()
}

func discard(c *command.Call) {
	cl := asClient(c)
	if cl.multi == nil {
		c.Err("ERR DISCARD without MULTI")
		return
	}
	cl.leaveMulti()
	c.OK()
}

func (c *client) leaveMulti() {
	c.dropMulti()
	c.sess.InMulti = false
	c.s.store.Unwatch(&c.watcher)
}

// dropMulti forgets the queued commands.
func (c *client) dropMulti() {
	if c.multi != nil {
		c.growQuery(-c.multi.bytes)
		c.multi.release()
		c.multi = nil
	}
}

// release tells the commands that want to know that they are no longer queued.
func (m *multi) release() {
	for i := range m.queue {
		if release := m.queue[i].release; release != nil {
			release()
		}
	}
}

func watch(c *command.Call) {
	cl := asClient(c)
	if cl.multi != nil {
		c.Err("ERR WATCH inside MULTI is not allowed")
		return
	}
	if r := cl.s.router.Load(); r != nil && r.owner(cl, c) != ownerSelf {
		c.Err("ERR WATCH of keys that belong to the upstream is not supported: latchkey cannot see them change")
		return
	}
	for _, key := range c.Args[1:] {
		cl.s.store.Watch(&cl.watcher, c.DB(), key)
	}
	c.OK()
}

func unwatch(c *command.Call) {
	asClient(c).unwatch()
	c.OK()
}

func (c *client) unwatch() { c.s.store.Unwatch(&c.watcher) }

// queue keeps a command for EXEC. It was found to be right in name and arity.
func (c *client) queue(call *command.Call) {
	spec := call.Spec
	refuse := func(msg string) { c.refuse(spec, msg) }
	if spec.Flags&command.NoMulti != 0 {
		refuse("ERR Command not allowed inside a transaction")
		return
	}
	if spec.Upstream {
		if msg := foreignRefusal(spec, call.Args, true); msg != "" {
			refuse(msg)
			return
		}
	}
	size := queuedOverhead + bytesOf(call.Args) + len(call.Args)*argOverhead
	if limit := c.s.cfg.Memory("client-query-buffer-limit"); limit > 0 && int64(c.multi.bytes+size) > limit {
		refuse("ERR the queued commands of this transaction take more than client-query-buffer-limit")
		return
	}
	if c.growQuery(size) != nil {
		refuse("ERR the commands that clients have queued or half sent take more than client-query-memory-limit")
		return
	}
	c.multi.bytes += size
	q := newQueued(call)
	if spec.Queued != nil {
		q.release = spec.Queued(q.args)
	}
	c.multi.queue = append(c.multi.queue, q)
	c.w.Status("QUEUED")
}

// What a queued command costs beside the bytes of its arguments.
const (
	queuedOverhead = 160
	argOverhead    = 24
)

// newQueued copies a command out of the read buffer.
func newQueued(call *command.Call) queued {
	buf := make([]byte, 0, bytesOf(call.Args))
	q := queued{spec: call.Spec, args: make([][]byte, len(call.Args))}
	for i, a := range call.Args {
		at := len(buf)
		buf = append(buf, a...)
		q.args[i] = buf[at:len(buf):len(buf)]
	}
	return q
}

func exec(c *command.Call) {
	cl := asClient(c)
	m := cl.multi
	if m == nil {
		c.Err("ERR EXEC without MULTI")
		return
	}
	defer func() {
		cl.growQuery(-m.bytes)
		m.release()
		cl.leaveMulti()
	}()
	cl.multi = nil // while they run, the commands are no longer queued
	if m.spoiled {
		c.Err(command.ErrExecAbort)
		return
	}
	if r := cl.s.router.Load(); r != nil {
		switch r.ownerOfAll(cl, m.queue) {
		case ownerMixed:
			c.Err(command.ErrCrossOwner)
			return
		case ownerUpstream:
			r.forwardBlock(cl, c, m.queue)
			return
		}
	}
	cl.runQueued(c, m.queue)
}

// runQueued runs the commands of a transaction. As in Redis, one that fails
// does not undo the others.
func (c *client) runQueued(call *command.Call, queue []queued) {
	c.prepare(queue)
	tx := c.sess.Tx
	db := c.sess.DB
	for {
		if err := c.acquireQueued(queue); err != nil {
			call.Err(command.WaitError(err))
			return
		}
		if !c.s.engine.Pausing.Load() {
			break
		}
		held, err := c.hold(queueMayWrite(queue), call.Args, tx.Rollback)
		if err != nil {
			call.Err(command.WaitError(err))
			return
		}
		if !held {
			break
		}
	}
	for {
		if c.watcher.Dirty() || tx.WatchedExpired(&c.watcher) {
			tx.Rollback()
			c.w.NullArray()
			return
		}
		mark := c.w.Mark()
		c.w.Array(len(queue))
		c.sess.InMulti, c.sess.AllowOOM = true, !c.s.store.OverLimit()
		for i := range queue {
			// The inner Call must outlive the loop's turn: slowlog keeps nothing of it.
			inner := queue[i].call(c)
			c.s.engine.Exec(&inner)
			if tx.Clash() {
				break
			}
			if c.tracking.on.Load() {
				c.tracking.remember(&inner)
			}
		}
		c.sess.InMulti, c.sess.AllowOOM = false, false
		if tx.Clash() {
			c.w.Rewind(mark)
			c.sess.DB = db
			c.tracking.forget()
			if err := c.sess.Again(); err != nil {
				call.Err(command.WaitError(err))
				return
			}
			continue
		}
		if err := tx.Commit(); err != nil {
			c.w.Rewind(mark)
			c.sess.DB = db
			c.s.log.Error("a transaction was undone", "err", err)
			call.Err(command.ErrMisconf)
		}
		return
	}
}

// prepare has the queued commands do what must be done before keys are acquired.
func (c *client) prepare(queue []queued) {
	for i := range queue {
		if q := &queue[i]; q.spec.Prepare != nil {
			inner := q.call(c)
			q.spec.Prepare(&inner)
			q.prepared, q.lengthy = inner.Prepared, inner.Lengthy
		}
	}
}

// acquireQueued takes the keys of all queued commands and of WATCH, in the way
// that suits the weightiest of them.
func (c *client) acquireQueued(queue []queued) error {
	tx := c.sess.Tx
	quick, alone := c.watcher.Empty() && len(queue) <= quickCommands, false
	for i := range queue {
		spec := queue[i].spec
		alone = alone || spec.Access == command.Alone || spec.Outside
		quick = quick && spec.Quick() && !queue[i].lengthy
	}
	tx.Begin()
	if alone {
		return tx.AcquireAll(c.sess.Wait)
	}
	keys := 0
	// SELECT among them changes which database the later ones mean.
	s := command.Session{DB: c.sess.DB}
	for i := range queue {
		q := &queue[i]
		inner := command.Call{E: c.s.engine, S: &s, Spec: q.spec, Args: q.args, Tx: tx}
		inner.EachKey(func(db int, name []byte) {
			tx.Add(db, name)
			keys++
		})
		if q.spec.Name == "select" && q.spec.Parent() == nil {
			if db, ok := command.ParseInt(q.args[1]); ok && db >= 0 && db < int64(c.s.store.Databases()) {
				s.DB = int(db)
			}
		}
	}
	if keys == 0 && quick {
		tx.AcquireNone()
		return nil
	}
	if quick && keys <= quickKeys && tx.AcquireFast() {
		return nil
	}
	tx.AddWatched(&c.watcher)
	return tx.Acquire(c.sess.Wait)
}

// A transaction of up to this many quick commands on up to this many keys runs
// under their latches.
const (
	quickKeys     = 8
	quickCommands = 64
)
