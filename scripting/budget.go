package scripting

import (
	"context"
	"errors"
	"runtime/metrics"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Limits bounds one run of a script. The zero value has the defaults.
type Limits struct {
	// Instructions a script may execute, those that library loops are charged
	// included; 0 is no bound.
	Instructions int64
	// Memory in bytes that a script may hold at once, as far as it can be told
	// from what it allocates and from the collector; 0 is 256 MiB. One string or
	// one table never takes more.
	Memory int64
	// Time from the start of the run after which a script is stopped; 0 is no bound.
	Time time.Duration
}

const (
	defaultMemory = 256 << 20
	// checkEvery is how many instructions pass between looks at the kill flag,
	// the clock and the memory account.
	checkEvery = 1024
	// longAfter is when a script counts as long and must have a permit.
	longAfter = 2 * time.Millisecond
	// instructionBytes is what one instruction is taken to allocate when nothing
	// better is known: a string key in a new table takes this much.
	instructionBytes = 160
)

var (
	errInstructions = errors.New("Script exceeded its instruction budget")
	errMemory       = errors.New("Script exceeded its memory limit")
	errTime         = errors.New("Script exceeded its time limit")
)

// heapSample is what the collector knows, process-wide.
type heapSample struct {
	objects int64 // bytes of objects, dead ones not yet swept included
	live    int64 // bytes the last finished cycle found alive
	cycles  int64
}

func readHeap() heapSample {
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(s)
	return heapSample{int64(s[0].Value.Uint64()), int64(s[1].Value.Uint64()), int64(s[2].Value.Uint64())}
}

// run is the account of one execution. It is the context.Context of its states:
// gopher-lua asks Done once per instruction, so that Done counts them.
type run struct {
	engine *Engine
	state  *state
	inv    *Invocation
	script *Script

	left    int // until the next check
	quantum int // what left began with
	used    int64
	limits  Limits

	// mem estimates what was allocated since the account was last compared
	// with the heap; memory is only looked at when it passes memNext.
	mem, memNext int64
	heap         heapSample
	heapKnown    bool

	started   time.Time
	lastCheck time.Time
	long      bool
	release   func()

	// stop is why the run must end; no pcall catches it.
	stop error

	depth     int // nested pcalls and coroutines, each on the Go stack
	nextCalls uint
	resp      int    // of redis.setresp
	random    uint64 // state of math.random, bit 48 set; 0 before the first number

	chunks map[string]string // names given to load, by what messages call them

	source string // where the uncaught error was raised
	line   int
}

var _ context.Context = (*run)(nil)

func runOf(L *lua.LState) *run { return L.Context().(*run) }

func (r *run) Deadline() (time.Time, bool) { return time.Time{}, false }
func (r *run) Value(any) any               { return nil }

// Err is the reason once Done's channel is closed.
func (r *run) Err() error { return r.stop }

// Done counts an instruction. It returns nil, or a closed channel when the run
// must end.
func (r *run) Done() <-chan struct{} {
	r.left--
	if r.left > 0 {
		return nil
	}
	return r.check()
}

func (r *run) check() <-chan struct{} {
	if r.stop == nil {
		r.look()
	}
	if r.stop != nil {
		return r.engine.closed
	}
	return nil
}

// look settles the account and decides whether the run goes on.
func (r *run) look() {
	spent := r.quantum - r.left
	r.used += int64(spent)
	r.mem += int64(spent) * instructionBytes
	r.quantum = min(r.quantum*2, checkEvery)
	defer func() { r.left = r.quantum }()
	if limit := r.limits.Instructions; limit > 0 {
		if r.used >= limit {
			r.stop = errInstructions
			return
		}
		r.quantum = int(min(int64(r.quantum), limit-r.used))
	}
	if reason := r.inv.kill.Load(); reason != nil {
		r.stop = *reason
		return
	}
	select {
	case <-r.inv.Done:
		r.stop = r.inv.Gone
		return
	default:
	}
	now := r.engine.opts.Now()
	if r.started.IsZero() {
		r.started, r.lastCheck = now, now
	}
	// Instructions that turned out slow, such as comparing huge strings, are looked at more often.
	if batch := now.Sub(r.lastCheck); batch > longAfter {
		r.quantum = max(1, int(int64(r.quantum)*int64(longAfter/2)/int64(batch)))
	}
	r.lastCheck = now
	elapsed := now.Sub(r.started)
	if limit := r.limits.Time; limit > 0 && elapsed >= limit {
		r.stop = errTime
		return
	}
	if !r.long && elapsed >= longAfter {
		r.long = true
		if r.inv.LongRunning != nil {
			release, err := r.inv.LongRunning()
			if err != nil {
				r.stop = err
				return
			}
			r.release = release
		}
	}
	r.lookAtMemory()
}

// lookAtMemory compares the account with the heap once it is large. What the
// script still holds is at most what the heap grew by, and at most what the
// account says; of what it allocated, only the collector knows what is dead.
func (r *run) lookAtMemory() {
	limit := r.limits.Memory
	if !r.heapKnown {
		r.heap, r.heapKnown = r.engine.opts.heap(), true
		r.memNext = limit / 2
	}
	if r.mem < r.memNext {
		return
	}
	now := r.engine.opts.heap()
	grown := now.objects - r.heap.objects
	alive := now.live - r.heap.live
	collected := now.cycles >= r.heap.cycles+2 // one whole cycle began after the last look
	switch {
	case grown <= limit/2:
		r.mem = max(grown, 0)
	case collected && alive <= limit:
		r.mem = max(alive, 0)
		r.heap.objects = now.objects - r.mem
		r.heap.cycles = now.cycles
	case collected, grown > 4*limit:
		// With a large heap the collector may not run for long; then the script
		// may allocate four times its limit before it is taken to hold it.
		r.stop = errMemory
		return
	}
	r.memNext = r.mem + limit/8
}

// pay charges n instructions for work done in a library function, and ends the
// run when they are not there. n may be 0.
func (r *run) pay(L *lua.LState, n int) {
	r.left -= n
	if r.left <= 0 && r.check() != nil {
		r.abort(L)
	}
}

// alloc charges n bytes before they are taken.
func (r *run) alloc(L *lua.LState, n int) {
	if n < 256 {
		r.mem += int64(n)
		return
	}
	r.mem += int64(n)
	if int64(n) > r.limits.Memory {
		r.stop = errMemory
		r.abort(L)
	}
	if n >= 1<<16 {
		// One instruction on so large a value takes as long as many.
		r.pay(L, n>>10)
		if q := max(1, checkEvery<<16/n); q < r.left {
			r.used += int64(r.quantum - r.left)
			r.quantum, r.left = q, q
		}
	}
	if r.mem >= r.memNext && r.stop == nil {
		r.look()
	}
	if r.stop != nil {
		r.abort(L)
	}
}

// abort unwinds the script. Each pcall, coroutine and callback on the way sees
// r.stop and unwinds further.
func (r *run) abort(L *lua.LState) { L.Error(lua.LString(r.stop.Error()), 0) }

// enter bounds what nests on the Go stack.
func (r *run) enter(L *lua.LState) {
	if r.depth >= maxCallDepth {
		raise(L, 1, "C stack overflow")
	}
	r.depth++
}
