package scripting

import (
	"math"

	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/arith"
)

var mathLibrary = library{name: "math", functions: mathFunctions(), values: map[string]lua.LValue{
	"huge": lua.LNumber(math.Inf(1)),
	"pi":   lua.LNumber(math.Pi),
}, aliases: map[string]string{"mod": "fmod"}}

func mathFunctions() map[string]lua.LGFunction {
	all := map[string]lua.LGFunction{
		"frexp": mathFrexp,
		"ldexp": func(L *lua.LState) int {
			e := checkInt(L, 2) // looked at first, as by C's compiler
			L.Push(number(math.Ldexp(checkNumber(L, 1), e)))
			return 1
		},
		"max":        mathMax,
		"min":        mathMin,
		"modf":       mathModf,
		"random":     mathRandom,
		"randomseed": mathRandomSeed,
	}
	for name, f := range arith.Unary {
		all[name] = func(L *lua.LState) int {
			L.Push(number(f(checkNumber(L, 1))))
			return 1
		}
	}
	for name, f := range arith.Binary {
		all[name] = func(L *lua.LState) int {
			y := checkNumber(L, 2)
			L.Push(number(f(checkNumber(L, 1), y)))
			return 1
		}
	}
	return all
}

func mathFrexp(L *lua.LState) int {
	f, e := math.Frexp(checkNumber(L, 1))
	L.Push(number(f))
	L.Push(number(float64(e)))
	return 2
}

func mathModf(L *lua.LState) int {
	whole, frac := arith.Modf(checkNumber(L, 1))
	L.Push(number(whole))
	L.Push(number(frac))
	return 2
}

func mathMax(L *lua.LState) int {
	most := checkNumber(L, 1)
	for i := 2; i <= L.GetTop(); i++ {
		if v := checkNumber(L, i); v > most {
			most = v
		}
	}
	L.Push(number(most))
	return 1
}

func mathMin(L *lua.LState) int {
	least := checkNumber(L, 1)
	for i := 2; i <= L.GetTop(); i++ {
		if v := checkNumber(L, i); v < least {
			least = v
		}
	}
	L.Push(number(least))
	return 1
}

func mathRandom(L *lua.LState) int {
	f := runOf(L).random.Float()
	switch L.GetTop() {
	case 0:
		L.Push(number(f))
	case 1:
		u := checkInt(L, 1)
		if u < 1 {
			argError(L, 1, "interval is empty")
		}
		L.Push(number(arith.Between(f, 1, u)))
	case 2:
		l, u := checkInt(L, 1), checkInt(L, 2)
		if l > u {
			argError(L, 2, "interval is empty")
		}
		L.Push(number(arith.Between(f, l, u)))
	default:
		raise(L, 1, "wrong number of arguments")
	}
	return 1
}

func mathRandomSeed(L *lua.LState) int {
	runOf(L).random.Seed(checkInt(L, 1))
	return 0
}
