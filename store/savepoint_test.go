package store

import "testing"

// A script of a million writes to one key must not hold a million records.
func TestReleaseForgets(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tx := s.NewTx()
	tx.Begin()
	tx.Add(0, []byte("k"))
	if err := tx.Acquire(nil); err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	for range 1000 {
		outer := tx.Savepoint()
		inner := tx.Savepoint()
		tx.Key(0, []byte("k")).SetString([]byte("v"), NoTTL)
		tx.Release(inner)
		tx.Release(outer)
	}
	if n := len(tx.undo); n != 1 {
		t.Errorf("1,000 released writes of one key left %d undo records, want 1", n)
	}
}

// The first savepoint of a transaction, which has changed nothing yet, and those within
// it are undone each to what was there when it began, in place and in copies.
func TestFirstSavepoint(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	name := []byte("k")
	for _, short := range []bool{true, false} {
		tx := s.NewTx()
		begin := func() *Key {
			t.Helper()
			tx.Begin()
			tx.Add(0, name)
			if short {
				if !tx.AcquireFast() {
					t.Fatal("the key is locked")
				}
			} else if err := tx.Acquire(nil); err != nil {
				t.Fatal(err)
			}
			return tx.Key(0, name)
		}
		is := func(k *Key, want string, effects int) {
			t.Helper()
			if got := string(k.Str()); got != want || tx.Effects() != effects {
				t.Errorf("short %v: the key is %q with %d effects, want %q with %d", short, got, tx.Effects(), want, effects)
			}
		}
		begin().SetString([]byte("old"), NoTTL)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		k := begin()
		for range 3 {
			first := tx.Savepoint()
			within := tx.Savepoint() // nothing has changed here either
			k.SetString([]byte("a"), NoTTL)
			tx.Release(within)
			later := tx.Savepoint()
			k.SetString([]byte("b"), ExpireIn(1000))
			last := tx.Savepoint()
			k.Delete()
			is(k, "", 3)
			tx.RollbackTo(last)
			is(k, "b", 2)
			tx.RollbackTo(later)
			is(k, "a", 1)
			if k.Expiry() != 0 {
				t.Errorf("short %v: an expiry is left that was undone", short)
			}
			tx.RollbackTo(first)
			is(k, "old", 0)
		}
		first := tx.Savepoint()
		k.SetString([]byte("c"), NoTTL)
		tx.Release(first)
		is(k, "c", 1)
		tx.Rollback()
		k = begin()
		is(k, "old", 0)
		tx.Rollback()
	}
}
