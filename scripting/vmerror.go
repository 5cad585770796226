package scripting

import (
	"reflect"
	"regexp"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// The machine's own error texts, which mendError turns into Lua's.
var (
	vmIndex   = regexp.MustCompile(`(?s)^attempt to index a non-table object\((\w+)\) with key '(.*)'$`)
	vmArith   = regexp.MustCompile(`^cannot perform \w* operation between (\w+) and (\w+)$`)
	vmCompare = regexp.MustCompile(`^attempt to compare (\w+) with (\w+)$`)
)

// mendError gives an error text of the machine Lua's wording. What an operand is
// called is found as Lua finds it, from the instruction that failed; the
// machine does not tell which it was, so the instructions of the line are tried
// against the registers.
func mendError(L *lua.LState, msg string) string {
	pos, text := "", strings.TrimPrefix(msg, " ")
	f := frameOf(L, 0)
	if f.proto != nil {
		prefix := where(L, 0)
		if !strings.HasPrefix(text, prefix) {
			return text
		}
		pos, text = prefix, strings.TrimPrefix(text, prefix)
	}
	switch {
	case strings.HasPrefix(text, "attempt to index a non-table"):
		m := vmIndex.FindStringSubmatch(text)
		if m == nil {
			break
		}
		reg, ok := f.find(func(i instr) (int, bool) {
			switch i.op() {
			case lua.OP_GETTABLE, lua.OP_GETTABLEKS, lua.OP_SELF:
				return i.b(), f.typeAt(i.b()) == m[1] && f.keyIs(i.c(), m[2])
			case lua.OP_SETTABLE, lua.OP_SETTABLEKS:
				return i.a(), f.typeAt(i.a()) == m[1] && f.keyIs(i.b(), m[2])
			}
			return 0, false
		})
		return pos + "attempt to index " + f.describe(reg, ok, m[1])
	case text == "attempt to call a non-function object":
		reg, ok := f.find(func(i instr) (int, bool) {
			switch i.op() {
			case lua.OP_CALL, lua.OP_TAILCALL:
				return i.a(), !f.callable(i.a()) && f.loaded(i.a())
			}
			return 0, false
		})
		kind := "nil"
		if ok {
			kind = f.typeAt(reg)
		} else if gen, isFor := f.forGenerator(); isFor {
			return pos + "attempt to call a " + f.typeAt(gen) + " value"
		}
		return pos + "attempt to call " + f.describe(reg, ok, kind)
	case strings.HasPrefix(text, "cannot perform"):
		m := vmArith.FindStringSubmatch(text)
		if m == nil {
			break
		}
		return pos + f.arithmeticProblem(m[1], m[2])
	case text == "__unm undefined":
		kind := "nil"
		reg, ok := f.find(func(i instr) (int, bool) {
			if i.op() != lua.OP_UNM {
				return 0, false
			}
			kind = f.rkType(i.b())
			return i.b(), kind != "number"
		})
		return pos + "attempt to perform arithmetic on " + f.describe(reg, ok, kind)
	case strings.HasPrefix(text, "attempt to compare"):
		if kind := f.uncallable(); kind != "" {
			return pos + "attempt to call a " + kind + " value"
		}
		if m := vmCompare.FindStringSubmatch(text); m != nil && m[1] == m[2] {
			return pos + "attempt to compare two " + m[1] + " values"
		}
	case strings.HasPrefix(text, "for statement "):
		switch text {
		case "for statement init must be a number":
			return pos + "'for' initial value must be a number"
		case "for statement limit must be a number":
			return pos + "'for' limit must be a number"
		case "for statement step must be a number":
			return pos + "'for' step must be a number"
		}
	case text == "registry overflow":
		return pos + "stack overflow"
	case text == "too many recursions in gettable":
		return pos + "loop in gettable"
	case text == "too many recursions in settable":
		return pos + "loop in settable"
	}
	return pos + text
}

// arithmeticProblem is the error of an operation on the line, of which the types of
// the operands are known. Lua blames the first operand that is no number.
func (f *frame) arithmeticProblem(left, right string) string {
	kind := left
	if left == "number" {
		kind = right
	}
	reg, ok := f.find(func(i instr) (int, bool) {
		if op := i.op(); op < lua.OP_ADD || op > lua.OP_POW {
			return 0, false
		}
		if f.rkType(i.b()) != left || f.rkType(i.c()) != right {
			return 0, false
		}
		if left == "number" || left == "string" && f.numeric(i.b()) {
			kind = right
			return i.c(), true
		}
		return i.b(), true
	})
	return "attempt to perform arithmetic on " + f.describe(reg, ok, kind)
}

// instr is one instruction of the machine: op 6 bits, A 8, C 9, B 9.
type instr uint32

func (i instr) op() int { return int(i >> 26) }
func (i instr) a() int  { return int(i>>18) & 0xff }
func (i instr) b() int  { return int(i & 0x1ff) }
func (i instr) c() int  { return int(i>>9) & 0x1ff }
func (i instr) bx() int { return int(i & 0x3ffff) }

// sbx is how far a jump goes.
func (i instr) sbx() int { return i.bx() - 0x1ffff }

// constantBit marks an operand that is a constant rather than a register.
const constantBit = 1 << 8

// frame is one Lua function on the call stack, as far as the machine shows it.
type frame struct {
	L     *lua.LState
	dbg   *lua.Debug
	fn    lua.LValue
	proto *lua.FunctionProto
	line  int
	pc    int // of the instruction that find settled on
	at    int // of the instruction that runs, -1 when the machine does not tell
}

// frameOf is the frame of a level; its proto is nil for a Go function.
func frameOf(L *lua.LState, level int) *frame {
	f := &frame{L: L, at: -1}
	dbg, ok := L.GetStack(level)
	if !ok {
		return f
	}
	fn, err := L.GetInfo("fSl", dbg, nil)
	if err != nil {
		return f
	}
	f.dbg, f.fn, f.line = dbg, fn, dbg.CurrentLine
	if lf, ok := fn.(*lua.LFunction); ok && !lf.IsG {
		f.proto = lf.Proto
		f.at = instructionOf(dbg)
	}
	return f
}

// instructionOf is the index of the instruction that a frame executes. The machine
// has it in a field that it does not export, and has stepped over it already.
func instructionOf(dbg *lua.Debug) int {
	frame := reflect.ValueOf(dbg).Elem().FieldByName("frame")
	if !frame.IsValid() || frame.Kind() != reflect.Pointer || frame.IsNil() {
		return -1
	}
	pc := frame.Elem().FieldByName("Pc")
	if !pc.IsValid() || !pc.CanInt() {
		return -1
	}
	return int(pc.Int()) - 1
}

func (f *frame) register(reg int) lua.LValue {
	if _, v := f.L.GetLocal(f.dbg, reg+1); v != nil {
		return v
	}
	return lua.LNil
}

func (f *frame) typeAt(reg int) string { return typeName(f.register(reg)) }

func (f *frame) rk(x int) lua.LValue {
	if x&constantBit != 0 {
		if k := x &^ constantBit; k < len(f.proto.Constants) {
			return f.proto.Constants[k]
		}
		return lua.LNil
	}
	return f.register(x)
}

func (f *frame) rkType(x int) string { return typeName(f.rk(x)) }

func (f *frame) numeric(x int) bool {
	_, ok := toNumber(f.rk(x))
	return ok
}

func (f *frame) keyIs(x int, text string) bool { return f.rk(x).String() == text }

func (f *frame) callable(reg int) bool {
	return callable(f.L, f.register(reg))
}

// uncallable is the type of the metamethod that the comparison that runs has found
// and cannot call, "" when there is none.
func (f *frame) uncallable() (kind string) {
	f.find(func(i instr) (int, bool) {
		event := map[int]string{lua.OP_LT: "__lt", lua.OP_LE: "__le"}[i.op()]
		if event == "" {
			return 0, false
		}
		fn := metamethod(f.L, f.rk(i.b()), event)
		if fn != lua.LNil && fn.Type() != lua.LTFunction {
			kind = typeName(fn)
		}
		return 0, true
	})
	return kind
}

// find returns the register for which match holds in the instruction that runs,
// or, when it is not known, in one of the line's.
func (f *frame) find(match func(instr) (int, bool)) (int, bool) {
	if f.proto == nil {
		return 0, false
	}
	if f.at >= 0 && f.at < len(f.proto.Code) {
		f.pc = f.at
		return match(instr(f.proto.Code[f.at]))
	}
	for pc, code := range f.proto.Code {
		if f.proto.DbgSourcePositions[pc] != f.line {
			continue
		}
		f.pc = pc
		if reg, ok := match(instr(code)); ok {
			return reg, true
		}
	}
	return 0, false
}

// loaded says whether the register can hold what the code before f.pc put there.
func (f *frame) loaded(reg int) bool {
	for pc := f.pc - 1; pc >= 0; pc-- {
		i := instr(f.proto.Code[pc])
		if op := i.op(); op == lua.OP_MOVE && i.a() == reg {
			return f.register(i.b()) == f.register(reg)
		}
		if i.a() == reg {
			return true
		}
	}
	return true
}

// forGenerator is the register of a for loop's iterator on the line.
func (f *frame) forGenerator() (int, bool) {
	return f.find(func(i instr) (int, bool) { return i.a(), i.op() == lua.OP_TFORLOOP })
}

func (f *frame) describe(reg int, ok bool, kind string) string {
	if ok {
		if o := f.nameOf(reg); o.kind != "" {
			return o.String() + "(a " + kind + " value)"
		}
	}
	return "a " + kind + " value"
}

// nameOf says what the register holds at f.pc: a local variable, or what the last
// instruction that set it loaded.
func (f *frame) nameOf(reg int) operand {
	if reg&constantBit != 0 {
		return operand{}
	}
	if name := f.local(reg); name != "" && name[0] != '(' {
		return operand{"local", name}
	}
	for pc := f.pc - 1; pc >= 0; pc-- {
		i := instr(f.proto.Code[pc])
		if i.op() == lua.OP_SELF && i.a()+1 == reg {
			return operand{}
		}
		if i.a() != reg {
			if op := i.op(); (op == lua.OP_CALL || op == lua.OP_TFORLOOP) && i.a() < reg {
				return operand{}
			}
			continue
		}
		switch i.op() {
		case lua.OP_GETGLOBAL:
			return operand{"global", f.proto.Constants[i.bx()].String()}
		case lua.OP_GETUPVAL:
			if i.b() < len(f.proto.DbgUpvalues) {
				return operand{"upvalue", f.proto.DbgUpvalues[i.b()]}
			}
		case lua.OP_MOVE, lua.OP_MOVEN:
			if i.b() < i.a() {
				at := f.pc
				f.pc = pc
				o := f.nameOf(i.b())
				f.pc = at
				return o
			}
		case lua.OP_GETTABLE, lua.OP_GETTABLEKS:
			return operand{"field", f.keyName(i, pc)}
		case lua.OP_SELF:
			return operand{"method", f.keyName(i, pc)}
		case lua.OP_EQ, lua.OP_LT, lua.OP_LE, lua.OP_JMP, lua.OP_TEST, lua.OP_SETGLOBAL,
			lua.OP_SETTABLE, lua.OP_SETTABLEKS, lua.OP_SETUPVAL, lua.OP_NOP:
			continue // A is no target
		}
		return operand{}
	}
	return operand{}
}

// local is the name of the local variable that lives in a register at f.pc.
func (f *frame) local(reg int) string {
	for _, l := range f.proto.DbgLocals {
		if l.StartPc > f.pc {
			break
		}
		if f.pc < l.EndPc {
			if reg == 0 {
				return l.Name
			}
			reg--
		}
	}
	return ""
}

// keyName is the field that the instruction at pc reads, when it is a constant.
func (f *frame) keyName(i instr, pc int) string {
	k := i.c()
	if k&constantBit == 0 && i.op() == lua.OP_GETTABLEKS {
		// In the head of a for loop the constant is loaded into a register first.
		for pc--; pc >= 0; pc-- {
			if load := instr(f.proto.Code[pc]); load.op() == lua.OP_LOADK && load.a() == k {
				name, _ := f.proto.Constants[load.bx()].(lua.LString)
				return string(name)
			}
		}
	}
	if s, ok := f.rk(k).(lua.LString); ok && k&constantBit != 0 {
		return string(s)
	}
	return "?"
}

// callSite says what the running Go function was called as.
func callSite(L *lua.LState) operand {
	self := frameOf(L, 0).fn
	known := runOf(L).state.names[self]
	f := frameOf(L, 1)
	if f.proto == nil {
		return operand{}
	}
	callee := f.calleeRegister()
	var site, first operand
	_, ok := f.find(func(i instr) (int, bool) {
		if op := i.op(); (op != lua.OP_CALL && op != lua.OP_TAILCALL) || i.a() != callee && f.register(i.a()) != self {
			return 0, false
		}
		// Several calls of the line may use the register: the one whose name
		// is the function's is the likeliest.
		site = f.nameOf(i.a())
		if first.kind == "" {
			first = site
		}
		return 0, known == "" || site.name == known
	})
	if !ok && first.kind == "" {
		if reg, isFor := f.forGenerator(); isFor && f.register(reg) == self {
			return operand{"local", "(for generator)"}
		}
	}
	if !ok {
		return first
	}
	return site
}

// calleeRegister is the register of the function that the frame is calling. The
// machine shows the registers below it.
func (f *frame) calleeRegister() int {
	reg := 0
	for {
		if name, _ := f.L.GetLocal(f.dbg, reg+1); name == "" {
			return reg
		}
		reg++
	}
}

func typeName(v lua.LValue) string {
	if v == nil {
		return "nil"
	}
	return v.Type().String()
}
