package libm

import "math"

// Asin is the angle from -π/2 to π/2 whose sine is x.
func Asin(x float64) float64 {
	switch a := math.Abs(x); {
	case math.IsNaN(x):
		return x
	case a > 1:
		return -invalid()
	case a < 0x1p-27:
		return x
	default:
		return math.Copysign(angle(double{a, 0}, other(a)).round(), x)
	}
}

// Acos is the angle from 0 to π whose cosine is x.
func Acos(x float64) float64 {
	a := math.Abs(x)
	switch {
	case math.IsNaN(x):
		return x
	case a > 1:
		return -invalid()
	case x == 1:
		return 0
	}
	v := angle(other(a), double{a, 0})
	if x < 0 {
		v = halfTurn.add(v.neg())
	}
	return v.round()
}

// other is the other side of the right-angled triangle with the side a and 1: the
// square root of 1 - a*a.
func other(a float64) double { return sum(1, -a).mul(sum(1, a)).sqrt() }

// Atan is the angle from -π/2 to π/2 whose tangent is x.
func Atan(x float64) float64 {
	a := math.Abs(x)
	switch {
	case math.IsNaN(x) || a < 0x1p-27:
		return x
	case a > 0x1p60:
		return math.Copysign(math.Pi/2, x)
	}
	return math.Copysign(angle(double{a, 0}, double{1, 0}).round(), x)
}

// Atan2 is the angle of the point (x, y), from -π to π.
func Atan2(y, x float64) float64 {
	switch {
	case math.IsNaN(x):
		return x
	case math.IsNaN(y):
		return y
	}
	if x == 0 || y == 0 || math.IsInf(x, 0) || math.IsInf(y, 0) {
		return math.Atan2(y, x) // a multiple of π/4
	}
	a, i := math.Frexp(math.Abs(y))
	b, j := math.Frexp(math.Abs(x))
	switch {
	case i-j > 60:
		return math.Copysign(math.Pi/2, y)
	case i-j < -60 && x > 0:
		return y / x
	case i-j < -60:
		return math.Copysign(math.Pi, y)
	}
	// Both are near 1, and have the quotient that they had.
	v := angle(double{math.Ldexp(a, max(i-j, 0)), 0}, double{math.Ldexp(b, max(j-i, 0)), 0})
	if x < 0 {
		v = halfTurn.add(v.neg())
	}
	return math.Copysign(v.round(), y)
}

// angle is the angle of the point (x, y), neither of which is below 0, from 0 to π/2. Their
// quotient q has an entry in atanTable beside it: atan(q) = atan(t) + atan((q-t)/(1+qt)).
func angle(y, x double) double {
	if y.hi > x.hi {
		return quarterTurn.add(angle(x, y).neg())
	}
	j := int(y.hi/x.hi*64 + 0.5)
	if j == 0 {
		return smallAngle(y.div(x))
	}
	t := float64(j) / 64
	return atanTable[j].add(smallAngle(y.add(x.scale(-t)).div(x.add(y.scale(t)))))
}

// smallAngle is the angle whose tangent is a number q of at most 1/127.
func smallAngle(q double) double {
	square := float64(q.hi * q.hi)
	series := math.FMA(square, math.FMA(square, math.FMA(square, 1./9, -1./7), 1./5), -1./3)
	return sumOrdered(q.hi, math.FMA(float64(square*q.hi), series, q.lo))
}
