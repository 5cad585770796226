package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/tidwall/resp"
)

// Limits of one reply. The first two are tidwall/resp's own, the second of
// which it enforces by dropping the array without an error.
const (
	maxBulk     = 512 << 20 // bytes of one bulk string
	maxArray    = 1 << 20   // elements of one array
	maxElements = 4 << 20   // elements of a whole reply, some 70 bytes of memory each
	maxReply    = 1 << 30   // bytes of a whole reply
	maxDepth    = 128       // arrays within arrays; replies nest about ten deep
	maxHeader   = 32        // bytes of a line that holds a number
)

// errNotRESP2 is wrapped by errors about bytes that are no RESP2 reply, or one
// beyond the limits. The stream cannot be read any further.
var errNotRESP2 = errors.New("not a readable RESP2 reply")

// frameReader cuts a stream into whole replies. Nothing is allocated because
// of a length that was announced: the buffer grows with the bytes that came.
type frameReader struct {
	src *bufio.Reader
	buf []byte
}

func newFrameReader(src io.Reader) *frameReader {
	return &frameReader{src: bufio.NewReaderSize(src, 16<<10)}
}

// read returns the next reply. It fails with io.EOF between replies, with
// io.ErrUnexpectedEOF within one, and with errNotRESP2.
func (f *frameReader) read() (v resp.Value, err error) {
	if err := f.next(); err != nil {
		return resp.Value{}, err
	}
	// The frame is known to be well formed, so a panic would be a defect of
	// the library; it still must not take a prompt and its history down.
	defer func() {
		if p := recover(); p != nil {
			v, err = resp.Value{}, fmt.Errorf("%w: the decoder panicked: %v", errNotRESP2, p)
		}
	}()
	v, n, err := resp.NewReader(bytes.NewReader(f.buf)).ReadValue()
	if err != nil {
		return resp.Value{}, fmt.Errorf("%w: %w", errNotRESP2, err)
	}
	if n != len(f.buf) {
		return resp.Value{}, fmt.Errorf("%w: the decoder took %d of %d bytes", errNotRESP2, n, len(f.buf))
	}
	return v, nil
}

// next reads one reply into f.buf.
func (f *frameReader) next() error {
	if cap(f.buf) > 1<<20 {
		f.buf = nil // one large reply should not be paid for ever after
	}
	f.buf = f.buf[:0]
	var open []int // for each array being read, the elements to come
	for elements := 1; ; {
		start := len(f.buf)
		if err := f.line(); err != nil {
			return err
		}
		line := f.buf[start : len(f.buf)-2]
		switch line[0] {
		case '+', '-':
		case ':':
			if _, err := number(line, -1<<63, 1<<63-1); err != nil {
				return err
			}
		case '$':
			n, err := number(line, -1, maxBulk)
			if err != nil {
				return err
			}
			if n >= 0 {
				if err := f.bulk(n); err != nil {
					return err
				}
			}
		case '*':
			n, err := number(line, -1, maxArray)
			if err != nil {
				return err
			}
			if n > 0 {
				if elements += int(n); elements > maxElements {
					return fmt.Errorf("%w: more than %d elements in one reply", errNotRESP2, maxElements)
				}
				if len(open) == maxDepth {
					return fmt.Errorf("%w: arrays nested deeper than %d", errNotRESP2, maxDepth)
				}
				open = append(open, int(n))
				continue
			}
		}
		for len(open) > 0 {
			open[len(open)-1]--
			if open[len(open)-1] > 0 {
				break
			}
			open = open[:len(open)-1]
		}
		if len(open) == 0 {
			return nil
		}
	}
}

// line appends a line with its CRLF to f.buf. It looks at the first byte
// before it waits for more: a server that speaks something else may never send
// a CRLF.
func (f *frameReader) line() error {
	first, err := f.src.ReadByte()
	if err != nil {
		return f.eof(err)
	}
	limit := maxHeader
	switch first {
	case '+', '-':
		limit = maxReply // MONITOR's lines are status replies of any length
	case ':', '$', '*':
	case '%', '~', '>', '_', '#', ',', '(', '=', '!':
		return fmt.Errorf("%w: %q begins a RESP3 type, and this client did not ask for RESP3", errNotRESP2, first)
	default:
		return fmt.Errorf("%w: it begins with %q; is this a Redis server?", errNotRESP2, first)
	}
	start := len(f.buf)
	f.buf = append(f.buf, first)
	for {
		part, err := f.src.ReadSlice('\n')
		f.buf = append(f.buf, part...)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return f.eof(err)
		}
		if bytes.HasSuffix(f.buf[start:], []byte("\r\n")) {
			return nil
		}
		if len(f.buf)-start > limit || len(f.buf) > maxReply {
			return fmt.Errorf("%w: a line of more than %d bytes", errNotRESP2, len(f.buf)-start)
		}
	}
}

// bulk appends n bytes and their CRLF to f.buf.
func (f *frameReader) bulk(n int64) error {
	if int64(len(f.buf))+n+2 > maxReply {
		return fmt.Errorf("%w: more than %d bytes", errNotRESP2, maxReply)
	}
	for left := int(n) + 2; left > 0; {
		chunk := min(left, 64<<10)
		start := len(f.buf)
		f.buf = append(f.buf, make([]byte, chunk)...)
		got, err := io.ReadFull(f.src, f.buf[start:])
		if err != nil {
			f.buf = f.buf[:start+got]
			return f.eof(err)
		}
		left -= chunk
	}
	if !bytes.HasSuffix(f.buf, []byte("\r\n")) {
		return fmt.Errorf("%w: no CRLF after a bulk string of %d bytes", errNotRESP2, n)
	}
	return nil
}

// eof tells an end between replies from one within a reply.
func (f *frameReader) eof(err error) error {
	if len(f.buf) > 0 && errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// number parses what follows the type byte of a line.
func number(line []byte, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(string(line[1:]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %.40q holds no number", errNotRESP2, line)
	}
	if n < least || n > most {
		return 0, fmt.Errorf("%w: %q is outside of %d to %d", errNotRESP2, line, least, most)
	}
	return n, nil
}
