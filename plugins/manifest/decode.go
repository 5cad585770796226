package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxNesting is how deep a document may be; a manifest needs four.
const maxNesting = 8

// decoder reads a document into values and checks them. The first error sticks,
// and what is read after it is zero.
//
// encoding/json's own decoding into structs takes fields given twice and
// fields in other case, and cannot say where an unknown one stands.
type decoder struct{ err error }

func (d *decoder) fail(field, found, want string) {
	if d.err == nil {
		d.err = &Error{Field: field, Found: found, Want: want}
	}
}

// document reads JSON into maps, slices, strings, bools, nil and json.Number.
func (d *decoder) document(b []byte) any {
	if len(b) > MaxBytes {
		d.fail("", fmt.Sprintf("%d bytes", len(b)), fmt.Sprintf("at most %d", MaxBytes))
		return nil
	}
	if !utf8.Valid(b) {
		d.fail("", "bytes that are not UTF-8", "JSON in UTF-8")
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	v := d.value(dec, "", 0)
	if d.err != nil {
		return nil
	}
	if _, err := dec.Token(); err != io.EOF {
		d.fail("", fmt.Sprintf("more after the end, at byte %d", dec.InputOffset()), "one JSON object")
	}
	return v
}

func (d *decoder) value(dec *json.Decoder, path string, depth int) any {
	t := d.token(dec, path)
	open, nested := t.(json.Delim)
	if !nested {
		return t
	}
	if depth == maxNesting {
		d.fail(path, fmt.Sprintf("more than %d levels", maxNesting), "less nesting")
		return nil
	}
	if open == '[' {
		list := []any{}
		for d.err == nil && dec.More() {
			list = append(list, d.value(dec, fmt.Sprintf("%s[%d]", path, len(list)), depth+1))
		}
		d.token(dec, path)
		return list
	}
	fields := map[string]any{}
	for d.err == nil && dec.More() {
		name, ok := d.token(dec, path).(string)
		if !ok {
			break
		}
		field := join(path, name)
		if _, twice := fields[name]; twice {
			d.fail(field, "it twice", "each field once")
		}
		fields[name] = d.value(dec, field, depth+1)
	}
	d.token(dec, path)
	return fields
}

func (d *decoder) token(dec *json.Decoder, path string) json.Token {
	if d.err != nil {
		return nil
	}
	t, err := dec.Token()
	if err != nil {
		d.fail(path, fmt.Sprintf("%v at byte %d", err, dec.InputOffset()), "JSON")
	}
	return t
}

// object is a JSON object whose fields are taken one by one; close refuses
// those that are left.
type object struct {
	d      *decoder
	path   string
	fields map[string]any
	known  *[]string
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (o object) join(name string) string { return join(o.path, name) }

func (d *decoder) object(path string, v any) object {
	o := object{d: d, path: path, known: new([]string)}
	var ok bool
	if o.fields, ok = v.(map[string]any); !ok {
		d.fail(path, describe(v), "an object")
	}
	return o
}

// has tells whether a field that is known is there.
func (o object) has(name string) bool {
	if !slices.Contains(*o.known, name) {
		*o.known = append(*o.known, name)
	}
	_, ok := o.fields[name]
	return ok
}

// take returns a field, nil if it is absent. A null is not the same as absent.
func (o object) take(name string) any {
	o.has(name)
	v, ok := o.fields[name]
	delete(o.fields, name)
	if ok && v == nil {
		o.d.fail(o.join(name), "null", "a value, or no field at all")
	}
	return v
}

// need returns a field that must be there.
func (o object) need(name string) any {
	if !o.has(name) {
		o.d.fail(o.join(name), "nothing", "this field")
	}
	return o.take(name)
}

func (o object) close() {
	if len(o.fields) > 0 {
		unknown := slices.Sorted(maps.Keys(o.fields))[0]
		o.d.fail(o.join(unknown), "an unknown field", "one of "+quoteList(*o.known))
	}
}

func (d *decoder) string(path string, v any) string {
	s, ok := v.(string)
	if !ok {
		d.fail(path, describe(v), "a string")
	}
	return s
}

func (d *decoder) bool(path string, v any) bool {
	b, ok := v.(bool)
	if !ok {
		d.fail(path, describe(v), "true or false")
	}
	return b
}

func (d *decoder) number(path string, v any, least, most int64) int64 {
	n, ok := v.(json.Number)
	if !ok {
		d.fail(path, describe(v), "a whole number")
		return 0
	}
	i, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil || i < least || i > most {
		d.fail(path, n.String(), fmt.Sprintf("a whole number from %d to %d", least, most))
		return 0
	}
	return i
}

func (d *decoder) integer(o object, name string, least, most int64) int64 {
	return d.number(o.join(name), o.need(name), least, most)
}

// optional is integer for a field that may be absent, which is 0 then.
func (d *decoder) optional(o object, name string, least, most int64) int64 {
	if !o.has(name) {
		return 0
	}
	return d.integer(o, name, least, most)
}

// matching reads a string that ok accepts.
func (d *decoder) matching(o object, name string, ok func(string) bool, want string) string {
	s := d.string(o.join(name), o.need(name))
	if !ok(s) {
		d.fail(o.join(name), strconv.Quote(s), want)
	}
	return s
}

// text reads a string without control characters.
func (d *decoder) text(o object, name string, least, most int) string {
	s := d.string(o.join(name), o.need(name))
	if len(s) < least || len(s) > most {
		d.fail(o.join(name), fmt.Sprintf("%d bytes", len(s)), fmt.Sprintf("%d to %d bytes", least, most))
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		d.fail(o.join(name), strconv.Quote(s), "no control characters")
	}
	return s
}

// list returns the items of a list, none if it is absent.
func (d *decoder) list(path string, v any, most int) []any {
	if v == nil {
		return nil
	}
	items, ok := v.([]any)
	switch {
	case !ok:
		d.fail(path, describe(v), "a list")
	case len(items) > most:
		d.fail(path, fmt.Sprintf("%d items", len(items)), fmt.Sprintf("at most %d", most))
		return nil
	}
	return items
}

// words reads a list of known words, each at most once.
func (d *decoder) words(o object, name string, known []string) []string {
	var out []string
	for i, v := range d.list(o.join(name), o.take(name), maxList) {
		path := fmt.Sprintf("%s[%d]", o.join(name), i)
		s := d.string(path, v)
		if !slices.Contains(known, s) {
			d.fail(path, strconv.Quote(s), "one of "+quoteList(known))
		}
		if slices.Contains(out, s) {
			d.fail(path, strconv.Quote(s)+" again", "each once")
		}
		out = append(out, s)
	}
	return out
}

func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string:
		return "the string " + strconv.Quote(v)
	case json.Number:
		return "the number " + v.String()
	case bool:
		return strconv.FormatBool(v)
	case []any:
		return "a list"
	}
	return "an object"
}

func quoteList(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	return strings.Join(quoted, ", ")
}
