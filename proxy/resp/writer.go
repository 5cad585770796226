package resp

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Sizes of a Writer's memory, in bytes.
const (
	keepReplies = 16 << 10  // kept by every Reset
	maxReplies  = 128 << 10 // kept while it is made use of
	// spareResets is how many batches in a row may leave most of the memory
	// unused before it is dropped.
	spareResets = 32
)

// Writer builds replies in memory, in RESP2 or RESP3. The zero value writes
// RESP2 and is ready for use. It belongs to one goroutine.
//
// Its methods satisfy the Reply interface of store/command. An aggregate is
// opened with the number of its elements; whoever describes a reply keeps count,
// the Writer does not. Opening one with a negative number panics.
type Writer struct {
	buf   []byte
	resp3 bool
	spare int // resets in a row that found buf mostly unused
	max   int // see SetMax
}

// TooLarge is what Bulk and BulkString panic with beyond SetMax.
type TooLarge struct{ Max int }

// ReplyTooLarge is the text of the error reply for it.
func (e TooLarge) ReplyTooLarge() string {
	return "ERR the reply is larger than " + strconv.Itoa(e.Max) + " bytes"
}

// SetMax bounds the replies between two Resets, in bytes; 0: no bound. A string
// that would go beyond it is not written: Bulk and BulkString panic with a
// TooLarge, which whoever runs the command recovers and answers, since a handler
// half way through a reply could do no better.
func (w *Writer) SetMax(bytes int) { w.max = bytes }

func (w *Writer) room(bytes int) {
	if w.max > 0 && len(w.buf)+bytes > w.max {
		panic(TooLarge{w.max})
	}
}

// NewWriter returns a Writer of RESP2.
func NewWriter() *Writer { return new(Writer) }

// SetProto chooses the protocol version for what is written from now on: 2 or
// 3. It panics on others.
func (w *Writer) SetProto(version int) {
	if version != 2 && version != 3 {
		panic(fmt.Sprintf("resp: protocol version %d", version))
	}
	w.resp3 = version == 3
}

// Proto returns the protocol version, 2 or 3.
func (w *Writer) Proto() int {
	if w.resp3 {
		return 3
	}
	return 2
}

// Bytes returns the replies written since the last Reset. They are valid until
// the next call of a method that writes, rewinds or resets.
func (w *Writer) Bytes() []byte { return w.buf }

// Len returns the number of bytes written since the last Reset.
func (w *Writer) Len() int { return len(w.buf) }

// Cap returns the number of bytes of memory held.
func (w *Writer) Cap() int { return cap(w.buf) }

// Reset forgets all replies. It keeps up to 16 KiB of memory, up to 128 KiB for
// as long as batches need it, and drops what is larger. The protocol version
// stays.
func (w *Writer) Reset() {
	if c := cap(w.buf); c > keepReplies {
		if len(w.buf) > c/4 {
			w.spare = 0
		} else {
			w.spare++
		}
		if c > maxReplies || w.spare > spareResets {
			w.buf = nil
			w.spare = 0
		}
	}
	w.buf = w.buf[:0]
}

// Raw appends frames that are encoded already, such as an upstream's reply.
func (w *Writer) Raw(frames []byte) { w.buf = append(w.buf, frames...) }

// Status writes a simple string. CR and LF in it become spaces, lest they end
// the frame.
func (w *Writer) Status(s string) {
	if s == "OK" {
		w.buf = append(w.buf, "+OK\r\n"...)
		return
	}
	w.line('+', s)
}

// Error writes an error. msg begins with its code, without '-'. CR and LF in it
// become spaces.
func (w *Writer) Error(msg string) { w.line('-', msg) }

// line writes a frame that is one line.
func (w *Writer) line(prefix byte, s string) {
	w.buf = append(w.buf, prefix)
	w.text(s)
	w.buf = append(w.buf, '\r', '\n')
}

// text appends s with spaces in place of CR and LF.
func (w *Writer) text(s string) {
	start := len(w.buf)
	w.buf = append(w.buf, s...)
	if strings.IndexByte(s, '\n') < 0 && strings.IndexByte(s, '\r') < 0 {
		return
	}
	b := w.buf[start:]
	for i, c := range b {
		if c == '\r' || c == '\n' {
			b[i] = ' '
		}
	}
}

// Int writes an integer.
func (w *Writer) Int(n int64) {
	if n == 0 || n == 1 {
		w.buf = append(w.buf, ':', '0'+byte(n), '\r', '\n')
		return
	}
	w.header(':', n)
}

// header writes a prefix, a number and CRLF.
func (w *Writer) header(prefix byte, n int64) {
	if n >= 0 && n < 10 {
		w.buf = append(w.buf, prefix, '0'+byte(n), '\r', '\n')
		return
	}
	b := append(w.buf, prefix)
	b = strconv.AppendInt(b, n, 10)
	w.buf = append(b, '\r', '\n')
}

// aggregate opens one; n must not be negative.
func (w *Writer) aggregate(prefix byte, n int) {
	if n < 0 {
		panic(fmt.Sprintf("resp: aggregate %q opened with %d elements", prefix, n))
	}
	w.header(prefix, int64(n))
}

// Bulk writes a bulk string. b is copied.
func (w *Writer) Bulk(b []byte) {
	w.room(len(b))
	w.header('$', int64(len(b)))
	w.buf = append(w.buf, b...)
	w.buf = append(w.buf, '\r', '\n')
}

// BulkString writes a bulk string.
func (w *Writer) BulkString(s string) {
	w.room(len(s))
	w.header('$', int64(len(s)))
	w.buf = append(w.buf, s...)
	w.buf = append(w.buf, '\r', '\n')
}

// Null writes the null: a null bulk in RESP2.
func (w *Writer) Null() {
	if w.resp3 {
		w.buf = append(w.buf, "_\r\n"...)
		return
	}
	w.buf = append(w.buf, "$-1\r\n"...)
}

// NullArray writes the null: a null array in RESP2.
func (w *Writer) NullArray() {
	if w.resp3 {
		w.buf = append(w.buf, "_\r\n"...)
		return
	}
	w.buf = append(w.buf, "*-1\r\n"...)
}

// Array opens an array; n replies follow.
func (w *Writer) Array(n int) { w.aggregate('*', n) }

// Map opens a map of n pairs: in RESP2 an array. 2n replies follow.
func (w *Writer) Map(n int) {
	if w.resp3 {
		w.aggregate('%', n)
		return
	}
	w.aggregate('*', 2*n)
}

// Set opens a set: in RESP2 an array. n replies follow.
func (w *Writer) Set(n int) {
	if w.resp3 {
		w.aggregate('~', n)
		return
	}
	w.aggregate('*', n)
}

// Push opens a push: in RESP2 an array. n replies follow. It must not stand
// inside another reply.
func (w *Writer) Push(n int) {
	if w.resp3 {
		w.aggregate('>', n)
		return
	}
	w.aggregate('*', n)
}

// Double writes a floating point number with 17 significant digits, as Redis
// 7.0 (7.2 writes the shortest that reads back as the same): in RESP2 a bulk.
// Not a number is "nan" whatever its sign, where Redis shows the sign.
func (w *Writer) Double(f float64) {
	if w.resp3 {
		w.buf = append(w.buf, ',')
		w.buf = appendDouble(w.buf, f)
		w.buf = append(w.buf, '\r', '\n')
		return
	}
	// "-1.7976931348623157e+308" is as long as it gets.
	var text [32]byte
	w.Bulk(appendDouble(text[:0], f))
}

func appendDouble(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, "nan"...)
	case math.IsInf(f, 1):
		return append(b, "inf"...)
	case math.IsInf(f, -1):
		return append(b, "-inf"...)
	}
	return strconv.AppendFloat(b, f, 'g', 17, 64)
}

// Bool writes a boolean: in RESP2 the integer 1 or 0.
func (w *Writer) Bool(b bool) {
	switch {
	case w.resp3 && b:
		w.buf = append(w.buf, "#t\r\n"...)
	case w.resp3:
		w.buf = append(w.buf, "#f\r\n"...)
	case b:
		w.buf = append(w.buf, ":1\r\n"...)
	default:
		w.buf = append(w.buf, ":0\r\n"...)
	}
}

// BigNumber writes a decimal integer of any length: in RESP2 a bulk. CR and LF
// become spaces, as from a Lua script in Redis.
func (w *Writer) BigNumber(digits string) {
	if w.resp3 {
		w.line('(', digits)
		return
	}
	w.header('$', int64(len(digits)))
	w.text(digits)
	w.buf = append(w.buf, '\r', '\n')
}

// Verbatim writes text of a format of three letters: in RESP2 a bulk of the text
// alone. A shorter format is filled with spaces, a longer one cut, as in Redis.
func (w *Writer) Verbatim(format, text string) {
	if !w.resp3 {
		w.BulkString(text)
		return
	}
	w.header('=', int64(len(text))+4)
	f := [4]byte{' ', ' ', ' ', ':'}
	copy(f[:3], format)
	w.buf = append(w.buf, f[:]...)
	w.buf = append(w.buf, text...)
	w.buf = append(w.buf, '\r', '\n')
}

// Mark returns the present end of the replies, for Rewind.
func (w *Writer) Mark() int { return len(w.buf) }

// Rewind drops all that was written since the mark. It panics if there is no
// such mark any more.
func (w *Writer) Rewind(mark int) {
	if mark < 0 || mark > len(w.buf) {
		panic(fmt.Sprintf("resp: rewind to %d with %d bytes written", mark, len(w.buf)))
	}
	w.buf = w.buf[:mark]
}
