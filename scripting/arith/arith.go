// Package arith is what both engines know of math: the functions of numbers, by their names, and the operators % and ^.
package arith

import (
	"math"
	"math/rand/v2"

	"github.com/latchkey-proxy/latchkey/scripting/libm"
)

// Unary are the functions of math with one argument and one result.
var Unary = map[string]func(float64) float64{
	"abs": math.Abs, "acos": libm.Acos, "asin": libm.Asin, "atan": libm.Atan, "ceil": math.Ceil, "cos": libm.Cos, "cosh": libm.Cosh,
	"deg": func(x float64) float64 { return x / (math.Pi / 180) },
	"exp": libm.Exp, "floor": math.Floor, "log": libm.Log, "log10": libm.Log10,
	"rad": func(x float64) float64 { return x * (math.Pi / 180) },
	"sin": libm.Sin, "sinh": libm.Sinh, "sqrt": libm.Sqrt, "tan": libm.Tan, "tanh": libm.Tanh,
}

// Binary are the functions of math with two arguments.
var Binary = map[string]func(x, y float64) float64{
	"atan2": libm.Atan2, "fmod": libm.Fmod, "pow": libm.Pow,
}

// Modulo is Lua 5.1's a % b, for which it takes floor(a/b).
func Modulo(a, b float64) float64 { return a - float64(math.Floor(a/b)*b) }

// Modf cuts x into its whole part and the rest, both with the sign of x.
func Modf(x float64) (whole, frac float64) {
	whole = math.Trunc(x)
	if !math.IsInf(x, 0) {
		frac = x - whole
	}
	return whole, math.Copysign(frac, x)
}

// Random is the generator of math.random. Redis replaces the C library's by
// drand48, whose numbers for a seed are the same on every machine; so do we. The
// zero Random seeds itself when it is first used.
type Random struct{ state uint64 } // bit 48 is set once it is seeded

const (
	randMultiplier = 0x5deece66d
	randAdd        = 0xb
	randSeedLow    = 0x330e
	randMask       = 1<<48 - 1
	randMax        = 1<<31 - 1
)

// Seed is math.randomseed.
func (r *Random) Seed(seed int) {
	r.state = uint64(uint32(int32(seed)))<<16 | randSeedLow | 1<<48
}

// Float is the next number, at least 0 and below 1.
func (r *Random) Float() float64 {
	if r.state == 0 {
		r.state = rand.Uint64()&randMask | 1<<48
	}
	r.state = (r.state*randMultiplier+randAdd)&randMask | 1<<48
	return float64(int64(r.state&randMask>>17)%randMax) / randMax
}

// Between is a whole number from l to u for the random number f.
func Between(f float64, l, u int) float64 {
	return math.Floor(f*float64(u-l+1)) + float64(l)
}
