package store

import "errors"

// ErrLogFailed: the effect log refused the append; the transaction was rolled
// back.
var ErrLogFailed = errors.New("store: effect log refused the append")

// FlushStats adds Hits and Misses to the store's counters.
func (tx *Tx) FlushStats() {
	if tx.Hits != 0 {
		tx.s.Counter.Hits.Add(tx.Hits)
		tx.Hits = 0
	}
	if tx.Misses != 0 {
		tx.s.Counter.Misses.Add(tx.Misses)
		tx.Misses = 0
	}
	tx.hitsBefore, tx.missesBefore = 0, 0
}

// Commit makes the transaction's changes durable as the log promises and
// visible, and lets its keys go. On an error everything is rolled back.
func (tx *Tx) Commit() error {
	if tx.clash {
		panic("store: Commit of a transaction that must run again")
	}
	if len(tx.undo)|len(tx.effects)|len(tx.events) == 0 {
		tx.letGo()
		return nil
	}
	if err := tx.appendEffects(); err != nil {
		tx.Rollback()
		return err
	}
	tx.install()
	drain := len(tx.events) != 0
	tx.letGo()
	if drain {
		tx.s.drain()
	}
	return nil
}

func (tx *Tx) appendEffects() error {
	s := tx.s
	var at int64
	for i := range tx.effects {
		e := &tx.effects[i]
		if e.rel != 0 {
			if at == 0 {
				at = tx.commitTime()
			}
			e.At = saturate(at, e.rel)
		}
	}
	if at != 0 {
		for _, k := range tx.keys {
			if k.rel != 0 && k.e != nil {
				k.e.expire = saturate(at, k.rel)
			}
		}
	}
	if len(tx.events) == 0 {
		return tx.append()
	}
	o := &s.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := tx.append(); err != nil {
		return err
	}
	for i := range tx.events {
		o.queue = append(o.queue, sealed{tx.lsn, tx.events[i]})
	}
	return nil
}

func (tx *Tx) append() error {
	if len(tx.effects) == 0 {
		return nil
	}
	lsn, err := tx.s.log.Append(tx.effects)
	if err != nil {
		return errors.Join(ErrLogFailed, err)
	}
	tx.lsn = lsn
	tx.s.Counter.Commits.Add(1)
	return nil
}

// commitTime is when relative TTLs begin to run: a slow script does not shorten
// the lock that it takes. A short transaction has no time to lose.
func (tx *Tx) commitTime() int64 {
	if tx.mode == short {
		return tx.Now()
	}
	return tx.s.clock.NowMilli()
}

// install puts what was changed into the shards.
func (tx *Tx) install() {
	for i := range tx.beyond {
		tx.beyond[i].commit(tx.lsn)
	}
	if tx.flushed != nil || tx.dbmap != nil {
		tx.installWhole()
	}
	for _, k := range tx.keys {
		if !k.changed {
			continue
		}
		if tx.mode == short {
			k.install()
			continue
		}
		k.sh.latch.Lock()
		k.install()
		k.sh.latch.Unlock()
	}
}

// Rollback undoes everything and lets the keys go.
func (tx *Tx) Rollback() {
	if tx.mode == idle {
		return
	}
	if len(tx.undo) != 0 && !tx.promoted {
		tx.s.Counter.Rollbacks.Add(1)
	}
	if mutantNoUndo || mutantPromotedKeeps && tx.promoted {
		tx.install()
	} else {
		tx.undoTo(0, 0, 0)
	}
	tx.letGo()
}

// letGo releases latches, key locks and the gate, and ends the transaction.
func (tx *Tx) letGo() {
	switch tx.mode {
	case short:
		for _, k := range tx.keys {
			if tx.wakes(k) && !tx.clash {
				k.wakeShort()
			}
		}
		tx.unlatch()
	case locked:
		for _, k := range tx.keys {
			k.sh.latch.Lock()
			if tx.wakes(k) && k.lock != nil {
				k.lock.handoff = k.sh.blockedOn(k)
			}
			k.sh.release(k)
			k.sh.latch.Unlock()
		}
		tx.s.gate.leave(tx.generation)
	case alone:
		for _, k := range tx.keys {
			if tx.wakes(k) {
				k.sh.latch.Lock()
				k.wakeShort()
				k.sh.latch.Unlock()
			}
		}
		tx.wakeFlushed()
		tx.s.gate.open()
	}
	tx.end()
}

// wakes tells whether the commands blocked on k must look at it: it was changed,
// deleted or signalled.
func (tx *Tx) wakes(k *Key) bool { return k.signal || k.changed && !tx.taken && !mutantNoWake }

func (tx *Tx) end() {
	tx.dropKeys()
	if tx.nextEpoch|uint32(len(tx.undo)|len(tx.journal)|len(tx.effects)|len(tx.events)|len(tx.beyond)) != 0 {
		tx.undo = drop(tx.undo)
		tx.effects = drop(tx.effects)
		if tx.nextEpoch|uint32(len(tx.journal)|len(tx.events)|len(tx.beyond)) != 0 {
			tx.journal = drop(tx.journal)
			tx.events = drop(tx.events)
			tx.beyond = drop(tx.beyond)
		}
	}
	if tx.flushed != nil || tx.dbmap != nil {
		tx.flushed, tx.dbmap = nil, nil
	}
	tx.epoch, tx.nextEpoch = 0, 0
	tx.weight, tx.weighed = 0, 0
	tx.now = 0
	if tx.started.Load() != 0 {
		tx.started.Store(0)
		if tx.busyAs.Load() != nil {
			tx.BusyAs(nil)
		}
	}
	tx.clash, tx.promoted, tx.taken = false, false, false
	tx.mode = idle
}

// next makes a list longer by one and returns what is there to be filled in: it is
// zero, since all of a list beyond its length is.
func next[T any](list *[]T) *T {
	n := len(*list)
	if n == cap(*list) {
		var zero T
		*list = append(*list, zero)
	} else {
		*list = (*list)[:n+1]
	}
	return &(*list)[n]
}

// drop empties a slice; one that was once large is let go.
func drop[T any](s []T) []T {
	switch {
	case cap(s) > 256:
		return nil
	case len(s) == 1: // the commonest, in fewer steps
		var zero T
		s[0] = zero
	case len(s) != 0:
		clear(s)
	}
	return s[:0]
}

// maxSpare is the number of handles that a transaction keeps for the next one.
const maxSpare = 64

func (tx *Tx) dropKeys() {
	if len(tx.keys) == 1 && len(tx.index) == 0 && len(tx.spare) < maxSpare {
		// The commonest: what is below in fewer words.
		k := tx.keys[0]
		k.reset()
		tx.keys[0], tx.keys = nil, tx.keys[:0]
		tx.spare = append(tx.spare, k)
		return
	}
	if len(tx.index) != 0 {
		if len(tx.keys) > 1024 {
			tx.index = nil
		} else {
			clear(tx.index)
		}
	}
	for _, k := range tx.keys {
		k.reset()
	}
	if free := maxSpare - len(tx.spare); free > 0 {
		tx.spare = append(tx.spare, tx.keys[:min(free, len(tx.keys))]...)
	}
	clear(tx.keys)
	tx.keys = tx.keys[:0]
	if cap(tx.keys) > 1024 {
		tx.keys = nil
	}
}

// TakeLSN returns the newest LSN seen since the last TakeLSN, and forgets it.
func (tx *Tx) TakeLSN() uint64 {
	lsn := tx.lsn
	tx.lsn = 0
	return lsn
}
