package libm

import "math"

// tinyExp is below the logarithm of half the smallest number, hugeExp above that of the largest.
const (
	tinyExp = -746
	hugeExp = 710
)

// Exp is e to the power of x.
func Exp(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x + x
	case x > hugeExp:
		return math.Inf(1)
	case x < tinyExp:
		return 0
	}
	return exp(double{x, 0})
}

// exp is e to the power of x, which must not be far outside of what has a result.
//
// It is 2^(k/128) times e^r, for the whole number k that leaves the smallest r. The
// polynomial, by Arm's optimized routines, and the order of the roundings are those of the C library.
func exp(x double) float64 {
	const (
		shift = 3 << 51 // what is added to it loses its digits behind the point
		c2    = 0x1.ffffffffffdbdp-2
		c3    = 0x1.555555555543cp-3
		c4    = 0x1.55555cf172b91p-5
		c5    = 0x1.1111167a4d017p-7
	)
	k := math.FMA(128/math.Ln2, x.hi, shift) - shift
	r := math.FMA(-k, ln2By128Lo, math.FMA(-k, ln2By128Hi, x.hi)) + x.lo
	n := int(k)
	t := &exp2Table[n&127]
	square := float64(r * r)
	p := math.FMA(square, math.FMA(r, c3, c2), t.tail+r)
	p = math.FMA(float64(square*square), math.FMA(r, c5, c4), p)
	v := math.FMA(t.power, p, t.power)
	if n >>= 7; n > -1021 && n < 1020 {
		return v * math.Float64frombits(uint64(1023+n)<<52)
	}
	return scaled(v, math.FMA(t.power, p, t.power-v), n)
}

// scaled is (hi + lo) * 2^n for a hi from 1/2 to 4, rounded once.
func scaled(hi, lo float64, n int) float64 {
	if n > -1021 {
		return math.Ldexp(hi+lo, n)
	}
	// Where there are fewer digits, beside 1 what is below them is rounded away.
	const least = -1022
	hi, lo = math.Ldexp(hi, n-least), math.Ldexp(lo, n-least)
	if hi >= 1 {
		return math.Ldexp(hi+lo, least)
	}
	s := sumOrdered(1, hi)
	return math.Ldexp(s.hi+(s.lo+lo)-1, least)
}
