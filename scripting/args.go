package scripting

import (
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// argError raises Lua's "bad argument #1 to 'f' (text)".
func argError(L *lua.LState, n int, text string) {
	site := callSite(L)
	if site.kind == "method" {
		if n--; n == 0 {
			raise(L, 1, "calling '"+site.name+"' on bad self ("+text+")")
		}
	}
	if site.name == "" {
		site.name = "?"
	}
	raise(L, 1, "bad argument #"+strconv.Itoa(n)+" to '"+site.name+"' ("+text+")")
}

func argTypeError(L *lua.LState, n int, want string) {
	got := "no value"
	if n <= L.GetTop() {
		got = typeName(L.Get(n))
	}
	argError(L, n, want+" expected, got "+got)
}

func checkAny(L *lua.LState, n int) lua.LValue {
	if n > L.GetTop() {
		argError(L, n, "value expected")
	}
	return L.Get(n)
}

func checkTable(L *lua.LState, n int) *lua.LTable {
	t, ok := L.Get(n).(*lua.LTable)
	if !ok {
		argTypeError(L, n, "table")
	}
	return t
}

func checkFunction(L *lua.LState, n int) *lua.LFunction {
	f, ok := L.Get(n).(*lua.LFunction)
	if !ok {
		argTypeError(L, n, "function")
	}
	return f
}

// checkString takes strings and numbers.
func checkString(L *lua.LState, n int) string {
	if s, ok := L.Get(n).(lua.LString); ok {
		return string(s)
	}
	s, ok := textOf(L.Get(n))
	if !ok {
		argTypeError(L, n, "string")
	}
	return s
}

func optString(L *lua.LState, n int, def string) string {
	if L.Get(n) == lua.LNil {
		return def
	}
	return checkString(L, n)
}

// checkNumber takes numbers and strings that read as one.
func checkNumber(L *lua.LState, n int) float64 {
	if v, ok := L.Get(n).(lua.LNumber); ok {
		return float64(v)
	}
	f, ok := toNumber(L.Get(n))
	if !ok {
		argTypeError(L, n, "number")
	}
	return f
}

// checkInt is checkNumber cut to a C int, of which Lua 5.1 keeps the low 32
// bits, as luaL_checkint.
func checkInt(L *lua.LState, n int) int { return int(int32(truncate(checkNumber(L, n)))) }

// checkIndex is checkNumber cut to a long integer: where a string begins or ends.
func checkIndex(L *lua.LState, n int) int { return int(truncate(checkNumber(L, n))) }

func optIndex(L *lua.LState, n, def int) int {
	if L.Get(n) == lua.LNil {
		return def
	}
	return checkIndex(L, n)
}

func optInt(L *lua.LState, n, def int) int {
	if L.Get(n) == lua.LNil {
		return def
	}
	return checkInt(L, n)
}
