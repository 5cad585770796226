package closure

import (
	"github.com/yuin/gopher-lua/ast"

	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// expr compiles an expression of one value.
func (c *compiler) expr(e ast.Expr) expr {
	c.open()
	defer c.close()
	if v, ok := c.constant(e); ok {
		v = c.literal(v)
		return func(*frame) Value { return v }
	}
	switch x := e.(type) {
	case *ast.IdentExpr:
		return c.name(x)
	case *ast.AttrGetExpr:
		return c.index(x)
	case *ast.TableExpr:
		return c.table(x)
	case *ast.FuncCallExpr:
		return c.call(x)
	case *ast.Comma3Expr:
		return func(f *frame) Value {
			if len(f.varargs) > 0 {
				return f.varargs[0]
			}
			return value.Nil
		}
	case *ast.LogicalOpExpr:
		return c.logical(x)
	case *ast.RelationalOpExpr:
		t := c.relational(x)
		return func(f *frame) Value { return value.Bool(t(f)) }
	case *ast.ArithmeticOpExpr:
		return c.arithmetic(x)
	case *ast.StringConcatOpExpr:
		return c.concat(x)
	case *ast.UnaryMinusOpExpr:
		return c.minus(x)
	case *ast.UnaryNotOpExpr:
		t := c.test(x.Expr)
		return func(f *frame) Value { return value.Bool(!t(f)) }
	case *ast.UnaryLenOpExpr:
		return c.length(x)
	case *ast.FunctionExpr:
		return c.function(x, -1)
	}
	panic("closure: an expression that the resolver let through")
}

// list compiles an expression of any number of values.
func (c *compiler) list(e ast.Expr) list {
	c.open()
	defer c.close()
	switch x := e.(type) {
	case *ast.FuncCallExpr:
		return c.calls(x)
	case *ast.Comma3Expr:
		return func(f *frame) []Value { return f.varargs }
	}
	panic("closure: a list of values that is none")
}

// test compiles a condition.
func (c *compiler) test(e ast.Expr) test {
	switch x := e.(type) {
	case *ast.RelationalOpExpr:
		c.open()
		defer c.close()
		return c.relational(x)
	case *ast.UnaryNotOpExpr:
		c.open()
		defer c.close()
		t := c.test(x.Expr)
		return func(f *frame) bool { return !t(f) }
	case *ast.LogicalOpExpr:
		c.open()
		defer c.close()
		a, b := c.test(x.Lhs), c.test(x.Rhs)
		if x.Operator == "and" {
			return func(f *frame) bool { return a(f) && b(f) }
		}
		return func(f *frame) bool { return a(f) || b(f) }
	}
	v := c.expr(e)
	return func(f *frame) bool { return v(f).Truthy() }
}

func (c *compiler) name(x *ast.IdentExpr) expr {
	v := c.names[x]
	switch {
	case v == nil:
		return c.global(x)
	case v.owner == c.fn:
		i := v.slot
		if v.cell() {
			return func(f *frame) Value { return cellOf(f.slots[i]).v }
		}
		return func(f *frame) Value { return f.slots[i] }
	}
	i := c.fn.upvalue(v)
	if v.cell() {
		return func(f *frame) Value { return cellOf(f.fn.ups[i]).v }
	}
	return func(f *frame) Value { return f.fn.ups[i] }
}

func (c *compiler) global(x *ast.IdentExpr) expr {
	switch {
	case !c.world.args:
	case x.Value == "KEYS":
		c.tables = true
		return func(f *frame) Value { return value.FromTable(f.m.keys) }
	case x.Value == "ARGV":
		c.tables = true
		return func(f *frame) Value { return value.FromTable(f.m.argv) }
	}
	line, name := x.Line(), x.Value
	return func(f *frame) Value {
		f.m.throw(line, "Script attempted to access nonexistent global variable '"+name+"'")
		return value.Nil
	}
}

func (c *compiler) logical(x *ast.LogicalOpExpr) expr {
	if x.Operator == "and" {
		a, b := c.expr(x.Lhs), c.expr(x.Rhs)
		return func(f *frame) Value {
			if v := a(f); !v.Truthy() {
				return v
			}
			return b(f)
		}
	}
	a, b := c.expr(x.Lhs), c.expr(x.Rhs)
	return func(f *frame) Value {
		if v := a(f); v.Truthy() {
			return v
		}
		return b(f)
	}
}

// function compiles a function and makes it where it stands. A slot that is not
// negative gets it first: that of a local function, which may capture itself.
func (c *compiler) function(x *ast.FunctionExpr, slot int) expr {
	if c.world.loads {
		return c.loaded(x, slot)
	}
	return c.maker(c.once(x), slot)
}

// maker makes the function of a proto.
func (c *compiler) maker(p *proto, slot int) expr {
	return func(f *frame) Value {
		fn := &Function{proto: p}
		f.m.Mem += functionBytes + int64(16*len(p.captures))
		v := fn.value()
		if slot >= 0 {
			f.slots[slot] = v
		}
		if len(p.captures) > 0 {
			fn.ups = make([]Value, len(p.captures))
			for i, from := range p.captures {
				if from.local {
					fn.ups[i] = f.slots[from.index]
				} else {
					fn.ups[i] = f.fn.ups[from.index]
				}
			}
		}
		return v
	}
}

func (c *compiler) length(x *ast.UnaryLenOpExpr) expr {
	v, line, name := c.expr(x.Expr), x.Line(), c.operand(x.Expr)
	return func(f *frame) Value {
		switch v := v(f); v.Kind() {
		case value.KindTable:
			return value.Int(v.AsTable().Len())
		case value.KindString:
			return value.Int(len(v.AsString()))
		default:
			f.m.typeError(line, "get length of", name, v)
			return v
		}
	}
}

func (c *compiler) index(x *ast.AttrGetExpr) expr {
	line, name := x.Line(), c.operand(x.Object)
	if v, ok := c.constant(x.Key); ok {
		return c.field(x, v, line, name)
	}
	late := c.late(x.Object)
	o, k := c.expr(x.Object), c.expr(x.Key)
	if late {
		return func(f *frame) Value {
			kv := k(f)
			return f.m.index(line, name, o(f), kv)
		}
	}
	return func(f *frame) Value {
		ov := o(f)
		kv := k(f)
		if ov.IsTable() {
			t := ov.AsTable()
			if v := t.Get(kv); !v.IsNil() || t.Meta == nil {
				return v
			}
		}
		return f.m.index(line, name, ov, kv)
	}
}

// field is an index by a constant.
func (c *compiler) field(x *ast.AttrGetExpr, k Value, line int, name operand) expr {
	if keys, i, ok := c.argument(x); ok && i < lazyWords { // the words of a lock script
		if keys {
			return func(f *frame) Value { return f.m.key(i) }
		}
		return func(f *frame) Value { return f.m.arg(i) }
	}
	o := c.expr(x.Object)
	if k.IsString() {
		s := k.AsString()
		hash := value.HashString(s)
		return func(f *frame) Value {
			ov := o(f)
			if ov.IsTable() {
				t := ov.AsTable()
				if v := t.GetHashed(s, hash); !v.IsNil() || t.Meta == nil {
					return v
				}
			}
			return f.m.index(line, name, ov, k)
		}
	}
	return func(f *frame) Value {
		ov := o(f)
		if ov.IsTable() {
			t := ov.AsTable()
			if v := t.Get(k); !v.IsNil() || t.Meta == nil {
				return v
			}
		}
		return f.m.index(line, name, ov, k)
	}
}

func (c *compiler) isGlobal(x *ast.IdentExpr, names ...string) bool {
	if c.names[x] != nil {
		return false
	}
	for _, n := range names {
		if x.Value == n {
			return true
		}
	}
	return false
}

// maxLoop bounds chains of __index and __newindex, as Lua does.
const maxLoop = 100

// index is o[k] with metamethods; line is 0 in library functions.
func (m *Machine) index(line int, name operand, o, k Value) Value {
	for range maxLoop {
		var h Value
		switch {
		case o.IsTable():
			t := o.AsTable()
			if v := t.Get(k); !v.IsNil() {
				return v
			}
			if h = t.Metamethod(value.EventIndex); h.IsNil() {
				return h
			}
		case o.IsString():
			h = m.world.stringTable
		default:
			m.fail(line, name, "index", o)
		}
		if h.IsFunction() {
			m.at(line)
			return m.back1(h, line == 0, o, k)
		}
		o, name = h, operand{}
	}
	m.failText(line, "loop in gettable")
	return value.Nil
}

// setIndex is o[k] = v with metamethods; line is 0 in library functions.
func (m *Machine) setIndex(line int, name operand, o, k, v Value) {
	for range maxLoop {
		var h Value
		if o.IsTable() {
			t := o.AsTable()
			if t.ReadOnly {
				m.failText(line, readOnlyTable)
			}
			if t.Meta == nil {
				m.store(line, t, k, v)
				return
			}
			if h = t.Metamethod(value.EventNewIndex); h.IsNil() || !t.Get(k).IsNil() {
				m.store(line, t, k, v)
				return
			}
			if err := value.KeyError(k); err != nil { // whatever __newindex would say
				m.failText(line, err.Error())
			}
		} else {
			m.fail(line, name, "index", o)
		}
		if h.IsFunction() {
			m.at(line)
			m.back(h, line == 0, o, k, v)
			return
		}
		o, name = h, operand{}
	}
	m.failText(line, "loop in settable")
}

func (m *Machine) store(line int, t *Table, k, v Value) {
	if err := t.Set(k, v); err != nil {
		m.failText(line, err.Error())
	}
}

// at notes the line of the running function, for errors of what it calls without
// a call to be seen: metamethods.
func (m *Machine) at(line int) {
	if line > 0 {
		m.frames[m.depth-1].site = &site{line: line}
	}
}

// fail is typeError in Lua code, and without a position in a library function.
func (m *Machine) fail(line int, name operand, what string, v Value) {
	if line == 0 {
		m.raise(0, "attempt to "+what+" a "+typeName(v)+" value")
	}
	m.typeError(line, what, name, v)
}

func (m *Machine) failText(line int, msg string) {
	if line == 0 {
		m.raise(0, msg)
	}
	m.throw(line, msg)
}

// table compiles a constructor.
func (c *compiler) table(x *ast.TableExpr) expr {
	type item struct {
		key, val expr
		line     int
	}
	const flush = 50 // elements that Lua stores at once
	var items []item
	var last list
	narr, nhash := 0, 0
	for i, f := range x.Fields {
		switch {
		case f.Key != nil:
			nhash++
			items = append(items, item{c.expr(f.Key), c.expr(f.Value), f.Key.LastLine()})
		case i == len(x.Fields)-1 && several(f.Value):
			last = c.list(f.Value)
		default:
			narr++
			items = append(items, item{nil, c.expr(f.Value), 0})
		}
	}
	c.cost += len(items)
	narrHint, nhashHint := floatingByte(narr), floatingByte(nhash)
	if len(items) == 0 && last == nil {
		return func(f *frame) Value { return value.FromTable(value.New(&f.m.Account, 0, 0)) }
	}
	return func(f *frame) Value {
		m := f.m
		t := value.New(&m.Account, narrHint, nhashHint)
		base := len(m.stack)
		stored := 0
		for i := range items {
			it := &items[i]
			if len(m.stack)-base == flush {
				stored = m.flush(t, base, stored)
			}
			if it.key != nil {
				k := it.key(f)
				m.store(it.line, t, k, it.val(f))
				continue
			}
			v := it.val(f)
			m.stack = append(m.stack, v)
		}
		if last != nil {
			m.extend(last(f))
		}
		m.flush(t, base, stored)
		return value.FromTable(t)
	}
}

// flush stores the elements on the stack above base.
func (m *Machine) flush(t *Table, base, stored int) int {
	values := m.stack[base:]
	end := stored + len(values)
	t.Resize(end) // they all go to the array, so their order is nobody's concern
	for i, v := range values {
		t.SetInt(stored+i+1, v)
	}
	m.stack = m.stack[:base]
	return end
}

// floatingByte rounds a size up as Lua's instructions hold it.
func floatingByte(n int) int {
	e := 0
	for n >= 16 {
		n = (n + 1) >> 1
		e++
	}
	return n << e
}
