package storetest

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
)

var watchTests = []test{
	{name: "what makes a watcher dirty, and what does not", run: testWatch},
	{name: "a key that expires while it is watched", run: testWatchExpiry},
	{name: "a key that had expired before it was watched", run: testWatchExpired},
	{name: "expired keys, watched, in databases that are exchanged", run: testWatchExpiredSwap},
	{name: "Unwatch forgets", run: testUnwatch},
	{name: "watching beside SWAPDB", run: testWatchSwap, real: true},
}

func testWatch(f *fixture) {
	run := func(mode int, do func(tx *store.Tx, k *store.Key)) func() {
		return func() {
			tx := f.modes()[mode].begin("k")
			do(tx, at(tx, "k"))
			f.commit(tx)
		}
	}
	set := func(tx *store.Tx, k *store.Key) { k.SetString([]byte("w"), store.NoTTL) }
	tests := []struct {
		name   string
		absent bool
		do     func()
		want   bool
	}{
		{"set, latched", false, run(0, set), true},
		{"set, locked", false, run(1, set), true},
		{"set, alone", false, run(2, set), true},
		{"set of an absent key", true, run(0, set), true},
		{"delete", false, run(1, func(tx *store.Tx, k *store.Key) { k.Delete() }), true},
		{"absent, set and deleted", true, func() {
			run(0, set)()
			run(0, func(tx *store.Tx, k *store.Key) { k.Delete() })()
		}, true},
		{"expire", false, run(0, func(tx *store.Tx, k *store.Key) { k.SetExpiry(store.ExpireIn(1000)) }), true},
		{"append in place", false, run(0, func(tx *store.Tx, k *store.Key) { k.Append([]byte("+")) }), true},
		{"flush", false, run(2, func(tx *store.Tx, k *store.Key) { tx.FlushDB(0) }), true},
		{"flush all", false, run(2, func(tx *store.Tx, k *store.Key) { tx.FlushAll() }), true},
		{"flush of an absent key", true, run(2, func(tx *store.Tx, k *store.Key) { tx.FlushDB(0) }), false},
		{"flush of another database", false, run(2, func(tx *store.Tx, k *store.Key) { tx.FlushDB(1) }), false},
		{"swap", false, run(2, func(tx *store.Tx, k *store.Key) { tx.SwapDB(0, 1) }), true},
		{"swap of an absent key", true, run(2, func(tx *store.Tx, k *store.Key) { tx.SwapDB(0, 1) }), false},
		{"swap, then set where it is watched", true, func() {
			run(2, func(tx *store.Tx, k *store.Key) { tx.SwapDB(0, 1) })()
			run(0, set)()
		}, true},
		{"swap of others", false, run(2, func(tx *store.Tx, k *store.Key) { tx.SwapDB(1, 2) }), false},
		{"reading", false, run(1, func(tx *store.Tx, k *store.Key) { k.Str() }), false},
		{"delete of an absent key", true, run(1, func(tx *store.Tx, k *store.Key) { k.Delete() }), false},
		{"another key", false, func() { f.set("other", "v") }, false},
		{"another database", false, func() { f.setIn(1, "k", "v") }, false},
		{"rolled back", false, func() {
			for _, m := range f.modes() {
				tx := m.begin("k")
				set(tx, at(tx, "k"))
				tx.Rollback()
			}
		}, false},
	}
	for _, c := range tests {
		tx := f.alone()
		tx.FlushAll()
		if !c.absent {
			at(tx, "k").SetString([]byte("v"), store.NoTTL)
		}
		f.commit(tx)
		var w store.Watcher
		f.s.Watch(&w, 0, []byte("k"))
		f.s.Watch(&w, 0, []byte("k"))
		f.s.Watch(&w, 0, []byte("unrelated"))
		c.do()
		if w.Dirty() != c.want {
			f.Errorf("%s: dirty is %v, want %v", c.name, w.Dirty(), c.want)
		}
		if w.Empty() || w.Len() != 2 {
			f.Errorf("%s: %d keys are watched, want 2", c.name, w.Len())
		}
		f.s.Unwatch(&w)
	}
}

func testWatchExpiry(f *fixture) {
	for _, m := range f.modes() {
		f.setTTL("k", "v", store.ExpireIn(10))
		var w store.Watcher
		f.s.Watch(&w, 0, []byte("k"))
		tx := m.begin("k")
		if tx.WatchedExpired(&w) {
			f.Errorf("%s: expired before its time", m.name)
		}
		tx.Rollback()
		f.clock.Advance(time.Second)
		tx = m.begin("k")
		if !tx.WatchedExpired(&w) {
			f.Errorf("%s: not seen that a watched key has expired", m.name)
		}
		tx.Rollback()
		if f.s.ExpireCycle(time.Hour) != 1 || !w.Dirty() {
			f.Errorf("%s: the cycle has not made the watcher dirty", m.name)
		}
		f.s.Unwatch(&w)
	}
}

func testWatchExpired(f *fixture) {
	for what, remove := range map[string]func(){
		"the cycle": func() { f.s.ExpireCycle(time.Hour) },
		"a writer": func() {
			tx := f.lock("k")
			at(tx, "k").Delete()
			f.commit(tx)
		},
		"FLUSHALL": func() {
			tx := f.alone()
			tx.FlushAll()
			f.commit(tx)
		},
	} {
		f.setTTL("k", "v", store.ExpireIn(10))
		f.clock.Advance(time.Second)
		var w store.Watcher
		f.s.Watch(&w, 0, []byte("k"))
		tx := f.lock("k")
		if tx.WatchedExpired(&w) {
			f.Errorf("%s: what had expired before counts as expired while watched", what)
		}
		tx.Rollback()
		remove()
		if f.s.Size(0) != 0 || w.Dirty() {
			f.Errorf("%s: %d keys are left, dirty is %v; want 0 and false", what, f.s.Size(0), w.Dirty())
		}
		f.set("k", "new")
		if !w.Dirty() {
			f.Errorf("%s: a key that was made while watched has not made the watcher dirty", what)
		}
		f.s.Unwatch(&w)
		tx = f.latch("k")
		at(tx, "k").Delete()
		f.commit(tx)
	}
}

// An expired key is as good as none, on both sides of a SWAPDB.
func testWatchExpiredSwap(f *fixture) {
	const none, expired, there = "none", "expired", "there"
	put := func(db int, what string) {
		if what == none {
			return
		}
		tx := f.s.NewTx()
		tx.Begin()
		tx.Add(db, []byte("k"))
		if !tx.AcquireFast() {
			f.Fatal("k is locked")
		}
		ttl := store.NoTTL
		if what == expired {
			ttl = store.ExpireIn(10)
		}
		tx.Key(db, []byte("k")).SetString([]byte("v"), ttl)
		f.commit(tx)
	}
	for _, before := range []string{none, expired, there} {
		for _, after := range []string{none, expired, there} {
			tx := f.alone()
			tx.FlushAll()
			f.commit(tx)
			put(0, before)
			put(1, after)
			f.clock.Advance(time.Second)
			var w store.Watcher
			f.s.Watch(&w, 0, []byte("k"))
			tx = f.alone()
			tx.SwapDB(0, 1)
			f.commit(tx)
			if want := before == there || after == there; w.Dirty() != want {
				f.Errorf("%s before, %s after: dirty is %v, want %v", before, after, w.Dirty(), want)
			}
			if !w.Dirty() {
				tx = f.lock("k")
				if tx.WatchedExpired(&w) {
					f.Errorf("%s before, %s after: counts as expired while it was watched", before, after)
				}
				tx.Rollback()
				f.set("k", "new")
				if !w.Dirty() {
					f.Errorf("%s before, %s after: a key that was made while watched has not made the watcher dirty", before, after)
				}
			}
			f.s.Unwatch(&w)
		}
	}
}

func testUnwatch(f *fixture) {
	var a, b store.Watcher
	for _, name := range []string{"k", "l", "m"} {
		f.s.Watch(&a, 0, []byte(name))
		f.s.Watch(&b, 0, []byte(name))
	}
	f.set("k", "v")
	f.s.Unwatch(&a)
	if a.Dirty() || !a.Empty() || !b.Dirty() {
		f.Errorf("dirty %v, empty %v, the other's dirty %v; want false, true, true", a.Dirty(), a.Empty(), b.Dirty())
	}
	f.set("l", "v")
	if a.Dirty() {
		f.Error("a watcher that has forgotten a key became dirty by it")
	}
	tx := f.s.NewTx()
	tx.Begin()
	tx.AddWatched(&b)
	if err := tx.Acquire(nil); err != nil {
		f.Fatal(err)
	}
	if _, ok := f.tryLatch("m"); ok {
		f.Error("a watched key is not held by the transaction that added it")
	}
	tx.Rollback()
	f.s.Unwatch(&b)
}

// Keys that are watched while databases are swapped are found by the next
// change, whichever came first.
func testWatchSwap(f *fixture) {
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		tx := f.s.NewTx()
		for {
			select {
			case <-stop:
				return
			default:
			}
			tx.Begin()
			if tx.AcquireAll(nil) != nil {
				panic("the gate was not closed")
			}
			tx.SwapDB(0, 1)
			if tx.Commit() != nil {
				panic("the log refused")
			}
		}
	})
	tx := f.s.NewTx()
	name := []byte("k")
	for range 2000 {
		var w store.Watcher
		for range rand.IntN(100) { // to meet SWAPDB's commit at all of its places
			runtime.Gosched()
		}
		f.s.Watch(&w, 0, name)
		tx.Begin()
		tx.Add(0, name)
		if !tx.AcquireFast() && tx.Acquire(nil) != nil {
			f.Fatal("the key was not acquired")
		}
		tx.Key(0, name).SetString([]byte("v"), store.NoTTL)
		f.commit(tx)
		if !w.Dirty() {
			f.Error("a change of a watched key was missed beside SWAPDB")
			break
		}
		f.s.Unwatch(&w)
		tx.Begin()
		tx.Add(0, name)
		if !tx.AcquireFast() && tx.Acquire(nil) != nil {
			f.Fatal("the key was not acquired")
		}
		tx.Key(0, name).Delete()
		f.commit(tx)
	}
	close(stop)
	wg.Wait()
}
