package lib

import (
	"math"
	"math/bits"

	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// bitLibrary is LuaBitOp, with 32-bit signed results.
var bitLibrary = Library{Name: "bit", Funcs: map[string]Func{
	"arshift": bitShift(func(x uint32, n uint) uint32 { return uint32(int32(x) >> n) }),
	"band":    bitFold(func(x, y uint32) uint32 { return x & y }),
	"bnot":    bitUnary(func(x uint32) uint32 { return ^x }),
	"bor":     bitFold(func(x, y uint32) uint32 { return x | y }),
	"bswap":   bitUnary(bits.ReverseBytes32),
	"bxor":    bitFold(func(x, y uint32) uint32 { return x ^ y }),
	"lshift":  bitShift(func(x uint32, n uint) uint32 { return x << n }),
	"rol":     bitShift(func(x uint32, n uint) uint32 { return bits.RotateLeft32(x, int(n)) }),
	"ror":     bitShift(func(x uint32, n uint) uint32 { return bits.RotateLeft32(x, -int(n)) }),
	"rshift":  bitShift(func(x uint32, n uint) uint32 { return x >> n }),
	"tobit":   bitUnary(func(x uint32) uint32 { return x }),
	"tohex":   bitToHex,
}}

// ToBits takes a number modulo 2^32, halves to even, as LuaBitOp: the sum has the
// integer in its low bits, and for numbers of 2^51 and more what C finds there.
func ToBits(f float64) uint32 { return uint32(math.Float64bits(f + (1<<52 + 1<<51))) }

func (c *Call) bits(n int) (uint32, error) {
	f, err := c.number(n)
	return ToBits(f), err
}

func (c *Call) resultBits(x uint32) { c.result(value.Number(float64(int32(x)))) }

func bitUnary(f func(uint32) uint32) Func {
	return func(c *Call) error {
		x, err := c.bits(1)
		if err == nil {
			c.resultBits(f(x))
		}
		return err
	}
}

func bitFold(f func(x, y uint32) uint32) Func {
	return func(c *Call) error {
		x, err := c.bits(1)
		if err != nil {
			return err
		}
		c.pay(len(c.Args) >> 3)
		for i := len(c.Args); i > 1; i-- { // as LuaBitOp: the last that is wrong is told
			y, err := c.bits(i)
			if err != nil {
				return err
			}
			x = f(x, y)
		}
		c.resultBits(x)
		return nil
	}
}

func bitShift(f func(x uint32, n uint) uint32) Func {
	return func(c *Call) error {
		x, err := c.bits(1)
		if err != nil {
			return err
		}
		n, err := c.bits(2)
		if err == nil {
			c.resultBits(f(x, uint(n&31)))
		}
		return err
	}
}

// bitToHex writes as many digits as its second argument says, in upper case when
// that is negative.
func bitToHex(c *Call) error {
	x, err := c.bits(1)
	if err != nil {
		return err
	}
	n := int32(8)
	if len(c.Args) >= 2 {
		m, err := c.bits(2)
		if err != nil {
			return err
		}
		n = int32(m)
	}
	digits := "0123456789abcdef"
	if n < 0 {
		digits = "0123456789ABCDEF"
		n = -n
	}
	if n > 8 || n < 0 {
		n = 8
	}
	var b [8]byte
	for i := range b {
		b[i] = digits[x>>(28-4*i)&15]
	}
	c.resultBytes(b[8-n:])
	return nil
}
