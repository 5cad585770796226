package scripting

import (
	lua "github.com/yuin/gopher-lua"
)

var coroutineLibrary = library{name: "coroutine", functions: map[string]lua.LGFunction{
	"create":  coCreate,
	"resume":  coResume,
	"running": coRunning,
	"status":  coStatus,
	"wrap":    coWrap,
	"yield":   coYield,
}}

// coroutineEntry is where every coroutine begins. Its first resumption, by
// create, comes back at once, so that the thread's error hook can be set.
// Values that leave a coroutine come behind their number, which gopher-lua forgets
// when they are none or nil.
const coroutineEntry = "local f, pause, count = ... return count(f(pause()))"

// maxRegisters is what one function of the machine uses at most.
const maxRegisters = 200

const yieldAcross = "attempt to yield across metamethod/C-call boundary"

// coroutineBytes is what a new thread takes, for the memory account.
const coroutineBytes = 16 << 10

func newCoroutine(L *lua.LState) *lua.LState {
	fn, ok := L.Get(1).(*lua.LFunction)
	if !ok || fn.IsG {
		argError(L, 1, "Lua function expected")
	}
	r := runOf(L)
	st := r.state
	r.alloc(L, coroutineBytes)
	r.pay(L, 256)
	th := st.newThread(L, threadFrames)
	if state, err, _ := L.Resume(th, st.entry, fn, st.pause, st.count); state != lua.ResumeYield {
		r.Stop = err
		r.abort(L)
	}
	th.Panic = st.onError
	return th
}

func coCreate(L *lua.LState) int {
	L.Push(newCoroutine(L))
	return 1
}

func coWrap(L *lua.LState) int {
	th := newCoroutine(L)
	L.Push(L.NewFunction(func(L *lua.LState) int {
		values, msg := resume(L, th, arguments(L, 1))
		if msg != nil {
			if s, ok := textOf(msg); ok {
				msg = lua.LString(where(L, 1) + s)
			}
			L.Error(msg, 0)
		}
		for _, v := range values {
			L.Push(v)
		}
		return len(values)
	}))
	return 1
}

func checkThread(L *lua.LState) *lua.LState {
	th, ok := L.Get(1).(*lua.LState)
	if !ok {
		argError(L, 1, "coroutine expected")
	}
	return th
}

func coResume(L *lua.LState) int {
	values, msg := resume(L, checkThread(L), arguments(L, 2))
	if msg != nil {
		L.Push(lua.LFalse)
		L.Push(msg)
		return 2
	}
	L.Push(lua.LTrue)
	for _, v := range values {
		L.Push(v)
	}
	return len(values) + 1
}

// resume runs th until it yields or ends; msg is its error.
func resume(L, th *lua.LState, args []lua.LValue) (values []lua.LValue, msg lua.LValue) {
	st := runOf(L).state
	if status := statusOf(st, th); status != "suspended" {
		return nil, lua.LString("cannot resume " + status + " coroutine")
	}
	r := &st.run
	r.enter(L)
	depth, outer := r.depth, st.current
	st.current = th
	// Values that the waiting yield wants and does not get must be nil; gopher-lua
	// leaves whatever the registers hold.
	for range maxRegisters {
		th.Push(lua.LNil)
	}
	th.Pop(maxRegisters)
	state, err, values := L.Resume(th, nil, args...)
	st.current = outer
	r.depth = depth - 1
	if r.Stop != nil {
		r.abort(L)
	}
	if state == lua.ResumeError {
		return nil, st.machineError(L, err.(*lua.ApiError)).Object
	}
	return values[1:], nil
}

// counted puts the number of a function's arguments before them.
func counted(L *lua.LState) int {
	L.Insert(lua.LNumber(L.GetTop()), 1)
	return L.GetTop()
}

func statusOf(st *state, th *lua.LState) string {
	switch {
	case th.Dead:
		return "dead"
	case th == st.current:
		return "running"
	case th.Parent != nil:
		return "normal"
	}
	return "suspended"
}

func coStatus(L *lua.LState) int {
	L.Push(lua.LString(statusOf(runOf(L).state, checkThread(L))))
	return 1
}

func coRunning(L *lua.LState) int {
	if th := runOf(L).state.current; th != nil {
		L.Push(th)
	} else {
		L.Push(lua.LNil)
	}
	return 1
}

// coYield suspends the running coroutine. Go code cannot be suspended, so there
// must be none between the coroutine's beginning and here; gopher-lua does not
// look, and would go on with a stack that is not there.
func coYield(L *lua.LState) int {
	if L.Parent == nil {
		raise(L, 0, yieldAcross)
	}
	for level := 1; ; level++ {
		f := frameOf(L, level)
		if f.dbg == nil {
			counted(L)
			return -1
		}
		if f.proto == nil {
			raise(L, 0, yieldAcross)
		}
		callee := f.calleeRegister()
		_, called := f.find(func(i instr) (int, bool) {
			op := i.op()
			return callee, (op == lua.OP_CALL || op == lua.OP_TAILCALL) && i.a() == callee
		})
		if !called {
			raise(L, 0, yieldAcross)
		}
	}
}
