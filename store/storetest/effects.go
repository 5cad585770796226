package storetest

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
)

var effectTests = []test{
	{name: "what events hold is part of the weight", run: testEventWeight},
	{name: "each operation is one effect with absolute expiry", run: testEffects},
	{name: "a transaction's effects are one record, in the order of its changes", run: testRecord},
	{name: "records of one key tell what was written each time", run: testRecordsOfOneKey},
	{name: "relative expiry begins at commit", run: testRelativeExpiry},
	{name: "no expiry overflows", run: testExpirySaturates},
	{name: "events leave in the order of the log", run: testEventOrder, real: true},
	{name: "the LSN of a shard never falls", run: testShardLSN},
	{name: "fencing numbers grow", run: testFence},
}

func testEffects(f *fixture) {
	tests := []struct {
		do   func(k *store.Key)
		want []string
	}{
		{func(k *store.Key) { k.SetString([]byte("v"), store.NoTTL) }, []string{"SET k v"}},
		{func(k *store.Key) { k.SetString([]byte("v"), store.ExpireAt(start+5)) }, []string{"SET k v PXAT 1700000000005"}},
		{func(k *store.Key) { k.SetString([]byte("v"), store.ExpireIn(7)) }, []string{"SET k v PXAT 1700000000007"}},
		{func(k *store.Key) { k.SetString([]byte("w"), store.KeepTTL) }, []string{"SET k w PXAT 1700000000007"}},
		{func(k *store.Key) { k.SetExpiry(store.ExpireIn(60)) }, []string{"PEXPIREAT k 1700000000060"}},
		{func(k *store.Key) { k.SetExpiry(store.ExpireAt(start + 61)) }, []string{"PEXPIREAT k 1700000000061"}},
		{func(k *store.Key) { k.SetExpiry(store.NoTTL) }, []string{"PERSIST k"}},
		{func(k *store.Key) { k.SetExpiry(store.KeepTTL) }, nil},
		{func(k *store.Key) { k.Append([]byte("xyz")) }, []string{"APPEND k xyz"}},
		{func(k *store.Key) { k.SetRange(2, []byte("Q")) }, []string{"SETRANGE k 2 Q"}},
		{func(k *store.Key) { k.SetExpiry(store.ExpireAt(start)) }, []string{"DEL k"}},
		{func(k *store.Key) { k.Delete() }, nil},
	}
	for _, m := range f.modes() {
		var want []string
		for _, c := range tests {
			tx := m.begin("k")
			c.do(at(tx, "k"))
			f.commit(tx)
			want = append(want, c.want...)
		}
		got := f.records()
		equal(f, m.name+": records", got[len(got)-min(len(got), len(want)):], want)
	}
}

func testRecord(f *fixture) {
	tx := f.lock("a", "b", "c")
	at(tx, "c").SetString([]byte("1"), store.NoTTL)
	at(tx, "a").SetString([]byte("2"), store.NoTTL)
	at(tx, "c").MoveTo(at(tx, "b"))
	at(tx, "a").CopyTo(at(tx, "c"))
	f.commit(tx)
	equal(f, "records", f.records(), []string{"SET c 1 | SET a 2 | DEL c | SET b 1 | SET c 2"})
}

// Each record tells what was written, not what the key became later.
func testRecordsOfOneKey(f *fixture) {
	for _, m := range f.modes() {
		f.set("k", "was")
		tx := m.begin("k")
		k := at(tx, "k")
		for _, v := range []string{"one", "second", "3"} {
			k.SetString([]byte(v), store.NoTTL)
		}
		sp := tx.Savepoint()
		k.SetString([]byte("undone"), store.NoTTL)
		tx.RollbackTo(sp)
		k.Delete()
		k.SetString([]byte("4th"), store.NoTTL)
		k.Append([]byte("+"))
		k.SetString([]byte("last"), store.NoTTL)
		f.commit(tx)
		got := f.records()
		equal(f, m.name+": records", got[len(got)-1:], []string{"SET k one | SET k second | SET k 3 | DEL k | SET k 4th | APPEND k + | SET k last"})
		f.want("k", "last")
	}
}

func testRelativeExpiry(f *fixture) {
	tx := f.lock("k", "l", "m")
	at(tx, "k").SetString([]byte("v"), store.ExpireIn(1000))
	at(tx, "k").CopyTo(at(tx, "l"))
	at(tx, "m").SetString([]byte("v"), store.NoTTL)
	at(tx, "m").SetExpiry(store.ExpireIn(30))
	at(tx, "m").Append([]byte("w"))
	f.clock.Advance(500 * time.Millisecond) // a slow script does not shorten the lock that it takes
	if got := at(tx, "k").Expiry(); got != start+1000 {
		f.Errorf("within the transaction k expires at %d, want %d", got, start+1000)
	}
	f.commit(tx)
	equal(f, "records", f.records(), []string{"SET k v PXAT 1700000001500 | SET l v PXAT 1700000001500 | SET m v | PEXPIREAT m 1700000000530 | APPEND m w"})
	for name, want := range map[string]int64{"k": start + 1500, "l": start + 1500, "m": start + 530} {
		tx := f.latch(name)
		if got := at(tx, name).Expiry(); got != want {
			f.Errorf("%s expires at %d, want %d", name, got, want)
		}
		tx.Rollback()
	}
}

func testExpirySaturates(f *fixture) {
	const most = 1<<63 - 1
	for _, m := range f.modes() {
		tx := m.begin("k")
		at(tx, "k").SetString([]byte("v"), store.ExpireIn(most-start))
		f.clock.Advance(time.Hour)
		f.commit(tx)
		records := f.records()
		if rec := records[len(records)-1]; strings.Contains(rec, "-") {
			f.Errorf("%s: the record %q has a negative expiry", m.name, rec)
		}
		tx = f.latch("k")
		if got := at(tx, "k").Expiry(); got < most-int64(time.Hour/time.Millisecond)*10 {
			f.Errorf("%s: expiry is %d, want about %d", m.name, got, int64(most))
		}
		tx.Rollback()
	}
}

func testEventOrder(f *fixture) {
	const workers, rounds = 4, 200
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			tx := f.s.NewTx()
			for i := range rounds {
				name := []byte(strconv.Itoa(w*rounds + i))
				tx.Begin()
				tx.Add(0, name)
				if (i%2 == 0 || !tx.AcquireFast()) && tx.Acquire(nil) != nil {
					panic("the key was not acquired")
				}
				tx.Key(0, name).SetString([]byte("v"), store.NoTTL)
				tx.Emit(store.Event{Kind: store.EventPublish, Channel: []byte("SET"), Payload: name})
				if tx.Commit() != nil {
					panic("the log refused")
				}
			}
		})
	}
	wg.Wait()
	records, events := f.records(), f.sink.take()
	for i := range records {
		records[i] = records[i][:len(records[i])-len(" v")]
	}
	if !slices.Equal(records, events) {
		f.Errorf("events did not leave in the order of the log\n have %v\n want %v", events, records)
	}
}

// A transaction that holds a key of a shard may install after others that have
// appended later.
func testShardLSN(f *fixture) {
	f.set("k0", "v")
	for i := range 600 { // some of them share a shard with k0
		holder := f.lock("k0")
		f.set("l"+strconv.Itoa(i), "v")
		at(holder, "k0").SetIdle(1) // changes the entry, but is no effect
		f.commit(holder)
		tx := f.s.NewTx()
		tx.Begin()
		tx.AcquireNone()
		names(tx, 0, 1<<40)
		tx.Rollback()
		if tx.LSN() != f.log.LSN() {
			f.Fatalf("a scan has seen LSN %d, want %d", tx.LSN(), f.log.LSN())
		}
	}
	gone := f.lock("k0")
	at(gone, "k0").Delete()
	f.commit(gone)
	tx := f.s.NewTx()
	if err := lockIn(tx, nil, "k0"); err != nil {
		f.Fatal(err)
	}
	at(tx, "k0").Exists()
	tx.Rollback()
	if tx.LSN() != f.log.LSN() {
		f.Errorf("who sees that a key is gone has LSN %d, want %d: that of its deletion", tx.LSN(), f.log.LSN())
	}
}

func testFence(f *fixture) {
	tx := f.lock("k")
	last := tx.Fence()
	if last < start*1000 {
		f.Errorf("the first fencing number is %d, want at least the Unix time in microseconds", last)
	}
	for range 3 {
		next := tx.Fence()
		if next <= last {
			f.Errorf("fencing number %d after %d", next, last)
		}
		last = next
	}
	tx.Rollback()
	s, err := f.open(store.Options{Clock: f.clock, FenceMark: last + 1_000_000})
	if err != nil {
		f.Fatal(err)
	}
	defer s.Close()
	if got := s.NewTx().Fence(); got <= last+1_000_000 {
		f.Errorf("fencing number %d, want one above the mark %d", got, last+1_000_000)
	}
}

// Whoever bounds a transaction by its weight bounds what its events hold until the
// commit, whether they say it or hold it.
func testEventWeight(f *fixture) {
	tx := f.lock("k")
	defer tx.Rollback()
	const held = 1000
	for _, ev := range []store.Event{
		{Kind: store.EventPublish, Channel: make([]byte, held/2), Payload: make([]byte, held/2)},
		{Kind: store.EventDo, Do: func() {}, Weight: held},
	} {
		before := tx.Weight()
		tx.Emit(ev)
		if grown := tx.Weight() - before; grown < held {
			f.Errorf("an event that holds %d bytes weighs %d", held, grown)
		}
	}
}
