package libm

import (
	"math"
	"math/bits"
)

// Sin is the sine of x, in radians.
func Sin(x float64) float64 {
	if math.Abs(x) < 0x1p-27 || math.IsNaN(x) {
		return x
	}
	if math.IsInf(x, 0) {
		return invalid()
	}
	quarter, a := reduce(x)
	return turn(quarter, a).round()
}

// Cos is the cosine of x, in radians.
func Cos(x float64) float64 {
	if math.IsNaN(x) {
		return x
	}
	if math.IsInf(x, 0) {
		return invalid()
	}
	quarter, a := reduce(x)
	return turn(quarter+1, a).round()
}

// Tan is the tangent of x, in radians.
func Tan(x float64) float64 {
	if math.Abs(x) < 0x1p-27 || math.IsNaN(x) {
		return x
	}
	if math.IsInf(x, 0) {
		return invalid()
	}
	quarter, a := reduce(x)
	return turn(quarter, a).div(turn(quarter+1, a)).round()
}

// turn is the sine of a + quarter*π/2, for an a of at most π/4.
func turn(quarter int, a double) double {
	var v double
	if quarter&1 == 0 {
		v = sine(a)
	} else {
		v = cosine(a)
	}
	if quarter&2 != 0 {
		return v.neg()
	}
	return v
}

// near finds the entry of sinTable for a number not below 0, and the distance to it.
func near(a double) (e *[2]double, d, lo float64) {
	j := int(a.hi*64 + 0.5)
	return &sinTable[j], a.hi - float64(j)/64, a.lo
}

// rests are sin(d+lo) - d and cos(d+lo) - 1 for a small d and a lo that is much smaller.
func rests(d, lo float64) (sin, cos float64) {
	square := float64(d * d)
	sin = math.FMA(square, math.FMA(square, -1./5040, 1./120), -1./6)
	cos = math.FMA(square, math.FMA(square, -1./720, 1./24), -1./2)
	return math.FMA(float64(square*d), sin, lo), math.FMA(square, cos, float64(-d*lo))
}

// sine is that of a number from -π/4 to π/4, which is taken for the sum of an entry of
// sinTable and a small d: sin(t+d) = sin(t)cos(d) + cos(t)sin(d).
func sine(a double) double {
	if a.hi < 0 {
		return sine(a.neg()).neg()
	}
	e, d, lo := near(a)
	s, c := e[0], e[1]
	sinRest, cosRest := rests(d, lo)
	p := product(c.hi, d)
	v := sumOrdered(s.hi, p.hi)
	if s.hi == 0 {
		v = double{d, 0}
	}
	return sumOrdered(v.hi, v.lo+(p.lo+s.lo+math.FMA(c.lo, d, math.FMA(c.hi, sinRest, s.hi*cosRest))))
}

// cosine is made as sine is: cos(t+d) = cos(t)cos(d) - sin(t)sin(d).
func cosine(a double) double {
	if a.hi < 0 {
		a = a.neg()
	}
	e, d, lo := near(a)
	s, c := e[0], e[1]
	sinRest, cosRest := rests(d, lo)
	p := product(s.hi, -d)
	v := sumOrdered(c.hi, p.hi)
	return sumOrdered(v.hi, v.lo+(p.lo+c.lo+math.FMA(-s.lo, d, math.FMA(-s.hi, sinRest, c.hi*cosRest))))
}

// reduce takes whole multiples of π/2 from x; what is left is at most π/4, but for the last bits.
func reduce(x float64) (quarter int, rest double) {
	if math.Abs(x) <= math.Pi/4 {
		return 0, double{x, 0}
	}
	if math.Abs(x) >= 1<<20 {
		return reduceLarge(x)
	}
	n := math.RoundToEven(x * (2 / math.Pi))
	// The first three parts of π/2 end with so many zeros that their products are exact.
	a := sum(math.FMA(-n, halfPi[0], x), float64(-n*halfPi[1]))
	b := sum(a.hi, float64(-n*halfPi[2]))
	return int(n) & 3, sum(b.hi, a.lo+b.lo-float64(n*halfPi[3]))
}

// reduceLarge multiplies x by as many digits of 2/π as have a say in the result, and
// leaves out those above, which make whole turns (Payne and Hanek's way).
func reduceLarge(x float64) (quarter int, rest double) {
	b := math.Float64bits(math.Abs(x))
	mantissa := b&(1<<52-1) | 1<<52
	shift := int(b>>52) - 1023 - 52 // x is mantissa * 2^shift
	// The digits of 2/π from that on which makes 2 with the last of the mantissa: digit i
	// is worth 2^-i.
	first := max(shift-1, 1) - 1 // of the table's digits, counted from 0
	lost := first - (shift - 2)  // digits above the table's first, which are zeros
	var window [4]uint64
	for i := range window {
		at := first + 64*i
		w, off := at/64, uint(at%64)
		window[i] = twoByPi[w]<<off | twoByPi[w+1]>>(64-off)
	}
	// The product's words, the lowest first: window is a number of 256 digits.
	var words [5]uint64
	var carry uint64
	for i := range window {
		hi, lo := bits.Mul64(mantissa, window[3-i])
		var c uint64
		words[i], c = bits.Add64(lo, carry, 0)
		carry = hi + c
	}
	words[4] = carry
	// Where the window begins with the digit that makes 2 there are 254 digits behind the point;
	// each zero that is not in the table is one more.
	points := uint(254 + lost)
	quarter = int(wordsAt(&words, points) & 3)
	var f [4]uint64 // the fraction, the highest first
	for i := range f {
		f[i] = wordsAt(&words, points-64*uint(i+1))
	}
	negative := false
	if f[0]>>63 != 0 { // at least 1/2: one turn more, and what is missing to it
		quarter++
		negative = true
		c := uint64(1)
		for i := 3; i >= 0; i-- {
			f[i], c = bits.Add64(^f[i], 0, c)
		}
	}
	v := fraction(f).mul(quarterTurn)
	if negative != (x < 0) {
		v = v.neg()
	}
	if x < 0 {
		quarter = -quarter
	}
	return quarter & 3, v
}

// wordsAt are 64 digits of a number from digit at on.
func wordsAt(words *[5]uint64, at uint) uint64 {
	w, off := int(at)/64, at%64
	if int(at) < 0 {
		return 0
	}
	v := uint64(0)
	if w < len(words) {
		v = words[w] >> off
	}
	if off != 0 && w+1 < len(words) {
		v |= words[w+1] << (64 - off)
	}
	return v
}

// fraction is 0.f, with the digits of f behind the point.
func fraction(f [4]uint64) double {
	exponent := 0
	for range 3 {
		if f[0] != 0 {
			break
		}
		f[0], f[1], f[2], f[3] = f[1], f[2], f[3], 0
		exponent -= 64
	}
	n := uint(bits.LeadingZeros64(f[0]))
	if n > 0 {
		f[0], f[1] = f[0]<<n|f[1]>>(64-n), f[1]<<n|f[2]>>(64-n)
	}
	exponent -= int(n)
	hi, lo := f[0]&^(1<<11-1), f[0]<<53|f[1]>>11
	return sumOrdered(math.Ldexp(float64(hi), exponent-64), math.Ldexp(float64(lo), exponent-64-53))
}
