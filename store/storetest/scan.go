package storetest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
)

var scanTests = []test{
	{name: "every key is met once", run: testScan},
	{name: "a scan sees its own transaction's changes", run: testScanOwn},
	{name: "no latch is held while a name is looked at", run: testScanUnlatched},
	{name: "keys that stay are met beside keys that come and go", run: testScanConcurrent, real: true},
	{name: "random keys", run: testRandomKey},
}

// names scans a database whole, count keys at a time.
func names(tx *store.Tx, db, count int) map[string]int {
	met := make(map[string]int)
	for cursor := uint64(0); ; {
		cursor = tx.Scan(db, cursor, count, func(name, typ string) {
			if typ != "string" {
				name += " of type " + typ
			}
			met[name]++
		})
		if cursor == 0 {
			return met
		}
	}
}

func (f *fixture) visit() *store.Tx {
	tx := f.s.NewTx()
	tx.Begin()
	tx.AcquireNone()
	return tx
}

func testScan(f *fixture) {
	const n = 700
	for i := range n {
		f.set(fmt.Sprint("k", i), "v")
	}
	f.setTTL("expired", "v", store.ExpireIn(1))
	f.setIn(1, "elsewhere", "v")
	f.clock.Advance(time.Second)
	for _, count := range []int{1, 10, 1 << 40} {
		tx := f.visit()
		met := names(tx, 0, count)
		tx.Rollback()
		for i := range n {
			if met[fmt.Sprint("k", i)] != 1 {
				f.Fatalf("COUNT %d: k%d was met %d times, want once", count, i, met[fmt.Sprint("k", i)])
			}
		}
		if len(met) != n {
			f.Errorf("COUNT %d: %d keys were met, want %d", count, len(met), n)
		}
	}
	tx := f.visit()
	if next := tx.Scan(0, 1<<63, 10, func(string, string) { f.Error("a key behind the end") }); next != 0 {
		f.Errorf("cursor %d behind the end, want 0", next)
	}
	tx.Rollback()
}

func testScanOwn(f *fixture) {
	f.set("old", "v")
	f.set("gone", "v")
	for _, m := range f.modes()[1:] {
		tx := m.begin("old", "gone", "new")
		at(tx, "new").SetString([]byte("v"), store.NoTTL)
		at(tx, "gone").Delete()
		at(tx, "old").Append([]byte("v"))
		if met := names(tx, 0, 10); len(met) != 2 || met["old"] != 1 || met["new"] != 1 {
			f.Errorf("%s: met %v, want old and new", m.name, met)
		}
		if tx.Size(0) != 2 {
			f.Errorf("%s: %d keys, want 2", m.name, tx.Size(0))
		}
		if m.name == "alone" {
			tx.FlushAll()
			at(tx, "newer").SetString([]byte("v"), store.NoTTL)
			if met := names(tx, 0, 10); len(met) != 1 || met["newer"] != 1 {
				f.Errorf("met %v after FlushAll, want newer", met)
			}
			if name, ok := tx.RandomKey(0); !ok || name != "newer" {
				f.Errorf("random key %q, want newer", name)
			}
		}
		visitor := f.visit()
		if met := names(visitor, 0, 10); len(met) != 2 || met["old"] != 1 || met["gone"] != 1 {
			f.Errorf("%s: another met %v, want what is committed", m.name, met)
		}
		visitor.Rollback()
		tx.Rollback()
	}
}

func testScanUnlatched(f *fixture) {
	for i := range 50 {
		f.set(fmt.Sprint("k", i), "v")
	}
	tx := f.visit()
	n := 0
	tx.Scan(0, 0, 1<<40, func(name, _ string) {
		f.set(name, "changed while it is looked at")
		n++
	})
	tx.Rollback()
	if n != 50 {
		f.Errorf("%d keys were met, want 50", n)
	}
}

func testScanConcurrent(f *fixture) {
	const stay, come = 500, 500
	for i := range stay {
		f.set(fmt.Sprint("stay", i), "v")
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			tx := f.s.NewTx()
			for {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Appendf(nil, "come%d", rand.IntN(come))
				rewrite := fmt.Appendf(nil, "stay%d", rand.IntN(stay))
				tx.Begin()
				tx.Add(0, name)
				tx.Add(0, rewrite)
				if (rand.IntN(2) == 0 || !tx.AcquireFast()) && tx.Acquire(nil) != nil {
					panic("the keys were not acquired")
				}
				if k := tx.Key(0, name); !k.Delete() {
					k.SetString([]byte("v"), store.NoTTL)
				}
				tx.Key(0, rewrite).SetString([]byte("w"), store.ExpireIn(1_000_000))
				if rand.IntN(4) == 0 {
					tx.Rollback()
				} else if tx.Commit() != nil {
					panic("the log refused")
				}
			}
		})
	}
	for range 20 {
		tx := f.visit()
		met := names(tx, 0, 10)
		tx.Rollback()
		for name, n := range met {
			if n != 1 {
				f.Errorf("%s was met %d times", name, n)
			}
		}
		for i := range stay {
			if met[fmt.Sprint("stay", i)] == 0 {
				f.Errorf("stay%d was not met, though it was always there", i)
			}
		}
		if f.Failed() {
			break
		}
	}
	close(stop)
	wg.Wait()
}

func testRandomKey(f *fixture) {
	tx := f.visit()
	if name, ok := tx.RandomKey(0); ok {
		f.Errorf("an empty database has the key %q", name)
	}
	tx.Rollback()
	for i := range 5 {
		f.set(fmt.Sprint("k", i), "v")
	}
	f.setTTL("expired", "v", store.ExpireIn(1))
	f.clock.Advance(time.Second)
	seen := make(map[string]int)
	for range 1000 {
		tx := f.visit()
		name, ok := tx.RandomKey(0)
		tx.Rollback()
		if !ok || name == "expired" {
			f.Fatalf("random key %q, %v", name, ok)
		}
		seen[name]++
	}
	// Each comes up 111 times at least on average, wherever their shards lie.
	for i := range 5 {
		if name := fmt.Sprint("k", i); seen[name] < 40 {
			f.Errorf("in 1,000 draws %s came up %d times, want 40 at least", name, seen[name])
		}
	}

	// Where a shard holds many, too.
	f.setTTL("k0", "v", store.ExpireIn(1))
	f.clock.Advance(time.Second)
	for i := range 4000 {
		f.set(fmt.Sprint("many", i), "v")
	}
	clear(seen)
	for range 4000 {
		tx := f.visit()
		name, ok := tx.RandomKey(0)
		tx.Rollback()
		if !ok || name == "k0" {
			f.Fatalf("random key %q, %v", name, ok)
		}
		seen[name]++
	}
	// Of 4,000 draws out of 4,004 some 2,500 differ.
	if len(seen) < 2000 {
		f.Errorf("4,000 draws met %d keys of 4,004, want 2,000 at least", len(seen))
	}
}
