package budget

import (
	"sync/atomic"
	"testing"
	"time"
)

// fakeRun is a run that notes how it was ended.
type fakeRun struct{ kill atomic.Pointer[error] }

func (r *fakeRun) Kill(reason error) { r.kill.CompareAndSwap(nil, &reason) }

// fakeHeap is a heap that a test fills.
type fakeHeap struct {
	HeapSample
	collected int
	garbage   int64
}

func (h *fakeHeap) read() HeapSample { return h.HeapSample }

func (h *fakeHeap) collect() {
	h.collected++
	h.Cycles += 2
	h.Objects -= h.garbage
	h.garbage = 0
	h.Live, h.All = h.Objects, h.Objects
}

// take is what a script does that allocates n bytes.
func (h *fakeHeap) take(a *Account, n int64) bool {
	ok := a.Alloc(int(n))
	if ok {
		h.Objects += n
	}
	return ok
}

func begin(p *Pool, h *fakeHeap, perInstruction int64) (*Account, *fakeRun) {
	r := &fakeRun{}
	a := &Account{}
	a.Begin(&Terms{Limits: Limits{Memory: 1 << 40}, PerInstruction: perInstruction, Now: time.Now, Heap: h.read, Pool: p, Run: r, Kill: &r.kill})
	return a, r
}

func TestPoolEndsTheLargest(t *testing.T) {
	h := &fakeHeap{HeapSample: HeapSample{Objects: 1 << 30, Live: 1 << 30}}
	p := NewPool(100<<20, h.read, h.collect)
	small, smallRun := begin(p, h, 0)
	large, largeRun := begin(p, h, 0)
	if !h.take(small, 30<<20) || !h.take(large, 60<<20) {
		t.Fatal("a run was ended below the limit")
	}
	if h.take(small, 20<<20) == false {
		t.Error("the smaller run was ended, want the larger one")
	}
	if largeRun.kill.Load() == nil || *largeRun.kill.Load() != ErrPool || smallRun.kill.Load() != nil {
		t.Errorf("ended for %v and %v, want the larger one for ErrPool", largeRun.kill.Load(), smallRun.kill.Load())
	}
	if large.Pay(1<<20) || large.Stop != ErrPool {
		t.Errorf("the larger run goes on, for %v", large.Stop)
	}
	// Until it has gone nobody else is ended for what it holds.
	if !h.take(small, 1<<20) || smallRun.kill.Load() != nil {
		t.Error("a second run was ended for what the first holds")
	}
	large.End()
	h.Objects -= 60 << 20
	small.End()
	if p.Total() != 0 || p.shares.Len() != 0 {
		t.Errorf("%d bytes of %d runs are counted when none runs", p.Total(), p.shares.Len())
	}
}

// TestPoolKnowsGarbage: what is dead does not count.
func TestPoolKnowsGarbage(t *testing.T) {
	h := &fakeHeap{}
	p := NewPool(100<<20, h.read, h.collect)
	a, r := begin(p, h, 0)
	defer a.End()
	for range 1000 {
		if !h.take(a, 10<<20) {
			t.Fatalf("a run that holds nothing was ended for %v", *r.kill.Load())
		}
		h.garbage += 10 << 20
	}
	if h.collected == 0 || h.collected > 200 {
		t.Errorf("the collector ran %d times for 10 GB of garbage, want some", h.collected)
	}
}

// TestPoolForgivesLoops: what instructions are taken to allocate does not end a
// run that allocates nothing, nor beside one that does.
func TestPoolForgivesLoops(t *testing.T) {
	h := &fakeHeap{}
	p := NewPool(100<<20, h.read, h.collect)
	spin, spinRun := begin(p, h, 160)
	hold, holdRun := begin(p, h, 160)
	defer spin.End()
	defer hold.End()
	for range 100 {
		if !spin.Pay(1 << 20) {
			t.Fatalf("a loop was ended for %v", spin.Stop)
		}
	}
	if !h.take(hold, 90<<20) {
		t.Fatal("a run was ended below the limit")
	}
	for range 100 {
		if !spin.Pay(1 << 20) {
			t.Fatalf("a loop was ended for %v", spin.Stop)
		}
	}
	if h.take(hold, 90<<20) || holdRun.kill.Load() == nil || spinRun.kill.Load() != nil {
		t.Error("the run that holds the memory was not the one to go")
	}
}

func TestPoolLimitCanChange(t *testing.T) {
	h := &fakeHeap{}
	p := NewPool(0, h.read, h.collect)
	a, _ := begin(p, h, 0)
	defer a.End()
	if !h.take(a, 1<<30) {
		t.Error("the default is less than 1 GiB")
	}
	p.SetLimit(1 << 20)
	if h.take(a, 1<<16) || a.Stop != ErrPool {
		t.Errorf("above a lower limit the run ends for %v, want ErrPool", a.Stop)
	}
}
