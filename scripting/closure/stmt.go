package closure

import (
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
	if e := c.command(x); e != nil {
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

// target is one left side of a multiple assignment.
type target struct {
	set  func(f *frame, val Value) // of a name; nil for a field
	o, k expr
	name operand
	line int
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
			targets[i] = target{o: c.expr(x.Object), k: c.expr(x.Key), name: c.operand(x.Object), line: line}
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
			m.setIndex(t.line, t.name, m.stack[field], m.stack[field+1], v)
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

func (c *compiler) genericFor(s *ast.GenericForStmt) stmt {
	explist := c.fixed(s.Exprs, 3)
	vars := c.decls[s]
	init := c.declare(vars)
	n := len(vars)
	plain := n == 2 && !vars[0].cell() && !vars[1].cell()
	k, v := vars[0].slot, vars[n-1].slot
	body, cost := c.body(s.Stmts)
	at := &site{s.Line(), operand{"local", "(for generator)"}}
	next, pairs, ipairs := c.world.next, c.world.pairsStep, c.world.ipairsStep
	return func(f *frame) signal {
		m := f.m
		base := len(m.stack)
		explist(f)
		fn, state, control := m.stack[base], m.stack[base+1], m.stack[base+2]
		m.stack = m.stack[:base]
		var pair [2]Value
		for place, i := 0, 0; ; {
			f.site = at
			if m.Left -= cost; m.Left <= 0 {
				m.look()
			}
			var res []Value
			switch {
			case state.IsTable() && (value.Equal(fn, pairs) || value.Equal(fn, next)):
				var err error
				if place, pair[0], pair[1], err = state.AsTable().After(place, control); err != nil {
					m.raise(0, err.Error())
				}
				res = pair[:]
			case state.IsTable() && control.IsNumber() && value.Equal(fn, ipairs):
				i = int(control.AsNumber()) + 1
				pair[1] = state.AsTable().GetInt(i)
				if pair[1].IsNil() {
					return sigNext
				}
				pair[0] = value.Int(i)
				res = pair[:]
			default:
				m.stack = append(m.stack, state, control)
				callee := fn
				if !callee.IsFunction() {
					callee = m.callable(&site{at.line, operand{}}, callee, base)
				}
				res = m.call(functionOf(callee), m.stack[base:])
				m.stack = m.stack[:base]
			}
			if len(res) == 0 || res[0].IsNil() {
				return sigNext
			}
			control = res[0]
			if plain && len(res) == 2 {
				f.slots[k], f.slots[v] = res[0], res[1]
			} else {
				m.stack = append(m.stack, res[:min(n, len(res))]...)
				for len(m.stack) < base+n {
					m.stack = append(m.stack, value.Nil)
				}
				init(f, m.stack[base:base+n])
				m.stack = m.stack[:base]
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
				return func(f *frame) signal {
					v := e(f)
					f.m.rets = append(f.m.rets[:0], v)
					return sigReturn
				}
			}
			return c.tailCall(x)
		}
		if !several(s.Exprs[0]) {
			e := c.expr(s.Exprs[0])
			return func(f *frame) signal {
				v := e(f)
				f.m.rets = append(f.m.rets[:0], v)
				return sigReturn
			}
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
