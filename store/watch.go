package store

import (
	"bytes"
	"sync/atomic"
)

// Watcher is what a client watches: it becomes dirty when a commit changes one
// of its keys. It belongs to one client; Dirty may be called by any goroutine.
type Watcher struct {
	dirty atomic.Bool
	keys  []watchRef
}

type watchRef struct {
	sh      *shard
	key     *watchedKey
	logical int
}

// watchedKey is one watched key of a shard, under its latch.
type watchedKey struct {
	hash uint64 // lockHash
	db   int
	name []byte
	by   []watch
	next *watchedKey
}

// plain is the hash of the key alone.
func (wk *watchedKey) plain() uint64 { return wk.hash ^ lockHash(0, wk.db) }

type watch struct {
	w *Watcher
	// expired: the key's time had already passed when it was watched, so that
	// its removal changes nothing for the watcher.
	expired bool
}

// Dirty tells whether a watched key has changed.
func (w *Watcher) Dirty() bool { return w.dirty.Load() }

// Empty tells whether nothing is watched.
func (w *Watcher) Empty() bool { return len(w.keys) == 0 }

// Watch registers w for a key of a logical database.
func (s *Store) Watch(w *Watcher, db int, name []byte) {
	s.swapping.RLock() // or SWAPDB would miss the key
	defer s.swapping.RUnlock()
	phys := s.physical(db)
	hash := s.hash(name)
	sh := s.shardOf(hash)
	h := lockHash(hash, phys)
	sh.latch.Lock()
	defer sh.latch.Unlock()
	wk := sh.findWatched(h, phys, name)
	if wk == nil {
		wk = &watchedKey{hash: h, db: phys, name: bytes.Clone(name), next: sh.watch[h]}
		if sh.watch == nil {
			sh.watch = make(map[uint64]*watchedKey)
		}
		sh.watch[h] = wk
	}
	for _, x := range wk.by {
		if x.w == w {
			return
		}
	}
	e := sh.get(phys, hash, name)
	expired := e != nil && e.expire != 0 && e.expire <= s.clock.NowMilli()
	wk.by = append(wk.by, watch{w, expired})
	w.keys = append(w.keys, watchRef{sh, wk, db})
}

func (sh *shard) findWatched(h uint64, db int, name []byte) *watchedKey {
	for wk := sh.watch[h]; wk != nil; wk = wk.next {
		if wk.db == db && bytes.Equal(wk.name, name) {
			return wk
		}
	}
	return nil
}

// Unwatch forgets all that w watches and makes it clean.
func (s *Store) Unwatch(w *Watcher) {
	for _, r := range w.keys {
		r.sh.latch.Lock()
		for i := range r.key.by {
			if r.key.by[i].w == w {
				last := len(r.key.by) - 1
				r.key.by[i] = r.key.by[last]
				r.key.by = r.key.by[:last]
				break
			}
		}
		if len(r.key.by) == 0 {
			r.sh.dropWatched(r.key)
		}
		r.sh.latch.Unlock()
	}
	w.keys = nil
	w.dirty.Store(false)
}

func (sh *shard) dropWatched(wk *watchedKey) {
	p := sh.watch[wk.hash]
	if p == wk {
		if wk.next == nil {
			delete(sh.watch, wk.hash)
		} else {
			sh.watch[wk.hash] = wk.next
		}
		return
	}
	for ; p != nil; p = p.next {
		if p.next == wk {
			p.next = wk.next
			return
		}
	}
}

// touchWatched marks the watchers of a key that a commit has changed. Removal
// of a key that had expired before it was watched changes nothing.
func (sh *shard) touchWatched(db int, hash uint64, name []byte, expired bool) {
	wk := sh.findWatched(lockHash(hash, db), db, name)
	if wk == nil {
		return
	}
	for i := range wk.by {
		if expired && wk.by[i].expired {
			wk.by[i].expired = false
			continue
		}
		wk.by[i].w.dirty.Store(true)
	}
}

// touchWatchedDB marks the watchers of the keys of a database that becomes what
// other is, or empty when that is -1. A key that was absent and stays so has not
// changed; one that has expired is absent. Under the latch.
func (sh *shard) touchWatchedDB(db, other int, now int64) {
	for _, wk := range sh.watch {
		for ; wk != nil; wk = wk.next {
			if wk.db != db {
				continue
			}
			before := sh.get(db, wk.plain(), wk.name)
			var after *entry
			if other >= 0 {
				after = sh.get(other, wk.plain(), wk.name)
			}
			dead := after != nil && after.expire != 0 && after.expire <= now
			for i := range wk.by {
				x := &wk.by[i]
				if before != nil && !x.expired || after != nil && !dead {
					x.w.dirty.Store(true)
				}
				x.expired = dead
			}
		}
	}
}

// AddWatched stages the watched keys, so that EXEC holds them when it looks.
func (tx *Tx) AddWatched(w *Watcher) {
	for _, r := range w.keys {
		tx.Add(r.logical, r.key.name)
	}
}

// WatchedExpired tells whether a watched key of the transaction has expired
// since it was watched. The keys must be acquired, or the transaction alone.
func (tx *Tx) WatchedExpired(w *Watcher) bool {
	now := tx.Now()
	for _, r := range w.keys {
		short := tx.mode == short
		if !short {
			r.sh.latch.Lock()
		}
		gone := false
		if e := r.sh.get(r.key.db, r.key.plain(), r.key.name); e != nil && e.expire != 0 && e.expire <= now {
			for i := range r.key.by {
				if r.key.by[i].w == w && !r.key.by[i].expired {
					gone = true
				}
			}
		}
		if !short {
			r.sh.latch.Unlock()
		}
		if gone {
			return true
		}
	}
	return false
}

// Len is the number of watched keys.
func (w *Watcher) Len() int { return len(w.keys) }
