package closure

import (
	"github.com/yuin/gopher-lua/ast"

	"github.com/latchkey-proxy/latchkey/scripting/arith"
	"github.com/latchkey-proxy/latchkey/scripting/libm"
	"github.com/latchkey-proxy/latchkey/scripting/numeral"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// opSite is a place with an operator of two operands.
type opSite struct {
	line  int
	event value.Event
	a, b  operand
}

var arithmetics = map[string]value.Event{
	"+": value.EventAdd, "-": value.EventSub, "*": value.EventMul, "/": value.EventDiv,
	"%": value.EventMod, "^": value.EventPow,
}

func compute(event value.Event, a, b float64) float64 {
	switch event {
	case value.EventAdd:
		return a + b
	case value.EventSub:
		return a - b
	case value.EventMul:
		return a * b
	case value.EventDiv:
		return a / b
	case value.EventMod:
		return arith.Modulo(a, b)
	case value.EventPow:
		return libm.Pow(a, b)
	}
	return -a
}

// arith is an operator with coercion and metamethods.
func (m *Machine) arith(s *opSite, a, b Value) Value {
	if x, ok := numberOf(a); ok {
		if y, ok := numberOf(b); ok {
			if a.IsString() || b.IsString() {
				m.text(a, b)
			}
			return value.Number(compute(s.event, x, y))
		}
	}
	if h := m.handler(a, b, s.event); !h.IsNil() {
		m.at(s.line)
		return m.back1(h, false, a, b)
	}
	// Lua blames the first operand that is no number.
	if _, ok := numberOf(a); ok {
		m.typeError(s.line, "perform arithmetic on", s.b, b)
	}
	m.typeError(s.line, "perform arithmetic on", s.a, a)
	return value.Nil
}

// text pays for reading long strings as numbers, or comparing them.
func (m *Machine) text(a, b Value) {
	n := 0
	if a.IsString() {
		n = len(a.AsString())
	}
	if b.IsString() {
		n += len(b.AsString())
	}
	if n > 1024 {
		m.pay(n >> 8)
	}
}

func (c *compiler) minus(x *ast.UnaryMinusOpExpr) expr {
	if n, ok := c.number(x.Expr); ok {
		v := c.literal(value.Number(-n))
		return func(*frame) Value { return v }
	}
	name := c.operand(x.Expr)
	s := &opSite{x.Line(), value.EventUnm, name, name}
	a := c.expr(x.Expr)
	return func(f *frame) Value {
		v := a(f)
		if v.IsNumber() {
			return value.Number(-v.AsNumber())
		}
		return f.m.arith(s, v, v)
	}
}

// metamethod is what v's metatable has for an event.
func (m *Machine) metamethod(v Value, e value.Event) Value {
	if v.IsTable() {
		return v.AsTable().Metamethod(e)
	}
	return value.Nil // the metatable of strings has only __index
}

// handler is the metamethod of an operator with two operands.
func (m *Machine) handler(a, b Value, e value.Event) Value {
	if h := m.metamethod(a, e); !h.IsNil() {
		return h
	}
	return m.metamethod(b, e)
}

func (c *compiler) relational(x *ast.RelationalOpExpr) test {
	op, lhs, rhs, line := x.Operator, x.Lhs, x.Rhs, x.Line()
	switch op {
	case "==", "~=":
		want := op == "=="
		if k, ok := c.constant(rhs); ok && !k.IsTable() {
			a := c.expr(lhs)
			return func(f *frame) bool { return value.Equal(a(f), k) == want }
		}
		late := c.late(lhs)
		a, b := c.expr(lhs), c.expr(rhs)
		if late {
			return func(f *frame) bool {
				y := b(f)
				return f.m.equal(line, a(f), y) == want
			}
		}
		return func(f *frame) bool {
			x := a(f)
			y := b(f)
			if value.Same(x, y) {
				return want
			}
			return f.m.equal(line, x, y) == want
		}
	}
	return c.order(op, lhs, rhs, line)
}

func (m *Machine) order(line int, op string, a, b Value) bool {
	switch op {
	case "<":
		return m.less(line, a, b)
	case ">":
		return m.less(line, b, a)
	case "<=":
		return m.lessEqual(line, a, b)
	}
	return m.lessEqual(line, b, a)
}

// equal is a == b with metamethods.
func (m *Machine) equal(line int, a, b Value) bool {
	if a.IsString() && b.IsString() {
		m.text(a, b)
		return value.Equal(a, b)
	}
	if value.Equal(a, b) {
		return true
	}
	if !a.IsTable() || !b.IsTable() {
		return false
	}
	h := m.metamethod(a, value.EventEq)
	if h.IsNil() || !value.Equal(h, m.metamethod(b, value.EventEq)) {
		return false
	}
	m.at(line)
	return m.back1(h, line == 0, a, b).Truthy()
}

// less is a < b with metamethods; line is 0 in library functions.
func (m *Machine) less(line int, a, b Value) bool {
	if a.IsNumber() && b.IsNumber() {
		return a.AsNumber() < b.AsNumber()
	}
	if a.IsString() && b.IsString() {
		m.text(a, b)
		return a.AsString() < b.AsString()
	}
	if h, ok := m.comparer(a, b, value.EventLt); ok {
		m.at(line)
		return m.back1(h, line == 0, a, b).Truthy()
	}
	m.incomparable(line, a, b)
	return false
}

func (m *Machine) lessEqual(line int, a, b Value) bool {
	if a.IsNumber() && b.IsNumber() {
		return a.AsNumber() <= b.AsNumber()
	}
	if a.IsString() && b.IsString() {
		m.text(a, b)
		return a.AsString() <= b.AsString()
	}
	if h, ok := m.comparer(a, b, value.EventLe); ok {
		m.at(line)
		return m.back1(h, line == 0, a, b).Truthy()
	}
	if h, ok := m.comparer(b, a, value.EventLt); ok {
		m.at(line)
		return !m.back1(h, line == 0, b, a).Truthy()
	}
	m.incomparable(line, a, b)
	return false
}

// comparer is the metamethod that both operands of a comparison have.
func (m *Machine) comparer(a, b Value, e value.Event) (Value, bool) {
	if a.Kind() != b.Kind() {
		return value.Nil, false
	}
	h := m.metamethod(a, e)
	return h, !h.IsNil() && value.Equal(h, m.metamethod(b, e))
}

func (m *Machine) incomparable(line int, a, b Value) {
	ta, tb := typeName(a), typeName(b)
	if ta == tb {
		m.failText(line, "attempt to compare two "+ta+" values")
	}
	m.failText(line, "attempt to compare "+ta+" with "+tb)
}

// concat compiles a chain a..b..c, which the grammar nests to the right.
func (c *compiler) concat(x *ast.StringConcatOpExpr) expr {
	line := x.Line()
	var names []operand
	var parts []expr
	var e ast.Expr = x
	for {
		cat, ok := e.(*ast.StringConcatOpExpr)
		if ok {
			e = cat.Lhs
		}
		names = append(names, c.operand(e))
		parts = append(parts, c.expr(e))
		if !ok {
			break
		}
		e = cat.Rhs
	}
	return func(f *frame) Value {
		m := f.m
		base := len(m.stack)
		for _, p := range parts {
			v := p(f)
			m.stack = append(m.stack, v)
		}
		v := m.join(line, names, m.stack[base:])
		m.stack = m.stack[:base]
		return v
	}
}

// join concatenates values.
func (m *Machine) join(line int, names []operand, values []Value) Value {
	total := 0
	for _, v := range values {
		switch v.Kind() {
		case value.KindString:
			total += len(v.AsString())
		case value.KindNumber:
			total += numeral.MaxText
		default:
			return m.joinSlow(line, names, values)
		}
	}
	if m.Left--; m.Left <= 0 {
		m.look()
	}
	m.alloc(total)
	b := make([]byte, 0, total)
	for _, v := range values {
		if v.IsString() {
			b = append(b, v.AsString()...)
		} else {
			b = numeral.Append(b, v.AsNumber())
		}
	}
	return value.Bytes(b)
}

// joinSlow concatenates from the right, two at a time, with metamethods.
func (m *Machine) joinSlow(line int, names []operand, values []Value) Value {
	values = append([]Value(nil), values...) // metamethods use the stack
	last := len(values) - 1
	acc, accName := values[last], names[last]
	for i := last - 1; i >= 0; i-- {
		left := values[i]
		ls, lok := textOf(left)
		rs, rok := textOf(acc)
		if lok && rok {
			m.alloc(len(ls) + len(rs))
			acc = value.String(ls + rs)
		} else if h := m.handler(left, acc, value.EventConcat); !h.IsNil() {
			m.at(line)
			acc = m.back1(h, false, left, acc)
		} else if lok {
			m.typeError(line, "concatenate", accName, acc)
		} else {
			m.typeError(line, "concatenate", names[i], left)
		}
		accName = operand{}
	}
	return acc
}
