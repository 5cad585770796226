package scripting

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/text"
)

// matcher is one search for a script on the machine.
type matcher struct {
	text.Matcher
	L *lua.LState
}

func newMatcher(L *lua.LState, src, pat string) *matcher {
	return &matcher{text.Matcher{Failer: failer{L}, Account: &runOf(L).Account, Src: src, Pat: pat}, L}
}

// failer raises errors of the library function that L runs.
type failer struct{ L *lua.LState }

func (f failer) Fail(msg string) { raise(f.L, 1, msg) }
func (f failer) Ended()          { runOf(f.L).abort(f.L) }

// value is capture i, or the whole match src[s:e] when the pattern has none.
func (m *matcher) value(i, s, e int) lua.LValue {
	c := m.Capture(i, s, e)
	if c.Position > 0 {
		return number(float64(c.Position))
	}
	m.Account.Mem += 32
	return lua.LString(c.Text)
}

// push pushes all captures, or the whole match.
func (m *matcher) push(s, e int) int {
	n := m.Captures()
	for i := range n {
		m.L.Push(m.value(i, s, e))
	}
	return n
}
