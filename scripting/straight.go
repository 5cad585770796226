package scripting

import lua "github.com/yuin/gopher-lua"

// gopher-lua asks a context before each instruction, by way of a channel, which
// takes as long as the instruction. Code without a way back and without calls of
// Lua functions runs each of its instructions at most once: its length is paid for
// beforehand, and the machine has no context while it runs. That is what most lock
// scripts are.

// straight tells whether p is such code: it has no loop and no function, and knows
// nobody who could make one.
func straight(p *lua.FunctionProto) bool {
	if len(p.FunctionPrototypes) != 0 {
		return false
	}
	for _, c := range p.Code {
		switch i := instr(c); i.op() {
		case lua.OP_FORLOOP, lua.OP_FORPREP, lua.OP_TFORLOOP, lua.OP_CLOSURE, lua.OP_SELF, lua.OP_SETGLOBAL:
			return false
		case lua.OP_JMP:
			if i.sbx() < 0 {
				return false
			}
		case lua.OP_GETGLOBAL: // through redis a script reaches no function that calls another
			switch p.Constants[i.bx()] {
			case lua.LString("KEYS"), lua.LString("ARGV"), lua.LString("redis"):
			default:
				return false
			}
		}
	}
	return true
}

// runStraight calls the function on the stack, if its code is straight and the
// account has enough for all of it; otherwise it returns false.
func (st *state) runStraight(s *Script) bool {
	n := len(s.proto.Code)
	if !s.straight || n >= st.run.Left {
		return false
	}
	st.run.Left -= n
	st.L.RemoveContext()
	st.L.Call(0, 1)
	st.L.SetContext(&st.run)
	return true
}

// runSlot is where the registry of a state holds its run, for functions that are
// called while the state has no context.
const runSlot = 1

func runOf(L *lua.LState) *run {
	if r, ok := L.Context().(*run); ok {
		return r
	}
	return L.G.Registry.RawGetInt(runSlot).(*lua.LUserData).Value.(*run)
}
