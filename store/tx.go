package store

import (
	"bytes"
	"errors"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"
)

// ErrConflict: a key that was not acquired in the beginning is held by another
// transaction. Everything must be rolled back and run again; Again does so.
var ErrConflict = errors.New("store: undeclared key is held by another transaction")

// ErrLogFailed: the effect log refused the append; the transaction was rolled
// back.
var ErrLogFailed = errors.New("store: effect log refused the append")

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
	latched []uint16        // shards whose latches are held, ascending

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
	restore bool
	changed bool
	owned   bool
	private bool
	signal  bool
	rel     int64
	saved   uint32

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

// AcquireFast takes the latches of all staged keys if none of them is locked.
// It never waits for another transaction. When it returns false, nothing is
// held and Acquire must be used. Between it and the end of the transaction the
// goroutine must not block, nor run for long.
func (tx *Tx) AcquireFast() bool {
	if len(tx.keys) == 1 {
		k := tx.keys[0]
		sh := k.sh
		sh.latch.Lock()
		if tx.s.gate.closed.Load() || (len(sh.locks) != 0 && sh.findLock(lockHash(k.hash, k.db), k.db, k.name) != nil) || tx.physical(k.logical) != k.db {
			sh.latch.Unlock()
			return false
		}
		tx.shorten()
		tx.lsn = max(tx.lsn, sh.lsn)
		tx.latched = append(tx.latched[:0], sh.index)
		k.load()
		return true
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

func (tx *Tx) unlatch() {
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

// Reach makes a key usable that was not acquired in the beginning. A locked
// transaction tries to lock the key in place; a short one is promoted. ErrConflict
// means that the whole transaction must be undone and run again (see Again): every
// further Reach answers the same.
func (tx *Tx) Reach(db int, name []byte) error {
	if tx.clash {
		return ErrConflict
	}
	if tx.sole(db, name) != nil {
		return nil
	}
	phys := tx.physical(db)
	hash := tx.s.hash(name)
	if tx.find(phys, hash, name) != nil {
		return nil
	}
	switch tx.mode {
	case short:
		return tx.Promote()
	case alone:
		k := tx.stage(phys, db, hash, bytes.Clone(name))
		k.sh.latch.Lock()
		k.load()
		k.sh.latch.Unlock()
		return nil
	case locked:
	default:
		panic("store: Reach in a transaction without key locks")
	}
	name = bytes.Clone(name)
	k := tx.stage(phys, db, hash, name)
	k.late = true
	k.sh.latch.Lock()
	defer k.sh.latch.Unlock()
	h := lockHash(hash, phys)
	if !mutantNoKeyLock {
		if k.sh.findLock(h, phys, name) != nil {
			tx.clash = true
			tx.unstage(k)
			tx.retry = append(tx.retry, keyRef{db, name, true})
			return ErrConflict
		}
		k.lock = k.sh.addLock(h, phys, name, tx)
	}
	k.load()
	return nil
}

// unstage takes back the newest stage.
func (tx *Tx) unstage(k *Key) {
	if len(tx.keys) > indexAbove {
		h := lockHash(k.hash, k.db)
		if k.next == nil {
			delete(tx.index, h)
		} else {
			tx.index[h] = k.next
		}
	}
	tx.keys = tx.keys[:len(tx.keys)-1]
	if len(tx.keys) == indexAbove {
		clear(tx.index)
		for _, o := range tx.keys {
			o.next = nil
		}
	}
	k.reset()
	tx.spare = append(tx.spare, k)
}

// Clash tells whether a Reach has failed.
func (tx *Tx) Clash() bool { return tx.clash }

// RequireAll makes the transaction run again alone: something in it concerns
// the whole keyspace. It returns ErrConflict unless the transaction already is
// alone, when it returns nil.
func (tx *Tx) RequireAll() error {
	if tx.mode == alone {
		return nil
	}
	tx.clash, tx.promoted = true, false
	tx.reruns = rerunsBeforeAlone
	return ErrConflict
}

const rerunsBeforeAlone = 3

// Again ends a transaction in which Reach, RequireAll or Spend failed, undone, and
// begins and acquires it anew with the touched keys declared; after three such
// reruns it runs alone. A short transaction that was promoted comes back locked,
// which is no rerun. On an error nothing is held.
func (tx *Tx) Again(w *Wait) error {
	refs := make([]keyRef, 0, len(tx.keys)+len(tx.retry))
	for _, k := range tx.keys {
		refs = append(refs, keyRef{k.logical, k.name, k.late})
	}
	refs = append(refs, tx.retry...)
	reruns, late := tx.reruns, tx.Late()
	if tx.promoted {
		tx.s.Counter.Promotions.Add(1)
	} else {
		reruns++
		tx.s.Counter.Reruns.Add(1)
	}
	tx.Rollback()
	tx.Hits, tx.Misses = tx.hitsBefore, tx.missesBefore
	tx.Begin()
	tx.reruns = reruns
	if reruns > rerunsBeforeAlone {
		tx.lateBefore = late
		return tx.AcquireAll(w)
	}
	for _, r := range refs {
		tx.addAgain(r)
	}
	return tx.Acquire(w)
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
		if k.logical == db && bytes.Equal(k.name, name) && tx.dbmap == nil {
			return k
		}
	}
	return nil
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
	tx.weigh(int(unsafe.Sizeof(ev)) + len(ev.Channel) + len(ev.Payload) + ev.Weight)
	tx.events = append(tx.events, ev)
}

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
	if len(tx.undo) == 0 && len(tx.effects) == 0 {
		if len(tx.events) == 0 {
			tx.letGo()
			return nil
		}
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
		tx.journal = drop(tx.journal)
		tx.effects = drop(tx.effects)
		tx.events = drop(tx.events)
		tx.beyond = drop(tx.beyond)
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

// drop empties a slice; one that was once large is let go.
func drop[T any](s []T) []T {
	if len(s) == 0 && cap(s) <= 256 {
		return s
	}
	if cap(s) > 256 {
		return nil
	}
	clear(s)
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
