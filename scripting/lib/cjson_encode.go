package lib

import (
	"math"

	"github.com/latchkey-proxy/latchkey/scripting/numeral"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

func encodeJSON(c *Call, s *Settings) error {
	if len(c.Args) != 1 {
		return argError(1, "expected 1 argument")
	}
	e := encoder{buffer: c.output(), s: s}
	defer e.done()
	if err := e.value(c.Args[0], 0, 1); err != nil {
		return err
	}
	c.resultBytes(e.b)
	return nil
}

type encoder struct {
	buffer
	s *Settings
}

func cannotSerialise(v value.Value, why string) error {
	return failf("Cannot serialise %s: %s", v.Kind(), why)
}

// value writes v. slots is how many values Redis's Lua stack would hold by now.
func (e *encoder) value(v value.Value, depth, slots int) error {
	e.c.pay(1)
	e.reserve(numeral.MaxText)
	switch v.Kind() {
	case value.KindString:
		return e.str(v.AsString())
	case value.KindNumber:
		return e.number(v)
	case value.KindBool:
		if v.AsBool() {
			e.b = append(e.b, "true"...)
		} else {
			e.b = append(e.b, "false"...)
		}
	case value.KindNil:
		e.b = append(e.b, "null"...)
	case value.KindTable:
		depth++
		if depth > int(e.s.encodeDepth) || slots+3 > stackSlots {
			return failf("Cannot serialise, excessive nesting (%d)", depth)
		}
		t := v.AsTable()
		n, err := e.arrayLength(t)
		if err != nil {
			return err
		}
		if n > 0 {
			return e.array(t, n, depth, slots)
		}
		return e.object(t, depth, slots)
	default:
		if !value.Equal(v, Null) {
			return cannotSerialise(v, "type not supported")
		}
		e.b = append(e.b, "null"...)
	}
	return nil
}

// arrayLength is how many elements t has as an array, at most 0 for an object.
func (e *encoder) arrayLength(t *value.Table) (int, error) {
	largest, items := int32(0), int32(0) // C's int, whose product below overflows
	for at, k, _ := t.NextAt(0); !k.IsNil(); at, k, _ = t.NextAt(at) {
		if !k.IsNumber() {
			return -1, nil
		}
		f := k.AsNumber()
		if !(f >= 1) || math.Floor(f) != f {
			return -1, nil
		}
		if f > math.MaxInt32 {
			// Redis's int overflows: alone such a key makes an object, beside
			// others it may get lost.
			return -1, nil
		}
		largest = max(largest, int32(f))
		if items++; items&1023 == 0 {
			e.c.pay(1024)
		}
	}
	if s := e.s; s.sparseRatio > 0 && largest > items*s.sparseRatio && largest > s.sparseSafe {
		if !s.sparseConvert {
			return 0, cannotSerialise(value.FromTable(t), "excessively sparse array")
		}
		return -1, nil
	}
	return int(largest), nil
}

func (e *encoder) array(t *value.Table, n, depth, slots int) error {
	e.b = append(e.b, '[')
	for i := 1; i <= n; i++ {
		if err := e.value(t.GetInt(i), depth, slots+1); err != nil {
			return err
		}
		e.b = append(e.b, ',')
	}
	e.b[len(e.b)-1] = ']'
	return nil
}

func (e *encoder) object(t *value.Table, depth, slots int) error {
	e.b = append(e.b, '{')
	first := true
	for at, k, v := t.NextAt(0); !k.IsNil(); at, k, v = t.NextAt(at) {
		e.reserve(2 * numeral.MaxText)
		if !first {
			e.b = append(e.b, ',')
		}
		first = false
		switch k.Kind() {
		case value.KindNumber:
			e.b = append(e.b, '"')
			if err := e.number(k); err != nil {
				return err
			}
			e.b = append(e.b, '"')
		case value.KindString:
			if err := e.str(k.AsString()); err != nil {
				return err
			}
		default:
			return cannotSerialise(k, "table key must be a number or string")
		}
		e.b = append(e.b, ':')
		if err := e.value(v, depth, slots+2); err != nil {
			return err
		}
	}
	e.reserve(1)
	e.b = append(e.b, '}')
	return nil
}

// number writes a number; its caller has reserved the room.
func (e *encoder) number(v value.Value) error {
	f := v.AsNumber()
	if math.IsInf(f, 0) || math.IsNaN(f) {
		switch e.s.encodeInvalid {
		case invalidOff:
			return cannotSerialise(v, "must not be NaN or Inf")
		case invalidNull:
			e.b = append(e.b, "null"...)
			return nil
		}
		if math.IsNaN(f) {
			e.b = append(e.b, "nan"...) // without the sign that C would show
			return nil
		}
	}
	if e.s.precision == 14 {
		e.b = numeral.Append(e.b, f)
	} else {
		e.b = numeral.AppendG(e.b, f, int(e.s.precision), false)
	}
	return nil
}

// escapes is what is not written as it is: control characters, quotes, both slashes and DEL.
var escapes = func() (list [256]string) {
	const hex = "0123456789abcdef"
	for c := range list {
		if c < ' ' || c == 0x7f {
			list[c] = `\u00` + string([]byte{hex[c>>4], hex[c&15]})
		}
	}
	for c, text := range map[byte]string{
		'\b': `\b`, '\t': `\t`, '\n': `\n`, '\f': `\f`, '\r': `\r`, '"': `\"`, '/': `\/`, '\\': `\\`,
	} {
		list[c] = text
	}
	return list
}()

// spare is what str leaves free for the bytes that its caller writes after it.
const spare = 8

func (e *encoder) str(s string) error {
	e.c.pay(len(s) >> 6)
	e.reserve(len(s) + 2 + spare)
	e.b = append(e.b, '"')
	begin := 0
	for i := range len(s) {
		text := escapes[s[i]]
		if text == "" {
			continue
		}
		e.reserve(len(s) - begin + len(text) + 1 + spare)
		e.b = append(append(e.b, s[begin:i]...), text...)
		begin = i + 1
	}
	e.b = append(append(e.b, s[begin:]...), '"')
	return nil
}
