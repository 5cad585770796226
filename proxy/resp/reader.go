package resp

import (
	"io"
	"unsafe"
)

// Sizes of an argument table, in arguments.
const (
	startArgs = 8
	keepArgs  = 1024 // a larger one is dropped when its command is gone
)

const argSize = int(unsafe.Sizeof([]byte(nil)))

// Reader cuts a client's bytes into commands. It belongs to one goroutine; see
// ReadAhead for the one exception.
type Reader struct {
	lim *Limits
	b   buffer
	// scan is how far the command at the start of the unread bytes has been
	// looked at; the zero value if not at all.
	scan scan
	// err is the verdict after which nothing more is returned.
	err error
	// cmds[cur] is the command that Next returned last. Buffered parses into the
	// other one, so that it does not disturb the one being executed.
	cmds    [2]frame
	cur     int
	pending bool // cmds[1-cur] is to be returned next
	// ahead, if there is one, are commands at the start of the unread bytes.
	ahead *ahead
}

// frame is one whole command: views into the read buffer.
type frame struct {
	args [][]byte
	raw  []byte
	// table is the memory of args, kept for the next command.
	table [][]byte
	// unquoted holds inline arguments which had quotes.
	unquoted []byte
}

// NewReader returns a Reader of the commands in src. No memory is taken before
// the first Next. lim is kept, not copied; nil means the zero Limits.
func NewReader(src io.Reader, lim *Limits) *Reader {
	if lim == nil {
		lim = new(Limits)
	}
	r := &Reader{lim: lim}
	r.b.src = src
	r.b.grow = r.grow
	return r
}

func (r *Reader) grow(delta int) error {
	if r.lim.Grow == nil {
		return nil
	}
	return r.lim.Grow(delta)
}

// Next returns the next command: its arguments, at least one, and raw, the
// bytes that it was sent as, fit to be forwarded. For an inline command raw is
// the line with its end. Requests without arguments (empty lines, *0, *-1) are
// passed over, as Redis does.
//
// args and what it and raw point to are views, valid until the next call of
// Next; they may be written to, not appended to beyond. Buffered, ReadAhead
// and QueryMemory leave them alone.
//
// Next reads from the source only if no whole command has been read yet. Its
// error is io.EOF if the source ended between two commands,
// io.ErrUnexpectedEOF if it did within one, a *[ProtocolError],
// [ErrQueryLimit], what [Limits.Grow] said, or what the source said. After a
// timeout of the source Next may be called again and goes on; all other errors
// are final.
func (r *Reader) Next() (args [][]byte, raw []byte, err error) {
	if r.pending {
		r.pending = false
		r.cur = 1 - r.cur
		f := &r.cmds[r.cur]
		return f.args, f.raw, nil
	}
	f := &r.cmds[r.cur]
	if a := r.ahead; a.more() && len(f.table) >= aheadArgs && a.judged == r.lim.bounds() {
		a.next(f, &r.b)
		return f.args, f.raw, nil
	}
	if r.parse(f) {
		return f.args, f.raw, nil
	}
	return r.nextSlow(f)
}

// nextSlow is Next when the bytes at hand are not a command.
func (r *Reader) nextSlow(f *frame) ([][]byte, []byte, error) {
	for {
		if r.err != nil {
			return nil, nil, r.err
		}
		r.forget()
		if err := r.b.fill(r.scan.need); err != nil {
			switch {
			case isTimeout(err):
			case err == io.EOF && (r.b.r < r.b.w || r.scan != scan{}):
				r.err = io.ErrUnexpectedEOF
				err = r.err
			default:
				r.err = err
			}
			return nil, nil, err
		}
		if r.parse(f) {
			return f.args, f.raw, nil
		}
	}
}

// Buffered tells whether the next call of Next returns, with a command or an
// error, without reading from the source. A connection loop flushes its
// replies when it is false. It leaves the views of the last Next alone; the
// limits are those found now.
func (r *Reader) Buffered() bool {
	if r.pending || r.err != nil || r.ahead.more() {
		return true
	}
	if r.parse(&r.cmds[1-r.cur]) {
		r.pending = true
		return true
	}
	return r.err != nil || r.b.err != nil
}

// parse cuts one command from the unread bytes. If it returns false, either
// r.err is set or more bytes are needed.
func (r *Reader) parse(f *frame) bool {
	if r.ahead != nil {
		r.ahead.forget()
	}
	buf := r.b.unread()
	if len(buf) == 0 || r.err != nil {
		return false
	}
	if buf[0] == '*' && r.scan == (scan{}) {
		maxArgs, maxBulk, maxQuery := r.lim.cuts(len(f.table))
		count, n := cut(buf, f.table, maxArgs, maxBulk)
		if n > 0 && n <= maxQuery {
			f.args = f.table[:count]
			f.raw = buf[:n:n]
			r.b.r += n
			return true
		}
	}
	return r.parseSlow(f)
}

// parseSlow handles all requests, resuming where the last call ran out of
// bytes.
func (r *Reader) parseSlow(f *frame) bool {
	maxQuery := orDefault(r.lim.MaxQuery, DefaultMaxQuery)
	for {
		buf := r.b.unread()
		if len(buf) == 0 {
			return false
		}
		var n int
		var bad *ProtocolError
		if buf[0] == '*' {
			n, bad = r.scan.multibulk(buf, r.lim)
		} else {
			n, bad = scanInline(buf, r.lim)
		}
		// However the bytes were split, what lies beyond the limit is not judged:
		// n is where the command or its error ends.
		if n > maxQuery || n == 0 && len(buf) > maxQuery {
			r.err = ErrQueryLimit
			return false
		}
		if bad != nil {
			r.err = bad
			return false
		}
		if n == 0 {
			return false
		}
		count := r.scan.count
		r.scan = scan{}
		if buf[0] == '*' {
			if count > 0 {
				if r.err = r.tableFor(f, count); r.err != nil {
					return false
				}
				cut(buf[:n], f.table, count, n)
				f.args = f.table[:count]
			}
		} else {
			count, r.err = r.inline(f, buf[:n])
			if r.err != nil {
				return false
			}
		}
		r.b.r += n
		if count > 0 {
			f.raw = buf[:n:n]
			return true
		}
	}
}

// tableFor makes room for this many arguments.
func (r *Reader) tableFor(f *frame, count int) error {
	if count <= len(f.table) {
		return nil
	}
	size := count
	if count <= keepArgs {
		for size = startArgs; size < count; {
			size *= 2
		}
	}
	if err := r.b.charge((size - len(f.table)) * argSize); err != nil {
		return err
	}
	f.table = make([][]byte, size)
	return nil
}

// forget drops what only the last commands needed, and the views that would
// keep a dropped buffer alive.
func (r *Reader) forget() {
	stale := r.b.retired > 0 || len(r.b.buf) > keepSize
	r.b.charge(-r.b.retired)
	r.b.retired = 0
	for i := range r.cmds {
		f := &r.cmds[i]
		if len(f.table) > keepArgs {
			r.b.charge(-len(f.table) * argSize)
			f.table = nil
		}
		if cap(f.unquoted) > keepUnquoted {
			r.b.charge(-cap(f.unquoted))
			f.unquoted = nil
		}
		if stale {
			clear(f.table)
		}
		f.args, f.raw = nil, nil
	}
}

// ReadAhead calls the source's Read once, into free space behind the bytes
// already read, and returns how many bytes came. It is for a connection whose
// command waits: another goroutine may notice meanwhile that the client went
// away, and collect what it sends. It never moves what views point to.
//
// One goroutine may be in ReadAhead while the owner is in no method of the
// Reader and changes no limits; handing over needs a happens-before edge in
// both directions, such as a channel.
//
// It returns [ErrReadAheadFull] without reading if [Limits.MaxReadAhead] bytes
// wait already. Other errors are the source's or of [Limits.Grow]; unless it
// was a timeout, Next returns it too, after the commands before it.
func (r *Reader) ReadAhead() (n int, err error) {
	b := &r.b
	if r.err != nil {
		return 0, r.err
	}
	if b.err != nil {
		return 0, b.err
	}
	limit := orDefault(r.lim.MaxReadAhead, DefaultMaxReadAhead)
	n = b.w - b.r
	if n >= limit {
		return 0, ErrReadAheadFull
	}
	if b.w == len(b.buf) {
		size := max(startSize, min(2*n, max(limit, n+1)))
		if len(b.buf) > 0 && n > 0 {
			size = max(size, usualSize)
		}
		// The views keep the old buffer alive: both count until the next fill.
		old := len(b.buf)
		if err := b.charge(size); err != nil {
			r.err = err
			return 0, err
		}
		b.retired += old
		fresh := make([]byte, size)
		b.w = copy(fresh, b.unread())
		b.r = 0
		b.buf = fresh
	}
	// Stay within the limit even if the buffer is large.
	free := b.buf
	b.buf = free[:min(len(free), b.w+limit-n)]
	n, err = b.read()
	b.buf = free
	return n, err
}

// QueryMemory returns the bytes that the Reader holds: its read buffer and its
// argument tables. It is for the owner.
func (r *Reader) QueryMemory() int {
	n := len(r.b.buf) + r.b.retired
	for i := range r.cmds {
		n += len(r.cmds[i].table)*argSize + cap(r.cmds[i].unquoted)
	}
	return n
}

// Unread returns how many bytes have been read from the source and not been
// returned as a command; Redis's qbuf of CLIENT LIST.
func (r *Reader) Unread() int {
	n := r.b.w - r.b.r
	if r.pending {
		n += len(r.cmds[1-r.cur].raw)
	}
	return n
}

// Running returns how many bytes the command takes that Next returned last;
// Redis counts them into qbuf while the command runs.
func (r *Reader) Running() int { return len(r.cmds[r.cur].raw) }

// Release drops all memory and tells [Limits.Grow] so. Views end; the Reader
// returns nothing but io.ErrClosedPipe from now on.
func (r *Reader) Release() {
	r.b.charge(r.b.retired + len(r.b.buf) - r.QueryMemory())
	r.b.release()
	r.cmds = [2]frame{}
	r.pending = false
	r.ahead = nil
	r.scan = scan{}
	if r.err == nil {
		r.err = io.ErrClosedPipe
	}
}
