package closure

import (
	"strings"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/scripting/numeral"
	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// baseLibrary has what the virtual machine's has, but for load and loadstring.
var baseLibrary map[string]Native

func init() {
	baseLibrary = map[string]Native{
		"assert": baseAssert, "collectgarbage": baseCollectGarbage, "error": baseError, "gcinfo": baseGCInfo,
		"getmetatable": baseGetMetatable, "ipairs": baseIpairs, "next": baseNext, "pairs": basePairs, "pcall": basePCall,
		"rawequal": baseRawEqual, "rawget": baseRawGet, "rawset": baseRawSet, "select": baseSelect,
		"setmetatable": baseSetMetatable, "tonumber": baseToNumber, "tostring": baseToString, "type": baseType,
		"unpack": baseUnpack, "xpcall": baseXPCall,
	}
}

func baseAssert(m *Machine, args []Value) []Value {
	if !m.checkAny(args, 1).Truthy() {
		m.raise(1, m.optString(args, 2, "assertion failed!"))
	}
	return args
}

func baseCollectGarbage(m *Machine, args []Value) []Value {
	opt := text.CString(m.optString(args, 1, "collect"))
	if !budget.Collects(opt) {
		m.argError(1, "invalid option '"+opt+"'")
	}
	answer, boolean := m.garbage.Do(opt, m.optInt(args, 2, 0), m.Mem)
	if boolean {
		return m.ret1(value.Bool(answer == 1))
	}
	return m.ret1(value.Number(answer))
}

func baseGCInfo(m *Machine, _ []Value) []Value {
	return m.ret1(value.Number(float64(1 + m.Mem/1024)))
}

func baseError(m *Machine, args []Value) []Value {
	v := arg(args, 1)
	level := m.optInt(args, 2, 1)
	if s, ok := textOf(v); ok && level > 0 {
		v = value.String(m.where(level) + s)
	}
	m.raiseValue(v)
	return nil
}

func baseGetMetatable(m *Machine, args []Value) []Value {
	v := m.checkAny(args, 1)
	switch {
	case v.IsString():
		return m.ret1(m.world.stringMeta)
	case v.IsTable():
		if mt := v.AsTable().Meta; mt != nil {
			if p := mt.Handler(value.EventMetatable); !p.IsNil() {
				return m.ret1(p)
			}
			return m.ret1(value.FromTable(mt))
		}
	}
	return m.ret1(value.Nil)
}

func baseSetMetatable(m *Machine, args []Value) []Value {
	t := m.checkTable(args, 1)
	mt := arg(args, 2)
	if !mt.IsTable() && (!mt.IsNil() || len(args) < 2) {
		m.argError(2, "nil or table expected")
	}
	if t.Meta != nil && !t.Meta.Handler(value.EventMetatable).IsNil() {
		m.raise(1, "cannot change a protected metatable")
	}
	m.writable(t)
	t.Meta = nil
	if mt.IsTable() {
		t.Meta = mt.AsTable()
	}
	return args[:1]
}

// writable refuses a read-only table.
func (m *Machine) writable(t *Table) {
	if t.ReadOnly {
		m.raise(0, readOnlyTable)
	}
}

func baseIpairs(m *Machine, args []Value) []Value {
	m.checkTable(args, 1)
	m.rets = append(m.rets[:0], m.world.ipairsStep, args[0], value.Number(0))
	return m.rets
}

func ipairsStep(m *Machine, args []Value) []Value {
	i := m.checkInt(args, 2) + 1 // looked at first, as by C's ipairs
	t := m.checkTable(args, 1)
	v := t.Get(value.Int(i))
	if v.IsNil() {
		return nil
	}
	return m.ret2(value.Int(i), v)
}

func basePairs(m *Machine, args []Value) []Value {
	m.checkTable(args, 1)
	m.rets = append(m.rets[:0], m.world.pairsStep, args[0], value.Nil)
	return m.rets
}

func baseNext(m *Machine, args []Value) []Value {
	t := m.checkTable(args, 1)
	k, v, err := t.Next(arg(args, 2))
	if err != nil {
		m.raise(0, err.Error())
	}
	if m.Left <= 0 { // a walk over many empty slots
		m.look()
	}
	if k.IsNil() {
		return m.ret1(k)
	}
	return m.ret2(k, v)
}

func baseRawEqual(m *Machine, args []Value) []Value {
	m.checkAny(args, 1)
	return m.ret1(value.Bool(value.Equal(args[0], m.checkAny(args, 2))))
}

func baseRawGet(m *Machine, args []Value) []Value {
	t := m.checkTable(args, 1)
	return m.ret1(t.Get(m.checkAny(args, 2)))
}

func baseRawSet(m *Machine, args []Value) []Value {
	t := m.checkTable(args, 1)
	m.checkAny(args, 2)
	m.checkAny(args, 3)
	m.writable(t)
	m.rawSet(t, args[1], args[2])
	return args[:1]
}

// rawSet is t[k] = v in a library function.
func (m *Machine) rawSet(t *Table, k, v Value) {
	if err := t.Set(k, v); err != nil {
		m.raise(0, err.Error())
	}
}

func baseSelect(m *Machine, args []Value) []Value {
	n := len(args)
	if v := arg(args, 1); v.IsString() && strings.HasPrefix(v.AsString(), "#") {
		return m.ret1(value.Int(n - 1))
	}
	i := m.checkInt(args, 1)
	if i < 0 {
		i += n
	} else if i > n {
		i = n
	}
	if i < 1 {
		m.argError(1, "index out of range")
	}
	return args[i:]
}

func baseToNumber(m *Machine, args []Value) []Value {
	base := m.optInt(args, 2, 10)
	if base == 10 {
		v := m.checkAny(args, 1)
		m.text(v, value.Nil)
		if f, ok := numberOf(v); ok {
			return m.ret1(value.Number(f))
		}
		return m.ret1(value.Nil)
	}
	s := m.checkString(args, 1)
	if base < 2 || base > 36 {
		m.argError(2, "base out of range")
	}
	m.pay(len(s) >> 6)
	if f, ok := numeral.ParseBase(s, base); ok {
		return m.ret1(value.Number(f))
	}
	return m.ret1(value.Nil)
}

func baseToString(m *Machine, args []Value) []Value {
	return m.ret1(m.toString(m.checkAny(args, 1)))
}

// toString is tostring.
func (m *Machine) toString(v Value) Value {
	if v.IsString() {
		return v
	}
	if h := m.metamethod(v, value.EventToString); !h.IsNil() {
		return m.back1(h, true, v)
	}
	m.Mem += 32
	return value.String(plainText(v))
}

func baseType(m *Machine, args []Value) []Value {
	return m.ret1(typeValues[m.checkAny(args, 1).Kind()])
}

var typeValues = func() (names [value.KindCell]Value) {
	for k := range names {
		names[k] = value.String(value.Kind(k).String())
	}
	return names
}()

// maxResults is how many values a library function may return, as Lua's LUAI_MAXCSTACK.
const maxResults = 8000

func baseUnpack(m *Machine, args []Value) []Value {
	t := m.checkTable(args, 1)
	i := m.optInt(args, 2, 1)
	j := 0
	if arg(args, 3).IsNil() {
		j = t.Len()
	} else {
		j = m.checkInt(args, 3)
	}
	if i > j {
		return nil
	}
	n := j - i + 1
	if n <= 0 || n > maxResults-len(args) {
		m.raise(1, "too many results to unpack")
	}
	m.pay(n >> 3)
	m.rets = m.rets[:0]
	for ; i <= j; i++ {
		m.rets = append(m.rets, t.Get(value.Int(i)))
	}
	return m.rets
}

// protect calls v and recovers what it raises; e is nil when it returned. The
// account ends the script through it.
func (m *Machine) protect(v Value, args []Value) (res []Value, e *raised) {
	depth, weight, native, stack := m.depth, m.weight, m.native, len(m.stack)
	defer func() {
		if p := recover(); p != nil {
			var ok bool
			if e, ok = p.(*raised); !ok || m.Stop != nil {
				panic(p)
			}
			m.depth, m.weight, m.native = depth, weight, native
			m.stack = m.stack[:stack]
		}
	}()
	return m.back(v, true, args...), nil
}

// basePCall is Redis's pcall: an error that redis.call raised comes out as its text.
func basePCall(m *Machine, args []Value) []Value {
	fn := arg(args, 1)
	if len(args) == 0 {
		// as Redis, whose wrapper pushes its result before it looks for a function
		fn, args = value.True, []Value{value.True}
	}
	if !fn.IsFunction() && m.metamethod(fn, value.EventCall).IsNil() {
		return m.ret2(value.False, value.String("attempt to call a "+typeName(fn)+" value"))
	}
	m.deep()
	return m.outcome(m.protect(fn, args[1:]))
}

// deep refuses another protected call where too many wait, outside of what it protects.
func (m *Machine) deep() {
	if m.native >= maxNative {
		m.raise(1, "C stack overflow")
	}
}

func (m *Machine) outcome(res []Value, e *raised) []Value {
	if e != nil {
		return m.failed(e.v)
	}
	m.rets = append(m.rets, value.Nil) // may be what res is a part of
	if n := len(res) + 1; len(m.rets) < n {
		m.rets = append(m.rets, make([]Value, n-len(m.rets))...)
	} else {
		m.rets = m.rets[:n]
	}
	copy(m.rets[1:], res)
	m.rets[0] = value.True
	return m.rets
}

// failed is what Redis's pcall makes of an error: of a table with a text under err,
// such as redis.call's, that text; behind any other table stands what it has there.
func (m *Machine) failed(v Value) []Value {
	if !v.IsTable() {
		return m.ret2(value.False, v)
	}
	text := m.index(0, operand{}, v, value.String("err"))
	if text.IsString() || text.IsNumber() {
		return m.ret2(value.False, text)
	}
	m.rets = append(m.rets[:0], value.False, v, text)
	return m.rets
}

func baseXPCall(m *Machine, args []Value) []Value {
	if len(args) < 2 {
		m.argError(2, "value expected")
	}
	fn, handler := args[0], args[1]
	var e *raised
	var res []Value
	if !fn.IsFunction() && m.metamethod(fn, value.EventCall).IsNil() {
		e = &raised{v: value.String("attempt to call a " + typeName(fn) + " value")}
	} else {
		m.deep()
		res, e = m.protect(fn, nil)
	}
	if e == nil {
		return m.outcome(res, nil)
	}
	handled, failed := m.protect(handler, []Value{e.v})
	if failed != nil {
		return m.ret2(value.False, value.String("error in error handling"))
	}
	return m.ret2(value.False, first(handled))
}
