package closure

import "github.com/yuin/gopher-lua/ast"

// Lua finds what to call the value of a and b, a or b by following its code, and
// takes each jump on the way. So does path, on the tree.

// use says what an expression's value is wanted for.
type use uint8

const (
	asValue use = iota
	leftOfAnd
	leftOfOr
)

// way is where the path goes after an expression that is tested.
type way uint8

const (
	wayOn    way = iota // to what stands to the right
	wayTrue             // out, because it was true
	wayFalse            // out, because it was false
)

// path follows the code of e. The operand is what is found when e's value is
// wanted; otherwise the way says where the path leaves.
func (c *compiler) path(e ast.Expr, u use) (operand, way) {
	x, ok := e.(*ast.LogicalOpExpr)
	if !ok {
		return c.leaf(e, u)
	}
	left, out, own := leftOfAnd, wayFalse, leftOfAnd
	if x.Operator == "or" {
		left, out, own = leftOfOr, wayTrue, leftOfOr
	}
	if _, w := c.path(x.Lhs, left); w != out {
		return c.path(x.Rhs, u)
	}
	switch u {
	case asValue, own:
		return operand{}, out
	}
	return operand{}, wayOn
}

func (c *compiler) leaf(e ast.Expr, u use) (operand, way) {
	if u == asValue {
		return c.operand(e), wayOn
	}
	truth, known := true, true
	switch e.(type) {
	case *ast.StringExpr, *ast.TrueExpr:
	case *ast.NilExpr, *ast.FalseExpr:
		truth = false
	default:
		_, known = c.fold(e)
	}
	switch {
	case u == leftOfAnd && known && truth, u == leftOfOr && known && !truth:
		return operand{}, wayOn
	case u == leftOfAnd:
		return operand{}, wayFalse
	}
	return operand{}, wayTrue
}
