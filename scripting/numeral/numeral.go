// Package numeral is how Lua 5.1, as Redis builds it, writes numbers and reads
// them: C's printf and strtod, and a C cast to an integer. [Append] is
// tostring's text, [AppendArgument] that of a command's argument, and [Parse] is
// what tonumber and the arithmetic operators read.
package numeral

import (
	"bytes"
	"math"
	"strconv"
)

// MaxText is more than any number's text takes.
const MaxText = 32

// Append writes a number as Lua 5.1 shows it: printf's %.14g.
func Append(b []byte, f float64) []byte {
	if i := int64(f); f == float64(i) && i > -1e14 && i < 1e14 && (i != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(b, i, 10)
	}
	return AppendG(b, f, 14, false)
}

func Text(f float64) string {
	var b [MaxText]byte
	return string(Append(b[:0], f))
}

// AppendArgument writes a number as an argument of a command, as Redis 7.2: an
// integer when it is one below 2^62, otherwise the shortest text that reads back
// the same.
func AppendArgument(b []byte, f float64) []byte {
	if f >= -1<<62 && f <= 1<<62 && f == math.Trunc(f) && (f != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(b, int64(f), 10)
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return AppendG(b, f, 17, false)
	}
	if math.Signbit(f) {
		b = append(b, '-')
		f = -f
	}
	// d.ddde±xx has the shortest digits; where they stand is the rule of the
	// fpconv library in Redis.
	var buf, all [32]byte
	e := strconv.AppendFloat(buf[:0], f, 'e', -1, 64)
	mark := bytes.IndexByte(e, 'e')
	exp, _ := strconv.Atoi(string(e[mark+1:]))
	digits := all[:0]
	for _, c := range e[:mark] {
		if c != '.' {
			digits = append(digits, c)
		}
	}
	n := len(digits)
	k := exp - n + 1
	size := exp
	if size < 0 {
		size = -size
	}
	switch {
	case k >= 0 && size < n+7:
		b = append(b, digits...)
		for range k {
			b = append(b, '0')
		}
	case k < 0 && (k > -7 || size < 4):
		if offset := n + k; offset <= 0 {
			b = append(b, "0."...)
			for range -offset {
				b = append(b, '0')
			}
			b = append(b, digits...)
		} else {
			b = append(b, digits[:offset]...)
			b = append(b, '.')
			b = append(b, digits[offset:]...)
		}
	default:
		b = append(b, digits[0])
		if n > 1 {
			b = append(b, '.')
			b = append(b, digits[1:]...)
		}
		b = append(b, 'e')
		if exp < 0 {
			b = append(b, '-')
		} else {
			b = append(b, '+')
		}
		b = strconv.AppendInt(b, int64(size), 10)
	}
	return b
}

// AppendG is C's %.<prec>g; alt keeps trailing zeros and the point, as with the flag #.
func AppendG(b []byte, f float64, prec int, alt bool) []byte {
	switch {
	case math.IsNaN(f):
		if math.Signbit(f) {
			return append(b, "-nan"...)
		}
		return append(b, "nan"...)
	case math.IsInf(f, 1):
		return append(b, "inf"...)
	case math.IsInf(f, -1):
		return append(b, "-inf"...)
	}
	if prec == 0 {
		prec = 1
	}
	var buf [400]byte
	e := strconv.AppendFloat(buf[:0], f, 'e', prec-1, 64)
	// d.ddde±xx: the exponent after rounding decides the form
	mark := len(e) - 1
	for e[mark] != 'e' {
		mark--
	}
	exp, _ := strconv.Atoi(string(e[mark+1:]))
	if exp < -4 || exp >= prec {
		mant := e[:mark]
		if !alt {
			mant = trimZeros(mant)
		}
		b = append(b, mant...)
		if alt && prec == 1 {
			b = append(b, '.')
		}
		return append(b, e[mark:]...)
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'f', prec-1-exp, 64)
	switch {
	case !alt:
		b = b[:start+len(trimZeros(b[start:]))]
	case exp == prec-1:
		b = append(b, '.')
	}
	return b
}

func trimZeros(b []byte) []byte {
	dot := false
	for _, c := range b {
		dot = dot || c == '.'
	}
	if !dot {
		return b
	}
	for b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	if b[len(b)-1] == '.' {
		b = b[:len(b)-1]
	}
	return b
}

// Truncate converts to an integer as a C cast does on x86-64.
func Truncate(f float64) int64 {
	if !(f >= -9223372036854775808 && f < 9223372036854775808) {
		return math.MinInt64
	}
	return int64(f)
}
