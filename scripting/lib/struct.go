package lib

import (
	"fmt"
	"math"
	"strings"

	"github.com/latchkey-proxy/latchkey/scripting/numeral"
	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// structLibrary packs and unpacks C structures: struct.c 1.7 on x86-64.
var structLibrary = Library{Name: "struct", Funcs: map[string]Func{
	"pack": structPack, "size": structSize, "unpack": structUnpack,
}}

const (
	maxIntSize      = 32 // of the formats i and I
	nativeAlignment = 8  // of the format ! without a number
)

// layout reads a format, one option after the other.
type layout struct {
	format string
	big    bool
	align  uint64

	option  byte
	size    uint64 // of the option's bytes
	padding uint64 // before them
}

// next reads an option that stands at offset pos; false at the end.
func (l *layout) next(pos uint64) (bool, error) {
	if l.format == "" {
		return false, nil
	}
	l.option, l.format = l.format[0], l.format[1:]
	l.size, l.padding = 0, 0
	var err error
	switch l.option {
	case 'B', 'b', 'x':
		l.size = 1
	case 'H', 'h':
		l.size = 2
	case 'L', 'l', 'T', 'd':
		l.size = 8
	case 'f':
		l.size = 4
	case 'c':
		l.size, err = l.number(1)
	case 'i', 'I':
		if l.size, err = l.number(4); l.size > maxIntSize {
			return false, failf("integral size %d is larger than limit of %d", l.size, maxIntSize)
		}
	}
	if l.size > 0 && l.option != 'c' {
		unit := min(l.size, l.align)
		l.padding = (unit - pos&(unit-1)) & (unit - 1)
	}
	return err == nil, err
}

func (l *layout) number(def uint64) (uint64, error) {
	if l.format == "" || !isDigit(l.format[0]) {
		return def, nil
	}
	n := uint64(0)
	for l.format != "" && isDigit(l.format[0]) {
		d := uint64(l.format[0] - '0')
		if n > math.MaxInt32/10 || n*10 > math.MaxInt32-d {
			return 0, failf("integral size overflow")
		}
		n = n*10 + d
		l.format = l.format[1:]
	}
	return n, nil
}

// control obeys an option that stands for no value.
func (l *layout) control() error {
	switch l.option {
	case ' ':
	case '>':
		l.big = true
	case '<':
		l.big = false
	case '!':
		n, err := l.number(nativeAlignment)
		if err != nil {
			return err
		}
		if n == 0 || n&(n-1) != 0 {
			return failf("alignment %d is not a power of 2", n)
		}
		l.align = n
	default:
		return argError(1, fmt.Sprintf("invalid format option '%s'", []byte{l.option}))
	}
	return nil
}

// format is the layout of argument 1, which ends at a NUL as all of C's strings.
func (c *Call) format() (*layout, error) {
	format, err := c.str(1)
	return &layout{format: text.CString(format), align: 1}, err
}

func structPack(c *Call) error {
	l, err := c.format()
	if err != nil {
		return err
	}
	out := c.output()
	c.marked = true // as struct.c does
	defer func() {
		c.marked = false
		out.done()
	}()
	arg := 2
	for {
		ok, err := l.next(uint64(len(out.b)))
		if err != nil {
			return err
		}
		if !ok {
			c.resultBytes(out.b)
			return nil
		}
		c.pay(1)
		out.reserve(int(l.padding) + maxIntSize)
		out.b = append(out.b, zeros[:l.padding]...)
		switch l.option {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			f, err := c.number(arg)
			if err != nil {
				return err
			}
			out.b = l.appendInteger(out.b, toUnsigned(f))
			arg++
		case 'x':
			out.b = append(out.b, 0)
		case 'f':
			f, err := c.number(arg)
			if err != nil {
				return err
			}
			out.b = l.appendInteger(out.b, uint64(math.Float32bits(float32(f))))
			arg++
		case 'd':
			f, err := c.number(arg)
			if err != nil {
				return err
			}
			out.b = l.appendInteger(out.b, math.Float64bits(f))
			arg++
		case 'c', 's':
			s, err := c.str(arg)
			if err != nil {
				return err
			}
			arg++
			if l.size > uint64(len(s)) {
				return argError(arg, "string too short")
			}
			if l.size > 0 {
				s = s[:l.size]
			}
			out.reserve(len(s) + 1)
			out.b = append(out.b, s...)
			if l.option == 's' {
				out.b = append(out.b, 0)
			}
		default:
			if err := l.control(); err != nil {
				return err
			}
		}
	}
}

// zeros is the largest padding.
var zeros [maxIntSize]byte

// toUnsigned is C's cast of a double to unsigned long on x86-64, where negative
// numbers wrap around.
func toUnsigned(f float64) uint64 {
	if f >= 1<<63 {
		if f >= 1<<64 {
			return 0
		}
		return uint64(f)
	}
	return uint64(numeral.Truncate(f))
}

func (l *layout) appendInteger(b []byte, v uint64) []byte {
	begin := len(b)
	for range l.size {
		b = append(b, byte(v))
		v >>= 8
	}
	if l.big {
		for i, j := begin, len(b)-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
	}
	return b
}

func structUnpack(c *Call) error {
	l, err := c.format()
	if err != nil {
		return err
	}
	data, err := c.str(2)
	if err != nil {
		return err
	}
	start, err := c.optInteger(3, 1)
	if err != nil {
		return err
	}
	if start == 0 {
		return argError(3, "offset must be 1 or greater")
	}
	pos, end := uint64(start)-1, uint64(len(data))
	fits := func() error {
		if l.size > end || pos > end-l.size {
			return argError(2, "data string too short")
		}
		return nil
	}
	first := len(c.Results)
	for {
		ok, err := l.next(pos)
		if err != nil {
			return err
		}
		if !ok {
			c.result(value.Number(float64(int64(pos + 1))))
			return nil
		}
		pos += l.padding
		if err := fits(); err != nil {
			return err
		}
		if len(c.Args)+len(c.Results)-first+2 > stackSlots {
			return failf("stack overflow (too many results)")
		}
		c.pay(1)
		switch l.option {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			c.result(value.Number(l.integer(data[pos : pos+l.size])))
		case 'x':
		case 'f':
			bits := uint32(l.load(data[pos : pos+4]))
			c.result(value.Number(float64(math.Float32frombits(bits))))
		case 'd':
			c.result(value.Number(math.Float64frombits(l.load(data[pos : pos+8]))))
		case 'c':
			if l.size == 0 {
				f, ok := 0.0, false
				if len(c.Results) > first {
					f, ok = toNumber(c.Results[len(c.Results)-1])
				}
				if !ok {
					return failf("format 'c0' needs a previous size")
				}
				c.Results = c.Results[:len(c.Results)-1]
				l.size = toUnsigned(f)
				if err := fits(); err != nil {
					return err
				}
			}
			c.result(value.String(data[pos : pos+l.size]))
		case 's':
			n := strings.IndexByte(data[pos:], 0)
			if n < 0 {
				return failf("unfinished string in data")
			}
			c.pay(n >> 10)
			c.result(value.String(data[pos : pos+uint64(n)]))
			l.size = uint64(n) + 1
		default:
			if err := l.control(); err != nil {
				return err
			}
		}
		pos += l.size
	}
}

// load reads the bytes of an integer; of more than eight the lowest count.
func (l *layout) load(b string) uint64 {
	v := uint64(0)
	for i := range len(b) {
		if !l.big {
			v = v<<8 | uint64(b[len(b)-1-i])
		} else {
			v = v<<8 | uint64(b[i])
		}
	}
	return v
}

// integer reads an integer, whose sign is where C's shift, taken modulo 64, finds it.
func (l *layout) integer(b string) float64 {
	v := l.load(b)
	if l.option < 'a' {
		return float64(v)
	}
	mask := ^uint64(0) << ((l.size*8 - 1) & 63)
	if v&mask != 0 {
		v |= mask
	}
	return float64(int64(v))
}

func structSize(c *Call) error {
	l, err := c.format()
	if err != nil {
		return err
	}
	pos := uint64(0)
	for {
		ok, err := l.next(pos)
		if err != nil {
			return err
		}
		if !ok {
			c.result(value.Number(float64(int64(pos))))
			return nil
		}
		c.pay(1)
		switch {
		case l.option == 's':
			return argError(1, "option 's' has no fixed size")
		case l.option == 'c' && l.size == 0:
			return argError(1, "option 'c0' has no fixed size")
		case !isDigit(l.option) && l.option|0x20-'a' >= 26:
			if err := l.control(); err != nil {
				return err
			}
		}
		pos += l.padding + l.size
	}
}

func isDigit(c byte) bool { return c-'0' < 10 }
