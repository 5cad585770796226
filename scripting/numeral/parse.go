package numeral

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// maxLength bounds what one conversion reads, so that it stays a matter of
// microseconds. C has no such bound.
const maxLength = 1 << 16

// Parse reads a number as Lua 5.1's luaO_str2d: what [Prefix] takes, with white
// space around it. Like C it sees nothing behind a NUL. A text of more than
// 64 KiB is no number.
func Parse(s string) (float64, bool) {
	if len(s) > maxLength {
		return 0, false
	}
	f, n := Prefix(s)
	if n == 0 {
		return 0, false
	}
	for ; n < len(s) && s[n] != 0; n++ {
		if !isSpace(s[n]) {
			return 0, false
		}
	}
	return f, true
}

// Prefix reads the number that s begins with, as C's strtod: white space, a sign,
// then a decimal or hexadecimal float, inf, infinity or nan. n is how many
// bytes that took, 0 when there is no number; no more than 64 KiB are looked at.
func Prefix(s string) (f float64, n int) {
	s = s[:min(len(s), maxLength)]
	for n < len(s) && isSpace(s[n]) {
		n++
	}
	neg := false
	if n < len(s) && (s[n] == '-' || s[n] == '+') {
		neg = s[n] == '-'
		n++
	}
	var size int
	if f, size = unsigned(s[n:]); size == 0 {
		return 0, 0
	}
	if neg {
		f = -f
	}
	return f, n + size
}

func unsigned(s string) (float64, int) {
	if s == "" {
		return 0, 0
	}
	switch s[0] | 0x20 {
	case 'i':
		if hasFold(s, "infinity") {
			return math.Inf(1), len("infinity")
		}
		if hasFold(s, "inf") {
			return math.Inf(1), len("inf")
		}
		return 0, 0
	case 'n':
		if !hasFold(s, "nan") {
			return 0, 0
		}
		n, payload := len("nan"), uint64(0)
		if n < len(s) && s[n] == '(' { // nan(letters and digits)
			end := n + 1
			for end < len(s) && (isDigit(s[end]) || s[end]|0x20-'a' < 26 || s[end] == '_') {
				end++
			}
			if end < len(s) && s[end] == ')' {
				payload = nanPayload(s[n+1 : end])
				n = end + 1
			}
		}
		return math.Float64frombits(0x7ff8<<48 | payload), n
	}
	if s[0] == '0' && len(s) > 2 && s[1]|0x20 == 'x' {
		if f, n := hexadecimal(s); n > 0 {
			return f, n
		}
		return 0, 1 // the zero before the x
	}
	return decimal(s)
}

// nanPayload are the bits of nan(n): those of n, a number as C writes it, or none.
func nanPayload(s string) uint64 {
	base := 10
	if len(s) > 1 && s[0] == '0' {
		if base, s = 8, s[1:]; len(s) > 1 && s[0]|0x20 == 'x' {
			base, s = 16, s[1:]
		}
	}
	v, err := strconv.ParseUint(s, base, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return v & (1<<51 - 1)
}

func decimal(s string) (float64, int) {
	n, small := 0, uint64(0)
	for n < len(s) && isDigit(s[n]) {
		small = small*10 + uint64(s[n]-'0')
		n++
	}
	digits := n
	if n < len(s) && s[n] == '.' {
		end := n + 1
		for end < len(s) && isDigit(s[end]) {
			end++
		}
		if digits += end - n - 1; digits > 0 {
			n = end
		}
	}
	if digits == 0 {
		return 0, 0
	}
	integer := n == digits
	if end := exponent(s, n, 'e'); end > n {
		n, integer = end, false
	}
	if integer && n <= 15 {
		return float64(small), n
	}
	return convert(s[:n]), n
}

func hexadecimal(s string) (float64, int) {
	n := 2
	for n < len(s) && isHex(s[n]) {
		n++
	}
	digits := n - 2
	if n < len(s) && s[n] == '.' {
		end := n + 1
		for end < len(s) && isHex(s[end]) {
			end++
		}
		if digits += end - n - 1; digits > 0 {
			n = end
		}
	}
	if digits == 0 {
		return 0, 0
	}
	if end := exponent(s, n, 'p'); end > n {
		n = end
		return convert(s[:n]), n
	}
	return convert(s[:n] + "p0"), n
}

// exponent is the end of an exponent at s[n:], n when there is none.
func exponent(s string, n int, letter byte) int {
	end := n
	if end >= len(s) || s[end]|0x20 != letter {
		return n
	}
	end++
	if end < len(s) && (s[end] == '+' || s[end] == '-') {
		end++
	}
	if end >= len(s) || !isDigit(s[end]) {
		return n
	}
	for end < len(s) && isDigit(s[end]) {
		end++
	}
	return end
}

// convert reads text that is known to be a float; what is too large becomes infinite.
func convert(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64)
	return f
}

// hasFold says whether s begins with word, which is in lower case.
func hasFold(s, word string) bool {
	if len(s) < len(word) {
		return false
	}
	for i := range len(word) {
		if s[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}

func isSpace(c byte) bool { return c == ' ' || c-'\t' < 5 }

func isDigit(c byte) bool { return c-'0' < 10 }

func isHex(c byte) bool { return isDigit(c) || c|0x20-'a' < 6 }

// ParseBase is C's strtoul, whose result wraps around for a minus sign and
// saturates when it is too large.
func ParseBase(s string, base int) (float64, bool) {
	s, _, _ = strings.Cut(s, "\x00")
	s = strings.Trim(s, " \t\n\v\f\r")
	neg := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		neg = s[0] == '-'
		s = s[1:]
	}
	if base == 16 && len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x' {
		s = s[2:]
	}
	if s == "" {
		return 0, false
	}
	var v uint64
	full := false
	for i := 0; i < len(s); i++ {
		d := 99
		switch c := s[i]; {
		case isDigit(c):
			d = int(c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			d = int(c|0x20-'a') + 10
		}
		if d >= base {
			return 0, false
		}
		if v > (1<<64-1-uint64(d))/uint64(base) {
			full = true
		}
		v = v*uint64(base) + uint64(d)
	}
	if full {
		return float64(uint64(1<<64 - 1)), true
	}
	if neg {
		v = -v
	}
	return float64(v), true
}
