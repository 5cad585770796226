package scripting

import (
	"slices"
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

// analyse tells whether a library is frozen: no call of its functions can change
// what its body has made, the local variables of the main chunk, and the tables they hold.
// Then what one call leaves behind is nothing, and the next may have the same.
//
// It looks at the syntax alone and says no whenever it is not sure. What it needs:
//
//   - While the body runs, none of the library's own functions is called, so that
//     the closures it leaves share no variables but the main chunk's.
//   - No function assigns to a variable of the main chunk.
//   - Where a function names such a variable, it holds what nothing can change
//     (numbers, strings, functions, the redis table), or a table of such values
//     which is only read there and then: t.k, t[k], #t, pairs(t), ipairs(t),
//     unpack(t), type(t).
//
// plainArgs is said of the tables that callbacks get: they are only read, too, by
// every callback, and each stands where it is registered.
//
// src compiles, and its body has run.
func analyse(src string) (frozen, plainArgs bool) {
	tree, err := parseChunk(src, functionChunk)
	if err != nil {
		return false, false
	}
	a := &freezer{frozen: true, plainArgs: true}
	a.block(tree.stmts)
	frozen = a.frozen && a.settle()
	return frozen, frozen && a.plainArgs
}

// settle looks at what could not be decided before all was seen.
func (a *freezer) settle() bool {
	for _, s := range a.elements {
		if s.into.root().held&holdsOther != 0 {
			return false // it may be anybody's table
		}
		if s.value.now()&(holdsTable|holdsOther) != 0 {
			s.into.root().held |= holdsDeep
		}
	}
	for _, l := range a.hosts {
		if l.root().held != holdsHost {
			return false
		}
	}
	for _, u := range a.uses {
		held := u.of.root().held
		if held&(holdsOther|holdsDeep) != 0 || held&holdsTable != 0 && !u.reads {
			return false
		}
	}
	return true
}

// holds says what a variable may hold, as a set.
type holds uint8

const (
	holdsScalar holds = 1 << iota // nil, a boolean, a number, a string
	holdsFunction
	holdsHost  // the redis table of a body, or a function of it
	holdsTable // a table that the main chunk has made
	holdsDeep  // such a table, with more in it than what stands above holdsTable
	holdsOther // anything else
)

// chunkLocal is a local variable of the main chunk. Those that may hold the same
// table are one for what they hold.
type chunkLocal struct {
	same *chunkLocal // up to the one that stands for all
	held holds
	// args is set for the first two parameters of a callback, which are tracked in
	// the same way.
	args bool
}

func (l *chunkLocal) root() *chunkLocal {
	for l.same != nil {
		l = l.same
	}
	return l
}

// hold adds what an expression may be to what the variable holds.
func (l *chunkLocal) hold(v holding) {
	l.root().held |= v.what
	if v.of != nil {
		if a, b := l.root(), v.of.root(); a != b {
			a.held |= b.held
			b.same = a
		}
	}
}

// holding is what an expression may be, and of which variable's tables.
type holding struct {
	what holds
	of   *chunkLocal
}

func scalar() holding { return holding{what: holdsScalar} }

// now is what the expression may be, by all that is known.
func (v holding) now() holds {
	if v.of != nil {
		return v.what | v.of.root().held
	}
	return v.what
}

// element is a value that goes into a table, while the main chunk runs.
type element struct {
	into  *chunkLocal
	value holding
}

// use is where a function names a variable of the main chunk.
type use struct {
	of    *chunkLocal
	reads bool // an element, the length, all elements; otherwise the value itself
}

// freezer walks the tree with the variables in sight.
type freezer struct {
	names     []string
	locals    []*chunkLocal // nil: a function's own
	depth     int           // of functions; 0 is the main chunk
	uses      []use
	elements  []element
	hosts     []*chunkLocal // those that must hold the redis table, or a function of it
	frozen    bool
	plainArgs bool
}

func (a *freezer) declare(name string) *chunkLocal {
	var l *chunkLocal
	if a.depth == 0 {
		l = &chunkLocal{}
	}
	a.names, a.locals = append(a.names, name), append(a.locals, l)
	return l
}

// lookup finds the variable of a name; local is false for a global.
func (a *freezer) lookup(name string) (l *chunkLocal, local bool) {
	for i := len(a.names) - 1; i >= 0; i-- {
		if a.names[i] == name {
			return a.locals[i], true
		}
	}
	return nil, false
}

// scoped forgets what fn declares.
func (a *freezer) scoped(fn func()) {
	n := len(a.names)
	fn()
	a.names, a.locals = a.names[:n], a.locals[:n]
}

func (a *freezer) block(list []ast.Stmt) {
	a.scoped(func() { a.stmts(list) })
}

func (a *freezer) stmts(list []ast.Stmt) {
	for _, s := range list {
		a.stmt(s)
	}
}

func (a *freezer) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.LocalAssignStmt:
		a.local(s)
	case *ast.AssignStmt:
		a.assign(s)
	case *ast.FuncCallStmt:
		a.expr(s.Expr)
	case *ast.ReturnStmt:
		a.exprs(s.Exprs)
	case *ast.DoBlockStmt:
		a.block(s.Stmts)
	case *ast.WhileStmt:
		a.expr(s.Condition)
		a.block(s.Stmts)
	case *ast.RepeatStmt:
		a.scoped(func() {
			a.stmts(s.Stmts)
			a.expr(s.Condition)
		})
	case *ast.IfStmt:
		a.expr(s.Condition)
		a.block(s.Then)
		a.block(s.Else)
	case *ast.NumberForStmt:
		a.expr(s.Init)
		a.expr(s.Limit)
		if s.Step != nil {
			a.expr(s.Step)
		}
		a.scoped(func() {
			if l := a.declare(s.Name); l != nil {
				l.hold(scalar())
			}
			a.stmts(s.Stmts)
		})
	case *ast.GenericForStmt:
		a.genericFor(s)
	case *ast.BreakStmt:
	default:
		a.frozen = false
	}
}

func (a *freezer) local(s *ast.LocalAssignStmt) {
	if len(s.Names) == 1 && len(s.Exprs) == 1 {
		if f, ok := s.Exprs[0].(*ast.FunctionExpr); ok { // local function: the body sees the name
			l := a.declare(s.Names[0])
			v := a.expr(f)
			if l != nil {
				l.hold(v)
			}
			return
		}
	}
	values := a.exprs(s.Exprs)
	for i, name := range s.Names {
		if l := a.declare(name); l != nil {
			l.hold(valueAt(values, i))
		}
	}
}

// valueAt is the i-th of the values of a list; calls at its end give nil, because
// of those that the main chunk may make none returns anything.
func valueAt(values []holding, i int) holding {
	if i < len(values) {
		return values[i]
	}
	return scalar()
}

func (a *freezer) assign(s *ast.AssignStmt) {
	for _, target := range s.Lhs {
		if t, ok := target.(*ast.AttrGetExpr); ok {
			a.expr(t.Key)
		}
	}
	values := a.exprs(s.Rhs)
	for i, target := range s.Lhs {
		v := valueAt(values, i)
		switch t := target.(type) {
		case *ast.IdentExpr:
			l, _ := a.lookup(t.Value)
			switch {
			case l == nil: // a function's own, or a global, which is an error
			case a.depth > 0:
				a.written(l)
			default:
				l.hold(v)
			}
		case *ast.AttrGetExpr:
			if a.depth > 0 {
				if x, ok := t.Object.(*ast.IdentExpr); ok {
					if l, _ := a.lookup(x.Value); l != nil {
						a.written(l)
					}
					continue
				}
				a.expr(t.Object)
				continue
			}
			object := a.expr(t.Object)
			if object.of == nil {
				a.frozen = false
				continue
			}
			a.elements = append(a.elements, element{object.of, v})
		}
	}
}

func (a *freezer) genericFor(s *ast.GenericForStmt) {
	if a.depth == 0 {
		a.frozen = false // it calls what it iterates with
	}
	if l := a.readByCall(s.Exprs, "pairs", "ipairs"); l != nil {
		a.used(l, true)
	} else {
		a.exprs(s.Exprs)
	}
	a.scoped(func() {
		for _, name := range s.Names {
			if l := a.declare(name); l != nil {
				l.hold(holding{what: holdsOther})
			}
		}
		a.stmts(s.Stmts)
	})
}

// readByCall is the variable of the main chunk that is the only argument of one
// of the global functions named, when a list is nothing but that call; else nil.
func (a *freezer) readByCall(list []ast.Expr, functions ...string) *chunkLocal {
	if a.depth == 0 || len(list) != 1 {
		return nil
	}
	call, ok := list[0].(*ast.FuncCallExpr)
	if !ok || call.Receiver != nil || len(call.Args) != 1 {
		return nil
	}
	callee, ok := call.Func.(*ast.IdentExpr)
	if !ok || !slices.Contains(functions, callee.Value) {
		return nil
	}
	if _, local := a.lookup(callee.Value); local {
		return nil
	}
	arg, ok := call.Args[0].(*ast.IdentExpr)
	if !ok {
		return nil
	}
	l, _ := a.lookup(arg.Value)
	return l
}

func (a *freezer) exprs(list []ast.Expr) []holding {
	values := make([]holding, len(list))
	for i, e := range list {
		values[i] = a.expr(e)
	}
	return values
}

// expr walks an expression. What it returns means something in the main chunk only.
func (a *freezer) expr(e ast.Expr) holding {
	switch x := e.(type) {
	case *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr, *ast.NumberExpr, *ast.StringExpr, *ast.Comma3Expr:
	case *ast.IdentExpr:
		return a.ident(x)
	case *ast.AttrGetExpr:
		return a.attr(x)
	case *ast.TableExpr:
		return a.table(x)
	case *ast.FuncCallExpr:
		return a.call(x)
	case *ast.FunctionExpr:
		a.function(x, false)
		return holding{what: holdsFunction}
	case *ast.LogicalOpExpr:
		left, right := a.expr(x.Lhs), a.expr(x.Rhs)
		either := &chunkLocal{}
		either.hold(left)
		either.hold(right)
		return holding{either.root().held, either}
	case *ast.RelationalOpExpr:
		a.expr(x.Lhs)
		a.expr(x.Rhs)
	case *ast.ArithmeticOpExpr:
		a.expr(x.Lhs)
		a.expr(x.Rhs)
	case *ast.StringConcatOpExpr:
		a.expr(x.Lhs)
		a.expr(x.Rhs)
	case *ast.UnaryMinusOpExpr:
		a.expr(x.Expr)
	case *ast.UnaryNotOpExpr:
		a.expr(x.Expr)
	case *ast.UnaryLenOpExpr:
		if !a.reads(x.Expr) {
			a.expr(x.Expr)
		}
	default:
		a.frozen = false
	}
	return scalar()
}

func (a *freezer) ident(x *ast.IdentExpr) holding {
	l, local := a.lookup(x.Value)
	switch {
	case l == nil && a.depth == 0 && !local && x.Value == "redis":
		return holding{what: holdsHost}
	case l == nil:
		return holding{what: holdsOther}
	case a.depth > 0:
		a.used(l, false)
	}
	return holding{l.root().held, l}
}

// reads notes that a function reads from what a variable of the main chunk holds,
// if e names one.
func (a *freezer) reads(e ast.Expr) bool {
	x, ok := e.(*ast.IdentExpr)
	if !ok || a.depth == 0 {
		return false
	}
	l, _ := a.lookup(x.Value)
	if l != nil {
		a.used(l, true)
	}
	return l != nil
}

func (a *freezer) attr(x *ast.AttrGetExpr) holding {
	a.expr(x.Key)
	if a.reads(x.Object) {
		return scalar()
	}
	object := a.expr(x.Object)
	if object.what != holdsHost {
		// What is read from a table of such values is one of them, but more may be
		// put into it further down.
		return holding{what: holdsOther}
	}
	a.host(object)
	if k, ok := x.Key.(*ast.StringExpr); ok && (k.Value == "register_function" || k.Value == "log") {
		return holding{what: holdsHost}
	}
	return scalar()
}

func (a *freezer) table(x *ast.TableExpr) holding {
	t := &chunkLocal{held: holdsTable}
	for _, f := range x.Fields {
		if f.Key != nil {
			a.elements = append(a.elements, element{t, a.expr(f.Key)})
		}
		a.elements = append(a.elements, element{t, a.expr(f.Value)})
	}
	return holding{holdsTable, t}
}

// host notes that a value must be the redis table or a function of it, whenever
// the main chunk comes by.
func (a *freezer) host(v holding) {
	if v.of != nil {
		a.hosts = append(a.hosts, v.of)
	}
}

func (a *freezer) call(x *ast.FuncCallExpr) holding {
	if a.depth == 0 {
		// redis.register_function and redis.log, which return nothing.
		if x.Receiver != nil {
			a.expr(x.Receiver)
			a.frozen = false
		} else if callee := a.expr(x.Func); callee.what == holdsHost {
			a.host(callee)
		} else {
			a.frozen = false
		}
		a.register(x.Args)
		return scalar()
	}
	if x.Receiver != nil {
		a.expr(x.Receiver)
	} else {
		a.expr(x.Func)
	}
	if l := a.readByCall([]ast.Expr{x}, "unpack", "type"); l != nil {
		a.used(l, true)
		return scalar()
	}
	a.exprs(x.Args)
	return scalar()
}

// used notes that a function names a variable that is tracked.
func (a *freezer) used(l *chunkLocal, reads bool) {
	if l.args {
		a.plainArgs = a.plainArgs && reads
		return
	}
	a.uses = append(a.uses, use{l, reads})
}

// written notes that a function assigns to such a variable, or into its table.
func (a *freezer) written(l *chunkLocal) {
	if l.args {
		a.plainArgs = false
		return
	}
	a.frozen = false
}

// register walks the arguments of redis.register_function.
func (a *freezer) register(args []ast.Expr) {
	for i, e := range args {
		switch x := e.(type) {
		case *ast.FunctionExpr:
			a.function(x, true)
		case *ast.TableExpr:
			for _, f := range x.Fields {
				if f.Key != nil {
					a.expr(f.Key)
				}
				if callback, ok := f.Value.(*ast.FunctionExpr); ok {
					a.function(callback, true)
					continue
				}
				if key, ok := f.Key.(*ast.StringExpr); !ok || strings.EqualFold(key.Value, "callback") {
					a.plainArgs = false // a callback from elsewhere
				}
				a.expr(f.Value)
			}
		default:
			a.plainArgs = a.plainArgs && i == 0 && len(args) == 2
			a.expr(e)
		}
	}
}

func (a *freezer) function(x *ast.FunctionExpr, callback bool) {
	a.depth++
	a.scoped(func() {
		for i, name := range x.ParList.Names {
			a.declare(name)
			if callback && i < 2 {
				a.locals[len(a.locals)-1] = &chunkLocal{held: holdsTable, args: true}
			}
		}
		if callback && x.ParList.HasVargs && len(x.ParList.Names) < 2 {
			a.plainArgs = false
		}
		a.stmts(x.Stmts)
	})
	a.depth--
}
