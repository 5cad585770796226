package scripting

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/scripting/closure"
	"github.com/latchkey-proxy/latchkey/scripting/lib"
	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// Options configures an Engine. The zero value is usable.
type Options struct {
	// MaxScriptBytes is the longest source accepted; default 1 MiB. Compiling a
	// source takes about sixty times its size in memory. SetMaxScriptBytes changes it.
	MaxScriptBytes int
	// CacheScripts and CacheBytes bound the script cache; defaults 4096 scripts
	// and 64 MiB of sources and code.
	CacheScripts int
	CacheBytes   int
	// MaxTotalMemory bounds what all scripts that run may hold together, in bytes;
	// 0 is 1 GiB.
	MaxTotalMemory int64
	// VMOnly switches the second engine off at the start; see SetSecondEngine.
	VMOnly bool
	// Version is what redis.REDIS_VERSION says; default "7.2.6".
	Version string
	// Logger receives redis.log at the level the script gave; default none.
	Logger *slog.Logger
	// Now is a monotonic clock, for budgets and os.clock; default time.Now.
	Now func() time.Time

	heap func() budget.HeapSample // tests put in a heap of their own
}

// Validate names the first field that cannot be used, and its value.
func (o *Options) Validate() error {
	for _, f := range []struct {
		name  string
		value int
	}{{"MaxScriptBytes", o.MaxScriptBytes}, {"CacheScripts", o.CacheScripts}, {"CacheBytes", o.CacheBytes}} {
		if f.value < 0 {
			return fmt.Errorf("scripting: %s is %d, must not be negative", f.name, f.value)
		}
	}
	return nil
}

// Engine compiles and runs scripts. Its methods may be called from any goroutine.
type Engine struct {
	opts    Options
	version int // as redis.REDIS_VERSION_NUM
	born    time.Time
	maxSrc  atomic.Int64
	token   string
	entry   *lua.FunctionProto
	closed  chan struct{} // always closed: what Done returns to end a run
	states  sync.Pool     // of *state
	second  second
	cache   Cache
	// generation counts changes of the function libraries.
	generation atomic.Uint64
	pool       *budget.Pool
	heap       func() budget.HeapSample
	others     atomic.Pointer[func() int64]
}

// New makes an engine.
func New(opts Options) (*Engine, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if opts.MaxScriptBytes == 0 {
		opts.MaxScriptBytes = 1 << 20
	}
	if opts.Version == "" {
		opts.Version = "7.2.6"
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.heap == nil {
		opts.heap = budget.ReadHeap
	}
	e := &Engine{opts: opts, born: opts.Now(), token: newToken(), closed: make(chan struct{})}
	close(e.closed)
	e.maxSrc.Store(int64(opts.MaxScriptBytes))
	e.heap = func() budget.HeapSample {
		s := opts.heap()
		if others := e.others.Load(); others != nil {
			n := (*others)()
			s.Objects -= n
			s.Live -= n
		}
		return s
	}
	e.pool = budget.NewPool(opts.MaxTotalMemory, e.heap, nil)
	var a, b, c int
	if _, err := fmt.Sscanf(opts.Version, "%d.%d.%d", &a, &b, &c); err != nil {
		return nil, fmt.Errorf("scripting: Version is %q, must be three numbers", opts.Version)
	}
	e.version = a<<16 | b<<8 | c
	e.openSecond()
	e.cache.init(opts.CacheScripts, opts.CacheBytes)
	tree, err := parseChunk(coroutineEntry, "coroutine")
	if err != nil {
		return nil, err
	}
	if e.entry, err = lua.Compile(tree.stmts, ""); err != nil {
		return nil, err
	}
	e.entry.IsVarArg = lua.VarArgIsVarArg
	return e, nil
}

// SetMaxScriptBytes bounds the sources compiled from now on.
func (e *Engine) SetMaxScriptBytes(n int) { e.maxSrc.Store(int64(n)) }

// SetMaxTotalMemory bounds what all scripts that run may hold together, in bytes;
// 0 is 1 GiB.
func (e *Engine) SetMaxTotalMemory(n int64) { e.pool.SetLimit(n) }

// SetOthers tells what the process holds for others than scripts, in bytes, as far
// as it is known: the keyspace. Without it, what the keyspace grows by while a
// script runs may be taken for the script's.
func (e *Engine) SetOthers(held func() int64) { e.others.Store(&held) }

// Cache is the engine's script cache.
func (e *Engine) Cache() *Cache { return &e.cache }

// Caller runs one command for a script, in the script's own transaction.
type Caller interface {
	// Call describes the reply of one command to r. argv and its elements are
	// the callee's until it returns and are reused after. An error reply is a
	// reply like any other. An error that is returned ends the script at once,
	// past any pcall, and Run returns it: the transaction must be run
	// again, or the client is gone.
	Call(argv [][]byte, r command.Reply) error
}

// Invocation is one run of a script. It must not be used twice at once.
type Invocation struct {
	Caller Caller
	// Keys and Args become KEYS and ARGV; the elements are copied.
	Keys, Args [][]byte
	Limits     Limits
	// LongRunning, when set, is called once, on the script's goroutine, after the
	// script has run for 2 ms: it takes a permit, waiting if it must, and
	// returns how to give it back. An error ends the script and is returned by Run.
	LongRunning func() (release func(), err error)
	// Fence, when set, is redis.fence(): the transaction's fencing number.
	Fence func() (int64, error)
	// CheckACL, when set, is redis.acl_check_cmd: may the client run argv?
	// known is false when there is no such command.
	CheckACL func(argv [][]byte) (allowed, known bool)
	// Log, when set, takes what redis.log says; otherwise it goes to the engine's
	// logger at once.
	Log func(level slog.Level, text string)
	// Short, when it is above 0, is how many instructions the script may execute
	// before Promote is asked for the reason to end it, which Run returns. The
	// run has then changed nothing that another run could see.
	Short   int64
	Promote func() error
	// Told is set when the error that Run returned is a command's reply, which was
	// counted when the command gave it.
	Told bool
	// Used is how many instructions were executed, once Run has returned.
	Used int64
	// Payer, when set, pays for what the script executes; when it cannot, the script
	// ends and Run returns Gone.
	Payer budget.Payer
	// Done, when it is closed, ends the script, and Run returns Gone.
	Done <-chan struct{}
	Gone error
	// Trace has the engine tell at which line the script is.
	Trace bool
	line  func() int

	// placer, when set, is asked in place of Caller where the script names the
	// command by a literal.
	placer closure.Placer
	// keeps has what a run needs stay with the invocation, for its next run, until
	// release.
	keeps  bool
	worker *worker // kept
	state  *state  // kept

	terms budget.Terms  // of the run
	input closure.Input // of the run, on the second engine
	// same says that Caller, placer, Limits, Gone and the functions above are those of the
	// run before.
	same bool
	// account is that of the run, for the commands that it calls.
	account *budget.Account

	kill atomic.Pointer[error]
	// woken, if it is there, has room for one word: that the run was killed. Who
	// takes a permit for the run waits for it too.
	woken chan struct{}
}

// Kill ends the run with reason, within a thousand instructions, from any
// goroutine; Run returns a Failure of kind Killed for an error made by
// [KilledBy], and any other reason as it is. A run that has ended is not affected.
func (inv *Invocation) Kill(reason error) {
	if inv.kill.CompareAndSwap(nil, &reason) && inv.woken != nil {
		inv.woken <- struct{}{}
	}
}

// release gives back what the invocation keeps.
func (inv *Invocation) release() {
	if w := inv.worker; w != nil {
		inv.worker = nil
		w.rest()
	}
	if st := inv.state; st != nil {
		inv.state = nil
		st.rest()
	}
	inv.account = nil // a machine that is not used again would stay for it
}

// FailureKind says how a script ended otherwise than by returning.
type FailureKind uint8

const (
	// Uncaught is an error the script raised and did not catch, or that one of
	// its commands replied.
	Uncaught FailureKind = iota
	// Killed is a script ended from outside: SCRIPT KILL, CLIENT KILL.
	Killed
	// Returned is no failure of the script's: it returned an error reply, as a
	// result or from redis.error_reply, and what it wrote stays.
	Returned
	// Exhausted is a script that ran out of instructions, memory or time.
	Exhausted
	// Broken is a failure of the machine itself, to be logged.
	Broken
)

// Failure is how a script ended otherwise than by returning. Whether what it
// wrote is rolled back is the caller's: always, unless Kind is Uncaught and
// script-error-rollback is off.
type Failure struct {
	Kind FailureKind
	// Reply is the text of the error reply, as Redis 7 has it.
	Reply string
}

func (f *Failure) Error() string { return f.Reply }

type killed struct{ text string }

func (k *killed) Error() string { return k.text }

// KilledBy is a reason for Kill whose text becomes the reply: "Script killed by user with SCRIPT KILL...".
func KilledBy(text string) error { return &killed{text} }

// Run executes a script and describes what it returned to out. It returns nil, a
// *Failure, or the error that a Caller or LongRunning returned; then nothing
// was described to out. A Reply that panics because it has grown too large
// (command.TooLarge) ends the script as an uncaught error does.
func (e *Engine) Run(s *Script, inv *Invocation, out command.Reply) error {
	if e.onSecond(s) {
		return e.runSecond(s, inv, out)
	}
	st := e.take(inv)
	st.begin(s, inv)
	err := st.protected(func() { st.callMain(s) })
	return e.finish(st, err, out)
}

// take gets a state for a run.
func (e *Engine) take(inv *Invocation) *state {
	st := inv.state
	if st == nil || st.run.engine != e {
		st, _ = e.states.Get().(*state)
	}
	if frames := inv.Limits.Calls(); st == nil || st.frames != frames {
		st = newState(e, frames)
	}
	return st
}

// finish describes what a run left on the stack, if it ended well, and gives the
// state back.
func (e *Engine) finish(st *state, err error, out command.Reply) error {
	failed := err
	if err == nil {
		err = st.described(out)
		st.L.SetTop(0)
	}
	e.give(st, failed)
	return err
}

// described is answer for what is on top of the stack. A panic ends here, with
// nothing described: what the run holds must be given back, and its session be as
// it was.
func (st *state) described(out command.Reply) (err error) {
	mark := out.Mark()
	defer func() {
		if p := recover(); p != nil {
			st.spoiled = true
			out.Rewind(mark)
			err = undescribed(p)
		}
	}()
	return st.answer(st.L.Get(-1), out)
}

// undescribed is Run's error for a panic out of a reply.
func undescribed(p any) error {
	if text, ok := command.TooLarge(p); ok {
		return &Failure{Uncaught, text}
	}
	return &Failure{Broken, fmt.Sprint("ERR internal error: ", p)}
}

// give takes the state of a run back, or leaves it to the invocation that keeps it. One
// that failed goes to the collector, whatever it holds.
func (e *Engine) give(st *state, failed error) {
	r := &st.run
	r.End()
	inv := r.inv
	inv.Used = r.Used()
	switch {
	case (failed != nil || st.spoiled || inv.Used >= retireAfter || r.Heavy()) && !mutantKeepSpoiled:
		inv.state = nil
	case inv.keeps:
		inv.state = st
	default:
		st.rest()
	}
}

// terms are what a run may use; perInstruction is as in budget.Terms. They live in
// the invocation, so that none is copied from one room of memory to the next.
func (e *Engine) terms(inv *Invocation, perInstruction int64) *budget.Terms {
	t := &inv.terms
	if t.Pool != e.pool { // otherwise the invocation's last run has set them
		t.Now, t.Heap, t.Collect, t.Pool, t.Run, t.Kill = e.opts.Now, e.heap, runtime.GC, e.pool, inv, &inv.kill
	}
	t.PerInstruction, t.Short = perInstruction, inv.Short
	t.Done, t.Caller = inv.Done, inv.Payer
	if !inv.same {
		t.Limits, t.Gone, t.LongRunning, t.Promote = inv.Limits, inv.Gone, inv.LongRunning, inv.Promote
	}
	return t
}

// reset makes a state ready for one run.
func (st *state) reset(s *Script, inv *Invocation) {
	r := &st.run
	r.perRun = perRun{inv: inv, script: s, resp: 2}
	r.Begin(r.engine.terms(inv, instructionBytes))
	inv.account = &r.Account
	if inv.Trace {
		inv.line = st.lineNow
	}
	st.json = lib.Defaults()
}

// begin makes a state ready for one run of a script.
func (st *state) begin(s *Script, inv *Invocation) {
	st.reset(s, inv)
	st.enter(scriptRealm)
	if s.argsEscape {
		// This script could keep or change the tables: it gets its own.
		st.globals.RawSetString("KEYS", st.list(st.L.CreateTable(len(inv.Keys), 0), inv.Keys))
		st.globals.RawSetString("ARGV", st.list(st.L.CreateTable(len(inv.Args), 0), inv.Args))
		st.ownArgs = true
		return
	}
	if st.ownArgs {
		st.globals.RawSetString("KEYS", st.keys)
		st.globals.RawSetString("ARGV", st.argv)
		st.ownArgs = false
	}
	if s.globals.keys {
		st.list(st.keys, inv.Keys)
	}
	if s.globals.argv {
		st.list(st.argv, inv.Args)
	}
}

// list makes t the array of values and nothing else; t has only an array part.
func (st *state) list(t *lua.LTable, values [][]byte) *lua.LTable {
	for n := t.Len(); n > len(values); n-- {
		t.Remove(-1)
	}
	for i, v := range values {
		// A hot lock comes again and again with the same words.
		if old, ok := t.RawGetInt(i + 1).(lua.LString); ok && string(old) == string(v) {
			continue
		}
		t.RawSetInt(i+1, lua.LString(v))
	}
	st.run.Mem += int64(48 * len(values))
	return t
}

// rest drops what the runs referred to, and puts the state where the next run may
// find it.
func (st *state) rest() {
	r := &st.run
	r.inv, r.script, r.function, r.loading = nil, nil, nil, nil
	st.reply.reset()
	st.args.forget()
	r.engine.states.Put(st)
}

// protected calls fn, and makes an error of what unwinds it.
func (st *state) protected(fn func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = st.failure(p)
		}
	}()
	fn()
	if st.run.Stop != nil { // noticed by the last instruction
		return st.failure(nil)
	}
	return nil
}

// callMain runs the main chunk; the result stays on the stack.
func (st *state) callMain(s *Script) {
	if st.main == nil || st.main.Proto != s.proto {
		// No script can reach the function that is its own main chunk, so the
		// next run of the same script may have it again.
		st.main = st.L.NewFunctionFromProto(s.proto)
		if !s.library && !s.globals.stores {
			st.main.Env = st.globals // the read-only face would only cost look-ups
		}
		for i := range st.main.Upvalues {
			st.main.Upvalues[i] = st.words[i]
		}
	}
	st.L.Push(st.main)
	if !st.runStraight(s) {
		st.L.Call(0, 1)
	}
}

// stopped is Run's error for a script that its account ended.
func stopped(stop error, trailer string) error {
	var kill *killed
	switch {
	case budget.Exhausted(stop):
		return &Failure{Exhausted, "ERR " + stop.Error() + trailer}
	case errors.As(stop, &kill):
		return &Failure{Killed, "ERR " + kill.text + trailer}
	}
	return stop
}

// failure turns what unwound the script into Run's error.
func (st *state) failure(p any) error {
	r := &st.run
	st.L.SetContext(r)
	if r.Stop != nil {
		trailer := st.trailer()
		if trailer == "" && !r.unnamed {
			trailer = nowhere(r.name())
		}
		return stopped(r.Stop, trailer)
	}
	api, ok := p.(*lua.ApiError)
	if !ok {
		problem := fmt.Sprint(p)
		if problem != "lua callstack overflow" {
			return &Failure{Broken, "ERR internal error: " + problem}
		}
		chunk := r.script.proto.SourceName
		api = &lua.ApiError{Object: lua.LString(chunk + ":1: stack overflow")}
		r.source, r.line = chunk, 1
	}
	reply := "ERR nil"
	switch v := api.Object.(type) {
	case *lua.LTable:
		if v.Metatable != lua.LNil && !r.handled {
			return st.uncaught(v)
		}
		reply = unknownError
		if s, ok := textOf(v.RawGetString("err")); ok {
			reply = s
			r.inv.Told = lua.LVAsBool(v.RawGetString(toldField))
		}
	default:
		if s, ok := textOf(v); ok {
			reply = "ERR " + s
		} else if v != lua.LNil {
			reply = "ERR " + toStringMeta(st.L, v).String()
		}
	}
	reply = text.CString(reply)
	if r.source == "" {
		return &Failure{Uncaught, reply} // it was raised outside of the script
	}
	return &Failure{Uncaught, reply + st.trailer()}
}

// trailer names the script and the place, after the text of an uncaught error.
func (st *state) trailer() string {
	r := &st.run
	if r.source == "" || r.unnamed {
		return ""
	}
	return place(r.name(), r.place(), strconv.Itoa(r.line))
}

// place is the chunk in which an error was raised, as Lua calls it.
func (r *run) place() string {
	if name, ok := r.chunks[r.source]; ok {
		return name
	}
	return "@" + r.source
}
