package plugins

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Many use few instances at once, end some, and give up waiting: no instance is had
// by two, none is lost, there are never too many, and who waits is served.
func TestPoolUnderContention(t *testing.T) {
	const most, goroutines, rounds = 3, 16, 4000
	pooled := newPool(most)
	p := &pooled
	var users [goroutines * rounds]atomic.Int32 // of each instance, by number
	numbers := map[*instance]int{}
	var mu sync.Mutex
	var made, alive atomic.Int32
	use := func(in *instance) {
		mu.Lock()
		n, ok := numbers[in]
		if !ok {
			n = int(made.Add(1)) - 1
			numbers[in] = n
		}
		mu.Unlock()
		if users[n].Add(1) != 1 {
			t.Error("two have the same instance")
		}
		users[n].Add(-1)
	}
	fill := func() *instance {
		if n := alive.Add(1); n > most {
			t.Errorf("there are %d instances, want %d at most", n, most)
		}
		in := &instance{}
		p.fill(in)
		return in
	}
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range rounds {
				in := p.ready()
				if in == nil {
					var place bool
					var next chan *instance
					var open bool
					if in, place, next, open = p.acquire((g+i)%5 != 0); !open {
						t.Error("the pool is closed")
						return
					}
					if next != nil {
						if (g+i)%7 == 0 && p.cancel(next) {
							continue
						}
						select {
						case in = <-next:
						case <-time.After(time.Minute):
							t.Error("who waits is not served")
							return
						}
						place = in == nil
					}
					if place {
						in = fill()
					}
				}
				if in != nil {
					use(in)
					if (g*rounds+i)%11 == 0 {
						alive.Add(-1)
						p.vacate(in)
					} else if p.put(in) != nil {
						t.Error("an open pool does not take an instance back")
					}
				}
			}
		})
	}
	all.Wait()
	if p.running() != 0 || len(p.waiting) != 0 || p.queued.Load() != 0 {
		t.Errorf("%d run and %d wait after all", p.running(), len(p.waiting))
	}
	ready, last := p.close()
	if last != (len(ready) == 0) || len(ready) != int(alive.Load()) || p.size() != len(ready) {
		t.Errorf("closed with %d instances ready of %d, %d alive, idle %v", len(ready), p.size(), alive.Load(), last)
	}
}

// A pool that closes while an instance is out gives none any more, takes none back,
// and says once that the last has gone.
func TestPoolCloses(t *testing.T) {
	pooled := newPool(3)
	p := &pooled
	both := []*instance{{}, {}}
	for i, in := range both {
		if _, place, _, open := p.acquire(false); !place || !open {
			t.Fatal("an open pool has no place")
		}
		if p.running() != i {
			t.Errorf("%d run, want %d: an instance is being made", p.running(), i)
		}
		p.fill(in)
	}
	if p.running() != 2 {
		t.Errorf("%d run, want 2", p.running())
	}
	for _, in := range both {
		if p.put(in) != nil {
			t.Fatal("an open pool does not take an instance back")
		}
	}
	in := p.ready()
	if in == nil || p.running() != 1 || p.taken() != 1 {
		t.Fatalf("took %v, %d run and %d were counted, want an instance, 1 and 1", in, p.running(), p.taken())
	}
	ready, last := p.close()
	if last || len(ready) != 1 || ready[0] == in {
		t.Errorf("closed with %d ready, last %v; want the other instance, and one out", len(ready), last)
	}
	if p.ready() != nil || p.spare() {
		t.Error("a closed pool has something left")
	}
	if _, _, _, open := p.acquire(true); open {
		t.Error("a closed pool lets a call wait")
	}
	if p.vacate(ready[0]) {
		t.Error("the instance that was ready is not the last")
	}
	if p.put(in) != in {
		t.Error("a closed pool takes an instance back")
	}
	if !p.vacate(in) || p.size() != 0 {
		t.Error("the last instance has gone, and this was not told")
	}
}

// An instance that ends while a call waits for one leaves its place to it, though
// the pool is closed: its code must live until then.
func TestPoolClosesOnWaiting(t *testing.T) {
	pooled := newPool(1)
	p := &pooled
	p.acquire(false)
	in := &instance{}
	p.fill(in)
	_, _, next, _ := p.acquire(true)
	if next == nil {
		t.Fatal("there is nothing to wait for")
	}
	p.close()
	if p.put(in) != in || p.vacate(in) {
		t.Error("the instance came back, and was the last though a call waits for its place")
	}
	if got := <-next; got != nil {
		t.Error("who waited got an instance, want a place")
	}
	p.fill(in)
	if p.running() != 1 {
		t.Errorf("%d run, want 1", p.running())
	}
	if !p.vacate(in) {
		t.Error("the last has gone, and this was not told")
	}
}
