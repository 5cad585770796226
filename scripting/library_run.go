package scripting

import (
	"errors"

	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/scripting/lib"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// Call runs a function as Run runs a script. Its keys and arguments are the
// callback's, there are no KEYS and ARGV.
func (e *Engine) Call(f *Function, inv *Invocation, out command.Reply) error {
	body := f.Library.Body
	if e.onSecond(body) {
		return e.callSecond(f, inv, out)
	}
	st := e.take(inv)
	st.reset(body, inv)
	st.run.function = f
	err := st.protected(func() { st.callFunction(f) })
	return e.finish(st, err, out)
}

// register runs the body of a library that is being made. The error's text is the
// reply, unless it is one of LongRunning's or Gone.
func (e *Engine) register(ld *loading, inv *Invocation) error {
	var err error
	var timedOut bool
	if ld.lib.Body.program.Load() != nil {
		timedOut, err = e.loadSecond(ld, inv)
	} else {
		timedOut, err = e.loadVM(ld, inv)
	}
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

// loadVM runs a library's body on the virtual machine.
func (e *Engine) loadVM(ld *loading, inv *Invocation) (timedOut bool, err error) {
	st := e.take(inv)
	st.reset(ld.lib.Body, inv)
	r := &st.run
	r.unnamed = true
	err = st.protected(func() { st.runBody(ld) })
	timedOut = r.Stop == budget.ErrTime
	e.give(st, err)
	return timedOut, err
}

// callFunction leaves what the function returns on the stack.
func (st *state) callFunction(f *Function) {
	r, L := &st.run, st.L
	callback, err := st.kept.callback(r.engine, f, &r.Account, r.inv.Limits, st.runBody)
	if err != nil {
		r.Stop = err
		return
	}
	st.enter(functionRealm)
	L.Push((*lua.LFunction)(callback.Pointer()))
	keys, args := st.keys, st.argv
	if !f.Library.plainArgs {
		keys, args = L.CreateTable(len(r.inv.Keys), 0), L.CreateTable(len(r.inv.Args), 0)
	}
	L.Push(st.list(keys, r.inv.Keys))
	L.Push(st.list(args, r.inv.Args))
	L.Call(2, 1)
}

// runBody runs a library's main chunk in a realm where redis.register_function
// is all there is.
func (st *state) runBody(ld *loading) {
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
	st.reorder(api, lib.Order(lib.Functions))
	t.RawSetString("redis", st.standIn(api))
	st.reorder(t, lib.Order("_G"))
	return t
}
