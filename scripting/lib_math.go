package scripting

import (
	"math"
	"math/rand/v2"

	lua "github.com/yuin/gopher-lua"
)

var mathLibrary = library{name: "math", functions: map[string]lua.LGFunction{
	"abs":   math1(math.Abs),
	"acos":  math1(math.Acos),
	"asin":  math1(math.Asin),
	"atan":  math1(math.Atan),
	"atan2": math2(math.Atan2),
	"ceil":  math1(math.Ceil),
	"cos":   math1(math.Cos),
	"cosh":  math1(math.Cosh),
	"deg":   math1(func(x float64) float64 { return x / (math.Pi / 180) }),
	"exp":   math1(math.Exp),
	"floor": math1(math.Floor),
	"fmod":  math2(math.Mod),
	"frexp": mathFrexp,
	"ldexp": func(L *lua.LState) int {
		L.Push(number(math.Ldexp(checkNumber(L, 1), checkInt(L, 2))))
		return 1
	},
	"log":        math1(math.Log),
	"log10":      math1(math.Log10),
	"max":        mathMax,
	"min":        mathMin,
	"modf":       mathModf,
	"pow":        math2(math.Pow),
	"rad":        math1(func(x float64) float64 { return x * (math.Pi / 180) }),
	"random":     mathRandom,
	"randomseed": mathRandomSeed,
	"sin":        math1(math.Sin),
	"sinh":       math1(math.Sinh),
	"sqrt":       math1(math.Sqrt),
	"tan":        math1(math.Tan),
	"tanh":       math1(math.Tanh),
}, aliases: map[string]string{
	"mod": "fmod",
}, values: map[string]lua.LValue{
	"huge": lua.LNumber(math.Inf(1)),
	"pi":   lua.LNumber(math.Pi),
}}

func math1(f func(float64) float64) lua.LGFunction {
	return func(L *lua.LState) int {
		L.Push(number(f(checkNumber(L, 1))))
		return 1
	}
}

func math2(f func(x, y float64) float64) lua.LGFunction {
	return func(L *lua.LState) int {
		L.Push(number(f(checkNumber(L, 1), checkNumber(L, 2))))
		return 1
	}
}

func mathFrexp(L *lua.LState) int {
	f, e := math.Frexp(checkNumber(L, 1))
	L.Push(number(f))
	L.Push(number(float64(e)))
	return 2
}

func mathModf(L *lua.LState) int {
	x := checkNumber(L, 1)
	whole := math.Trunc(x)
	frac := x - whole
	if math.IsInf(x, 0) {
		frac = 0
	}
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

// Redis replaces the C library's generator by drand48, whose numbers for a seed
// are the same on every machine; so do we. Without a seed each run has numbers of
// its own.
const (
	randMultiplier = 0x5deece66d
	randAdd        = 0xb
	randSeedLow    = 0x330e
	randMask       = 1<<48 - 1
	randMax        = 1<<31 - 1
)

func (r *run) rand31() int64 {
	if r.random == 0 {
		r.random = rand.Uint64()&randMask | 1<<48
	}
	r.random = (r.random*randMultiplier+randAdd)&randMask | 1<<48
	return int64(r.random & randMask >> 17)
}

func mathRandom(L *lua.LState) int {
	f := float64(runOf(L).rand31()%randMax) / randMax
	switch L.GetTop() {
	case 0:
		L.Push(number(f))
	case 1:
		u := checkInt(L, 1)
		if u < 1 {
			argError(L, 1, "interval is empty")
		}
		L.Push(number(math.Floor(f*float64(u)) + 1))
	case 2:
		l, u := checkInt(L, 1), checkInt(L, 2)
		if l > u {
			argError(L, 2, "interval is empty")
		}
		L.Push(number(math.Floor(f*float64(u-l+1)) + float64(l)))
	default:
		raise(L, 1, "wrong number of arguments")
	}
	return 1
}

func mathRandomSeed(L *lua.LState) int {
	seed := uint64(uint32(int32(checkInt(L, 1))))
	runOf(L).random = seed<<16 | randSeedLow | 1<<48
	return 0
}
