package libm

import "math"

// double is the sum of two numbers, of which lo is at most half of the last bit of
// hi: a number with twice the digits.
type double struct{ hi, lo float64 }

// round is the number nearest to d.
func (d double) round() float64 { return d.hi + d.lo }

func (d double) neg() double { return double{-d.hi, -d.lo} }

// sum is a + b, exactly.
func sum(a, b float64) double {
	s := a + b
	t := s - a
	return double{s, (a - (s - t)) + (b - t)}
}

// sumOrdered is a + b, exactly, if a is not smaller than b or is 0.
func sumOrdered(a, b float64) double {
	s := a + b
	return double{s, b - (s - a)}
}

// product is a * b, exactly.
func product(a, b float64) double {
	p := float64(a * b)
	return double{p, math.FMA(a, b, -p)}
}

func (d double) add(e double) double {
	s := sum(d.hi, e.hi)
	return sumOrdered(s.hi, s.lo+(d.lo+e.lo))
}

func (d double) mul(e double) double {
	p := product(d.hi, e.hi)
	return sumOrdered(p.hi, math.FMA(d.hi, e.lo, math.FMA(d.lo, e.hi, p.lo)))
}

// scale is d * f, for an f of few digits or of more where an error in lo does not matter.
func (d double) scale(f float64) double {
	p := product(d.hi, f)
	return sumOrdered(p.hi, math.FMA(d.lo, f, p.lo))
}

func (d double) div(e double) double {
	q := d.hi / e.hi
	rest := math.FMA(-q, e.hi, d.hi) + math.FMA(-q, e.lo, d.lo)
	return sumOrdered(q, rest/e.hi)
}

func (d double) sqrt() double {
	if d.hi == 0 {
		return double{}
	}
	s := math.Sqrt(d.hi)
	return sumOrdered(s, (math.FMA(-s, s, d.hi)+d.lo)/(2*s))
}
