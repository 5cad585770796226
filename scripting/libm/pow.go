package libm

import "math"

// Pow is x to the power of y.
func Pow(x, y float64) float64 {
	switch {
	case y == 2:
		return x * x
	case y == 0 || x == 1:
		return 1
	case math.IsNaN(x):
		if _, odd := parity(y); odd && math.Signbit(x) {
			return -x
		}
		return x
	case math.IsNaN(y):
		return y
	case y == 1:
		return x
	case math.IsInf(y, 0):
		switch a := math.Abs(x); {
		case a == 1:
			return 1
		case (a > 1) == (y > 0):
			return math.Inf(1)
		}
		return 0
	}
	sign := 1.
	if math.Signbit(x) {
		switch whole, odd := parity(y); {
		case odd:
			sign = -1
		case !whole && x != 0 && !math.IsInf(x, 0):
			return invalid()
		}
		x = -x
	}
	if x == 0 || math.IsInf(x, 0) {
		if (x == 0) == (y > 0) {
			return sign * 0
		}
		return sign * math.Inf(1)
	}
	l := logarithm(x)
	e := product(y, l.hi)
	switch {
	case e.hi > hugeExp:
		return sign * math.Inf(1)
	case e.hi < tinyExp:
		return sign * 0
	}
	e.lo = math.FMA(y, l.lo, e.lo)
	return sign * exp(sumOrdered(e.hi, e.lo))
}

// parity says whether y is a whole number, and an odd one.
func parity(y float64) (whole, odd bool) {
	y = math.Abs(y)
	if y >= 1<<53 {
		return true, false
	}
	n := int64(y)
	return float64(n) == y, float64(n) == y && n&1 == 1
}
