package lib

import (
	"fmt"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/scripting/numeral"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// Func is one function of a library.
type Func func(c *Call) error

// Call is one call of a Func. An engine may use a Call again once it has taken
// the results.
type Call struct {
	// Account pays for the work, and for the strings and tables that are made.
	Account *budget.Account
	// Args are only read.
	Args []value.Value
	// Results is what the function appends its results to.
	Results []value.Value

	scratch []byte // kept from one call to the next
	marked  bool   // a nil stands behind the arguments, so that none is missing
}

// maxScratch bounds the buffer that a Call keeps.
const maxScratch = 64 << 10

// maxKept bounds the values that a Call keeps room for.
const maxKept = 256

// stackSlots is how many values a C function may have on Lua's stack: the bound
// of nesting and of results in Redis.
const stackSlots = 8000

// Error is what a function raises.
type Error struct {
	// Text has no position: the engine puts that of the call before it.
	Text string
	// Arg is the number of the argument that is wrong, for "bad argument #1 to
	// 'encode' (Text)"; it counts only when IsArg is set.
	Arg   int
	IsArg bool
	// Bare says that Redis gives no position either.
	Bare bool
}

func (e *Error) Error() string {
	if e.IsArg {
		return fmt.Sprintf("bad argument #%d (%s)", e.Arg, e.Text)
	}
	return e.Text
}

func failf(format string, args ...any) error {
	return &Error{Text: fmt.Sprintf(format, args...)}
}

func argError(n int, text string) error { return &Error{Text: text, Arg: n, IsArg: true} }

// pay charges n instructions, alloc n bytes before they are taken. They panic with
// budget.Ended when the run must end.
func (c *Call) pay(n int)   { c.Account.MustPay(n) }
func (c *Call) alloc(n int) { c.Account.MustAlloc(n) }

// Forget lets go of the arguments and results, before a Call is kept.
func (c *Call) Forget() {
	clear(c.Args)
	clear(c.Results)
	c.Args, c.Results = c.Args[:0], c.Results[:0]
	if cap(c.Args) > maxKept {
		c.Args = nil
	}
	if cap(c.Results) > maxKept {
		c.Results = nil
	}
}

func (c *Call) result(v value.Value) { c.Results = append(c.Results, v) }

// resultBytes makes a string of b, which stays the caller's.
func (c *Call) resultBytes(b []byte) {
	c.alloc(len(b))
	c.result(value.String(string(b)))
}

// arg is argument n, counted from 1; nil when there are fewer.
func (c *Call) arg(n int) value.Value {
	if n > len(c.Args) {
		return value.Nil
	}
	return c.Args[n-1]
}

func (c *Call) typeError(n int, want string) error {
	got := "no value"
	if n <= len(c.Args) || c.marked {
		got = c.arg(n).Kind().String()
	}
	return argError(n, want+" expected, got "+got)
}

// str takes strings and numbers, as luaL_checklstring.
func (c *Call) str(n int) (string, error) {
	switch v := c.arg(n); v.Kind() {
	case value.KindString:
		return v.AsString(), nil
	case value.KindNumber:
		return numeral.Text(v.AsNumber()), nil
	}
	return "", c.typeError(n, "string")
}

// toNumber is a number, or a string that reads as one.
func toNumber(v value.Value) (float64, bool) {
	switch v.Kind() {
	case value.KindNumber:
		return v.AsNumber(), true
	case value.KindString:
		return numeral.Parse(v.AsString())
	}
	return 0, false
}

// number takes numbers and strings that read as one, as luaL_checknumber.
func (c *Call) number(n int) (float64, error) {
	f, ok := toNumber(c.arg(n))
	if !ok {
		return 0, c.typeError(n, "number")
	}
	return f, nil
}

// integer is number cut as a C cast cuts it, as luaL_checkinteger.
func (c *Call) integer(n int) (int64, error) {
	f, err := c.number(n)
	return numeral.Truncate(f), err
}

func (c *Call) optInteger(n int, def int64) (int64, error) {
	if c.arg(n).IsNil() {
		return def, nil
	}
	return c.integer(n)
}

// buffer builds a string whose memory is charged before it is taken.
type buffer struct {
	c *Call
	b []byte
}

// output is an empty buffer on the call's scratch; done gives it back.
func (c *Call) output() buffer { return buffer{c, c.scratch[:0]} }

func (o *buffer) done() {
	o.c.scratch = nil
	if cap(o.b) <= maxScratch {
		o.c.scratch = o.b[:0]
	}
}

// reserve makes room for n more bytes.
func (o *buffer) reserve(n int) {
	if cap(o.b)-len(o.b) >= n {
		return
	}
	size := max(len(o.b)+n, 2*cap(o.b), 256)
	o.c.alloc(size)
	o.c.pay(len(o.b) >> 10)
	grown := make([]byte, len(o.b), size)
	copy(grown, o.b)
	o.b = grown
}

// table makes a table; room comes as it is filled.
func (c *Call) table() *value.Table { return value.New(c.Account, 0, 0) }
