package plugins

import (
	"slices"
	"sync"
	"sync/atomic"
)

// pool are the instances of a module, and how many calls use the module. Who gives
// back an instance while nobody waits, and who takes the next, do so without the
// lock: that is the common case, and it costs four atomic operations a call.
type pool struct {
	most int // instances

	// users counts the calls under way; poolClosed is added once the module is
	// unloaded or reloaded.
	users atomic.Int64
	hot   atomic.Pointer[instance] // one that is ready; its memory is in the caches

	mu      sync.Mutex
	idle    []*instance // the others that are ready
	made    int         // instances that there are, or are being made
	waiting []chan *instance
	queued  atomic.Int32 // len(waiting), for those without the lock
}

const poolClosed = 1 << 62

// enter counts a call in, unless the pool was closed.
func (p *pool) enter() bool { return p.users.Add(1) < poolClosed }

// leave counts out a call for which enter was called, whatever that said. It
// returns true when the pool is closed and nobody uses it.
func (p *pool) leave() bool { return p.users.Add(-1) == poolClosed }

// running is how many calls are under way.
func (p *pool) running() int { return int(p.users.Load() &^ poolClosed) }

func (p *pool) closed() bool { return p.users.Load() >= poolClosed }

// ready takes an instance that is ready, or nil.
func (p *pool) ready() *instance {
	if in := p.hot.Swap(nil); in != nil {
		return in
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pop()
}

// pop is ready under the lock.
func (p *pool) pop() *instance {
	if in := p.hot.Swap(nil); in != nil {
		return in
	}
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	in := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	return in
}

// spare takes the place of an instance to be made, if none is ready and there may
// be another.
func (p *pool) spare() bool {
	if p.hot.Load() != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) != 0 || p.made == p.most {
		return false
	}
	p.made++
	return true
}

// acquire takes an instance that is ready, or the place of one to be made. Who
// gets neither may wait for what comes first: an instance, or nil for a place.
// Without wait, it is not said where.
func (p *pool) acquire(wait bool) (in *instance, place bool, next chan *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if in := p.pop(); in != nil {
		return in, false, nil
	}
	if p.made < p.most {
		p.made++
		return nil, true, nil
	}
	if !wait {
		return nil, false, nil
	}
	next = make(chan *instance, 1)
	p.waiting = append(p.waiting, next)
	p.queued.Add(1)
	// Whoever gives back from now on sees that somebody waits. Who has looked
	// before has left the instance there.
	if in := p.hot.Swap(nil); in != nil {
		p.hand(in)
	}
	return nil, false, next
}

// hand gives the first who waits an instance, or nil for a place.
func (p *pool) hand(in *instance) {
	next := p.waiting[0]
	p.waiting = slices.Delete(p.waiting, 0, 1)
	p.queued.Add(-1)
	next <- in // it has room for one, and gets one
}

// cancel ends a wait. It returns false if something has been handed already.
func (p *pool) cancel(next chan *instance) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waiting, next)
	if i < 0 {
		return false
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	p.queued.Add(-1)
	return true
}

// put takes an instance back, and returns one that must be ended if the pool was
// closed meanwhile, otherwise nil.
func (p *pool) put(in *instance) *instance {
	if p.queued.Load() == 0 && p.hot.CompareAndSwap(nil, in) {
		// Who begins to wait, and who closes the pool, says so first and looks
		// here then. This does it the other way round, so one of the two sees it.
		if p.queued.Load() == 0 && !p.closed() {
			return nil
		}
		if in = p.hot.Swap(nil); in == nil {
			return nil // they have
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed():
		return in
	case len(p.waiting) != 0:
		p.hand(in)
	default:
		p.idle = append(p.idle, in)
	}
	return nil
}

// vacate gives back the place of an instance that is gone, or was never made.
func (p *pool) vacate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) != 0 {
		p.hand(nil)
	} else {
		p.made--
	}
}

// close returns the instances that are ready, which nobody gets any more, and
// whether no call is under way. It is called once.
func (p *pool) close() (ready []*instance, idle bool) {
	idle = p.users.Add(poolClosed) == poolClosed
	p.mu.Lock()
	defer p.mu.Unlock()
	for in := p.pop(); in != nil; in = p.pop() {
		ready = append(ready, in)
	}
	return ready, idle
}

// size is how many instances there are.
func (p *pool) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made
}
