package closure

import (
	"strconv"

	"github.com/latchkey-proxy/latchkey/scripting/value"
)

var tableLibrary = map[string]Native{
	"concat": tabConcat, "foreach": tabForeach, "foreachi": tabForeachi, "getn": tabGetn, "insert": tabInsert,
	"maxn": tabMaxn, "remove": tabRemove, "setn": tabSetn, "sort": tabSort,
}

func tabConcat(m *Machine, args []Value) []Value {
	sep := m.optString(args, 2, "")
	t := m.checkTable(args, 1)
	i := m.optInt(args, 3, 1)
	j := 0
	if arg(args, 4).IsNil() {
		j = t.Len()
	} else {
		j = m.checkInt(args, 4)
	}
	var b []byte
	for k := i; k <= j; k++ {
		if k&127 == 0 {
			m.pay(128)
		}
		v := t.Get(value.Int(k))
		s, ok := textOf(v)
		if !ok {
			m.raise(1, "invalid value ("+typeName(v)+") at index "+strconv.Itoa(k)+" in table for 'concat'")
		}
		n := len(s)
		if k != j {
			n += len(sep)
		}
		if len(b)+n > cap(b) {
			m.alloc(2 * (len(b) + n))
		}
		b = append(b, s...)
		if k != j {
			b = append(b, sep...)
		}
	}
	return m.ret1(value.Bytes(b))
}

func tabForeach(m *Machine, args []Value) []Value {
	t, fn := m.checkTable(args, 1), m.checkFunction(args, 2)
	place, k, v := t.NextAt(0)
	for !k.IsNil() {
		m.pay(4)
		if got := m.back1(fn, true, k, v); !got.IsNil() {
			return m.ret1(got)
		}
		var err error
		if place, k, v, err = t.After(place, k); err != nil {
			m.raise(0, err.Error())
		}
	}
	return nil
}

func tabForeachi(m *Machine, args []Value) []Value {
	t, fn := m.checkTable(args, 1), m.checkFunction(args, 2)
	for i, n := 1, t.Len(); i <= n; i++ {
		m.pay(4)
		if got := m.back1(fn, true, value.Int(i), t.GetInt(i)); !got.IsNil() {
			return m.ret1(got)
		}
	}
	return nil
}

func tabGetn(m *Machine, args []Value) []Value {
	return m.ret1(value.Int(m.checkTable(args, 1).Len()))
}

func tabMaxn(m *Machine, args []Value) []Value {
	t := m.checkTable(args, 1)
	most := 0.0
	for at, k, _ := t.NextAt(0); !k.IsNil(); at, k, _ = t.NextAt(at) {
		m.pay(1)
		if k.IsNumber() {
			most = max(most, k.AsNumber())
		}
	}
	return m.ret1(value.Number(most))
}

func tabSetn(m *Machine, args []Value) []Value {
	m.checkTable(args, 1)
	m.raise(1, "'setn' is obsolete")
	return nil
}

func tabInsert(m *Machine, args []Value) []Value {
	t := m.checkTable(args, 1)
	e := t.Len() + 1
	switch len(args) {
	case 2:
		m.writable(t)
		t.SetInt(e, args[1])
	case 3:
		pos := m.checkInt(args, 2)
		m.writable(t)
		for i := max(e, pos); i > pos; i-- {
			if i&7 == 0 {
				m.pay(1)
			}
			t.SetInt(i, t.GetInt(i-1))
		}
		t.SetInt(pos, args[2])
	default:
		m.raise(1, "wrong number of arguments to 'insert'")
	}
	return nil
}

func tabRemove(m *Machine, args []Value) []Value {
	t := m.checkTable(args, 1)
	e := t.Len()
	pos := m.optInt(args, 2, e)
	if pos < 1 || pos > e {
		return nil
	}
	m.writable(t)
	v := t.GetInt(pos)
	for ; pos < e; pos++ {
		if pos&7 == 0 {
			m.pay(1)
		}
		t.SetInt(pos, t.GetInt(pos+1))
	}
	t.SetInt(e, value.Nil)
	return m.ret1(v)
}

// tabSort is Lua's own quicksort, so that an order function that is none fails as
// it does there, and the same comparisons are made in the same order.
func tabSort(m *Machine, args []Value) []Value {
	t := m.checkTable(args, 1)
	n := t.Len()
	fn := arg(args, 2)
	if !fn.IsNil() {
		m.checkFunction(args, 2)
	}
	if n < 2 { // a read-only table, too
		return nil
	}
	m.writable(t)
	s := &sorter{m: m, t: t, fn: fn, plain: plainFunction(fn)}
	if s.plain == nil {
		s.sort(1, n)
		return nil
	}
	// What back does for each call is done once for all of them.
	m.deep()
	m.native++
	m.push(nil, 1)
	s.sort(1, n)
	s.leave()
	return nil
}

type sorter struct {
	m     *Machine
	t     *Table
	fn    Value     // compares; nil stands for <
	plain *Function // what it is if that is a plain function, whose caller stands on the frames
}

// leave takes the frame away that calls of a plain function return to.
func (s *sorter) leave() {
	if s.plain != nil {
		s.m.depth--
		s.m.weight--
		s.m.native--
	}
}

func (s *sorter) less(a, b Value) bool {
	m := s.m
	if m.Left -= 2; m.Left <= 0 {
		m.look()
	}
	if fn := s.plain; fn != nil {
		f := m.open(fn)
		if s := f.slots; fn.proto.params == 2 {
			s[0], s[1] = a, b
		} else {
			f.spread(fn.proto, a, b, value.Nil)
		}
		return m.run(f).Truthy()
	}
	if !s.fn.IsNil() {
		return m.back1(s.fn, true, a, b).Truthy()
	}
	return m.less(0, a, b)
}

// invalid ends a sort whose order function is none.
func (s *sorter) invalid() {
	s.leave()
	s.m.raise(1, "invalid order function for sorting")
}

func (s *sorter) set2(i, j int, vi, vj Value) {
	s.t.SetInt(i, vi)
	s.t.SetInt(j, vj)
}

func (s *sorter) sort(lo, up int) {
	for lo < up {
		a, b := s.t.GetInt(lo), s.t.GetInt(up)
		if s.less(b, a) {
			s.set2(lo, up, b, a)
		}
		if up-lo == 1 {
			break
		}
		i := int(uint(lo+up) >> 1)
		p := s.t.GetInt(i)
		a = s.t.GetInt(lo)
		if s.less(p, a) {
			s.set2(i, lo, a, p)
		} else {
			b = s.t.GetInt(up)
			if s.less(b, p) {
				s.set2(i, up, b, p)
			}
		}
		if up-lo == 2 {
			break
		}
		p = s.t.GetInt(i)
		b = s.t.GetInt(up - 1)
		s.set2(i, up-1, b, p)
		i, j := lo, up-1
		for {
			for i++; ; i++ {
				a = s.t.GetInt(i)
				if !s.less(a, p) {
					break
				}
				if i > up {
					s.invalid()
				}
			}
			for j--; ; j-- {
				b = s.t.GetInt(j)
				if !s.less(p, b) {
					break
				}
				if j < lo {
					s.invalid()
				}
			}
			if j < i {
				break
			}
			s.set2(i, j, b, a)
		}
		a, b = s.t.GetInt(up-1), s.t.GetInt(i)
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
