package lib

import (
	"math"

	"github.com/latchkey-proxy/latchkey/scripting/value"
)

func msgpackUnpack(c *Call) error { return c.unpack(0, 0, len(c.Args)) }

func msgpackUnpackOne(c *Call) error {
	offset, err := c.optInteger(2, 0)
	if err != nil {
		return err
	}
	return c.unpack(1, offset, 1)
}

func msgpackUnpackLimit(c *Call) error {
	limit, err := c.integer(2)
	if err != nil {
		return err
	}
	offset, err := c.optInteger(3, 0)
	if err != nil {
		return err
	}
	return c.unpack(limit, offset, 1)
}

// unpack decodes at most limit values from offset on. With both of them 0 it
// decodes all; otherwise the first result is where the next value begins, -1 at
// the end. slots are what Redis's Lua stack holds to begin with.
func (c *Call) unpack(limit, offset int64, slots int) error {
	s, err := c.str(1)
	if err != nil {
		return err
	}
	switch {
	case offset < 0 || limit < 0: // Redis shows the length where it says limit
		return failf("Invalid request to unpack with offset of %d and limit of %d.", int32(offset), int32(len(s)))
	case offset > int64(len(s)):
		return failf("Start offset %d greater than input length %d.", int32(offset), int32(len(s)))
	}
	all := limit == 0 && offset == 0
	if all {
		limit = math.MaxInt32
	}
	u := unpacker{c: c, s: s, pos: int(offset), slots: slots}
	first := len(c.Results)
	if !all {
		c.result(value.Nil)
	}
	for n := int64(0); u.pos < len(s) && n < limit; n++ {
		v, err := u.value()
		if err != nil {
			return err
		}
		c.result(v)
		u.slots++
	}
	if !all {
		if u.slots+1 > stackSlots {
			return failf("stack overflow (in function mp_unpack_full)")
		}
		next := u.pos
		if next == len(s) {
			next = -1
		}
		c.Results[first] = value.Int(next)
	}
	return nil
}

type unpacker struct {
	c     *Call
	s     string
	pos   int
	slots int // taken on the stack of Redis's Lua
}

// need says that n bytes are there.
func (u *unpacker) need(n int) error {
	if len(u.s)-u.pos < n {
		return failf("Missing bytes in input.")
	}
	return nil
}

// big reads the n bytes after the type byte, and steps over all of them.
func (u *unpacker) big(n int) (uint64, error) {
	if err := u.need(1 + n); err != nil {
		return 0, err
	}
	v := uint64(0)
	for _, b := range []byte(u.s[u.pos+1 : u.pos+1+n]) {
		v = v<<8 | uint64(b)
	}
	u.pos += 1 + n
	return v, nil
}

func (u *unpacker) value() (value.Value, error) {
	if err := u.need(1); err != nil {
		return value.Nil, err
	}
	if u.slots+1 > stackSlots {
		return value.Nil, failf("stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)")
	}
	u.c.pay(1)
	first := u.s[u.pos]
	switch {
	case first < mpFixMap: // a small number
		u.pos++
		return value.Int(int(first)), nil
	case first >= mpNegative:
		u.pos++
		return value.Int(int(int8(first))), nil
	case first < mpFixArray:
		u.pos++
		return u.table(uint64(first&15), true)
	case first < mpFixString:
		u.pos++
		return u.table(uint64(first&15), false)
	case first < mpNil:
		u.pos++
		return u.str(uint64(first & 31))
	case first >= mpUint8 && first <= mpUint64:
		v, err := u.big(1 << (first - mpUint8))
		return value.Number(float64(int64(v))), err // Lua's integers are signed
	case first >= mpInt8 && first <= mpInt64:
		size := 1 << (first - mpInt8)
		v, err := u.big(size)
		unused := 64 - 8*size
		return value.Number(float64(int64(v<<unused) >> unused)), err
	case first >= mpString8 && first <= mpString32:
		n, err := u.big(1 << (first - mpString8))
		if err != nil {
			return value.Nil, err
		}
		return u.str(n)
	case first >= mpArray16 && first <= mpMap32:
		n, err := u.big(2 << (first & 1))
		if err != nil {
			return value.Nil, err
		}
		return u.table(n, first >= mpMap16)
	}
	switch first {
	case mpNil:
		u.pos++
		return value.Nil, nil
	case mpFalse, mpTrue:
		u.pos++
		return value.Bool(first == mpTrue), nil
	case mpFloat32:
		v, err := u.big(4)
		return value.Number(float64(math.Float32frombits(uint32(v)))), err
	case mpFloat64:
		v, err := u.big(8)
		return value.Number(math.Float64frombits(v)), err
	}
	return value.Nil, failf("Bad data format in input.")
}

// str is the string of n bytes at u.pos.
func (u *unpacker) str(n uint64) (value.Value, error) {
	if n > uint64(len(u.s)-u.pos) {
		return value.Nil, failf("Missing bytes in input.")
	}
	begin := u.pos
	u.pos += int(n)
	return value.String(u.s[begin:u.pos]), nil
}

// table makes a table of n elements, or of n keys and values. The room for them
// comes as they do: n is only a claim.
func (u *unpacker) table(n uint64, keyed bool) (value.Value, error) {
	t := u.c.table()
	slots := u.slots
	defer func() { u.slots = slots }()
	if u.slots++; !keyed && u.slots+1 > stackSlots {
		return value.Nil, failf("stack overflow (in function mp_decode_to_lua_array)")
	}
	for i := uint64(1); i <= n; i++ {
		key := value.Int(int(i))
		if keyed {
			var err error
			if key, err = u.value(); err != nil {
				return value.Nil, err
			}
		}
		u.slots++ // the key
		v, err := u.value()
		if err != nil {
			return value.Nil, err
		}
		u.slots--
		if err := t.Set(key, v); err != nil {
			return value.Nil, &Error{Text: err.Error(), Bare: true}
		}
	}
	return value.FromTable(t), nil
}
