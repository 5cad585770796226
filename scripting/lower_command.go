package scripting

import (
	"strconv"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/latchkey-proxy/latchkey/scripting/closure"
)

// A call of redis.call or redis.pcall in a script costs the machine four look-ups
// in tables for the function alone. No script can change what the name means, so the
// function becomes a constant; and what is known of the command's words, which are
// literals and KEYS and ARGV at fixed places, it knows itself rather than as
// arguments.

// commandWord is how one word of a command is found.
type commandWord struct {
	from commandSource
	at   int    // in KEYS or ARGV, from 0
	text []byte // of a literal
}

type commandSource uint8

const (
	wordLiteral commandSource = iota
	wordKey
	wordArg
	wordStack // an argument of the call
	wordRest  // all arguments that are left
)

const (
	// maxCommandSites bounds the places in one function that get a function of
	// their own: the compiler searches all constants for each one.
	maxCommandSites = 128
	// maxCommandConsts is how many constants such a function may have at most.
	maxCommandConsts = 4096
)

// command notes a call of redis.call or redis.pcall, for when the whole script is known.
func (lo *lowering) command(x *ast.FuncCallExpr) {
	if !lo.script || len(x.Args) == 0 || lo.fn.sites >= maxCommandSites || lo.fn.consts > maxCommandConsts {
		return
	}
	f, ok := x.Func.(*ast.AttrGetExpr)
	if !ok {
		return
	}
	id, ok := f.Object.(*ast.IdentExpr)
	if !ok || id.Value != "redis" || lo.kinds[id] != varGlobal {
		return
	}
	name, ok := f.Key.(*ast.StringExpr)
	if !ok || name.Value != "call" && name.Value != "pcall" {
		return
	}
	lo.work += lo.fn.consts + lo.fn.sites
	lo.fn.sites++
	lo.commands = append(lo.commands, commandCall{x, name.Value == "call"})
}

type commandCall struct {
	call   *ast.FuncCallExpr
	raises bool
}

// returned makes the call of a command that is all that a statement returns an ordinary
// call: it has one value, and the machine would take away the frame of its caller.
func (lo *lowering) returned(exprs []ast.Expr, noted []commandCall) {
	if len(exprs) != 1 {
		return
	}
	for _, c := range noted {
		if exprs[0] == c.call {
			c.call.AdjustRet = true
		}
	}
}

// plan gives the calls that were noted their functions. The arguments are lowered.
func (lo *lowering) plan() {
	for _, c := range lo.commands {
		x := c.call
		var words []commandWord
		var left []ast.Expr
		for i, a := range x.Args {
			w := lo.word(a)
			switch {
			case w.from < wordStack:
			case i == len(x.Args)-1 && several(a):
				w.from = wordRest
				fallthrough
			default:
				left = append(left, a)
			}
			words = append(words, w)
		}
		callee := at(&ast.StringExpr{Value: lo.token + strconv.Itoa(len(lo.sites))}, x.Line(), x.Line())
		lo.sites = append(lo.sites, commandSite(words, c.raises))
		x.Func, x.Args = callee, left
	}
}

// several says that an expression may have more or fewer values than one.
func several(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.FuncCallExpr:
		return !x.AdjustRet
	case *ast.Comma3Expr:
		return !x.AdjustRet
	}
	return false
}

func (lo *lowering) word(e ast.Expr) commandWord {
	switch x := e.(type) {
	case *ast.StringExpr:
		return commandWord{from: wordLiteral, text: []byte(x.Value)}
	case *ast.NumberExpr:
		if f, err := strconv.ParseFloat(x.Value, 64); err == nil {
			return commandWord{from: wordLiteral, text: appendArgument(nil, f)}
		}
	case *ast.AttrGetExpr:
		n, ok := x.Key.(*ast.NumberExpr)
		if !ok || lo.argsEscape || !lo.isArgs(x.Object) {
			break
		}
		i, err := strconv.Atoi(n.Value)
		if err != nil || i < 1 {
			break
		}
		if x.Object.(*ast.IdentExpr).Value == "KEYS" {
			return commandWord{from: wordKey, at: i - 1}
		}
		return commandWord{from: wordArg, at: i - 1}
	}
	return commandWord{from: wordStack}
}

// commandSite is the function for one place of redis.call or redis.pcall.
func commandSite(words []commandWord, raises bool) lua.LGFunction {
	var at *closure.Place
	if words[0].from == wordLiteral {
		at = new(closure.Place)
	}
	return func(L *lua.LState) int {
		r := runOf(L)
		r.pay(L, callCost)
		argv, problem := r.state.args.planned(L, r.inv, words)
		v, failed := r.command(L, argv, problem, at)
		if failed && raises {
			L.Error(v, 0)
		}
		L.Push(v)
		return 1
	}
}

// planned gathers the words of a command.
func (a *argBuffer) planned(L *lua.LState, inv *Invocation, words []commandWord) (argv [][]byte, problem string) {
	a.begin()
	arg := 1
	if len(words) > 1 && cap(a.argv) > 1 && words[1].from == wordKey && words[0].from == wordLiteral { // what lock scripts call
		if words[1].at >= len(inv.Keys) {
			return nil, wrongArguments
		}
		name, key := words[0].text, inv.Keys[words[1].at]
		a.argv = a.argv[:2]
		a.argv[0], a.argv[1] = name, key
		a.size = len(name) + len(key)
		if words = words[2:]; len(words) == 0 {
			return a.argv, ""
		}
	}
	for i := range words {
		ok := true
		switch w := &words[i]; w.from {
		case wordLiteral:
			a.append(w.text)
		case wordKey:
			if ok = w.at < len(inv.Keys); ok {
				a.append(inv.Keys[w.at])
			}
		case wordArg:
			if ok = w.at < len(inv.Args); ok {
				a.append(inv.Args[w.at])
			}
		case wordStack:
			ok = a.add(L.Get(arg))
			arg++
		case wordRest:
			for n := L.GetTop(); arg <= n && ok; arg++ {
				ok = a.add(L.Get(arg))
			}
		}
		if !ok {
			return nil, wrongArguments
		}
	}
	if len(a.argv) == 0 {
		return nil, noArguments
	}
	return a.argv, ""
}

// ownUpvalues are KEYS and ARGV.
const ownUpvalues = 2

// ownWords has the main chunk find KEYS and ARGV as its upvalues, where it indexes
// them, rather than by their names in the table of globals, which takes three times as
// long. The tables are the state's: those of a script that could keep or change them
// are its own, and one that stores globals may not reach for others.
func (s *Script) ownWords() {
	p := s.proto
	if s.library || s.argsEscape || s.globals.stores || p.NumUpvalues != 0 {
		return
	}
	for pc, code := range p.Code[:len(p.Code)-1] {
		i, next := instr(code), instr(p.Code[pc+1])
		if i.op() != lua.OP_GETGLOBAL || next.op() != lua.OP_GETTABLE && next.op() != lua.OP_GETTABLEKS || next.b() != i.a() {
			continue
		}
		for at, name := range [...]lua.LString{"KEYS", "ARGV"} {
			if p.Constants[i.bx()] == name {
				p.Code[pc] = uint32(lua.OP_GETUPVAL<<26 | i.a()<<18 | at)
				p.NumUpvalues = ownUpvalues
			}
		}
	}
}

// globalUse is what a script's code does with the globals.
type globalUse struct {
	keys, argv bool // it reads KEYS or ARGV as tables
	stores     bool // it stores to some
}

// look adds what a function and those within it do.
func (u *globalUse) look(p *lua.FunctionProto) {
	for _, c := range p.Code {
		switch i := instr(c); i.op() {
		case lua.OP_SETGLOBAL:
			u.stores = true
		case lua.OP_GETGLOBAL:
			switch p.Constants[i.bx()] {
			case lua.LString("KEYS"):
				u.keys = true
			case lua.LString("ARGV"):
				u.argv = true
			}
		}
	}
	for _, inner := range p.FunctionPrototypes {
		u.look(inner)
	}
}
