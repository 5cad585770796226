package plugins

import (
	"slices"
	"sync"
	"sync/atomic"
)

// pool are the instances of a module. Who gives back an instance while nobody
// waits, and who takes the next, do so without the lock: that is the common case,
// and it costs two atomic operations a call. Whoever runs a call has an instance
// out, so the pool knows by its instances whether the module is in use.
type pool struct {
	most int // instances

	// hot has the number of an instance that is ready and whose memory is in the
	// caches, 0 for none, and above hotBits how many calls have taken one from here:
	// in one word, so that to take and to count is one operation.
	hot    atomic.Uint64
	shut   atomic.Bool  // the module was unloaded or reloaded
	queued atomic.Int32 // len(waiting), for those without the lock

	mu       sync.Mutex
	numbered []*instance // by number; 0 is nobody's
	idle     []*instance // the others that are ready
	made     int         // instances that there are, or are being made
	making   int         // these last
	waiting  []chan *instance
}

// hotBits is the width of an instance's number.
const (
	hotBits = 16
	hotMask = 1<<hotBits - 1

	mostInstances = hotMask
)

func newPool(most int) pool {
	most = min(most, mostInstances)
	return pool{most: most, numbered: make([]*instance, most+1)}
}

// closed tells whether nobody may begin a call any more.
func (p *pool) closed() bool { return p.shut.Load() }

// ready takes the instance that is hot, or nil, and counts the call.
func (p *pool) ready() *instance {
	for {
		w := p.hot.Load()
		if w&hotMask == 0 {
			return nil
		}
		if p.hot.CompareAndSwap(w, w&^hotMask+1<<hotBits) {
			return p.numbered[w&hotMask]
		}
	}
}

// taken is how many calls ready has counted.
func (p *pool) taken() int64 { return int64(p.hot.Load() >> hotBits) }

// heat makes an instance the hot one, if there is none.
func (p *pool) heat(in *instance) bool {
	w := p.hot.Load()
	return w&hotMask == 0 && p.hot.CompareAndSwap(w, w|uint64(in.number))
}

// cool takes the hot instance for no call, or nil.
func (p *pool) cool() *instance {
	for {
		w := p.hot.Load()
		if w&hotMask == 0 {
			return nil
		}
		if p.hot.CompareAndSwap(w, w&^hotMask) {
			return p.numbered[w&hotMask]
		}
	}
}

// pop takes an instance that is ready, or nil. The lock is held.
func (p *pool) pop() *instance {
	if in := p.cool(); in != nil {
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

// another takes an instance that is ready though it is not hot, or nil.
func (p *pool) another() *instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut.Load() {
		return nil
	}
	return p.pop()
}

// spare takes the place of an instance to be made, if none is ready and there may
// be another.
func (p *pool) spare() bool {
	if p.hot.Load()&hotMask != 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) != 0 || p.made == p.most || p.shut.Load() {
		return false
	}
	p.made++
	p.making++
	return true
}

// fill puts an instance that was made into the place taken for it.
func (p *pool) fill(in *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.making--
	for i := 1; i <= p.most; i++ {
		if p.numbered[i] == nil {
			p.numbered[i], in.number = in, uint32(i)
			return
		}
	}
	panic("plugins: there are more instances than places")
}

// acquire takes an instance that is ready, or the place of one to be made. Who
// gets neither may wait for what comes first: an instance, or nil for a place.
// Without wait, it is not said where. A closed pool gives nothing, and says so.
func (p *pool) acquire(wait bool) (in *instance, place bool, next chan *instance, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut.Load() {
		return nil, false, nil, false
	}
	if in := p.pop(); in != nil {
		return in, false, nil, true
	}
	if p.made < p.most {
		p.made++
		p.making++
		return nil, true, nil, true
	}
	if !wait {
		return nil, false, nil, true
	}
	next = make(chan *instance, 1)
	p.waiting = append(p.waiting, next)
	p.queued.Add(1)
	// Whoever gives back from now on sees that somebody waits. Who has looked
	// before has left the instance there.
	if in := p.cool(); in != nil {
		p.hand(in)
	}
	return nil, false, next, true
}

// hand gives the first who waits an instance, or nil for a place.
func (p *pool) hand(in *instance) {
	next := p.waiting[0]
	p.waiting = slices.Delete(p.waiting, 0, 1)
	p.queued.Add(-1)
	if in == nil {
		p.making++
	}
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
	if p.queued.Load() == 0 && p.heat(in) {
		// Who begins to wait, and who closes the pool, says so first and looks
		// here then. This does it the other way round, so one of the two sees it.
		if p.queued.Load() == 0 && !p.shut.Load() {
			return nil
		}
		if in = p.cool(); in == nil {
			return nil // they have
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.shut.Load():
		return in
	case len(p.waiting) != 0:
		p.hand(in)
	default:
		p.idle = append(p.idle, in)
	}
	return nil
}

// vacate gives back the place of an instance that is gone, or was never made: nil.
// It returns true when the pool is closed and the instance was the last.
func (p *pool) vacate(in *instance) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if in == nil {
		p.making--
	} else {
		p.numbered[in.number] = nil
	}
	if len(p.waiting) != 0 {
		p.hand(nil)
		return false
	}
	p.made--
	return p.made == 0 && p.shut.Load()
}

// close returns the instances that are ready, which nobody gets any more, and
// whether there are no others. It is called once.
func (p *pool) close() (ready []*instance, last bool) {
	p.shut.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	for in := p.pop(); in != nil; in = p.pop() {
		ready = append(ready, in)
	}
	return ready, p.made == 0
}

// size is how many instances there are.
func (p *pool) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made
}

// running is how many instances are out, each for a call.
func (p *pool) running() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.made - p.making - len(p.idle)
	if p.hot.Load()&hotMask != 0 {
		n--
	}
	return max(n, 0)
}
