package store

import (
	"bytes"
	"sync/atomic"
	"unsafe"
)

type mode uint8

const (
	idle mode = iota
	staging
	short  // holds the latches of its keys
	locked // holds key locks
	alone  // has closed the gate
)

// Tx is a transaction. It is made once by NewTx and used again and again, by
// one goroutine at a time:
//
//	tx.Begin(); tx.Add(db, key) ...; tx.AcquireFast() or tx.Acquire(w)
//	k := tx.Key(db, key); ... read and write through k ...
//	tx.Commit() or tx.Rollback()
//
// Bytes that a Tx or a Key hands out are views: they live until the transaction
// ends, or until the same key is written in it. Keys' names handed to Add must
// live until then too.
type Tx struct {
	s    *Store
	mode mode

	now int64 // Unix ms, 0: not yet read
	lsn uint64
	// started is when the transaction had all its keys, in ns since the store was
	// made; 0 while it has not. Those who wait for its keys read it.
	started atomic.Int64
	// busyAs, when set, is what those who wait for its keys for too long get
	// instead of ErrBusy.
	busyAs     atomic.Pointer[error]
	generation uint32 // at the gate, of a locked transaction

	keys    []*Key
	spare   []*Key
	index   map[uint64]*Key // by lockHash, when there are many keys
	latched []uint16        // shards whose latches are held, ascending, if there are several keys

	undo      []undo
	journal   []change // of collections, undone apart from the keys
	epoch     uint32   // of the innermost savepoint
	nextEpoch uint32
	effects   []Effect
	events    []Event
	beyond    []beyond // changes that are not of keys
	weight    int64    // see Weight
	weighed   int      // how many effects it counts

	// Whole databases changed by this transaction (alone only).
	flushed []bool  // by physical database
	dbmap   []int32 // logical to physical, once SWAPDB has run

	meter Meter // see SetMeter
	spent bool

	self   waiter
	wanted *Key     // whose lock self waits for
	retry  []keyRef // undeclared keys to lock at the next try
	reruns int
	clash  bool
	// promoted: the clash is a short transaction's, which has to be locked.
	promoted  bool
	allowance int64
	// lateBefore is what Late was before the run alone.
	lateBefore int
	taken      bool // a blocked command took all there was: see DoneLast

	// Hits and Misses count look-ups of reading commands until FlushStats.
	Hits, Misses int64
	// What they were when the transaction began; what is run again counts once.
	hitsBefore, missesBefore int64
}

type keyRef struct {
	db   int
	name []byte
	late bool // it was not declared
}

type undo struct {
	k       *Key
	e       *entry
	val     value // of e, when restore is set
	expire  int64
	room    [roomSize]byte // of e, when val's bytes are in there
	restore bool
	changed bool
	owned   bool
	private bool
	signal  bool
	rel     int64
	saved   uint32
	other   *otherUndo // nil: it is the above that changed
}

// otherUndo is the record of a change that is rarer than that of a key's value.
type otherUndo struct {
	// A change in place: what the bytes at held, nothing else. They may by now
	// belong to a value that the key no longer has.
	at  []byte
	old []byte

	// A change of whole databases.
	flushed []bool
	dbmap   []int32
	whole   bool
	swapA   int // the databases exchanged, or -1
	swapB   int
}

// indexAbove is the number of keys from which on a map finds them.
const indexAbove = 8

// NewTx returns a transaction of s, not begun.
func (s *Store) NewTx() *Tx {
	tx := &Tx{s: s}
	tx.self.tx = tx
	tx.self.granted = make(chan struct{}, 1)
	return tx
}

// Store is the store that tx belongs to.
func (tx *Tx) Store() *Store { return tx.s }

// Begin starts a new transaction. Keys are then added and acquired.
func (tx *Tx) Begin() {
	if tx.mode != idle {
		panic("store: Begin of a transaction that has not ended")
	}
	tx.mode = staging
	tx.reruns, tx.lateBefore = 0, 0
	tx.retry = tx.retry[:0]
	tx.hitsBefore, tx.missesBefore = tx.Hits, tx.Misses
}

// Holds tells whether the transaction has been acquired and has not ended: it may
// hold latches, locks or the gate.
func (tx *Tx) Holds() bool { return tx.mode > staging }

// Add stages a key of a logical database; the same key may be added twice.
func (tx *Tx) Add(db int, name []byte) {
	phys := tx.physical(db)
	hash := tx.s.hash(name)
	// Of another number, after a SWAPDB: one of the two is wrong, and both are looked
	// up anew when the keys are acquired.
	if k := tx.find(phys, hash, name); k == nil || k.logical != db {
		tx.stage(phys, db, hash, name)
	}
}

func (tx *Tx) stage(phys, db int, hash uint64, name []byte) *Key {
	var k *Key
	if n := len(tx.spare); n > 0 {
		k = tx.spare[n-1]
		tx.spare = tx.spare[:n-1]
	} else {
		k = &Key{}
	}
	k.tx, k.db, k.logical, k.hash, k.name = tx, phys, db, hash, name
	k.sh = tx.s.shardOf(hash)
	tx.keys = append(tx.keys, k)
	if len(tx.keys) > indexAbove {
		if len(tx.index) == 0 {
			if tx.index == nil {
				tx.index = make(map[uint64]*Key)
			}
			for _, o := range tx.keys {
				tx.indexKey(o)
			}
		} else {
			tx.indexKey(k)
		}
	}
	return k
}

func (tx *Tx) indexKey(k *Key) {
	h := lockHash(k.hash, k.db)
	k.next = tx.index[h]
	tx.index[h] = k
}

func (tx *Tx) find(phys int, hash uint64, name []byte) *Key {
	if len(tx.keys) > indexAbove {
		for k := tx.index[lockHash(hash, phys)]; k != nil; k = k.next {
			if k.db == phys && bytes.Equal(k.name, name) {
				return k
			}
		}
		return nil
	}
	for _, k := range tx.keys {
		if k.hash == hash && k.db == phys && bytes.Equal(k.name, name) {
			return k
		}
	}
	return nil
}

func (tx *Tx) physical(db int) int {
	if tx.dbmap != nil {
		return int(tx.dbmap[db])
	}
	return tx.s.physical(db)
}

// Effects is the number of changes recorded so far, those undone not counted.
func (tx *Tx) Effects() int { return len(tx.effects) }

// Reruns is how often the transaction has begun anew.
func (tx *Tx) Reruns() int { return tx.reruns }

// Late is the number of keys that the transaction reached without having
// declared them, in this run or in those before it. One that runs alone declares
// nothing: there it is what the runs before had found.
func (tx *Tx) Late() int {
	if tx.mode == alone {
		return tx.lateBefore
	}
	n := len(tx.retry)
	for _, k := range tx.keys {
		if k.late {
			n++
		}
	}
	return n
}

// Key returns the handle of an acquired key. To ask for another is a broken
// invariant: the key specs of the command are wrong.
func (tx *Tx) Key(db int, name []byte) *Key {
	if k := tx.sole(db, name); k != nil {
		return k
	}
	phys := tx.physical(db)
	hash := tx.s.hash(name)
	if k := tx.find(phys, hash, name); k != nil {
		return k
	}
	if tx.mode == alone {
		if err := tx.Reach(db, name); err == nil {
			return tx.find(phys, hash, name)
		}
	}
	panic("store: a command touched a key that its key specs do not name")
}

// sole is the transaction's only key, if that is the one asked for: the case that
// needs no hash.
func (tx *Tx) sole(db int, name []byte) *Key {
	if len(tx.keys) == 1 {
		k := tx.keys[0]
		if k.logical == db && tx.dbmap == nil && sameName(k.name, name) {
			return k
		}
	}
	return nil
}

// sameName tells whether two names are equal. A script's command names its key by the
// bytes that the script was given.
func sameName(a, b []byte) bool {
	return len(a) == len(b) && (unsafe.SliceData(a) == unsafe.SliceData(b) || string(a) == string(b))
}

// Now is the transaction's time in Unix ms: read once, after all its locks.
func (tx *Tx) Now() int64 {
	if tx.now == 0 {
		tx.now = tx.s.clock.NowMilli()
	}
	return tx.now
}

// Fence draws a fencing number, greater than all drawn before.
func (tx *Tx) Fence() int64 { return tx.s.fence.draw() }

// LSN is the newest commit in what the transaction has seen or done; a reply
// that tells of it waits until the log is durable up to there.
func (tx *Tx) LSN() uint64 { return tx.lsn }

// Emit puts an event into the outbox. Its bytes must be the event's own.
func (tx *Tx) Emit(ev Event) {
	n := int(unsafe.Sizeof(ev)) + len(ev.Channel) + len(ev.Payload) + ev.Weight
	tx.weigh(n)
	tx.Alloc(n)
	tx.events = append(tx.events, ev)
}
