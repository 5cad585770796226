package store

import (
	"fmt"
	"sync"
	"testing"
)

// TestTouchChangesNothing touches keys that are there, are not, and come and go
// meanwhile.
func TestTouchChangesNothing(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	names := make([][]byte, 100)
	for i := range names {
		names[i] = fmt.Appendf(nil, "key:%d", i)
	}
	set := func(tx *Tx, name []byte, del bool) {
		tx.Begin()
		tx.Add(0, name)
		if !tx.AcquireFast() {
			t.Error("a key is locked that nobody locked")
			return
		}
		k := tx.Key(0, name)
		if del {
			k.Delete()
		} else {
			k.SetString(name, NoTTL)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
	}
	tx := s.NewTx()
	for _, n := range names[:50] {
		set(tx, n, false)
	}
	s.Touch(0, nil)
	s.Touch(1, names)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 200 {
			for at := 0; at < len(names); at += 7 {
				s.Touch(0, names[at:])
			}
		}
	})
	wg.Go(func() {
		tx := s.NewTx()
		for range 100 {
			for _, n := range names[50:] {
				set(tx, n, false)
			}
			for _, n := range names[50:] {
				set(tx, n, true)
			}
		}
	})
	wg.Wait()
	if n := s.Size(0); n != 50 {
		t.Fatalf("the database holds %d keys, want the 50 that were set", n)
	}
	for _, n := range names[:50] {
		tx.Begin()
		tx.Add(0, n)
		tx.AcquireFast()
		if got := tx.Key(0, n).Str(); string(got) != string(n) {
			t.Fatalf("%s holds %q after being touched", n, got)
		}
		tx.Rollback()
	}
}

func BenchmarkTouch(b *testing.B) {
	s, _ := New(Options{})
	names := make([][]byte, 16)
	tx := s.NewTx()
	for i := range names {
		names[i] = fmt.Appendf(nil, "key:%012d", i)
		tx.Begin()
		tx.Add(0, names[i])
		tx.AcquireFast()
		tx.Key(0, names[i]).SetString(names[i], NoTTL)
		tx.Commit()
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Touch(0, names)
	}
}
