package scripting

import (
	"context"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/arith"
	"github.com/latchkey-proxy/latchkey/scripting/budget"
)

// Limits bounds one run of a script. The zero value has the defaults.
type Limits = budget.Limits

// instructionBytes is what one instruction of the machine is taken to allocate:
// a string key in a new table takes this much.
const instructionBytes = 160

// run is one execution on the virtual machine. It is the context.Context of its
// states: gopher-lua asks Done once per instruction, so that Done counts them.
type run struct {
	budget.Account

	engine *Engine
	state  *state
	perRun
}

// perRun is what each run begins with anew.
type perRun struct {
	inv    *Invocation
	script *Script
	// function is the one called, nil in a script.
	function *Function
	// loading is set while a library's body runs.
	loading *loading
	// unnamed leaves script and place out of error texts.
	unnamed bool

	depth     int // nested pcalls and coroutines, each on the Go stack
	nextCalls uint
	garbage   budget.Collector
	resp      int // of redis.setresp
	random    arith.Random

	chunks map[string]string // names given to load, by what messages call them

	source  string // where the uncaught error was raised
	line    int
	handled bool // its metamethods have been asked
}

var _ context.Context = (*run)(nil)

// Deadline is none: the account has its own.
func (r *run) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value is none.
func (r *run) Value(any) any { return nil }

// Err is the reason once Done's channel is closed.
func (r *run) Err() error { return r.Stop }

// Done counts an instruction. It returns nil, or a closed channel when the run
// must end.
func (r *run) Done() <-chan struct{} {
	r.Left--
	if r.Left > 0 || r.Check() {
		return nil
	}
	return r.engine.closed
}

// name is what error messages call the script: its SHA1, or the function's name.
func (r *run) name() string { return nameOf(r.script, r.function) }

// pay charges n instructions for work done in a library function, and ends the
// run when they are not there. n may be 0.
func (r *run) pay(L *lua.LState, n int) {
	if !r.Pay(n) {
		r.abort(L)
	}
}

// alloc charges n bytes before they are taken.
func (r *run) alloc(L *lua.LState, n int) {
	if !r.Alloc(n) {
		r.abort(L)
	}
}

// abort unwinds the script. Each pcall, coroutine and callback on the way sees
// r.Stop and unwinds further.
func (r *run) abort(L *lua.LState) { L.Error(lua.LString(r.Stop.Error()), 0) }

// enter bounds what nests on the Go stack.
func (r *run) enter(L *lua.LState) {
	if r.depth >= maxCallDepth {
		raise(L, 1, "C stack overflow")
	}
	r.depth++
}
