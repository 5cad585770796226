package lib

import (
	"encoding/binary"
	"math"

	"github.com/latchkey-proxy/latchkey/scripting/numeral"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// msgpackLibrary is lua-cmsgpack 0.4.0.
var msgpackLibrary = Library{
	Name: "cmsgpack",
	Funcs: map[string]Func{
		"pack": msgpackPack, "unpack": msgpackUnpack, "unpack_limit": msgpackUnpackLimit, "unpack_one": msgpackUnpackOne,
	},
	Texts: map[string]string{
		"_NAME":        "cmsgpack",
		"_VERSION":     "lua-cmsgpack 0.4.0",
		"_COPYRIGHT":   "Copyright (C) 2012, Salvatore Sanfilippo",
		"_DESCRIPTION": "MessagePack C implementation for Lua",
	},
}

// maxPackDepth is how deeply tables may nest; deeper ones are packed as nil.
const maxPackDepth = 16

// The first bytes of MessagePack's types, with those for numbers and lengths of
// 8, 16 and 32 bits in a row.
const (
	mpFixMap, mpFixArray, mpFixString = 0x80, 0x90, 0xa0

	mpNil, mpFalse, mpTrue = 0xc0, 0xc2, 0xc3
	mpFloat32, mpFloat64   = 0xca, 0xcb
	mpUint8, mpUint64      = 0xcc, 0xcf
	mpInt8, mpInt64        = 0xd0, 0xd3
	mpString8, mpString32  = 0xd9, 0xdb
	mpArray16, mpArray32   = 0xdc, 0xdd
	mpMap16, mpMap32       = 0xde, 0xdf
	mpNegative             = 0xe0
)

func msgpackPack(c *Call) error {
	if len(c.Args) == 0 {
		return argError(0, "MessagePack pack needs input.")
	}
	p := packer{c.output()}
	defer p.done()
	for _, v := range c.Args {
		if err := p.value(v, 0); err != nil {
			return err
		}
	}
	c.resultBytes(p.b)
	return nil
}

type packer struct{ buffer }

func (p *packer) value(v value.Value, depth int) error {
	p.c.pay(1)
	p.reserve(9)
	switch v.Kind() {
	case value.KindString:
		return p.str(v.AsString())
	case value.KindBool:
		if v.AsBool() {
			p.b = append(p.b, mpTrue)
		} else {
			p.b = append(p.b, mpFalse)
		}
	case value.KindNumber:
		p.number(v.AsNumber())
	case value.KindTable:
		if depth < maxPackDepth {
			return p.table(v.AsTable(), depth)
		}
		p.b = append(p.b, mpNil)
	default:
		p.b = append(p.b, mpNil)
	}
	return nil
}

func (p *packer) str(s string) error {
	n := uint64(len(s))
	switch {
	case n < 32:
		p.b = append(p.b, mpFixString|byte(n))
	case n <= math.MaxUint8:
		p.b = append(p.b, mpString8, byte(n))
	case n <= math.MaxUint16:
		p.b = binary.BigEndian.AppendUint16(append(p.b, mpString8+1), uint16(n))
	default:
		p.b = binary.BigEndian.AppendUint32(append(p.b, mpString32), uint32(n))
	}
	p.reserve(len(s))
	p.b = append(p.b, s...)
	return nil
}

// number packs an integer in as few bytes as hold it, and anything else as
// float32 when that loses nothing.
func (p *packer) number(f float64) {
	n := numeral.Truncate(f)
	switch {
	case float64(n) != f || math.IsInf(f, 0):
		if f == float64(float32(f)) {
			p.b = binary.BigEndian.AppendUint32(append(p.b, mpFloat32), math.Float32bits(float32(f)))
		} else {
			p.b = binary.BigEndian.AppendUint64(append(p.b, mpFloat64), math.Float64bits(f))
		}
	case n >= -32 && n <= math.MaxInt8:
		p.b = append(p.b, byte(n))
	case n >= 0:
		p.integer(uint64(n), uint64(n), mpUint8)
	default:
		p.integer(uint64(n), uint64(^n)<<1, mpInt8)
	}
}

// integer packs the low bytes of v, as many as need takes; small is the type of one byte.
func (p *packer) integer(v, need uint64, small byte) {
	switch {
	case need <= math.MaxUint8:
		p.b = append(p.b, small, byte(v))
	case need <= math.MaxUint16:
		p.b = binary.BigEndian.AppendUint16(append(p.b, small+1), uint16(v))
	case need <= math.MaxUint32:
		p.b = binary.BigEndian.AppendUint32(append(p.b, small+2), uint32(v))
	default:
		p.b = binary.BigEndian.AppendUint64(append(p.b, small+3), v)
	}
}

// table packs a table as an array when its keys are 1 to n, otherwise as a map.
func (p *packer) table(t *value.Table, depth int) error {
	count, largest, array := 0, 0.0, true
	for at, k, _ := t.NextAt(0); !k.IsNil(); at, k, _ = t.NextAt(at) {
		if count++; count&1023 == 0 {
			p.c.pay(1024)
		}
		if !array {
			continue
		}
		// An index is an int of C.
		if n := k.AsNumber(); k.Kind() != value.KindNumber || n <= 0 || n > math.MaxInt32 || n != math.Trunc(n) {
			array = false
		} else {
			largest = max(largest, n)
		}
	}
	if array && largest == float64(count) {
		p.length(count, mpFixArray, mpArray16)
		for i := 1; i <= count; i++ {
			if err := p.value(t.GetInt(i), depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	p.length(count, mpFixMap, mpMap16)
	for at, k, v := t.NextAt(0); !k.IsNil(); at, k, v = t.NextAt(at) {
		if err := p.value(k, depth+1); err != nil {
			return err
		}
		if err := p.value(v, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (p *packer) length(n int, fix, small byte) {
	switch {
	case n <= 15:
		p.b = append(p.b, fix|byte(n))
	case n <= math.MaxUint16:
		p.b = binary.BigEndian.AppendUint16(append(p.b, small), uint16(n))
	default:
		p.b = binary.BigEndian.AppendUint32(append(p.b, small+1), uint32(n))
	}
}
