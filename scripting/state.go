package scripting

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/lib"
	"github.com/latchkey-proxy/latchkey/scripting/text"
)

const (
	// threadFrames bounds it inside a coroutine.
	threadFrames = 512
	// minFrames is left to the innermost pcall.
	minFrames = 256
	// maxCallDepth bounds what nests on the Go stack, as Lua's LUAI_MAXCCALLS.
	maxCallDepth = 200

	registrySize = 1024
	registryGrow = 1024
	registryMax  = 1 << 19

	// retireAfter is how many instructions a run may take before its state is
	// thrown away rather than kept with all the stack it may have grown.
	retireAfter = 1 << 16
)

// state is one Lua world with its libraries, used by one run at a time.
type state struct {
	L       *lua.LState
	run     run
	env     *lua.LTable // what scripts see as _G: empty, reads go to globals
	globals *lua.LTable
	// real maps the read-only stand-ins that scripts see to the tables behind them.
	real  map[*lua.LTable]*lua.LTable
	names map[lua.LValue]string // of library functions, for error messages
	// what getmetatable answers for the globals and for strings
	globalsMeta, stringMeta *lua.LTable

	realms [realms]*lua.LTable // made when they are entered first
	realm  realm
	kept   instances

	keys, argv *lua.LTable
	words      [ownUpvalues]*lua.Upvalue // the same, for main chunks (see ownWords)
	// ownArgs says that the last script had KEYS and ARGV of its own rather than
	// the state's, which only scripts see that cannot keep or change them.
	ownArgs bool

	threads []*lua.LState // for pcall, by depth
	callers []*lua.LState // who made those calls
	reply   luaReply
	args    argBuffer
	libCall lib.Call       // of functions of package lib
	json    lib.Settings   // of the table cjson
	null    *lua.LUserData // cjson.null
	main    *lua.LFunction // the main chunk of the last script
	entry   *lua.LFunction // where coroutines begin
	guarded *lua.LFunction // where protected calls begin
	pause   *lua.LFunction // suspends a coroutine before its function begins
	count   *lua.LFunction // puts the number of its results before them
	ipairs  *lua.LFunction // the iterator of ipairs
	pairs   *lua.LFunction // that of pairs, which is next, and another function
	spoiled bool           // not to be used again
	frames  int            // calls that may nest
	current *lua.LState    // the running coroutine, nil outside
}

// newState makes a state in which frames calls may nest outside pcall and
// coroutines; each may cost about a kilobyte of Go stack when a metamethod made it.
func newState(e *Engine, frames int) *state {
	st := &state{frames: frames, real: map[*lua.LTable]*lua.LTable{}, names: map[lua.LValue]string{}}
	L := lua.NewState(lua.Options{
		CallStackSize:       frames,
		MinimizeStackMemory: true,
		RegistrySize:        registrySize,
		RegistryGrowStep:    registryGrow,
		RegistryMaxSize:     registryMax,
		SkipOpenLibs:        true,
	})
	st.L = L
	st.run.engine, st.run.state = e, st
	st.run.Idle()
	L.Panic = st.onError
	L.SetContext(&st.run)
	L.G.Registry.RawSetInt(runSlot, &lua.LUserData{Value: &st.run})

	st.globals = L.NewTable()
	st.env = st.standIn(st.globals)
	st.realms[scriptRealm] = st.globals
	L.Env = st.env
	L.G.Global = st.env
	readUnknown := L.NewTable()
	readUnknown.RawSetString("__index", L.NewFunction(unknownGlobal))
	st.globals.Metatable = readUnknown

	st.open(st.globals, baseLibrary)
	for _, own := range libraries {
		t := L.NewTable()
		st.open(t, own)
		st.globals.RawSetString(own.name, st.standIn(t))
		if own.name == "string" {
			// every string indexes the read-only string library
			mt, shown := L.NewTable(), L.NewTable()
			mt.RawSetString("__index", st.globals.RawGetString("string"))
			shown.RawSetString("__index", st.globals.RawGetString("string"))
			st.stringMeta = st.standIn(shown)
			for event, fn := range stringArithmetic {
				mt.RawSetString(event, L.NewFunction(fn))
			}
			L.SetMetatable(lua.LString(""), mt)
		}
	}
	st.null = L.NewUserData()
	for _, l := range lib.Libraries {
		st.globals.RawSetString(l.Name, st.standIn(st.openNative(l)))
	}
	st.globals.RawSetString("cjson", st.standIn(st.openJSON()))
	st.globals.RawSetString("redis", st.standIn(st.redisAPI(e)))
	st.globals.RawSetString("_G", st.env)
	st.globals.RawSetString("_VERSION", lua.LString(lua.LuaVersion))
	meta := L.NewTable()
	meta.RawSetString("__index", readUnknown.RawGetString("__index"))
	st.globalsMeta = st.standIn(meta)

	st.keys, st.argv = L.NewTable(), L.NewTable()
	st.globals.RawSetString("KEYS", st.keys)
	st.globals.RawSetString("ARGV", st.argv)
	st.arrange()
	for i, t := range []*lua.LTable{st.keys, st.argv} {
		st.words[i] = &lua.Upvalue{}
		st.words[i].SetValue(t)
	}
	st.entry = L.NewFunctionFromProto(e.entry)
	st.pause = L.NewFunction(func(*lua.LState) int { return -1 })
	st.count = L.NewFunction(counted)
	st.ipairs = L.NewFunction(ipairsStep)
	st.pairs = L.NewFunction(baseNext)
	st.guarded = L.NewFunction(func(L *lua.LState) int {
		L.Panic = st.onError // PCall has set its own
		L.Call(L.GetTop()-1, lua.MultRet)
		return L.GetTop()
	})
	return st
}

func (st *state) open(t *lua.LTable, own library) {
	for name, fn := range own.functions {
		f := st.L.NewFunction(fn)
		st.names[f] = name
		t.RawSetString(name, f)
	}
	for name, of := range own.aliases {
		t.RawSetString(name, t.RawGetString(of))
	}
	for name, v := range own.values {
		t.RawSetString(name, v)
	}
}

// arrange puts the members of the libraries, and the globals, into the order in which
// pairs finds them in Redis. The machine's tables keep the order in which keys were stored.
func (st *state) arrange() {
	st.reorder(st.globals, lib.Order("_G"))
	st.globals.ForEach(func(name, face lua.LValue) {
		if t, ok := face.(*lua.LTable); ok && t != st.env {
			if real := st.real[t]; real != nil {
				st.reorder(real, lib.Order(name.String()))
			}
		}
	})
}

// reorder has the fields of t stored in an order; what the order does not have comes behind.
func (st *state) reorder(t *lua.LTable, order []string) {
	fresh := st.L.CreateTable(0, len(order)+1)
	for _, name := range order {
		if v := t.RawGetString(name); v != lua.LNil {
			fresh.RawSetString(name, v)
		}
	}
	t.ForEach(func(k, v lua.LValue) { fresh.RawSet(k, v) })
	fresh.Metatable = t.Metatable
	*t = *fresh
}

// library is one table of functions and constants, the same in every state.
type library struct {
	name      string
	functions map[string]lua.LGFunction
	aliases   map[string]string // second names of functions
	values    map[string]lua.LValue
}

// libraries are opened in every state. Another one is a file lib_<name>.go and a line here.
var libraries = []library{
	stringLibrary, tableLibrary, mathLibrary, coroutineLibrary, osLibrary,
}

// standIn makes the read-only face of a table: empty, so that every store meets
// __newindex, and every read goes through __index.
func (st *state) standIn(t *lua.LTable) *lua.LTable {
	face, mt := st.L.NewTable(), st.L.NewTable()
	mt.RawSetString("__index", t)
	mt.RawSetString("__newindex", st.L.NewFunction(func(L *lua.LState) int {
		if mutantWritableLibrary {
			t.RawSet(L.Get(2), L.Get(3))
			return 0
		}
		raise(L, 1, readOnlyTable)
		return 0
	}))
	face.Metatable = mt
	st.real[face] = t
	return face
}

const readOnlyTable = "Attempt to modify a readonly table"

func unknownGlobal(L *lua.LState) int {
	name, ok := textOf(L.Get(2))
	if !ok {
		raise(L, 1, "Second argument to luaProtectedTableError must be a string or number")
	}
	raise(L, 1, "Script attempted to access nonexistent global variable '"+text.CString(name)+"'")
	return 0
}

// behind is the table that reading t reads: t, or what it stands in for.
func behind(L *lua.LState, t *lua.LTable) *lua.LTable {
	if t.Metatable != lua.LNil {
		if real, ok := runOf(L).state.real[t]; ok {
			return real
		}
	}
	return t
}

// writable refuses a read-only table.
func writable(L *lua.LState, t *lua.LTable) {
	if t.Metatable != lua.LNil {
		if _, ok := runOf(L).state.real[t]; ok {
			raise(L, 0, readOnlyTable)
		}
	}
}

// raise raises an error with Lua's position prefix for a level, counted as the
// second argument of error: 1 is the caller of the running function, 0 no position.
func raise(L *lua.LState, level int, msg string) {
	if level > 0 {
		msg = where(L, level) + msg
	}
	L.Error(lua.LString(msg), 0)
}

// where is the position of a level of the call stack, empty for Go functions.
func where(L *lua.LState, level int) string {
	if source, line := runOf(L).state.position(L, level); line > 0 {
		return source + ":" + strconv.Itoa(line) + ": "
	}
	return ""
}

// position is the place of a level as Lua counts them: the host functions that
// stand for operators are none, and behind a protected call, which has a thread
// of its own, it goes on with who made the call.
func (st *state) position(L *lua.LState, level int) (source string, line int) {
	for n := 0; ; n++ {
		dbg, ok := L.GetStack(n)
		if !ok {
			return "", 0
		}
		v, err := L.GetInfo("fSl", dbg, nil)
		if err != nil {
			return "", 0
		}
		fn, _ := v.(*lua.LFunction)
		if fn == st.guarded {
			i := slices.Index(st.threads, L)
			if i < 0 {
				return "", 0
			}
			L, n = st.callers[i], 0 // which is pcall itself
		} else if n > 0 && isSite(fn) {
			continue
		}
		if level--; level < 0 {
			if dbg.CurrentLine > 0 && fn != st.guarded && fn != st.entry { // nor is what a coroutine begins with
				return dbg.Source, dbg.CurrentLine
			}
			return "", 0
		}
	}
}

// isSite says whether fn is a host function that lowering put into the code:
// unlike those of the libraries it has no environment.
func isSite(fn *lua.LFunction) bool { return fn != nil && fn.IsG && fn.Env == nil }

// onError is the Panic hook of every thread: gopher-lua calls it with the error
// on the stack, while the frames are still there. It mends the machine's texts and
// notes where an uncaught error was raised. The trace stops gopher-lua from
// collecting its own, which takes time quadratic in the depth.
func (st *state) onError(L *lua.LState) {
	v := L.Get(-1)
	if s, ok := v.(lua.LString); ok && st.run.Stop == nil {
		v = lua.LString(mendError(L, string(s)))
	}
	st.run.source, st.run.line = st.position(L, 0)
	if st.run.line == 0 {
		st.run.source, st.run.line = st.position(L, 1)
	}
	panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: v, StackTrace: "-"})
}

// newThread makes a thread that shares the budget. gopher-lua would wrap the
// context of a running state, and the copy would not count.
func (st *state) newThread(L *lua.LState, frames int) *lua.LState {
	ctx := L.RemoveContext()
	options := L.Options
	L.Options.CallStackSize = frames
	L.Options.RegistrySize = 128
	th, _ := L.NewThread()
	L.Options = options
	L.SetContext(ctx)
	th.SetContext(ctx)
	th.Options.CallStackSize = frames
	return th
}

// protect calls fn with args and returns its results, or its error. It does so
// on a thread of its own: on the calling thread gopher-lua would, at an error,
// close the variables that functions further down share with their closures.
func (st *state) protect(L *lua.LState, fn lua.LValue, args []lua.LValue) ([]lua.LValue, *lua.ApiError) {
	r := &st.run
	r.enter(L)
	depth := r.depth - 1
	for depth >= len(st.threads) {
		st.threads, st.callers = append(st.threads, nil), append(st.callers, nil)
	}
	th := st.threads[depth]
	if th == nil {
		th = st.newThread(L, max(st.frames>>(depth+1), minFrames))
		st.threads[depth] = th
	}
	st.callers[depth] = L
	th.Push(st.guarded)
	th.Push(fn)
	for _, a := range args {
		th.Push(a)
	}
	err := th.PCall(len(args)+1, lua.MultRet, nil)
	r.depth = depth
	if err == nil {
		results := make([]lua.LValue, th.GetTop())
		for i := range results {
			results[i] = th.Get(i + 1)
		}
		th.SetTop(0)
		return results, nil
	}
	// A thread that failed is left to the collector, with all the stack it grew.
	st.threads[depth] = nil
	if r.Stop != nil {
		r.abort(L)
	}
	return nil, st.machineError(L, err.(*lua.ApiError))
}

// machineError tells a Lua error from a Go panic within the machine, which ends the run.
func (st *state) machineError(L *lua.LState, err *lua.ApiError) *lua.ApiError {
	text := err.Object.String()
	if err.Type != lua.ApiErrorPanic && !strings.HasPrefix(text, "runtime error: ") && text != "lua callstack overflow" {
		return err
	}
	if !strings.Contains(text, "callstack overflow") {
		st.run.Stop = fmt.Errorf("internal error: %s", text)
		st.run.abort(L)
	}
	return &lua.ApiError{Type: lua.ApiErrorRun, Object: lua.LString("stack overflow")}
}
