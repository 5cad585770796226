package histories

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// TestReplay lets clients do what they like, at once and on few keys: single
// commands, transactions, scripts that fail, whole databases; keys expire, and
// the log refuses some of it. Then the effect log, replayed into an empty
// server, must give the same keyspace, and the accounts must agree with it.
func TestReplay(t *testing.T) {
	for i := range rounds() {
		seed := rand.Uint64()
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { replayRound(t, seed, i%2 == 1) }) {
			return
		}
	}
}

func replayRound(t *testing.T, seed uint64, refusing bool) {
	s := start(t)
	s.log.keep = true
	if refusing {
		s.log.refuseSome(20)
	}
	const clients, each = 8, 150
	var load, cycle sync.WaitGroup
	errs := make(chan error, clients)
	for i := range clients {
		c := s.dial()
		load.Go(func() {
			m := &mischief{rnd: rand.New(rand.NewPCG(seed, uint64(i))), c: c, s: s}
			for range each {
				if err := m.something(); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	stop := make(chan struct{})
	cycle.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				s.Store().ExpireCycle(time.Millisecond)
			}
		}
	})
	load.Wait()
	close(stop)
	cycle.Wait()
	select {
	case err := <-errs:
		t.Fatal(err)
	default:
	}
	s.log.refuseSome(0)

	// While a log is replayed no time passes, or a key could expire between two
	// commands that touched it alive.
	again := start(t)
	again.clock.Advance(-firstMilli * time.Millisecond / 2)
	c := again.dial()
	for _, rec := range s.log.records {
		if _, err := c.conn.Write(rec); err != nil {
			t.Fatalf("replay: %v", err)
		}
		again.discard(c, rec)
	}
	again.clock.Advance(time.Duration(s.clock.NowMilli()-again.clock.NowMilli()) * time.Millisecond)

	want, got := s.keyspace(), again.keyspace()
	t.Logf("%d transactions in the log, %d refused by it, %d begun anew, %d undone; %d keys compared",
		len(s.log.records), s.log.refused, s.Store().Counter.Reruns.Load(), s.Store().Counter.Rollbacks.Load(), len(want))
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%s: the log retells %q, the server has %q", name, got[name], want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: the log retells %q, the server has no such key", name, got[name])
		}
	}
	s.balance(len(want))
	again.balance(len(want))
}

// discard reads the replies to a record and fails on an error among them.
func (s *server) discard(c *client, rec []byte) {
	s.t.Helper()
	for n := commands(rec); n > 0; n-- {
		r, err := c.read()
		if err != nil || r.Kind == transcript.Error {
			s.t.Fatalf("replay of %.200q: %q, %v", rec, r.Text, err)
		}
	}
}

// commands counts the commands of a record. Values of these tests hold no line
// that begins with a star.
func commands(rec []byte) int {
	n := 0
	for i, b := range rec {
		if b == '*' && (i == 0 || rec[i-1] == '\n') {
			n++
		}
	}
	return n
}

const replayDatabases = 3

// keyspace is all that can be seen of the keys: "db/name" to value and expiry.
func (s *server) keyspace() map[string]string {
	s.t.Helper()
	c := s.dial()
	all := map[string]string{}
	for db := range replayDatabases {
		s.want(c, "OK", "SELECT", strconv.Itoa(db))
		for _, k := range s.must(c, "KEYS", "*").Elems {
			value, at := s.must(c, "GET", k.Text), s.must(c, "PEXPIRETIME", k.Text)
			all[fmt.Sprintf("%d/%s", db, k.Text)] = textOf(value) + " until " + at.Text
		}
	}
	return all
}

// balance compares the store's accounts with what is there.
func (s *server) balance(keys int) {
	s.t.Helper()
	st := s.Store()
	for st.ExpireCycle(time.Second) > 0 {
	}
	entries, volatile := int64(0), int64(0)
	for db := range st.Databases() {
		entries += st.Size(db)
		volatile += st.Volatile(db)
	}
	if entries != int64(keys) {
		s.t.Errorf("the store counts %d entries, it has %d", entries, keys)
	}
	if volatile < 0 || volatile > entries {
		s.t.Errorf("the store counts %d entries with an expiry among %d", volatile, entries)
	}
	if n := s.waiting(); n != 0 {
		s.t.Errorf("%d transactions stand in a queue, and nobody is there", n)
	}
	s.want(s.dial(), "OK", "FLUSHALL")
	for db := range st.Databases() {
		if n, v := st.Size(db), st.Volatile(db); n != 0 || v != 0 {
			s.t.Errorf("after FLUSHALL database %d counts %d entries, %d with an expiry", db, n, v)
		}
	}
	if n := st.UsedMemory(); n != 0 {
		s.t.Errorf("after FLUSHALL %d bytes are in use by the store's account, want none", n)
	}
}

// mischief is a client that does anything.
type mischief struct {
	rnd *rand.Rand
	c   *client
	s   *server
}

func (m *mischief) key() string   { return "k" + strconv.Itoa(m.rnd.IntN(12)) }
func (m *mischief) value() string { return strconv.Itoa(m.rnd.IntN(1000)) }

// soonMilli is a time near the clock's, past or to come.
func (m *mischief) soonMilli() string {
	return strconv.FormatInt(m.s.clock.NowMilli()+m.rnd.Int64N(400)-50, 10)
}

// something does one thing and reads all replies. Error replies are welcome:
// they must change nothing.
func (m *mischief) something() error {
	switch m.rnd.IntN(12) {
	case 0:
		m.s.clock.Advance(time.Duration(m.rnd.IntN(40)) * time.Millisecond)
		return nil
	case 1:
		return m.transaction()
	case 2:
		return m.do(m.script()...)
	case 3:
		return m.do("SELECT", strconv.Itoa(m.rnd.IntN(replayDatabases)))
	}
	return m.do(m.command()...)
}

func (m *mischief) do(args ...string) error {
	if _, err := m.c.do(args...); err != nil {
		return fmt.Errorf("%.80q: %w", args, err)
	}
	return nil
}

func (m *mischief) transaction() error {
	if m.rnd.IntN(2) == 0 {
		if err := m.do("WATCH", m.key(), m.key()); err != nil {
			return err
		}
	}
	if err := m.do("MULTI"); err != nil {
		return err
	}
	for range 1 + m.rnd.IntN(12) {
		args := m.command()
		if m.rnd.IntN(8) == 0 {
			args = m.script()
		}
		if err := m.do(args...); err != nil {
			return err
		}
	}
	if m.rnd.IntN(8) == 0 {
		return m.do("DISCARD")
	}
	return m.do("EXEC")
}

// script is a script of a few random commands; one in three fails in the end.
// One of its keys is often one that it has not declared.
func (m *mischief) script() []string {
	src := ""
	for range 1 + m.rnd.IntN(4) {
		call := "redis.pcall("
		for i, a := range m.command() {
			if i > 0 {
				call += ", "
			}
			call += strconv.Quote(a)
		}
		src += call + ") "
	}
	if m.rnd.IntN(3) == 0 {
		src += "error('on purpose')"
	}
	return []string{"EVAL", src, "2", m.key(), m.key()}
}

func (m *mischief) command() []string {
	k, v := m.key(), m.value()
	switch m.rnd.IntN(34) {
	case 0:
		return []string{"SET", k, v}
	case 1:
		return []string{"SET", k, v, "PXAT", m.soonMilli()}
	case 2:
		return []string{"SET", k, v, "PX", "100", "NX"}
	case 3:
		return []string{"SET", k, v, "KEEPTTL"}
	case 4:
		return []string{"SETNX", k, v}
	case 5:
		return []string{"GETSET", k, v}
	case 6:
		return []string{"APPEND", k, v}
	case 7:
		return []string{"SETRANGE", k, strconv.Itoa(m.rnd.IntN(20)), v}
	case 8:
		return []string{"INCR", k}
	case 9:
		return []string{"INCRBYFLOAT", k, "0.5"}
	case 10:
		return []string{"DEL", k, m.key()}
	case 11:
		return []string{"PEXPIRE", k, strconv.Itoa(m.rnd.IntN(200) - 10)}
	case 12:
		return []string{"PEXPIREAT", k, m.soonMilli()}
	case 13:
		return []string{"PERSIST", k}
	case 14:
		return []string{"RENAME", k, m.key()}
	case 15:
		return []string{"RENAMENX", k, m.key()}
	case 16:
		return []string{"COPY", k, m.key(), "DB", strconv.Itoa(m.rnd.IntN(replayDatabases)), "REPLACE"}
	case 17:
		return []string{"MOVE", k, strconv.Itoa(m.rnd.IntN(replayDatabases))}
	case 18:
		return []string{"GETDEL", k}
	case 19:
		return []string{"GETEX", k, "PX", "150"}
	case 20:
		return []string{"SETBIT", k, strconv.Itoa(m.rnd.IntN(100)), "1"}
	case 21:
		return []string{"BITOP", "XOR", k, m.key(), m.key()}
	case 22:
		return []string{"BITFIELD", k, "INCRBY", "u8", "#1", "77"}
	case 23:
		return []string{"MSET", k, v, m.key(), v, m.key(), v}
	case 24:
		return []string{"MSETNX", k, v, m.key(), v}
	case 25:
		return []string{"MSETEX", "2", k, v, m.key(), v, "PX", "120"}
	case 26:
		return []string{"CAS", k, v, m.value()}
	case 27:
		return []string{"DELIFEQ", k, v}
	case 28:
		if m.rnd.IntN(6) == 0 {
			return []string{"SWAPDB", "0", strconv.Itoa(m.rnd.IntN(replayDatabases))}
		}
		return []string{"GET", k}
	case 29:
		if m.rnd.IntN(10) == 0 {
			return []string{"FLUSHDB"}
		}
		return []string{"STRLEN", k}
	case 30:
		return []string{"SET", k} // an error
	case 31:
		return []string{"TEST.POISON", k, v}
	case 32:
		return []string{"TEST.INCR", k}
	}
	return []string{"UNLINK", k}
}
