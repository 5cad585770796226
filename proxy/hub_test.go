package proxy

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestListeners holds the listeners of a channel against a slice: whoever leaves, the
// others stay in the order in which they came.
func TestListeners(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	l := &listeners{at: make(map[*client]int)}
	var want []*client
	for step := range 3000 {
		if grow := step/500%2 == 0; len(want) == 0 || r.IntN(10) < 3 != grow {
			c := &client{}
			l.add(c)
			l.add(c) // again: nothing happens
			want = append(want, c)
		} else {
			i := r.IntN(len(want))
			l.remove(want[i])
			l.remove(want[i])
			want = slices.Delete(want, i, i+1)
		}
		got := slices.DeleteFunc(slices.Clone(l.clients), func(c *client) bool { return c == nil })
		if !slices.Equal(got, want) || l.count() != len(want) {
			t.Fatalf("step %d: %d listeners, %d counted, want the %d of the model in its order", step, len(got), l.count(), len(want))
		}
		if len(l.clients) > 2*len(want)+1 {
			t.Fatalf("step %d: %d places are kept for %d listeners", step, len(l.clients), len(want))
		}
	}
}

// BenchmarkListenersLeave has as many clients leave a channel as there may be.
func BenchmarkListenersLeave(b *testing.B) {
	clients := make([]*client, 10_000)
	for i := range clients {
		clients[i] = &client{}
	}
	for b.Loop() {
		l := &listeners{at: make(map[*client]int)}
		for _, c := range clients {
			l.add(c)
		}
		for _, c := range clients {
			l.remove(c)
		}
	}
}
