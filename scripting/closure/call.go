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
	if e := c.direct(x); e != nil {
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
	if !onStack && len(list) > 1 && list[0].from == wordLiteral && list[1].from == wordKey {
		key := list[1].at
		return func(f *frame) Value {
			f.site = s
			m := f.m
			if !m.gatherKey(f, list, key) {
				return m.refuse(raises, wrongArguments)
			}
			return m.command(raises, at)
		}
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

// maxDirect is how many arguments go to a function without a way through the stack.
const maxDirect = 3

// direct compiles a call for one value of what is not known to be a library
// function, with a few arguments of one value each; nil for other calls. A plain
// function gets them where it expects them.
func (c *compiler) direct(x *ast.FuncCallExpr) expr {
	n := len(x.Args)
	if x.Receiver != nil || n > maxDirect || n > 0 && several(x.Args[n-1]) || c.native(x.Func) != nil {
		return nil
	}
	c.cost += 2
	s := &site{x.Line(), c.operand(x.Func)}
	args := c.exprs(x.Args)
	callee := c.expr(x.Func)
	switch n {
	case 0:
		return func(f *frame) Value {
			fv := callee(f)
			f.site = s
			if fn := plainFunction(fv); fn != nil {
				g := f.m.open(fn)
				clear(g.slots[:fn.proto.params])
				return f.m.run(g)
			}
			return f.m.indirect(s, fv)
		}
	case 1:
		a := args[0]
		return func(f *frame) Value {
			fv := callee(f)
			av := a(f)
			f.site = s
			if fn := plainFunction(fv); fn != nil {
				g := f.m.open(fn)
				switch p := fn.proto; {
				case p.params == 1:
					g.slots[0] = av
				default:
					g.spread(p, av, value.Nil, value.Nil)
				}
				return f.m.run(g)
			}
			return f.m.indirect(s, fv, av)
		}
	case 2:
		a, b := args[0], args[1]
		return func(f *frame) Value {
			fv := callee(f)
			av := a(f)
			bv := b(f)
			f.site = s
			if fn := plainFunction(fv); fn != nil {
				g := f.m.open(fn)
				g.spread(fn.proto, av, bv, value.Nil)
				return f.m.run(g)
			}
			return f.m.indirect(s, fv, av, bv)
		}
	}
	a, b, d := args[0], args[1], args[2]
	return func(f *frame) Value {
		fv := callee(f)
		av := a(f)
		bv := b(f)
		dv := d(f)
		f.site = s
		if fn := plainFunction(fv); fn != nil {
			g := f.m.open(fn)
			g.spread(fn.proto, av, bv, dv)
			return f.m.run(g)
		}
		return f.m.indirect(s, fv, av, bv, dv)
	}
}

// plainFunction is the plain function that v is, or nil.
func plainFunction(v Value) *Function {
	if !v.IsFunction() {
		return nil
	}
	fn := functionOf(v)
	if fn.proto == nil || !fn.proto.plain {
		return nil
	}
	return fn
}

// spread gives a plain function up to three arguments, those that are not there being nil.
func (f *frame) spread(p *proto, a, b, d Value) {
	s := f.slots
	switch p.params {
	case 0:
	case 1:
		s[0] = a
	case 2:
		s[0], s[1] = a, b
	default:
		s[0], s[1], s[2] = a, b, d
		clear(s[3:p.params])
	}
}

// indirect calls anything for one value.
func (m *Machine) indirect(s *site, fv Value, args ...Value) Value {
	base := len(m.stack)
	m.stack = append(m.stack, args...)
	if !fv.IsFunction() {
		fv = m.callable(s, fv, base)
	}
	v := first(m.call(functionOf(fv), m.stack[base:]))
	m.stack = m.stack[:base]
	return v
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
