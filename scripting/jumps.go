package scripting

import (
	"github.com/yuin/gopher-lua/ast"
)

// gopher-lua shortens jumps to jumps. When the second one lies behind it has been
// resolved already, and its distance is taken for the number of a label: the
// jump goes anywhere. It lies behind when it is the first instruction of a
// loop. So no loop may begin with a jump.

// opening is what a piece of code begins with.
type opening uint8

const (
	opensNothing opening = iota // there is no instruction
	opensJump
	opensOther
)

// steady keeps the body of a loop from beginning with a jump.
func steady(body []ast.Stmt, line int) []ast.Stmt {
	if openingOf(body) != opensJump {
		return body
	}
	// One instruction, for a local variable that no script can name.
	first := at(&ast.LocalAssignStmt{Names: []string{"(loop)"}}, line, line)
	return append([]ast.Stmt{first}, body...)
}

func openingOf(list []ast.Stmt) opening {
	for _, s := range list {
		o := opensOther
		switch s := s.(type) {
		case *ast.LocalAssignStmt:
			o = openingOfValues(s.Exprs)
		case *ast.AssignStmt:
			o = openingOfValues(s.Lhs, s.Rhs)
		case *ast.ReturnStmt:
			o = openingOfValues(s.Exprs)
		case *ast.FuncCallStmt:
			o = openingOfValues([]ast.Expr{s.Expr})
		case *ast.BreakStmt:
			o = opensJump
		case *ast.DoBlockStmt:
			o = openingOf(s.Stmts)
		case *ast.RepeatStmt:
			if o = openingOf(s.Stmts); o == opensNothing {
				o = openingOfCondition(s.Condition, false)
			}
		case *ast.WhileStmt:
			if o = openingOfCondition(s.Condition, false); o != opensNothing {
				break
			}
			if o = openingOf(s.Stmts); o == opensNothing {
				o = opensJump // back to itself
			}
		case *ast.IfStmt:
			if o = openingOfCondition(s.Condition, false); o != opensNothing {
				break
			}
			if o = openingOf(s.Then); o == opensNothing && len(s.Else) > 0 {
				o = opensJump // over the else
			}
		}
		if o != opensNothing {
			return o
		}
	}
	return opensNothing
}

// openingOfValues is what expressions begin with that a statement evaluates. A chain
// of and and or that begins with a literal begins with a jump. Any expression may be
// the first to make code, so each is looked at.
func openingOfValues(lists ...[]ast.Expr) opening {
	for _, list := range lists {
		for _, e := range list {
			if jumpsFirst(e) {
				return opensJump
			}
		}
	}
	return opensOther
}

func jumpsFirst(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.LogicalOpExpr:
		switch e.Lhs.(type) {
		case *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr, *ast.NumberExpr, *ast.StringExpr:
			return true
		}
		return jumpsFirst(e.Lhs)
	case *ast.RelationalOpExpr:
		return jumpsFirst(e.Lhs) || jumpsFirst(e.Rhs)
	case *ast.ArithmeticOpExpr:
		return jumpsFirst(e.Lhs) || jumpsFirst(e.Rhs)
	case *ast.StringConcatOpExpr:
		return jumpsFirst(e.Lhs)
	case *ast.UnaryMinusOpExpr:
		return jumpsFirst(e.Expr)
	case *ast.UnaryNotOpExpr:
		return jumpsFirst(e.Expr)
	case *ast.UnaryLenOpExpr:
		return jumpsFirst(e.Expr)
	case *ast.AttrGetExpr:
		return jumpsFirst(e.Object) || jumpsFirst(e.Key)
	case *ast.FuncCallExpr:
		return e.Func != nil && jumpsFirst(e.Func) || e.Receiver != nil && jumpsFirst(e.Receiver)
	}
	return false
}

// openingOfCondition follows gopher-lua's compileBranchCondition; next says that another
// condition is tried when this one fails.
func openingOfCondition(e ast.Expr, next bool) opening {
	switch e := e.(type) {
	case *ast.FalseExpr, *ast.NilExpr:
		if !next {
			return opensJump
		}
	case *ast.TrueExpr, *ast.NumberExpr, *ast.StringExpr:
		if !next {
			return opensNothing
		}
	case *ast.UnaryNotOpExpr:
		return openingOfCondition(e.Expr, !next)
	case *ast.LogicalOpExpr:
		if o := openingOfCondition(e.Lhs, e.Operator == "or"); o != opensNothing {
			return o
		}
		return openingOfCondition(e.Rhs, next)
	default:
		return openingOfValues([]ast.Expr{e})
	}
	return opensOther
}
