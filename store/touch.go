package store

import "unsafe"

// touchMost is how many keys one Touch looks at.
const touchMost = 32

// Touch brings what commands on these keys of a logical database will look at
// closer to the processor: the index, the entries and their values, a stage for
// all keys before the next stage, so that the memory is waited for once and not
// once for each key. It changes nothing, and what it finds decides nothing: the
// commands look again. At 100,000 keys and sixteen commands in a pipeline this
// is a third of what a command costs.
//
// Keys whose shard is in use are passed over, and so are those beyond the first
// touchMost.
func (s *Store) Touch(db int, names [][]byte) {
	phys := s.physical(db)
	names = names[:min(len(names), touchMost)]
	var hashes [touchMost]uint64
	var entries [touchMost]*entry
	for i, name := range names {
		hash := s.hash(name)
		hashes[i] = hash
		sh := &s.shards[hash>>(64-shardBits)]
		if !sh.latch.TryLock() {
			continue
		}
		if x := &sh.dbs[phys]; x.n != 0 {
			prefetch(unsafe.Pointer(&x.slots[x.home(hash)]))
		}
		sh.latch.Unlock()
	}
	for i := range names {
		hash := hashes[i]
		sh := &s.shards[hash>>(64-shardBits)]
		if !sh.latch.TryLock() {
			continue
		}
		if e := sh.dbs[phys].guess(hash); e != nil {
			entries[i] = e
			prefetch(unsafe.Pointer(e))
			prefetch(unsafe.Pointer(&e.short))
		}
		sh.latch.Unlock()
	}
	for i := range names {
		e := entries[i]
		if e == nil {
			continue
		}
		sh := &s.shards[hashes[i]>>(64-shardBits)]
		if !sh.latch.TryLock() {
			continue
		}
		if len(e.str) != 0 {
			prefetch(unsafe.Pointer(unsafe.SliceData(e.str)))
		}
		sh.latch.Unlock()
	}
}

// guess is get without a look at the entry's key.
func (x *index) guess(hash uint64) *entry {
	if x.n == 0 {
		return nil
	}
	mask := len(x.slots) - 1
	for i := x.home(hash); ; i = (i + 1) & mask {
		s := &x.slots[i]
		if s.e == nil || s.hash == hash {
			return s.e
		}
	}
}
