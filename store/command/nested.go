package command

import "time"

// Exec runs a command within the transaction that c.Tx is in already: for EXEC,
// scripts and plugins. It is a savepoint: when the command fails, it undoes
// itself only. Keys the transaction does not hold are reached for; when that
// fails, or the command is too long for a short transaction (Tx.Clash), the caller
// must give up at once, without a reply.
func (e *Engine) Exec(c *Call) {
	c.E = e
	if !e.passes(c) && !e.admit(c) {
		return
	}
	spec, tx := c.Spec, c.Tx
	mark := c.Reply.Mark()
	if spec.pure() {
		e.handleNested(c, mark)
	} else {
		sp := tx.Savepoint()
		e.handleNested(c, mark)
		if c.undo || tx.Clash() {
			tx.RollbackTo(sp)
		} else {
			tx.Release(sp)
		}
	}
	if !tx.Clash() {
		e.monitor(c, true)
	}
}

// isPlain tells whether the command is quick and has one key, its first argument: as
// most are that scripts call. One that takes any number of keys may have one.
func (s *Spec) isPlain() bool {
	if s.Access != ByKeys || s.Outside || s.module != "" || s.Extra != nil || len(s.Keys) != 1 || s.Flags&SkipMonitor != 0 {
		return false
	}
	k := &s.Keys[0]
	return k.Begin == 1 && (k.Last == 0 || k.Last == -1) && !k.Count && k.Keyword == "" && k.Flags&KeyNotKey == 0
}

// passes tells, in few steps, that admit would let a plain command of a script pass
// and do nothing: the transaction has its key, and nobody has anything against it.
func (e *Engine) passes(c *Call) bool {
	spec, s := c.Spec, c.S
	if !spec.plain || !spec.single && len(c.Args) != 2 || c.From != FromScript || s.Guard != nil || e.Owns != nil {
		return false
	}
	if spec.Flags&(Write|MayReplicate) != 0 && s.Denied != "" || spec.Flags&DenyOOM != 0 && !s.AllowOOM {
		return false
	}
	limit := e.MaxWeight.Load()
	return c.Tx.Reached(s.DB, c.Args[1]) && (limit <= 0 || c.Tx.Weight() <= limit)
}

// admit tells whether a command may run in the transaction that it is in. Otherwise
// it was answered, or the transaction must run again.
func (e *Engine) admit(c *Call) bool {
	spec, tx := c.Spec, c.Tx
	if c.S.Guard != nil {
		if msg := c.S.Guard(c); msg != "" {
			e.Reject(c, msg)
			return false
		}
	}
	if c.From != FromExec && (len(spec.Keys) != 0 || spec.Extra != nil) {
		if e.Owns != nil && !e.ownsAll(c) {
			e.Reject(c, ErrCrossOwner)
			return false
		}
		if !e.reach(c) {
			return false
		}
	}
	if (spec.Access == Alone || spec.Outside) && tx.RequireAll() != nil {
		return false
	}
	if tx.Short() && !spec.Quick() {
		tx.Promote()
		return false
	}
	if limit := e.MaxWeight.Load(); limit > 0 && tx.Weight() > limit {
		e.Reject(c, ErrTxTooLarge)
		return false
	}
	return !e.refused(c)
}

// pure tells whether the command cannot change anything, and needs no savepoint.
func (s *Spec) pure() bool { return s.Flags&ReadOnly != 0 && s.Access == ByKeys && s.module == "" }

// ownsAll tells whether all keys of a command are ours. A transaction here must
// not make phantoms of keys that live upstream.
func (e *Engine) ownsAll(c *Call) bool {
	ours := true
	c.EachKey(func(db int, name []byte) {
		ours = ours && e.Owns(db, name)
	})
	return ours
}

func (e *Engine) reach(c *Call) bool {
	if c.Spec.single {
		return c.Tx.Reach(c.S.DB, c.Args[1]) == nil
	}
	if c.Spec.Extra == nil {
		for _, p := range c.positions() {
			if c.Tx.Reach(c.S.DB, c.Args[p.Index]) != nil {
				return false
			}
		}
		return true
	}
	held := true
	c.EachKey(func(db int, name []byte) {
		held = held && c.Tx.Reach(db, name) == nil
	})
	return held
}

// quickly is how long no quick command takes, in ns. Whoever wants to hear of
// shorter ones has every command measured.
const quickly = int64(time.Millisecond)

// handleNested calls the handler of a command in a transaction of several. Under
// latches, where all commands are quick, one call is measured for many.
func (e *Engine) handleNested(c *Call, mark int) {
	spec, inner := c.Spec, &c.S.inner
	at, slow := inner.find(spec), e.SlowAfter.Load()
	if !inner.accounts[at].due() && c.Tx.Short() && (slow < 0 || slow >= quickly) {
		e.handleMetered(c, mark)
		inner.accounts[at].estimated()
	} else {
		stamp := c.S.stamp
		c.S.stamp = monotonic()
		e.handleMetered(c, mark)
		took := monotonic() - c.S.stamp
		c.S.stamp = stamp
		inner.accounts[at].measured(took)
		if slow >= 0 && took >= slow && spec.Flags&SkipSlowlog == 0 {
			e.Slow(c, took)
		}
		if took >= quickly {
			c.Tx.Check() // a loop of such commands may have gone on for long
		}
	}
	if c.failed != "" && !c.Tx.Clash() {
		inner.accounts[at].failed++
		if !c.told {
			e.innerFailed(c, c.failed)
		}
	}
}

// handleMetered is handle for a command whose work is charged to who calls it. One
// that was given up is undone; its answer is for nobody.
func (e *Engine) handleMetered(c *Call, mark int) {
	e.handle(c, mark)
	if c.Tx.Spent() {
		c.Reply.Rewind(mark)
		c.Err(ErrCancelled)
	}
}

// innerFailed is failed for a command in a transaction, which may be undone and
// run again: then it was not told.
func (e *Engine) innerFailed(c *Call, msg string) {
	if e.OnError == nil {
		return
	}
	if inner := &c.S.inner; len(inner.errors) < maxErrors {
		inner.open = true
		inner.errors = append(inner.errors, msg)
	} else {
		e.OnError(msg)
	}
}

// settle counts what the commands of a transaction have done, when it has ended.
func (e *Engine) settle(s *Session) {
	for _, msg := range s.inner.errors {
		e.OnError(msg)
	}
	s.inner.moveTo(&s.acc)
}
