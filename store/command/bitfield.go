package command

import "github.com/latchkey-proxy/latchkey/store"

type bitfieldOpcode uint8

const (
	bitfieldGet bitfieldOpcode = iota
	bitfieldSet
	bitfieldIncrBy
)

// overflow says what becomes of a number that its field cannot hold.
type overflow uint8

const (
	overflowWrap overflow = iota
	overflowSat
	overflowFail
)

// bitfieldOp is one operation of BITFIELD.
type bitfieldOp struct {
	code     bitfieldOpcode
	overflow overflow
	signed   bool
	width    uint  // bits, 1 to 64, unsigned at most 63
	off      int64 // bits
	n        int64 // value of SET, increment of INCRBY
}

func bitField(c *Call) { c.bitField(false) }

func bitFieldRO(c *Call) { c.bitField(true) }

func (c *Call) bitField(readOnly bool) {
	ops, ok := c.bitfieldOps()
	if !ok {
		return
	}
	reach, writes := int64(-1), false // the last byte that is written to
	for i := range ops {
		if o := &ops[i]; o.code != bitfieldGet {
			writes = true
			reach = max(reach, (o.off+int64(o.width)-1)>>3)
		}
	}
	if writes && readOnly {
		c.Err(errBitfieldRO)
		return
	}
	k := c.Key(1)
	if !writes {
		c.Looked(k)
	}
	if !c.IsString(k) {
		return
	}
	c.Reply.Array(len(ops))
	created, grown := !k.Exists(), false
	if reach >= int64(len(k.Str())) {
		// As Redis does, even if every operation fails then.
		if k.SetRange(int(reach), []byte{0}); c.Tx.Spent() {
			return // it was not made as long
		}
		grown = true
	}
	changed := false
	for i := range ops {
		wrote, differs := ops[i].run(c, k)
		changed = changed || differs || wrote && grown
	}
	switch {
	case changed:
		c.notifyString(k, "setbit", created)
	case created && grown:
		c.Notify(store.NotifyNew, "new", k)
	}
}

// bitfieldOps parses the operations.
func (c *Call) bitfieldOps() ([]bitfieldOp, bool) {
	var ops []bitfieldOp
	mode := overflowWrap
	for i := 2; i < len(c.Args); {
		o := bitfieldOp{overflow: mode}
		left := len(c.Args) - i - 1
		args := 3
		switch {
		case c.Is(i, "get") && left >= 2:
			o.code, args = bitfieldGet, 2
		case c.Is(i, "set") && left >= 3:
			o.code = bitfieldSet
		case c.Is(i, "incrby") && left >= 3:
			o.code = bitfieldIncrBy
		case c.Is(i, "overflow") && left >= 1:
			switch {
			case c.Is(i+1, "wrap"):
				mode = overflowWrap
			case c.Is(i+1, "sat"):
				mode = overflowSat
			case c.Is(i+1, "fail"):
				mode = overflowFail
			default:
				c.Err(errOverflowType)
				return nil, false
			}
			i += 2
			continue
		default:
			c.Err(ErrSyntax)
			return nil, false
		}
		var ok bool
		if o.signed, o.width, ok = bitfieldType(c.Args[i+1]); !ok {
			c.Err(errBitfieldType)
			return nil, false
		}
		if o.off, ok = c.bitfieldOffset(c.Args[i+2], o.width); !ok {
			return nil, false
		}
		if args == 3 {
			if o.n, ok = c.Int(i + 3); !ok {
				return nil, false
			}
		}
		ops = append(ops, o)
		i += 1 + args
	}
	return ops, true
}

// bitfieldType parses i1 to i64 and u1 to u63.
func bitfieldType(b []byte) (signed bool, width uint, ok bool) {
	if len(b) == 0 || b[0] != 'i' && b[0] != 'u' {
		return false, 0, false
	}
	n, ok := ParseInt(b[1:])
	signed = b[0] == 'i'
	if !ok || n < 1 || n > 64 || n == 64 && !signed {
		return false, 0, false
	}
	return signed, uint(n), true
}

// bitfieldOffset parses an offset in bits or, behind #, in fields.
func (c *Call) bitfieldOffset(b []byte, width uint) (int64, bool) {
	if len(b) == 0 || b[0] != '#' {
		return c.bitOffset(b)
	}
	n, ok := ParseInt(b[1:])
	// The first bound keeps the product from overflowing.
	if !ok || n < 0 || n>>3 >= c.maxValue() || n*int64(width)>>3 >= c.maxValue() {
		c.Err(ErrBitOffset)
		return 0, false
	}
	return n * int64(width), true
}

// run does the operation, answers it, and tells whether the field was written
// and whether that has changed it.
func (o *bitfieldOp) run(c *Call, k *store.Key) (wrote, differs bool) {
	old := o.load(k.Str())
	if o.code == bitfieldGet {
		c.Reply.Int(old)
		return false, false
	}
	next, ok := o.next(old)
	if !ok {
		c.Reply.Null()
		return false, false
	}
	if o.code == bitfieldSet {
		c.Reply.Int(old)
	} else {
		c.Reply.Int(next)
	}
	if next != old {
		o.save(k, uint64(next))
	}
	return true, next != old
}

// next is the value that the field gets; it is false when it must be left alone.
func (o *bitfieldOp) next(old int64) (int64, bool) {
	base, incr := old, o.n
	if o.code == bitfieldSet {
		base, incr = o.n, 0
	}
	lowest, highest := int64(0), int64(1)<<(o.width&63)-1 // of an unsigned field, at most 63 wide
	if o.signed {
		highest = int64(1<<(o.width-1) - 1)
		lowest = -highest - 1
	}
	over, under := false, false
	switch {
	case !o.signed && base < 0:
		// SET takes a negative value for the unsigned number of its bits.
		over = true
	case base > highest || incr > 0 && base > highest-incr:
		over = true
	case o.signed:
		under = base < lowest || incr < 0 && base < lowest-incr
	default:
		under = incr < -base
	}
	if !over && !under {
		return base + incr, true
	}
	switch o.overflow {
	case overflowFail:
		return 0, false
	case overflowSat:
		if over {
			return highest, true
		}
		return lowest, true
	}
	return o.extend(uint64(base) + uint64(incr)), true
}

// extend reads the lower bits of u as a number of the field's type.
func (o *bitfieldOp) extend(u uint64) int64 {
	shift := 64 - o.width
	if o.signed {
		return int64(u<<shift) >> shift
	}
	return int64(u << shift >> shift)
}

// window is where the field lies: its first byte, how many bytes it touches, at
// most nine, and how many bits follow it in the last of them.
func (o *bitfieldOp) window() (at int64, n int, after uint) {
	at = o.off >> 3
	lead := uint(o.off & 7)
	n = int(lead+o.width+7) >> 3
	return at, n, uint(n)*8 - lead - o.width
}

// load reads the field; there are zeros behind the end of v.
func (o *bitfieldOp) load(v []byte) int64 {
	at, n, after := o.window()
	var w [9]byte
	if at < int64(len(v)) {
		copy(w[:n], v[at:])
	}
	var u uint64
	for i := range n - 1 {
		u = u<<8 | uint64(w[i])
	}
	// What a ninth byte pushes out at the top lies before the field.
	u = u<<(8-after) | uint64(w[n-1]>>after)
	return o.extend(u)
}

// save writes the field, which lies within the string.
func (o *bitfieldOp) save(k *store.Key, u uint64) {
	at, n, after := o.window()
	var w [9]byte
	copy(w[:n], k.Str()[at:])
	left := o.width // bits still to be written, the last first
	for i := n - 1; i >= 0; i-- {
		take := min(8-after, left)
		mask := byte(1<<take-1) << after
		w[i] = w[i]&^mask | byte(u)<<after&mask
		u >>= take
		left -= take
		after = 0
	}
	k.SetRange(int(at), w[:n])
}
