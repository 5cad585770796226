package closure

import (
	"math"
	"strconv"

	"github.com/yuin/gopher-lua/ast"

	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// Program is a compiled script. It never changes; any number of machines share it.
type Program struct {
	main Function
	// argsEscape: the script may keep or change KEYS and ARGV. tables: it uses them
	// as tables, not only their first elements.
	argsEscape, tables bool
}

// expr is a compiled expression of one value.
type expr func(f *frame) Value

// list is a compiled expression of any number of values; they are valid until
// the machine runs anything else.
type list func(f *frame) []Value

// test is a compiled condition.
type test func(f *frame) bool

// stmt is a compiled statement.
type stmt func(f *frame) signal

// signal says where control goes after a statement.
type signal int

const (
	sigNext signal = iota
	sigBreak
	sigReturn // with the values in rets
	sigValue  // returns the value in one
	sigTail   // into the call that tail describes
)

// Compile makes a program of a main chunk's tree, which it does not change and
// does not keep. A reason is why it is not covered; then there is no program.
func (w *World) Compile(stmts []ast.Stmt) (p *Program, reason string) {
	c, reason := w.resolve(stmts)
	if c == nil {
		return nil, reason
	}
	pr := c.proto(c.fn, stmts) // which sees whether tables are needed
	return &Program{main: Function{proto: pr}, argsEscape: c.argsEscape, tables: c.tables}, ""
}

// resolve makes a compiler for a main chunk.
func (w *World) resolve(stmts []ast.Stmt) (c *compiler, reason string) {
	r := &resolver{
		names: map[*ast.IdentExpr]*variable{}, decls: map[any][]*variable{},
		funcs: map[*ast.FunctionExpr]*function{}, world: w,
	}
	main := &function{vararg: true}
	r.fn = main
	r.stmts(stmts)
	if r.reason != "" {
		return nil, r.reason
	}
	return &compiler{resolver: r, fn: main, folded: map[*ast.ArithmeticOpExpr]foldedNumber{}}, ""
}

// compiler makes closures of a resolved tree.
type compiler struct {
	*resolver
	fn     *function
	folded map[*ast.ArithmeticOpExpr]foldedNumber
	tables bool // as Program has it
	cost   int  // of what was compiled so far, in about the instructions of a machine
	// called has the functions of a library as its calls run them; nil for scripts.
	called map[*ast.FunctionExpr]*proto
}

func (c *compiler) open() {
	c.fn.nest++
	c.fn.deep = max(c.fn.deep, c.fn.nest)
	c.cost++
}

func (c *compiler) close() { c.fn.nest-- }

// proto compiles a function's body.
func (c *compiler) proto(fn *function, body []ast.Stmt) *proto {
	outer, cost := c.fn, c.cost
	c.fn, c.cost = fn, 0
	p := &proto{slots: fn.slots, vararg: fn.vararg}
	if fn.expr != nil {
		p.line = fn.expr.Line()
		p.params = len(fn.expr.ParList.Names)
		p.needsArg = fn.vararg && !fn.dots
		for _, v := range c.decls[fn.expr] {
			if v.cell() {
				p.cells = append(p.cells, v.slot)
			}
		}
	}
	if len(body) <= maxValued && valued(body) {
		p.value = c.value(body)
		p.body = returnsValue(p.value)
	} else {
		p.body = c.block(body)
	}
	p.plain = !p.vararg && len(p.cells) == 0
	p.cost = min(c.cost, 64)
	p.weight = fn.deep + 4
	for _, v := range fn.ups {
		if v.owner == fn.parent {
			p.captures = append(p.captures, capture{true, v.slot})
		} else {
			p.captures = append(p.captures, capture{false, fn.parent.upAt[v]})
		}
	}
	c.fn, c.cost = outer, cost
	return p
}

// operand says what messages call an expression, as Lua finds it in its code.
func (c *compiler) operand(e ast.Expr) operand {
	switch x := e.(type) {
	case *ast.IdentExpr:
		switch v := c.names[x]; {
		case v == nil:
			return operand{"global", x.Value}
		case v.owner == c.fn:
			return operand{"local", x.Value}
		}
		return operand{"upvalue", x.Value}
	case *ast.AttrGetExpr:
		if k, ok := x.Key.(*ast.StringExpr); ok {
			return operand{"field", k.Value}
		}
		return operand{"field", "?"}
	case *ast.LogicalOpExpr:
		o, _ := c.path(x, asValue)
		return o
	}
	return operand{}
}

// constant is the value of an expression that has one: a literal, or a name in
// the libraries, which nobody can change.
func (c *compiler) constant(e ast.Expr) (Value, bool) {
	switch x := e.(type) {
	case *ast.NilExpr:
		return value.Nil, true
	case *ast.TrueExpr:
		return value.True, true
	case *ast.FalseExpr:
		return value.False, true
	case *ast.StringExpr:
		return value.String(x.Value), true
	case *ast.NumberExpr, *ast.UnaryMinusOpExpr, *ast.ArithmeticOpExpr:
		f, ok := c.fold(e)
		return value.Number(f), ok
	case *ast.IdentExpr:
		if c.names[x] == nil {
			v, ok := c.world.globals[x.Value]
			return v, ok
		}
	case *ast.AttrGetExpr:
		lib, ok := x.Object.(*ast.IdentExpr) // libraries are flat
		if !ok {
			break
		}
		if k, ok := x.Key.(*ast.StringExpr); ok {
			if o, ok := c.constant(lib); ok && o.IsTable() && o.AsTable().ReadOnly && o.AsTable().Meta == nil {
				return o.AsTable().GetStr(k.Value), true
			}
		}
	}
	return value.Nil, false
}

// fold computes what is made of literals, as Lua's compiler does, when the result
// is a number that a literal could be.
func (c *compiler) fold(e ast.Expr) (f float64, ok bool) {
	switch x := e.(type) {
	case *ast.NumberExpr:
		f, _ := strconv.ParseFloat(x.Value, 64)
		return f, true
	case *ast.UnaryMinusOpExpr:
		f, ok := c.fold(x.Expr)
		return -f, ok
	case *ast.ArithmeticOpExpr:
		if known, seen := c.folded[x]; seen {
			return known.f, known.ok
		}
		b, ok := c.fold(x.Rhs)
		if ok {
			var a float64
			if a, ok = c.fold(x.Lhs); ok {
				f = compute(arithmetics[x.Operator], a, b)
				ok = !math.IsNaN(f) && (b != 0 || x.Operator != "/" && x.Operator != "%")
			}
		}
		c.folded[x] = foldedNumber{f, ok}
		return f, ok
	}
	return 0, false
}

// foldedNumber is a result of fold, kept because it is asked for at every level of a chain.
type foldedNumber struct {
	f  float64
	ok bool
}

// literal is a number as the function's list of constants has it, in which 0 and
// -0 are one: the first of them.
func (c *compiler) literal(v Value) Value {
	if !v.IsNumber() || v.AsNumber() != 0 {
		return v
	}
	if c.fn.zero.IsNil() {
		c.fn.zero = v
	}
	return c.fn.zero
}

// native is the library function that a callee certainly is.
func (c *compiler) native(e ast.Expr) Native {
	if v, ok := c.constant(e); ok && v.IsFunction() {
		return functionOf(v).native
	}
	return nil
}

// late says that an expression is read only when its register is, after what
// stands to its right was evaluated: a variable that a call there may change.
func (c *compiler) late(e ast.Expr) bool {
	x, ok := e.(*ast.IdentExpr)
	if !ok {
		return false
	}
	v := c.names[x]
	return v != nil && v.owner == c.fn && v.cell()
}

// local is the slot of an expression that is a variable in one.
func (c *compiler) local(e ast.Expr) (int, bool) {
	if x, ok := e.(*ast.IdentExpr); ok {
		if v := c.names[x]; v != nil && v.owner == c.fn && !v.cell() {
			return v.slot, true
		}
	}
	return 0, false
}

// number is a constant that is a number.
func (c *compiler) number(e ast.Expr) (float64, bool) {
	v, ok := c.constant(e)
	return v.AsNumber(), ok && v.IsNumber()
}

// several says that an expression may have more or fewer values than one.
func several(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.FuncCallExpr:
		return !x.AdjustRet
	case *ast.Comma3Expr:
		return !x.AdjustRet
	}
	return false
}

func (c *compiler) exprs(list []ast.Expr) []expr {
	out := make([]expr, len(list))
	for i, e := range list {
		out[i] = c.expr(e)
	}
	return out
}

// push compiles a list of expressions whose values go to the stack, the last
// one with all it has.
func (c *compiler) push(list []ast.Expr) func(f *frame) {
	if n := len(list); n > 0 && several(list[n-1]) {
		head, last := c.exprs(list[:n-1]), c.list(list[n-1])
		return func(f *frame) {
			m := f.m
			for _, e := range head {
				v := e(f)
				m.stack = append(m.stack, v)
			}
			m.extend(last(f))
		}
	}
	all := c.exprs(list)
	switch len(all) {
	case 0:
		return func(*frame) {}
	case 1:
		a := all[0]
		return func(f *frame) {
			v := a(f)
			f.m.stack = append(f.m.stack, v)
		}
	case 2:
		a, b := all[0], all[1]
		return func(f *frame) {
			v := a(f)
			m := f.m
			m.stack = append(m.stack, v)
			v = b(f)
			m.stack = append(m.stack, v)
		}
	}
	return func(f *frame) {
		m := f.m
		for _, e := range all {
			v := e(f)
			m.stack = append(m.stack, v)
		}
	}
}

// fixed compiles a list of expressions that is cut or filled to n values on the stack.
func (c *compiler) fixed(list []ast.Expr, n int) func(f *frame) {
	push := c.push(list)
	if len(list) == n && (n == 0 || !several(list[n-1])) {
		return push
	}
	return func(f *frame) {
		m := f.m
		base := len(m.stack)
		push(f)
		for len(m.stack) < base+n {
			m.stack = append(m.stack, value.Nil)
		}
		m.stack = m.stack[:base+n]
	}
}
