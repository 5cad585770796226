package scripting

import (
	"math"

	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/numeral"
)

func appendNumber(b []byte, f float64) []byte   { return numeral.Append(b, f) }
func numberText(f float64) string               { return numeral.Text(f) }
func appendArgument(b []byte, f float64) []byte { return numeral.AppendArgument(b, f) }
func parseNumber(s string) (float64, bool)      { return numeral.Parse(s) }
func truncate(f float64) int64                  { return numeral.Truncate(f) }

func appendG(b []byte, f float64, prec int, alt bool) []byte {
	return numeral.AppendG(b, f, prec, alt)
}

// toNumber converts as Lua does where a number is wanted: numbers, and strings that read as one.
func toNumber(v lua.LValue) (float64, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		return parseNumber(string(v))
	}
	return 0, false
}

var smallNumbers = func() (boxed [256]lua.LValue) {
	for i := range boxed {
		boxed[i] = lua.LNumber(i)
	}
	return boxed
}()

// number boxes f; small integers come from a fixed table.
func number(f float64) lua.LValue {
	if f >= 0 && f < 256 && f == float64(uint8(f)) && !math.Signbit(f) {
		return smallNumbers[uint8(f)]
	}
	return lua.LNumber(f)
}
