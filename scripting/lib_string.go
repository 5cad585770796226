package scripting

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/text"
)

var stringLibrary = library{name: "string", functions: map[string]lua.LGFunction{
	"byte":    strByte,
	"char":    strChar,
	"dump":    strDump,
	"find":    strFind,
	"format":  strFormat,
	"gmatch":  strGmatch,
	"gsub":    strGsub,
	"len":     strLen,
	"lower":   strLower,
	"match":   strMatch,
	"rep":     strRep,
	"reverse": strReverse,
	"sub":     strSub,
	"upper":   strUpper,
}, aliases: map[string]string{"gfind": "gmatch"}}

func pushString(L *lua.LState, s string) int {
	L.Push(lua.LString(s))
	return 1
}

func strByte(L *lua.LState) int {
	s := checkString(L, 1)
	i := text.Position(optIndex(L, 2, 1), len(s))
	j := min(text.Position(optIndex(L, 3, i), len(s)), len(s))
	i = max(i, 1)
	if i > j {
		return 0
	}
	if j-i+1 >= maxResults {
		raise(L, 1, "string slice too long")
	}
	runOf(L).pay(L, (j-i)>>3)
	for _, c := range []byte(s[i-1 : j]) {
		L.Push(smallNumbers[c])
	}
	return j - i + 1
}

func strChar(L *lua.LState) int {
	b := make([]byte, L.GetTop())
	for i := range b {
		c := checkInt(L, i+1)
		if c < 0 || c > 255 {
			argError(L, i+1, "invalid value")
		}
		b[i] = byte(c)
	}
	return pushString(L, string(b))
}

func strDump(L *lua.LState) int {
	if checkFunction(L, 1).IsG {
		raise(L, 1, "unable to dump given function")
	}
	return pushString(L, text.Dumped)
}

func strLen(L *lua.LState) int {
	L.Push(number(float64(len(checkString(L, 1)))))
	return 1
}

// mapped makes a string of the same length, byte by byte.
func mapped(L *lua.LState, f func(dst []byte, src string)) int {
	s := checkString(L, 1)
	runOf(L).alloc(L, len(s))
	runOf(L).pay(L, len(s)>>6)
	b := make([]byte, len(s))
	f(b, s)
	return pushString(L, string(b))
}

func strLower(L *lua.LState) int { return mapped(L, text.Lower) }

func strUpper(L *lua.LState) int { return mapped(L, text.Upper) }

func strReverse(L *lua.LState) int { return mapped(L, text.Reverse) }

func strRep(L *lua.LState) int {
	s := checkString(L, 1)
	n := checkInt(L, 2)
	if n <= 0 || s == "" {
		return pushString(L, "")
	}
	r := runOf(L)
	if int64(n) > r.MemoryLimit()/int64(len(s)) {
		n = int(r.MemoryLimit()/int64(len(s))) + 1 // more than alloc grants
	}
	r.alloc(L, n*len(s))
	return pushString(L, strings.Repeat(s, n))
}

func strSub(L *lua.LState) int {
	s := checkString(L, 1)
	i := max(text.Position(checkIndex(L, 2), len(s)), 1)
	j := min(text.Position(optIndex(L, 3, -1), len(s)), len(s))
	if i > j {
		return pushString(L, "")
	}
	return pushString(L, s[i-1:j])
}

func strFind(L *lua.LState) int { return find(L, true) }

func strMatch(L *lua.LState) int { return find(L, false) }

func find(L *lua.LState, indices bool) int {
	s, pat := checkString(L, 1), checkString(L, 2)
	init := min(max(text.Position(optIndex(L, 3, 1), len(s))-1, 0), len(s))
	r := runOf(L)
	if indices && (lua.LVAsBool(L.Get(4)) || text.Plain(pat)) {
		r.pay(L, (len(s)-init+len(pat))>>6)
		i := strings.Index(s[init:], pat)
		if i < 0 {
			L.Push(lua.LNil)
			return 1
		}
		L.Push(number(float64(init + i + 1)))
		L.Push(number(float64(init + i + len(pat))))
		return 2
	}
	m := newMatcher(L, s, pat)
	at, e, ok := m.Find(init)
	switch {
	case !ok:
		L.Push(lua.LNil)
		return 1
	case !indices:
		return m.push(at, e)
	}
	L.Push(number(float64(at + 1)))
	L.Push(number(float64(e)))
	if m.Level == 0 {
		return 2
	}
	return 2 + m.push(at, e)
}

func strGmatch(L *lua.LState) int {
	s, pat := checkString(L, 1), checkString(L, 2)
	at := 0
	L.Push(L.NewFunction(func(L *lua.LState) int {
		m := newMatcher(L, s, pat)
		begin, e, next, ok := m.Next(at)
		at = next
		if !ok {
			return 0
		}
		return m.push(begin, e)
	}))
	return 1
}

func strGsub(L *lua.LState) int {
	s, pat := checkString(L, 1), checkString(L, 2)
	repl := L.Get(3)
	switch v := repl.(type) {
	case lua.LString:
	case lua.LNumber:
		repl = lua.LString(numberText(float64(v)))
	case *lua.LTable, *lua.LFunction:
	default:
		argError(L, 3, "string/function/table expected")
	}
	limit := optInt(L, 4, len(s)+1)
	m := newMatcher(L, s, pat)
	b, n := m.Substitute(limit, func(at, e int, grow func(string)) { m.replacement(repl, at, e, grow) })
	if n == 0 {
		L.Push(lua.LString(s))
	} else {
		L.Push(lua.LString(b))
	}
	L.Push(number(float64(n)))
	return 2
}

// replacement hands what stands for the match src[s:e] to grow.
func (m *matcher) replacement(repl lua.LValue, s, e int, grow func(string)) {
	var v lua.LValue
	switch f := repl.(type) {
	case lua.LString:
		m.Replace(string(f), s, e, grow)
		return
	case *lua.LTable:
		v = m.L.GetTable(f, m.value(0, s, e))
	case *lua.LFunction:
		m.L.Push(f)
		n := m.push(s, e)
		m.L.Call(n, 1)
		v = m.L.Get(-1)
		m.L.Pop(1)
	}
	if lua.LVIsFalse(v) {
		grow(m.Src[s:e])
		return
	}
	piece, ok := textOf(v)
	if !ok {
		raise(m.L, 1, "invalid replacement value (a "+typeName(v)+")")
	}
	grow(piece)
}
