package resp

import (
	"errors"
	"io"
)

// Sizes of a read buffer, in bytes.
const (
	startSize = 4 << 10  // the first one, which many clients never outgrow
	usualSize = 16 << 10 // as soon as one read has filled the first
	keepSize  = 64 << 10 // a larger one is dropped when what needed it is gone
	slack     = 512 << 10
)

// emptyReads is how often a source may return no bytes and no error in a row.
const emptyReads = 100

// buffer is the memory between a source and a parser. The bytes buf[r:w] have
// been read and not been handed out.
type buffer struct {
	src  io.Reader
	buf  []byte
	r, w int
	// err is how src ended; it counts when the bytes before it are used up.
	err error
	// retired is the size of buffers which only views keep alive.
	retired int
	// grow is asked for memory; nil grants all.
	grow func(delta int) error
}

func (b *buffer) unread() []byte { return b.buf[b.r:b.w] }

// charge asks for delta more bytes, or gives some back.
func (b *buffer) charge(delta int) error {
	if b.grow == nil || delta == 0 {
		return nil
	}
	err := b.grow(delta)
	if delta < 0 {
		return nil
	}
	return err
}

// fill reads once from the source. need is how many unread bytes the parser
// waits for, as far as it knows. Views into the buffer end here.
func (b *buffer) fill(need int) error {
	if b.err != nil {
		return b.err
	}
	if err := b.makeRoom(need); err != nil {
		return err
	}
	_, err := b.read()
	return err
}

// makeRoom sees to it that a byte can be read, moving or replacing the buffer.
func (b *buffer) makeRoom(need int) error {
	n := b.w - b.r
	size := len(b.buf)
	switch {
	case size == 0:
		size = startSize
	case size > keepSize && n < size/4 && need < size/4:
		// What needed this much is gone.
		size = b.sizeFor(n, need)
	case n == size:
		size = b.sizeFor(n, need)
	case size < usualSize && b.w == size:
		// The last read took all there was room for: there is more to come.
		size = usualSize
	}
	if size == len(b.buf) {
		if b.r > 0 {
			copy(b.buf, b.unread())
			b.r, b.w = 0, n
		}
		return nil
	}
	return b.replace(size)
}

// sizeFor is the size of the buffer to hold n received bytes of which the
// parser wants need. It doubles, so that copying stays linear; goes further by
// a fixed slack when a bulk is known to need it and the client has sent a
// buffer full already; and stops at what is needed when that is near.
func (b *buffer) sizeFor(n, need int) int {
	size := 2 * n
	switch {
	case need > size && n >= usualSize:
		size = min(need, size+slack)
	case need < size && need > n+n/2:
		size = need
	}
	return max(size, usualSize)
}

// replace moves the unread bytes to a new buffer of this size, which must hold
// them. The old one is not touched.
func (b *buffer) replace(size int) error {
	if err := b.charge(size - len(b.buf)); err != nil {
		return err
	}
	fresh := make([]byte, size)
	b.w = copy(fresh, b.unread())
	b.r = 0
	b.buf = fresh
	return nil
}

// read calls the source for the free space at the end, which must not be empty.
func (b *buffer) read() (int, error) {
	for range emptyReads {
		n, err := b.src.Read(b.buf[b.w:])
		if n < 0 || n > len(b.buf)-b.w {
			b.err = errors.New("resp: source returned an impossible count from Read")
			return 0, b.err
		}
		b.w += n
		if err != nil && !isTimeout(err) {
			// A deadline is how a connection loop interrupts a read; it may go on
			// later. Anything else is the end.
			b.err = err
		}
		if n > 0 {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
	b.err = io.ErrNoProgress
	return 0, b.err
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// release drops the buffer and gives its memory back.
func (b *buffer) release() {
	b.charge(-len(b.buf) - b.retired)
	b.buf, b.r, b.w, b.retired = nil, 0, 0, 0
}
