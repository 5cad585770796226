package store

import (
	"slices"
	"sync/atomic"
)

// FlushDB empties a logical database at commit. The transaction must be alone.
func (tx *Tx) FlushDB(db int) {
	tx.emptied(tx.physical(db))
	tx.effects = append(tx.effects, Effect{Op: OpFlushDB, DB: db})
}

// FlushAll empties all databases at commit. The transaction must be alone.
func (tx *Tx) FlushAll() {
	for phys := range tx.s.sizes {
		tx.emptied(phys)
	}
	tx.effects = append(tx.effects, Effect{Op: OpFlushAll})
}

func (tx *Tx) emptied(phys int) {
	tx.saveWhole(-1, -1)
	if tx.flushed == nil {
		tx.flushed = make([]bool, len(tx.s.sizes))
	} else {
		tx.flushed = slices.Clone(tx.flushed)
	}
	tx.flushed[phys] = true
	for _, k := range tx.keys {
		if k.db == phys && k.e != nil {
			k.save()
			k.e, k.owned, k.private, k.changed, k.rel = nil, false, false, true, 0
		}
	}
}

// SwapDB exchanges two logical databases. The transaction must be alone.
func (tx *Tx) SwapDB(a, b int) {
	if a == b {
		return
	}
	tx.saveWhole(a, b)
	m := tx.dbmap
	if m == nil {
		m = tx.s.dbmap
	}
	tx.dbmap = slices.Clone(m)
	tx.dbmap[a], tx.dbmap[b] = m[b], m[a]
	tx.renumber(a, b)
	tx.effects = append(tx.effects, Effect{Op: OpSwapDB, DB: a, N: int64(b)})
}

// renumber tells the keys of two exchanged databases their new numbers.
func (tx *Tx) renumber(a, b int) {
	for _, k := range tx.keys {
		switch k.logical {
		case a:
			k.logical = b
		case b:
			k.logical = a
		}
	}
}

func (tx *Tx) saveWhole(a, b int) {
	if tx.mode != alone {
		panic("store: a change of whole databases in a transaction that is not alone")
	}
	tx.undo = append(tx.undo, undo{other: &otherUndo{whole: true, flushed: tx.flushed, dbmap: tx.dbmap, swapA: a, swapB: b}})
}

func (tx *Tx) undoWhole(u *otherUndo) {
	tx.flushed, tx.dbmap = u.flushed, u.dbmap
	if u.swapA >= 0 {
		tx.renumber(u.swapA, u.swapB)
	}
	// What was looked up meanwhile was looked up in an emptied database.
	for _, k := range tx.keys {
		if k.base == nil && !k.changed {
			k.sh.latch.Lock()
			k.load()
			k.sh.latch.Unlock()
		}
	}
}

// installWhole makes the changes of whole databases. The transaction is alone,
// but whoever visits shards by their latches may still look.
func (tx *Tx) installWhole() {
	s := tx.s
	for phys, flushed := range tx.flushed {
		if !flushed {
			continue
		}
		for i := range s.shards {
			sh := &s.shards[i]
			sh.latch.Lock()
			sh.touchWatchedDB(phys, -1, tx.Now())
			volatile := len(sh.vol)
			n, bytes := sh.clear(phys)
			s.account(phys, -n, int64(len(sh.vol)-volatile), -bytes)
			sh.lsn = max(sh.lsn, tx.lsn)
			sh.latch.Unlock()
		}
		for _, k := range tx.keys {
			if k.db == phys {
				if k.base != nil && k.baseSize != 0 {
					// A collection that was changed in place counted as it is now.
					s.account(phys, 0, 0, k.base.size()-k.baseSize)
				}
				k.base, k.baseTTL = nil, false
			}
		}
	}
	for logical, phys := range tx.dbmap {
		was := int(s.dbmap[logical])
		if was == int(phys) {
			continue
		}
		for i := range s.shards {
			sh := &s.shards[i]
			sh.latch.Lock()
			sh.touchWatchedDB(was, int(phys), tx.Now())
			sh.lsn = max(sh.lsn, tx.lsn)
			sh.latch.Unlock()
		}
	}
	if tx.dbmap != nil {
		s.swapping.Lock()
		defer s.swapping.Unlock()
		for i := range s.shards {
			s.shards[i].latch.Lock()
			s.shards[i].moveWatched(s.dbmap, tx.dbmap)
			s.shards[i].wakeSwapped(s.dbmap, tx.dbmap)
			s.shards[i].latch.Unlock()
		}
		for logical, phys := range tx.dbmap {
			atomic.StoreInt32(&s.dbmap[logical], phys)
		}
	}
}

// moveWatched keeps watched keys with their logical databases when these are
// exchanged. Under the latch.
func (sh *shard) moveWatched(before, after []int32) {
	if len(sh.watch) == 0 {
		return
	}
	to := make([]int, len(before))
	for logical, phys := range before {
		to[phys] = int(after[logical])
	}
	all := sh.watch
	sh.watch = make(map[uint64]*watchedKey, len(all))
	for _, wk := range all {
		for wk != nil {
			next := wk.next
			plain := wk.plain()
			wk.db = to[wk.db]
			wk.hash = lockHash(plain, wk.db)
			wk.next = sh.watch[wk.hash]
			sh.watch[wk.hash] = wk
			wk = next
		}
	}
}

// wakeFlushed hands the keys of emptied databases to those who are blocked on
// them. The transaction is alone and about to end.
func (tx *Tx) wakeFlushed() {
	if tx.flushed == nil {
		return
	}
	for i := range tx.s.shards {
		sh := &tx.s.shards[i]
		sh.latch.Lock()
		for h, bk := range sh.blocked {
			for ; bk != nil; bk = bk.next {
				if !tx.flushed[bk.db] || sh.findLock(h, bk.db, bk.name) != nil {
					continue
				}
				sh.handOver(sh.addLock(h, bk.db, bk.name, nil), append([]*Blocked(nil), bk.queue...))
			}
		}
		sh.latch.Unlock()
	}
}
