package budget

import (
	"errors"
	"sync/atomic"
	"time"
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
	// CallDepth is how deep calls of Lua functions may nest, at most MaxCallDepth;
	// 0 is 8192.
	CallDepth int
	// TableDepth is how deep tables may nest that are made into a reply, or a reply
	// that is made into tables, at most MaxTableDepth; 0 is 1000.
	TableDepth int
}

// The bounds of nesting when they are not set, and the highest that they are set
// to: both end up on the Go stack, which no one can recover from exhausting.
const (
	DefaultCallDepth  = 8192
	DefaultTableDepth = 1000
	MaxCallDepth      = 20000
	MaxTableDepth     = 10000
)

// Calls is CallDepth or its default, or MaxCallDepth if that is less.
func (l *Limits) Calls() int {
	if l.CallDepth <= 0 {
		return DefaultCallDepth
	}
	return min(l.CallDepth, MaxCallDepth)
}

// Tables is TableDepth or its default, or MaxTableDepth if that is less.
func (l *Limits) Tables() int {
	if l.TableDepth <= 0 {
		return DefaultTableDepth
	}
	return min(l.TableDepth, MaxTableDepth)
}

const (
	// DefaultMemory is Limits.Memory when it is not set.
	DefaultMemory = 256 << 20
	// LongAfter is when a script counts as long and must have a permit.
	LongAfter = 2 * time.Millisecond

	// checkEvery is how many instructions pass between looks at the kill flag,
	// the clock and the memory account.
	checkEvery = 1024
	// firstLook is how much a run may allocate before its memory is looked at.
	firstLook = 1 << 20
	// shortLook is firstLook of a short run, which may not allocate more.
	shortLook = 64 << 10
)

// Why a run was ended by its account.
var (
	ErrInstructions = errors.New("Script exceeded its instruction budget")
	ErrMemory       = errors.New("Script exceeded its memory limit")
	ErrTime         = errors.New("Script exceeded its time limit")
)

// Exhausted tells whether an account ended for want of instructions, memory or time.
func Exhausted(stop error) bool {
	for _, err := range []error{ErrInstructions, ErrMemory, ErrTime, ErrPool} {
		if errors.Is(stop, err) {
			return true
		}
	}
	return false
}

// Terms are what a run may use, and who may end it.
type Terms struct {
	Limits Limits
	// PerInstruction is what one instruction is taken to allocate, in bytes, by
	// an engine that does not know better; 0 by one that charges Mem itself.
	PerInstruction int64
	Now            func() time.Time
	Heap           func() HeapSample
	// Collect, when set, has the collector run a whole cycle.
	Collect func()
	// Pool, when set, counts the run with the others, once it has allocated much
	// or runs long; it may end Run, which then sets Kill.
	Pool *Pool
	Run  Killer
	// Kill, when it holds a reason, ends the run with it.
	Kill *atomic.Pointer[error]
	// Done, when it is closed, ends the run with Gone.
	Done <-chan struct{}
	Gone error
	// LongRunning, when set, is called once, after LongAfter: it takes a permit,
	// waiting if it must, and returns how to give it back. An error ends the run.
	LongRunning func() (release func(), err error)
	// Caller, when set, is the budget of the plugin that has called the script: it
	// pays for each instruction, and when it cannot the run ends with Gone.
	Caller Payer
	// Short, when it is above 0, is how many instructions the run may take before
	// it ends for the reason that Promote gives, to be run again as a longer one.
	Short   int64
	Promote func() error
}

// noTerms are those of an account that is not open.
var noTerms Terms

// Payer pays for work in units of about an instruction. It returns false when the
// work must end.
type Payer interface{ Pay(n int) bool }

// Killer is a run that can be ended from any goroutine.
type Killer interface{ Kill(reason error) }

// Account counts what one run uses. It belongs to the run's goroutine.
type Account struct {
	// Left is what may be executed before the next look. Work is paid by
	// lowering it; at zero or below, Look is due.
	Left int
	// Mem estimates what was allocated since the account was last compared with
	// the heap.
	Mem int64
	// Stop is why the run must end, nil while it may go on.
	Stop error

	memNext int64 // memory is only looked at when Mem passes it
	quantum int   // what Left began with
	used    int64
	limits  Limits
	terms   *Terms

	looked    bool // since Begin; the fields from here on are zero otherwise
	heap      HeapSample
	heapKnown bool
	settled   int64 // of Mem, what the last look at the heap left
	large     int64 // of all that was taken, what came in values of 64 KiB and more
	started   time.Time
	lastCheck time.Time
	long      bool
	release   func()

	share   *share
	counted int64 // of Mem, what the pool knows
	steps   int64 // of Mem, what instructions are taken to have allocated since then
}

// Begin opens the account of a run. t stays as it is until End.
func (a *Account) Begin(t *Terms) {
	if a.looked { // what follows stands in the fields that only a look changes
		*a = Account{}
	}
	a.Mem, a.Stop, a.used = 0, nil, 0
	a.limits, a.terms, a.memNext, a.quantum = t.Limits, t, firstLook, checkEvery
	if a.limits.Memory <= 0 {
		a.limits.Memory = DefaultMemory
	}
	if n := t.Limits.Instructions; n > 0 {
		a.quantum = int(min(n, checkEvery))
	}
	if t.Short > 0 {
		a.quantum, a.memNext = int(min(t.Short, int64(a.quantum))), shortLook
	}
	a.Left = a.quantum
}

// Reopen begins to count anew, with other limits. The clock goes on, and so does
// a long run's permit. A short run's allowance is one for all that it does.
func (a *Account) Reopen(l Limits) {
	if l.Memory <= 0 {
		l.Memory = DefaultMemory
	}
	a.limits = l
	if a.terms.Short > 0 {
		return
	}
	a.used, a.Mem, a.memNext, a.heapKnown, a.settled = 0, 0, firstLook, false, 0
	a.quantum = checkEvery
	if l.Instructions > 0 {
		a.quantum = int(min(l.Instructions, checkEvery))
	}
	a.Left = a.quantum
}

// Idle makes an account that no one looks at, for work outside a run.
func (a *Account) Idle() {
	*a = Account{Left: 1 << 30, quantum: 1 << 30, memNext: 1 << 60, limits: Limits{Memory: DefaultMemory}, terms: &noTerms}
}

// End gives back the permit of a long run and forgets what the run referred to.
// The counters stay.
func (a *Account) End() {
	if a.release != nil {
		a.release()
		a.release = nil
	}
	if a.share != nil {
		a.terms.Pool.leave(a.share)
		a.share = nil
	}
	a.terms = &noTerms
}

// Used is how many instructions were executed.
func (a *Account) Used() int64 { return a.used + int64(a.quantum-a.Left) }

// Heavy tells that the run has taken values of 64 KiB or more that make a megabyte. What
// a machine keeps of such a run, such as variables that nobody reads any more, would be
// held until another run wants their places, and count as part of the heap that the next
// one begins with. What small values take, many instructions have made.
func (a *Account) Heavy() bool { return a.large >= firstLook }

// MemoryLimit is the bound of what the run may hold, in bytes.
func (a *Account) MemoryLimit() int64 { return a.limits.Memory }

// Due tells that a look is due.
func (a *Account) Due() bool { return a.Left <= 0 || a.Mem >= a.memNext }

// Pay charges n instructions, and may be called with 0. It returns false when the run must end.
func (a *Account) Pay(n int) bool {
	a.Left -= n
	return a.Left > 0 || a.Check()
}

// Check looks, unless the run is to end already. It returns false when it must end.
func (a *Account) Check() bool {
	if a.Stop == nil {
		a.look()
	}
	return a.Stop == nil
}

// Alloc charges n bytes before they are taken. It returns false when the run must end.
func (a *Account) Alloc(n int) bool {
	a.Mem += int64(n)
	if n < 256 {
		return a.Mem < a.memNext || a.Check()
	}
	if int64(n) > a.limits.Memory {
		a.Stop = ErrMemory
		return false
	}
	if n >= 1<<16 {
		// One instruction on so large a value takes as long as many.
		if !a.Pay(n >> 10) {
			return false
		}
		if q := max(1, checkEvery<<16/n); q < a.Left {
			a.used += int64(a.quantum - a.Left)
			a.quantum, a.Left = q, q
		}
		if a.terms.Short == 0 {
			a.looked = true
			if a.large += int64(n); !a.count() {
				return a.Check()
			}
		}
	}
	if a.Mem >= a.memNext {
		return a.Check()
	}
	return a.Stop == nil
}

// Full tells that memory is to be looked at.
func (a *Account) Full() bool { return a.Mem >= a.memNext }

// Hold is Alloc for a part of a reply, of which there are held bytes already: all
// that is in use, whatever the heap and the collector say, so the limit holds for it
// to the byte. When it returns false the run must end, and the part is not needed.
func (a *Account) Hold(n int, held func() int) bool {
	if a.Stop == nil && a.terms.Short == 0 && int64(held())+int64(n) > a.limits.Memory {
		a.Stop = ErrMemory
	}
	if a.Stop != nil {
		a.quantum, a.Left = 0, 0 // whoever goes on all the same is stopped at once
		return false
	}
	return a.Alloc(n)
}

// look settles the account and decides whether the run goes on. A short run ends
// here: it was to be done before anybody looks.
func (a *Account) look() {
	t := a.terms
	if t.Short > 0 {
		a.Stop = t.Promote()
		return
	}
	a.looked = true
	spent := a.quantum - a.Left
	a.used += int64(spent)
	a.Mem += int64(spent) * t.PerInstruction
	a.steps += int64(spent) * t.PerInstruction
	a.quantum = min(a.quantum*2, checkEvery)
	defer func() {
		if a.Stop != nil {
			a.quantum = 0 // whoever goes on all the same is stopped at once
		}
		a.Left = a.quantum
	}()
	if limit := a.limits.Instructions; limit > 0 {
		if a.used >= limit {
			a.Stop = ErrInstructions
			return
		}
		a.quantum = int(min(int64(a.quantum), limit-a.used))
	}
	if a.killed() {
		return
	}
	if t.Caller != nil && !t.Caller.Pay(spent) {
		a.Stop = t.Gone
		return
	}
	select {
	case <-t.Done:
		a.Stop = t.Gone
		return
	default:
	}
	now := t.Now()
	if a.started.IsZero() {
		a.started, a.lastCheck = now, now
	}
	// Instructions that turned out slow, such as comparing huge strings, are looked at more often.
	if batch := now.Sub(a.lastCheck); batch > LongAfter {
		a.quantum = max(1, int(int64(a.quantum)*int64(LongAfter/2)/int64(batch)))
	}
	a.lastCheck = now
	elapsed := now.Sub(a.started)
	if limit := a.limits.Time; limit > 0 && elapsed >= limit {
		a.Stop = ErrTime
		return
	}
	long := !a.long && elapsed >= LongAfter
	if (long || a.share != nil || a.Mem >= firstLook) && !a.count() && a.killed() {
		return
	}
	if long {
		a.long = true
		if t.LongRunning != nil {
			release, err := t.LongRunning()
			if err != nil {
				a.Stop = err
				return
			}
			a.release = release
		}
	}
	a.lookAtMemory()
	a.counted = min(a.counted, a.Mem) // it may have been settled
}

// killed takes over the reason why the run was ended by another.
func (a *Account) killed() bool {
	if a.terms.Kill == nil {
		return false
	}
	reason := a.terms.Kill.Load()
	if reason != nil {
		a.Stop = *reason
	}
	return reason != nil
}

// count tells the pool what was allocated since the last time. It returns false
// when the run may have been ended for it.
func (a *Account) count() bool {
	t := a.terms
	if t.Pool == nil {
		return true
	}
	if a.share == nil {
		a.looked = true
		// What runs before this one have left is no part of the heap that this one is compared with.
		if left := t.Pool.left.Load(); left >= a.limits.Memory/8 && t.Collect != nil && t.Heap().Worth(left) {
			t.Pool.left.Store(0)
			t.Collect()
		}
		a.share = t.Pool.join(t.Run)
	}
	grown := max(a.Mem-a.counted, 0)
	steps := min(a.steps, grown)
	a.counted, a.steps = a.Mem, 0
	t.Pool.grow(a.share, grown-steps, steps)
	return t.Kill == nil || t.Kill.Load() == nil
}

// lookAtMemory compares the account with the heap once it is large. What the
// script still holds is at most what the heap grew by, and at most what the
// account says; of what it allocated, only the collector knows what is dead, and
// nothing of what was allocated since it last ran.
func (a *Account) lookAtMemory() {
	limit := a.limits.Memory
	if a.Mem < a.memNext {
		return
	}
	if !a.heapKnown {
		a.heap, a.heapKnown = a.terms.Heap(), true
		if a.memNext = limit / 2; a.Mem < a.memNext {
			return
		}
	}
	now := a.terms.Heap()
	grown := now.Objects - a.heap.Objects
	collected := now.Cycles >= a.heap.Cycles+2 // one whole cycle began after the last look
	if a.Mem > limit && grown > limit/2 && a.terms.Collect != nil && now.Worth(a.Mem-a.settled) {
		a.terms.Collect()
		now, collected = a.terms.Heap(), true
		grown = now.Objects - a.heap.Objects
	}
	alive := now.Live - a.heap.Live
	switch {
	case grown <= limit/2:
		a.Mem = max(grown, 0)
		a.settled = a.Mem
	case collected && alive <= limit:
		a.Mem = min(a.Mem, max(alive, 0)+max(now.Objects-now.Live, 0))
		a.settled = a.Mem
		a.heap.Objects = now.Objects - a.Mem
		a.heap.Cycles = now.Cycles
	case collected, grown > 4*limit:
		// With a large heap the collector may not run for long, and is not worth
		// while; then the script may allocate four times its limit before it is
		// taken to hold it.
		a.Stop = ErrMemory
		return
	}
	a.memNext = a.Mem + limit/8
}

// Ended is what MustAlloc panics with: the engine that runs the script recovers
// it and looks at Stop.
type Ended struct{}

// MustAlloc is Alloc for code that has no way to return an error.
func (a *Account) MustAlloc(n int) {
	if !a.Alloc(n) {
		panic(Ended{})
	}
}

// MustPay is Pay for code that has no way to return an error.
func (a *Account) MustPay(n int) {
	if !a.Pay(n) {
		panic(Ended{})
	}
}
