package budget

import (
	"testing"
	"time"
)

// grow is what a script does that takes n bytes, on a heap whose collector runs when
// it has grown to twice what was alive, as Go's does.
func (h *fakeHeap) grow(a *Account, n int64) bool {
	if !h.take(a, n) {
		return false
	}
	if h.Objects >= 2*max(h.Live, 4<<20) {
		h.Cycles++
		h.Objects -= h.garbage
		h.garbage, h.Live, h.All = 0, h.Objects, h.Objects
	}
	return true
}

func beginLimited(h *fakeHeap, p *Pool, limit int64) *Account {
	a := &Account{}
	a.Begin(&Terms{Limits: Limits{Memory: limit}, Now: time.Now, Heap: h.read, Collect: h.collect, Pool: p, Run: &fakeRun{}})
	return a
}

// TestMemoryIsBoundedThoughTheCollectorRests: what was allocated since the collector
// last ran is not taken for dead, nor may a run go on until it runs by itself.
func TestMemoryIsBoundedThoughTheCollectorRests(t *testing.T) {
	for name, piece := range map[string]int64{"large pieces": 1 << 20, "small pieces": 200} {
		t.Run(name, func(t *testing.T) {
			const limit = 256 << 20
			h := &fakeHeap{HeapSample: HeapSample{Objects: 8 << 20, Live: 6 << 20, Cycles: 3, All: 6 << 20}}
			a := beginLimited(h, nil, limit)
			defer a.End()
			held := int64(0)
			for held < 4*limit && h.grow(a, piece) {
				held += piece
			}
			if a.Stop != ErrMemory || held < limit*9/10 || held > limit*5/4 {
				t.Errorf("a run that keeps all that it takes ended with %d MiB, for %v, want some %d MiB and ErrMemory", held>>20, a.Stop, limit>>20)
			}
		})
	}
}

// TestMemoryKnowsGarbage: a run that holds little may take as much as it likes, and
// does not have the collector run much more often than it would by itself.
func TestMemoryKnowsGarbage(t *testing.T) {
	const limit = 256 << 20
	h := &fakeHeap{HeapSample: HeapSample{Objects: 8 << 20, Live: 6 << 20, Cycles: 3, All: 6 << 20}}
	a := beginLimited(h, nil, limit)
	defer a.End()
	for range 10_000 {
		if !h.grow(a, 1<<20) {
			t.Fatalf("a run that holds nothing was ended for %v", a.Stop)
		}
		h.garbage += 1 << 20
	}
	if h.collected > 50 {
		t.Errorf("it had the collector run %d times for 10 GB of garbage", h.collected)
	}
}

// TestMemoryBesideMuch: where there is much alive to go through, garbage does not have
// the collector run for each limit that is taken.
func TestMemoryBesideMuch(t *testing.T) {
	const limit = 16 << 20
	h := &fakeHeap{HeapSample: HeapSample{Objects: 8 << 30, Live: 8 << 30, Cycles: 3, All: 8 << 30}}
	a := beginLimited(h, nil, limit)
	defer a.End()
	for held := 0; held < 3*limit>>20; held++ {
		if !h.grow(a, 1<<20) {
			t.Fatalf("it ended for %v with %d MiB: whether they are dead costs too much to know", a.Stop, held)
		}
	}
	if h.collected != 0 {
		t.Errorf("the collector went %d times through 8 GiB for %d MiB", h.collected, 3*limit>>20)
	}
}

// TestPoolIsBoundedThoughTheCollectorRests: the same for what all runs hold together.
func TestPoolIsBoundedThoughTheCollectorRests(t *testing.T) {
	const limit = 256 << 20
	h := &fakeHeap{HeapSample: HeapSample{Objects: 8 << 20, Live: 6 << 20, Cycles: 3, All: 6 << 20}}
	p := NewPool(limit, h.read, h.collect)
	a, run := begin(p, h, 0)
	defer a.End()
	held := int64(0)
	for held < 4*limit && run.kill.Load() == nil && h.grow(a, 1<<20) {
		held += 1 << 20
	}
	if run.kill.Load() == nil || held < limit*9/10 || held > limit*5/4 {
		t.Errorf("a run that keeps all that it takes was ended with %d MiB, killed %v, want some %d MiB", held>>20, run.kill.Load() != nil, limit>>20)
	}
}

// TestMemoryAfterAnother: what the run before has left, which nobody has collected yet,
// hides nothing of what this one holds.
func TestMemoryAfterAnother(t *testing.T) {
	const limit = 256 << 20
	h := &fakeHeap{HeapSample: HeapSample{Objects: 8 << 20, Live: 6 << 20, Cycles: 3, All: 6 << 20}}
	p := NewPool(1<<40, h.read, h.collect)
	for i := range 5 {
		a := beginLimited(h, p, limit)
		held := int64(0)
		for held < 4*limit && h.grow(a, 1<<20) {
			held += 1 << 20
		}
		if a.Stop != ErrMemory || held < limit*9/10 || held > limit*5/4 {
			t.Errorf("run %d of those that keep all that they take ended with %d MiB, for %v, want some %d MiB", i, held>>20, a.Stop, limit>>20)
		}
		a.End()
		h.garbage += held
	}
}
