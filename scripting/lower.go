package scripting

import (
	"slices"
	"strconv"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/latchkey-proxy/latchkey/scripting/arith"
	"github.com/latchkey-proxy/latchkey/scripting/libm"
)

// lowering rewrites a tree for gopher-lua's machine: an operation that the
// machine does without a bound (concatenation, storing under a computed key) or
// differently from Lua 5.1 (the length operator) becomes a call of a host
// function. The callee stands in the tree as a string constant that no source can
// spell; compile puts the function itself in its place among the constants, so
// a call costs no look-up. A place has a function that knows what its operands are
// called, for error messages; places where that is the same share one.
type lowering struct {
	kinds map[*ast.IdentExpr]varKind
	token string
	sites []lua.LGFunction
	same  map[site]int // of sites
	// fn is the function whose code is rewritten. The compiler searches all of its
	// constants for each constant that it meets; the parser has accounted for those
	// of the source, and work is what the host functions add.
	fn struct {
		consts, sites int
		seen          map[site]bool
	}
	// consts has how many constants the source gives each function; nil is the main chunk.
	consts map[*ast.FunctionExpr]int
	work   int
	// argsEscape is set when KEYS or ARGV stand where the script could keep or change the tables.
	argsEscape bool
	// script is set for the source of a script, whose KEYS and ARGV are the
	// invocation's, and commands are its calls of redis.call.
	script   bool
	commands []commandCall
}

// constant accounts for the search for a constant of the source among the stand-ins.
func (lo *lowering) constant() { lo.work += lo.fn.sites }

// maxConcatOperands keeps the registers of one concatenation far below the machine's 200.
const maxConcatOperands = 50

// plainKey is the largest constant array index stored without a look at the table.
const plainKey = 1024

// site says what a host function does and what its operands are called: two with
// the same site are the same function. The zero site is like no other.
type site struct {
	what string
	a, b operand
}

func (lo *lowering) call(line int, s site, fn lua.LGFunction, args ...ast.Expr) *ast.FuncCallExpr {
	n, shared := lo.same[s]
	lo.work += lo.fn.consts + lo.fn.sites
	if !shared {
		n = len(lo.sites)
		lo.sites = append(lo.sites, fn)
	}
	if !lo.fn.seen[s] {
		lo.fn.sites++
	}
	if s != (site{}) {
		if lo.fn.seen == nil {
			lo.fn.seen = map[site]bool{}
		}
		if lo.same == nil {
			lo.same = map[site]int{}
		}
		lo.same[s], lo.fn.seen[s] = n, true
	}
	callee := at(&ast.StringExpr{Value: lo.token + strconv.Itoa(n)}, line, line)
	return at(&ast.FuncCallExpr{Func: callee, Args: args}, line, line)
}

// single cuts a call, or the dots of a vararg, to one value.
func single(e ast.Expr) {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
}

// value is like call, cut to one result.
func (lo *lowering) value(line int, s site, fn lua.LGFunction, args ...ast.Expr) ast.Expr {
	e := lo.call(line, s, fn, args...)
	e.AdjustRet = true
	return e
}

// operand describes an expression as Lua's error messages do.
func (lo *lowering) operand(e ast.Expr) operand {
	switch x := e.(type) {
	case *ast.IdentExpr:
		switch lo.kinds[x] {
		case varLocal:
			return operand{"local", x.Value}
		case varUpvalue:
			return operand{"upvalue", x.Value}
		}
		return operand{"global", x.Value}
	case *ast.AttrGetExpr:
		if k, ok := x.Key.(*ast.StringExpr); ok {
			return operand{"field", k.Value}
		}
		return operand{"field", "?"}
	}
	return operand{}
}

func (lo *lowering) isArgs(e ast.Expr) bool {
	x, ok := e.(*ast.IdentExpr)
	return ok && lo.kinds[x] == varGlobal && (x.Value == "KEYS" || x.Value == "ARGV")
}

func (lo *lowering) stmts(list []ast.Stmt) {
	for i, s := range list {
		list[i] = lo.stmt(s)
	}
}

func (lo *lowering) exprs(list []ast.Expr) {
	for i, e := range list {
		list[i] = lo.expr(e)
	}
}

func (lo *lowering) stmt(s ast.Stmt) ast.Stmt {
	switch s := s.(type) {
	case *ast.AssignStmt:
		return lo.assign(s)
	case *ast.LocalAssignStmt:
		lo.exprs(s.Exprs)
	case *ast.FuncCallStmt:
		s.Expr = lo.expr(s.Expr)
	case *ast.DoBlockStmt:
		lo.stmts(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = lo.expr(s.Condition)
		lo.stmts(s.Stmts)
		s.Stmts = steady(s.Stmts, s.Line())
	case *ast.RepeatStmt:
		lo.stmts(s.Stmts)
		s.Stmts = steady(s.Stmts, s.Line())
		s.Condition = lo.expr(s.Condition)
	case *ast.IfStmt:
		for { // an elseif chain is long rather than deep
			s.Condition = lo.expr(s.Condition)
			lo.stmts(s.Then)
			if len(s.Else) == 1 {
				if next, ok := s.Else[0].(*ast.IfStmt); ok {
					s = next
					continue
				}
			}
			lo.stmts(s.Else)
			break
		}
	case *ast.NumberForStmt:
		s.Init, s.Limit = lo.bound(s.Init), lo.bound(s.Limit)
		if s.Step != nil {
			s.Step = lo.bound(s.Step)
		}
		lo.stmts(s.Stmts)
	case *ast.GenericForStmt:
		lo.generic(s)
		lo.stmts(s.Stmts)
		s.Stmts = steady(s.Stmts, s.Line())
	case *ast.ReturnStmt:
		noted := len(lo.commands)
		lo.exprs(s.Exprs)
		lo.returned(s.Exprs, lo.commands[noted:])
	}
	return s
}

// fixedKey says that storing under the key needs no look at the table.
func fixedKey(key ast.Expr) bool {
	switch k := key.(type) {
	case *ast.StringExpr, *ast.TrueExpr, *ast.FalseExpr:
		return true
	case *ast.NumberExpr:
		v, err := strconv.ParseFloat(k.Value, 64)
		return err == nil && v <= plainKey
	}
	return false
}

// neverNil says that a value is certainly not nil.
func neverNil(e ast.Expr) bool {
	switch e.(type) {
	case *ast.StringExpr, *ast.NumberExpr, *ast.TrueExpr, *ast.FalseExpr, *ast.TableExpr,
		*ast.FunctionExpr, *ast.UnaryNotOpExpr, *ast.RelationalOpExpr:
		return true
	}
	return false
}

func (lo *lowering) assign(s *ast.AssignStmt) ast.Stmt {
	// Which targets does the machine store by itself? Names, and fields by name.
	guarded := 0
	for i, target := range s.Lhs {
		t, ok := target.(*ast.AttrGetExpr)
		if !ok {
			lo.constant() // of a global's name
			if lo.isArgs(target) {
				lo.argsEscape = true
			}
			continue
		}
		if lo.isArgs(t.Object) {
			lo.argsEscape = true
		}
		if _, str := t.Key.(*ast.StringExpr); str {
			continue
		}
		if fixedKey(t.Key) && i < len(s.Rhs) && neverNil(s.Rhs[i]) {
			continue
		}
		guarded++
	}
	line := s.LastLine() // where Lua, too, has its instruction
	if lo.overlaps(s) {
		if !slices.ContainsFunc(s.Lhs, isField) {
			lo.exprs(s.Rhs)
			s.Rhs = []ast.Expr{lo.call(line, site{what: "same"}, sameValues, s.Rhs...)}
			return s
		}
		guarded++
	}
	if guarded == 0 {
		for _, target := range s.Lhs {
			if t, ok := target.(*ast.AttrGetExpr); ok {
				t.Object, t.Key = lo.object(t.Object), lo.expr(t.Key)
			}
		}
		lo.exprs(s.Rhs)
		lo.mendCalls(s)
		return s
	}
	if len(s.Lhs) == 1 && len(s.Rhs) == 1 {
		t := s.Lhs[0].(*ast.AttrGetExpr)
		op := lo.operand(t.Object)
		val := s.Rhs[0]
		single(val)
		if lo.appends(t) && quiet(val) {
			args := []ast.Expr{lo.object(t.Object), lo.expr(val)}
			return at(&ast.FuncCallStmt{Expr: lo.call(line, site{"append", op, operand{}}, appendSite(op), args...)}, line, s.LastLine())
		}
		return at(&ast.FuncCallStmt{Expr: lo.store(line, op, t, val)}, line, s.LastLine())
	}
	// a, t[i], u.v = x, y, z becomes a = assign(t, i, u, "v", x, y, z): the
	// host function stores the fields and returns what the names get.
	var names []ast.Expr
	var args []ast.Expr
	plan := make([]storeTarget, len(s.Lhs))
	for i, target := range s.Lhs {
		t, ok := target.(*ast.AttrGetExpr)
		if !ok {
			names = append(names, target)
			continue
		}
		plan[i] = storeTarget{field: true, op: lo.operand(t.Object)}
		args = append(args, lo.object(t.Object), lo.expr(t.Key))
	}
	lo.exprs(s.Rhs)
	args = append(args, s.Rhs...)
	call := lo.call(line, site{}, assignSite(plan), args...)
	if len(names) == 0 {
		return at(&ast.FuncCallStmt{Expr: call}, line, s.LastLine())
	}
	return at(&ast.AssignStmt{Lhs: names, Rhs: []ast.Expr{call}}, line, s.LastLine())
}

// store is t[k] = v. Of t and k a local variable comes behind v, which may assign it:
// Lua reads it when it stores.
func (lo *lowering) store(line int, op operand, t *ast.AttrGetExpr, val ast.Expr) ast.Expr {
	lateO, lateK := !quiet(val) && lo.isLocal(t.Object), !quiet(val) && lo.isLocal(t.Key)
	object, key := lo.object(t.Object), lo.expr(t.Key)
	s := site{"store", op, operand{}}
	fn, args := storeSite(op), []ast.Expr{object, key, lo.expr(val)}
	switch value := args[2]; {
	case lateO && lateK:
		s.what, fn, args = "store v t k", storeLate(op, 2, 3, 1), []ast.Expr{value, object, key}
	case lateO:
		s.what, fn, args = "store k v t", storeLate(op, 3, 1, 2), []ast.Expr{key, value, object}
	case lateK:
		s.what, fn, args = "store t v k", storeLate(op, 1, 3, 2), []ast.Expr{object, value, key}
	}
	return lo.call(line, s, fn, args...)
}

func (lo *lowering) isLocal(e ast.Expr) bool {
	x, ok := e.(*ast.IdentExpr)
	return ok && lo.kinds[x] == varLocal
}

func isField(e ast.Expr) bool {
	_, ok := e.(*ast.AttrGetExpr)
	return ok
}

// overlaps says that the values or the fields of a multiple assignment may read a
// local variable that it assigns. gopher-lua computes such a value right into the
// variable, and so a, b = b, a would make both the same.
func (lo *lowering) overlaps(s *ast.AssignStmt) bool {
	if len(s.Lhs) < 2 {
		return false
	}
	names := map[string]bool{}
	for _, target := range s.Lhs {
		if x, ok := target.(*ast.IdentExpr); ok && lo.kinds[x] == varLocal {
			names[x.Value] = true
		}
	}
	if len(names) == 0 {
		return false
	}
	reads := func(e ast.Expr) bool {
		switch x := e.(type) {
		case *ast.IdentExpr:
			return names[x.Value]
		case *ast.StringExpr, *ast.NumberExpr, *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr, *ast.FunctionExpr:
			return false
		}
		return true
	}
	for _, target := range s.Lhs {
		if x, ok := target.(*ast.AttrGetExpr); ok && (reads(x.Object) || reads(x.Key)) {
			return true
		}
	}
	if len(s.Rhs) == 1 {
		switch s.Rhs[0].(type) {
		case *ast.FuncCallExpr, *ast.Comma3Expr:
			return false // all values are there before the first is assigned
		}
	}
	return slices.ContainsFunc(s.Rhs, reads)
}

// mendCalls keeps gopher-lua from a mistake: it loads the function of x = (f(x))
// into the register of x, before the argument is taken from there, when x is the
// last parameter. Calls that are not cut to one value are compiled otherwise.
func (lo *lowering) mendCalls(s *ast.AssignStmt) {
	if len(s.Lhs) == 1 && len(s.Rhs) == 1 {
		if call, ok := s.Rhs[0].(*ast.FuncCallExpr); ok {
			call.AdjustRet = false
		}
		return
	}
	for i, e := range s.Rhs {
		if _, ok := e.(*ast.FuncCallExpr); !ok || i >= len(s.Lhs) {
			continue
		}
		if name, ok := s.Lhs[i].(*ast.IdentExpr); ok && lo.kinds[name] == varLocal {
			s.Rhs = []ast.Expr{lo.call(s.Line(), site{what: "same"}, sameValues, s.Rhs...)}
			return
		}
	}
}

// bound lowers the head of a numeric for, where Lua takes strings that read as
// numbers, and the machine does not.
func (lo *lowering) bound(e ast.Expr) ast.Expr {
	switch e.(type) {
	case *ast.NumberExpr, *ast.ArithmeticOpExpr, *ast.UnaryMinusOpExpr, *ast.UnaryLenOpExpr:
		return lo.expr(e) // a number, or an error
	}
	single(e)
	return lo.value(e.Line(), site{what: "for"}, forBound, lo.expr(e))
}

// forBound makes a number of a string that reads as one; anything else it returns,
// for the machine to judge once all three are known.
func forBound(L *lua.LState) int {
	if s, ok := L.Get(1).(lua.LString); ok {
		if f, ok := parseNumber(string(s)); ok {
			L.Push(number(f))
			return 1
		}
	}
	L.SetTop(1)
	return 1
}

// sameValues returns its arguments.
func sameValues(L *lua.LState) int { return L.GetTop() }

// appends recognises the target of t[#t+1] = v, where t is one name.
func (lo *lowering) appends(t *ast.AttrGetExpr) bool {
	sum, ok := t.Key.(*ast.ArithmeticOpExpr)
	if !ok || sum.Operator != "+" {
		return false
	}
	one, ok1 := sum.Rhs.(*ast.NumberExpr)
	size, ok2 := sum.Lhs.(*ast.UnaryLenOpExpr)
	if !ok1 || !ok2 || one.Value != "1" {
		return false
	}
	a, ok1 := t.Object.(*ast.IdentExpr)
	b, ok2 := size.Expr.(*ast.IdentExpr)
	return ok1 && ok2 && a.Value == b.Value && lo.kinds[a] != varGlobal
}

// quiet says that evaluating an expression calls no function of the script's,
// metamethods of its operands aside.
func quiet(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.StringExpr, *ast.NumberExpr, *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr, *ast.IdentExpr, *ast.FunctionExpr:
		return true
	case *ast.AttrGetExpr:
		return quiet(x.Object) && quiet(x.Key)
	case *ast.ArithmeticOpExpr:
		return quiet(x.Lhs) && quiet(x.Rhs)
	case *ast.StringConcatOpExpr:
		return quiet(x.Lhs) && quiet(x.Rhs)
	case *ast.TableExpr:
		for _, f := range x.Fields {
			if f.Key != nil && !quiet(f.Key) || !quiet(f.Value) {
				return false
			}
		}
		return true
	}
	return false
}

// object lowers an expression that is indexed, where KEYS and ARGV are safe.
func (lo *lowering) object(e ast.Expr) ast.Expr {
	if lo.isArgs(e) {
		return e
	}
	return lo.expr(e)
}

func (lo *lowering) expr(e ast.Expr) ast.Expr {
	switch x := e.(type) {
	case *ast.StringExpr, *ast.NumberExpr:
		lo.constant()
	case *ast.IdentExpr:
		if lo.kinds[x] == varGlobal {
			lo.constant()
			switch x.Value {
			case "KEYS", "ARGV", "_G", "loadstring", "load":
				lo.argsEscape = true
			}
		}
	case *ast.AttrGetExpr:
		x.Object, x.Key = lo.object(x.Object), lo.expr(x.Key)
	case *ast.TableExpr:
		if e := lo.extended(x); e != nil {
			return e
		}
		lo.table(x)
	case *ast.FuncCallExpr:
		return lo.funcCall(x)
	case *ast.LogicalOpExpr:
		x.Lhs, x.Rhs = lo.expr(x.Lhs), lo.expr(x.Rhs)
	case *ast.RelationalOpExpr:
		x.Lhs, x.Rhs = lo.expr(x.Lhs), lo.expr(x.Rhs)
	case *ast.ArithmeticOpExpr:
		return lo.arithmetic(x)
	case *ast.StringConcatOpExpr:
		return lo.concat(x)
	case *ast.UnaryMinusOpExpr:
		x.Expr = lo.expr(x.Expr)
	case *ast.UnaryNotOpExpr:
		x.Expr = lo.expr(x.Expr)
	case *ast.UnaryLenOpExpr:
		op := lo.operand(x.Expr)
		return lo.value(x.Line(), site{"length", op, operand{}}, lengthSite(op), lo.object(x.Expr))
	case *ast.FunctionExpr:
		outer := lo.fn
		lo.fn.consts, lo.fn.sites, lo.fn.seen = lo.consts[x], 0, nil
		lo.stmts(x.Stmts)
		lo.fn = outer
	}
	return e
}

func (lo *lowering) funcCall(x *ast.FuncCallExpr) ast.Expr {
	if x.Receiver != nil {
		lo.constant() // the method's name
		x.Receiver = lo.expr(x.Receiver)
	} else {
		if f, ok := x.Func.(*ast.IdentExpr); ok && f.Value == "unpack" && lo.kinds[f] == varGlobal &&
			len(x.Args) > 0 && lo.isArgs(x.Args[0]) {
			lo.exprs(x.Args[1:])
			return x
		}
		lo.command(x)
		x.Func = lo.expr(x.Func)
	}
	lo.exprs(x.Args)
	return x
}

// generic gives a for loop the three values that it takes. gopher-lua leaves
// what is missing to chance.
func (lo *lowering) generic(s *ast.GenericForStmt) {
	last := len(s.Exprs) - 1
	multi := false
	switch e := s.Exprs[last].(type) {
	case *ast.FuncCallExpr:
		multi = !e.AdjustRet
	case *ast.Comma3Expr:
		multi = !e.AdjustRet
	}
	line := s.Exprs[last].Line()
	lo.exprs(s.Exprs)
	switch {
	case multi && last > 0:
		s.Exprs = []ast.Expr{lo.call(line, site{what: "same"}, sameValues, s.Exprs...)}
	case !multi:
		for len(s.Exprs) < 3 {
			s.Exprs = append(s.Exprs, at(&ast.NilExpr{}, line, line))
		}
	}
}

// arithmetic leaves + - * / to the machine, whose modulo and power are not Lua's.
func (lo *lowering) arithmetic(x *ast.ArithmeticOpExpr) ast.Expr {
	a, b := lo.operand(x.Lhs), lo.operand(x.Rhs)
	fn, event := arith.Modulo, "__mod"
	switch x.Operator {
	case "%":
	case "^":
		fn, event = libm.Pow, "__pow"
	default:
		x.Lhs, x.Rhs = lo.expr(x.Lhs), lo.expr(x.Rhs)
		return x
	}
	if n, ok := x.Lhs.(*ast.NumberExpr); ok {
		if m, ok := x.Rhs.(*ast.NumberExpr); ok {
			if v, ok := foldNumbers(fn, n.Value, m.Value); ok {
				return at(&ast.NumberExpr{Value: v}, x.Line(), x.LastLine())
			}
		}
	}
	single(x.Lhs)
	single(x.Rhs)
	if lo.isLocal(x.Lhs) && !quiet(x.Rhs) { // read behind what may assign it
		rhs := lo.expr(x.Rhs)
		return lo.value(x.Line(), site{event + " late", a, b}, swapped(arithmeticSite(fn, event, a, b)), rhs, lo.expr(x.Lhs))
	}
	return lo.value(x.Line(), site{event, a, b}, arithmeticSite(fn, event, a, b), lo.expr(x.Lhs), lo.expr(x.Rhs))
}

func (lo *lowering) table(t *ast.TableExpr) {
	for _, f := range t.Fields {
		if f.Key != nil {
			// In {1, k = f()} gopher-lua would append f's results to the array too.
			single(f.Value)
		}
		f.Value = lo.expr(f.Value)
		if f.Key == nil {
			continue
		}
		plain := fixedKey(f.Key)
		f.Key = lo.expr(f.Key)
		if !plain {
			f.Key = lo.value(t.Line(), site{what: "key"}, guardKey, f.Key)
		}
	}
}

// concat makes one call of a chain a..b..c, which the grammar nests to the right.
func (lo *lowering) concat(x *ast.StringConcatOpExpr) ast.Expr {
	line := x.Line()
	var ops []operand
	var args []ast.Expr
	var e ast.Expr = x
	for {
		c, ok := e.(*ast.StringConcatOpExpr)
		if ok {
			e = c.Lhs
		}
		ops = append(ops, lo.operand(e))
		single(e)
		args = append(args, lo.expr(e))
		if !ok {
			break
		}
		e = c.Rhs
	}
	for len(args) > maxConcatOperands {
		head := lo.value(line, site{}, concatSite(ops[:maxConcatOperands]), args[:maxConcatOperands:maxConcatOperands]...)
		args = append([]ast.Expr{head}, args[maxConcatOperands:]...)
		ops = append([]operand{{}}, ops[maxConcatOperands:]...)
	}
	s := site{}
	if len(ops) == 2 {
		s = site{"concat", ops[0], ops[1]}
	}
	return lo.value(line, s, concatSite(ops), args...)
}
