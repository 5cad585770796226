package store

// index finds the entries of one database in one shard: open addressing with
// linear probing over slots that hold the whole hash, so that a look-up that
// finds or misses touches one line of the index and, at most, one entry.
//
// Go's map needs three dependent cache misses where this needs two, which at
// pipeline depth is most of what a command costs. index_test.go holds it
// against a map.
type index struct {
	slots []slot // a power of two of them
	n     int
}

type slot struct {
	hash uint64
	e    *entry // nil: free
}

const smallestIndex = 8

// The top bits of a hash choose the shard, the low ones the slot.
func (x *index) home(hash uint64) int { return int(hash & uint64(len(x.slots)-1)) }

func (x *index) get(hash uint64, name []byte) *entry {
	if x.n == 0 {
		return nil
	}
	mask := len(x.slots) - 1
	for i := x.home(hash); ; i = (i + 1) & mask {
		s := &x.slots[i]
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
	if old != nil {
		x.slots[x.find(hash, old)].e = e
		return
	}
	if (x.n+1)*4 > len(x.slots)*3 {
		x.resize(max(smallestIndex, 2*len(x.slots)))
	}
	x.place(slot{hash, e})
	x.n++
}

func (x *index) place(s slot) {
	mask := len(x.slots) - 1
	i := x.home(s.hash)
	for x.slots[i].e != nil {
		i = (i + 1) & mask
	}
	x.slots[i] = s
}

// find returns the slot of e, which must be there.
func (x *index) find(hash uint64, e *entry) int {
	mask := len(x.slots) - 1
	i := x.home(hash)
	for x.slots[i].e != e {
		i = (i + 1) & mask
	}
	return i
}

// remove takes e out and moves what stood behind it, so that no tombstones are
// needed.
func (x *index) remove(hash uint64, e *entry) {
	mask := len(x.slots) - 1
	hole := x.find(hash, e)
	for i := (hole + 1) & mask; x.slots[i].e != nil; i = (i + 1) & mask {
		// A slot may move back to the hole unless its home lies behind it.
		if (i-x.home(x.slots[i].hash))&mask >= (i-hole)&mask {
			x.slots[hole] = x.slots[i]
			hole = i
		}
	}
	x.slots[hole] = slot{}
	x.n--
	if len(x.slots) > smallestIndex && x.n*8 < len(x.slots) {
		x.resize(len(x.slots) / 2)
	}
}

func (x *index) resize(n int) {
	old := x.slots
	x.slots = make([]slot, n)
	for _, s := range old {
		if s.e != nil {
			x.place(s)
		}
	}
}
