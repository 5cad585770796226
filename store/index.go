package store

import "sync/atomic"

// index finds the entries of one database in one shard: open addressing with
// linear probing over slots that hold the whole hash, so that a look-up that
// finds or misses touches one line of the index and, at most, one entry.
//
// Go's map needs three dependent cache misses where this needs two, which at
// pipeline depth is most of what a command costs. index_test.go holds it
// against a map.
type index struct {
	// table is read by Touch too, which takes no latch: see touchBare.
	table atomic.Pointer[table]
	n     int
}

// table is the memory of an index. It keeps its size: a larger or smaller one
// takes its place.
type table struct {
	slots []slot // a power of two of them
}

func newTable(n int) *table { return &table{make([]slot, n)} }

type slot struct {
	hash uint64
	e    *entry // nil: free
}

const smallestIndex = 8

// The top bits of a hash choose the shard, the low ones the slot.
func (t *table) home(hash uint64) int { return int(hash & uint64(len(t.slots)-1)) }

func (x *index) get(hash uint64, name []byte) *entry {
	if x.n == 0 {
		return nil
	}
	slots := x.table.Load().slots
	mask := uint64(len(slots) - 1)
	for i := hash; ; i++ {
		s := &slots[i&mask]
		if s.e == nil {
			return nil
		}
		if s.hash == hash && s.e.key == string(name) {
			return s.e
		}
	}
}

// set puts e in place of old, or adds it when old is nil.
func (x *index) set(hash uint64, e, old *entry) {
	t := x.table.Load()
	if old != nil {
		t.slots[t.find(hash, old)].e = e
		return
	}
	if t == nil || (x.n+1)*4 > len(t.slots)*3 {
		t = x.resize(max(smallestIndex, 2*len(x.all())))
	}
	t.place(slot{hash, e})
	x.n++
}

func (t *table) place(s slot) {
	mask := len(t.slots) - 1
	i := t.home(s.hash)
	for t.slots[i].e != nil {
		i = (i + 1) & mask
	}
	t.slots[i] = s
}

// find returns the slot of e, which must be there.
func (t *table) find(hash uint64, e *entry) int {
	mask := len(t.slots) - 1
	i := t.home(hash)
	for t.slots[i].e != e {
		i = (i + 1) & mask
	}
	return i
}

// remove takes e out and moves what stood behind it, so that no tombstones are
// needed.
func (x *index) remove(hash uint64, e *entry) {
	t := x.table.Load()
	mask := len(t.slots) - 1
	hole := t.find(hash, e)
	for i := (hole + 1) & mask; t.slots[i].e != nil; i = (i + 1) & mask {
		// A slot may move back to the hole unless its home lies behind it.
		if (i-t.home(t.slots[i].hash))&mask >= (i-hole)&mask {
			t.slots[hole] = t.slots[i]
			hole = i
		}
	}
	t.slots[hole] = slot{}
	x.n--
	if len(t.slots) > smallestIndex && x.n*8 < len(t.slots) {
		x.resize(len(t.slots) / 2)
	}
}

func (x *index) resize(n int) *table {
	fresh := newTable(n)
	for _, s := range x.all() {
		if s.e != nil {
			fresh.place(s)
		}
	}
	x.table.Store(fresh)
	return fresh
}

// all are the slots, free ones too.
func (x *index) all() []slot {
	if t := x.table.Load(); t != nil {
		return t.slots
	}
	return nil
}

func (x *index) clear() {
	x.table.Store(nil)
	x.n = 0
}
