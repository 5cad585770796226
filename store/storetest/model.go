package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/latchkey-proxy/latchkey/store"
)

const modelDatabases = 2

// contents are all keys of a few databases: a store must be equal to it after
// every transaction, and so must be what a replay of its log makes.
type contents [modelDatabases]map[string]modelEntry

type modelEntry struct {
	value  string
	expiry int64
	rel    int64 // begins at commit
	raw    bool
}

func (c *contents) clone() (out contents) {
	for db := range c {
		out[db] = maps.Clone(c[db])
	}
	return out
}

// get is the entry of a key unless it has expired.
func (c *contents) get(db int, name string, now int64) (modelEntry, bool) {
	e, ok := c[db][name]
	return e, ok && (e.expiry == 0 || e.expiry > now)
}

// live is String without what has expired.
func (c *contents) live(now int64) string {
	out := c.clone()
	for db := range out {
		maps.DeleteFunc(out[db], func(_ string, e modelEntry) bool { return e.expiry != 0 && e.expiry <= now })
	}
	return out.String()
}

func (c *contents) String() string {
	out := ""
	for db := range c {
		for _, name := range slices.Sorted(maps.Keys(c[db])) {
			e := c[db][name]
			out += fmt.Sprintf("%d:%s=%q@%d raw %v\n", db, name, e.value, e.expiry, e.raw)
		}
	}
	return out
}

// testModel runs random transactions on a store and on a plain map.
func testModel(t *testing.T, open Open) {
	rapid.Check(t, func(rt *rapid.T) {
		clock := store.NewManualClock(start)
		log := &failingLog{keepEffects: true}
		s, err := open(store.Options{Databases: modelDatabases, Clock: clock, Log: log})
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		m := &machine{T: rt, s: s, clock: clock, log: log, tx: s.NewTx()}
		for db := range m.model {
			m.model[db] = make(map[string]modelEntry)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"transaction": m.transaction,
			"time passes": func(*rapid.T) {
				clock.Advance(time.Duration(rapid.IntRange(1, 40).Draw(rt, "ms")) * time.Millisecond)
			},
			"active expiry": func(*rapid.T) { s.ExpireCycle(time.Hour) },
			"":              m.check,
		})
		m.replay()
		m.empty()
	})
}

type machine struct {
	*rapid.T
	s     *store.Store
	clock *store.ManualClock
	log   *failingLog
	tx    *store.Tx
	model contents

	work  contents // the model as the running transaction sees it
	now   int64
	alone bool
}

func (m *machine) draw(n int, label string) int { return rapid.IntRange(0, n-1).Draw(m.T, label) }

func (m *machine) name() string { return "k" + strconv.Itoa(m.draw(5, "key")) }

func (m *machine) text() string {
	return strings.Repeat(strconv.Itoa(m.draw(10, "byte")), m.draw(30, "length"))
}

func (m *machine) transaction(*rapid.T) {
	tx := m.tx
	tx.Begin()
	m.alone = false
	way := m.draw(4, "mode")
	switch way {
	case 0:
		m.alone = true
		if err := tx.AcquireAll(nil); err != nil {
			m.Fatal(err)
		}
	default:
		for db := range modelDatabases {
			for i := range 5 {
				tx.Add(db, []byte("k"+strconv.Itoa(i)))
			}
		}
		if way == 1 {
			if !tx.AcquireFast() {
				m.Fatal("the keys are not free")
			}
		} else if err := tx.Acquire(nil); err != nil {
			m.Fatal(err)
		}
	}
	m.work, m.now = m.model.clone(), tx.Now()
	if way == 1 && m.draw(3, "lengthen") == 0 {
		if !tx.Lengthen() {
			m.Fatal("a short transaction that has changed nothing cannot be lengthened")
		}
		way = 2
	}
	if way == 1 && m.draw(3, "promote") == 0 {
		m.steps(2)
		if err := tx.Promote(); err != store.ErrConflict {
			m.Fatalf("Promote: %v, want %v", err, store.ErrConflict)
		}
		if err := tx.Again(nil); err != nil {
			m.Fatal(err)
		}
		m.work, way = m.model.clone(), 2
	}
	m.steps(3)
	switch m.draw(5, "end") {
	case 0:
		tx.Rollback()
	case 1:
		m.log.fail = errors.New("refused")
		m.clock.Advance(time.Millisecond)
		same := m.work.live(m.now) == m.model.live(m.now)
		if err := tx.Commit(); err == nil && !same {
			m.Fatal("Commit did not fail with the log")
		}
		m.log.fail = nil
	default:
		if way != 1 { // a short transaction has no time to lose
			m.clock.Advance(time.Duration(m.draw(3, "ms")) * time.Millisecond)
		}
		if err := tx.Commit(); err != nil {
			m.Fatal(err)
		}
		at := m.clock.NowMilli()
		for db := range m.work {
			for name, e := range m.work[db] {
				if e.rel != 0 {
					e.expiry, e.rel = at+e.rel, 0
					m.work[db][name] = e
				}
			}
		}
		m.model = m.work
	}
}

// steps are some operations, savepoints among them down to the depth.
func (m *machine) steps(depth int) {
	for range m.draw(7, "steps") {
		if depth > 0 && m.draw(4, "nest") == 0 {
			sp, before := m.tx.Savepoint(), m.work.clone()
			m.steps(depth - 1)
			if m.draw(2, "undo") == 0 {
				m.tx.RollbackTo(sp)
				m.work = before
			} else {
				m.tx.Release(sp)
			}
			continue
		}
		m.step()
	}
}

func (m *machine) step() {
	db, name := m.draw(modelDatabases, "db"), m.name()
	k := m.tx.Key(db, []byte(name))
	e, there := m.work.get(db, name, m.now)
	if !there {
		e = modelEntry{}
	}
	if k.Exists() != there || there && (string(k.Str()) != e.value || k.Expiry() != e.expiry || k.Raw() != e.raw) {
		m.Fatalf("%d:%s is %q@%d raw %v, want %v %+v", db, name, k.Str(), k.Expiry(), k.Raw(), there, e)
	}
	put := func(e modelEntry) {
		if e.expiry != 0 && e.expiry <= m.now {
			delete(m.work[db], name)
			return
		}
		m.work[db][name] = e
	}
	switch op := m.draw(12, "operation"); {
	case op == 0:
		k.Delete()
		delete(m.work[db], name)
	case op <= 2:
		text := m.text()
		ttl, expiry, rel := m.ttl(e)
		k.SetString([]byte(text), ttl)
		put(modelEntry{value: text, expiry: expiry, rel: rel})
	case op == 3 && there:
		text := m.text()
		k.Append([]byte(text))
		e.value, e.raw = e.value+text, true
		put(e)
	case op <= 5:
		off, text := m.draw(40, "offset"), m.text()+"x"
		k.SetRange(off, []byte(text))
		b := []byte(e.value)
		for len(b) < off+len(text) {
			b = append(b, 0)
		}
		copy(b[off:], text)
		e.value, e.raw = string(b), true
		put(e)
	case op <= 7 && there:
		ttl, expiry, rel := m.ttl(e)
		k.SetExpiry(ttl)
		e.expiry, e.rel = expiry, rel
		put(e)
	case op <= 9 && there:
		other, toDB := m.name(), m.draw(modelDatabases, "other db")
		if other == name && toDB == db {
			return
		}
		dst := m.tx.Key(toDB, []byte(other))
		if op == 8 {
			k.CopyTo(dst)
		} else {
			k.MoveTo(dst)
			delete(m.work[db], name)
		}
		m.work[toDB][other] = e
	case op == 10 && m.alone:
		switch m.draw(3, "whole") {
		case 0:
			m.tx.FlushDB(db)
			m.work[db] = make(map[string]modelEntry)
		case 1:
			m.tx.FlushAll()
			for db := range m.work {
				m.work[db] = make(map[string]modelEntry)
			}
		case 2:
			m.tx.SwapDB(0, 1)
			m.work[0], m.work[1] = m.work[1], m.work[0]
		}
	case op == 11:
		k.Signal()
	}
}

func (m *machine) ttl(e modelEntry) (ttl store.TTL, expiry, rel int64) {
	n := int64(m.draw(60, "ttl")) - 5
	switch m.draw(4, "kind of ttl") {
	case 0:
		return store.NoTTL, 0, 0
	case 1:
		return store.KeepTTL, e.expiry, e.rel
	case 2:
		return store.ExpireAt(m.now + n), m.now + n, 0
	}
	n = max(n, 1)
	return store.ExpireIn(n), m.now + n, n
}

// check compares the store with the model.
func (m *machine) check(*rapid.T) {
	now := m.clock.NowMilli()
	var have, want contents
	for db := range modelDatabases {
		have[db], want[db] = make(map[string]modelEntry), make(map[string]modelEntry)
		m.tx.Begin()
		for i := range 5 {
			m.tx.Add(db, []byte("k"+strconv.Itoa(i)))
		}
		if !m.tx.AcquireFast() {
			m.Fatal("a key is locked between transactions")
		}
		for i := range 5 {
			name := "k" + strconv.Itoa(i)
			if k := m.tx.Key(db, []byte(name)); k.Exists() {
				have[db][name] = modelEntry{value: string(k.Str()), expiry: k.Expiry(), raw: k.Raw()}
			}
			if e, ok := m.model.get(db, name, now); ok {
				want[db][name] = e
			}
		}
		m.tx.Rollback()
		m.tx.Begin()
		m.tx.AcquireNone()
		met := names(m.tx, db, 1)
		m.tx.Rollback()
		if len(met) != len(want[db]) {
			m.Fatalf("a scan of database %d met %v, want the keys of\n%s", db, met, &want)
		}
	}
	if have.String() != want.String() {
		m.Fatalf("the store is\n%s\nbut the model\n%s", &have, &want)
	}
}

// replay makes a store's contents from its log alone.
func (m *machine) replay() {
	var got, want contents
	for db := range got {
		got[db], want[db] = make(map[string]modelEntry), make(map[string]modelEntry)
	}
	for i := range m.log.effects {
		got.apply(&m.log.effects[i])
	}
	now := m.clock.NowMilli()
	for db := range got {
		for name, e := range m.model[db] {
			if e.expiry == 0 || e.expiry > now {
				want[db][name] = modelEntry{value: e.value, expiry: e.expiry}
			}
		}
		maps.DeleteFunc(got[db], func(_ string, e modelEntry) bool { return e.expiry != 0 && e.expiry <= now })
	}
	if got.String() != want.String() {
		m.Fatalf("a replay of the log makes\n%s\nbut the model is\n%s", &got, &want)
	}
}

// apply does what an effect says. Values that have expired are there still: the
// log says when they go.
func (c *contents) apply(e *store.Effect) {
	db, name := c[e.DB], string(e.Key)
	old := db[name]
	switch e.Op {
	case store.OpSet:
		db[name] = modelEntry{value: string(e.Value), expiry: e.At}
	case store.OpDel:
		delete(db, name)
	case store.OpAppend:
		db[name] = modelEntry{value: old.value + string(e.Value), expiry: old.expiry}
	case store.OpSetRange:
		b := []byte(old.value)
		for len(b) < int(e.N)+len(e.Value) {
			b = append(b, 0)
		}
		copy(b[e.N:], e.Value)
		db[name] = modelEntry{value: string(b), expiry: old.expiry}
	case store.OpExpire:
		db[name] = modelEntry{value: old.value, expiry: e.At}
	case store.OpPersist:
		db[name] = modelEntry{value: old.value}
	case store.OpFlushDB:
		clear(db)
	case store.OpFlushAll:
		for i := range c {
			clear(c[i])
		}
	case store.OpSwapDB:
		c[e.DB], c[e.N] = c[e.N], c[e.DB]
	}
}

// empty deletes all keys and looks at the account.
func (m *machine) empty() {
	m.tx.Begin()
	if err := m.tx.AcquireAll(nil); err != nil {
		m.Fatal(err)
	}
	for db := range modelDatabases {
		for i := range 5 {
			m.tx.Key(db, []byte("k"+strconv.Itoa(i))).Delete()
		}
	}
	if err := m.tx.Commit(); err != nil {
		m.Fatal(err)
	}
	for db := range modelDatabases {
		if n, v := m.s.Size(db), m.s.Volatile(db); n != 0 || v != 0 {
			m.Fatalf("database %d has %d keys, %d volatile, when all are deleted", db, n, v)
		}
	}
	if n := m.s.UsedMemory(); n != 0 {
		m.Fatalf("%d bytes are in use when all keys are deleted", n)
	}
}
