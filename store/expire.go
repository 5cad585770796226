package store

import (
	"slices"
	"time"
)

// expiryCycle is the state of active expiry: it belongs to the one goroutine
// that calls ExpireCycle.
type expiryCycle struct {
	at      [shardCount]int // where the next sample of a shard begins
	effects []Effect
	dead    []*entry
}

const (
	expirySample = 20 // entries looked at under one hold of a latch
	expiryRepeat = expirySample / 4
)

// ExpireCycle removes expired entries: a sample of every shard, and more of a
// shard for as long as more than a quarter of a sample had expired and the
// budget lasts. Call it from one goroutine, ten times a second or so. It
// returns how many entries it removed.
func (s *Store) ExpireCycle(budget time.Duration) int {
	start := time.Now()
	removed := 0
	for i := range s.shards {
		for {
			n := s.expireShard(&s.shards[i])
			removed += n
			if n <= expiryRepeat || time.Since(start) > budget {
				break
			}
		}
	}
	return removed
}

func (s *Store) expireShard(sh *shard) int {
	sh.latch.Lock()
	n := len(sh.vol)
	if n == 0 || s.gate.closed.Load() {
		sh.latch.Unlock()
		return 0
	}
	c := &s.cycle
	now := s.clock.NowMilli()
	at := c.at[sh.index]
	if at >= n {
		at = 0
	}
	c.dead, c.effects = c.dead[:0], c.effects[:0]
	for range min(n, expirySample) {
		e := sh.vol[at]
		if e.expire <= now && !sh.isLocked(s, e) {
			c.dead = append(c.dead, e)
			c.effects = append(c.effects, Effect{Op: OpDel, DB: s.logical(int(e.db)), Key: []byte(e.key)})
		}
		at++
		if at == n {
			at = 0
		}
	}
	c.at[sh.index] = at
	if len(c.dead) == 0 {
		sh.latch.Unlock()
		return 0
	}
	told := s.Notify()&NotifyExpired != 0
	if told {
		s.outbox.mu.Lock()
	}
	lsn, err := s.log.Append(c.effects)
	if told {
		if err == nil {
			for i := range c.effects {
				s.outbox.queue = append(s.outbox.queue, sealed{lsn, Event{
					Kind: EventKeyspace, DB: c.effects[i].DB, Class: NotifyExpired,
					Channel: []byte("expired"), Payload: c.effects[i].Key,
				}})
			}
		}
		s.outbox.mu.Unlock()
	}
	if err != nil { // they stay, absent to readers, until the log is well again
		sh.latch.Unlock()
		return 0
	}
	for _, e := range c.dead {
		db, size := int(e.db), e.size()
		hash := s.hash([]byte(e.key))
		sh.remove(hash, e)
		s.account(db, -1, -1, -size)
		if len(sh.watch) != 0 {
			sh.touchWatched(db, hash, []byte(e.key), true)
		}
		if len(sh.blocked) != 0 {
			h := lockHash(hash, db)
			if bk := sh.findBlocked(h, db, []byte(e.key)); bk != nil {
				sh.handOver(sh.addLock(h, db, bk.name, nil), append([]*Blocked(nil), bk.queue...))
			}
		}
	}
	sh.lsn = max(sh.lsn, lsn)
	dead := len(c.dead)
	clear(c.dead)
	sh.latch.Unlock()
	s.Counter.Expired.Add(int64(dead))
	if told {
		s.drain()
	}
	return dead
}

func (sh *shard) isLocked(s *Store, e *entry) bool {
	if len(sh.locks) == 0 {
		return false
	}
	name := []byte(e.key)
	return sh.findLock(lockHash(s.hash(name), int(e.db)), int(e.db), name) != nil
}

// logical is the number under which a physical database is known now.
func (s *Store) logical(phys int) int { return slices.Index(s.dbmap, int32(phys)) }
