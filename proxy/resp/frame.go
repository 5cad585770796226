package resp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
)

// MaxDepth is how deep aggregates may nest in a reply.
const MaxDepth = 128

// DefaultMaxFrame is the longest reply frame where nothing else is said, in
// bytes.
const DefaultMaxFrame = 1 << 30

// ErrFrameTooBig ends a [FrameReader] that was sent, or announced, a longer
// frame than it was made for.
var ErrFrameTooBig = errors.New("resp: reply frame is longer than the limit")

// FrameError says why bytes from an upstream are no reply. The stream cannot be
// used any more, for where the next reply starts is not known.
type FrameError struct {
	Offset int    // bytes from the start of the frame to what was wrong
	Reason string // what was wrong and what would be right
}

func (e *FrameError) Error() string {
	return fmt.Sprintf("resp: bad reply frame at byte %d: %s", e.Offset, e.Reason)
}

// Frame is one reply of an upstream with all that is nested in it.
type Frame struct {
	// Raw is the frame as it was sent, attributes before it included. It is a
	// view, valid until the next call of Next.
	Raw []byte
	// Type is the reply's first byte, such as '$' or '*'; that of the reply
	// proper where attributes precede it.
	Type byte
	// Start is where the reply proper begins in Raw: after its attributes.
	Start int
}

// IsPush tells whether the frame is out of band: it answers no command.
func (f Frame) IsPush() bool { return f.Type == '>' }

// IsError tells whether the reply is an error, simple or bulk. An error nested
// in an array does not count.
func (f Frame) IsError() bool { return f.Type == '-' || f.Type == '!' }

// ErrorText returns the text of an error reply without '-' and line end, as a
// view of Raw; nil if the reply is none.
func (f Frame) ErrorText() []byte {
	b := f.Raw[f.Start:]
	switch f.Type {
	case '-':
		return b[1 : len(b)-2]
	case '!':
		return b[bytes.IndexByte(b, '\n')+1 : len(b)-2]
	}
	return nil
}

// FrameReader cuts the replies of an upstream Redis, RESP2 or RESP3, into whole
// frames. It belongs to one goroutine.
//
// It checks the framing strictly, for a reply that is one byte off would give
// one client's answer to another: CRLF must be in its place, numbers must be in
// order, nothing nests deeper than MaxDepth, and a push stands outside of other
// replies. Streamed strings and aggregates ("$?", "*?"), which no Redis sends,
// are refused. It takes no memory for a claimed length before the bytes are
// there.
type FrameReader struct {
	b   buffer
	max int
	err error

	// Where the walk over the frame at the start of the unread bytes stands.
	// Offsets count from there.
	pos   int // next element
	seen  int // no line end before this
	need  int // the first offset that tells more; 0 if not known
	start int // the reply proper
	kind  byte
	whole int // the frame's length when the walk is done; 0 before
	depth int
	// left[:depth] are the elements still to come of the open aggregates.
	left [MaxDepth]int
}

// NewFrameReader returns a FrameReader of the replies in src, each at most
// maxFrame bytes long; 0 means [DefaultMaxFrame]. grow, if not nil, is asked
// for memory and told of memory given back as [Limits.Grow] is.
func NewFrameReader(src io.Reader, maxFrame int, grow func(delta int) error) *FrameReader {
	r := &FrameReader{max: orDefault(maxFrame, DefaultMaxFrame)}
	r.b.src = src
	r.b.grow = grow
	return r
}

// Next returns the next reply frame. It reads from the source only if no whole
// frame has been read yet. Its error is io.EOF if the source ended between two
// frames, io.ErrUnexpectedEOF if it did within one, a *[FrameError],
// [ErrFrameTooBig], what grow said, or what the source said. After a timeout of
// the source Next may be called again and goes on; all other errors are final.
func (r *FrameReader) Next() (Frame, error) {
	for {
		n, err := r.walk()
		if err != nil {
			r.err = err
			return Frame{}, err
		}
		if n > 0 {
			f := Frame{Raw: r.b.unread()[:n:n], Type: r.kind, Start: r.start}
			r.b.r += n
			r.rewind()
			return f, nil
		}
		if err := r.b.fill(r.need); err != nil {
			switch {
			case isTimeout(err):
			case err == io.EOF && r.b.r < r.b.w:
				r.err = io.ErrUnexpectedEOF
				err = r.err
			default:
				r.err = err
			}
			return Frame{}, err
		}
	}
}

// Buffered tells whether Next returns, with a frame or an error, without
// reading from the source.
func (r *FrameReader) Buffered() bool {
	n, err := r.walk()
	if err != nil {
		r.err = err
	}
	return n > 0 || r.err != nil || r.b.err != nil
}

// Memory returns the bytes that the FrameReader's buffer holds.
func (r *FrameReader) Memory() int { return len(r.b.buf) }

// Release drops all memory and tells grow so. Frames end; Next returns
// io.ErrClosedPipe from now on if it had no error before.
func (r *FrameReader) Release() {
	r.b.release()
	if r.err == nil {
		r.err = io.ErrClosedPipe
	}
}

// rewind starts the walk of a new frame.
func (r *FrameReader) rewind() {
	r.pos, r.seen, r.need, r.start, r.kind, r.whole, r.depth = 0, 0, 0, 0, 0, 0, 0
}

// walk looks at the elements of the frame that have arrived since the last
// call. It returns the frame's length when it is whole, 0 when bytes are
// missing.
func (r *FrameReader) walk() (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if r.whole > 0 {
		return r.whole, nil
	}
	buf := r.b.unread()
	for {
		if r.need > len(buf) {
			return r.partial(buf)
		}
		done, err := r.element(buf)
		if err != nil {
			// However the bytes were split, what lies beyond the limit is not judged.
			var bad *FrameError
			if errors.As(err, &bad) && bad.Offset >= r.max {
				err = ErrFrameTooBig
			}
			return 0, err
		}
		if !done {
			return r.partial(buf)
		}
		if r.pos > r.max {
			return 0, ErrFrameTooBig
		}
		// Close the aggregates that this element was the last of.
		for r.depth > 0 && r.left[r.depth-1] == 0 {
			r.depth--
		}
		if r.depth == 0 && r.kind != 0 {
			r.whole = r.pos
			return r.whole, nil
		}
	}
}

// partial is what walk returns when bytes are missing.
func (r *FrameReader) partial(buf []byte) (int, error) {
	if len(buf) > r.max || r.need > r.max {
		return 0, ErrFrameTooBig
	}
	return 0, nil
}

func (r *FrameReader) bad(offset int, format string, args ...any) error {
	return &FrameError{Offset: offset, Reason: fmt.Sprintf(format, args...)}
}

// element passes over the element at pos: a simple one, a bulk, or the header
// of an aggregate. done is false when bytes are missing.
func (r *FrameReader) element(buf []byte) (done bool, err error) {
	if r.pos >= len(buf) {
		return false, nil
	}
	kind := buf[r.pos]
	if !knownType(kind) {
		return false, r.bad(r.pos, "got %q where a reply type should stand", kind)
	}
	from := max(r.seen, r.pos+1)
	i := bytes.IndexByte(buf[from:], '\n')
	if i < 0 {
		r.seen = len(buf)
		if kind != '+' && kind != '-' && kind != '(' && len(buf)-r.pos > maxHeader {
			return false, r.bad(r.pos+maxHeader, "header of %q has no end", kind)
		}
		return false, nil
	}
	end := from + i + 1
	r.seen = end - 1
	if kind != '+' && kind != '-' && kind != '(' && end-1-r.pos > maxHeader {
		return false, r.bad(r.pos+maxHeader, "header of %q has no end", kind)
	}
	if buf[end-2] != '\r' || end-2 == r.pos {
		return false, r.bad(end-1, "line of %q ends with LF, not CRLF", kind)
	}
	line := buf[r.pos+1 : end-2]
	if !inOrder(kind, line) {
		return false, r.bad(end-1, "%q does not go with type %q", clip(line), kind)
	}
	switch kind {
	case '$', '!', '=':
		return r.bulk(buf, kind, line, end)
	case '*', '~', '%', '>', '|':
		return true, r.aggregate(kind, line, end)
	}
	r.accept(kind, end)
	return true, nil
}

// maxHeader is longer than any number, length or double can be, in bytes.
const maxHeader = 512

// clip shortens what an error quotes.
func clip(b []byte) []byte { return b[:min(len(b), 32)] }

// accept moves on to end after an element that is not an attribute.
func (r *FrameReader) accept(kind byte, end int) {
	if r.depth > 0 {
		r.left[r.depth-1]--
	} else {
		r.kind, r.start = kind, r.pos
	}
	r.pos, r.seen, r.need = end, end, 0
}

// bulk passes over a string whose length stands in line.
func (r *FrameReader) bulk(buf []byte, kind byte, line []byte, end int) (bool, error) {
	length, ok := parseInt(line)
	if ok && length == -1 && kind == '$' {
		r.accept(kind, end)
		return true, nil
	}
	least := int64(0)
	if kind == '=' {
		least = 4 // "txt:"
	}
	if !ok || length < least {
		return false, r.bad(end-1, "%q is no length of %q", clip(line), kind)
	}
	after := end + int(min(length, math.MaxInt/2)) + 2
	if len(buf) < after {
		r.need = after
		return false, nil
	}
	if buf[after-2] != '\r' || buf[after-1] != '\n' {
		return false, r.bad(after-1, "bulk of %d bytes is not followed by CRLF", length)
	}
	if kind == '=' && buf[end+3] != ':' {
		return false, r.bad(after-1, "verbatim string without a format of three letters")
	}
	r.accept(kind, after)
	return true, nil
}

// aggregate passes over the header of one and opens it.
func (r *FrameReader) aggregate(kind byte, line []byte, end int) error {
	count, ok := parseInt(line)
	if ok && count == -1 && kind == '*' {
		r.accept(kind, end)
		return nil
	}
	if !ok || count < 0 || count > math.MaxInt32 {
		return r.bad(end-1, "%q is no number of elements of %q", clip(line), kind)
	}
	if kind == '>' && r.depth > 0 {
		return r.bad(end-1, "push inside another reply")
	}
	if kind == '%' || kind == '|' {
		count *= 2
	}
	if kind == '|' {
		// An attribute counts neither as the reply nor as an element.
		r.pos, r.seen, r.need = end, end, 0
	} else {
		r.accept(kind, end)
	}
	if count == 0 {
		return nil
	}
	if r.depth == MaxDepth {
		return r.bad(end-1, "nested deeper than %d", MaxDepth)
	}
	r.left[r.depth] = int(count)
	r.depth++
	return nil
}

func knownType(kind byte) bool {
	switch kind {
	case '+', '-', ':', '$', '*', '_', '#', ',', '(', '!', '=', '%', '~', '>', '|':
		return true
	}
	return false
}

// inOrder checks what stands between a type byte and CRLF, as far as framing
// depends on it.
func inOrder(kind byte, line []byte) bool {
	switch kind {
	case '+', '-':
		return bytes.IndexByte(line, '\r') < 0
	case ':':
		_, ok := parseInt(line)
		return ok || len(line) > 1 && line[0] == '+' && line[1] != '-' && inOrder(':', line[1:])
	case '(':
		if len(line) > 0 && (line[0] == '-' || line[0] == '+') {
			line = line[1:]
		}
		return only(line, "0123456789")
	case ',':
		return only(line, "0123456789+-.eEinfa")
	case '#':
		return len(line) == 1 && (line[0] == 't' || line[0] == 'f')
	case '_':
		return len(line) == 0
	}
	return true
}

// only tells whether line is made of these bytes, and not empty.
func only(line []byte, allowed string) bool {
	for _, c := range line {
		if bytes.IndexByte([]byte(allowed), c) < 0 {
			return false
		}
	}
	return len(line) > 0
}
