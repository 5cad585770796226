package storetest

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/latchkey-proxy/latchkey/store"
)

// Open makes the store under test, empty. Each call makes another.
type Open func(o store.Options) (*store.Store, error)

// Run runs the suite on the stores that open makes.
func Run(t *testing.T, open Open) {
	sections := []struct {
		name  string
		tests []test
	}{
		{"transactions", transactionTests},
		{"undo", undoTests},
		{"effects", effectTests},
		{"beyond", beyondTests},
		{"waiting", waitingTests},
		{"blocked", blockedTests},
		{"parking", parkingTests},
		{"undeclared keys", reachTests},
		{"gate", gateTests},
		{"databases", databaseTests},
		{"expiry", expiryTests},
		{"watch", watchTests},
		{"scan", scanTests},
	}
	for _, s := range sections {
		t.Run(s.name, func(t *testing.T) {
			for _, c := range s.tests {
				t.Run(c.name, func(t *testing.T) {
					if c.real {
						c.run(newFixture(t, open))
						return
					}
					synctest.Test(t, func(t *testing.T) { c.run(newFixture(t, open)) })
				})
			}
		})
	}
	t.Run("model", func(t *testing.T) { testModel(t, open) })
}

type test struct {
	name string
	run  func(f *fixture)
	real bool // many goroutines at full speed rather than a bubble
}

// start is the time on a fixture's clock when a test begins.
const start = 1_700_000_000_000

// fixture is a store with a clock that stands still, a log that keeps what it is
// given and may be told to fail, and a sink that remembers.
type fixture struct {
	*testing.T
	open  Open
	s     *store.Store
	clock *store.ManualClock
	log   *failingLog
	sink  *memorySink
}

func newFixture(t *testing.T, open Open) *fixture {
	t.Helper()
	f := &fixture{T: t, open: open, clock: store.NewManualClock(start), log: &failingLog{}, sink: &memorySink{}}
	f.log.Keep = true
	var err error
	if f.s, err = open(store.Options{Clock: f.clock, Log: f.log, Sink: f.sink}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.s.Close)
	return f
}

// failingLog is a MemoryLog that refuses an append while fail is set.
type failingLog struct {
	store.MemoryLog
	fail error

	keepEffects bool // for a test of one goroutine
	effects     []store.Effect
}

func (l *failingLog) Append(effects []store.Effect) (uint64, error) {
	if l.fail != nil {
		return 0, l.fail
	}
	if l.keepEffects {
		for _, e := range effects {
			e.Key, e.Value = bytes.Clone(e.Key), bytes.Clone(e.Value)
			l.effects = append(l.effects, e)
		}
	}
	return l.MemoryLog.Append(effects)
}

// records are the log's records: its commands, divided by bars.
func (f *fixture) records() []string {
	var out []string
	for _, rec := range f.log.Records() {
		var cmds []string
		for _, cmd := range splitRecord(rec) {
			cmds = append(cmds, strings.Join(cmd, " "))
		}
		out = append(out, strings.Join(cmds, " | "))
	}
	return out
}

// splitRecord parses the commands of a record, which is RESP without line ends
// in its values.
func splitRecord(rec string) (cmds [][]string) {
	lines := strings.Split(strings.TrimSuffix(rec, "\r\n"), "\r\n")
	for i := 0; i < len(lines); {
		n, _ := strconv.Atoi(strings.TrimPrefix(lines[i], "*"))
		var cmd []string
		for j := range n {
			cmd = append(cmd, lines[i+2+2*j])
		}
		cmds = append(cmds, cmd)
		i += 1 + 2*n
	}
	return cmds
}

// memorySink keeps the keyspace events as "event key" and published messages as
// they are.
type memorySink struct {
	mu  sync.Mutex
	got []string
}

func (m *memorySink) Deliver(ev *store.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got = append(m.got, string(ev.Channel)+" "+string(ev.Payload))
}

func (m *memorySink) take() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.got
	m.got = nil
	return out
}

// lock returns a transaction that holds the locks of keys of database 0.
func (f *fixture) lock(keys ...string) *store.Tx {
	f.Helper()
	tx := f.s.NewTx()
	if err := lockIn(tx, nil, keys...); err != nil {
		f.Fatalf("locking %q: %v", keys, err)
	}
	return tx
}

// lockIn begins tx and waits for the locks of the keys.
func lockIn(tx *store.Tx, w *store.Wait, keys ...string) error {
	tx.Begin()
	for _, k := range keys {
		tx.Add(0, []byte(k))
	}
	return tx.Acquire(w)
}

// latch returns a short transaction on keys of database 0.
func (f *fixture) latch(keys ...string) *store.Tx {
	f.Helper()
	tx, ok := f.tryLatch(keys...)
	if !ok {
		f.Fatalf("%q: a key is locked, or the gate is closed", keys)
	}
	return tx
}

func (f *fixture) tryLatch(keys ...string) (*store.Tx, bool) {
	tx := f.s.NewTx()
	tx.Begin()
	for _, k := range keys {
		tx.Add(0, []byte(k))
	}
	if !tx.AcquireFast() {
		tx.Rollback()
		return nil, false
	}
	return tx, true
}

// alone returns a transaction beside which no other runs.
func (f *fixture) alone() *store.Tx {
	f.Helper()
	tx := f.s.NewTx()
	tx.Begin()
	if err := tx.AcquireAll(nil); err != nil {
		f.Fatalf("closing the gate: %v", err)
	}
	return tx
}

func (f *fixture) commit(tx *store.Tx) {
	f.Helper()
	if err := tx.Commit(); err != nil {
		f.Fatalf("commit: %v", err)
	}
}

func at(tx *store.Tx, key string) *store.Key { return tx.Key(0, []byte(key)) }

func (f *fixture) set(key, value string) { f.setTTL(key, value, store.NoTTL) }

func (f *fixture) setTTL(key, value string, ttl store.TTL) {
	f.Helper()
	tx := f.latch(key)
	at(tx, key).SetString([]byte(value), ttl)
	f.commit(tx)
}

const absent = "(absent)"

// get is the committed value of a key of database 0.
func (f *fixture) get(key string) string {
	f.Helper()
	tx := f.latch(key)
	defer tx.Rollback()
	return show(at(tx, key))
}

func show(k *store.Key) string {
	if !k.Exists() {
		return absent
	}
	return string(k.Str())
}

func (f *fixture) want(key, value string) {
	f.Helper()
	if got := f.get(key); got != value {
		f.Errorf("%s is %q, want %q", key, got, value)
	}
}

func (f *fixture) wantErr(what string, got, want error) {
	f.Helper()
	if got != want {
		f.Errorf("%s: %v, want %v", what, got, want)
	}
}

func equal[T comparable](f *fixture, what string, got, want []T) {
	f.Helper()
	same := len(got) == len(want)
	for i := 0; same && i < len(got); i++ {
		same = got[i] == want[i]
	}
	if !same {
		f.Errorf("%s\n have %v\n want %v", what, got, want)
	}
}
