package command

import (
	"math/big"
)

// INCRBYFLOAT counts in C's long double as x86 has it: 64 bits of mantissa and
// an exponent of 15 bits. A big.Float of that precision rounds as the processor
// does, to nearest even; the bounds of the exponent are checked here. What lies
// below the smallest normal number is not rounded further: no digit that is
// ever printed shows it.
const (
	extendedPrec   = 64
	extendedMaxExp = 16384  // values are below 2^16384
	extendedMinExp = -16445 // the smallest above 0 is 2^-16445
	// maxFloatText is the length from which on Redis takes no text for a number.
	maxFloatText = 5 * 1024
	// fractionDigits are printed, before trailing zeros are cut.
	fractionDigits = 17
)

// extended is a finite or infinite number of that kind.
type extended = big.Float

// parseExtended parses what strtold does, less leading blanks and NaN: decimal
// and hexadecimal numbers and infinities. Numbers too large or too small for a
// long double are refused.
func parseExtended(b []byte) (*extended, bool) {
	if len(b) == 0 || len(b) >= maxFloatText {
		return nil, false
	}
	neg := b[0] == '-'
	if neg || b[0] == '+' {
		b = b[1:]
	}
	z := new(big.Float).SetPrec(extendedPrec)
	switch {
	case equalFold(b, "inf") || equalFold(b, "infinity"):
		return z.SetInf(neg), true
	case len(b) > 2 && b[0] == '0' && b[1]|0x20 == 'x':
		if !parseHex(z, b[2:]) {
			return nil, false
		}
	case !parseDecimal(z, b):
		return nil, false
	}
	if z.Sign() != 0 {
		if exp := z.MantExp(nil); exp > extendedMaxExp || exp <= extendedMinExp {
			return nil, false
		}
	}
	if neg {
		z.Neg(z)
	}
	return z, true
}

// digitsOf cuts b into the digits of a mantissa, without its point, the number
// of them behind the point, and the exponent behind one of the letter mark.
func digitsOf(b []byte, mark byte, isDigit func(byte) bool) (digits []byte, frac int, exp int64, ok bool) {
	i, point := 0, -1
	digits = make([]byte, 0, len(b))
	for ; i < len(b); i++ {
		switch {
		case isDigit(b[i]):
			digits = append(digits, b[i])
			continue
		case b[i] == '.' && point < 0:
			point = len(digits)
			continue
		}
		break
	}
	if len(digits) == 0 {
		return nil, 0, 0, false
	}
	if point >= 0 {
		frac = len(digits) - point
	}
	if i == len(b) {
		return digits, frac, 0, true
	}
	if b[i]|0x20 != mark {
		return nil, 0, 0, false
	}
	exp, ok = parseExponent(b[i+1:])
	return digits, frac, exp, ok
}

// farExponent stands for any that is out of all bounds.
const farExponent = 1 << 30

func parseExponent(b []byte) (int64, bool) {
	neg := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		neg = b[0] == '-'
		b = b[1:]
	}
	if len(b) == 0 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int64(c-'0'), farExponent)
	}
	if neg {
		n = -n
	}
	return n, true
}

func isDecimal(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDecimal(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// parseDecimal sets z to the correctly rounded value of a decimal number.
func parseDecimal(z *big.Float, b []byte) bool {
	digits, frac, exp, ok := digitsOf(b, 'e', isDecimal)
	if !ok {
		return false
	}
	digits = trimZeros(digits)
	if len(digits) == 0 {
		z.SetInt64(0)
		return true
	}
	exp -= int64(frac)
	// Outside of these bounds the number has no long double, and the powers
	// below would be large.
	if magnitude := exp + int64(len(digits)); magnitude > 4940 || magnitude < -4960 {
		return false
	}
	mant, _ := new(big.Int).SetString(string(digits), 10)
	if exp == 0 {
		z.SetInt(mant)
		return true
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(max(exp, -exp)), nil)
	if exp > 0 {
		z.SetInt(mant.Mul(mant, power))
		return true
	}
	// Both are exact, so the quotient is rounded once.
	x, y := new(big.Float).SetInt(mant), new(big.Float).SetInt(power)
	z.Quo(x, y)
	return true
}

func parseHex(z *big.Float, b []byte) bool {
	digits, frac, exp, ok := digitsOf(b, 'p', isHex)
	if !ok {
		return false
	}
	digits = trimZeros(digits)
	if len(digits) == 0 {
		z.SetInt64(0)
		return true
	}
	mant, _ := new(big.Int).SetString(string(digits), 16)
	z.SetInt(mant)
	exp += int64(z.MantExp(nil)) - 4*int64(frac)
	if exp > extendedMaxExp || exp <= extendedMinExp {
		return false
	}
	z.SetMantExp(z, int(exp)-z.MantExp(nil))
	return true
}

func trimZeros(digits []byte) []byte {
	for len(digits) > 0 && digits[0] == '0' {
		digits = digits[1:]
	}
	return digits
}

// addExtended adds as a long double does; it is false when the sum is not a
// finite number.
func addExtended(x, y *extended) (*extended, bool) {
	if x.IsInf() || y.IsInf() {
		return nil, false
	}
	z := new(big.Float).SetPrec(extendedPrec).Add(x, y)
	return z, z.MantExp(nil) <= extendedMaxExp
}

// formatExtended writes a finite number as Redis does for people: 17 digits
// behind the point, less the trailing zeros, never with an exponent.
func formatExtended(x *extended) []byte {
	b := x.Append(make([]byte, 0, 32), 'f', fractionDigits)
	n := len(b)
	for b[n-1] == '0' {
		n--
	}
	if b[n-1] == '.' {
		n--
	}
	b = b[:n]
	if string(b) == "-0" {
		return b[1:]
	}
	return b
}

// extendedOfInt is how a value that reads as an integer is taken.
func extendedOfInt(n int64) *extended {
	return new(big.Float).SetPrec(extendedPrec).SetInt64(n)
}
