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
	p := &pool{most: most}
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
		return &instance{}
	}
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range rounds {
				if !p.enter() {
					t.Error("the pool is closed")
					return
				}
				in := p.ready()
				if in == nil {
					var place bool
					var next chan *instance
					in, place, next = p.acquire((g+i)%5 != 0)
					if next != nil {
						if (g+i)%7 == 0 && p.cancel(next) {
							p.leave()
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
						p.vacate()
					} else if p.put(in) != nil {
						t.Error("an open pool does not take an instance back")
					}
				}
				p.leave()
			}
		})
	}
	all.Wait()
	if p.running() != 0 || len(p.waiting) != 0 || p.queued.Load() != 0 {
		t.Errorf("%d run and %d wait after all", p.running(), len(p.waiting))
	}
	ready, idle := p.close()
	if !idle || len(ready) != int(alive.Load()) || p.size() != len(ready) {
		t.Errorf("closed with %d instances ready of %d, %d alive, idle %v", len(ready), p.size(), alive.Load(), idle)
	}
}

// A pool that closes while calls are under way takes no instance back, and says
// once that the last call has left.
func TestPoolCloses(t *testing.T) {
	p := &pool{most: 2, made: 2}
	a, b := &instance{}, &instance{}
	for _, in := range []*instance{a, b} {
		if p.put(in) != nil {
			t.Fatal("an open pool does not take an instance back")
		}
	}
	if !p.enter() {
		t.Fatal("the pool is closed")
	}
	in := p.ready()
	if ready, idle := p.close(); idle || len(ready) != 1 || ready[0] == in {
		t.Errorf("closed with %d ready, idle %v; want the other instance, and a call under way", len(ready), idle)
	}
	if p.enter() {
		t.Error("a call has entered a closed pool")
	}
	if p.leave() {
		t.Error("the call that was refused is not the last")
	}
	if p.put(in) != in {
		t.Error("a closed pool takes an instance back")
	}
	if !p.leave() {
		t.Error("the last call has left, and was not told")
	}
}
