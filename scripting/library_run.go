package scripting

import (
	"errors"

	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// A state keeps what frozen libraries have made, within these bounds.
const (
	maxInstances     = 64
	maxInstanceBytes = 8 << 20
)

// instance is what a library's body has made on one state.
type instance struct {
	callbacks map[string]*lua.LFunction // by the name in lower case
	bytes     int64
}

// instances are the frozen libraries of one state.
type instances struct {
	of         map[*Library]instance
	bytes      int64
	generation uint64 // of the engine, when they were made
}

// ForgetLibraries has every state drop what it keeps of libraries: some were
// replaced or deleted.
func (e *Engine) ForgetLibraries() { e.generation.Add(1) }

// Call runs a function as Run runs a script. Its keys and arguments are the
// callback's, there are no KEYS and ARGV.
func (e *Engine) Call(f *Function, inv *Invocation, out command.Reply) error {
	st := e.take(inv)
	st.reset(f.Library.Body, inv)
	st.run.function = f
	err := st.protected(func() { st.callFunction(f) })
	return e.finish(st, err, out)
}

// register runs the body of a library that is being made.
func (e *Engine) register(lib *Library, inv *Invocation, bounds LibraryBounds) error {
	st := e.take(inv)
	st.reset(lib.Body, inv)
	r := &st.run
	r.unnamed = true
	err := st.protected(func() { st.runBody(&loading{lib: lib, fresh: true, bounds: bounds}) })
	timedOut := r.Stop == budget.ErrTime
	e.give(st, err)
	var f *Failure
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &f):
		return err
	case timedOut:
		return errors.New("ERR Error registering functions: ERR FUNCTION LOAD timeout")
	}
	return errors.New("ERR Error registering functions: " + f.Reply)
}

// callFunction leaves what the function returns on the stack.
func (st *state) callFunction(f *Function) {
	callback := st.callback(f)
	st.enter(functionRealm)
	r, L := &st.run, st.L
	L.Push(callback)
	keys, args := st.keys, st.argv
	if !f.Library.plainArgs {
		keys, args = L.CreateTable(len(r.inv.Keys), 0), L.CreateTable(len(r.inv.Args), 0)
	}
	L.Push(st.list(keys, r.inv.Keys))
	L.Push(st.list(args, r.inv.Args))
	L.Call(2, 1)
}

// callback is the function to call. Unless the state has it from an earlier call
// which cannot have changed it, the library's body runs anew. That is on the
// house: how many instructions and bytes a call may take must not depend on the
// state it met. FUNCTION LOAD has bounded them.
func (st *state) callback(f *Function) *lua.LFunction {
	kept, r := &st.kept, &st.run
	if now := r.engine.generation.Load(); kept.generation != now {
		*kept = instances{generation: now}
	}
	key := foldName(f.Name)
	if in, ok := kept.of[f.Library]; ok {
		return in.callbacks[key]
	}
	limits := r.inv.Limits
	r.Reopen(Limits{Memory: max(limits.Memory, budget.DefaultMemory), Time: limits.Time})
	ld := &loading{lib: f.Library, callbacks: make(map[string]*lua.LFunction, len(f.Library.Functions))}
	st.runBody(ld)
	in := instance{ld.callbacks, r.Mem}
	r.Reopen(limits)
	if f.Library.frozen && in.bytes <= maxInstanceBytes {
		if len(kept.of) == maxInstances || kept.bytes+in.bytes > maxInstanceBytes {
			kept.of, kept.bytes = nil, 0
		}
		if kept.of == nil {
			kept.of = map[*Library]instance{}
		}
		kept.of[f.Library] = in
		kept.bytes += in.bytes
	}
	callback := in.callbacks[key]
	if callback == nil {
		// What a body registers must not depend on anything, and nothing is there
		// that it could depend on but the address in the text of a table.
		raise(st.L, 0, "library "+f.Library.Name+" does not register "+f.Name+" any more")
	}
	return callback
}

// runBody runs a library's main chunk in a realm where redis.register_function
// is all there is.
func (st *state) runBody(ld *loading) {
	if ld.callbacks == nil {
		ld.callbacks = map[string]*lua.LFunction{}
	}
	st.enter(loadRealm)
	st.run.loading = ld
	st.L.Push(st.L.NewFunctionFromProto(ld.lib.Body.proto))
	st.L.Call(0, 0)
	st.run.loading = nil
}

// realm is a set of globals that code sees. There is one table of globals that all
// functions of a state have, and it is turned from one realm to another.
type realm uint8

const (
	scriptRealm   realm = iota // of EVAL, with KEYS and ARGV
	functionRealm              // of FCALL
	loadRealm                  // of the body of a library
	realms
)

// enter turns the globals.
func (st *state) enter(w realm) {
	if st.realm == w {
		return
	}
	t := st.realms[w]
	if t == nil {
		t = st.newRealm(w)
		st.realms[w] = t
	}
	st.env.Metatable.(*lua.LTable).RawSetString("__index", t)
	st.real[st.env] = t
	st.realm = w
}

// newRealm makes the globals of functions or of a library's body.
func (st *state) newRealm(w realm) *lua.LTable {
	t, api := st.L.NewTable(), st.L.NewTable()
	t.Metatable = st.globals.Metatable
	redis := behind(st.L, st.globals.RawGetString("redis").(*lua.LTable))
	if w == functionRealm {
		st.globals.ForEach(func(k, v lua.LValue) { t.RawSet(k, v) })
		t.RawSetString("KEYS", lua.LNil)
		t.RawSetString("ARGV", lua.LNil)
		redis.ForEach(func(k, v lua.LValue) { api.RawSet(k, v) })
		for _, name := range []string{"breakpoint", "debug", "replicate_commands"} { // EVAL alone has them
			api.RawSetString(name, lua.LNil)
		}
	} else {
		for _, name := range []string{"log", "LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING", "REDIS_VERSION", "REDIS_VERSION_NUM"} {
			api.RawSetString(name, redis.RawGetString(name))
		}
		api.RawSetString("register_function", st.L.NewFunction(apiRegisterFunction))
		api.Metatable = st.globals.Metatable // reading what is not there is an error
	}
	t.RawSetString("redis", st.standIn(api))
	return t
}
