package closure

import (
	"github.com/yuin/gopher-lua/ast"

	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// first is the first value of a list.
func first(res []Value) Value {
	if len(res) > 0 {
		return res[0]
	}
	return value.Nil
}

// call compiles a call for one value.
func (c *compiler) call(x *ast.FuncCallExpr) expr {
	if e := c.command(x); e != nil {
		return e
	}
	calls := c.calls(x)
	return func(f *frame) Value {
		if res := calls(f); len(res) > 0 {
			return res[0]
		}
		return value.Nil
	}
}

// command compiles redis.call and redis.pcall, which need no way through the
// stack; nil for other calls.
func (c *compiler) command(x *ast.FuncCallExpr) expr {
	if x.Receiver != nil || len(x.Args) == 0 || several(x.Args[len(x.Args)-1]) {
		return nil
	}
	fn, ok := c.constant(x.Func)
	if !ok || !fn.IsFunction() {
		return nil
	}
	raises := value.Equal(fn, c.world.call)
	if !raises && !value.Equal(fn, c.world.pcall) {
		return nil
	}
	list, onStack := c.words(x.Args)
	s := &site{x.Line(), c.operand(x.Func)}
	var at *Place
	if list[0].from == wordLiteral {
		at = new(Place)
	}
	if !onStack {
		return func(f *frame) Value {
			f.site = s
			m := f.m
			if !m.gather(f, list, 0) {
				return m.refuse(raises, wrongArguments)
			}
			return m.command(raises, at)
		}
	}
	return func(f *frame) Value {
		m := f.m
		base := len(m.stack)
		for i := range list {
			if e := list[i].e; e != nil {
				v := e(f)
				m.stack = append(m.stack, v)
			}
		}
		f.site = s
		ok := m.gather(f, list, base)
		m.stack = m.stack[:base]
		if !ok {
			return m.refuse(raises, wrongArguments)
		}
		return m.command(raises, at)
	}
}

// calls compiles a call for all its values.
func (c *compiler) calls(x *ast.FuncCallExpr) list {
	c.cost += 2
	if x.Receiver != nil {
		return c.method(x)
	}
	s := &site{x.Line(), c.operand(x.Func)}
	push := c.push(x.Args)
	if native := c.native(x.Func); native != nil {
		return func(f *frame) []Value {
			m := f.m
			base := len(m.stack)
			push(f)
			f.site = s
			if m.Left--; m.Left <= 0 {
				m.look()
			}
			res := native(m, m.stack[base:])
			m.stack = m.stack[:base]
			return res
		}
	}
	callee := c.expr(x.Func)
	return func(f *frame) []Value {
		m := f.m
		fv := callee(f)
		base := len(m.stack)
		push(f)
		f.site = s
		if !fv.IsFunction() {
			fv = m.callable(s, fv, base)
		}
		res := m.call(functionOf(fv), m.stack[base:])
		m.stack = m.stack[:base]
		return res
	}
}

// callable is what is called in the place of a value that is no function: its
// __call, with the value as the first argument.
func (m *Machine) callable(s *site, fv Value, base int) Value {
	h := m.metamethod(fv, value.EventCall)
	if !h.IsFunction() {
		m.typeError(s.line, "call", s.name, fv)
	}
	m.stack = append(m.stack, value.Nil)
	copy(m.stack[base+1:], m.stack[base:])
	m.stack[base] = fv
	return h
}

// method compiles o:name(...).
func (c *compiler) method(x *ast.FuncCallExpr) list {
	line := x.Line()
	name := c.operand(x.Receiver)
	s := &site{line, operand{"method", x.Method}}
	k := value.String(x.Method)
	hash := value.HashString(x.Method)
	onString := c.world.stringTable.AsTable().GetStr(x.Method)
	o, push := c.expr(x.Receiver), c.push(x.Args)
	return func(f *frame) []Value {
		m := f.m
		ov := o(f)
		var fv Value
		switch {
		case ov.IsString():
			fv = onString
		case ov.IsTable():
			t := ov.AsTable()
			if fv = t.GetHashed(x.Method, hash); fv.IsNil() && t.Meta != nil {
				fv = m.index(line, name, ov, k)
			}
		default:
			fv = m.index(line, name, ov, k)
		}
		base := len(m.stack)
		m.stack = append(m.stack, ov)
		push(f)
		f.site = s
		if !fv.IsFunction() {
			fv = m.callable(s, fv, base)
		}
		res := m.call(functionOf(fv), m.stack[base:])
		m.stack = m.stack[:base]
		return res
	}
}

// tailCall compiles return f(...): the function that returns makes room for the
// one it calls.
func (c *compiler) tailCall(x *ast.FuncCallExpr) stmt {
	if x.Receiver != nil {
		calls := c.tailMethod(x)
		return calls
	}
	s := &site{x.Line(), c.operand(x.Func)}
	callee, push := c.expr(x.Func), c.push(x.Args)
	return func(f *frame) signal {
		m := f.m
		fv := callee(f)
		base := len(m.stack)
		push(f)
		f.site = s
		if !fv.IsFunction() {
			fv = m.callable(s, fv, base)
		}
		m.tail, m.tailBase = fv, base
		return sigTail
	}
}

func (c *compiler) tailMethod(x *ast.FuncCallExpr) stmt {
	line := x.Line()
	name := c.operand(x.Receiver)
	s := &site{line, operand{"method", x.Method}}
	k := value.String(x.Method)
	o, push := c.expr(x.Receiver), c.push(x.Args)
	return func(f *frame) signal {
		m := f.m
		ov := o(f)
		fv := m.index(line, name, ov, k)
		base := len(m.stack)
		m.stack = append(m.stack, ov)
		push(f)
		f.site = s
		if !fv.IsFunction() {
			fv = m.callable(s, fv, base)
		}
		m.tail, m.tailBase = fv, base
		return sigTail
	}
}
