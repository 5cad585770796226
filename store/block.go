package store

import (
	"bytes"
	"sync/atomic"
	"time"
)

// Blocked is a command that waits for a key to become what it needs. It stands
// in the queue of each of its keys, keeps its place until it is done, and is
// woken by a transaction that changes or deletes one of them, or calls Key.Signal:
// the key's lock goes from that transaction straight to it, before anybody else.
// It is also woken when a key expires, to the millisecond.
type Blocked struct {
	tx      *Tx
	state   atomic.Int32
	granted chan struct{}
	lock    *keyLock // handed over; nil after a SWAPDB, when all must be looked at anew
	sh      *shard
	refs    []blockedRef // the keys it waits for
	hold    []keyRef     // all keys that a try holds

	generation uint32 // at the gate, once a lock was handed over
}

type blockedRef struct {
	sh      *shard
	hash    uint64 // of the key
	db      int    // physical
	logical int
	name    []byte
}

const (
	blockedWaiting int32 = iota
	blockedGranted
	blockedGone
)

// blockedKey is the queue of one key of a shard, under its latch.
type blockedKey struct {
	db    int
	name  []byte
	queue []*Blocked
	next  *blockedKey

	// The timer of the key's expiry, in Unix ms, when it has one.
	timer  *time.Timer
	expiry int64
}

// Outcome is what a blocked command found when it tried.
type Outcome uint8

// The outcomes of a try.
const (
	// NotYet: nothing was changed; the command goes on waiting.
	NotYet Outcome = iota
	// Done: the command is through; others may try for what is left.
	Done
	// DoneLast: the command is through and left nothing for others.
	DoneLast
)

// Await runs try in transactions of tx until it is through: once at once, and
// again each time that a commit changes one of the keys, or that one of them
// expires. The transaction is committed when try is done and undone when it is
// not. An error of try undoes and ends the wait; ErrTimeout comes when w.Timeout
// has passed, ErrCancelled when w.Done is closed.
//
// The names must live until Await returns.
func (tx *Tx) Await(db int, names [][]byte, w *Wait, try func() (Outcome, error)) error {
	b := tx.newBlocked(db, names)
	for _, name := range names {
		b.hold = append(b.hold, keyRef{db: db, name: name})
	}
	return b.run(w, try, false)
}

// Park is Await for a transaction that has its keys already, has been tried, and
// could not be done yet: it is undone. Tries hold all keys that it holds now, and
// wait for those named, which must be among them.
func (tx *Tx) Park(db int, names [][]byte, w *Wait, try func() (Outcome, error)) error {
	b := tx.newBlocked(db, names)
	for _, k := range tx.keys {
		b.hold = append(b.hold, keyRef{db: k.logical, name: k.name})
	}
	if tx.mode == short {
		// It has held no lock that could be handed to it, and so has to look
		// again, with locks, when it stands in the queues.
		tx.Rollback()
		return b.run(w, try, false)
	}
	return b.run(w, try, true)
}

func (tx *Tx) newBlocked(db int, names [][]byte) *Blocked {
	b := &Blocked{tx: tx, granted: make(chan struct{}, 1), refs: make([]blockedRef, len(names))}
	for i, name := range names {
		b.refs[i].logical, b.refs[i].name = db, name
	}
	return b
}

// run tries until it is done. tried: the transaction holds its keys, and a try
// has been made.
func (b *Blocked) run(w *Wait, try func() (Outcome, error), tried bool) error {
	tx := b.tx
	s := tx.s
	var timeout <-chan time.Time
	if w != nil && w.Timeout > 0 {
		timer := time.NewTimer(w.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	registered := false
	defer func() {
		if registered {
			b.unregister()
			s.Counter.BlockedClients.Add(-1)
		}
	}()
	handed := tried
	for {
		if !handed {
			tx.Begin()
			for _, r := range b.hold {
				tx.Add(r.db, r.name)
			}
			if err := tx.Acquire(w); err != nil {
				return err
			}
		}
		var out Outcome
		var err error
		if !tried {
			out, err = try()
		}
		tried = false
		for err == nil && tx.clash {
			if err = tx.Again(w); err != nil {
				return err
			}
			out, err = try()
		}
		if err != nil {
			tx.Rollback()
			return err
		}
		if out != NotYet {
			if out == DoneLast {
				tx.endHandoff()
			}
			return tx.Commit()
		}
		if !registered {
			b.register() // before the locks go, so that no signal is missed
			registered = true
			s.Counter.BlockedClients.Add(1)
		}
		b.watchExpiry()
		b.state.Store(blockedWaiting)
		tx.Rollback()
		if err := b.wait(w, timeout); err != nil {
			return err
		}
		if handed = b.lock != nil; handed {
			handed = b.adopt()
			continue
		}
		b.unregister()
		registered = false
		s.Counter.BlockedClients.Add(-1)
	}
}

func (b *Blocked) wait(w *Wait, timeout <-chan time.Time) error {
	defer w.parked(true)()
	var err error
	select {
	case <-b.granted:
		return nil
	case <-w.done():
		err = ErrCancelled
	case <-b.tx.s.closed:
		err = ErrCancelled
	case <-timeout:
		err = ErrTimeout
	case err = <-w.unblocked():
	case <-w.abandoned():
		err = ErrUnblocked
	}
	if !b.state.CompareAndSwap(blockedWaiting, blockedGone) {
		// A key was handed over in the same moment: pass it on.
		<-b.granted
		if b.lock != nil {
			b.adoptLock()
			b.tx.Rollback()
		}
	}
	return err
}

// take hands the lock l to b unless b has another already or has gone. Under
// the latch of l.
func (b *Blocked) take(sh *shard, l *keyLock) bool {
	if !b.state.CompareAndSwap(blockedWaiting, blockedGranted) {
		return false
	}
	b.generation = b.tx.s.gate.follow()
	l.owner = b.tx
	for i := range b.refs {
		if b.refs[i].db == l.db && bytes.Equal(b.refs[i].name, l.name) {
			l.name = b.refs[i].name
		}
	}
	b.lock, b.sh = l, sh
	b.granted <- struct{}{}
	return true
}

// adoptLock begins b's transaction with the lock that was handed over.
func (b *Blocked) adoptLock() {
	tx := b.tx
	tx.Begin()
	l := b.lock
	logical := 0
	for i := range b.refs {
		if b.refs[i].db == l.db && bytes.Equal(b.refs[i].name, l.name) {
			logical = b.refs[i].logical
		}
	}
	k := tx.stage(l.db, logical, tx.s.hash(l.name), l.name)
	k.lock = l
	tx.mode, tx.generation = locked, b.generation
	tx.start()
	b.sh.latch.Lock()
	k.load()
	b.sh.latch.Unlock()
	b.lock, b.sh = nil, nil
}

// adopt also reaches the other keys. If one of them is held, the lock is passed
// on and false comes back: all are acquired in order then.
func (b *Blocked) adopt() bool {
	b.adoptLock()
	for _, r := range b.hold {
		if b.tx.Reach(r.db, r.name) != nil {
			b.state.Store(blockedGone) // or the hand-over would come straight back
			b.tx.Rollback()
			return false
		}
	}
	return true
}

// register queues b for its keys, where they are now. Its transaction holds them,
// so no SWAPDB can run meanwhile.
func (b *Blocked) register() {
	s := b.tx.s
	for i := range b.refs {
		r := &b.refs[i]
		r.hash = s.hash(r.name)
		r.sh, r.db = s.shardOf(r.hash), s.physical(r.logical)
	}
	for _, r := range b.refs {
		r.sh.latch.Lock()
		h := lockHash(r.hash, r.db)
		bk := r.sh.findBlocked(h, r.db, r.name)
		if bk == nil {
			bk = &blockedKey{db: r.db, name: bytes.Clone(r.name), next: r.sh.blocked[h]}
			if r.sh.blocked == nil {
				r.sh.blocked = make(map[uint64]*blockedKey)
			}
			r.sh.blocked[h] = bk
		}
		bk.queue = append(bk.queue, b)
		r.sh.latch.Unlock()
	}
}

func (b *Blocked) unregister() {
	for _, r := range b.refs {
		r.sh.latch.Lock()
		h := lockHash(r.hash, r.db)
		if bk := r.sh.findBlocked(h, r.db, r.name); bk != nil {
			for i := range bk.queue {
				if bk.queue[i] == b {
					bk.queue = append(bk.queue[:i:i], bk.queue[i+1:]...)
					break
				}
			}
			if len(bk.queue) == 0 {
				r.sh.dropBlocked(h, bk)
			}
		}
		r.sh.latch.Unlock()
	}
}

func (sh *shard) findBlocked(h uint64, db int, name []byte) *blockedKey {
	for bk := sh.blocked[h]; bk != nil; bk = bk.next {
		if bk.db == db && bytes.Equal(bk.name, name) {
			return bk
		}
	}
	return nil
}

func (sh *shard) dropBlocked(h uint64, bk *blockedKey) {
	bk.watch(0, nil)
	p := sh.blocked[h]
	if p == bk {
		if bk.next == nil {
			delete(sh.blocked, h)
		} else {
			sh.blocked[h] = bk.next
		}
		return
	}
	for ; p != nil; p = p.next {
		if p.next == bk {
			p.next = bk.next
			return
		}
	}
}

// blockedOn is the queue of blocked commands of a key as it stands now.
func (sh *shard) blockedOn(k *Key) []*Blocked {
	if len(sh.blocked) == 0 {
		return nil
	}
	bk := sh.findBlocked(lockHash(k.hash, k.db), k.db, k.name)
	if bk == nil {
		return nil
	}
	return append([]*Blocked(nil), bk.queue...)
}

// lookAnew wakes b without a key, for it to begin again. Under the latch of one of
// its queues.
func (b *Blocked) lookAnew() {
	if b.state.CompareAndSwap(blockedWaiting, blockedGranted) {
		b.granted <- struct{}{}
	}
}

// wakeSwapped wakes the commands blocked on keys of exchanged databases: they
// stand in the queue of another database than the one they mean. Under the latch.
func (sh *shard) wakeSwapped(before, after []int32) {
	for _, bk := range sh.blocked {
		for ; bk != nil; bk = bk.next {
			for _, b := range bk.queue {
				for _, r := range b.refs {
					if before[r.logical] != after[r.logical] {
						b.lookAnew()
						break
					}
				}
			}
		}
	}
}

// wakeShort hands a key that has no lock to the first blocked command. Under
// the latch.
func (k *Key) wakeShort() {
	if len(k.sh.blocked) == 0 {
		return
	}
	if queue := k.sh.blockedOn(k); queue != nil {
		k.sh.handOver(k.sh.addLock(lockHash(k.hash, k.db), k.db, k.name, nil), queue)
	}
}

// endHandoff stops the hand-over of all keys of tx: nothing is left to take.
func (tx *Tx) endHandoff() {
	tx.taken = true
	for _, k := range tx.keys {
		if k.lock != nil {
			k.sh.latch.Lock()
			k.lock.handoff = nil
			k.sh.latch.Unlock()
		}
	}
}
