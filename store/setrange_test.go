package store

import "testing"

// What SetRange overwrites in place comes back with a rollback, whatever the
// transaction did to the key afterwards.
func TestSetRangeIsUndone(t *testing.T) {
	name := []byte("k")
	tests := []struct {
		name   string
		change func(tx *Tx, k *Key)
	}{
		{"overwrite", func(tx *Tx, k *Key) { k.SetRange(1, []byte("XY")) }},
		{"over the end", func(tx *Tx, k *Key) { k.SetRange(4, []byte("XYZ")) }},
		{"behind a gap", func(tx *Tx, k *Key) { k.SetRange(20, []byte("XYZ")) }},
		{"then grown into new memory", func(tx *Tx, k *Key) {
			k.SetRange(1, []byte("XY"))
			k.Append(make([]byte, 100))
		}},
		{"then set", func(tx *Tx, k *Key) {
			k.SetRange(1, []byte("XY"))
			k.SetString([]byte("other"), NoTTL)
		}},
		{"then deleted in a released savepoint", func(tx *Tx, k *Key) {
			sp := tx.Savepoint()
			k.SetRange(1, []byte("XY"))
			tx.Release(sp)
			sp = tx.Savepoint()
			k.Delete()
			tx.Release(sp)
		}},
		{"grown, undone to a savepoint, grown again", func(tx *Tx, k *Key) {
			k.Append([]byte("0"))
			sp := tx.Savepoint()
			k.Append([]byte("123"))
			tx.RollbackTo(sp)
			if n := k.SetRange(8, []byte("Z")); n != 9 || string(k.Str()) != "value0\x00\x00Z" {
				t.Errorf("the gap holds what was undone: %q", k.Str())
			}
		}},
	}
	for _, locked := range []bool{false, true} {
		for _, tt := range tests {
			s, err := New(Options{})
			if err != nil {
				t.Fatal(err)
			}
			tx := s.NewTx()
			within := func(f func(k *Key)) {
				tx.Begin()
				tx.Add(0, name)
				if locked {
					err = tx.Acquire(nil)
				} else if !tx.AcquireFast() {
					t.Fatal("the key is locked")
				}
				if err != nil {
					t.Fatal(err)
				}
				f(tx.Key(0, name))
			}
			within(func(k *Key) { k.SetString([]byte("value"), NoTTL) })
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			within(func(k *Key) { tt.change(tx, k) })
			tx.Rollback()
			within(func(k *Key) {
				if got := string(k.Str()); got != "value" || k.Raw() {
					t.Errorf("%s, locked %v: %q, raw %v, want the value from before", tt.name, locked, got, k.Raw())
				}
			})
			tx.Rollback()
			s.Close()
		}
	}
}

// SetRange makes an absent key, and a key whose time has passed, anew.
func TestSetRangeOfAbsentKey(t *testing.T) {
	clock := NewManualClock(1000)
	s, err := New(Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	name := []byte("k")
	tx := s.NewTx()
	write := func(f func(k *Key)) {
		t.Helper()
		tx.Begin()
		tx.Add(0, name)
		if !tx.AcquireFast() {
			t.Fatal("the key is locked")
		}
		f(tx.Key(0, name))
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	write(func(k *Key) { k.SetRange(2, []byte("ab")) })
	write(func(k *Key) {
		if string(k.Str()) != "\x00\x00ab" || k.Expiry() != 0 || k.Kind() != String {
			t.Errorf("%q, expiry %d", k.Str(), k.Expiry())
		}
		k.SetExpiry(ExpireIn(10))
	})
	clock.Advance(20e6)
	write(func(k *Key) { k.SetRange(1, []byte("c")) })
	write(func(k *Key) {
		if string(k.Str()) != "\x00c" || k.Expiry() != 0 {
			t.Errorf("after its expiry: %q, expiry %d", k.Str(), k.Expiry())
		}
	})
	if n, v := s.Size(0), s.Volatile(0); n != 1 || v != 0 {
		t.Errorf("%d entries, %d with an expiry, want 1 and 0", n, v)
	}
}
