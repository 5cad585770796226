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
