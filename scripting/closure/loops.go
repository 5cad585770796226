package closure

import (
	"github.com/yuin/gopher-lua/ast"

	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// body compiles a loop's body, and what one round costs.
func (c *compiler) body(stmts []ast.Stmt) (stmt, int) {
	before := c.cost
	b := c.block(stmts)
	cost := min(c.cost-before+1, 256)
	return b, cost
}

func (c *compiler) while(s *ast.WhileStmt) stmt {
	cond := c.test(s.Condition)
	body, cost := c.body(s.Stmts)
	line := s.Line()
	return func(f *frame) signal {
		m := f.m
		for cond(f) {
			if m.Left -= cost; m.Left <= 0 {
				m.lookAt(line)
			}
			switch sig := body(f); sig {
			case sigNext:
			case sigBreak:
				return sigNext
			default:
				return sig
			}
		}
		return sigNext
	}
}

func (c *compiler) repeat(s *ast.RepeatStmt) stmt {
	body, cost := c.body(s.Stmts)
	until := c.test(s.Condition)
	line := s.Line()
	return func(f *frame) signal {
		m := f.m
		for {
			if m.Left -= cost; m.Left <= 0 {
				m.lookAt(line)
			}
			switch sig := body(f); sig {
			case sigNext:
			case sigBreak:
				return sigNext
			default:
				return sig
			}
			if until(f) {
				return sigNext
			}
		}
	}
}

func (c *compiler) numberFor(s *ast.NumberForStmt) stmt {
	init, limit := c.expr(s.Init), c.expr(s.Limit)
	step := func(*frame) Value { return value.Number(1) }
	if s.Step != nil {
		step = c.expr(s.Step)
	}
	v := c.decls[s][0]
	slot, isCell, line := v.slot, v.cell(), s.Line()
	body, cost := c.body(s.Stmts)
	return func(f *frame) signal {
		m := f.m
		from, to, by := init(f), limit(f), step(f)
		i, ok := numberOf(from)
		if !ok {
			m.throw(line, "'for' initial value must be a number")
		}
		end, ok := numberOf(to)
		if !ok {
			m.throw(line, "'for' limit must be a number")
		}
		inc, ok := numberOf(by)
		if !ok {
			m.throw(line, "'for' step must be a number")
		}
		i -= inc
		for {
			i += inc
			if inc > 0 {
				if !(i <= end) {
					return sigNext
				}
			} else if !(end <= i) {
				return sigNext
			}
			if m.Left -= cost; m.Left <= 0 {
				m.lookAt(line)
			}
			if isCell {
				f.slots[slot] = newCell(value.Number(i))
				m.Mem += cellBytes
			} else {
				f.slots[slot].SetNumber(i)
			}
			switch sig := body(f); sig {
			case sigNext:
			case sigBreak:
				return sigNext
			default:
				return sig
			}
		}
	}
}

// genericLoop is one for ... in.
type genericLoop struct {
	vars  int
	init  func(f *frame, values []Value) // stores to the variables
	plain bool                           // there are two, in the slots k and v
	k, v  int
	body  stmt
	cost  int
	at    *site
}

func (c *compiler) genericFor(s *ast.GenericForStmt) stmt {
	explist := c.fixed(s.Exprs, 3)
	vars := c.decls[s]
	n := len(vars)
	l := &genericLoop{
		vars: n, init: c.declare(vars), plain: n == 2 && !vars[0].cell() && !vars[1].cell(),
		k: vars[0].slot, v: vars[n-1].slot, at: &site{s.Line(), operand{"local", "(for generator)"}},
	}
	l.body, l.cost = c.body(s.Stmts)
	next, pairs, ipairs := c.world.next, c.world.pairsStep, c.world.ipairsStep
	return func(f *frame) signal {
		m := f.m
		base := len(m.stack)
		explist(f)
		fn, state, control := m.stack[base], m.stack[base+1], m.stack[base+2]
		m.stack = m.stack[:base]
		if state.IsTable() {
			switch t := state.AsTable(); {
			case value.Equal(fn, ipairs) && control.IsNumber() && control.AsNumber() == 0:
				return l.list(f, t)
			case value.Equal(fn, pairs) || value.Equal(fn, next):
				return l.pairs(f, t, control)
			}
		}
		return l.calls(f, fn, state, control)
	}
}

// list is a loop of ipairs.
func (l *genericLoop) list(f *frame, t *Table) signal {
	m := f.m
	for i := 1; ; i++ {
		if m.Left -= l.cost; m.Left <= 0 {
			m.lookAt(l.at.line)
		}
		v := t.GetInt(i)
		if v.IsNil() {
			return sigNext
		}
		if l.plain {
			f.slots[l.k].SetNumber(float64(i))
			f.slots[l.v] = v
		} else {
			l.store(f, value.Int(i), v)
		}
		switch sig := l.body(f); sig {
		case sigNext:
		case sigBreak:
			return sigNext
		default:
			return sig
		}
	}
}

// pairs is a loop of pairs or next.
func (l *genericLoop) pairs(f *frame, t *Table, control Value) signal {
	m := f.m
	for place := 0; ; {
		if m.Left -= l.cost; m.Left <= 0 {
			m.lookAt(l.at.line)
		}
		var v Value
		var err error
		if place, control, v, err = t.After(place, control); err != nil {
			f.site = l.at
			m.raise(0, err.Error())
		}
		if control.IsNil() {
			return sigNext
		}
		if l.plain {
			f.slots[l.k], f.slots[l.v] = control, v
		} else {
			l.store(f, control, v)
		}
		switch sig := l.body(f); sig {
		case sigNext:
		case sigBreak:
			return sigNext
		default:
			return sig
		}
	}
}

// calls is a loop of any other function.
func (l *genericLoop) calls(f *frame, fn, state, control Value) signal {
	m := f.m
	base := len(m.stack)
	for {
		f.site = l.at
		if m.Left -= l.cost; m.Left <= 0 {
			m.look()
		}
		m.stack = append(m.stack, state, control)
		callee := fn
		if !callee.IsFunction() {
			callee = m.callable(&site{l.at.line, operand{}}, callee, base)
		}
		res := m.call(functionOf(callee), m.stack[base:])
		m.stack = m.stack[:base]
		if len(res) == 0 || res[0].IsNil() {
			return sigNext
		}
		control = res[0]
		l.store(f, res...)
		switch sig := l.body(f); sig {
		case sigNext:
		case sigBreak:
			return sigNext
		default:
			return sig
		}
	}
}

// store gives the variables their values, and nil to those that have none.
func (l *genericLoop) store(f *frame, values ...Value) {
	if l.plain && len(values) == 2 {
		f.slots[l.k], f.slots[l.v] = values[0], values[1]
		return
	}
	m := f.m
	base := len(m.stack)
	m.stack = append(m.stack, values[:min(l.vars, len(values))]...)
	for len(m.stack) < base+l.vars {
		m.stack = append(m.stack, value.Nil)
	}
	l.init(f, m.stack[base:])
	m.stack = m.stack[:base]
}
