package scripting

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/text"
)

// unknownError is the text of an uncaught error without one, at which Redis 7.0 crashes.
const unknownError = "ERR unknown error"

// uncaught is the error that a table with a metatable makes when nobody catches it.
// Redis's handler stores in it where it was raised, and Redis reads that and the text from it:
// all by way of the metamethods. What one of them raises at the first takes the table's place.
func (st *state) uncaught(t *lua.LTable) error {
	r, L := &st.run, st.L
	r.handled = true
	if _, ok := st.real[t]; ok {
		return &Failure{Uncaught, "ERR err_handler_def:10: " + readOnlyTable + place(r.name(), "@err_handler_def", "10")}
	}
	source, number := r.place(), r.line
	if err := st.protected(func() {
		L.SetField(t, "source", lua.LString(source))
		L.SetField(t, "line", lua.LNumber(number))
	}); err != nil {
		return err
	}
	var fields [3]lua.LValue
	if err := st.protected(func() {
		for i, name := range []string{"err", "source", "line"} {
			fields[i] = L.GetField(t, name)
		}
		r.inv.Told = lua.LVAsBool(L.GetField(t, toldField))
	}); err != nil {
		if r.Stop != nil {
			return err
		}
		return &Failure{Uncaught, unknownError + st.trailer()} // Redis 7.0 crashes
	}
	reply, ok := textOf(fields[0])
	if !ok {
		reply = unknownError
	}
	reply = text.CString(reply)
	at, ok1 := textOf(fields[1])
	line, ok2 := textOf(fields[2])
	if ok1 && ok2 && !r.unnamed {
		reply += place(r.name(), at, line)
	}
	return &Failure{Uncaught, reply}
}
