package store

import "unsafe"

// touchMost is how many keys one Touch looks at.
const touchMost = 32

// touchFrom is the number of entries in a database from which on Touch does
// anything: the memory of fewer is in the processor's caches as it is.
const touchFrom = 1000

// Touch brings what commands on these keys of a logical database will look at
// closer to the processor: the index, the entries and their values, a stage for
// all keys before the next stage, so that the memory is waited for once and not
// once for each key. It changes nothing, and what it finds decides nothing: the
// commands look again. At 100,000 keys and sixteen commands in a pipeline this
// is a third of what a command costs.
//
// Keys beyond the first touchMost are passed over, and the values of all if the
// commands do not read values.
func (s *Store) Touch(db int, names [][]byte, values bool) {
	phys := s.physical(db)
	if s.sizes[phys].Load() < touchFrom {
		return
	}
	names = names[:min(len(names), touchMost)]
	if raceDetector {
		s.touchLatched(phys, names)
		return
	}
	s.touchBare(phys, names, values)
}

// touchLatched is Touch as it would be written without touchBare. Keys whose
// shard is in use are passed over.
func (s *Store) touchLatched(phys int, names [][]byte) (found int) {
	for _, name := range names {
		hash := s.hash(name)
		sh := s.shardOf(hash)
		if !sh.latch.TryLock() {
			continue
		}
		if t := sh.dbs[phys].table.Load(); t != nil {
			if e := t.guess(hash); e != nil {
				found++
			}
		}
		sh.latch.Unlock()
	}
	return found
}

// touchBare takes no latch: an atomic instruction waits for the loads before it,
// which are what should overlap, and six of them for each key were half of the
// time of a Touch.
//
// So it reads what others may be writing. Every such read is of one word, and by
// Go's memory model it yields a value that was written there: a table is
// published by an atomic store and never changes its size; a hash, which is only compared; or an entry, of which
// nothing is looked at but where its value is, and that place is not read. What
// has been replaced meanwhile stays as it was for as long as it is pointed to
// from here. The race detector cannot know that this is enough, hence
// raceDetector.
func (s *Store) touchBare(phys int, names [][]byte, values bool) (found int) {
	var hashes [touchMost]uint64
	var tables [touchMost]*table
	var at [touchMost]unsafe.Pointer
	n := 0
	for _, name := range names {
		hash := s.hash(name)
		if t := s.shardOf(hash).dbs[phys].table.Load(); t != nil {
			hashes[n], tables[n] = hash, t
			at[n] = unsafe.Pointer(&t.slots[t.home(hash)])
			n++
		}
	}
	prefetch(&at, n, 0)
	for i := range n {
		if e := tables[i].guess(hashes[i]); e != nil {
			at[found] = unsafe.Pointer(e)
			found++
		}
	}
	if !values {
		prefetch(&at, found, 0)
		return found
	}
	prefetch(&at, found, unsafe.Offsetof(entry{}.value))
	n = 0
	for i := range found {
		if value := unsafe.Pointer(unsafe.SliceData((*entry)(at[i]).str)); value != nil {
			at[n] = value
			n++
		}
	}
	prefetch(&at, n, 0)
	return found
}

// guessAtMost is how many slots guess looks at: entries may be moving.
const guessAtMost = 8

// guess is get without a look at the entry's key.
func (t *table) guess(hash uint64) *entry {
	slots := t.slots
	mask := len(slots) - 1
	i := t.home(hash)
	for range guessAtMost {
		s := &slots[i&mask]
		if s.hash == hash {
			return s.e
		}
		if s.e == nil {
			return nil
		}
		i++
	}
	return nil
}
