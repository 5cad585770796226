package store

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Options configure a Store. The zero value is useful.
type Options struct {
	// Databases is how many there are; default 16.
	Databases int
	// Clock; default a new SystemClock.
	Clock Clock
	// Log receives the effects; default a MemoryLog.
	Log EffectLog
	// Sink receives the events of commits; default none.
	// A keyspace event may be of a class that only a listener asks for: see
	// Notified.
	Sink Sink
	// Random draws a number from 0 to n-1, by any goroutine; default
	// math/rand/v2.
	Random func(n int) int
	// FenceMark is the persisted high-water mark of fencing numbers.
	FenceMark int64
	// Allowance, when set, is drawn from by every short transaction instead of
	// the constant Allowance, by any goroutine: 0 locks the keys of every script,
	// and tests draw at random, to have scripts promoted anywhere.
	Allowance func() int64
}

// Store is the keyspace. All its methods may be called by any goroutine.
type Store struct {
	shards    [shardCount]shard
	seed      maphash.Seed
	gate      gate
	clock     Clock
	log       EffectLog
	sink      Sink
	random    func(n int) int
	allowance func() int64
	fence     fence
	outbox    outbox

	dbmap    []int32        // logical to physical database; changed with the gate closed
	swapping sync.RWMutex   // dbmap and the watched keys change together
	sizes    []atomic.Int64 // entries by physical database
	vols     []atomic.Int64 // entries with an expiry by physical database

	used      atomic.Int64 // bytes, by our own account
	peak      atomic.Int64
	maxMemory atomic.Int64
	second    atomic.Uint32 // coarse clock of accesses, in seconds

	notify  atomic.Uint32 // classes of keyspace events that the sink asks for
	heard   atomic.Uint32 // and those that the listener asks for
	listen  atomic.Pointer[func(ev *Event)]
	Counter Counters

	cycle  expiryCycle
	born   time.Time
	closed chan struct{}
	once   sync.Once
}

// Counters are the store's statistics; INFO reads them.
type Counters struct {
	Hits, Misses   atomic.Int64 // key look-ups by reading commands
	Expired        atomic.Int64 // entries removed because their time had passed
	Commits        atomic.Int64 // transactions that changed something
	Rollbacks      atomic.Int64 // transactions undone
	Reruns         atomic.Int64 // transactions run again because of undeclared keys
	Promotions     atomic.Int64 // short transactions run again with key locks
	Lengthened     atomic.Int64 // short transactions that took key locks where they stood
	LockWaits      atomic.Int64 // times a transaction stood in a key's queue
	LockWaiting    atomic.Int64 // transactions that stand in a queue now
	BlockedClients atomic.Int64 // blocked commands now
}

// New returns an empty store.
func New(o Options) (*Store, error) {
	if o.Databases == 0 {
		o.Databases = 16
	}
	if o.Databases < 1 || o.Databases > 1<<15 {
		return nil, fmt.Errorf("store: Options.Databases is %d, want 1 to 32768", o.Databases)
	}
	if o.Clock == nil {
		o.Clock = NewSystemClock()
	}
	if o.Log == nil {
		o.Log = &MemoryLog{}
	}
	if o.Random == nil {
		o.Random = rand.IntN
	}
	s := &Store{
		seed: maphash.MakeSeed(), clock: o.Clock, log: o.Log, sink: o.Sink, random: o.Random, allowance: o.Allowance,
		dbmap:  make([]int32, o.Databases),
		sizes:  make([]atomic.Int64, o.Databases),
		vols:   make([]atomic.Int64, o.Databases),
		closed: make(chan struct{}), born: time.Now(),
	}
	for i := range s.dbmap {
		s.dbmap[i] = int32(i)
	}
	for i := range s.shards {
		s.shards[i].index = uint16(i)
		s.shards[i].dbs = make([]index, o.Databases)
	}
	s.gate.init()
	s.fence.start(o.FenceMark, o.Clock.NowMicro())
	s.Tick()
	return s, nil
}

// Close ends all waiting in the store with ErrCancelled.
func (s *Store) Close() { s.once.Do(func() { close(s.closed) }) }

// Databases is the number of logical databases.
func (s *Store) Databases() int { return len(s.dbmap) }

// Clock is the store's clock.
func (s *Store) Clock() Clock { return s.clock }

// Tick sets the coarse clock of accesses. Call it about once a second.
func (s *Store) Tick() { s.second.Store(uint32(s.clock.NowMilli() / 1000)) }

// Wait returns when all up to lsn is durable by the log's policy.
func (s *Store) Wait(lsn uint64) error { return s.log.Wait(lsn) }

// Size is the number of entries in a logical database, expired ones that
// nobody has removed yet included, as DBSIZE has it in Redis.
func (s *Store) Size(db int) int64 { return s.sizes[s.physical(db)].Load() }

// Volatile is the number of entries with an expiry in a logical database.
func (s *Store) Volatile(db int) int64 { return s.vols[s.physical(db)].Load() }

func (s *Store) physical(db int) int { return int(atomic.LoadInt32(&s.dbmap[db])) }

// UsedMemory is what all entries take, in bytes, by our own account.
func (s *Store) UsedMemory() int64 { return s.used.Load() }

// PeakMemory is the largest UsedMemory seen at a Tick or a look.
func (s *Store) PeakMemory() int64 {
	used := s.used.Load()
	for {
		peak := s.peak.Load()
		if used <= peak {
			return peak
		}
		if s.peak.CompareAndSwap(peak, used) {
			return used
		}
	}
}

// SetMaxMemory sets the limit that OverLimit compares with; 0 is none.
func (s *Store) SetMaxMemory(bytes int64) { s.maxMemory.Store(bytes) }

// fixedMemory is what an empty store takes, in bytes, counted with the entries
// against maxmemory.
const fixedMemory = int64(unsafe.Sizeof(Store{}))

// OverLimit tells whether writes that need memory must be refused. Nothing is
// ever evicted: to evict a lock would give it to two holders.
func (s *Store) OverLimit() bool {
	limit := s.maxMemory.Load()
	return limit > 0 && s.used.Load()+fixedMemory > limit
}

// SetNotify sets the classes of keyspace events that transactions emit; the
// bits are the sink's.
func (s *Store) SetNotify(classes uint32) { s.notify.Store(classes) }

// Notify returns the classes of keyspace events that transactions emit: those of
// SetNotify and of Listen.
func (s *Store) Notify() uint32 { return s.notify.Load() | s.heard.Load() }

// Notified returns the classes set by SetNotify.
func (s *Store) Notified() uint32 { return s.notify.Load() }

// SetListener has keyspace events told to f, beside the sink and under the same
// rules, once Listen names their classes.
func (s *Store) SetListener(f func(ev *Event)) { s.listen.Store(&f) }

// Listen sets the classes of keyspace events that the listener is told.
func (s *Store) Listen(classes uint32) { s.heard.Store(classes) }

// elapsed is the age of the store in ns, for how long keys are held; nothing
// that is stored depends on it.
func (s *Store) elapsed() int64 { return int64(time.Since(s.born)) }

func (s *Store) hash(name []byte) uint64 { return maphash.Bytes(s.seed, name) }

func (s *Store) account(db int, entries, volatile, bytes int64) {
	if entries != 0 {
		s.sizes[db].Add(entries)
	}
	if volatile != 0 {
		s.vols[db].Add(volatile)
	}
	if bytes != 0 {
		s.used.Add(bytes)
	}
}
