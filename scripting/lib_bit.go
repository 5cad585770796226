package scripting

import (
	"math"
	"math/bits"
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// bitLibrary is LuaBitOp, with 32-bit signed results.
var bitLibrary = library{name: "bit", functions: map[string]lua.LGFunction{
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

// checkBits takes a number modulo 2^32, halves to even.
func checkBits(L *lua.LState, n int) uint32 {
	f := math.RoundToEven(checkNumber(L, n))
	if math.Abs(f) < 1<<53 {
		return uint32(int64(f))
	}
	// LuaBitOp adds 2^52+2^51 and looks at the low word; beyond 2^53 no low bits are left.
	return uint32(math.Float64bits(f + 6755399441055744.0))
}

func pushBits(L *lua.LState, x uint32) int {
	L.Push(number(float64(int32(x))))
	return 1
}

func bitUnary(f func(uint32) uint32) lua.LGFunction {
	return func(L *lua.LState) int { return pushBits(L, f(checkBits(L, 1))) }
}

func bitFold(f func(x, y uint32) uint32) lua.LGFunction {
	return func(L *lua.LState) int {
		x := checkBits(L, 1)
		for i := 2; i <= L.GetTop(); i++ {
			x = f(x, checkBits(L, i))
		}
		return pushBits(L, x)
	}
}

func bitShift(f func(x uint32, n uint) uint32) lua.LGFunction {
	return func(L *lua.LState) int {
		x := checkBits(L, 1)
		return pushBits(L, f(x, uint(checkBits(L, 2)&31)))
	}
}

func bitToHex(L *lua.LState) int {
	x := checkBits(L, 1)
	n := int32(8)
	if L.GetTop() >= 2 {
		n = int32(checkBits(L, 2))
	}
	upper := n < 0
	if upper {
		n = -n
	}
	if n > 8 || n < 0 {
		n = 8
	}
	s := "0000000" + strconv.FormatUint(uint64(x), 16)
	s = s[len(s)-int(n):]
	if upper {
		b := []byte(s)
		for i, c := range b {
			if c >= 'a' {
				b[i] = c &^ 0x20
			}
		}
		s = string(b)
	}
	return pushString(L, s)
}
