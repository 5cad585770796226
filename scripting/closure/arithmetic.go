package closure

import (
	"github.com/yuin/gopher-lua/ast"

	"github.com/latchkey-proxy/latchkey/scripting/arith"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// Arithmetic is written out for each operator and for what its operands are, so
// that a variable or a literal costs no call. All of it is what compute says, and
// operands are compiled as any expression is, but for the steps of loops: what a
// script pays does not depend on which closure it gets.

// operands are the two sides of an operator once they are compiled.
type operands struct {
	a, b expr
	// i and j are the slots of sides that are variables in one, otherwise negative.
	i, j int
	// n is the right side, if constant.
	n        float64
	constant bool
}

func (c *compiler) operands(lhs, rhs ast.Expr) operands {
	o := operands{a: c.expr(lhs), b: c.expr(rhs), i: -1, j: -1}
	if i, ok := c.local(lhs); ok {
		o.i = i
	}
	if j, ok := c.local(rhs); ok {
		o.j = j
	}
	if n, ok := c.number(rhs); ok {
		o.n, o.constant = c.literal(value.Number(n)).AsNumber(), true
	}
	return o
}

func (c *compiler) arithmetic(x *ast.ArithmeticOpExpr) expr {
	s := &opSite{x.Line(), arithmetics[x.Operator], c.operand(x.Lhs), c.operand(x.Rhs)}
	if i, ok := c.local(x.Lhs); ok && s.event <= value.EventSub {
		// These are the steps of loops: their operands are not paid for.
		if n, ok := c.number(x.Rhs); ok {
			return s.slotConstant(i, n)
		}
		if j, ok := c.local(x.Rhs); ok && s.event == value.EventAdd {
			return s.slots(i, j)
		}
	}
	late := c.late(x.Lhs)
	o := c.operands(x.Lhs, x.Rhs)
	a, b := o.a, o.b
	switch {
	case late:
		return func(f *frame) Value {
			y := b(f)
			return f.m.arith(s, a(f), y)
		}
	case s.event == value.EventPow:
		return func(f *frame) Value {
			x := a(f)
			return f.m.arith(s, x, b(f))
		}
	case o.constant && o.i >= 0:
		return s.slotConstant(o.i, o.n)
	case o.constant:
		return s.constant(a, o.n)
	case o.i >= 0 && o.j >= 0:
		return s.slots(o.i, o.j)
	case o.i >= 0:
		return s.slot(o.i, b)
	}
	return s.any(a, b)
}

// slotConstant is a variable and a number.
func (s *opSite) slotConstant(i int, n float64) expr {
	switch s.event {
	case value.EventAdd:
		return func(f *frame) Value {
			x := f.slots[i]
			if x.IsNumber() {
				return value.Number(x.AsNumber() + n)
			}
			return f.m.arith(s, x, value.Number(n))
		}
	case value.EventSub:
		return func(f *frame) Value {
			x := f.slots[i]
			if x.IsNumber() {
				return value.Number(x.AsNumber() - n)
			}
			return f.m.arith(s, x, value.Number(n))
		}
	case value.EventMul:
		return func(f *frame) Value {
			x := f.slots[i]
			if x.IsNumber() {
				return value.Number(x.AsNumber() * n)
			}
			return f.m.arith(s, x, value.Number(n))
		}
	case value.EventDiv:
		return func(f *frame) Value {
			x := f.slots[i]
			if x.IsNumber() {
				return value.Number(x.AsNumber() / n)
			}
			return f.m.arith(s, x, value.Number(n))
		}
	default:
		return func(f *frame) Value {
			x := f.slots[i]
			if x.IsNumber() {
				return value.Number(arith.Modulo(x.AsNumber(), n))
			}
			return f.m.arith(s, x, value.Number(n))
		}
	}
}

// constant is anything and a number.
func (s *opSite) constant(a expr, n float64) expr {
	switch s.event {
	case value.EventAdd:
		return func(f *frame) Value {
			x := a(f)
			if x.IsNumber() {
				return value.Number(x.AsNumber() + n)
			}
			return f.m.arith(s, x, value.Number(n))
		}
	case value.EventSub:
		return func(f *frame) Value {
			x := a(f)
			if x.IsNumber() {
				return value.Number(x.AsNumber() - n)
			}
			return f.m.arith(s, x, value.Number(n))
		}
	case value.EventMul:
		return func(f *frame) Value {
			x := a(f)
			if x.IsNumber() {
				return value.Number(x.AsNumber() * n)
			}
			return f.m.arith(s, x, value.Number(n))
		}
	case value.EventDiv:
		return func(f *frame) Value {
			x := a(f)
			if x.IsNumber() {
				return value.Number(x.AsNumber() / n)
			}
			return f.m.arith(s, x, value.Number(n))
		}
	default:
		return func(f *frame) Value {
			x := a(f)
			if x.IsNumber() {
				return value.Number(arith.Modulo(x.AsNumber(), n))
			}
			return f.m.arith(s, x, value.Number(n))
		}
	}
}

// slots is two variables.
func (s *opSite) slots(i, j int) expr {
	switch s.event {
	case value.EventAdd:
		return func(f *frame) Value {
			x, y := f.slots[i], f.slots[j]
			if x.IsNumber() && y.IsNumber() {
				return value.Number(x.AsNumber() + y.AsNumber())
			}
			return f.m.arith(s, x, y)
		}
	case value.EventSub:
		return func(f *frame) Value {
			x, y := f.slots[i], f.slots[j]
			if x.IsNumber() && y.IsNumber() {
				return value.Number(x.AsNumber() - y.AsNumber())
			}
			return f.m.arith(s, x, y)
		}
	case value.EventMul:
		return func(f *frame) Value {
			x, y := f.slots[i], f.slots[j]
			if x.IsNumber() && y.IsNumber() {
				return value.Number(x.AsNumber() * y.AsNumber())
			}
			return f.m.arith(s, x, y)
		}
	case value.EventDiv:
		return func(f *frame) Value {
			x, y := f.slots[i], f.slots[j]
			if x.IsNumber() && y.IsNumber() {
				return value.Number(x.AsNumber() / y.AsNumber())
			}
			return f.m.arith(s, x, y)
		}
	default:
		return func(f *frame) Value {
			x, y := f.slots[i], f.slots[j]
			if x.IsNumber() && y.IsNumber() {
				return value.Number(arith.Modulo(x.AsNumber(), y.AsNumber()))
			}
			return f.m.arith(s, x, y)
		}
	}
}

// slot is a variable, which nothing to its right can change, and anything.
func (s *opSite) slot(i int, b expr) expr {
	switch s.event {
	case value.EventAdd:
		return func(f *frame) Value {
			y := b(f)
			x := f.slots[i]
			if x.IsNumber() && y.IsNumber() {
				return value.Number(x.AsNumber() + y.AsNumber())
			}
			return f.m.arith(s, x, y)
		}
	case value.EventSub:
		return func(f *frame) Value {
			y := b(f)
			x := f.slots[i]
			if x.IsNumber() && y.IsNumber() {
				return value.Number(x.AsNumber() - y.AsNumber())
			}
			return f.m.arith(s, x, y)
		}
	case value.EventMul:
		return func(f *frame) Value {
			y := b(f)
			x := f.slots[i]
			if x.IsNumber() && y.IsNumber() {
				return value.Number(x.AsNumber() * y.AsNumber())
			}
			return f.m.arith(s, x, y)
		}
	case value.EventDiv:
		return func(f *frame) Value {
			y := b(f)
			x := f.slots[i]
			if x.IsNumber() && y.IsNumber() {
				return value.Number(x.AsNumber() / y.AsNumber())
			}
			return f.m.arith(s, x, y)
		}
	default:
		return func(f *frame) Value {
			y := b(f)
			x := f.slots[i]
			if x.IsNumber() && y.IsNumber() {
				return value.Number(arith.Modulo(x.AsNumber(), y.AsNumber()))
			}
			return f.m.arith(s, x, y)
		}
	}
}

// any is two expressions.
func (s *opSite) any(a, b expr) expr {
	switch s.event {
	case value.EventAdd:
		return func(f *frame) Value {
			x := a(f)
			y := b(f)
			if x.IsNumber() && y.IsNumber() {
				return value.Number(x.AsNumber() + y.AsNumber())
			}
			return f.m.arith(s, x, y)
		}
	case value.EventSub:
		return func(f *frame) Value {
			x := a(f)
			y := b(f)
			if x.IsNumber() && y.IsNumber() {
				return value.Number(x.AsNumber() - y.AsNumber())
			}
			return f.m.arith(s, x, y)
		}
	case value.EventMul:
		return func(f *frame) Value {
			x := a(f)
			y := b(f)
			if x.IsNumber() && y.IsNumber() {
				return value.Number(x.AsNumber() * y.AsNumber())
			}
			return f.m.arith(s, x, y)
		}
	case value.EventDiv:
		return func(f *frame) Value {
			x := a(f)
			y := b(f)
			if x.IsNumber() && y.IsNumber() {
				return value.Number(x.AsNumber() / y.AsNumber())
			}
			return f.m.arith(s, x, y)
		}
	default:
		return func(f *frame) Value {
			x := a(f)
			y := b(f)
			if x.IsNumber() && y.IsNumber() {
				return value.Number(arith.Modulo(x.AsNumber(), y.AsNumber()))
			}
			return f.m.arith(s, x, y)
		}
	}
}
