package scripting

import (
	"fmt"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/scripting/numeral"
	"github.com/latchkey-proxy/latchkey/scripting/text"
)

// baseLibrary has no dofile, loadfile, print, require and module, and like
// current Redis no getfenv, setfenv and newproxy.
var baseLibrary = library{functions: map[string]lua.LGFunction{
	"assert":         baseAssert,
	"collectgarbage": baseCollectGarbage,
	"error":          baseError,
	"gcinfo":         baseGCInfo,
	"getmetatable":   baseGetMetatable,
	"ipairs":         baseIpairs,
	"load":           baseLoad,
	"loadstring":     baseLoadString,
	"next":           baseNext,
	"pairs":          basePairs,
	"pcall":          basePCall,
	"rawequal":       baseRawEqual,
	"rawget":         baseRawGet,
	"rawset":         baseRawSet,
	"select":         baseSelect,
	"setmetatable":   baseSetMetatable,
	"tonumber":       baseToNumber,
	"tostring":       baseToString,
	"type":           baseType,
	"unpack":         baseUnpack,
	"xpcall":         baseXPCall,
}}

func baseAssert(L *lua.LState) int {
	if lua.LVIsFalse(checkAny(L, 1)) {
		raise(L, 1, optString(L, 2, "assertion failed!"))
	}
	return L.GetTop()
}

// baseCollectGarbage leaves collecting to Go.
func baseCollectGarbage(L *lua.LState) int {
	opt := text.CString(optString(L, 1, "collect"))
	if !budget.Collects(opt) {
		argError(L, 1, "invalid option '"+opt+"'")
	}
	r := runOf(L)
	answer, boolean := r.garbage.Do(opt, optInt(L, 2, 0), r.Mem)
	if boolean {
		L.Push(lua.LBool(answer == 1))
	} else {
		L.Push(number(answer))
	}
	return 1
}

func baseGCInfo(L *lua.LState) int {
	L.Push(number(float64(1 + runOf(L).Mem/1024)))
	return 1
}

func baseError(L *lua.LState) int {
	v := L.Get(1)
	level := optInt(L, 2, 1)
	if s, ok := textOf(v); ok && level > 0 {
		v = lua.LString(where(L, level) + s)
	}
	L.Error(v, 0)
	return 0
}

func baseGetMetatable(L *lua.LState) int {
	st := runOf(L).state
	switch v := checkAny(L, 1).(type) {
	case *lua.LTable:
		switch {
		case v == st.env:
			L.Push(st.globalsMeta)
		case behind(L, v) != v:
			if behind(L, v).Metatable != lua.LNil { // what a library's body has for redis
				L.Push(st.globalsMeta)
			} else {
				L.Push(lua.LNil)
			}
		default:
			mt, ok := v.Metatable.(*lua.LTable)
			if !ok {
				L.Push(lua.LNil)
			} else if p := mt.RawGetString("__metatable"); p != lua.LNil {
				L.Push(p)
			} else {
				L.Push(mt)
			}
		}
	case lua.LString:
		L.Push(st.stringMeta)
	default:
		L.Push(lua.LNil)
	}
	return 1
}

func baseSetMetatable(L *lua.LState) int {
	t := checkTable(L, 1)
	mt := L.Get(2)
	if _, ok := mt.(*lua.LTable); !ok && (mt != lua.LNil || L.GetTop() < 2) {
		argError(L, 2, "nil or table expected")
	}
	if old, ok := t.Metatable.(*lua.LTable); ok {
		writable(L, t)
		if old.RawGetString("__metatable") != lua.LNil {
			raise(L, 1, "cannot change a protected metatable")
		}
	}
	t.Metatable = mt
	L.SetTop(1)
	return 1
}

func baseIpairs(L *lua.LState) int {
	t := checkTable(L, 1)
	L.Push(runOf(L).state.ipairs)
	L.Push(t)
	L.Push(number(0))
	return 3
}

func ipairsStep(L *lua.LState) int {
	i := checkInt(L, 2) + 1 // looked at first, as by C's ipairs
	t := checkTable(L, 1)
	v := behind(L, t).RawGet(lua.LNumber(i))
	if v == lua.LNil {
		return 0
	}
	L.Push(number(float64(i)))
	L.Push(v)
	return 2
}

func basePairs(L *lua.LState) int {
	t := checkTable(L, 1)
	L.Push(runOf(L).state.pairs)
	L.Push(t)
	L.Push(lua.LNil)
	return 3
}

func baseNext(L *lua.LState) int {
	t := behind(L, checkTable(L, 1))
	k, v := nextEntry(L, t, L.Get(2))
	if k == lua.LNil {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(k)
	L.Push(v)
	return 2
}

// nextEntry is the entry after key. gopher-lua walks over every key the table
// ever had, so one call in sixteen is timed and charged for what it took.
func nextEntry(L *lua.LState, t *lua.LTable, key lua.LValue) (lua.LValue, lua.LValue) {
	if n, ok := arrayIndex(key); ok && t.RawGetInt(n) == lua.LNil {
		// The element was removed on the way and the array may have shrunk; beyond its end
		// gopher-lua would lose its place.
		if end := t.Len(); n > end {
			key = lua.LNil
			if end > 0 {
				key = lua.LNumber(end)
			}
		}
	}
	r := runOf(L)
	if r.nextCalls++; r.nextCalls&15 != 0 {
		return t.Next(key)
	}
	now := r.engine.opts.Now
	begin := now()
	k, v := t.Next(key)
	if took := now().Sub(begin); took > time.Microsecond {
		r.pay(L, int(took/(time.Nanosecond*15)))
	}
	return k, v
}

func baseRawEqual(L *lua.LState) int {
	L.Push(lua.LBool(checkAny(L, 1) == checkAny(L, 2)))
	return 1
}

func baseRawGet(L *lua.LState) int {
	t := behind(L, checkTable(L, 1))
	L.Push(t.RawGet(checkAny(L, 2)))
	return 1
}

func baseRawSet(L *lua.LState) int {
	t := checkTable(L, 1)
	k, v := checkAny(L, 2), checkAny(L, 3)
	writable(L, t)
	if problem := badKey(k); problem != "" {
		raise(L, 0, problem) // a function of C's has no position
	}
	rawStore(L, t, k, v)
	L.SetTop(1)
	return 1
}

func baseSelect(L *lua.LState) int {
	n := L.GetTop()
	if s, ok := L.Get(1).(lua.LString); ok && strings.HasPrefix(string(s), "#") {
		L.Push(number(float64(n - 1)))
		return 1
	}
	i := checkInt(L, 1)
	if i < 0 {
		i += n
	} else if i > n {
		i = n
	}
	if i < 1 {
		argError(L, 1, "index out of range")
	}
	return n - i
}

func baseToNumber(L *lua.LState) int {
	base := optInt(L, 2, 10)
	if base == 10 {
		if f, ok := toNumber(checkAny(L, 1)); ok {
			L.Push(number(f))
		} else {
			L.Push(lua.LNil)
		}
		return 1
	}
	s := checkString(L, 1)
	if base < 2 || base > 36 {
		argError(L, 2, "base out of range")
	}
	if f, ok := numeral.ParseBase(s, base); ok {
		L.Push(number(f))
	} else {
		L.Push(lua.LNil)
	}
	return 1
}

func baseToString(L *lua.LState) int {
	L.Push(toStringMeta(L, checkAny(L, 1)))
	return 1
}

func toStringMeta(L *lua.LState, v lua.LValue) lua.LValue {
	switch v := v.(type) {
	case lua.LString:
		return v
	case lua.LNumber:
		return lua.LString(numberText(float64(v)))
	case *lua.LTable:
		if fn := metamethod(L, v, "__tostring"); fn != lua.LNil {
			return callValue(L, fn, v)
		}
		return lua.LString(fmt.Sprintf("table: %p", v))
	case *lua.LFunction:
		return lua.LString(fmt.Sprintf("function: %p", v))
	case *lua.LState:
		return lua.LString(fmt.Sprintf("thread: %p", v))
	}
	if v.Type() == lua.LTUserData {
		return lua.LString("userdata: (nil)") // cjson.null, as C prints it
	}
	return lua.LString(v.String())
}

func baseType(L *lua.LState) int {
	L.Push(lua.LString(typeName(checkAny(L, 1))))
	return 1
}

// maxResults is how many values a Go function may return, as Lua's LUAI_MAXCSTACK.
const maxResults = 8000

func baseUnpack(L *lua.LState) int {
	t := behind(L, checkTable(L, 1))
	i := optInt(L, 2, 1)
	j := 0
	if L.Get(3) == lua.LNil {
		j = t.Len()
	} else {
		j = checkInt(L, 3)
	}
	if i > j {
		return 0
	}
	n := j - i + 1
	if n <= 0 || n > maxResults-L.GetTop() {
		raise(L, 1, "too many results to unpack")
	}
	runOf(L).pay(L, n>>3)
	for ; i <= j; i++ {
		L.Push(t.RawGet(lua.LNumber(i)))
	}
	return n
}

func arguments(L *lua.LState, from int) []lua.LValue {
	n := L.GetTop()
	args := make([]lua.LValue, 0, max(n-from+1, 0))
	for i := from; i <= n; i++ {
		args = append(args, L.Get(i))
	}
	return args
}

// basePCall is Redis's pcall: an error that redis.call raised comes out as its text.
func basePCall(L *lua.LState) int {
	fn := L.Get(1)
	args := arguments(L, 2)
	if L.GetTop() == 0 {
		// as Redis, whose wrapper pushes its result before it looks for a function
		fn = lua.LTrue
	}
	if !callable(L, fn) {
		L.Push(lua.LFalse)
		L.Push(lua.LString("attempt to call a " + typeName(fn) + " value"))
		return 2
	}
	results, err := runOf(L).state.protect(L, fn, args)
	return pushOutcome(L, results, err)
}

func pushOutcome(L *lua.LState, results []lua.LValue, err *lua.ApiError) int {
	if err != nil {
		return pushFailure(L, err.Object)
	}
	L.Push(lua.LTrue)
	for _, v := range results {
		L.Push(v)
	}
	return len(results) + 1
}

// pushFailure leaves what Redis's pcall makes of an error: of a table with a text
// under err, such as redis.call's, that text; behind any other table stands what it
// has there.
func pushFailure(L *lua.LState, v lua.LValue) int {
	L.Push(lua.LFalse)
	t, ok := v.(*lua.LTable)
	if !ok {
		L.Push(v)
		return 2
	}
	text := L.GetField(t, "err")
	if text.Type() == lua.LTString || text.Type() == lua.LTNumber {
		L.Push(text)
		return 2
	}
	L.Push(v)
	L.Push(text)
	return 3
}

func baseXPCall(L *lua.LState) int {
	if L.GetTop() < 2 {
		argError(L, 2, "value expected")
	}
	fn, handler := L.Get(1), L.Get(2)
	st := runOf(L).state
	var results []lua.LValue
	var err *lua.ApiError
	if !callable(L, fn) {
		err = &lua.ApiError{Object: lua.LString("attempt to call a " + typeName(fn) + " value")}
	} else {
		results, err = st.protect(L, fn, nil)
	}
	if err == nil {
		return pushOutcome(L, results, nil)
	}
	handled, failed := st.protect(L, handler, []lua.LValue{err.Object})
	L.Push(lua.LFalse)
	switch {
	case failed != nil:
		L.Push(lua.LString("error in error handling"))
	case len(handled) > 0:
		L.Push(handled[0])
	default:
		L.Push(lua.LNil)
	}
	return 2
}

func baseLoadString(L *lua.LState) int {
	s := checkString(L, 1)
	return load(L, s, optString(L, 2, s))
}

func baseLoad(L *lua.LState) int {
	name := optString(L, 2, "=(load)")
	fn := checkFunction(L, 1)
	var b strings.Builder
	for {
		results, failed := runOf(L).state.protect(L, fn, nil)
		if failed != nil {
			L.Push(lua.LNil)
			L.Push(runOf(L).explained(L, failed.Object))
			return 2
		}
		piece := lua.LValue(lua.LNil)
		if len(results) > 0 {
			piece = results[0]
		}
		s, ok := textOf(piece)
		if !ok && piece != lua.LNil {
			r := runOf(L)
			r.source, r.line = r.state.position(L, 1)
			L.Push(lua.LNil)
			L.Push(r.explained(L, lua.LString(where(L, 1)+"reader function must return a string")))
			return 2
		}
		if s == "" {
			break
		}
		runOf(L).alloc(L, len(s))
		if b.Len()+len(s) > int(runOf(L).engine.maxSrc.Load()) {
			L.Push(lua.LNil)
			L.Push(lua.LString("chunk is too long"))
			return 2
		}
		b.WriteString(s)
	}
	return load(L, b.String(), name)
}

// explained is what load returns for an error of its function: outside of pcall, Redis's
// handler of uncaught errors has made a table of it, or stored in it where it was raised.
func (r *run) explained(L *lua.LState, v lua.LValue) lua.LValue {
	if L != r.state.L { // a thread of pcall's, or a coroutine
		return v
	}
	t, ok := v.(*lua.LTable)
	if !ok {
		r.alloc(L, 256)
		t = L.NewTable()
		t.RawSetString("err", lua.LString("ERR "+toStringMeta(L, v).String()))
	}
	if t.Metatable == lua.LNil {
		t.RawSetString("source", lua.LString(r.place()))
		t.RawSetString("line", lua.LNumber(r.line))
	}
	return t
}

func load(L *lua.LState, src, name string) int {
	r := runOf(L)
	r.pay(L, len(src)) // compiling takes about as long as running that much
	r.alloc(L, 64*len(src))
	name = text.CString(name)
	id := chunkID(name, 60)
	if r.chunks == nil {
		r.chunks = map[string]string{}
	}
	r.chunks[id] = name
	proto, _, err := r.engine.compileSource(src, id)
	if err != nil {
		L.Push(lua.LNil)
		rest := strings.TrimPrefix(err.Error(), id) // Lua's lexer leaves more room for the name
		L.Push(lua.LString(chunkID(name, 80) + rest))
		return 2
	}
	L.Push(L.NewFunctionFromProto(proto))
	return 1
}

// chunkID is what error messages call a chunk, in so many bytes with C's NUL, as
// Lua's luaO_chunkid.
func chunkID(name string, size int) string {
	if name != "" && (name[0] == '=' || name[0] == '@') {
		rest := name[1:]
		if name[0] == '=' {
			return rest[:min(len(rest), size-1)]
		}
		if len(rest) > size-8 {
			return "..." + rest[len(rest)-(size-8):]
		}
		return rest
	}
	line, _, _ := strings.Cut(name, "\n")
	line, _, _ = strings.Cut(line, "\r")
	room := size - len(" [string \"...\"] ") - 1
	if len(line) > room || line != name {
		return "[string \"" + line[:min(len(line), room)] + "...\"]"
	}
	return "[string \"" + line + "\"]"
}
