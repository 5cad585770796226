package closure

import "github.com/yuin/gopher-lua/ast"

// variable is one local variable.
type variable struct {
	name  string
	owner *function
	slot  int
	// captured: a function within its own uses it. assigned: someone stores to it
	// after its declaration. Only one that is both lives in a cell; others are
	// copied into the functions that use them.
	captured, assigned bool
}

func (v *variable) cell() bool { return v.captured && v.assigned }

// function is one function of the source while it is resolved and compiled.
type function struct {
	parent *function
	expr   *ast.FunctionExpr // nil for the main chunk
	ups    []*variable
	upAt   map[*variable]int
	slots  int // the most that live at once
	vararg bool
	dots   bool  // uses ... itself
	zero   Value // the first literal 0 or -0
	nest   int   // closures open at the place that is compiled, and the most
	deep   int
}

// upvalue is the index of v among fn's upvalues, and of those of the functions in between.
func (fn *function) upvalue(v *variable) int {
	if i, ok := fn.upAt[v]; ok {
		return i
	}
	if fn.parent != v.owner {
		fn.parent.upvalue(v)
	}
	if fn.upAt == nil {
		fn.upAt = map[*variable]int{}
	}
	i := len(fn.ups)
	fn.ups = append(fn.ups, v)
	fn.upAt[v] = i
	return i
}

// resolver finds what every name means, and how each variable is used.
type resolver struct {
	names  map[*ast.IdentExpr]*variable // what is not there is a global
	decls  map[any][]*variable          // of statements and functions, in order
	funcs  map[*ast.FunctionExpr]*function
	fn     *function
	scope  []*variable // visible, of all functions
	live   int         // slots taken in fn
	reason string      // why the script is not covered
	// argsEscape is set when KEYS or ARGV stand where the script could keep or change the tables.
	argsEscape bool
	world      *World
}

func (r *resolver) fail(reason string) {
	if r.reason == "" {
		r.reason = reason
	}
}

func (r *resolver) declare(at any, name string) {
	v := &variable{name: name, owner: r.fn, slot: r.live}
	r.live++
	r.fn.slots = max(r.fn.slots, r.live)
	r.decls[at] = append(r.decls[at], v)
	r.scope = append(r.scope, v)
}

func (r *resolver) find(name string) *variable {
	for i := len(r.scope) - 1; i >= 0; i-- {
		if r.scope[i].name == name {
			return r.scope[i]
		}
	}
	return nil
}

func (r *resolver) ident(e *ast.IdentExpr) *variable {
	v := r.find(e.Value)
	if v == nil {
		if why, ok := r.world.elsewhere[e.Value]; ok {
			r.fail(why)
		}
		return nil
	}
	r.names[e] = v
	if v.owner != r.fn {
		v.captured = true
		r.fn.upvalue(v)
	}
	return v
}

// block resolves statements and forgets what they declared.
func (r *resolver) block(list []ast.Stmt) {
	n, live := len(r.scope), r.live
	r.stmts(list)
	r.scope, r.live = r.scope[:n], live
}

func (r *resolver) stmts(list []ast.Stmt) {
	for _, s := range list {
		r.stmt(s)
	}
}

func (r *resolver) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		for _, e := range s.Lhs {
			switch x := e.(type) {
			case *ast.IdentExpr:
				if v := r.ident(x); v != nil {
					v.assigned = true
				}
			case *ast.AttrGetExpr:
				if r.isArgs(x.Object) {
					r.argsEscape = true
				}
				r.expr(x.Object)
				r.expr(x.Key)
			}
		}
		r.exprs(s.Rhs)
	case *ast.LocalAssignStmt:
		if f, ok := localFunction(s); ok {
			r.declare(s, s.Names[0])
			r.expr(f)
			return
		}
		r.exprs(s.Exprs)
		for _, n := range s.Names {
			r.declare(s, n)
		}
	case *ast.FuncCallStmt:
		r.expr(s.Expr)
	case *ast.DoBlockStmt:
		r.block(s.Stmts)
	case *ast.WhileStmt:
		r.expr(s.Condition)
		r.block(s.Stmts)
	case *ast.RepeatStmt:
		n, live := len(r.scope), r.live
		r.stmts(s.Stmts)
		r.expr(s.Condition)
		r.scope, r.live = r.scope[:n], live
	case *ast.IfStmt:
		for { // an elseif chain is long rather than deep
			r.expr(s.Condition)
			r.block(s.Then)
			if next := elseIf(s); next != nil {
				s = next
				continue
			}
			r.block(s.Else)
			return
		}
	case *ast.NumberForStmt:
		r.expr(s.Init)
		r.expr(s.Limit)
		if s.Step != nil {
			r.expr(s.Step)
		}
		n, live := len(r.scope), r.live
		r.declare(s, s.Name)
		r.stmts(s.Stmts)
		r.scope, r.live = r.scope[:n], live
	case *ast.GenericForStmt:
		r.exprs(s.Exprs)
		n, live := len(r.scope), r.live
		for _, name := range s.Names {
			r.declare(s, name)
		}
		r.stmts(s.Stmts)
		r.scope, r.live = r.scope[:n], live
	case *ast.ReturnStmt:
		r.exprs(s.Exprs)
	case *ast.BreakStmt:
	default:
		r.fail("statement")
	}
}

// localFunction recognises "local function f"; the parser marks "local f =
// function" by a second value.
func localFunction(s *ast.LocalAssignStmt) (*ast.FunctionExpr, bool) {
	if len(s.Names) != 1 || len(s.Exprs) != 1 {
		return nil, false
	}
	f, ok := s.Exprs[0].(*ast.FunctionExpr)
	return f, ok
}

// elseIf is the statement after elseif, nil when there is none.
func elseIf(s *ast.IfStmt) *ast.IfStmt {
	if len(s.Else) == 1 {
		if next, ok := s.Else[0].(*ast.IfStmt); ok {
			return next
		}
	}
	return nil
}

func (r *resolver) exprs(list []ast.Expr) {
	for _, e := range list {
		r.expr(e)
	}
}

// isArgs says that an expression is the global KEYS or ARGV.
func (r *resolver) isArgs(e ast.Expr) bool {
	x, ok := e.(*ast.IdentExpr)
	return ok && r.world.args && (x.Value == "KEYS" || x.Value == "ARGV") && r.find(x.Value) == nil
}

func (r *resolver) expr(e ast.Expr) {
	switch x := e.(type) {
	case *ast.IdentExpr:
		if r.isArgs(e) {
			r.argsEscape = true
		}
		r.ident(x)
	case *ast.AttrGetExpr:
		r.object(x.Object)
		r.expr(x.Key)
	case *ast.TableExpr:
		for _, f := range x.Fields {
			if f.Key != nil {
				r.expr(f.Key)
			}
			r.expr(f.Value)
		}
	case *ast.FuncCallExpr:
		args := x.Args
		if x.Receiver != nil {
			r.expr(x.Receiver)
		} else {
			r.expr(x.Func)
			if f, ok := x.Func.(*ast.IdentExpr); ok && f.Value == "unpack" && r.names[f] == nil && len(args) > 0 {
				r.object(args[0])
				args = args[1:]
			}
		}
		r.exprs(args)
	case *ast.LogicalOpExpr:
		r.expr(x.Lhs)
		r.expr(x.Rhs)
	case *ast.RelationalOpExpr:
		r.expr(x.Lhs)
		r.expr(x.Rhs)
	case *ast.ArithmeticOpExpr:
		r.expr(x.Lhs)
		r.expr(x.Rhs)
	case *ast.StringConcatOpExpr:
		r.expr(x.Lhs)
		r.expr(x.Rhs)
	case *ast.UnaryMinusOpExpr:
		r.expr(x.Expr)
	case *ast.UnaryNotOpExpr:
		r.expr(x.Expr)
	case *ast.UnaryLenOpExpr:
		r.object(x.Expr)
	case *ast.FunctionExpr:
		r.function(x)
	case *ast.Comma3Expr:
		r.fn.dots = true
	case *ast.StringExpr, *ast.NumberExpr, *ast.NilExpr, *ast.TrueExpr, *ast.FalseExpr:
	default:
		r.fail("expression")
	}
}

// object resolves an expression that is only read from, where KEYS and ARGV are safe.
func (r *resolver) object(e ast.Expr) {
	if !r.isArgs(e) {
		r.expr(e)
	}
}

func (r *resolver) function(x *ast.FunctionExpr) {
	fn := &function{parent: r.fn, expr: x, vararg: x.ParList.HasVargs}
	r.funcs[x] = fn
	outer, n, live := r.fn, len(r.scope), r.live
	r.fn, r.live = fn, 0
	for _, name := range x.ParList.Names {
		r.declare(x, name)
	}
	if fn.vararg {
		r.declare(x, "arg")
	}
	r.stmts(x.Stmts)
	r.fn, r.live = outer, live
	r.scope = r.scope[:n]
}
