package closure

import (
	"github.com/yuin/gopher-lua/ast"

	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// order compiles <, <=, > and >=, written out for what the operands are as
// arithmetic is.
func (c *compiler) order(op string, lhs, rhs ast.Expr, line int) test {
	late := c.late(lhs)
	o := c.operands(lhs, rhs)
	a, b := o.a, o.b
	s := &orderSite{op, line}
	switch {
	case late:
		return func(f *frame) bool {
			y := b(f)
			return f.m.order(line, op, a(f), y)
		}
	case o.constant && o.i >= 0:
		return s.slotConstant(o.i, o.n)
	case o.constant:
		return s.constant(a, o.n)
	case o.i >= 0 && o.j >= 0:
		return s.slots(o.i, o.j)
	}
	return s.any(a, b)
}

// orderSite is a place with an operator of order.
type orderSite struct {
	op   string
	line int
}

// constant is anything and a number.
func (s *orderSite) constant(a expr, n float64) test {
	op, line := s.op, s.line
	switch op {
	case "<":
		return func(f *frame) bool {
			x := a(f)
			if x.IsNumber() {
				return x.AsNumber() < n
			}
			return f.m.order(line, op, x, value.Number(n))
		}
	case "<=":
		return func(f *frame) bool {
			x := a(f)
			if x.IsNumber() {
				return x.AsNumber() <= n
			}
			return f.m.order(line, op, x, value.Number(n))
		}
	case ">":
		return func(f *frame) bool {
			x := a(f)
			if x.IsNumber() {
				return x.AsNumber() > n
			}
			return f.m.order(line, op, x, value.Number(n))
		}
	default:
		return func(f *frame) bool {
			x := a(f)
			if x.IsNumber() {
				return x.AsNumber() >= n
			}
			return f.m.order(line, op, x, value.Number(n))
		}
	}
}

// slotConstant is a variable and a number.
func (s *orderSite) slotConstant(i int, n float64) test {
	op, line := s.op, s.line
	switch op {
	case "<":
		return func(f *frame) bool {
			x := f.slots[i]
			if x.IsNumber() {
				return x.AsNumber() < n
			}
			return f.m.order(line, op, x, value.Number(n))
		}
	case "<=":
		return func(f *frame) bool {
			x := f.slots[i]
			if x.IsNumber() {
				return x.AsNumber() <= n
			}
			return f.m.order(line, op, x, value.Number(n))
		}
	case ">":
		return func(f *frame) bool {
			x := f.slots[i]
			if x.IsNumber() {
				return x.AsNumber() > n
			}
			return f.m.order(line, op, x, value.Number(n))
		}
	default:
		return func(f *frame) bool {
			x := f.slots[i]
			if x.IsNumber() {
				return x.AsNumber() >= n
			}
			return f.m.order(line, op, x, value.Number(n))
		}
	}
}

// slots is two variables.
func (s *orderSite) slots(i, j int) test {
	op, line := s.op, s.line
	switch op {
	case "<":
		return func(f *frame) bool {
			x, y := f.slots[i], f.slots[j]
			if x.IsNumber() && y.IsNumber() {
				return x.AsNumber() < y.AsNumber()
			}
			return f.m.order(line, op, x, y)
		}
	case "<=":
		return func(f *frame) bool {
			x, y := f.slots[i], f.slots[j]
			if x.IsNumber() && y.IsNumber() {
				return x.AsNumber() <= y.AsNumber()
			}
			return f.m.order(line, op, x, y)
		}
	case ">":
		return func(f *frame) bool {
			x, y := f.slots[i], f.slots[j]
			if x.IsNumber() && y.IsNumber() {
				return x.AsNumber() > y.AsNumber()
			}
			return f.m.order(line, op, x, y)
		}
	default:
		return func(f *frame) bool {
			x, y := f.slots[i], f.slots[j]
			if x.IsNumber() && y.IsNumber() {
				return x.AsNumber() >= y.AsNumber()
			}
			return f.m.order(line, op, x, y)
		}
	}
}

// any is two expressions.
func (s *orderSite) any(a, b expr) test {
	op, line := s.op, s.line
	switch op {
	case "<":
		return func(f *frame) bool {
			x := a(f)
			y := b(f)
			if x.IsNumber() && y.IsNumber() {
				return x.AsNumber() < y.AsNumber()
			}
			return f.m.order(line, op, x, y)
		}
	case "<=":
		return func(f *frame) bool {
			x := a(f)
			y := b(f)
			if x.IsNumber() && y.IsNumber() {
				return x.AsNumber() <= y.AsNumber()
			}
			return f.m.order(line, op, x, y)
		}
	case ">":
		return func(f *frame) bool {
			x := a(f)
			y := b(f)
			if x.IsNumber() && y.IsNumber() {
				return x.AsNumber() > y.AsNumber()
			}
			return f.m.order(line, op, x, y)
		}
	default:
		return func(f *frame) bool {
			x := a(f)
			y := b(f)
			if x.IsNumber() && y.IsNumber() {
				return x.AsNumber() >= y.AsNumber()
			}
			return f.m.order(line, op, x, y)
		}
	}
}
