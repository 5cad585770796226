package store

import "time"

// watchExpiry has those who wait for the keys of b woken when these expire. b's
// transaction still holds them; its try is about to be undone.
func (b *Blocked) watchExpiry() {
	for i := range b.refs {
		r := &b.refs[i]
		r.sh.latch.Lock()
		if bk := r.sh.findBlocked(lockHash(r.hash, r.db), r.db, r.name); bk != nil {
			var expiry int64
			if e := r.sh.get(r.db, r.hash, r.name); e != nil {
				expiry = e.expire
			}
			s, ref := b.tx.s, *r
			ref.name = bk.name
			bk.watch(expiry, func() { s.expireBlocked(ref) })
		}
		r.sh.latch.Unlock()
	}
}

// watch sets, moves or (with 0) ends the timer of the key's expiry. Under the
// latch.
func (bk *blockedKey) watch(expiry int64, wake func()) {
	if bk.expiry == expiry {
		return
	}
	if bk.timer != nil {
		bk.timer.Stop()
		bk.timer = nil
	}
	bk.expiry = expiry
	if expiry != 0 && !mutantNoExpiryWake {
		bk.timer = time.AfterFunc(0, wake) // which waits for as long as is left
	}
}

// expireBlocked wakes those who wait for a key when its time has passed, or
// waits for that.
func (s *Store) expireBlocked(r blockedRef) {
	sh := r.sh
	sh.latch.Lock()
	defer sh.latch.Unlock()
	h := lockHash(r.hash, r.db)
	bk := sh.findBlocked(h, r.db, r.name)
	if bk == nil || bk.timer == nil {
		return
	}
	left := time.Duration(0)
	switch now := s.clock.NowMilli(); {
	case bk.expiry > now:
		// Never for longer than this: the clock goes on while the machine sleeps,
		// and timers do not.
		left = min(time.Duration(bk.expiry-now), 60_000) * time.Millisecond
	case s.gate.closed.Load():
		left = time.Millisecond // nobody may be handed a key now
	}
	if left > 0 {
		bk.timer.Reset(left)
		return
	}
	bk.timer, bk.expiry = nil, 0
	queue := append([]*Blocked(nil), bk.queue...)
	if l := sh.findLock(h, r.db, r.name); l != nil {
		if len(l.handoff) == 0 {
			l.handoff = queue // when its owner lets go
		}
		return
	}
	sh.handOver(sh.addLock(h, r.db, bk.name, nil), queue)
}
