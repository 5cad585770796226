package scripting

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/text"
)

func strFormat(L *lua.LState) int {
	return pushString(L, text.Format(checkString(L, 1), formatArguments{L}))
}

// formatArguments are those of a call on the machine.
type formatArguments struct{ L *lua.LState }

func (a formatArguments) Want(n int) {
	if n > a.L.GetTop() {
		argError(a.L, n, "no value")
	}
}

func (a formatArguments) Number(n int) float64 { return checkNumber(a.L, n) }
func (a formatArguments) String(n int) string  { return checkString(a.L, n) }
func (a formatArguments) Alloc(n int)          { runOf(a.L).alloc(a.L, n) }
func (a formatArguments) Fail(msg string)      { raise(a.L, 1, msg) }
