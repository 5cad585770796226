package libm

import "math"

// The hyperbolic functions are made as fdlibm makes them, one rounding after the
// other, because the last digits of its results are those of its formulas.

const halfLn2 = 0x1.62e43p-2 // as far as fdlibm looks at it

// Sinh is the hyperbolic sine of x.
func Sinh(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return x + x
	}
	a, half := math.Abs(x), math.Copysign(0.5, x)
	switch {
	case a < 0x1p-28:
		return x
	case a < 1:
		t := expm1(a)
		return half * (2*t - float64(t*t)/(t+1))
	case a < 22:
		t := expm1(a)
		return half * (t + t/(t+1))
	case a < largestExp:
		return half * Exp(a)
	}
	w := Exp(0.5 * a)
	return float64(half*w) * w
}

// Cosh is the hyperbolic cosine of x.
func Cosh(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return x * x
	}
	a := math.Abs(x)
	switch {
	case a < halfLn2:
		t := expm1(a)
		w := 1 + t
		if a < 0x1p-55 {
			return w
		}
		return 1 + float64(t*t)/(w+w)
	case a < 22:
		t := Exp(a)
		return float64(0.5*t) + 0.5/t
	case a < largestExp:
		return 0.5 * Exp(a)
	}
	w := Exp(0.5 * a)
	return float64(0.5*w) * w
}

// largestExp is the logarithm of the largest number.
const largestExp = 0x1.62e42fefa39efp9

// Tanh is the hyperbolic tangent of x.
func Tanh(x float64) float64 {
	if math.IsNaN(x) {
		return x
	}
	a := math.Abs(x)
	var v float64
	switch {
	case a < 0x1p-55:
		return x * (1 + x)
	case a < 1:
		t := expm1(-2 * a)
		v = -t / (t + 2)
	case a < 22:
		v = 1 - 2/(expm1(2*a)+2)
	default:
		v = 1
	}
	return math.Copysign(v, x)
}

// expm1 is e^x - 1 as fdlibm makes it, for x between -2 and 44, compiled for a machine
// that rounds a product and a sum together.
//
// With x = k*ln(2) + r and the polynomial below in r*r/2, e^r - 1 is
// r - (r*e - r*r/2) for a small e, and the result is that times 2^k, and 2^k - 1.
func expm1(x float64) float64 {
	const (
		invLn2 = 1.44269504088896338700
		hi     = 6.93147180369123816490e-01 // of ln(2)
		lo     = 1.90821492927058770002e-10
		q1     = -3.33333333333331316428e-02
		q2     = 1.58730158725481460165e-03
		q3     = -7.93650757867487942473e-05
		q4     = 4.00821782732936239552e-06
		q5     = -2.01099218183624371326e-07
	)
	a := math.Abs(x)
	if a < 0x1p-54 {
		return x
	}
	k, c := 0, 0.
	if a >= halfLn2 {
		var high, low float64
		if a < 0x1.0a2b2p0 { // 1.5*ln(2)
			k, high, low = 1, a-hi, lo
		} else {
			k = int(float64(invLn2*a) + 0.5)
			high, low = math.FMA(-float64(k), hi, a), float64(float64(k)*lo)
		}
		if x < 0 {
			k, high, low = -k, -high, -low
		}
		x = high - low
		c = high - x - low
	}
	half := float64(0.5 * x)
	s := float64(x * half)
	s2 := float64(s * s)
	p := math.FMA(float64(s2*s2), math.FMA(s, q5, q4), math.FMA(s2, math.FMA(s, q3, q2), math.FMA(s, q1, 1)))
	t := math.FMA(-p, half, 3)
	e := float64(s * ((p - t) / math.FMA(-x, t, 6)))
	if k == 0 {
		return x - math.FMA(x, e, -s)
	}
	e = math.FMA(x, e-c, -c) - s
	switch {
	case k == -1:
		return float64(0.5*(x-e)) - 0.5
	case k == 1 && x < -0.25:
		return -2 * (e - (x + 0.5))
	case k == 1:
		return 1 + float64(2*(x-e))
	case k <= -2 || k > 56:
		return math.Ldexp(1-(e-x), k) - 1
	case k < 20:
		return math.Ldexp(1-math.Ldexp(1, -k)-(e-x), k)
	}
	return math.Ldexp(x-(e+math.Ldexp(1, -k))+1, k)
}
