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
	dbs     []map[string]*entry // by physical database, made when needed
	vol     []*entry            // entries that have an expiry, in no order
	locks   map[uint64]*keyLock // by lockHash
	watch   map[uint64]*watchedKey
	blocked map[uint64]*blockedKey
	lsn     uint64 // newest commit that changed this shard

	index uint16
	_     [48]byte // a shard's latch shares no cache line with another's
}

func (sh *shard) get(db int, name []byte) *entry {
	return sh.dbs[db][string(name)]
}

// put installs e as the value of its key in place of old, which is the entry
// there now or nil.
func (sh *shard) put(e, old *entry) {
	m := sh.dbs[e.db]
	if m == nil {
		m = make(map[string]*entry)
		sh.dbs[e.db] = m
	}
	if old != e {
		if old != nil {
			e.vol = old.vol
			if e.vol >= 0 {
				sh.vol[e.vol] = e
			}
		} else {
			e.vol = -1
		}
		m[e.key] = e
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
func (sh *shard) remove(old *entry) {
	delete(sh.dbs[old.db], old.key)
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
	m := sh.dbs[db]
	if len(m) == 0 {
		return 0, 0
	}
	for _, e := range m {
		n++
		bytes += e.size()
		if e.vol >= 0 {
			sh.dropVolatile(e)
		}
	}
	sh.dbs[db] = nil
	return n, bytes
}
