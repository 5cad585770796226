package storetest

import (
	"fmt"
	"runtime"
	"testing/synctest"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
)

var reachTests = []test{
	{name: "a free key is locked in place", run: testReachFree},
	{name: "a held key undoes the transaction, which runs again with it", run: testReachHeld},
	{name: "after three reruns it runs alone", run: testReachAlone},
	{name: "what concerns all keys runs again alone", run: testRequireAll},
	{name: "very many keys", run: testManyKeys},
	{name: "a short transaction that wants another key is locked", run: testPromotedByReach},
	{name: "one that is promoted stands in the queue", run: testPromotedQueues},
	{name: "a short transaction may run again alone", run: testPromotedAlone},
	{name: "a short transaction may be lengthened where it stands", run: testLengthened},
	{name: "not one that has changed something, nor behind one that wants to be alone", run: testNotLengthened},
}

func testReachFree(f *fixture) {
	tx := f.lock("k")
	f.wantErr("Reach", tx.Reach(0, []byte("free")), nil)
	f.wantErr("Reach of a key that is held by the transaction", tx.Reach(0, []byte("k")), nil)
	if tx.Late() != 1 || tx.Reruns() != 0 {
		f.Errorf("%d late keys and %d reruns, want 1 and 0", tx.Late(), tx.Reruns())
	}
	at(tx, "free").SetString([]byte("v"), store.NoTTL)
	if _, ok := f.tryLatch("free"); ok {
		f.Error("a short transaction got a key that was reached")
	}
	f.commit(tx)
	f.want("free", "v")
}

func testReachHeld(f *fixture) {
	f.set("k", "old")
	holder := f.lock("held")
	tx := f.lock("k")
	at(tx, "k").SetString([]byte("new"), store.NoTTL)
	tx.Emit(store.Event{Kind: store.EventPublish, Channel: []byte("c"), Payload: []byte("lost")})
	f.wantErr("Reach", tx.Reach(0, []byte("held")), store.ErrConflict)
	f.wantErr("the next Reach", tx.Reach(0, []byte("free")), store.ErrConflict)
	if !tx.Clash() {
		f.Error("Clash is false after a conflict")
	}
	again := make(chan error, 1)
	go func() { again <- tx.Again(nil) }()
	f.waits("Again", again)
	if _, ok := f.tryLatch("held"); ok {
		f.Error("a short transaction got a key that is held")
	}
	at(holder, "held").SetString([]byte("first"), store.NoTTL)
	f.commit(holder)
	f.wantErr("Again", f.ended("Again", again), nil)
	if tx.Late() != 1 || tx.Reruns() != 1 {
		f.Errorf("%d late keys and %d reruns in the rerun, want 1 and 1: the key is declared by nobody still", tx.Late(), tx.Reruns())
	}
	if got := show(at(tx, "k")); got != "old" {
		f.Errorf("the rerun sees %q, want %q: what the first run wrote is undone", got, "old")
	}
	if got := show(at(tx, "held")); got != "first" {
		f.Errorf("the rerun sees %q in the key it waited for, want %q", got, "first")
	}
	f.commit(tx)
	equal(f, "events", f.sink.take(), nil)
	if tx.Clash() || f.s.Counter.Reruns.Load() != 1 {
		f.Errorf("clash %v and %d reruns, want false and 1", tx.Clash(), f.s.Counter.Reruns.Load())
	}
}

func testReachAlone(f *fixture) {
	tx := f.lock("k")
	for i := range 4 {
		name := fmt.Sprint("held", i)
		holder := f.lock(name)
		f.wantErr("Reach", tx.Reach(0, []byte(name)), store.ErrConflict)
		again := make(chan error, 1)
		go func() { again <- tx.Again(nil) }()
		f.waits("Again", again)
		holder.Rollback()
		f.wantErr("Again", f.ended("Again", again), nil)
		if tx.Reruns() != i+1 || tx.Late() != i+1 {
			f.Errorf("%d reruns with %d late keys, want %d of both", tx.Reruns(), tx.Late(), i+1)
		}
	}
	f.wantErr("RequireAll of a transaction that should be alone", tx.RequireAll(), nil)
	if _, ok := f.tryLatch("another"); ok {
		f.Error("another transaction runs beside one that is alone")
	}
	f.wantErr("Reach alone", tx.Reach(0, []byte("any")), nil)
	at(tx, "any").SetString([]byte("v"), store.NoTTL)
	f.commit(tx)
	f.want("any", "v")
}

func testRequireAll(f *fixture) {
	f.set("k", "v")
	tx := f.lock("k")
	at(tx, "k").Delete()
	f.wantErr("RequireAll", tx.RequireAll(), store.ErrConflict)
	f.wantErr("Again", tx.Again(nil), nil)
	f.wantErr("RequireAll when alone", tx.RequireAll(), nil)
	if got := show(at(tx, "k")); got != "v" {
		f.Errorf("the rerun sees %q, want %q", got, "v")
	}
	f.commit(tx)
	synctest.Wait()
	f.set("k", "w")
}

func testManyKeys(f *fixture) {
	for _, n := range []int{7, 8, 9, 10, 100, 2000} {
		for _, m := range f.modes() {
			var names []string
			for i := range n {
				names = append(names, fmt.Sprint("k", i))
			}
			tx := m.begin(append(names, names...)...) // twice, which is once
			for _, name := range names {
				at(tx, name).SetString([]byte(name), store.NoTTL)
			}
			if m.name == "locked" {
				holder := f.lock("held")
				f.wantErr("Reach", tx.Reach(0, []byte("late")), nil)
				f.wantErr("Reach of a held key", tx.Reach(0, []byte("held")), store.ErrConflict)
				holder.Rollback()
				f.wantErr("Again", tx.Again(nil), nil)
				for _, name := range append(names, "late", "held") {
					at(tx, name).SetString([]byte(name), store.NoTTL)
				}
			}
			f.commit(tx)
			for _, name := range names {
				f.want(name, name)
			}
			tx = f.alone()
			tx.FlushAll()
			f.commit(tx)
		}
	}
}

func testPromotedByReach(f *fixture) {
	f.set("k", "old")
	f.set("other", "o")
	records := len(f.records())
	tx := f.latch("k")
	if !tx.Short() || tx.Allowance() != store.Allowance {
		f.Errorf("short %v with an allowance of %d, want true and %d", tx.Short(), tx.Allowance(), store.Allowance)
	}
	tx.Spend(store.Allowance)
	at(tx, "k").SetString([]byte("new"), store.ExpireIn(5))
	tx.Emit(store.Event{Kind: store.EventPublish, Channel: []byte("c"), Payload: []byte("lost")})
	f.wantErr("Reach of a key that is held", tx.Reach(0, []byte("k")), nil)
	f.wantErr("Reach", tx.Reach(0, []byte("other")), store.ErrConflict)
	f.wantErr("Reach after the conflict", tx.Reach(0, []byte("k")), store.ErrConflict)
	f.wantErr("Again", tx.Again(nil), nil)
	if tx.Short() || tx.Clash() || tx.Reruns() != 0 {
		f.Errorf("short %v, clash %v, %d reruns; want a locked transaction that was not rerun", tx.Short(), tx.Clash(), tx.Reruns())
	}
	if got := show(at(tx, "k")); got != "old" || at(tx, "k").Expiry() != 0 {
		f.Errorf("after the promotion k is %q expiring at %d, want %q and 0", got, at(tx, "k").Expiry(), "old")
	}
	if _, ok := f.tryLatch("k"); ok {
		f.Error("a short transaction got the key of one that was promoted")
	}
	f.wantErr("Reach by the locked transaction", tx.Reach(0, []byte("other")), nil)
	at(tx, "other").Append([]byte("+"))
	f.commit(tx)
	f.want("k", "old")
	f.want("other", "o+")
	equal(f, "records", f.records()[records:], []string{"APPEND other +"})
	equal(f, "events", f.sink.take(), nil)
	if c := &f.s.Counter; c.Promotions.Load() != 1 || c.Reruns.Load() != 0 || c.Rollbacks.Load() != 0 {
		f.Errorf("%d promotions, %d reruns, %d rollbacks; want 1, 0 and 0", c.Promotions.Load(), c.Reruns.Load(), c.Rollbacks.Load())
	}
}

// Between the end of the short transaction and the lock somebody else may get the
// key; what he did is seen.
func testPromotedQueues(f *fixture) {
	f.set("a", "0")
	tx := f.latch("a")
	locked := make(chan error, 1)
	holder := f.s.NewTx()
	f.wantErr("Promote", tx.Promote(), store.ErrConflict)
	tx.Rollback()
	f.wantErr("lock", lockIn(holder, nil, "a"), nil)
	tx = f.s.NewTx()
	tx.Begin()
	tx.Add(0, []byte("b"))
	if !tx.AcquireFast() {
		f.Fatal("b is not free")
	}
	f.wantErr("Reach", tx.Reach(0, []byte("a")), store.ErrConflict)
	f.wantErr("Again", tx.Again(nil), nil)
	f.wantErr("Reach of a key that is locked", tx.Reach(0, []byte("a")), store.ErrConflict)
	go func() { locked <- tx.Again(nil) }()
	f.waits("Again", locked)
	at(holder, "a").SetString([]byte("1"), store.NoTTL)
	f.commit(holder)
	f.wantErr("Again", f.ended("Again", locked), nil)
	if got := show(at(tx, "a")); got != "1" {
		f.Errorf("a is %q, want %q", got, "1")
	}
	tx.Rollback()
}

func testPromotedAlone(f *fixture) {
	f.set("k", "old")
	tx := f.latch("k")
	at(tx, "k").Delete()
	f.wantErr("RequireAll", tx.RequireAll(), store.ErrConflict)
	f.wantErr("Again", tx.Again(nil), nil)
	f.wantErr("RequireAll by one that is alone", tx.RequireAll(), nil)
	if got := show(at(tx, "k")); got != "old" {
		f.Errorf("k is %q, want %q", got, "old")
	}
	tx.FlushDB(0)
	f.commit(tx)
	f.want("k", absent)
}

// A short transaction that was lengthened holds its keys, others of their shards are
// free, and it is undone and committed as a locked one.
func testLengthened(f *fixture) {
	f.set("k", "old")
	f.setTTL("gone", "soon", store.ExpireAt(start+1))
	f.clock.Advance(time.Millisecond)
	records := len(f.records())
	tx := f.latch("k", "new", "gone")
	seen := at(tx, "k").Str()
	if at(tx, "gone").Exists() {
		f.Error("an expired key is seen")
	}
	if !tx.Lengthen() || tx.Short() || tx.Clash() {
		f.Fatalf("a short transaction was not lengthened: short %v, clash %v", tx.Short(), tx.Clash())
	}
	for _, k := range []string{"k", "new", "gone"} {
		if _, ok := f.tryLatch(k); ok {
			f.Errorf("a short transaction got %s of one that was lengthened", k)
		}
	}
	other := f.s.NewTx()
	locked := make(chan error, 1)
	go func() { locked <- lockIn(other, nil, "k") }()
	f.waits("lock", locked)
	f.wantErr("Reach of another key", tx.Reach(0, []byte("other")), nil)
	f.set("elsewhere", "x")
	sp := tx.Savepoint()
	at(tx, "k").SetString([]byte("undone"), store.NoTTL)
	tx.RollbackTo(sp)
	if got := show(at(tx, "k")); got != "old" || string(seen) != "old" {
		f.Errorf("after a savepoint k is %q, and what was read before %q; want old", got, seen)
	}
	at(tx, "k").Append([]byte("+"))
	at(tx, "new").SetString([]byte("n"), store.ExpireIn(5))
	at(tx, "other").SetString([]byte("o"), store.NoTTL)
	if string(seen) != "old" {
		f.Errorf("what was read before is %q now, want old", seen)
	}
	f.clock.Advance(time.Second)
	f.commit(tx)
	f.wantErr("lock", f.ended("lock", locked), nil)
	if got := show(at(other, "k")); got != "old+" {
		f.Errorf("the next sees %q, want old+", got)
	}
	other.Rollback()
	f.want("new", "n")
	f.want("other", "o")
	if c := &f.s.Counter; c.Lengthened.Load() != 1 || c.Promotions.Load() != 0 || c.Reruns.Load() != 0 {
		f.Errorf("%d lengthened, %d promotions, %d reruns; want 1, 0 and 0", c.Lengthened.Load(), c.Promotions.Load(), c.Reruns.Load())
	}
	equal(f, "records", f.records()[records:], []string{
		"SET elsewhere x", fmt.Sprintf("APPEND k + | SET new n PXAT %d | SET other o", start+1+1000+5),
	})
	tx = f.latch("k")
	tx.Lengthen()
	at(tx, "k").Delete()
	tx.Rollback()
	f.want("k", "old+")
	tx = f.alone() // and the gate has not lost count
	tx.Rollback()
}

func testNotLengthened(f *fixture) {
	f.set("k", "old")
	for name, change := range map[string]func(tx *store.Tx){
		"a value":  func(tx *store.Tx) { at(tx, "k").SetString([]byte("new"), store.NoTTL) },
		"a signal": func(tx *store.Tx) { at(tx, "k").Signal() },
		"an event": func(tx *store.Tx) { tx.Emit(store.Event{Kind: store.EventPublish, Channel: []byte("c")}) },
		"a clash":  func(tx *store.Tx) { tx.Promote() },
	} {
		tx := f.latch("k")
		change(tx)
		if tx.Lengthen() || !tx.Short() {
			f.Errorf("a transaction with %s was lengthened", name)
		}
		tx.Rollback()
	}
	// One that wants to be alone has closed the gate and passes through the latches.
	tx, alone := f.latch("k"), f.s.NewTx()
	alone.Begin()
	acquired := make(chan error, 1)
	go func() { acquired <- alone.AcquireAll(nil) }()
	for open := true; open; runtime.Gosched() {
		probe := f.s.NewTx()
		probe.Begin()
		probe.AcquireNone()
		open = probe.Lengthen()
		probe.Rollback()
	}
	if tx.Lengthen() {
		f.Error("a transaction was lengthened behind a closed gate")
	}
	f.wantErr("Promote", tx.Promote(), store.ErrConflict)
	tx.Rollback()
	f.wantErr("AcquireAll", f.ended("AcquireAll", acquired), nil)
	alone.Rollback()
}
