package store

// Savepoint is a place in a transaction that it can be undone to.
type Savepoint struct {
	undo, journal, effects, events, beyond int
	epoch                                  uint32
	weight                                 int64
}

// Savepoint opens a savepoint. Savepoints nest; each is ended by Release or by
// RollbackTo, the innermost first.
func (tx *Tx) Savepoint() Savepoint {
	if len(tx.undo)|len(tx.journal)|len(tx.effects)|len(tx.events)|len(tx.beyond) == 0 {
		// To undo to here is to undo all that the savepoint around this one knows of.
		return Savepoint{epoch: tx.epoch, weight: tx.weight}
	}
	tx.Weight() // all effects so far
	sp := Savepoint{len(tx.undo), len(tx.journal), len(tx.effects), len(tx.events), len(tx.beyond), tx.epoch, tx.weight}
	tx.nextEpoch++
	tx.epoch = tx.nextEpoch
	return sp
}

// Release ends a savepoint and keeps what was done since. Records that an outer
// savepoint does not need are dropped, so that a script of a million writes to
// one key does not hold a million records.
func (tx *Tx) Release(sp Savepoint) {
	if tx.epoch == sp.epoch { // there was nothing to tell apart
		return
	}
	tx.epoch = sp.epoch
	if len(tx.undo) == sp.undo {
		return
	}
	keep := tx.undo[:sp.undo]
	for i := sp.undo; i < len(tx.undo); i++ {
		u := &tx.undo[i]
		if u.other == nil {
			u.k.saved = sp.epoch + 1
			if u.saved == sp.epoch+1 {
				continue // the outer savepoint has an older record of the key
			}
		}
		keep = append(keep, *u)
	}
	clear(tx.undo[len(keep):])
	tx.undo = keep
}

// RollbackTo undoes all changes, effects and events since sp, and ends it.
func (tx *Tx) RollbackTo(sp Savepoint) {
	if !mutantNoUndo {
		tx.undoTo(sp.undo, sp.journal, sp.beyond)
	}
	clear(tx.effects[sp.effects:])
	tx.effects = tx.effects[:sp.effects]
	clear(tx.events[sp.events:])
	tx.events = tx.events[:sp.events]
	tx.weight, tx.weighed = sp.weight, sp.effects
	tx.epoch = sp.epoch
	tx.nextEpoch = max(tx.nextEpoch, 1) // the lists may have grown
}

// undoTo undoes down to n records of keys, j of what is in collections and b of
// what is beyond the keyspace.
func (tx *Tx) undoTo(n, j, b int) {
	tx.revertBeyond(b)
	for i := len(tx.journal) - 1; i >= j; i-- {
		c := &tx.journal[i]
		c.of.revert(c)
	}
	clear(tx.journal[j:])
	tx.journal = tx.journal[:j]
	for i := len(tx.undo) - 1; i >= n; i-- {
		u := &tx.undo[i]
		switch {
		case u.other == nil:
			u.back()
		case u.other.whole:
			tx.undoWhole(u.other)
		default:
			copy(u.other.at, u.other.old)
		}
	}
	clear(tx.undo[n:])
	tx.undo = tx.undo[:n]
}

// back makes the key what it was.
func (u *undo) back() {
	k, e := u.k, u.e
	k.e = e
	if u.restore {
		e.value, e.expire = u.val, u.expire
		if e.holds() {
			spare := e.spare()
			copy(spare, u.room[roomSize-len(spare):])
		}
	}
	k.changed, k.owned, k.private, k.signal = u.changed, u.owned, u.private, u.signal
	k.rel, k.saved = u.rel, u.saved
}
