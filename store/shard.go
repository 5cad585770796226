package store

import "sync"

const (
	shardBits  = 8
	shardCount = 1 << shardBits
)

// shard holds the entries of all databases whose keys hash to it.
type shard struct {
	latch sync.Mutex

	// All below is read and written under the latch.
	dbs     []index             // by physical database
	vol     []*entry            // entries that have an expiry, in no order
	locks   map[uint64]*keyLock // by lockHash
	watch   map[uint64]*watchedKey
	blocked map[uint64]*blockedKey
	lsn     uint64 // newest commit that changed this shard

	index uint16
	_     [48]byte // a shard's latch shares no cache line with another's
}

// shardOf is where the keys with a hash are.
func (s *Store) shardOf(hash uint64) *shard { return &s.shards[hash>>(64-shardBits)] }

func (sh *shard) get(db int, hash uint64, name []byte) *entry {
	return sh.dbs[db].get(hash, name)
}

// put installs e as the value of its key in place of old, which is the entry
// there now or nil.
func (sh *shard) put(hash uint64, e, old *entry) {
	if old != e {
		if old != nil {
			e.vol = old.vol
			if e.vol >= 0 {
				sh.vol[e.vol] = e
			}
		} else {
			e.vol = -1
		}
		sh.dbs[e.db].set(hash, e, old)
	}
	switch {
	case e.expire != 0 && e.vol < 0:
		e.vol = int32(len(sh.vol))
		sh.vol = append(sh.vol, e)
	case e.expire == 0 && e.vol >= 0:
		sh.dropVolatile(e)
	}
}

// remove deletes old, which is installed.
func (sh *shard) remove(hash uint64, old *entry) {
	sh.dbs[old.db].remove(hash, old)
	if old.vol >= 0 {
		sh.dropVolatile(old)
	}
}

func (sh *shard) dropVolatile(e *entry) {
	last := len(sh.vol) - 1
	moved := sh.vol[last]
	sh.vol[e.vol] = moved
	moved.vol = e.vol
	sh.vol[last] = nil
	sh.vol = sh.vol[:last]
	e.vol = -1
	// A list that was once huge is not kept huge.
	if cap(sh.vol) > 1024 && len(sh.vol) < cap(sh.vol)/4 {
		sh.vol = append(make([]*entry, 0, cap(sh.vol)/2), sh.vol...)
	}
}

// clear empties a database and returns how many entries and bytes went.
func (sh *shard) clear(db int) (n, bytes int64) {
	x := &sh.dbs[db]
	for _, slot := range x.all() {
		e := slot.e
		if e == nil {
			continue
		}
		n++
		bytes += e.size()
		if e.vol >= 0 {
			sh.dropVolatile(e)
		}
	}
	x.clear()
	return n, bytes
}
