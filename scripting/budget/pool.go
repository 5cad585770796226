package budget

import (
	"container/list"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// DefaultPool is how many bytes all runs may hold together when nothing is set.
const DefaultPool = 1 << 30

// ErrPool ends the run that holds the most when all together hold too much.
var ErrPool = errors.New("Script held the most of the memory that all running scripts may take together")

// Pool bounds what all runs hold together: many scripts, each below its own
// limit, must not take the machine's memory. A run is counted once it has
// allocated much or runs long. When the counts pass the limit they are compared
// with the heap, because what was allocated may be dead; when the heap says the
// same, the run that has taken the most goes.
type Pool struct {
	limit   atomic.Int64
	heap    func() HeapSample
	collect func()
	total   atomic.Int64 // of all shares
	left    atomic.Int64 // what runs were counted with that have ended since a run had the collector run

	mu     sync.Mutex
	shares list.List // of *share, in the order in which they began
	// settled is what was held when the collector was last asked to run for it: it
	// goes through all that is alive, which a few bytes more are not worth.
	settled int64
}

// share is what one run is counted with.
type share struct {
	// bytes were charged one by one; steps is what the instructions are taken to
	// have allocated, which may be far too much.
	bytes, steps atomic.Int64
	begin        HeapSample
	at           *list.Element
	run          Killer
	ended        bool
}

func (s *share) size() int64 { return s.bytes.Load() + s.steps.Load() }

// NewPool makes a pool of limit bytes, 0 for the default. heap is asked when the
// counts pass the limit; collect, which may be nil, is to run the collector.
func NewPool(limit int64, heap func() HeapSample, collect func()) *Pool {
	if collect == nil {
		collect = runtime.GC
	}
	p := &Pool{heap: heap, collect: collect}
	p.SetLimit(limit)
	return p
}

// SetLimit changes the bound; 0 is the default.
func (p *Pool) SetLimit(limit int64) {
	if limit <= 0 {
		limit = DefaultPool
	}
	p.limit.Store(limit)
}

// Total is what the runs are counted with, more than they hold.
func (p *Pool) Total() int64 { return p.total.Load() }

// join begins to count a run.
func (p *Pool) join(run Killer) *share {
	s := &share{run: run}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.begin = p.heap()
	if p.shares.Len() == 0 {
		p.settled = 0
	}
	s.at = p.shares.PushBack(s)
	return s
}

func (p *Pool) leave(s *share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shares.Remove(s.at)
	p.total.Add(-s.size())
	p.left.Add(s.bytes.Load())
}

// grow counts more of a run, and looks when that is too much.
func (p *Pool) grow(s *share, bytes, steps int64) {
	s.bytes.Add(bytes)
	s.steps.Add(steps)
	if p.total.Add(bytes+steps) > p.limit.Load() {
		p.settle(bytes)
	}
}

// settle compares the counts with the heap, and ends what holds too much. coming
// is what the caller is about to take, which the heap does not show yet.
func (p *Pool) settle(coming int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	limit := p.limit.Load()
	counted := p.total.Load()
	if counted <= limit || p.shares.Len() == 0 {
		return
	}
	// What the runs hold is at most what the heap has grown by since the oldest
	// of them began, and of that what the collector has found alive since.
	begin := p.shares.Front().Value.(*share).begin
	now := p.heap()
	held := max(now.Objects-begin.Objects, 0) + coming
	if held > limit {
		// Of what was allocated since the collector last ran nobody knows what is dead.
		if counted < p.settled+limit/8 {
			return
		}
		p.collect()
		now = p.heap()
		held = min(held, max(now.Live-begin.Live, 0)+coming)
		p.settled = min(held, counted)
	}
	if held < counted {
		p.scale(held, counted)
	}
	p.endLargest(held-limit, held)
}

// endLargest ends runs that hold so much of what is held, over and above those
// that have been ended and have not gone yet.
func (p *Pool) endLargest(over, held int64) {
	var charged int64
	for at := p.shares.Front(); at != nil; at = at.Next() {
		s := at.Value.(*share)
		charged += s.bytes.Load()
		if s.ended {
			over -= s.size()
		}
	}
	// Bytes that were charged one by one say more than instructions, if they are
	// what is held.
	weight := (*share).size
	if charged >= held/2 {
		weight = func(s *share) int64 { return s.bytes.Load() }
	}
	for over > 0 {
		var most *share
		for at := p.shares.Front(); at != nil; at = at.Next() {
			if s := at.Value.(*share); !s.ended && (most == nil || weight(s) > weight(most)) {
				most = s
			}
		}
		if most == nil {
			return
		}
		most.ended = true
		most.run.Kill(ErrPool)
		over -= max(weight(most), 1)
	}
}

// scale brings the counts down to what is held. The mutex is held; what a run
// counts meanwhile is not lost.
func (p *Pool) scale(held, counted int64) {
	f := float64(held) / float64(counted)
	for at := p.shares.Front(); at != nil; at = at.Next() {
		s := at.Value.(*share)
		for _, n := range []*atomic.Int64{&s.bytes, &s.steps} {
			v := n.Load()
			less := v - int64(float64(v)*f)
			n.Add(-less)
			p.total.Add(-less)
		}
	}
}
