package scripting

import (
	"fmt"
	"slices"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// maxFunctionCode is how many instructions a function of the virtual machine may
// have, and how many labels while it is compiled: jumps reach no further, and the
// compiler would cut off what does without a word.
const maxFunctionCode = 1<<17 - 1

// tooLong is the error for a function of more than maxFunctionCode instructions.
func tooLong(chunk string, line int) error {
	name := "main function"
	if line > 0 {
		name = fmt.Sprintf("function at line %d", line)
	}
	return fmt.Errorf("%s:%d: %s is too long (limit is %d instructions)", chunk, max(line, 1), name, maxFunctionCode)
}

// codeSize bounds what the functions of a lowered tree compile to, before that is
// done: compiling a megabyte in one function takes a second and a hundred times the
// source's size. What it counts is at most what there will be, of instructions, and
// at least that of labels. A function within these bounds may still prove too long
// once it is compiled.
type codeSize struct {
	kinds        map[*ast.IdentExpr]varKind // of the tree
	code, labels int
	long         int // the line of a function that is too long, 0 for the main chunk
	found        bool
}

// check is nil, or the error for the first function that is certainly too long.
func (c *codeSize) check(stmts []ast.Stmt, chunk string) error {
	if c.function(stmts, 0); c.found {
		return tooLong(chunk, c.long)
	}
	return nil
}

// function counts one function by itself.
func (c *codeSize) function(stmts []ast.Stmt, line int) {
	code, labels := c.code, c.labels
	c.code, c.labels = 1, 0 // its last return
	c.stmts(stmts, line)
	c.code, c.labels = code, labels
}

// compiled finds a function that has proved too long.
func (c *codeSize) compiled(p *lua.FunctionProto) error {
	if len(p.Code) > maxFunctionCode {
		return tooLong(p.SourceName, p.LineDefined)
	}
	for _, inner := range p.FunctionPrototypes {
		if err := c.compiled(inner); err != nil {
			return err
		}
	}
	return nil
}

func (c *codeSize) stmts(list []ast.Stmt, line int) {
	for _, s := range list {
		if c.found {
			return
		}
		c.stmt(s, line)
		if max(c.code, c.labels) > maxFunctionCode && !c.found {
			c.found, c.long = true, line
		}
	}
}

func (c *codeSize) stmt(s ast.Stmt, line int) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		c.assign(s)
	case *ast.LocalAssignStmt:
		c.values(s.Exprs)
		if len(s.Exprs) == 0 {
			c.code++
		}
	case *ast.FuncCallStmt:
		c.expr(s.Expr)
	case *ast.DoBlockStmt:
		c.stmts(s.Stmts, line)
	case *ast.WhileStmt:
		c.labels += 3
		c.code++
		c.expr(s.Condition)
		c.stmts(s.Stmts, line)
	case *ast.RepeatStmt:
		c.labels += 4
		c.expr(s.Condition)
		c.stmts(s.Stmts, line)
	case *ast.IfStmt:
		for !c.found { // an elseif chain is long rather than deep
			c.labels += 3
			c.expr(s.Condition)
			c.stmts(s.Then, line)
			if len(s.Else) == 1 {
				if next, ok := s.Else[0].(*ast.IfStmt); ok {
					c.code++
					s = next
					continue
				}
			}
			if len(s.Else) > 0 {
				c.code++
				c.stmts(s.Else, line)
			}
			break
		}
	case *ast.NumberForStmt:
		c.labels++
		c.code += 2
		c.values([]ast.Expr{s.Init, s.Limit})
		if s.Step != nil {
			c.value(s.Step)
		} else {
			c.code++
		}
		c.stmts(s.Stmts, line)
	case *ast.GenericForStmt:
		c.labels += 3
		c.code += 3
		c.values(s.Exprs)
		c.stmts(s.Stmts, line)
	case *ast.ReturnStmt:
		c.code++
		c.exprs(s.Exprs)
	case *ast.BreakStmt:
		c.code++
	}
}

// assign counts an assignment. A local variable may be assigned by the instruction
// that makes its value, and none moves a variable to itself.
func (c *codeSize) assign(s *ast.AssignStmt) {
	for i, target := range s.Lhs {
		count := c.expr
		switch t := target.(type) {
		case *ast.AttrGetExpr:
			c.expr(t.Object)
			c.expr(t.Key)
			c.code++
		case *ast.IdentExpr:
			if c.kinds[t] != varLocal {
				c.code++
				count = c.value
			}
		}
		if i < len(s.Rhs) {
			count(s.Rhs[i])
		}
	}
	c.exprs(s.Rhs[min(len(s.Lhs), len(s.Rhs)):])
}

func (c *codeSize) exprs(list []ast.Expr) {
	for _, e := range list {
		c.expr(e)
	}
}

// values counts expressions each of which gets a register of its own.
func (c *codeSize) values(list []ast.Expr) {
	for _, e := range list {
		c.value(e)
	}
}

func (c *codeSize) value(e ast.Expr) {
	before := c.code
	if c.expr(e); c.code == before {
		c.code++
	}
}

// expr counts the instructions of an expression but for those that load a constant
// or a variable, which its user may do without.
func (c *codeSize) expr(e ast.Expr) {
	switch x := e.(type) {
	case *ast.Comma3Expr:
		c.code++
	case *ast.AttrGetExpr:
		c.code++
		c.expr(x.Object)
		c.expr(x.Key)
	case *ast.TableExpr:
		c.code++
		for _, f := range x.Fields {
			if f.Key == nil {
				c.value(f.Value)
				continue
			}
			c.code++
			c.expr(f.Key)
			c.expr(f.Value)
		}
	case *ast.FuncCallExpr:
		c.code++
		if x.Receiver != nil {
			c.code++
			c.expr(x.Receiver)
		} else {
			c.value(x.Func)
		}
		c.values(x.Args)
	case *ast.LogicalOpExpr:
		c.labels += 4
		c.expr(x.Lhs)
		c.expr(x.Rhs)
	case *ast.RelationalOpExpr:
		c.labels++
		c.code += 2
		c.expr(x.Lhs)
		c.expr(x.Rhs)
	case *ast.ArithmeticOpExpr:
		if !slices.ContainsFunc([]ast.Expr{x.Lhs, x.Rhs}, folds) {
			c.code++
		}
		c.expr(x.Lhs)
		c.expr(x.Rhs)
	case *ast.UnaryMinusOpExpr:
		if !folds(x.Expr) {
			c.code++
		}
		c.expr(x.Expr)
	case *ast.UnaryNotOpExpr:
		c.expr(x.Expr)
	case *ast.FunctionExpr:
		c.code++
		c.function(x.Stmts, x.Line())
	}
}

// folds tells whether an operand may be known to the compiler.
func folds(e ast.Expr) bool {
	switch e.(type) {
	case *ast.NumberExpr, *ast.ArithmeticOpExpr, *ast.UnaryMinusOpExpr:
		return true
	}
	return false
}
