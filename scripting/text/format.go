package text

import (
	"math"
	"strconv"
	"strings"

	"github.com/latchkey-proxy/latchkey/scripting/numeral"
)

// spec is one conversion of string.format: %[flags][width][.precision]verb,
// with at most two digits each, as Lua bounds them.
type spec struct {
	minus, plus, space, alt, zero bool
	width, prec                   int // prec -1 when absent
}

// Arguments are those of one call of string.format; the format is number 1. Its
// methods raise an error of the engine's when an argument is not what is wanted.
type Arguments interface {
	// Want fails when there are fewer than n arguments.
	Want(n int)
	Number(n int) float64
	String(n int) string
	// Alloc charges bytes, and does not return when they are not there.
	Alloc(n int)
	// Fail raises msg and does not return.
	Fail(msg string)
}

// Format is string.format.
func Format(format string, a Arguments) string {
	var room [96]byte // of which the string is a copy
	b := room[:0]
	arg := 1
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c != '%' {
			b = append(b, c)
			continue
		}
		i++
		if i < len(format) && format[i] == '%' {
			b = append(b, '%')
			continue
		}
		arg++
		a.Want(arg)
		var sp spec
		i = sp.parse(a, format, i)
		var verb byte
		if i < len(format) {
			verb = format[i]
		}
		switch verb {
		case 'c':
			c := string([]byte{byte(numeral.Truncate(a.Number(arg)))})
			text, _, _ := strings.Cut(string(sp.pad(nil, c)), "\x00") // C's string
			b = append(b, text...)
		case 'd', 'i':
			b = sp.integer(b, numeral.Truncate(a.Number(arg)))
		case 'o', 'u', 'x', 'X':
			b = sp.unsigned(b, toUnsigned(a.Number(arg)), verb)
		case 'e', 'E', 'f', 'g', 'G':
			b = sp.float(b, a.Number(arg), verb)
		case 'q':
			s := a.String(arg)
			a.Alloc(2 * len(s))
			b = appendQuoted(b, s)
		case 's':
			s := a.String(arg)
			a.Alloc(len(b) + len(s))
			if sp.prec < 0 && len(s) >= 100 {
				sp.width = 0 // Lua keeps long strings whole and unpadded
			} else {
				s, _, _ = strings.Cut(s, "\x00") // as C's printf
			}
			if sp.prec >= 0 {
				s = s[:min(len(s), sp.prec)]
			}
			b = sp.pad(b, s)
		default:
			a.Fail("invalid option '%" + strings.Trim(string(rune(verb)), "\x00") + "' to 'format'")
		}
	}
	a.Alloc(len(b))
	return string(b)
}

// parse reads a conversion from i on; it returns where the verb stands.
func (sp *spec) parse(a Arguments, format string, i int) int {
	begin := i
	for ; i < len(format) && strings.IndexByte("-+ #0", format[i]) >= 0; i++ {
		switch format[i] {
		case '-':
			sp.minus = true
		case '+':
			sp.plus = true
		case ' ':
			sp.space = true
		case '#':
			sp.alt = true
		case '0':
			sp.zero = true
		}
	}
	if i-begin >= 6 {
		a.Fail("invalid format (repeated flags)")
	}
	digits := func() (n int) {
		for k := 0; k < 2 && i < len(format) && isDigit(format[i]); k++ {
			n = n*10 + int(format[i]-'0')
			i++
		}
		return n
	}
	sp.width = digits()
	sp.prec = -1
	if i < len(format) && format[i] == '.' {
		i++
		sp.prec = digits()
	}
	if i < len(format) && isDigit(format[i]) {
		a.Fail("invalid format (width or precision too long)")
	}
	return i
}

func (sp *spec) pad(b []byte, s string) []byte {
	n := sp.width - len(s)
	if n <= 0 {
		return append(b, s...)
	}
	if sp.minus {
		return fill(append(b, s...), ' ', n)
	}
	return append(fill(b, ' ', n), s...)
}

// fill appends c so many times.
func fill(b []byte, c byte, n int) []byte {
	for range n {
		b = append(b, c)
	}
	return b
}

// number pads sign and digits; zeros stand between them.
func (sp *spec) number(b []byte, sign, digits string, zeros bool) []byte {
	if n := sp.width - len(sign) - len(digits); zeros && sp.zero && !sp.minus && n > 0 {
		digits = strings.Repeat("0", n) + digits
	}
	return sp.pad(b, sign+digits)
}

func (sp *spec) sign(neg bool) string {
	switch {
	case neg:
		return "-"
	case sp.plus:
		return "+"
	case sp.space:
		return " "
	}
	return ""
}

func (sp *spec) precise(digits string) string {
	if sp.prec == 0 && digits == "0" {
		return ""
	}
	if n := sp.prec - len(digits); n > 0 {
		digits = strings.Repeat("0", n) + digits
	}
	return digits
}

func (sp *spec) integer(b []byte, v int64) []byte {
	u := uint64(v)
	if v < 0 {
		u = -u
	}
	if v >= 0 && !sp.minus && !sp.plus && !sp.space && sp.prec < 0 { // %d and %05d
		var room [20]byte
		digits := strconv.AppendUint(room[:0], u, 10)
		c := byte(' ')
		if sp.zero {
			c = '0'
		}
		return append(fill(b, c, sp.width-len(digits)), digits...)
	}
	return sp.number(b, sp.sign(v < 0), sp.precise(strconv.FormatUint(u, 10)), sp.prec < 0)
}

// toUnsigned is C's cast of a double to unsigned long long on x86-64, where
// negative numbers wrap around.
func toUnsigned(f float64) uint64 {
	if f >= 9223372036854775808 {
		if f >= 18446744073709551616 {
			return 0
		}
		return uint64(f)
	}
	return uint64(numeral.Truncate(f))
}

func (sp *spec) unsigned(b []byte, v uint64, verb byte) []byte {
	base, prefix := 10, ""
	switch verb {
	case 'o':
		base = 8
	case 'x':
		base, prefix = 16, "0x"
	case 'X':
		base, prefix = 16, "0X"
	}
	digits := strconv.FormatUint(v, base)
	if verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	digits = sp.precise(digits)
	if !sp.alt || v == 0 {
		prefix = ""
	}
	if sp.alt && verb == 'o' && (digits == "" || digits[0] != '0') {
		digits = "0" + digits
	}
	return sp.number(b, prefix, digits, sp.prec < 0)
}

func (sp *spec) float(b []byte, f float64, verb byte) []byte {
	neg := math.Signbit(f)
	sign := sp.sign(neg)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		text := "inf"
		if math.IsNaN(f) {
			text = "nan"
		}
		if verb-'A' < 26 {
			text = strings.ToUpper(text)
		}
		return sp.number(b, sign, text, false)
	}
	f = math.Abs(f)
	prec := sp.prec
	if prec < 0 {
		prec = 6
	}
	var digits string
	switch verb | 0x20 {
	case 'g':
		digits = string(numeral.AppendG(nil, f, prec, sp.alt))
	default:
		digits = strconv.FormatFloat(f, verb|0x20, prec, 64)
		if sp.alt && prec == 0 {
			if i := strings.IndexByte(digits, 'e'); i >= 0 {
				digits = digits[:i] + "." + digits[i:]
			} else {
				digits += "."
			}
		}
	}
	if verb-'A' < 26 {
		digits = strings.ToUpper(digits)
	}
	return sp.number(b, sign, digits, true)
}

// appendQuoted is %q: a literal that Lua reads back.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\\', '\n':
			b = append(b, '\\', c)
		case '\r':
			b = append(b, "\\r"...)
		case 0:
			b = append(b, "\\000"...)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// Dumped is how compiled Lua 5.1 begins on x86-64: all there is of string.dump. No
// script can load any, as in Redis.
const Dumped = "\x1bLuaQ\x00\x01\x04\x08\x04\x08\x00"
