package libm

import "math"

// Sqrt is the square root of x.
func Sqrt(x float64) float64 {
	if x < 0 {
		return invalid()
	}
	return math.Sqrt(x)
}

// Fmod is what is left of x when y is taken from it as often as it goes, with the sign of x.
func Fmod(x, y float64) float64 {
	switch { // the sum would have either's sign, as the compiler likes
	case math.IsNaN(x):
		return x
	case math.IsNaN(y):
		return y
	}
	if y == 0 || math.IsInf(x, 0) {
		return invalid()
	}
	return math.Mod(x, y)
}
