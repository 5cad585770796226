package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestIndexAgainstMap holds the index against a map under random additions,
// replacements and removals, with hashes that collide often.
func TestIndexAgainstMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, spread := range []uint64{1, 7, 1 << 10, 1 << 40} {
		var x index
		model := map[string]*entry{}
		hash := func(name string) uint64 {
			var h uint64 = 14695981039346656037
			for _, c := range []byte(name) {
				h = (h ^ uint64(c)) * 1099511628211
			}
			return h % spread
		}
		for step := range 40000 {
			n := 300
			if step/10000%2 == 1 {
				n = 20 // shrink again
			}
			name := fmt.Sprintf("key:%d", rng.IntN(300))
			old := model[name]
			if rng.IntN(300) < n && step/10000%2 == 0 || old == nil && rng.IntN(300) < n {
				e := newEntry([]byte(name))
				x.set(hash(name), e, old)
				model[name] = e
			} else if old != nil {
				x.remove(hash(name), old)
				delete(model, name)
			}
			if x.n != len(model) {
				t.Fatalf("spread %d, step %d: the index holds %d entries, the map %d", spread, step, x.n, len(model))
			}
			probe := fmt.Sprintf("key:%d", rng.IntN(300))
			if got, want := x.get(hash(probe), []byte(probe)), model[probe]; got != want {
				t.Fatalf("spread %d, step %d: get(%s) is %p, the map has %p", spread, step, probe, got, want)
			}
		}
		seen := 0
		for i, slot := range x.all() {
			if e := slot.e; e != nil {
				seen++
				if model[e.key] != e {
					t.Fatalf("spread %d: slot %d holds %q, which the map does not", spread, i, e.key)
				}
			}
		}
		if seen != len(model) {
			t.Fatalf("spread %d: %d slots are in use for %d entries", spread, seen, len(model))
		}
		if len(x.all()) > smallestIndex && x.n*8 < len(x.all()) {
			t.Fatalf("spread %d: %d slots are kept for %d entries", spread, len(x.all()), x.n)
		}
	}
}

func BenchmarkIndexGet(b *testing.B) {
	var x index
	names := make([][]byte, 1000)
	for i := range names {
		names[i] = fmt.Appendf(nil, "key:%012d", i)
		x.set(uint64(i)*0x9e3779b97f4a7c15, newEntry(names[i]), nil)
	}
	for i := 0; b.Loop(); i++ {
		at := i % len(names)
		if x.get(uint64(at)*0x9e3779b97f4a7c15, names[at]) == nil {
			b.Fatal("an entry is missing")
		}
	}
}
