package storetest

import (
	"fmt"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
)

var expiryTests = []test{
	{name: "an expired key is absent to readers, who do not delete it", run: testExpiredIsAbsent},
	{name: "a writer removes what has expired first", run: testWriterExpires},
	{name: "a transaction judges by one time", run: testOneTime},
	{name: "the active cycle removes what has expired", run: testActiveCycle},
	{name: "the active cycle leaves locked keys alone", run: testActiveCycleLocked},
	{name: "the active cycle keeps what the log refuses to delete", run: testActiveCycleRefused},
	{name: "a signal does not bring an expired key back", run: testSignalExpired},
}

func testExpiredIsAbsent(f *fixture) {
	f.setTTL("k", "v", store.ExpireAt(start+100))
	f.clock.Advance(99 * time.Millisecond)
	f.want("k", "v")
	f.clock.Advance(time.Millisecond)
	for _, m := range f.modes() {
		tx := m.begin("k")
		if k := at(tx, "k"); k.Exists() || k.Kind() != store.None || k.Expiry() != 0 || k.Str() != nil {
			f.Errorf("%s: an expired key is there", m.name)
		}
		f.commit(tx)
	}
	if f.s.Size(0) != 1 || len(f.log.Records()) != 1 {
		f.Errorf("%d keys and %d records, want 1 and 1: readers delete nothing", f.s.Size(0), len(f.log.Records()))
	}
}

func testWriterExpires(f *fixture) {
	f.s.SetNotify(store.NotifyExpired)
	for _, m := range f.modes() {
		for what, c := range map[string]struct {
			do   func(k *store.Key)
			want string
		}{
			"set":    {func(k *store.Key) { k.SetString([]byte("new"), store.KeepTTL) }, "DEL k | SET k new"},
			"delete": {func(k *store.Key) { k.Delete() }, "DEL k"},
			"range":  {func(k *store.Key) { k.SetRange(1, []byte("x")) }, "DEL k | SETRANGE k 1 x"},
		} {
			f.setTTL("k", "v", store.ExpireIn(10))
			f.clock.Advance(time.Second)
			f.sink.take()
			tx := m.begin("k")
			sp := tx.Savepoint()
			c.do(at(tx, "k"))
			tx.RollbackTo(sp)
			c.do(at(tx, "k"))
			f.commit(tx)
			records := f.records()
			if got := records[len(records)-1]; got != c.want {
				f.Errorf("%s, %s: record %q, want %q", m.name, what, got, c.want)
			}
			equal(f, m.name+", "+what+": events", f.sink.take(), []string{"expired k"})
			if n := f.s.Volatile(0); n != 0 {
				f.Errorf("%s, %s: %d volatile keys, want 0", m.name, what, n)
			}
			tx = f.latch("k")
			at(tx, "k").Delete()
			f.commit(tx)
			if f.s.Size(0) != 0 || f.s.UsedMemory() != 0 {
				f.Fatalf("%s, %s: %d keys and %d bytes are left", m.name, what, f.s.Size(0), f.s.UsedMemory())
			}
		}
	}
}

func testOneTime(f *fixture) {
	f.setTTL("k", "v", store.ExpireAt(start+100))
	f.setTTL("l", "v", store.ExpireAt(start+100))
	tx := f.lock("k", "l")
	now := tx.Now()
	f.clock.Advance(time.Second)
	if tx.Now() != now || !at(tx, "k").Exists() || !at(tx, "l").Exists() {
		f.Error("a key expired in the midst of a transaction")
	}
	tx.Rollback()

	// But time is read when all keys are held, not before.
	f.setTTL("k", "v", store.ExpireIn(100))
	holder := f.lock("l")
	var there bool
	out := f.go1(nil, []string{"k", "l"}, func(tx *store.Tx) {
		there = at(tx, "k").Exists()
		tx.Rollback()
	})
	f.clock.Advance(time.Second)
	holder.Rollback()
	f.wantErr("the waiter", f.ended("the waiter", out), nil)
	if there {
		f.Error("a key that expired while another was waited for is there")
	}
}

func testActiveCycle(f *fixture) {
	f.s.SetNotify(store.NotifyExpired)
	const n = 3000
	var w store.Watcher
	for i := range n {
		ttl := store.ExpireIn(int64(1 + i%100))
		if i%3 == 0 {
			ttl = store.ExpireIn(1_000_000)
		}
		f.setTTL(fmt.Sprint("k", i), "v", ttl)
	}
	f.s.Watch(&w, 0, []byte("k1"))
	f.clock.Advance(time.Second)
	removed := 0
	for range 1000 {
		removed += f.s.ExpireCycle(time.Hour)
		if removed == n*2/3 {
			break
		}
	}
	if removed != n*2/3 || f.s.Size(0) != n/3 || f.s.Volatile(0) != n/3 || f.s.Counter.Expired.Load() != n*2/3 {
		f.Errorf("removed %d, left %d of which %d volatile, counted %d; want %d, %d, %d and %d", removed,
			f.s.Size(0), f.s.Volatile(0), f.s.Counter.Expired.Load(), n*2/3, n/3, n/3, n*2/3)
	}
	if !w.Dirty() {
		f.Error("who watched a key that expired is not dirty")
	}
	f.s.Unwatch(&w)
	var dels []string
	for _, rec := range f.log.Records()[n:] {
		for _, part := range splitRecord(rec) {
			dels = append(dels, "expired "+part[1])
		}
	}
	equal(f, "events of the cycle, in the order of the log", f.sink.take(), dels)
}

func testActiveCycleLocked(f *fixture) {
	f.setTTL("k", "v", store.ExpireIn(10))
	holder := f.lock("k")
	if !at(holder, "k").Exists() {
		f.Fatal("the key is not there")
	}
	f.clock.Advance(time.Second)
	if n := f.s.ExpireCycle(time.Hour); n != 0 {
		f.Errorf("the cycle removed %d keys that are locked", n)
	}
	at(holder, "k").Append([]byte("+"))
	at(holder, "k").SetExpiry(store.NoTTL)
	f.commit(holder)
	if n := f.s.ExpireCycle(time.Hour); n != 0 {
		f.Errorf("the cycle removed %d keys without expiry", n)
	}
	f.want("k", "v+")
	only := f.alone()
	f.setTTLIn(only, "l")
	f.clock.Advance(time.Second)
	if n := f.s.ExpireCycle(time.Hour); n != 0 {
		f.Errorf("the cycle removed %d keys beside who is alone", n)
	}
	f.commit(only)
}

func (f *fixture) setTTLIn(tx *store.Tx, name string) {
	at(tx, name).SetString([]byte("v"), store.ExpireAt(f.clock.NowMilli()+10))
}

func testActiveCycleRefused(f *fixture) {
	f.setTTL("k", "v", store.ExpireIn(10))
	f.clock.Advance(time.Second)
	f.log.fail = fmt.Errorf("disk full")
	if n := f.s.ExpireCycle(time.Hour); n != 0 || f.s.Size(0) != 1 {
		f.Errorf("removed %d, left %d; want 0 and 1", n, f.s.Size(0))
	}
	f.log.fail = nil
	if n := f.s.ExpireCycle(time.Hour); n != 1 || f.s.Size(0) != 0 {
		f.Errorf("removed %d, left %d; want 1 and 0", n, f.s.Size(0))
	}
}

func testSignalExpired(f *fixture) {
	f.setTTL("k", "v", store.ExpireIn(10))
	f.clock.Advance(time.Second)
	for _, m := range f.modes() {
		tx := m.begin("k")
		at(tx, "k").Signal()
		if at(tx, "k").Exists() {
			f.Errorf("%s: an expired key is there once it is signalled", m.name)
		}
		f.commit(tx)
	}
}
