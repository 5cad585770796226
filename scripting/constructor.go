package scripting

import (
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// gopher-lua's compiler stores the items of a table constructor 50 at a time, and
// errs where their number is a multiple of that: what follows by key has the last 50
// stored again, from registers that hold something else by now; what follows as the
// values of a call is stored in their place. Of the batches from the 512th on it
// forgets the number.

// extended makes {a, b, f()} a call of extendTable with {a, b} and f(), if gopher-lua
// would store what f returns at the wrong place; otherwise it is nil.
func (lo *lowering) extended(t *ast.TableExpr) ast.Expr {
	last := len(t.Fields) - 1
	if last < lua.FieldsPerFlush || t.Fields[last].Key != nil || !several(t.Fields[last].Value) {
		return nil
	}
	items := 0
	for _, f := range t.Fields[:last] {
		if f.Key == nil {
			items++
		}
	}
	if items == 0 || items%lua.FieldsPerFlush != 0 {
		return nil
	}
	tail := t.Fields[last].Value
	t.Fields = t.Fields[:last]
	line := t.Line()
	return lo.value(line, site{what: "extend"}, extendTable, lo.expr(t),
		at(&ast.NumberExpr{Value: numberText(float64(items))}, line, line), lo.expr(tail))
}

// extendTable is called with a new table, the number of its items, and values to go
// behind them. It returns the table.
func extendTable(L *lua.LState) int {
	t, items := L.Get(1).(*lua.LTable), int(L.Get(2).(lua.LNumber))
	n := L.GetTop() - 2
	r := runOf(L)
	r.alloc(L, 16*n)
	r.pay(L, n/8)
	for i := 1; i <= n; i++ {
		t.RawSetInt(items+i, L.Get(2+i))
	}
	L.SetTop(1)
	return 1
}

// mendConstructors takes out of a function's code the batches of items that are
// stored a second time, and writes in the numbers that are missing.
func mendConstructors(p *lua.FunctionProto) {
	code := p.Code
	batches := [256]uint32{} // of the table in a register
	for pc := 0; pc < len(code); pc++ {
		op, reg, items, number := parts(code[pc])
		switch op {
		case lua.OP_NEWTABLE:
			batches[reg] = 0
		case lua.OP_SETLIST:
			again := false
			if items == lua.FieldsPerFlush {
				before, at, _, _ := parts(code[pc-1])
				again = at == reg && (before == lua.OP_SETTABLE || before == lua.OP_SETTABLEKS)
			}
			if again {
				code[pc] = nop
			} else {
				batches[reg]++
			}
			if number == 0 { // it stands by itself
				pc++
				if code[pc] = batches[reg]; again {
					code[pc] = nop
				}
			}
		}
	}
	for _, inner := range p.FunctionPrototypes {
		mendConstructors(inner)
	}
}

const (
	opcodeAt = 26
	nop      = uint32(lua.OP_NOP) << opcodeAt
)

// parts takes an instruction apart.
func parts(inst uint32) (op, a, b, c int) {
	return int(inst >> opcodeAt), int(inst >> 18 & 0xff), int(inst & 0x1ff), int(inst >> 9 & 0x1ff)
}
