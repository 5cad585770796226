package store

import (
	"bytes"
	"errors"
)

// ErrConflict: a key that was not acquired in the beginning is held by another
// transaction. Everything must be rolled back and run again; Again does so.
var ErrConflict = errors.New("store: undeclared key is held by another transaction")

// Reached tells whether the transaction has the key and goes on: Reach would do nothing.
func (tx *Tx) Reached(db int, name []byte) bool {
	return !tx.clash && (tx.sole(db, name) != nil || tx.find(tx.physical(db), tx.s.hash(name), name) != nil)
}

// Reach makes a key usable that was not acquired in the beginning. A locked
// transaction tries to lock the key in place; a short one is promoted. ErrConflict
// means that the whole transaction must be undone and run again (see Again): every
// further Reach answers the same.
func (tx *Tx) Reach(db int, name []byte) error {
	if tx.clash {
		return ErrConflict
	}
	if tx.sole(db, name) != nil {
		return nil
	}
	phys := tx.physical(db)
	hash := tx.s.hash(name)
	if tx.find(phys, hash, name) != nil {
		return nil
	}
	switch tx.mode {
	case short:
		return tx.Promote()
	case alone:
		k := tx.stage(phys, db, hash, bytes.Clone(name))
		k.sh.latch.Lock()
		k.load()
		k.sh.latch.Unlock()
		return nil
	case locked:
	default:
		panic("store: Reach in a transaction without key locks")
	}
	name = bytes.Clone(name)
	k := tx.stage(phys, db, hash, name)
	k.late = true
	k.sh.latch.Lock()
	defer k.sh.latch.Unlock()
	h := lockHash(hash, phys)
	if !mutantNoKeyLock {
		if k.sh.findLock(h, phys, name) != nil {
			tx.clash = true
			tx.unstage(k)
			tx.retry = append(tx.retry, keyRef{db, name, true})
			return ErrConflict
		}
		k.lock = k.sh.addLock(h, phys, name, tx)
	}
	k.load()
	return nil
}

// unstage takes back the newest stage.
func (tx *Tx) unstage(k *Key) {
	if len(tx.keys) > indexAbove {
		h := lockHash(k.hash, k.db)
		if k.next == nil {
			delete(tx.index, h)
		} else {
			tx.index[h] = k.next
		}
	}
	tx.keys = tx.keys[:len(tx.keys)-1]
	if len(tx.keys) == indexAbove {
		clear(tx.index)
		for _, o := range tx.keys {
			o.next = nil
		}
	}
	k.reset()
	tx.spare = append(tx.spare, k)
}

// Clash tells whether a Reach has failed.
func (tx *Tx) Clash() bool { return tx.clash }

// RequireAll makes the transaction run again alone: something in it concerns
// the whole keyspace. It returns ErrConflict unless the transaction already is
// alone, when it returns nil.
func (tx *Tx) RequireAll() error {
	if tx.mode == alone {
		return nil
	}
	tx.clash, tx.promoted = true, false
	tx.reruns = rerunsBeforeAlone
	return ErrConflict
}

const rerunsBeforeAlone = 3

// Again ends a transaction in which Reach, RequireAll or Spend failed, undone, and
// begins and acquires it anew with the touched keys declared; after three such
// reruns it runs alone. A short transaction that was promoted comes back locked,
// which is no rerun. On an error nothing is held.
func (tx *Tx) Again(w *Wait) error {
	refs := make([]keyRef, 0, len(tx.keys)+len(tx.retry))
	for _, k := range tx.keys {
		refs = append(refs, keyRef{k.logical, k.name, k.late})
	}
	refs = append(refs, tx.retry...)
	reruns, late := tx.reruns, tx.Late()
	if tx.promoted {
		tx.s.Counter.Promotions.Add(1)
	} else {
		reruns++
		tx.s.Counter.Reruns.Add(1)
	}
	tx.Rollback()
	tx.Hits, tx.Misses = tx.hitsBefore, tx.missesBefore
	tx.Begin()
	tx.reruns = reruns
	if reruns > rerunsBeforeAlone {
		tx.lateBefore = late
		return tx.AcquireAll(w)
	}
	for _, r := range refs {
		tx.addAgain(r)
	}
	return tx.Acquire(w)
}
