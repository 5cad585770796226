package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/latchkey-proxy/latchkey/proxy/quoting"
	"github.com/tidwall/resp"
)

// format is how replies are printed.
type format int

const (
	formatAuto format = iota // terminal when standard output is one, else raw
	formatTTY                // --no-raw: types, quotes and numbered elements
	formatRaw                // --raw: the bytes and the delimiters
	formatCSV                // --csv
	formatJSON               // --json
)

// layout is a format with the delimiters of raw output.
type layout struct {
	format   format
	elements string // -d: between the elements of an array
	replies  string // -D: after each reply
}

// reply appends the printed form of a whole reply to dst. verbatim says that
// the reply is a text made for reading, such as INFO's, which terminals get
// unquoted and as it is.
func (l layout) reply(dst []byte, v resp.Value, verbatim bool) []byte {
	switch {
	case verbatim:
		return appendRaw(dst, v, l.elements)
	case l.format == formatRaw:
		return append(appendRaw(dst, v, l.elements), l.replies...)
	case l.format == formatCSV:
		return append(appendCSV(dst, v), '\n')
	case l.format == formatJSON:
		return append(appendJSON(dst, v), '\n')
	}
	return appendTTY(dst, v, "")
}

// appendTTY appends v for a person to read. prefix is the indentation of the
// lines after the first; the caller has already written the first line's.
func appendTTY(dst []byte, v resp.Value, prefix string) []byte {
	switch v.Type() {
	case resp.Error:
		dst = append(append(dst, "(error) "...), v.Bytes()...)
	case resp.SimpleString:
		dst = append(dst, v.Bytes()...)
	case resp.Integer:
		dst = strconv.AppendInt(append(dst, "(integer) "...), int64(v.Integer()), 10)
	case resp.BulkString:
		if v.IsNull() {
			dst = append(dst, "(nil)"...)
		} else {
			dst = quoting.Append(dst, v.Bytes())
		}
	case resp.Array:
		elements := v.Array()
		switch {
		case v.IsNull():
			dst = append(dst, "(nil)"...)
		case len(elements) == 0:
			dst = append(dst, "(empty array)"...)
		default:
			width := len(strconv.Itoa(len(elements)))
			inner := prefix + strings.Repeat(" ", width+2)
			for i, e := range elements {
				if i > 0 {
					dst = append(dst, prefix...)
				}
				dst = fmt.Appendf(dst, "%*d) ", width, i+1)
				dst = appendTTY(dst, e, inner)
			}
			return dst // the last element has ended the line
		}
	}
	return append(dst, '\n')
}

// appendRaw appends the bytes of v and nothing else, but for the line feed
// that redis-cli writes after an error.
func appendRaw(dst []byte, v resp.Value, delimiter string) []byte {
	switch v.Type() {
	case resp.Error:
		return append(append(dst, v.Bytes()...), '\n')
	case resp.Integer:
		return strconv.AppendInt(dst, int64(v.Integer()), 10)
	case resp.Array:
		for i, e := range v.Array() {
			if i > 0 {
				dst = append(dst, delimiter...)
			}
			dst = appendRaw(dst, e, delimiter)
		}
		return dst
	}
	return append(dst, v.Bytes()...) // nothing for null
}

// appendCSV appends v as one record; nested arrays are flattened.
func appendCSV(dst []byte, v resp.Value) []byte {
	switch v.Type() {
	case resp.Error:
		return quoting.Append(append(dst, "ERROR,"...), v.Bytes())
	case resp.Integer:
		return strconv.AppendInt(dst, int64(v.Integer()), 10)
	case resp.Array:
		if v.IsNull() {
			return append(dst, "NULL"...)
		}
		for i, e := range v.Array() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendCSV(dst, e)
		}
		return dst
	}
	if v.IsNull() {
		return append(dst, "NULL"...)
	}
	return quoting.Append(dst, v.Bytes())
}

// appendJSON appends v as JSON. Bytes that are not UTF-8 are passed on as they
// are, and an error becomes error:"...", which is not JSON: both as redis-cli.
func appendJSON(dst []byte, v resp.Value) []byte {
	switch v.Type() {
	case resp.Error:
		return appendJSONString(append(dst, "error:"...), v.Bytes())
	case resp.Integer:
		return strconv.AppendInt(dst, int64(v.Integer()), 10)
	case resp.Array:
		if v.IsNull() {
			return append(dst, "null"...)
		}
		dst = append(dst, '[')
		for i, e := range v.Array() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, e)
		}
		return append(dst, ']')
	}
	if v.IsNull() {
		return append(dst, "null"...)
	}
	return appendJSONString(dst, v.Bytes())
}

func appendJSONString(dst, s []byte) []byte {
	dst = append(dst, '"')
	for _, c := range s {
		switch c {
		case '\\', '"':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\b':
			dst = append(dst, '\\', 'b')
		default:
			if c < ' ' {
				dst = fmt.Appendf(dst, `\u%04x`, c)
			} else {
				dst = append(dst, c)
			}
		}
	}
	return append(dst, '"')
}
