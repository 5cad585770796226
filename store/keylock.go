package store

import (
	"bytes"
	"time"
)

// keyLock is one locked key of a shard: its owner and the queue of those who
// want it. All its fields belong to the shard's latch.
type keyLock struct {
	hash  uint64 // lockHash
	db    int
	name  []byte // the owner's view of the key, alive while it owns the lock
	owner *Tx
	first *waiter // first come, first served
	last  *waiter
	// handoff are the blocked commands that a change of the key has woken and
	// that go before the queue, so that nobody steals what they waited for.
	handoff []*Blocked
	next    *keyLock // another key of the same lockHash
}

// waiter is a transaction's place in a queue. A transaction waits in one queue
// at a time.
type waiter struct {
	tx      *Tx
	granted chan struct{} // receives once when the lock is handed over
	prev    *waiter
	next    *waiter
}

// lockHash tells keys of the same name in different databases apart.
func lockHash(hash uint64, db int) uint64 {
	return hash ^ uint64(db+1)*0x9e3779b97f4a7c15
}

func (sh *shard) findLock(hash uint64, db int, name []byte) *keyLock {
	for l := sh.locks[hash]; l != nil; l = l.next {
		if l.db == db && bytes.Equal(l.name, name) {
			return l
		}
	}
	return nil
}

func (sh *shard) addLock(hash uint64, db int, name []byte, owner *Tx) *keyLock {
	if sh.locks == nil {
		sh.locks = make(map[uint64]*keyLock)
	}
	l := &keyLock{hash: hash, db: db, name: name, owner: owner, next: sh.locks[hash]}
	sh.locks[hash] = l
	return l
}

func (sh *shard) dropLock(l *keyLock) {
	if p := sh.locks[l.hash]; p != l {
		for p.next != l {
			p = p.next
		}
		p.next = l.next
		return
	}
	if l.next == nil {
		delete(sh.locks, l.hash)
		return
	}
	sh.locks[l.hash] = l.next
}

func (l *keyLock) push(w *waiter) {
	w.prev, w.next = l.last, nil
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
}

func (l *keyLock) pull(w *waiter) {
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
}

// patience is how much longer one who waits for k puts up with the lock's owner.
// One who is still waiting for other keys itself is not slow. Under the latch.
func (l *keyLock) patience(k *Key, w *Wait) time.Duration {
	var started int64
	if k.lock == nil { // or it was handed over just now
		started = l.owner.started.Load()
	}
	if started == 0 {
		return w.Busy
	}
	return w.Busy - time.Duration(l.owner.s.elapsed()-started)
}

// busy is what one is told who gives up on the lock's owner.
func (l *keyLock) busy() error {
	if err := l.owner.busyAs.Load(); err != nil {
		return *err
	}
	return ErrBusy
}

// release hands the lock of k to whoever is next, or takes it off the table.
// Under the latch.
func (sh *shard) release(k *Key) {
	l := k.lock
	k.lock = nil
	if l == nil {
		return // only without key locks, in a mutant build
	}
	sh.pass(l)
}

// handOver gives a lock that nobody owns to the first of those blocked who still
// waits. Under the latch.
func (sh *shard) handOver(l *keyLock, queue []*Blocked) {
	l.handoff = queue
	sh.pass(l)
}

// pass hands a lock to whoever is next, or takes it off the table. Under the
// latch.
func (sh *shard) pass(l *keyLock) {
	for len(l.handoff) > 0 {
		b := l.handoff[0]
		l.handoff = l.handoff[1:]
		if b.take(sh, l) {
			return
		}
	}
	l.handoff = nil
	if w := l.first; w != nil {
		l.pull(w)
		l.owner, l.name = w.tx, w.tx.wanted.name
		w.tx.wanted.lock = l
		w.granted <- struct{}{}
		return
	}
	sh.dropLock(l)
}
