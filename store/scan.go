package store

import "slices"

// Scan visits keys of a logical database from cursor on and returns the cursor
// to go on with, 0 at the end. It visits whole shards until at least count keys
// were met; a key that is there from the first to the last call is met, and met
// once. Values are as committed, but for what the transaction itself has
// changed. typ is what TYPE answers. Names are given after the shard's latch was
// released; then the Meter is asked whether to go on.
func (tx *Tx) Scan(db int, cursor uint64, count int, met func(name, typ string)) uint64 {
	phys := tx.physical(db)
	now := tx.Now()
	var found []scanned
	for cursor < shardCount {
		found = tx.scanShard(phys, int(cursor), now, found[:0])
		cursor++
		for _, f := range found {
			met(f.name, f.typ)
		}
		count -= len(found)
		if count <= 0 || !tx.scanned(len(found)) {
			break
		}
	}
	if cursor >= shardCount {
		return 0
	}
	return cursor
}

// What a shard that is visited costs at least, and each key met there.
const (
	shardWork = 16
	keyWork   = 5
)

// scanned charges for a shard where n keys were met.
func (tx *Tx) scanned(n int) bool { return tx.Pay(shardWork + n*keyWork) }

type scanned struct {
	name string
	typ  string // as TYPE answers
}

func (tx *Tx) scanShard(phys, index int, now int64, out []scanned) []scanned {
	sh := &tx.s.shards[index]
	own := tx.changes(phys, sh)
	if tx.flushed == nil || !tx.flushed[phys] {
		sh.latch.Lock()
		tx.lsn = max(tx.lsn, sh.lsn)
		for _, slot := range sh.dbs[phys].all() {
			e := slot.e
			if e == nil {
				continue
			}
			name := e.key
			if e.expire != 0 && e.expire <= now {
				continue
			}
			if own {
				if k := tx.find(phys, tx.s.hash([]byte(name)), []byte(name)); k != nil && k.changed {
					continue
				}
			}
			out = append(out, scanned{name, e.typeName()})
		}
		sh.latch.Unlock()
	}
	if own {
		for _, k := range tx.keys {
			if k.changed && k.db == phys && k.sh == sh && k.e != nil {
				out = append(out, scanned{string(k.name), k.e.typeName()})
			}
		}
	}
	return out
}

// changes tells whether the transaction has changed keys of a shard.
func (tx *Tx) changes(phys int, sh *shard) bool {
	return slices.ContainsFunc(tx.keys, func(k *Key) bool { return k.changed && k.db == phys && k.sh == sh })
}

// RandomKey returns the name of some key of a logical database. Shards are looked
// at in one of many orders: in that of their numbers a shard behind an occupied one
// would hardly ever come up where keys are few.
func (tx *Tx) RandomKey(db int) (string, bool) {
	phys := tx.physical(db)
	start, step := tx.s.random(shardCount), 2*tx.s.random(shardCount/2)+1 // odd: all are visited
	for i := range shardCount {
		at := (start + i*step) % shardCount
		if name, ok := tx.drawKey(phys, at); ok {
			return name, tx.scanned(1)
		}
		found := tx.scanShard(phys, at, tx.Now(), nil)
		if !tx.scanned(len(found)) {
			break
		}
		if len(found) > 0 {
			return found[tx.s.random(len(found))].name, true
		}
	}
	return "", false
}

// drawTries is how many slots of an index are drawn for a key. An eighth of them are
// occupied at least.
const drawTries = 32

// drawKey draws slots of a shard until one holds a key, so that all are as likely
// and none has to be looked at but those drawn. It gives up where that does not help:
// on a shard that is empty, or has expired, or that the transaction has changed.
func (tx *Tx) drawKey(phys, index int) (name string, ok bool) {
	sh := &tx.s.shards[index]
	if tx.flushed != nil && tx.flushed[phys] || tx.changes(phys, sh) {
		return "", false
	}
	now := tx.Now()
	sh.latch.Lock()
	defer sh.latch.Unlock()
	tx.lsn = max(tx.lsn, sh.lsn)
	slots := sh.dbs[phys].all()
	if sh.dbs[phys].n == 0 {
		return "", false
	}
	for range drawTries {
		if e := slots[tx.s.random(len(slots))].e; e != nil && (e.expire == 0 || e.expire > now) {
			return e.key, true
		}
	}
	return "", false
}

// Size is the number of entries of a logical database as tx sees it.
func (tx *Tx) Size(db int) int64 {
	phys := tx.physical(db)
	var n int64
	flushed := tx.flushed != nil && tx.flushed[phys]
	if !flushed {
		n = tx.s.sizes[phys].Load()
	}
	for _, k := range tx.keys {
		if !k.changed || k.db != phys {
			continue
		}
		if k.e != nil {
			n++
		}
		if k.base != nil && !flushed {
			n--
		}
	}
	return n
}
