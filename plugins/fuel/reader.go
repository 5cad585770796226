package fuel

import (
	"fmt"
	"unicode/utf8"
)

// Error says why a module was refused.
type Error struct {
	Offset int    // bytes from the module's beginning
	Func   int    // index of the function it is in, -1 outside of any
	Reason string // what was found and what would be accepted
}

func (e *Error) Error() string {
	if e.Func >= 0 {
		return fmt.Sprintf("wasm: offset %d, function %d: %s", e.Offset, e.Func, e.Reason)
	}
	return fmt.Sprintf("wasm: offset %d: %s", e.Offset, e.Reason)
}

// reader walks over a module's bytes. The first error sticks: after it every
// method returns zero, so that a loop need only look at err now and then.
type reader struct {
	b    []byte // the whole module, up to the end of what may be read
	at   int    // offset of the next byte
	fn   int    // function being read, or -1
	what string // section being read, for messages
	err  *Error
}

func (r *reader) failAt(at int, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{Offset: at, Func: r.fn, Reason: fmt.Sprintf(format, args...)}
	}
}

func (r *reader) fail(format string, args ...any) { r.failAt(r.at, format, args...) }

// until returns a reader of the next n bytes and skips them here.
func (r *reader) until(n uint32) reader {
	if r.err == nil && uint64(n) > uint64(len(r.b)-r.at) {
		r.fail("%s: %d bytes announced, %d left", r.what, n, len(r.b)-r.at)
	}
	if r.err != nil {
		return reader{fn: r.fn, what: r.what, err: r.err}
	}
	sub := reader{b: r.b[:r.at+int(n)], at: r.at, fn: r.fn, what: r.what}
	r.at += int(n)
	return sub
}

func (r *reader) more() bool { return r.err == nil && r.at < len(r.b) }

func (r *reader) byte() byte {
	if r.err != nil {
		return 0
	}
	if r.at >= len(r.b) {
		r.fail("%s: unexpected end", r.what)
		return 0
	}
	c := r.b[r.at]
	r.at++
	return c
}

func (r *reader) skip(n uint32) {
	if r.err != nil {
		return
	}
	if uint64(n) > uint64(len(r.b)-r.at) {
		r.fail("%s: %d bytes announced, %d left", r.what, n, len(r.b)-r.at)
		return
	}
	r.at += int(n)
}

// u32 reads an unsigned LEB128 of at most 5 bytes whose unused bits are zero.
func (r *reader) u32() uint32 {
	start := r.at
	// One byte holds nearly every number there is.
	if r.err == nil && start < len(r.b) && r.b[start] < 0x80 {
		r.at++
		return uint32(r.b[start])
	}
	var v uint32
	for shift := 0; ; shift += 7 {
		c := r.byte()
		if r.err != nil {
			return 0
		}
		if shift == 28 && c > 0x0f {
			r.failAt(start, "%s: number longer than 32 bits", r.what)
			return 0
		}
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
}

// signed reads a signed LEB128 of the given width (32, 33 or 64 bits).
func (r *reader) signed(width int) int64 {
	start := r.at
	var v int64
	for shift := 0; ; shift += 7 {
		c := r.byte()
		if r.err != nil {
			return 0
		}
		if left := width - shift; left < 7 {
			// The unused bits must repeat the sign, and no byte may follow.
			sign := int8(c<<1) >> left // bits from the sign bit up, of seven
			if c >= 0x80 || (sign != 0 && sign != -1) {
				r.failAt(start, "%s: number longer than %d bits", r.what, width)
				return 0
			}
		}
		v |= int64(c&0x7f) << shift
		if c < 0x80 {
			if shift+7 < 64 && c&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
}

// count reads the length of a vector, of which no more than limit are allowed
// and whose items take a byte each at least.
func (r *reader) count(limit int, items string) int {
	start := r.at
	n := r.u32()
	if r.err != nil {
		return 0
	}
	if uint64(n) > uint64(limit) {
		r.failAt(start, "%d %s, at most %d are allowed", n, items, limit)
		return 0
	}
	if int(n) > len(r.b)-r.at {
		r.failAt(start, "%d %s announced in %d bytes", n, items, len(r.b)-r.at)
		return 0
	}
	return int(n)
}

// index reads an index that must be less than n.
func (r *reader) index(n int, of string) uint32 {
	start := r.at
	i := r.u32()
	if r.err == nil && uint64(i) >= uint64(n) {
		r.failAt(start, "%s %d, but the module has %d", of, i, n)
		return 0
	}
	return i
}

// name reads a string. It is a view into the module.
func (r *reader) name() []byte {
	start := r.at
	sub := r.until(r.u32())
	if r.err != nil {
		return nil
	}
	s := sub.b[sub.at:]
	if !utf8.Valid(s) {
		r.failAt(start, "%s: name is not UTF-8", r.what)
		return nil
	}
	return s
}

// valType reads a value type.
func (r *reader) valType() byte {
	t := r.byte()
	if r.err == nil && !isValType(t) {
		r.failAt(r.at-1, "%s: unknown value type 0x%02x", r.what, t)
	}
	return t
}

// refType reads funcref or externref.
func (r *reader) refType() byte {
	t := r.byte()
	if r.err == nil && t != typeFuncRef && t != typeExternRef {
		r.failAt(r.at-1, "%s: unknown reference type 0x%02x", r.what, t)
	}
	return t
}
