package libm

import "math"

// Log is the natural logarithm of x.
func Log(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x + x
	case x < 0:
		return invalid()
	case x == 0:
		return math.Inf(-1)
	}
	return logarithm(x).round()
}

// invalid is the result where there is none, as x86-64 makes it: its sign is set.
func invalid() float64 { return math.Float64frombits(0xfff8 << 48) }

// logarithm is the natural logarithm of a number above 0, with some 70 digits.
//
// x is 2^k times z, and z times an inverse from the table is 1 + r for a small r.
func logarithm(x float64) double {
	bits := math.Float64bits(x)
	k := int(bits>>52) - 1023
	if k == -1023 {
		bits = math.Float64bits(x * (1 << 52))
		k = int(bits>>52) - 1023 - 52
	}
	i := bits >> (52 - 7) & 127
	z := math.Float64frombits(bits&(1<<52-1) | 1023<<52)
	if i >= logHalves {
		z, k = z/2, k+1
	}
	e := &logTable[i]
	p := product(z, e.inverse)
	r, rlo := p.hi-1, p.lo
	n := float64(k)
	whole := float64(n*ln2Hi) + e.hi // exact: both end with zeros
	a := sum(whole, r)
	q := product(r, -r/2)
	b := sum(a.hi, q.hi)
	series := 1. / 11
	for _, c := range [...]float64{-1. / 10, 1. / 9, -1. / 8, 1. / 7, -1. / 6, 1. / 5, -1. / 4, 1. / 3} {
		series = math.FMA(r, series, c)
	}
	rlo *= math.FMA(-r, 1-r, 1) // divided by 1 + r
	lo := math.FMA(float64(r*r)*r, series, a.lo+b.lo+(q.lo+rlo)+math.FMA(n, ln2Lo, e.lo))
	return sumOrdered(b.hi, lo)
}

// Log10 is the decimal logarithm of x, as fdlibm makes it from the natural one.
func Log10(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x + x
	case x < 0:
		return -invalid()
	case x == 0:
		return math.Inf(-1)
	}
	const (
		invLn10 = 4.34294481903251816668e-01 // 1 / ln(10)
		log2Hi  = 3.01029995663611771306e-01 // the decimal logarithm of 2
		log2Lo  = 3.69423907715893078616e-13
	)
	fraction, exponent := math.Frexp(x) // from 1/2 to 1
	n := float64(exponent)
	if exponent > 0 {
		n, fraction = n-1, fraction*2
	}
	z := float64(n*log2Lo) + float64(invLn10*Log(fraction))
	return z + float64(n*log2Hi)
}
