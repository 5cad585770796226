package store

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
)

// contents is all that a collection holds, in its order, and what it counts.
func contents(tx *Tx, keys ...string) string {
	out := ""
	for _, name := range keys {
		k := tx.Key(0, []byte(name))
		out += fmt.Sprintf("%s %s size %d:", name, k.Kind(), k.Size())
		switch k.Kind() {
		case List:
			l := k.list()
			for i := range l.n {
				out += fmt.Sprintf(" %q", l.at(i))
			}
			out += fmt.Sprintf(" (%v %d %d)", l.enc, l.bytes, l.allocs)
		case Set:
			s := k.set()
			for i, m := range s.items {
				if s.find([]byte(m)) != i {
					out += " misplaced"
				}
				out += fmt.Sprintf(" %q", m)
			}
			if s.places != nil && len(s.places) != len(s.items) {
				out += " lost"
			}
			out += fmt.Sprintf(" (%v %d)", s.enc, s.allocs)
		}
		out += "\n"
	}
	return out
}

// changeAtRandom makes one random change of a list or a set. Large ones cross the
// thresholds of rings, maps and encodings.
func changeAtRandom(r *rand.Rand, tx *Tx, keys []string) {
	k := tx.Key(0, []byte(keys[r.IntN(len(keys))]))
	other := tx.Key(0, []byte(keys[r.IntN(len(keys))]))
	value := func() []byte {
		if r.IntN(40) == 0 {
			return make([]byte, r.IntN(5000))
		}
		return strconv.AppendInt(nil, int64(r.IntN(60)), 10)
	}
	values := func() [][]byte {
		out := make([][]byte, 1+r.IntN(30))
		for i := range out {
			out[i] = value()
		}
		return out
	}
	end := End(r.IntN(2))
	switch r.IntN(12) {
	case 0:
		k.Delete()
		return
	case 1:
		if k != other && k.Exists() {
			k.MoveTo(other)
		}
		return
	case 2:
		if k != other && k.Exists() {
			k.CopyTo(other)
		}
		return
	case 3:
		k.SetString(value(), NoTTL)
		return
	}
	switch k.Kind() {
	case String:
		k.Delete()
	case None:
		if r.IntN(2) == 0 {
			k.Push(end, values()...)
		} else {
			k.AddMembers(values()...)
		}
	case List:
		n := k.Len()
		switch r.IntN(8) {
		case 0, 1:
			k.Push(end, values()...)
		case 2:
			k.Pop(end, 1+r.IntN(n), func(string) {})
		case 3:
			k.SetElement(r.IntN(n), value())
		case 4:
			k.InsertBeside([]byte(k.Element(r.IntN(n))), end == Head, value())
		case 5:
			k.RemoveElements([]byte(k.Element(r.IntN(n))), r.IntN(5)-2)
		case 6:
			from := r.IntN(n)
			k.Trim(from, from+r.IntN(n-from))
		default:
			k.Rotate(end, End(r.IntN(2)))
		}
	case Set:
		switch r.IntN(5) {
		case 0, 1:
			k.AddMembers(values()...)
		case 2:
			k.RemoveMembers(values()...)
		case 3:
			k.PopMembers(1+r.IntN(k.Card()), r.IntN, func(string) {})
		default:
			k.StoreMembers(append([]string(nil), k.Members()[r.IntN(k.Card()):]...))
		}
	}
}

// What is undone, by savepoints within savepoints or as a whole, must leave the
// collections exactly as they were, and the account of memory too.
func TestCollectionsAreUndone(t *testing.T) {
	keys := []string{"a", "b", "c"}
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 0))
		s, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		tx := s.NewTx()
		begin := func() {
			tx.Begin()
			for _, k := range keys {
				tx.Add(0, []byte(k))
			}
			if r.IntN(2) == 0 || !tx.AcquireFast() {
				if err := tx.Acquire(nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		var within func(depth int)
		within = func(depth int) {
			for range r.IntN(8) {
				if depth == 3 || r.IntN(3) > 0 {
					changeAtRandom(r, tx, keys)
					continue
				}
				before := contents(tx, keys...)
				sp := tx.Savepoint()
				within(depth + 1)
				if r.IntN(2) == 0 {
					tx.Release(sp)
					continue
				}
				tx.RollbackTo(sp)
				if after := contents(tx, keys...); after != before {
					t.Fatalf("seed %d: after RollbackTo\n%swant\n%s", seed, after, before)
				}
			}
		}
		for range 100 {
			begin()
			before := contents(tx, keys...)
			used := s.UsedMemory()
			within(0)
			if r.IntN(2) == 0 {
				tx.Rollback()
				begin()
				if after := contents(tx, keys...); after != before || s.UsedMemory() != used {
					t.Fatalf("seed %d: after Rollback, %d bytes\n%swant %d bytes\n%s", seed, s.UsedMemory(), after, used, before)
				}
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			begin()
			var sum int64
			for _, k := range keys {
				sum += tx.Key(0, []byte(k)).Size()
			}
			if sum != s.UsedMemory() {
				t.Fatalf("seed %d: the entries have %d bytes, the account says %d", seed, sum, s.UsedMemory())
			}
			tx.Rollback()
		}
		// Changed in place and flushed by the same transaction.
		tx.Begin()
		if err := tx.AcquireAll(nil); err != nil {
			t.Fatal(err)
		}
		within(0)
		tx.FlushAll()
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if s.UsedMemory() != 0 {
			t.Fatalf("seed %d: %d bytes are left of an empty store", seed, s.UsedMemory())
		}
		s.Close()
	}
}
