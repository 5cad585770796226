package lib

import (
	"strings"
	"unicode/utf8"

	"github.com/latchkey-proxy/latchkey/scripting/numeral"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// token is what the decoder has read; its names are those of error messages.
type token uint8

const (
	tokenObjectBegin token = iota
	tokenObjectEnd
	tokenArrayBegin
	tokenArrayEnd
	tokenString
	tokenNumber
	tokenBoolean
	tokenNull
	tokenColon
	tokenComma
	tokenEnd
	tokenError
)

var tokenNames = [...]string{
	"T_OBJ_BEGIN", "T_OBJ_END", "T_ARR_BEGIN", "T_ARR_END", "T_STRING", "T_NUMBER", "T_BOOLEAN", "T_NULL",
	"T_COLON", "T_COMMA", "T_END",
}

func decodeJSON(c *Call, s *Settings) error {
	if len(c.Args) != 1 {
		return argError(1, "expected 1 argument")
	}
	text, err := c.str(1)
	if err != nil {
		return err
	}
	if len(text) >= 2 && (text[0] == 0 || text[1] == 0) {
		return failf("JSON parser does not support UTF-16 or UTF-32")
	}
	d := decoder{c: c, s: s, text: text}
	d.next()
	v, err := d.value(1)
	if err != nil {
		return err
	}
	if d.next(); d.token != tokenEnd {
		return d.unexpected("the end")
	}
	c.result(v)
	return nil
}

// decoder reads a text as C does: a NUL ends it.
type decoder struct {
	c     *Call
	s     *Settings
	text  string
	pos   int
	depth int

	token   token
	begin   int         // of the token
	read    value.Value // of strings, numbers and booleans
	problem string      // of tokenError
}

// at is the byte at i, 0 at the end.
func (d *decoder) at(i int) byte {
	if i < len(d.text) {
		return d.text[i]
	}
	return 0
}

func (d *decoder) wrong(problem string) {
	d.token, d.begin, d.problem = tokenError, d.pos, problem
}

func (d *decoder) single(t token) {
	d.token = t
	d.pos++
}

// next reads a token. After an error the position stays there.
func (d *decoder) next() {
	for {
		c := d.at(d.pos)
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			break
		}
		if d.pos++; d.pos%stride == 0 {
			d.c.pay(stride >> 6)
		}
	}
	d.begin = d.pos
	switch c := d.at(d.pos); c {
	case 0:
		d.token = tokenEnd
	case '{':
		d.single(tokenObjectBegin)
	case '}':
		d.single(tokenObjectEnd)
	case '[':
		d.single(tokenArrayBegin)
	case ']':
		d.single(tokenArrayEnd)
	case ',':
		d.single(tokenComma)
	case ':':
		d.single(tokenColon)
	case '"':
		d.str()
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if !d.s.decodeInvalid && d.invalidNumber() {
			d.wrong("invalid number")
			return
		}
		d.number()
	case 'f', 'i', 'I', 'n', 'N', 't', '+':
		rest := d.text[d.pos:]
		switch {
		case strings.HasPrefix(rest, "true"):
			d.word("true", tokenBoolean, value.True)
		case strings.HasPrefix(rest, "false"):
			d.word("false", tokenBoolean, value.False)
		case strings.HasPrefix(rest, "null"):
			d.word("null", tokenNull, Null)
		case d.s.decodeInvalid && d.invalidNumber():
			d.number()
		default:
			d.wrong("invalid token")
		}
	default:
		d.wrong("invalid token")
	}
}

func (d *decoder) word(text string, t token, v value.Value) {
	d.token, d.read = t, v
	d.pos += len(text)
}

// invalidNumber says that what stands here is a number to C but not to JSON:
// with a plus sign, hexadecimal, with leading zeros, infinite or not a number.
func (d *decoder) invalidNumber() bool {
	p := d.pos
	if d.at(p) == '+' {
		return true
	}
	if d.at(p) == '-' {
		p++
	}
	switch c := d.at(p); {
	case c == '0':
		next := d.at(p + 1)
		return next|0x20 == 'x' || isDigit(next)
	case c <= '9':
		return false
	}
	word := d.text[p:min(p+3, len(d.text))]
	return strings.EqualFold(word, "inf") || strings.EqualFold(word, "nan")
}

func (d *decoder) number() {
	f, n := numeral.Prefix(d.text[d.pos:])
	if n == 0 {
		d.wrong("invalid number")
		return
	}
	d.token, d.read = tokenNumber, value.Number(f)
	d.pos += n
}

// unescaped are the bytes that escapes of one letter stand for.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 't': '\t', 'n': '\n', 'f': '\f', 'r': '\r'}

// stride is how many bytes are read before they are paid for.
const stride = 1 << 14

// str reads a string. One without escapes shares the text's bytes.
func (d *decoder) str() {
	d.pos++
	begin := d.pos
	var out buffer
	escaped := false
	for {
		c := d.at(d.pos)
		switch c {
		case 0:
			d.wrong("unexpected end of string")
			return
		case '"':
			s := d.text[begin:d.pos]
			if escaped {
				out.reserve(len(s))
				out.b = append(out.b, s...)
				d.c.alloc(len(out.b))
				s = string(out.b)
				out.done()
			}
			d.pos++
			d.token, d.read = tokenString, value.String(s)
			return
		case '\\':
			if !escaped {
				out, escaped = d.c.output(), true
			}
			out.reserve(d.pos - begin + utf8.UTFMax)
			out.b = append(out.b, d.text[begin:d.pos]...)
			if escape := d.at(d.pos + 1); escape == 'u' {
				r := d.unicode()
				if r < 0 {
					d.wrong("invalid unicode escape code")
					return
				}
				out.b = utf8.AppendRune(out.b, r)
			} else if raw := unescaped[escape]; raw != 0 {
				out.b = append(out.b, raw)
				d.pos += 2
			} else {
				d.wrong("invalid escape code")
				return
			}
			begin = d.pos
		default:
			if d.pos++; d.pos%stride == 0 {
				d.c.pay(stride >> 6)
			}
		}
	}
}

// unicode reads \uXXXX, or two of them that are a surrogate pair; -1 when it cannot.
func (d *decoder) unicode() rune {
	r := d.hex(d.pos + 2)
	size := 6
	if r >= 0 && r&0xf800 == 0xd800 {
		low := d.hex(d.pos + 8)
		if r&0x400 != 0 || d.at(d.pos+6) != '\\' || d.at(d.pos+7) != 'u' || low < 0 || low&0xfc00 != 0xdc00 {
			return -1
		}
		r = (r&0x3ff<<10 | low&0x3ff) + 0x10000
		size = 12
	}
	if r >= 0 {
		d.pos += size
	}
	return r
}

// hex reads four digits, or returns -1.
func (d *decoder) hex(i int) rune {
	r := rune(0)
	for k := range 4 {
		c := d.at(i + k)
		switch {
		case isDigit(c):
			c -= '0'
		case c|0x20-'a' < 6:
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

func (d *decoder) unexpected(want string) error {
	found := d.problem
	if d.token != tokenError {
		found = tokenNames[d.token]
	}
	return failf("Expected %s but found %s at character %d", want, found, d.begin+1)
}

// value makes the value of the token. slots is how many values Redis's Lua stack
// would hold by now.
func (d *decoder) value(slots int) (value.Value, error) {
	d.c.pay(1 + (d.pos-d.begin)>>6)
	switch d.token {
	case tokenString, tokenNumber, tokenBoolean, tokenNull:
		return d.read, nil
	case tokenObjectBegin:
		return d.object(slots)
	case tokenArrayBegin:
		return d.array(slots)
	}
	return value.Nil, d.unexpected("value")
}

// descend begins a table that needs some slots of Redis's stack. A table without
// elements ends at once: then it is whole.
func (d *decoder) descend(slots, need int, end token) (t *value.Table, whole bool, err error) {
	d.depth++
	if d.depth > int(d.s.decodeDepth) || slots+need > stackSlots {
		return nil, false, failf("Found too many nested data structures (%d) at character %d", d.depth, d.pos)
	}
	d.next()
	return d.c.table(), d.ends(end), nil
}

// ends tells whether the token is the end of the table that is being read.
func (d *decoder) ends(end token) bool {
	if d.token != end {
		return false
	}
	d.depth--
	return true
}

func (d *decoder) object(slots int) (value.Value, error) {
	t, whole, err := d.descend(slots, 3, tokenObjectEnd)
	if err != nil {
		return value.Nil, err
	}
	for !whole {
		if d.token != tokenString {
			return value.Nil, d.unexpected("object key string")
		}
		key := d.read
		d.c.pay((d.pos - d.begin) >> 6)
		if d.next(); d.token != tokenColon {
			return value.Nil, d.unexpected("colon")
		}
		d.next()
		v, err := d.value(slots + 2)
		if err != nil {
			return value.Nil, err
		}
		t.SetStr(key.AsString(), v)
		d.next()
		if whole = d.ends(tokenObjectEnd); whole {
			break
		}
		if d.token != tokenComma {
			return value.Nil, d.unexpected("comma or object end")
		}
		d.next()
	}
	return value.FromTable(t), nil
}

func (d *decoder) array(slots int) (value.Value, error) {
	t, whole, err := d.descend(slots, 2, tokenArrayEnd)
	if err != nil {
		return value.Nil, err
	}
	for i := 1; !whole; i++ {
		v, err := d.value(slots + 1)
		if err != nil {
			return value.Nil, err
		}
		t.SetInt(i, v)
		d.next()
		if whole = d.ends(tokenArrayEnd); whole {
			break
		}
		if d.token != tokenComma {
			return value.Nil, d.unexpected("comma or array end")
		}
		d.next()
	}
	return value.FromTable(t), nil
}
