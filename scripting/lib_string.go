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

// position makes a Lua index, negative from the end, one from the beginning.
func position(i, length int) int {
	if i < 0 {
		i += length + 1
	}
	return max(i, 0)
}

func pushString(L *lua.LState, s string) int {
	L.Push(lua.LString(s))
	return 1
}

func strByte(L *lua.LState) int {
	s := checkString(L, 1)
	i := position(optIndex(L, 2, 1), len(s))
	j := min(position(optIndex(L, 3, i), len(s)), len(s))
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
	i := max(position(checkIndex(L, 2), len(s)), 1)
	j := min(position(optIndex(L, 3, -1), len(s)), len(s))
	if i > j {
		return pushString(L, "")
	}
	return pushString(L, s[i-1:j])
}

func strFind(L *lua.LState) int { return find(L, true) }

func strMatch(L *lua.LState) int { return find(L, false) }

func find(L *lua.LState, indices bool) int {
	s, pat := checkString(L, 1), checkString(L, 2)
	init := max(position(optIndex(L, 3, 1), len(s))-1, 0)
	if init > len(s) {
		init = len(s)
	}
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
	p := 0
	anchor := pat != "" && pat[0] == '^'
	if anchor {
		p = 1
	}
	for at := init; ; at++ {
		m.Level = 0
		if e := m.Match(at, p); e >= 0 {
			if !indices {
				return m.push(at, e)
			}
			L.Push(number(float64(at + 1)))
			L.Push(number(float64(e)))
			if m.Level == 0 {
				return 2
			}
			return 2 + m.push(at, e)
		}
		if anchor || at >= len(s) {
			L.Push(lua.LNil)
			return 1
		}
	}
}

func strGmatch(L *lua.LState) int {
	s, pat := checkString(L, 1), checkString(L, 2)
	at := 0
	L.Push(L.NewFunction(func(L *lua.LState) int {
		m := newMatcher(L, s, pat)
		for ; at <= len(s); at++ {
			m.Level = 0
			if e := m.Match(at, 0); e >= 0 {
				begin := at
				at = e
				if e == begin {
					at++ // an empty match: go on after it
				}
				return m.push(begin, e)
			}
		}
		return 0
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
	r := runOf(L)
	m := newMatcher(L, s, pat)
	p := 0
	anchor := pat != "" && pat[0] == '^'
	if anchor {
		p = 1
	}
	var b []byte
	grow := func(piece string) {
		if len(b)+len(piece) > cap(b) {
			// charge what the buffer will take, before it does
			r.alloc(L, 2*(len(b)+len(piece)))
		}
		b = append(b, piece...)
	}
	at, n := 0, 0
	for n < limit {
		m.Level = 0
		e := m.Match(at, p)
		if e >= 0 {
			n++
			m.replacement(repl, at, e, grow)
		}
		if e >= 0 && e > at {
			at = e
		} else if at < len(s) {
			grow(s[at : at+1])
			at++
		} else {
			break
		}
		if anchor {
			break
		}
	}
	if n == 0 {
		L.Push(lua.LString(s))
	} else {
		if at < len(s) {
			grow(s[at:])
		}
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
