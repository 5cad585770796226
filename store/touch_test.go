package store

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// touched is a store of n keys whose names are their values.
func touched(t testing.TB, n int) (s *Store, names [][]byte) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	names = make([][]byte, n)
	tx := s.NewTx()
	for i := range names {
		names[i] = fmt.Appendf(nil, "key:%012d", i)
		setOrDel(t, tx, names[i], false)
	}
	return s, names
}

func setOrDel(t testing.TB, tx *Tx, name []byte, del bool) {
	tx.Begin()
	tx.Add(0, name)
	if !tx.AcquireFast() {
		t.Error("a key is locked that nobody locked")
		tx.Rollback()
		return
	}
	if k := tx.Key(0, name); del {
		k.Delete()
	} else {
		k.SetString(name, NoTTL)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
}

// TestTouchBare holds the touch that takes no latches against the one that does:
// they find the same entries.
func TestTouchBare(t *testing.T) {
	s, names := touched(t, 2*touchFrom)
	tx := s.NewTx()
	for i := 0; i < len(names); i += 3 {
		setOrDel(t, tx, names[i], true)
	}
	for at := 0; at < len(names); at += touchMost {
		some := names[at:min(at+touchMost, len(names))]
		bare, latched := s.touchBare(0, some, true), s.touchLatched(0, some)
		if bare != latched || bare < len(some)/2 {
			t.Fatalf("of %d keys, two of three of them set, %d were found without latches, %d with them", len(some), bare, latched)
		}
		if n := s.touchBare(1, some, false); n != 0 {
			t.Fatalf("%d keys were found in an empty database", n)
		}
	}
}

// TestTouchChangesNothing touches keys that are there, are not, and come and go
// meanwhile, with their whole tables, while the collector takes what has gone.
func TestTouchChangesNothing(t *testing.T) {
	s, names := touched(t, 2*touchFrom)
	stay, come := names[:touchFrom], names[touchFrom:]
	s.Touch(0, nil, true)
	s.Touch(1, names, true)
	var writers, touchers sync.WaitGroup
	var done atomic.Bool
	for range 2 {
		touchers.Go(func() {
			for at := 0; !done.Load(); at = (at + 7) % len(names) {
				s.Touch(0, names[at:], true)
			}
		})
	}
	writers.Go(func() {
		tx := s.NewTx()
		for round := range 4 {
			for _, n := range come {
				setOrDel(t, tx, n, true)
			}
			if round%2 == 0 {
				// Tables that grow and shrink.
				for i := range 5 * touchFrom {
					setOrDel(t, tx, fmt.Appendf(nil, "more:%d", i), false)
				}
				for i := range 5 * touchFrom {
					setOrDel(t, tx, fmt.Appendf(nil, "more:%d", i), true)
				}
			}
			for _, n := range come {
				setOrDel(t, tx, n, false)
			}
			runtime.GC()
		}
	})
	writers.Wait()
	done.Store(true)
	touchers.Wait()
	if n := s.Size(0); n != int64(len(names)) {
		t.Fatalf("the database holds %d keys, want the %d that were set", n, len(names))
	}
	tx := s.NewTx()
	for _, n := range stay {
		tx.Begin()
		tx.Add(0, n)
		tx.AcquireFast()
		if got := tx.Key(0, n).Str(); string(got) != string(n) {
			t.Fatalf("%s holds %q after being touched", n, got)
		}
		tx.Rollback()
	}
}

// The keys are as many as benchmarks of whole servers use, so that there is
// something to be fetched.
func BenchmarkTouch(b *testing.B) {
	const batch = 16
	s, names := touched(b, 100_000)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, way := range []struct {
		name  string
		touch func(phys int, names [][]byte) int
	}{
		{"bare", func(phys int, names [][]byte) int { return s.touchBare(phys, names, true) }},
		{"latched", s.touchLatched},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			at := 0
			for b.Loop() {
				way.touch(0, names[at:at+batch])
				if at += batch; at+batch > len(names) {
					at = 0
				}
			}
		})
	}
}
