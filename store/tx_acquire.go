package store

import (
	"bytes"
	"slices"
	"time"
)

// BeginOne is Begin, Add and AcquireFast of a transaction with one key, in fewer
// steps. When it returns false the key is staged, and Acquire must be used.
func (tx *Tx) BeginOne(db int, name []byte) bool {
	tx.Begin()
	return tx.acquireOne(tx.stage(tx.physical(db), db, tx.s.hash(name), name))
}

// acquireOne is AcquireFast of the only key.
func (tx *Tx) acquireOne(k *Key) bool {
	sh := k.sh
	sh.latch.Lock()
	if tx.s.gate.closed.Load() || (len(sh.locks) != 0 && sh.findLock(lockHash(k.hash, k.db), k.db, k.name) != nil) || tx.physical(k.logical) != k.db {
		sh.latch.Unlock()
		return false
	}
	tx.shorten()
	tx.lsn = max(tx.lsn, sh.lsn)
	k.load()
	return true
}

// AcquireFast takes the latches of all staged keys if none of them is locked.
// It never waits for another transaction. When it returns false, nothing is
// held and Acquire must be used. Between it and the end of the transaction the
// goroutine must not block, nor run for long.
func (tx *Tx) AcquireFast() bool {
	if len(tx.keys) == 1 {
		return tx.acquireOne(tx.keys[0])
	}
	tx.latched = tx.latched[:0]
	for _, k := range tx.keys {
		if at, found := slices.BinarySearch(tx.latched, k.sh.index); !found {
			tx.latched = slices.Insert(tx.latched, at, k.sh.index)
		}
	}
	for _, i := range tx.latched {
		tx.s.shards[i].latch.Lock()
	}
	free := !tx.s.gate.closed.Load()
	for _, k := range tx.keys {
		if len(k.sh.locks) != 0 && k.sh.findLock(lockHash(k.hash, k.db), k.db, k.name) != nil || tx.physical(k.logical) != k.db {
			free = false
			break
		}
	}
	if !free {
		tx.unlatch()
		return false
	}
	tx.shorten()
	for _, k := range tx.keys {
		tx.lsn = max(tx.lsn, k.sh.lsn)
		k.load()
	}
	return true
}

// unlatch lets the latches of a short transaction go.
func (tx *Tx) unlatch() {
	if len(tx.keys) == 1 {
		tx.keys[0].sh.latch.Unlock()
		return
	}
	for _, i := range tx.latched {
		tx.s.shards[i].latch.Unlock()
	}
	tx.latched = tx.latched[:0]
}

// Acquire locks all staged keys, waiting for each in its queue. On an error
// nothing is held and the transaction has ended.
func (tx *Tx) Acquire(w *Wait) error {
	var err error
	if tx.generation, err = tx.s.gate.enter(tx.s, w); err != nil {
		tx.end()
		return err
	}
	// SWAPDB may have run while we stood at the gate.
	for _, k := range tx.keys {
		if phys := tx.s.physical(k.logical); phys != k.db {
			tx.restage()
			break
		}
	}
	tx.mode = locked
	if len(tx.keys) > 1 {
		slices.SortFunc(tx.keys, compareKeys)
	}
	for i, k := range tx.keys {
		if err := tx.lock(k, w); err != nil {
			for _, held := range tx.keys[:i] {
				held.sh.latch.Lock()
				held.sh.release(held)
				held.sh.latch.Unlock()
			}
			tx.s.gate.leave(tx.generation)
			tx.end()
			return err
		}
	}
	tx.start()
	return nil
}

// BusyAs makes err, which wraps ErrBusy, what those get who have waited too long
// for a key that tx holds, or for it to end; nil is ErrBusy itself. It lasts until
// the transaction ends.
func (tx *Tx) BusyAs(err error) {
	tx.s.gate.name(tx, err != nil)
	if err == nil {
		tx.busyAs.Store(nil)
		return
	}
	tx.busyAs.Store(&err)
}

// Held is for how long tx has had all its keys, which is what Wait.Busy is compared
// with; 0 when it has not. Any goroutine may ask.
func (tx *Tx) Held() time.Duration {
	started := tx.started.Load()
	if started == 0 {
		return 0
	}
	return time.Duration(tx.s.elapsed() - started)
}

// start is called when all keys are held.
func (tx *Tx) start() { tx.started.Store(max(1, tx.s.elapsed())) }

func (tx *Tx) restage() {
	refs := make([]keyRef, len(tx.keys))
	for i, k := range tx.keys {
		refs[i] = keyRef{k.logical, k.name, k.late}
	}
	tx.dropKeys()
	for _, r := range refs {
		tx.addAgain(r)
	}
}

// addAgain stages a key of a transaction that is acquired anew.
func (tx *Tx) addAgain(r keyRef) {
	phys := tx.physical(r.db)
	hash := tx.s.hash(r.name)
	k := tx.find(phys, hash, r.name)
	if k == nil {
		k = tx.stage(phys, r.db, hash, r.name)
	}
	k.late = k.late || r.late
}

func compareKeys(a, b *Key) int {
	if a.sh != b.sh {
		return int(a.sh.index) - int(b.sh.index)
	}
	if a.db != b.db {
		return a.db - b.db
	}
	return bytes.Compare(a.name, b.name)
}

// lock takes the lock of k or waits for it.
func (tx *Tx) lock(k *Key, w *Wait) error {
	sh := k.sh
	sh.latch.Lock()
	if mutantNoKeyLock {
		k.load()
		sh.latch.Unlock()
		return nil
	}
	h := lockHash(k.hash, k.db)
	l := sh.findLock(h, k.db, k.name)
	if l == nil {
		k.lock = sh.addLock(h, k.db, k.name, tx)
		k.load()
		sh.latch.Unlock()
		return nil
	}
	tx.wanted = k
	l.push(&tx.self)
	sh.latch.Unlock()
	err := tx.await(k, l, w)
	if err != nil {
		return err
	}
	sh.latch.Lock()
	k.load()
	sh.latch.Unlock()
	return nil
}

// await waits until the lock l of k is handed to tx.
func (tx *Tx) await(k *Key, l *keyLock, w *Wait) (err error) {
	s := tx.s
	s.Counter.LockWaits.Add(1)
	s.Counter.LockWaiting.Add(1)
	defer s.Counter.LockWaiting.Add(-1)
	select { // a short transaction often lets go at once
	case <-tx.self.granted:
		return nil
	default:
	}
	defer w.parked(false)()
	var busy <-chan time.Time
	var timer *time.Timer
	if w != nil && w.Busy > 0 {
		k.sh.latch.Lock()
		left := l.patience(k, w)
		k.sh.latch.Unlock()
		timer = time.NewTimer(left)
		defer timer.Stop()
		busy = timer.C
	}
	for {
		select {
		case <-tx.self.granted:
			select {
			case <-w.done(): // before: who was killed while it waited does nothing any more
				tx.self.granted <- struct{}{}
				err = ErrCancelled
			default:
				return nil
			}
		case <-w.done():
			err = ErrCancelled
		case <-s.closed:
			err = ErrCancelled
		case <-busy:
			k.sh.latch.Lock()
			left, late := l.patience(k, w), l.busy()
			k.sh.latch.Unlock()
			if left > 0 {
				timer.Reset(left)
				continue
			}
			err = late
		}
		break
	}
	k.sh.latch.Lock()
	defer k.sh.latch.Unlock()
	if k.lock != nil { // it was handed over in the same moment: pass it on
		<-tx.self.granted
		k.sh.release(k)
		return err
	}
	l.pull(&tx.self)
	return err
}

// AcquireAll closes the gate: it waits until every other transaction has ended
// and runs alone. Keys need not be staged.
func (tx *Tx) AcquireAll(w *Wait) error {
	tx.dropKeys()
	if err := tx.s.gate.close(tx.s, w); err != nil {
		tx.end()
		return err
	}
	tx.mode = alone
	tx.start()
	for i := range tx.s.shards {
		tx.lsn = max(tx.lsn, tx.s.shards[i].lsn)
	}
	return nil
}

// AcquireNone begins a transaction without keys, for what only visits the
// keyspace or publishes.
func (tx *Tx) AcquireNone() {
	tx.dropKeys()
	tx.shorten()
}
