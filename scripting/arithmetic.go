package scripting

import (
	"math"
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// What the machine computes otherwise than Lua 5.1: modulo and power of
// numbers, and all arithmetic on strings, which it reads as Go reads literals.

// foldNumbers computes an operation on two literals, when the result is one.
func foldNumbers(fn func(a, b float64) float64, a, b string) (string, bool) {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err1 != nil || err2 != nil {
		return "", false
	}
	v := fn(x, y)
	if math.IsNaN(v) || math.IsInf(v, 0) || math.Signbit(v) {
		return "", false
	}
	return strconv.FormatFloat(v, 'e', -1, 64), true
}

// arithmeticSite is the function for one place of a % b or a ^ b.
func arithmeticSite(fn func(a, b float64) float64, event string, left, right operand) lua.LGFunction {
	return func(L *lua.LState) int {
		a, b := L.Get(1), L.Get(2)
		x, ok1 := a.(lua.LNumber)
		y, ok2 := b.(lua.LNumber)
		if ok1 && ok2 {
			L.Push(number(fn(float64(x), float64(y))))
			return 1
		}
		if v, ok := slowArithmetic(L, fn, event, a, b); ok {
			L.Push(v)
			return 1
		}
		if _, ok := toNumber(a); ok {
			left, a = right, b // Lua blames the first that is no number
		}
		typeError(L, "perform arithmetic on", left, a)
		return 0
	}
}

// swapped is fn with its two arguments in the other order.
func swapped(fn lua.LGFunction) lua.LGFunction {
	return func(L *lua.LState) int {
		b, a := L.Get(1), L.Get(2)
		L.Replace(1, a)
		L.Replace(2, b)
		return fn(L)
	}
}

// slowArithmetic computes with strings that read as numbers, and by metamethods.
func slowArithmetic(L *lua.LState, fn func(a, b float64) float64, event string, a, b lua.LValue) (lua.LValue, bool) {
	if x, ok := toNumber(a); ok {
		if y, ok := toNumber(b); ok {
			return number(fn(x, y)), true
		}
	}
	if f := binaryMetamethod(L, a, b, event); f != lua.LNil {
		return callValue(L, f, a, b), true
	}
	return nil, false
}

// stringArithmetic are metamethods of strings that no script can see: the machine
// calls them when an operand is a string.
var stringArithmetic = map[string]lua.LGFunction{
	"__add": onStrings("__add", func(a, b float64) float64 { return a + b }),
	"__sub": onStrings("__sub", func(a, b float64) float64 { return a - b }),
	"__mul": onStrings("__mul", func(a, b float64) float64 { return a * b }),
	"__div": onStrings("__div", func(a, b float64) float64 { return a / b }),
	"__unm": func(L *lua.LState) int {
		a := L.Get(1)
		x, ok := toNumber(a)
		if !ok {
			f := frameOf(L, 1)
			reg, found := f.find(func(i instr) (int, bool) {
				return i.b(), i.op() == lua.OP_UNM && f.rk(i.b()) == a
			})
			raise(L, 1, "attempt to perform arithmetic on "+f.describe(reg, found, typeName(a)))
		}
		L.Push(number(-x))
		return 1
	},
}

func onStrings(event string, fn func(a, b float64) float64) lua.LGFunction {
	return func(L *lua.LState) int {
		a, b := L.Get(1), L.Get(2)
		v, ok := slowArithmetic(L, fn, event, a, b)
		if !ok {
			raise(L, 1, frameOf(L, 1).arithmeticProblem(typeName(a), typeName(b)))
		}
		L.Push(v)
		return 1
	}
}
