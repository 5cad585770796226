package closure

import (
	"slices"

	"github.com/yuin/gopher-lua/ast"

	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// block compiles statements one after the other.
func (c *compiler) block(stmts []ast.Stmt) stmt {
	c.open()
	defer c.close()
	all := make([]stmt, len(stmts))
	for i, s := range stmts {
		all[i] = c.stmt(s)
	}
	switch len(all) {
	case 0:
		return func(*frame) signal { return sigNext }
	case 1:
		return all[0]
	case 2:
		a, b := all[0], all[1]
		return func(f *frame) signal {
			if s := a(f); s != sigNext {
				return s
			}
			return b(f)
		}
	case 3:
		a, b, d := all[0], all[1], all[2]
		return func(f *frame) signal {
			if s := a(f); s != sigNext {
				return s
			}
			if s := b(f); s != sigNext {
				return s
			}
			return d(f)
		}
	}
	return func(f *frame) signal {
		for _, s := range all {
			if sig := s(f); sig != sigNext {
				return sig
			}
		}
		return sigNext
	}
}

func (c *compiler) stmt(s ast.Stmt) stmt {
	c.open()
	defer c.close()
	switch s := s.(type) {
	case *ast.AssignStmt:
		return c.assign(s)
	case *ast.LocalAssignStmt:
		return c.localAssign(s)
	case *ast.FuncCallStmt:
		return c.callStmt(s)
	case *ast.DoBlockStmt:
		return c.block(s.Stmts)
	case *ast.WhileStmt:
		return c.while(s)
	case *ast.RepeatStmt:
		return c.repeat(s)
	case *ast.IfStmt:
		return c.ifStmt(s)
	case *ast.NumberForStmt:
		return c.numberFor(s)
	case *ast.GenericForStmt:
		return c.genericFor(s)
	case *ast.ReturnStmt:
		return c.returns(s)
	case *ast.BreakStmt:
		return func(*frame) signal { return sigBreak }
	}
	panic("closure: a statement that the resolver let through")
}

func (c *compiler) callStmt(s *ast.FuncCallStmt) stmt {
	x := s.Expr.(*ast.FuncCallExpr)
	e := c.command(x)
	if e == nil {
		e = c.direct(x)
	}
	if e != nil {
		return func(f *frame) signal {
			e(f)
			return sigNext
		}
	}
	calls := c.calls(x)
	return func(f *frame) signal {
		calls(f)
		return sigNext
	}
}

// set compiles the store of a value to a variable.
func (c *compiler) set(v *variable) func(f *frame, val Value) {
	i := v.slot
	switch {
	case v.owner != c.fn:
		i = c.fn.upvalue(v)
		return func(f *frame, val Value) { cellOf(f.fn.ups[i]).v = val }
	case v.cell():
		return func(f *frame, val Value) { cellOf(f.slots[i]).v = val }
	}
	return func(f *frame, val Value) { f.slots[i] = val }
}

func (c *compiler) assign(s *ast.AssignStmt) stmt {
	if len(s.Lhs) == 1 && len(s.Rhs) == 1 {
		switch x := s.Lhs[0].(type) {
		case *ast.IdentExpr:
			return c.assignName(s, x)
		case *ast.AttrGetExpr:
			return c.assignField(s, x)
		}
	}
	return c.assignMany(s)
}

func (c *compiler) assignName(s *ast.AssignStmt, x *ast.IdentExpr) stmt {
	v := c.names[x]
	if v == nil {
		e, line := c.expr(s.Rhs[0]), s.LastLine()
		return func(f *frame) signal {
			e(f)
			f.m.throw(line, readOnlyTable)
			return sigNext
		}
	}
	if v.owner == c.fn && !v.cell() {
		return c.assignSlot(v.slot, s.Rhs[0])
	}
	e, set := c.expr(s.Rhs[0]), c.set(v)
	return func(f *frame) signal {
		set(f, e(f))
		return sigNext
	}
}

// assignSlot is a store to a variable in a slot. A sum that begins with a variable
// is stored without a call of a closure for it.
func (c *compiler) assignSlot(slot int, rhs ast.Expr) stmt {
	if x, ok := rhs.(*ast.ArithmeticOpExpr); ok && x.Operator == "+" {
		if i, ok := c.local(x.Lhs); ok {
			return c.assignSum(slot, i, x)
		}
	}
	e := c.expr(rhs)
	return func(f *frame) signal {
		f.slots[slot] = e(f)
		return sigNext
	}
}

func (c *compiler) assignSum(slot, i int, x *ast.ArithmeticOpExpr) stmt {
	s := &opSite{x.Line(), value.EventAdd, c.operand(x.Lhs), c.operand(x.Rhs)}
	if j, ok := c.local(x.Rhs); ok {
		c.cost++
		return func(f *frame) signal {
			a, b := f.slots[i], f.slots[j]
			if a.IsNumber() && b.IsNumber() {
				f.slots[slot].SetNumber(a.AsNumber() + b.AsNumber())
				return sigNext
			}
			f.slots[slot] = f.m.arith(s, a, b)
			return sigNext
		}
	}
	if n, ok := c.number(x.Rhs); ok {
		c.cost++
		return func(f *frame) signal {
			a := f.slots[i]
			if a.IsNumber() {
				f.slots[slot].SetNumber(a.AsNumber() + n)
				return sigNext
			}
			f.slots[slot] = f.m.arith(s, a, value.Number(n))
			return sigNext
		}
	}
	c.open()
	defer c.close()
	c.expr(x.Lhs)
	e := c.expr(x.Rhs)
	return func(f *frame) signal {
		b := e(f)
		a := f.slots[i]
		if a.IsNumber() && b.IsNumber() {
			f.slots[slot].SetNumber(a.AsNumber() + b.AsNumber())
			return sigNext
		}
		f.slots[slot] = f.m.arith(s, a, b)
		return sigNext
	}
}

func (c *compiler) assignField(s *ast.AssignStmt, x *ast.AttrGetExpr) stmt {
	line, name := s.LastLine(), c.operand(x.Object)
	lateO, lateK := c.late(x.Object), c.late(x.Key)
	o, k, e := c.expr(x.Object), c.expr(x.Key), c.expr(s.Rhs[0])
	if slot, ok := c.appends(x); ok {
		return func(f *frame) signal {
			ov := f.slots[slot]
			if ov.IsTable() {
				t := ov.AsTable()
				i := t.Len() + 1
				v := e(f)
				if t.Meta == nil && !t.ReadOnly {
					t.SetInt(i, v)
				} else {
					f.m.setIndex(line, name, ov, value.Int(i), v)
				}
				return sigNext
			}
			kv := k(f)
			f.m.setIndex(line, name, ov, kv, e(f))
			return sigNext
		}
	}
	if key, ok := c.constant(x.Key); ok && key.IsString() && !lateO {
		str, hash := key.AsString(), value.HashString(key.AsString())
		return func(f *frame) signal {
			ov := o(f)
			v := e(f)
			if ov.IsTable() {
				if t := ov.AsTable(); t.Meta == nil && !t.ReadOnly {
					t.SetHashed(key, hash, v)
					return sigNext
				}
			}
			f.m.setIndex(line, name, ov, value.String(str), v)
			return sigNext
		}
	}
	if lateO || lateK {
		return func(f *frame) signal {
			var ov, kv Value
			if !lateO {
				ov = o(f)
			}
			if !lateK {
				kv = k(f)
			}
			v := e(f)
			if lateO {
				ov = o(f)
			}
			if lateK {
				kv = k(f)
			}
			f.m.setIndex(line, name, ov, kv, v)
			return sigNext
		}
	}
	return func(f *frame) signal {
		ov := o(f)
		kv := k(f)
		v := e(f)
		if ov.IsTable() {
			if t := ov.AsTable(); t.Meta == nil && !t.ReadOnly && t.Set(kv, v) == nil {
				return sigNext
			}
		}
		f.m.setIndex(line, name, ov, kv, v)
		return sigNext
	}
}

// appends recognises t[#t+1] of a variable in a slot.
func (c *compiler) appends(x *ast.AttrGetExpr) (slot int, ok bool) {
	slot, ok = c.local(x.Object)
	sum, isSum := x.Key.(*ast.ArithmeticOpExpr)
	if !ok || !isSum || sum.Operator != "+" {
		return 0, false
	}
	length, isLength := sum.Lhs.(*ast.UnaryLenOpExpr)
	if one, ok := c.number(sum.Rhs); !isLength || !ok || one != 1 {
		return 0, false
	}
	of, ok := c.local(length.Expr)
	return slot, ok && of == slot
}

// target is one left side of a multiple assignment.
type target struct {
	set          func(f *frame, val Value) // of a name; nil for a field
	o, k         expr
	lateO, lateK bool // read when the field is stored
	name         operand
	line         int
}

// lateTarget is late for a table or key on the left side of an assignment: not if what
// follows there assigns the variable, as Lua then keeps its value.
func (c *compiler) lateTarget(e ast.Expr, rest []ast.Expr) bool {
	return c.late(e) && !slices.ContainsFunc(rest, func(other ast.Expr) bool {
		x, ok := other.(*ast.IdentExpr)
		return ok && c.names[x] == c.names[e.(*ast.IdentExpr)]
	})
}

// assignMany evaluates tables and keys, then the values, and stores from the
// right, as Lua does.
func (c *compiler) assignMany(s *ast.AssignStmt) stmt {
	line := s.LastLine()
	targets := make([]target, len(s.Lhs))
	fields := 0
	for i, e := range s.Lhs {
		switch x := e.(type) {
		case *ast.IdentExpr:
			if v := c.names[x]; v != nil {
				targets[i].set = c.set(v)
			} else {
				targets[i].set = func(f *frame, _ Value) { f.m.throw(line, readOnlyTable) }
			}
		case *ast.AttrGetExpr:
			rest := s.Lhs[i+1:]
			targets[i] = target{
				o: c.expr(x.Object), k: c.expr(x.Key), name: c.operand(x.Object), line: line,
				lateO: c.lateTarget(x.Object, rest), lateK: c.lateTarget(x.Key, rest),
			}
			fields++
		}
	}
	values := c.fixed(s.Rhs, len(s.Lhs))
	return func(f *frame) signal {
		m := f.m
		base := len(m.stack)
		for i := range targets {
			if t := &targets[i]; t.set == nil {
				v := t.o(f)
				m.stack = append(m.stack, v)
				v = t.k(f)
				m.stack = append(m.stack, v)
			}
		}
		at := base + 2*fields
		values(f)
		field := at - 2
		for i := len(targets) - 1; i >= 0; i-- {
			t := &targets[i]
			v := m.stack[at+i]
			if t.set != nil {
				t.set(f, v)
				continue
			}
			ov, kv := m.stack[field], m.stack[field+1]
			if t.lateO {
				ov = t.o(f)
			}
			if t.lateK {
				kv = t.k(f)
			}
			m.setIndex(t.line, t.name, ov, kv, v)
			field -= 2
		}
		m.stack = m.stack[:base]
		return sigNext
	}
}

func (c *compiler) localAssign(s *ast.LocalAssignStmt) stmt {
	vars := c.decls[s]
	if x, ok := localFunction(s); ok {
		v := vars[0]
		if v.cell() {
			slot, e := v.slot, c.function(x, -1)
			return func(f *frame) signal {
				f.slots[slot] = newCell(value.Nil)
				f.m.Mem += cellBytes
				cellOf(f.slots[slot]).v = e(f)
				return sigNext
			}
		}
		e := c.function(x, v.slot)
		return func(f *frame) signal {
			e(f)
			return sigNext
		}
	}
	if len(vars) == 1 && len(s.Exprs) <= 1 {
		slot := vars[0].slot
		if len(s.Exprs) == 0 {
			if vars[0].cell() {
				return func(f *frame) signal {
					f.slots[slot] = newCell(value.Nil)
					f.m.Mem += cellBytes
					return sigNext
				}
			}
			return func(f *frame) signal {
				f.slots[slot] = value.Nil
				return sigNext
			}
		}
		if !vars[0].cell() {
			return c.assignSlot(slot, s.Exprs[0])
		}
		e := c.expr(s.Exprs[0])
		return func(f *frame) signal {
			f.slots[slot] = newCell(e(f))
			f.m.Mem += cellBytes
			return sigNext
		}
	}
	init := c.declare(vars)
	n := len(vars)
	values := c.fixed(s.Exprs, n)
	return func(f *frame) signal {
		m := f.m
		base := len(m.stack)
		values(f)
		init(f, m.stack[base:])
		m.stack = m.stack[:base]
		return sigNext
	}
}

// declare compiles the first store to variables; there is a value for each.
func (c *compiler) declare(vars []*variable) func(f *frame, values []Value) {
	slots := make([]int, len(vars))
	cells := make([]bool, len(vars))
	for i, v := range vars {
		slots[i], cells[i] = v.slot, v.cell()
	}
	return func(f *frame, values []Value) {
		for i, slot := range slots {
			if cells[i] {
				f.slots[slot] = newCell(values[i])
				f.m.Mem += cellBytes
			} else {
				f.slots[slot] = values[i]
			}
		}
	}
}

func (c *compiler) ifStmt(s *ast.IfStmt) stmt {
	var conds []test
	var blocks []stmt
	for {
		conds = append(conds, c.test(s.Condition))
		blocks = append(blocks, c.block(s.Then))
		next := elseIf(s)
		if next == nil {
			break
		}
		s = next
	}
	var other stmt
	if len(s.Else) > 0 {
		other = c.block(s.Else)
	}
	if len(conds) == 1 {
		cond, then := conds[0], blocks[0]
		if other == nil {
			return func(f *frame) signal {
				if cond(f) {
					return then(f)
				}
				return sigNext
			}
		}
		return func(f *frame) signal {
			if cond(f) {
				return then(f)
			}
			return other(f)
		}
	}
	return func(f *frame) signal {
		for i, cond := range conds {
			if cond(f) {
				return blocks[i](f)
			}
		}
		if other != nil {
			return other(f)
		}
		return sigNext
	}
}

func (c *compiler) returns(s *ast.ReturnStmt) stmt {
	switch len(s.Exprs) {
	case 0:
		return func(f *frame) signal {
			f.m.rets = f.m.rets[:0]
			return sigReturn
		}
	case 1:
		if x, ok := s.Exprs[0].(*ast.FuncCallExpr); ok && !x.AdjustRet {
			if e := c.command(x); e != nil {
				return returnsValue(e)
			}
			return c.tailCall(x)
		}
		if !several(s.Exprs[0]) {
			return returnsValue(c.expr(s.Exprs[0]))
		}
	}
	push := c.push(s.Exprs)
	return func(f *frame) signal {
		m := f.m
		base := len(m.stack)
		push(f)
		m.rets = append(m.rets[:0], m.stack[base:]...)
		m.stack = m.stack[:base]
		return sigReturn
	}
}

// returnsValue is return e of one value.
func returnsValue(e expr) stmt {
	return func(f *frame) signal {
		f.m.one = e(f)
		return sigValue
	}
}

// maxValued is the most statements of a body that is compiled as a value: the
// closure of each stands on those before it.
const maxValued = 4

// valued tells whether a body always ends with the return of one value, and is
// simple enough to be compiled as that value: then the call of the function needs
// to look at no signal.
func valued(body []ast.Stmt) bool {
	for i, s := range body {
		switch s := s.(type) {
		case *ast.AssignStmt, *ast.LocalAssignStmt, *ast.FuncCallStmt:
		case *ast.IfStmt:
			if len(s.Else) > 0 || len(s.Then) != 1 || !valued(s.Then) {
				return false
			}
		case *ast.ReturnStmt:
			return i == len(body)-1 && len(s.Exprs) == 1 && !several(s.Exprs[0])
		default:
			return false
		}
	}
	return false
}

// value compiles a body that is valued.
func (c *compiler) value(body []ast.Stmt) expr {
	c.open()
	defer c.close()
	return c.valueFrom(body)
}

func (c *compiler) valueFrom(body []ast.Stmt) expr {
	switch s := body[0].(type) {
	case *ast.ReturnStmt:
		c.open()
		defer c.close()
		return c.expr(s.Exprs[0])
	case *ast.IfStmt:
		c.open()
		defer c.close()
		cond, then := c.test(s.Condition), c.value(s.Then)
		rest := c.valueFrom(body[1:])
		return func(f *frame) Value {
			if cond(f) {
				return then(f)
			}
			return rest(f)
		}
	}
	first := c.stmt(body[0])
	c.open()
	defer c.close()
	rest := c.valueFrom(body[1:])
	return func(f *frame) Value {
		first(f)
		return rest(f)
	}
}
