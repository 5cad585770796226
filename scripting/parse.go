package scripting

import (
	"fmt"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// Bounds of a source's shape. The first three are Lua 5.1's own.
const (
	maxSyntaxLevels = 200
	maxLocals       = 200
	maxUpvalues     = 60
	// maxChain bounds what the grammar lets repeat without nesting and a
	// compiler walks recursively or again and again: a+a+a, x.y.z, elseif.
	maxChain = 4096
	// maxConstants is how many constants a function may have.
	maxConstants = 1<<18 - 1
	// maxCompileWork bounds, in steps of a few nanoseconds, linear searches
	// through scopes, and through constants by the virtual machine's compiler, which
	// a source of one megabyte can otherwise make last for minutes.
	maxCompileWork = 1 << 27
	// functionWork is what a function costs the virtual machine's compiler by
	// itself: 20 KB that it takes and drops again.
	functionWork = 1 << 13
)

const tooComplex = "chunk is too complex to compile"

// varKind says what a name means where it stands.
type varKind uint8

const (
	varGlobal varKind = iota
	varLocal
	varUpvalue
)

// chunkTree is a parsed source.
type chunkTree struct {
	stmts []ast.Stmt
	// kinds has the names that are not globals.
	kinds map[*ast.IdentExpr]varKind
	// consts has how many different constants each function has; nil is the main chunk.
	consts map[*ast.FunctionExpr]int
	// work is what the virtual machine's compiler will have with the tree, as far as the
	// second engine's has not.
	work int
}

// parseChunk parses src into gopher-lua's syntax tree. It is a recursive descent
// parser with Lua 5.1's grammar, limits and error texts; errors are of the form
// "chunk:line: text near 'token'". It takes time linear in the source, and what
// it accepts costs a compiler at most maxCompileWork, beside the tree's work.
func parseChunk(src, chunk string) (tree chunkTree, err error) {
	p := &parser{lex: lexer{src: src, line: 1, chunk: chunk}, kinds: map[*ast.IdentExpr]varKind{}, consts: map[*ast.FunctionExpr]int{}}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *syntaxError:
			err = e
		default:
			panic(e)
		}
	}()
	p.openFunc(0)
	p.fs.vararg = true
	p.next()
	stmts := p.block()
	p.check(tkEOF)
	p.consts[nil] = len(p.fs.consts)
	return chunkTree{stmts, p.kinds, p.consts, p.vmWork}, nil
}

// funcScope is one function being parsed.
type funcScope struct {
	parent   *funcScope
	line     int // 0 for the main chunk
	vararg   bool
	locals   []string
	upvalues []string
	loops    int
	consts   map[string]struct{}
}

type parser struct {
	lex        lexer
	tok, ahead token
	hasAhead   bool
	line       int // of the current token
	lastLine   int // of the token before it
	fs         *funcScope
	levels     int
	scopes     int // blocks and locals open, of all functions
	work       int
	vmWork     int
	kinds      map[*ast.IdentExpr]varKind
	consts     map[*ast.FunctionExpr]int
	closed     ast.Expr // the last expression in parentheses
}

func (p *parser) next() {
	p.lastLine = p.lex.line
	if p.hasAhead {
		p.tok, p.hasAhead = p.ahead, false
	} else {
		p.tok = p.lex.next()
	}
	p.line = p.lex.line
}

// discharge says that a variable or field is read now, after the token behind it was
// taken: to Lua it stands on the line of that, but for one that parentheses closed.
func (p *parser) discharge(e ast.Expr) {
	if e == p.closed {
		return
	}
	switch e.(type) {
	case *ast.IdentExpr, *ast.AttrGetExpr:
		e.SetLine(p.lastLine)
	}
}

func (p *parser) fail(msg string) {
	p.lex.fail(msg, p.tok.near())
}

func (p *parser) expected(kind int) { p.fail("'" + tokenText(kind) + "' expected") }

func (p *parser) check(kind int) {
	if p.tok.kind != kind {
		p.expected(kind)
	}
}

func (p *parser) expect(kind int) {
	p.check(kind)
	p.next()
}

func (p *parser) accept(kind int) bool {
	if p.tok.kind == kind {
		p.next()
		return true
	}
	return false
}

// match expects the token that closes what `who` opened at line.
func (p *parser) match(what, who, line int) {
	if p.tok.kind == what {
		p.next()
		return
	}
	if line == p.lex.line {
		p.expected(what)
	}
	p.fail(fmt.Sprintf("'%s' expected (to close '%s' at line %d)", tokenText(what), tokenText(who), line))
}

func (p *parser) name() string {
	p.check(tkName)
	s := p.tok.text
	p.next()
	return s
}

func (p *parser) enter() {
	if p.levels++; p.levels > maxSyntaxLevels {
		p.lex.fail("chunk has too many syntax levels", "")
	}
}

func (p *parser) leave() { p.levels-- }

func (p *parser) chain(n int) {
	if n > maxChain {
		p.lex.fail("chunk has too long a chain of operators (limit is "+strconv.Itoa(maxChain)+")", "")
	}
	p.pay(n)
}

// pay accounts for work that the compiler will have with the source.
func (p *parser) pay(n int) {
	if p.work += n; p.work > maxCompileWork {
		p.lex.fail(tooComplex, "")
	}
}

// constant accounts for a constant: the virtual machine's compiler compares it with all
// others of the function.
func (p *parser) constant(key string) {
	if p.fs.consts == nil {
		p.fs.consts = map[string]struct{}{}
	}
	p.vmWork += len(p.fs.consts)
	p.fs.consts[key] = struct{}{}
	if len(p.fs.consts) > maxConstants {
		panic(&syntaxError{"constant table overflow"})
	}
}

func (p *parser) limit(what string, n int) {
	if p.fs.line == 0 {
		p.lex.fail(fmt.Sprintf("main function has more than %d %s", n, what), "")
	}
	p.lex.fail(fmt.Sprintf("function at line %d has more than %d %s", p.fs.line, n, what), "")
}

func (p *parser) openFunc(line int) {
	p.vmWork += functionWork
	p.fs = &funcScope{parent: p.fs, line: line}
	p.scopes++
}

func (p *parser) closeFunc() {
	p.scopes -= 1 + len(p.fs.locals)
	p.fs = p.fs.parent
}

func (p *parser) declare(name string) {
	if len(p.fs.locals) >= maxLocals {
		p.limit("local variables", maxLocals)
	}
	p.fs.locals = append(p.fs.locals, name)
	p.scopes++
}

// scoped parses with f and forgets the locals it declared.
func (p *parser) scoped(f func()) {
	n := len(p.fs.locals)
	p.scopes++
	f()
	p.scopes -= 1 + len(p.fs.locals) - n
	p.fs.locals = p.fs.locals[:n]
}

func (p *parser) resolve(fs *funcScope, name string) varKind {
	if fs == nil {
		return varGlobal
	}
	for i := len(fs.locals) - 1; i >= 0; i-- {
		if fs.locals[i] == name {
			return varLocal
		}
	}
	for _, u := range fs.upvalues {
		if u == name {
			return varUpvalue
		}
	}
	if p.resolve(fs.parent, name) == varGlobal {
		return varGlobal
	}
	if len(fs.upvalues) >= maxUpvalues {
		p.limit("upvalues", maxUpvalues)
	}
	fs.upvalues = append(fs.upvalues, name)
	return varUpvalue
}

func (p *parser) variable(name string, line int) *ast.IdentExpr {
	e := &ast.IdentExpr{Value: name}
	e.SetLine(line)
	p.pay(p.scopes)
	if kind := p.resolve(p.fs, name); kind != varGlobal {
		p.kinds[e] = kind
	} else {
		p.constant(name)
	}
	return e
}

func (p *parser) str(s string, line int) *ast.StringExpr {
	e := &ast.StringExpr{Value: s}
	e.SetLine(line)
	p.constant(s)
	return e
}

func blockEnds(kind int) bool {
	switch kind {
	case tkElse, tkElseif, tkEnd, tkEOF, tkUntil:
		return true
	}
	return false
}

// block parses statements until a token that ends a block.
func (p *parser) block() (stmts []ast.Stmt) {
	p.enter()
	p.scoped(func() { stmts = p.statements() })
	p.leave()
	return stmts
}

func (p *parser) statements() []ast.Stmt {
	stmts := []ast.Stmt{}
	for last := false; !last && !blockEnds(p.tok.kind); p.accept(';') {
		var s ast.Stmt
		s, last = p.statement()
		if s != nil {
			stmts = append(stmts, s)
		}
	}
	return stmts
}

func at[S ast.PositionHolder](s S, line, last int) S {
	s.SetLine(line)
	s.SetLastLine(last)
	return s
}

// statement parses one statement and says whether it must be its block's last.
func (p *parser) statement() (ast.Stmt, bool) {
	line := p.line
	switch p.tok.kind {
	case tkIf:
		return p.ifStat(line), false
	case tkWhile:
		p.next()
		cond := p.expr()
		p.expect(tkDo)
		p.fs.loops++
		body := p.block()
		p.fs.loops--
		p.match(tkEnd, tkWhile, line)
		return at(&ast.WhileStmt{Condition: cond, Stmts: body}, line, p.lastLine), false
	case tkDo:
		p.next()
		body := p.block()
		p.match(tkEnd, tkDo, line)
		return at(&ast.DoBlockStmt{Stmts: body}, line, p.lastLine), false
	case tkFor:
		return p.forStat(line), false
	case tkRepeat:
		p.next()
		s := &ast.RepeatStmt{}
		p.enter()
		p.fs.loops++
		p.scoped(func() { // the condition sees the body's locals
			s.Stmts = p.statements()
			p.match(tkUntil, tkRepeat, line)
			s.Condition = p.expr()
		})
		p.fs.loops--
		p.leave()
		return at(s, line, p.lastLine), false
	case tkFunction:
		return p.funcStat(line), false
	case tkLocal:
		p.next()
		if p.accept(tkFunction) {
			name := p.name()
			p.declare(name)
			f := p.body(nil, line)
			return at(&ast.LocalAssignStmt{Names: []string{name}, Exprs: []ast.Expr{f}}, line, p.lastLine), false
		}
		return p.localStat(line), false
	case tkReturn:
		p.next()
		s := at(&ast.ReturnStmt{}, line, line)
		if !blockEnds(p.tok.kind) && p.tok.kind != ';' {
			s.Exprs = p.exprList()
		}
		return s, true
	case tkBreak:
		p.next()
		if p.fs.loops == 0 {
			p.fail("no loop to break")
		}
		return at(&ast.BreakStmt{}, line, line), true
	}
	return p.exprStat(line), false
}

func (p *parser) ifStat(line int) ast.Stmt {
	cond := func() (ast.Expr, []ast.Stmt) {
		p.next()
		e := p.expr()
		p.expect(tkThen)
		return e, p.block()
	}
	first := at(&ast.IfStmt{}, line, line)
	first.Condition, first.Then = cond()
	cur, n := first, 0
	for p.tok.kind == tkElseif {
		n++
		p.chain(n)
		p.scopes++ // an else within an else, to the compiler
		s := at(&ast.IfStmt{}, p.line, p.line)
		s.Condition, s.Then = cond()
		cur.Else = []ast.Stmt{s}
		cur = s
	}
	if p.accept(tkElse) {
		cur.Else = p.block()
	}
	p.scopes -= n
	p.match(tkEnd, tkIf, line)
	first.SetLastLine(p.lastLine)
	return first
}

func (p *parser) forStat(line int) (s ast.Stmt) {
	p.next()
	name := p.name()
	p.scoped(func() {
		switch p.tok.kind {
		case '=':
			p.next()
			f := &ast.NumberForStmt{Name: name}
			f.Init = p.expr()
			p.expect(',')
			f.Limit = p.expr()
			if p.accept(',') {
				f.Step = p.expr()
			}
			do := p.line // where the loop begins, and says what is wrong with its bounds
			f.Stmts = p.forBody(line, []string{name})
			s = at(f, do, p.lastLine)
		case ',', tkIn:
			names := []string{name}
			for p.accept(',') {
				names = append(names, p.name())
			}
			p.expect(tkIn)
			exprLine := p.line
			f := &ast.GenericForStmt{Names: names, Exprs: p.exprList()}
			f.Stmts = p.forBody(line, names)
			s = at(f, exprLine, p.lastLine)
		default:
			p.fail("'=' or 'in' expected")
		}
	})
	return s
}

func (p *parser) forBody(line int, names []string) []ast.Stmt {
	for _, hidden := range []string{"(for a)", "(for b)", "(for c)"} {
		p.declare(hidden)
	}
	for _, n := range names {
		p.declare(n)
	}
	p.expect(tkDo)
	p.fs.loops++
	body := p.block()
	p.fs.loops--
	p.match(tkEnd, tkFor, line)
	return body
}

func (p *parser) funcStat(line int) ast.Stmt {
	p.next()
	var target ast.Expr = p.variable(p.name(), p.lastLine)
	method := false
	for n := 0; p.tok.kind == '.' || p.tok.kind == ':'; n++ {
		p.chain(n)
		method = p.tok.kind == ':'
		p.next()
		key := p.str(p.name(), p.lastLine)
		target = at(&ast.AttrGetExpr{Object: target, Key: key}, p.lastLine, p.lastLine)
		if method {
			break
		}
	}
	var params []string
	if method {
		params = []string{"self"}
	}
	f := p.body(params, line)
	return at(&ast.AssignStmt{Lhs: []ast.Expr{target}, Rhs: []ast.Expr{f}}, line, p.lastLine)
}

func (p *parser) localStat(line int) ast.Stmt {
	s := &ast.LocalAssignStmt{Exprs: []ast.Expr{}}
	for {
		s.Names = append(s.Names, p.name())
		if len(p.fs.locals)+len(s.Names) > maxLocals {
			p.limit("local variables", maxLocals)
		}
		if !p.accept(',') {
			break
		}
	}
	if p.accept('=') {
		s.Exprs = p.exprList()
		if _, ok := s.Exprs[0].(*ast.FunctionExpr); ok && len(s.Names) == 1 && len(s.Exprs) == 1 {
			// gopher-lua takes this form for "local function", in whose body
			// the name already means the new local; a second value keeps it apart.
			s.Exprs = append(s.Exprs, at(&ast.NilExpr{}, p.lastLine, p.lastLine))
		}
	}
	for _, n := range s.Names {
		p.declare(n)
	}
	return at(s, line, p.lastLine)
}

// exprStat parses an assignment or a call.
func (p *parser) exprStat(line int) ast.Stmt {
	e, kind := p.suffixed()
	if kind == exprCall {
		return at(&ast.FuncCallStmt{Expr: e}, line, p.lastLine)
	}
	s := &ast.AssignStmt{Lhs: []ast.Expr{e}}
	for {
		if kind != exprVar {
			p.fail("syntax error")
		}
		if !p.accept(',') {
			break
		}
		e, kind = p.suffixed()
		if most := maxSyntaxLevels - p.levels; len(s.Lhs) > most { // C calls itself for each
			p.limit("variables in assignment", most)
		}
		s.Lhs = append(s.Lhs, e)
	}
	p.expect('=')
	s.Rhs = p.exprList()
	for _, e := range s.Lhs { // they are stored to at the end
		e.SetLine(p.lastLine)
	}
	return at(s, line, p.lastLine)
}

func (p *parser) exprList() []ast.Expr {
	list := []ast.Expr{p.expr()}
	for p.accept(',') {
		p.discharge(list[len(list)-1])
		list = append(list, p.expr())
	}
	return list
}

// body parses parameters and statements of a function; params are those the
// syntax brings (self).
func (p *parser) body(params []string, line int) *ast.FunctionExpr {
	p.openFunc(line)
	for _, n := range params {
		p.declare(n)
	}
	list := &ast.ParList{Names: append([]string{}, params...)}
	p.expect('(')
	if p.tok.kind != ')' {
		for {
			switch p.tok.kind {
			case tkName:
				list.Names = append(list.Names, p.tok.text)
				p.declare(p.tok.text)
				p.next()
			case tkDots:
				p.next()
				list.HasVargs = true
				p.fs.vararg = true
				p.declare("arg")
			default:
				p.fail("<name> or '...' expected")
			}
			if list.HasVargs || !p.accept(',') {
				break
			}
		}
	}
	p.expect(')')
	f := &ast.FunctionExpr{ParList: list, Stmts: p.block()}
	p.match(tkEnd, tkFunction, line)
	p.consts[f] = len(p.fs.consts)
	p.closeFunc()
	return at(f, line, p.lastLine)
}

type exprKind uint8

const (
	exprOther exprKind = iota
	exprVar
	exprCall
)

// suffixed parses a variable, a call, or a parenthesised expression with what follows it.
func (p *parser) suffixed() (ast.Expr, exprKind) {
	line := p.line
	var e ast.Expr
	kind := exprOther
	switch p.tok.kind {
	case tkName:
		name := p.name()
		e, kind = p.variable(name, line), exprVar
	case '(':
		p.next()
		e = p.expr()
		p.match(')', '(', line)
		p.discharge(e)
		p.closed = e
		single(e) // parentheses cut a list of values to one
	default:
		p.fail("unexpected symbol")
	}
	for n := 1; ; n++ {
		line := p.line
		switch p.tok.kind {
		case '.':
			p.next()
			key := p.str(p.name(), line)
			e, kind = at(&ast.AttrGetExpr{Object: e, Key: key}, p.lastLine, p.lastLine), exprVar
		case '[':
			p.next()
			key := p.expr()
			p.expect(']')
			e, kind = at(&ast.AttrGetExpr{Object: e, Key: key}, p.lastLine, p.lastLine), exprVar
		case ':':
			p.next()
			method := p.name()
			p.discharge(e)
			p.constant(method)
			line = p.line
			e, kind = at(&ast.FuncCallExpr{Receiver: e, Method: method, Args: p.args()}, line, line), exprCall
		case '(', tkString, '{':
			if p.tok.kind == '(' && p.line != p.lastLine {
				p.fail("ambiguous syntax (function call x new statement)")
			}
			e, kind = at(&ast.FuncCallExpr{Func: e, Args: p.args()}, line, line), exprCall
		default:
			return e, kind
		}
		p.chain(n)
	}
}

func (p *parser) args() []ast.Expr {
	line := p.line
	switch p.tok.kind {
	case '(':
		if p.line != p.lastLine {
			p.fail("ambiguous syntax (function call x new statement)")
		}
		p.next()
		if p.accept(')') {
			return []ast.Expr{}
		}
		list := p.exprList()
		p.match(')', '(', line)
		p.discharge(list[len(list)-1])
		return list
	case '{':
		return []ast.Expr{p.table()}
	case tkString:
		e := p.str(p.tok.text, line)
		p.next()
		return []ast.Expr{e}
	}
	p.fail("function arguments expected")
	return nil
}

func (p *parser) table() ast.Expr {
	line := p.line
	t := &ast.TableExpr{Fields: []*ast.Field{}}
	p.expect('{')
	for p.tok.kind != '}' {
		f := &ast.Field{}
		switch p.tok.kind {
		case tkName:
			if !p.hasAhead {
				p.ahead, p.hasAhead = p.lex.next(), true
			}
			if p.ahead.kind != '=' {
				f.Value = p.expr()
				break
			}
			f.Key = p.str(p.name(), p.line)
			p.expect('=')
			f.Value = p.expr()
		case '[':
			p.next()
			f.Key = p.expr()
			p.expect(']')
			p.expect('=')
			f.Value = p.expr()
		default:
			f.Value = p.expr()
		}
		if f.Key != nil {
			f.Key.SetLastLine(p.lastLine) // where it is stored
		}
		t.Fields = append(t.Fields, f)
		if !p.accept(',') && !p.accept(';') {
			break
		}
		if f.Key == nil && p.tok.kind != '}' {
			p.discharge(f.Value)
		}
	}
	p.match('}', '{', line)
	if n := len(t.Fields); n > 0 && t.Fields[n-1].Key == nil {
		p.discharge(t.Fields[n-1].Value)
	}
	return at(t, line, p.lastLine)
}

func (p *parser) simple() ast.Expr {
	line := p.line
	var e ast.Expr
	switch p.tok.kind {
	case tkNumber:
		// the shortest form that the compiler reads back as the same number
		v := strconv.FormatFloat(p.tok.num, 'g', -1, 64)
		p.constant("#" + v)
		e = &ast.NumberExpr{Value: v}
	case tkString:
		e = p.str(p.tok.text, line)
	case tkNil:
		e = &ast.NilExpr{}
	case tkTrue:
		e = &ast.TrueExpr{}
	case tkFalse:
		e = &ast.FalseExpr{}
	case tkDots:
		if !p.fs.vararg {
			p.fail("cannot use '...' outside a vararg function")
		}
		e = &ast.Comma3Expr{}
	case '{':
		return p.table()
	case tkFunction:
		p.next()
		return p.body(nil, line)
	default:
		e, _ = p.suffixed()
		return e
	}
	p.next()
	return at(e, line, line)
}

// priorities of binary operators, left and right; 0 is none.
func priority(kind int) (left, right int) {
	switch kind {
	case '+', '-':
		return 6, 6
	case '*', '/', '%':
		return 7, 7
	case '^':
		return 10, 9
	case tkConcat:
		return 5, 4
	case tkNe, tkEq, '<', tkLe, '>', tkGe:
		return 3, 3
	case tkAnd:
		return 2, 2
	case tkOr:
		return 1, 1
	}
	return 0, 0
}

const unaryPriority = 8

func (p *parser) expr() ast.Expr { return p.subexpr(0) }

func (p *parser) subexpr(limit int) ast.Expr {
	p.enter()
	defer p.leave()
	var e ast.Expr
	switch p.tok.kind {
	case tkNot:
		p.next()
		e = &ast.UnaryNotOpExpr{Expr: p.subexpr(unaryPriority)}
		at(e, p.lastLine, p.lastLine)
	case '-':
		p.next()
		e = &ast.UnaryMinusOpExpr{Expr: p.subexpr(unaryPriority)}
		at(e, p.lastLine, p.lastLine)
	case '#':
		p.next()
		e = &ast.UnaryLenOpExpr{Expr: p.subexpr(unaryPriority)}
		at(e, p.lastLine, p.lastLine)
	default:
		e = p.simple()
	}
	for n := 1; ; n++ {
		op := p.tok.kind
		left, right := priority(op)
		if left <= limit {
			return e
		}
		p.chain(n)
		p.next()
		p.discharge(e)
		rhs := p.subexpr(right)
		e = at(binary(op, e, rhs), p.lastLine, p.lastLine)
	}
}

func binary(op int, lhs, rhs ast.Expr) ast.Expr {
	switch op {
	case tkAnd, tkOr:
		return &ast.LogicalOpExpr{Operator: tokenText(op), Lhs: lhs, Rhs: rhs}
	case tkConcat:
		return &ast.StringConcatOpExpr{Lhs: lhs, Rhs: rhs}
	case tkNe, tkEq, '<', tkLe, '>', tkGe:
		return &ast.RelationalOpExpr{Operator: tokenText(op), Lhs: lhs, Rhs: rhs}
	}
	return &ast.ArithmeticOpExpr{Operator: tokenText(op), Lhs: lhs, Rhs: rhs}
}
