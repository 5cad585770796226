package closure

import (
	"fmt"
	"strconv"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/scripting/numeral"
	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// What messages call a script and a library, as Redis 7 does.
const (
	scriptChunk  = "user_script"
	libraryChunk = "user_function"
)

// raised is a Lua error on its way to a pcall.
type raised struct {
	v      Value
	source string // of the function that raised it, as debug.getinfo says
	line   int
}

// operand is what an error message calls a value: local 'x', field 'y'.
type operand struct{ kind, name string }

func (o operand) String() string {
	if o.kind == "" {
		return ""
	}
	return o.kind + " '" + text.CString(o.name) + "' "
}

func (m *Machine) position(line int) string { return m.chunk + ":" + strconv.Itoa(line) + ": " }

// throw raises an error of the running Lua function at a line.
func (m *Machine) throw(line int, msg string) {
	panic(&raised{value.String(m.position(line) + msg), "@" + m.chunk, line})
}

// typeError raises "attempt to index local 'x' (a nil value)".
func (m *Machine) typeError(line int, what string, o operand, v Value) {
	if o.kind == "" {
		m.throw(line, "attempt to "+what+" a "+typeName(v)+" value")
	}
	m.throw(line, "attempt to "+what+" "+o.String()+"(a "+typeName(v)+" value)")
}

// raise raises msg from a library function, with the position of a level as
// error counts them: 1 is the function that called the library, 0 no position.
func (m *Machine) raise(level int, msg string) {
	if level > 0 {
		msg = m.where(level) + msg
	}
	m.raiseValue(value.String(msg))
}

// raiseValue raises v from a library function.
func (m *Machine) raiseValue(v Value) {
	e := &raised{v: v}
	if m.depth > 0 {
		if f := m.frames[m.depth-1]; f.fn != nil && f.site != nil {
			e.source, e.line = "@"+m.chunk, f.site.line
		} else {
			e.source, e.line = "=[C]", -1
		}
	}
	panic(e)
}

// where is the position of a level of the call stack, "" for library functions
// and for functions that a tail call has replaced.
func (m *Machine) where(level int) string {
	for i := m.depth - 1; i >= 0; i-- {
		f := m.frames[i]
		if level--; level == 0 {
			if f.fn == nil || f.site == nil {
				return ""
			}
			return m.position(f.site.line)
		}
		if level -= f.tails; level <= 0 {
			return ""
		}
	}
	return ""
}

// Fail raises msg from a library function, as text.Failer wants.
func (m *Machine) Fail(msg string) { m.raise(1, msg) }

// Ended unwinds a script whose account is closed, as text.Failer wants.
func (m *Machine) Ended() { panic(budget.Ended{}) }

func typeName(v Value) string { return v.Kind().String() }

// textOf is the text of a string or number.
func textOf(v Value) (string, bool) {
	switch v.Kind() {
	case value.KindString:
		return v.AsString(), true
	case value.KindNumber:
		return numeral.Text(v.AsNumber()), true
	}
	return "", false
}

// plainText is tostring without metamethods.
func plainText(v Value) string {
	switch v.Kind() {
	case value.KindNil:
		return "nil"
	case value.KindBool:
		return strconv.FormatBool(v.AsBool())
	case value.KindTable, value.KindFunction:
		return fmt.Sprintf("%s: %p", typeName(v), v.Pointer())
	case value.KindLight:
		if v.AsLight() == 0 {
			return "userdata: (nil)"
		}
		return fmt.Sprintf("userdata: 0x%x", v.AsLight())
	}
	s, _ := textOf(v)
	return s
}

// numberOf converts as Lua does where a number is wanted: numbers, and strings
// that read as one.
func numberOf(v Value) (float64, bool) {
	switch v.Kind() {
	case value.KindNumber:
		return v.AsNumber(), true
	case value.KindString:
		return numeral.Parse(v.AsString())
	}
	return 0, false
}

// argError raises "bad argument #1 to 'f' (text)".
func (m *Machine) argError(n int, text string) {
	name := "?"
	if m.depth > 0 {
		if f := m.frames[m.depth-1]; f.fn != nil && f.site != nil && f.site.name.kind != "" {
			name = f.site.name.name
			if f.site.name.kind == "method" {
				if n--; n == 0 {
					m.raise(1, "calling '"+name+"' on bad self ("+text+")")
				}
			}
		}
	}
	m.raise(1, "bad argument #"+strconv.Itoa(n)+" to '"+name+"' ("+text+")")
}

func (m *Machine) argTypeError(args []Value, n int, want string) {
	got := "no value"
	if n <= len(args) {
		got = typeName(args[n-1])
	}
	m.argError(n, want+" expected, got "+got)
}

// arg is argument n, nil when there is none.
func arg(args []Value, n int) Value {
	if n <= len(args) {
		return args[n-1]
	}
	return value.Nil
}

func (m *Machine) checkAny(args []Value, n int) Value {
	if n > len(args) {
		m.argError(n, "value expected")
	}
	return args[n-1]
}

func (m *Machine) checkTable(args []Value, n int) *Table {
	v := arg(args, n)
	if !v.IsTable() {
		m.argTypeError(args, n, "table")
	}
	return v.AsTable()
}

func (m *Machine) checkFunction(args []Value, n int) Value {
	v := arg(args, n)
	if !v.IsFunction() {
		m.argTypeError(args, n, "function")
	}
	return v
}

func (m *Machine) checkString(args []Value, n int) string {
	v := arg(args, n)
	if v.IsString() {
		return v.AsString()
	}
	s, ok := textOf(v)
	if !ok {
		m.argTypeError(args, n, "string")
	}
	return s
}

func (m *Machine) optString(args []Value, n int, def string) string {
	if arg(args, n).IsNil() {
		return def
	}
	return m.checkString(args, n)
}

func (m *Machine) checkNumber(args []Value, n int) float64 {
	v := arg(args, n)
	if v.IsNumber() {
		return v.AsNumber()
	}
	f, ok := numberOf(v)
	if !ok {
		m.argTypeError(args, n, "number")
	}
	return f
}

// checkInt is checkNumber cut to an integer, as Lua's luaL_checkinteger.
func (m *Machine) checkInt(args []Value, n int) int {
	return int(int32(numeral.Truncate(m.checkNumber(args, n))))
}

// checkIndex is checkNumber cut to a long integer: where a string begins or ends.
func (m *Machine) checkIndex(args []Value, n int) int {
	return int(numeral.Truncate(m.checkNumber(args, n)))
}

func (m *Machine) optIndex(args []Value, n, def int) int {
	if arg(args, n).IsNil() {
		return def
	}
	return m.checkIndex(args, n)
}

func (m *Machine) optInt(args []Value, n, def int) int {
	if arg(args, n).IsNil() {
		return def
	}
	return m.checkInt(args, n)
}
