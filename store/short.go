package store

// A short transaction holds latches, which everybody waits for whose keys hash to
// the same shards. So what runs in one is bounded: plain commands that are done
// quickly, and scripts and plugin commands as long as their allowance lasts. What
// turns out to be longer, or wants a key whose latch is not held, is promoted:
// undone wholly and run again with its keys locked. Nobody can tell, but for time.
// Who has changed nothing yet need not be undone: its latches become key locks where
// it stands (Lengthen).

// Allowance is what scripts and plugin commands of one short transaction may
// spend together, in ns as near as they can tell without a clock. It is some
// twenty times what taking and freeing a lock costs, and little beside what the
// operating system takes when it lets another thread run.
const Allowance = 20_000

// shorten makes tx a short transaction: its latches are held.
func (tx *Tx) shorten() {
	tx.mode, tx.allowance = short, Allowance
	if tx.s.allowance != nil {
		tx.allowance = tx.s.allowance()
	}
}

// Short tells whether the transaction runs under latches, and so must not wait
// nor run for long.
func (tx *Tx) Short() bool { return tx.mode == short }

// Allowance is how many ns may still be spent in a short transaction, 0 or less
// when it must be promoted.
func (tx *Tx) Allowance() int64 { return tx.allowance }

// Spend takes ns off the allowance of a short transaction. It may fall below 0:
// the next who asks is promoted.
func (tx *Tx) Spend(ns int64) { tx.allowance -= ns }

// Promote makes a short transaction run again with its keys locked. It returns
// ErrConflict, as Reach does: everything must be undone, and Again is to be
// called. In another transaction it is a broken invariant.
func (tx *Tx) Promote() error {
	if tx.mode != short {
		panic("store: Promote of a transaction that is not short")
	}
	if !tx.clash {
		tx.clash, tx.promoted = true, true
	}
	return ErrConflict
}

// Lengthen makes a short transaction a locked one where it stands, so that it may
// run for long: its keys, which nobody has locked, it locks, and then it lets the
// latches go. It waits for nothing. What was read through it stays true, and views
// stay alive. It returns false, and does nothing, when the transaction has changed
// something, which in a short one is done in place, or when somebody wants to be
// alone: it must then be promoted. In another transaction it is a broken
// invariant.
func (tx *Tx) Lengthen() bool {
	if tx.mode != short {
		panic("store: Lengthen of a transaction that is not short")
	}
	if tx.clash || len(tx.undo)|len(tx.journal)|len(tx.effects)|len(tx.events)|len(tx.beyond) != 0 {
		return false
	}
	generation, open := tx.s.gate.tryEnter()
	if !open {
		return false
	}
	if !mutantNoKeyLock {
		for _, k := range tx.keys {
			k.lock = k.sh.addLock(lockHash(k.hash, k.db), k.db, k.name, tx)
		}
	}
	tx.generation, tx.mode = generation, locked
	tx.start()
	tx.unlatch()
	tx.s.Counter.Lengthened.Add(1)
	return true
}

// Promoted tells whether the transaction must run again because it was promoted,
// which is not the fault of who runs in it.
func (tx *Tx) Promoted() bool { return tx.promoted }
