package storetest

import (
	"fmt"
	"testing/synctest"

	"github.com/latchkey-proxy/latchkey/store"
)

var databaseTests = []test{
	{name: "databases are apart", run: testDatabasesApart},
	{name: "FlushDB", run: testFlushDB},
	{name: "SwapDB", run: testSwapDB},
	{name: "flushing and swapping are undone to a savepoint", run: testWholeUndone},
	{name: "keys that are staged while databases are swapped", run: testSwapWhileStaging},
	{name: "who waits while databases are swapped gets the key of the new one", run: testSwapWhileWaiting},
}

func (f *fixture) setIn(db int, key, value string) {
	f.Helper()
	tx := f.s.NewTx()
	tx.Begin()
	tx.Add(db, []byte(key))
	if !tx.AcquireFast() {
		f.Fatalf("%s is locked", key)
	}
	tx.Key(db, []byte(key)).SetString([]byte(value), store.ExpireAt(start+1000))
	f.commit(tx)
}

func (f *fixture) wantIn(db int, key, value string) {
	f.Helper()
	tx := f.s.NewTx()
	tx.Begin()
	tx.Add(db, []byte(key))
	if !tx.AcquireFast() {
		f.Fatalf("%s is locked", key)
	}
	if got := show(tx.Key(db, []byte(key))); got != value {
		f.Errorf("%s of database %d is %q, want %q", key, db, got, value)
	}
	tx.Rollback()
}

// sizes are the keys and volatile keys of databases 0 to 2.
func (f *fixture) sizes() string {
	out := ""
	for db := range 3 {
		out += fmt.Sprintf("%d/%d ", f.s.Size(db), f.s.Volatile(db))
	}
	return out
}

func (f *fixture) wantSizes(what, want string) {
	f.Helper()
	if got := f.sizes(); got != want {
		f.Errorf("%s: keys and volatile keys %s, want %s", what, got, want)
	}
}

// A key of two databases, staged once on each side of a SWAPDB, was the same key of
// the same database both times.
func testSwapWhileStaging(f *fixture) {
	f.setIn(0, "k", "zero")
	f.setIn(1, "k", "one")
	name := []byte("k")
	for _, fast := range []bool{true, false} {
		tx := f.s.NewTx()
		tx.Begin()
		tx.Add(0, name)
		swap := f.alone()
		swap.SwapDB(0, 1)
		f.commit(swap)
		tx.Add(1, name)
		if fast && tx.AcquireFast() {
			f.Fatal("acquired under numbers that are no longer true")
		}
		if err := tx.Acquire(nil); err != nil {
			f.Fatal(err)
		}
		zero, one := show(tx.Key(0, name)), show(tx.Key(1, name))
		if fast && (zero != "one" || one != "zero") || !fast && (zero != "zero" || one != "one") {
			f.Errorf("database 0 has %q, database 1 has %q", zero, one)
		}
		tx.Rollback()
	}
}

func testDatabasesApart(f *fixture) {
	f.setIn(0, "k", "zero")
	f.setIn(1, "k", "one")
	f.wantIn(0, "k", "zero")
	f.wantIn(1, "k", "one")
	f.wantIn(2, "k", absent)
	tx := f.s.NewTx()
	tx.Begin()
	tx.Add(0, []byte("k"))
	tx.Add(2, []byte("k"))
	if err := tx.Acquire(nil); err != nil {
		f.Fatal(err)
	}
	f.setIn(1, "k", "free") // the same key in another database is not locked
	tx.Key(0, []byte("k")).MoveTo(tx.Key(2, []byte("k")))
	f.commit(tx)
	f.wantSizes("after a move", "0/0 1/1 1/1 ")
	if s, err := f.open(store.Options{Databases: -1}); err == nil {
		s.Close()
		f.Error("a store of -1 databases was opened")
	}
}

func testFlushDB(f *fixture) {
	for db := range 3 {
		f.setIn(db, "k", "v")
		f.setIn(db, "l", "v")
	}
	tx := f.alone()
	at(tx, "k").Append([]byte("lost"))
	tx.FlushDB(0)
	if show(at(tx, "k")) != absent || show(at(tx, "l")) != absent || tx.Size(0) != 0 {
		f.Errorf("after FlushDB k is %q, l is %q, of %d keys", show(at(tx, "k")), show(at(tx, "l")), tx.Size(0))
	}
	at(tx, "k").SetString([]byte("new"), store.NoTTL)
	if tx.Size(0) != 1 {
		f.Errorf("the transaction sees %d keys, want 1", tx.Size(0))
	}
	f.commit(tx)
	f.wantIn(0, "k", "new")
	f.wantIn(0, "l", absent)
	f.wantSizes("after FlushDB", "1/0 2/2 2/2 ")
	records := f.records()
	if got, want := records[len(records)-1], "APPEND k lost | FLUSHDB | SET k new"; got != want {
		f.Errorf("record %q, want %q", got, want)
	}
	tx = f.alone()
	tx.FlushAll()
	f.commit(tx)
	f.wantSizes("after FlushAll", "0/0 0/0 0/0 ")
	if f.s.UsedMemory() != 0 {
		f.Errorf("%d bytes are in use after FlushAll, want 0", f.s.UsedMemory())
	}
}

func testSwapDB(f *fixture) {
	f.setIn(0, "k", "zero")
	f.setIn(1, "k", "one")
	f.setIn(1, "l", "one")
	tx := f.alone()
	at(tx, "k").Append([]byte("+"))
	tx.SwapDB(0, 1)
	if got := show(at(tx, "k")); got != "one" {
		f.Errorf("within the transaction k of database 0 is %q, want %q", got, "one")
	}
	tx.Key(1, []byte("k")).Append([]byte("+"))
	f.commit(tx)
	f.wantIn(0, "k", "one")
	f.wantIn(1, "k", "zero++")
	f.wantSizes("after SwapDB", "2/2 1/1 0/0 ")
	records := f.records()
	if got, want := records[len(records)-1], "APPEND k + | SWAPDB 0 1 | APPEND k +"; got != want {
		f.Errorf("record %q, want %q", got, want)
	}
	tx = f.alone()
	tx.SwapDB(1, 2)
	tx.SwapDB(0, 1)
	tx.SwapDB(2, 2)
	f.commit(tx)
	f.wantIn(1, "k", "one")
	f.wantIn(2, "k", "zero++")
	f.wantSizes("after three more", "0/0 2/2 1/1 ")
}

func testWholeUndone(f *fixture) {
	f.setIn(0, "k", "zero")
	f.setIn(1, "k", "one")
	used := f.s.UsedMemory()
	tx := f.alone()
	sp := tx.Savepoint()
	tx.FlushDB(0)
	at(tx, "k").SetString([]byte("new"), store.NoTTL)
	at(tx, "l").SetString([]byte("new"), store.NoTTL)
	tx.SwapDB(0, 1)
	at(tx, "k").Delete()
	at(tx, "m").Exists()
	tx.FlushAll()
	tx.RollbackTo(sp)
	if show(at(tx, "k")) != "zero" || show(at(tx, "l")) != absent || show(tx.Key(1, []byte("k"))) != "one" || tx.Size(0) != 1 {
		f.Fatalf("after the rollback k is %q and %q, l is %q, of %d keys", show(at(tx, "k")), show(tx.Key(1, []byte("k"))), show(at(tx, "l")), tx.Size(0))
	}
	at(tx, "k").Append([]byte("+"))
	at(tx, "k").SetString([]byte("zero"), store.KeepTTL)
	f.commit(tx)
	f.wantIn(0, "k", "zero")
	f.wantIn(1, "k", "one")
	f.wantSizes("in the end", "1/1 1/1 0/0 ")
	if f.s.UsedMemory() != used {
		f.Errorf("%d bytes are in use, want %d", f.s.UsedMemory(), used)
	}
	tx = f.alone()
	tx.FlushAll()
	tx.SwapDB(0, 1)
	tx.Rollback()
	f.wantIn(0, "k", "zero")
	f.wantSizes("after a rollback", "1/1 1/1 0/0 ")
}

func testSwapWhileWaiting(f *fixture) {
	f.setIn(0, "k", "zero")
	f.setIn(1, "k", "one")
	tx := f.alone()
	var got string
	out := f.go1(nil, []string{"k"}, func(tx *store.Tx) {
		got = show(at(tx, "k"))
		tx.Rollback()
	})
	f.waits("who stands before the gate", out)
	tx.SwapDB(0, 1)
	f.commit(tx)
	synctest.Wait()
	f.wantErr("who stood before the gate", f.ended("it", out), nil)
	if got != "one" {
		f.Errorf("it sees %q, want %q", got, "one")
	}
}
