package command

import (
	"crypto/subtle"
	"encoding/binary"
	"math/bits"

	"github.com/latchkey-proxy/latchkey/store"
)

func bitCommands() []*Spec {
	return []*Spec{
		{
			Name: "bitcount", Arity: -2, Flags: ReadOnly, Categories: CatBitmap, Access: Locked,
			Keys: OneKey(KeyRO | KeyAccess), Handler: bitCount,
			Summary: "Counts the bits that are set in a string.", Since: "2.6.0", Group: "bitmap",
			Complexity: "O(N)", Syntax: "key [start end [BYTE | BIT]]",
		},
		{
			Name: "bitfield", Arity: -2, Flags: Write | DenyOOM, Categories: CatBitmap,
			Keys: []KeySpec{{
				Begin: 1, Flags: KeyRW | KeyUpdate | KeyAccess | KeyVariable,
				Notes: "This command allows both access and modification of the key",
			}},
			Handler: bitField,
			Summary: "Reads, sets and adds to integers of any width within a string.", Since: "3.2.0", Group: "bitmap",
			Complexity: "O(1) for each operation.",
			Syntax: "key [GET encoding offset | [OVERFLOW WRAP | SAT | FAIL] " +
				"SET encoding offset value | INCRBY encoding offset increment ...]",
		},
		{
			Name: "bitfield_ro", Arity: -2, Flags: ReadOnly | Fast, Categories: CatBitmap,
			Keys: OneKey(KeyRO | KeyAccess), Handler: bitFieldRO,
			Summary: "Reads integers of any width within a string.", Since: "6.0.0", Group: "bitmap",
			Complexity: "O(1) for each operation.", Syntax: "key [GET encoding offset [GET encoding offset ...]]",
		},
		{
			Name: "bitop", Arity: -4, Flags: Write | DenyOOM, Categories: CatBitmap, Access: Locked,
			Keys: []KeySpec{
				{Begin: 2, Flags: KeyOW | KeyUpdate},
				{Begin: 3, Last: -1, Flags: KeyRO | KeyAccess},
			},
			Handler: bitOp,
			Summary: "Combines strings bit by bit and stores the result.", Since: "2.6.0", Group: "bitmap",
			Complexity: "O(N)", Syntax: "operation destkey key [key ...]",
		},
		{
			Name: "bitpos", Arity: -3, Flags: ReadOnly, Categories: CatBitmap, Access: Locked,
			Keys: OneKey(KeyRO | KeyAccess), Handler: bitPos,
			Summary: "Finds the first bit in a string that is set or clear.", Since: "2.8.7", Group: "bitmap",
			Complexity: "O(N)", Syntax: "key bit [start [end [BYTE | BIT]]]",
		},
		{
			Name: "getbit", Arity: 3, Flags: ReadOnly | Fast, Categories: CatBitmap,
			Keys: OneKey(KeyRO | KeyAccess), Handler: getBit,
			Summary: "Returns the bit at an offset of a string.", Since: "2.2.0", Group: "bitmap",
			Complexity: "O(1)", Syntax: "key offset",
		},
		{
			Name: "setbit", Arity: 4, Flags: Write | DenyOOM, Categories: CatBitmap,
			Keys: OneKey(KeyRW | KeyAccess | KeyUpdate), Handler: setBit,
			Summary: "Sets or clears the bit at an offset of a string, which is created when absent.", Since: "2.2.0", Group: "bitmap",
			Complexity: "O(1)", Syntax: "key offset value",
		},
	}
}

// bitOffset parses an offset in bits; the string must be allowed to reach it.
func (c *Call) bitOffset(b []byte) (int64, bool) {
	n, ok := ParseInt(b)
	if !ok || n < 0 || n>>3 >= c.maxValue() {
		c.Err(ErrBitOffset)
		return 0, false
	}
	return n, true
}

func getBit(c *Call) {
	off, ok := c.bitOffset(c.Args[2])
	if !ok {
		return
	}
	k := c.ReadKey(1)
	if !c.IsString(k) {
		return
	}
	c.Reply.Int(bitAt(k.Str(), off))
}

// bitAt is the bit at off; there are zeros behind the end.
func bitAt(v []byte, off int64) int64 {
	if off>>3 >= int64(len(v)) {
		return 0
	}
	return int64(v[off>>3] >> (7 - off&7) & 1)
}

func setBit(c *Call) {
	off, ok := c.bitOffset(c.Args[2])
	if !ok {
		return
	}
	bit, ok := ParseInt(c.Args[3])
	if !ok || bit != 0 && bit != 1 {
		c.Err(ErrBit)
		return
	}
	k := c.Key(1)
	if !c.IsString(k) {
		return
	}
	created := !k.Exists()
	v := k.Str()
	at := off >> 3
	old := bitAt(v, off)
	if at >= int64(len(v)) || old != bit {
		var b [1]byte
		if at < int64(len(v)) {
			b[0] = v[at]
		}
		mask := byte(1) << (7 - off&7)
		b[0] = b[0]&^mask | byte(bit)*mask
		k.SetRange(int(at), b[:])
		c.notifyString(k, "setbit", created)
	}
	c.Reply.Int(old)
}

// rangeUnit parses BYTE or BIT.
func (c *Call) rangeUnit(i int) (inBits, ok bool) {
	switch {
	case c.Is(i, "bit"):
		return true, true
	case c.Is(i, "byte"):
		return false, true
	}
	c.Err(ErrSyntax)
	return false, false
}

// bitCount answers 0 for an absent key before it looks at the range, as Redis.
func bitCount(c *Call) {
	k := c.ReadKey(1)
	if !c.IsString(k) {
		return
	}
	if !k.Exists() {
		c.Reply.Int(0)
		return
	}
	v := k.Str()
	start, end := int64(0), int64(len(v))*8-1
	switch len(c.Args) {
	case 2:
	case 4, 5:
		var ok bool
		if start, ok = c.Int(2); !ok {
			return
		}
		if end, ok = c.Int(3); !ok {
			return
		}
		if start < 0 && end < 0 && start > end { // before the unit is looked at
			c.Reply.Int(0)
			return
		}
		inBits := false
		if len(c.Args) == 5 {
			if inBits, ok = c.rangeUnit(4); !ok {
				return
			}
		}
		n := int64(len(v))
		if inBits {
			n *= 8
		}
		if start, end, ok = clampRange(start, end, n); !ok {
			c.Reply.Int(0)
			return
		}
		if !inBits {
			start, end = start*8, end*8+7
		}
	default:
		c.Err(ErrSyntax)
		return
	}
	n := int64(0)
	for ; end-start >= bitsAtOnce && c.payBytes(bitsAtOnce/8); start += bitsAtOnce {
		n += countBits(v, start, start+bitsAtOnce-1)
	}
	if c.Tx.Spent() || !c.payBytes(int(end-start)/8) {
		return
	}
	c.Reply.Int(n + countBits(v, start, end))
}

// bitsAtOnce is how many bits are counted, searched or combined before who calls is
// asked whether to go on.
const bitsAtOnce = 8 << 20

// countBits counts the bits that are set from start to end, both included and
// both within v; an empty range has end before start.
func countBits(v []byte, start, end int64) int64 {
	if start > end {
		return 0
	}
	first, last := start>>3, end>>3
	// Of the outer bytes the bits outside of the range are taken off.
	n := -int64(bits.OnesCount8(v[first]&^(0xff>>(start&7))) + bits.OnesCount8(v[last]&(0x7f>>(end&7))))
	v = v[first : last+1]
	for len(v) >= 32 {
		n += int64(bits.OnesCount64(binary.LittleEndian.Uint64(v)) + bits.OnesCount64(binary.LittleEndian.Uint64(v[8:])) +
			bits.OnesCount64(binary.LittleEndian.Uint64(v[16:])) + bits.OnesCount64(binary.LittleEndian.Uint64(v[24:])))
		v = v[32:]
	}
	for _, b := range v {
		n += int64(bits.OnesCount8(b))
	}
	return n
}

func bitPos(c *Call) {
	bit, ok := c.Int(2)
	if !ok {
		return
	}
	if bit != 0 && bit != 1 {
		c.Err(errBitArgument)
		return
	}
	k := c.ReadKey(1)
	if !c.IsString(k) {
		return
	}
	if !k.Exists() { // an endless row of zeros
		c.Reply.Int(-bit)
		return
	}
	v := k.Str()
	start, end := int64(0), int64(-1)
	inBits := false
	switch len(c.Args) {
	case 3:
	case 4, 5, 6:
		if start, ok = c.Int(3); !ok {
			return
		}
		if len(c.Args) == 6 {
			if inBits, ok = c.rangeUnit(5); !ok {
				return
			}
		}
		if len(c.Args) >= 5 {
			if end, ok = c.Int(4); !ok {
				return
			}
		}
	default:
		c.Err(ErrSyntax)
		return
	}
	n := int64(len(v))
	if inBits {
		n *= 8
	}
	// Not clampRange: here Redis lets reversed ends meet at the first byte.
	if start < 0 {
		start = max(start+n, 0)
	}
	if end < 0 {
		end = max(end+n, 0)
	}
	end = min(end, n-1)
	if start > end {
		c.Reply.Int(-1)
		return
	}
	if !inBits {
		start, end = start*8, end*8+7
	}
	pos := int64(-1)
	for ; pos < 0 && end-start >= bitsAtOnce && c.payBytes(bitsAtOnce/8); start += bitsAtOnce {
		pos = findBit(v, start, start+bitsAtOnce-1, bit)
	}
	if c.Tx.Spent() || !c.payBytes(int(max(0, end-start))/8) {
		return
	}
	if pos < 0 {
		pos = findBit(v, start, end, bit)
	}
	if pos < 0 && bit == 0 && len(c.Args) < 5 {
		pos = int64(len(v)) * 8 // without an end, zeros follow the string
	}
	c.Reply.Int(pos)
}

// findBit is the first place from start to end, both included and within v,
// where the bit is as asked, or -1.
func findBit(v []byte, start, end, bit int64) int64 {
	flip := byte(0)
	if bit == 0 {
		flip = 0xff // look for a one in the inverse
	}
	last := end >> 3
	mask := byte(0xff) >> (start & 7)
	for at := start >> 3; at <= last; at++ {
		b := (v[at] ^ flip) & mask
		mask = 0xff
		if at == last {
			b &^= 0x7f >> (end & 7)
		}
		if b != 0 {
			return at*8 + int64(bits.LeadingZeros8(b))
		}
		for at+8 < last && binary.LittleEndian.Uint64(v[at+1:])^-uint64(flip&1) == 0 {
			at += 8
		}
	}
	return -1
}

func bitOp(c *Call) {
	var combine func(dst, src []byte)
	not := false
	switch {
	case c.Is(1, "and"):
		combine = andBytes
	case c.Is(1, "or"):
		combine = orBytes
	case c.Is(1, "xor"):
		combine = func(dst, src []byte) { subtle.XORBytes(dst, dst, src) }
	case c.Is(1, "not"):
		not = true
	default:
		c.Err(ErrSyntax)
		return
	}
	if not && len(c.Args) != 4 {
		c.Err(errBitopNot)
		return
	}
	longest := 0
	for i := 3; i < len(c.Args); i++ {
		k := c.ReadKey(i)
		if !c.IsString(k) {
			return
		}
		longest = max(longest, len(k.Str()))
	}
	dst := c.Key(2)
	if longest == 0 {
		if dst.Exists() {
			c.remove(dst)
		}
		c.Reply.Int(0)
		return
	}
	if !c.alloc(longest) || !c.payBytes(longest) {
		return
	}
	out := make([]byte, longest)
	copy(out, c.Key(3).Str())
	if not {
		notBytes(out)
	}
	for i := 4; i < len(c.Args); i++ {
		// Block by block, so that a long row of long strings can be ended.
		for dst, src := out, c.Key(i).Str(); len(dst) > 0; {
			n := min(len(dst), bitsAtOnce/8)
			m := min(len(src), n)
			if !c.payBytes(n) {
				return
			}
			combine(dst[:n], src[:m])
			dst, src = dst[n:], src[m:]
		}
	}
	created := !dst.Exists()
	dst.SetStringOwned(out, store.NoTTL)
	dst.SetRaw()
	c.notifyString(dst, "set", created)
	c.Reply.Int(int64(longest))
}

// andBytes combines src, which is not longer, into dst; what src lacks is zero.
func andBytes(dst, src []byte) {
	n := len(src)
	clear(dst[n:])
	i := 0
	for ; i+8 <= n; i += 8 {
		x := binary.LittleEndian.Uint64(dst[i:]) & binary.LittleEndian.Uint64(src[i:])
		binary.LittleEndian.PutUint64(dst[i:], x)
	}
	for ; i < n; i++ {
		dst[i] &= src[i]
	}
}

func orBytes(dst, src []byte) {
	i := 0
	for ; i+8 <= len(src); i += 8 {
		x := binary.LittleEndian.Uint64(dst[i:]) | binary.LittleEndian.Uint64(src[i:])
		binary.LittleEndian.PutUint64(dst[i:], x)
	}
	for ; i < len(src); i++ {
		dst[i] |= src[i]
	}
}

func notBytes(b []byte) {
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, ^binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	for i := range b {
		b[i] = ^b[i]
	}
}
