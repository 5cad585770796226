package scripting

import (
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

var tableLibrary = library{name: "table", functions: map[string]lua.LGFunction{
	"concat":   tabConcat,
	"foreach":  tabForeach,
	"foreachi": tabForeachi,
	"getn":     tabGetn,
	"insert":   tabInsert,
	"maxn":     tabMaxn,
	"remove":   tabRemove,
	"setn":     tabSetn,
	"sort":     tabSort,
}}

func tabConcat(L *lua.LState) int {
	sep := optString(L, 2, "") // looked at first, as by C's concat
	t := checkTable(L, 1)
	i := optInt(L, 3, 1)
	j := 0
	if L.Get(4) == lua.LNil {
		j = t.Len()
	} else {
		j = checkInt(L, 4)
	}
	r := runOf(L)
	var b []byte
	for k := i; k <= j; k++ {
		if k&127 == 0 {
			r.pay(L, 128)
		}
		s, ok := textOf(t.RawGet(lua.LNumber(k)))
		if !ok {
			raise(L, 1, "invalid value ("+typeName(t.RawGet(lua.LNumber(k)))+") at index "+
				strconv.Itoa(k)+" in table for 'concat'")
		}
		n := len(s)
		if k != j {
			n += len(sep)
		}
		if len(b)+n > cap(b) {
			r.alloc(L, 2*(len(b)+n))
		}
		b = append(b, s...)
		if k != j {
			b = append(b, sep...)
		}
	}
	return pushString(L, string(b))
}

func tabForeach(L *lua.LState) int {
	t, fn := behind(L, checkTable(L, 1)), checkFunction(L, 2)
	for k, v := nextEntry(L, t, lua.LNil); k != lua.LNil; k, v = nextEntry(L, t, k) {
		runOf(L).pay(L, 4)
		if got := callValue(L, fn, k, v); got != lua.LNil {
			L.Push(got)
			return 1
		}
	}
	return 0
}

func tabForeachi(L *lua.LState) int {
	t, fn := checkTable(L, 1), checkFunction(L, 2)
	for i, n := 1, t.Len(); i <= n; i++ {
		runOf(L).pay(L, 4)
		if got := callValue(L, fn, lua.LNumber(i), t.RawGetInt(i)); got != lua.LNil {
			L.Push(got)
			return 1
		}
	}
	return 0
}

func tabGetn(L *lua.LState) int {
	L.Push(number(float64(checkTable(L, 1).Len())))
	return 1
}

func tabMaxn(L *lua.LState) int {
	t := checkTable(L, 1)
	most := 0.0
	for k, _ := nextEntry(L, t, lua.LNil); k != lua.LNil; k, _ = nextEntry(L, t, k) {
		runOf(L).pay(L, 1)
		if n, ok := k.(lua.LNumber); ok {
			most = max(most, float64(n))
		}
	}
	L.Push(number(most))
	return 1
}

func tabSetn(L *lua.LState) int {
	checkTable(L, 1)
	raise(L, 1, "'setn' is obsolete")
	return 0
}

func tabInsert(L *lua.LState) int {
	t := checkTable(L, 1)
	e := t.Len() + 1
	switch L.GetTop() {
	case 2:
		writable(L, t)
		rawStore(L, t, lua.LNumber(e), L.Get(2))
	case 3:
		pos := checkInt(L, 2)
		writable(L, t)
		v := L.Get(3)
		if pos > e {
			rawStore(L, t, lua.LNumber(pos), v)
			break
		}
		if pos >= 1 && v != lua.LNil {
			runOf(L).pay(L, (e-pos)>>3)
			if pos == e {
				t.RawSetInt(e, v)
			} else {
				t.Insert(pos, v)
			}
			break
		}
		for i := e; i > pos; i-- { // keys below one, or a nil: rare and slow
			runOf(L).pay(L, 4)
			rawStore(L, t, lua.LNumber(i), t.RawGet(lua.LNumber(i-1)))
		}
		rawStore(L, t, lua.LNumber(pos), v)
	default:
		raise(L, 1, "wrong number of arguments to 'insert'")
	}
	return 0
}

func tabRemove(L *lua.LState) int {
	t := checkTable(L, 1)
	e := t.Len()
	pos := optInt(L, 2, e)
	if pos < 1 || pos > e {
		return 0
	}
	writable(L, t)
	v := t.RawGetInt(pos)
	if pos == e {
		rawStore(L, t, lua.LNumber(e), lua.LNil)
	} else {
		runOf(L).pay(L, (e-pos)>>3)
		t.Remove(pos)
	}
	L.Push(v)
	return 1
}

// tabSort is Lua's own quicksort, so that an order function that is none fails as
// it does there, and the same comparisons are made in the same order.
func tabSort(L *lua.LState) int {
	t := checkTable(L, 1)
	n := t.Len()
	if L.Get(2) != lua.LNil {
		checkFunction(L, 2)
	}
	if n < 2 { // a read-only table, too
		return 0
	}
	writable(L, t)
	s := &sorter{L: L, run: runOf(L), t: t, fn: L.Get(2)}
	s.run.enter(L)
	s.sort(1, n)
	s.run.depth--
	return 0
}

type sorter struct {
	L   *lua.LState
	run *run
	t   *lua.LTable
	fn  lua.LValue
}

func (s *sorter) get(i int) lua.LValue {
	if i < 1 {
		return s.t.RawGet(lua.LNumber(i))
	}
	return s.t.RawGetInt(i)
}

// set2 puts two values at once, so that no hole opens in between.
func (s *sorter) set2(i, j int, vi, vj lua.LValue) {
	s.t.RawSetInt(i, vi)
	s.t.RawSetInt(j, vj)
}

func (s *sorter) less(a, b lua.LValue) bool {
	s.run.pay(s.L, 4)
	if s.fn != lua.LNil {
		s.L.Push(s.fn)
		s.L.Push(a)
		s.L.Push(b)
		s.L.Call(2, 1)
		v := s.L.Get(-1)
		s.L.Pop(1)
		return lua.LVAsBool(v)
	}
	return lessThan(s.L, a, b)
}

func lessThan(L *lua.LState, a, b lua.LValue) bool {
	switch x := a.(type) {
	case lua.LNumber:
		if y, ok := b.(lua.LNumber); ok {
			return x < y
		}
	case lua.LString:
		if y, ok := b.(lua.LString); ok {
			return x < y
		}
	case *lua.LTable:
		if fn := metamethod(L, a, "__lt"); fn != lua.LNil && fn == metamethod(L, b, "__lt") {
			return lua.LVAsBool(callValue(L, fn, a, b))
		}
	}
	ta, tb := typeName(a), typeName(b)
	if ta == tb {
		raise(L, 0, "attempt to compare two "+ta+" values")
	}
	raise(L, 0, "attempt to compare "+ta+" with "+tb)
	return false
}

func (s *sorter) sort(lo, up int) {
	for lo < up {
		a, b := s.get(lo), s.get(up)
		if s.less(b, a) {
			s.set2(lo, up, b, a)
		}
		if up-lo == 1 {
			break
		}
		i := int(uint(lo+up) >> 1)
		p := s.get(i)
		a = s.get(lo)
		if s.less(p, a) {
			s.set2(i, lo, a, p)
		} else {
			b = s.get(up)
			if s.less(b, p) {
				s.set2(i, up, b, p)
			}
		}
		if up-lo == 2 {
			break
		}
		p = s.get(i)
		b = s.get(up - 1)
		s.set2(i, up-1, b, p)
		i, j := lo, up-1
		for {
			for i++; ; i++ {
				a = s.get(i)
				if !s.less(a, p) {
					break
				}
				if i > up {
					raise(s.L, 1, "invalid order function for sorting")
				}
			}
			for j--; ; j-- {
				b = s.get(j)
				if !s.less(p, b) {
					break
				}
				if j < lo {
					raise(s.L, 1, "invalid order function for sorting")
				}
			}
			if j < i {
				break
			}
			s.set2(i, j, b, a)
		}
		a, b = s.get(up-1), s.get(i)
		s.set2(up-1, i, b, a)
		if i-lo < up-i { // the smaller half by recursion: its depth is logarithmic
			s.sort(lo, i-1)
			lo = i + 1
		} else {
			s.sort(i+1, up)
			up = i - 1
		}
	}
}
