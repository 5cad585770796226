package resp

import (
	"encoding/binary"
	"unsafe"
)

// What Ahead looks at: so many commands, of so many arguments each and together,
// and so many bytes each.
const (
	aheadMost  = 32
	aheadArgs  = startArgs
	aheadSpans = 3 * aheadMost
	aheadBytes = 1 << 16
)

// ahead are the commands that Ahead has cut and Next has not returned yet, so
// that no byte is looked at twice. It says where things are and not what they
// are: half a kilobyte for a client that has ever sent a pipeline.
type ahead struct {
	at, n    int // cmds[at:n] are to come; they begin at the first unread byte
	from, to int // and spans[from:to] are their words
	cmds     [aheadMost]struct{ args, size uint16 }
	spans    [aheadSpans]span // within the command
	judged   bounds
}

// span is a part of the first 64 KiB of something.
type span struct{ at, size uint16 }

// of is the part of buf.
func (s span) of(buf []byte) []byte {
	end := int(s.at) + int(s.size)
	return buf[s.at:end:end]
}

// bounds are what a command is judged by that is cut.
type bounds struct {
	bulk, query, multibulk int
	authenticated          bool
}

func (lim *Limits) bounds() bounds {
	return bounds{lim.MaxBulk, lim.MaxQuery, lim.MaxMultibulk, lim.Authenticated}
}

// more tells whether there are commands to come.
func (a *ahead) more() bool { return a != nil && a.at < a.n }

// forget makes them be looked at again.
func (a *ahead) forget() { a.at, a.n, a.from, a.to = 0, 0, 0, 0 }

// settle makes room behind the commands that are still to come.
func (a *ahead) settle(lim *Limits) {
	if a.judged != lim.bounds() {
		a.forget()
		a.judged = lim.bounds()
	}
	copy(a.cmds[:], a.cmds[a.at:a.n])
	copy(a.spans[:], a.spans[a.from:a.to])
	a.at, a.n = 0, a.n-a.at
	a.from, a.to = 0, a.to-a.from
}

// next cuts the command that is the next to come from the unread bytes.
func (a *ahead) next(f *frame, b *buffer) {
	cmd := a.cmds[a.at]
	a.at++
	end := b.r + int(cmd.size)
	raw := b.buf[b.r:end:end]
	args := f.table[:cmd.args]
	words := a.spans[a.from : a.from+len(args)]
	for i, word := range words {
		args[i] = word.of(raw)
	}
	b.r, a.from = end, a.from+len(args)
	f.args, f.raw = args, raw
}

// Ahead appends to dst the argument at place arg of each whole command that has
// been read but not been returned by Next, as many as dst has room for and a few
// dozen at most, and stops at the first command that is out of the ordinary. It
// is a guess at what comes, for whoever wants to have it at hand: should the
// limits change, Next judges anew. The views are valid as long as those of the
// last Next.
func (r *Reader) Ahead(arg int, dst [][]byte) [][]byte {
	if r.pending && len(dst) < cap(dst) {
		if f := &r.cmds[1-r.cur]; arg < len(f.args) {
			dst = append(dst, f.args[arg])
		}
	}
	if r.scan != (scan{}) || r.err != nil || r.b.r == r.b.w {
		return dst
	}
	if r.ahead == nil {
		r.ahead = new(ahead)
	}
	a := r.ahead
	a.settle(r.lim)
	buf := r.b.unread()
	spans := a.spans[:a.to]
	for i := range a.cmds[:a.n] {
		if len(dst) == cap(dst) {
			return dst
		}
		cmd := a.cmds[i]
		if arg < int(cmd.args) {
			dst = append(dst, spans[arg].of(buf))
		}
		spans = spans[cmd.args:]
		buf = buf[cmd.size:]
	}
	maxArgs, maxBulk, maxQuery := r.lim.cuts(aheadArgs)
	maxQuery = min(maxQuery, aheadBytes-1)
	for len(dst) < cap(dst) && a.n < aheadMost && a.to <= aheadSpans-aheadArgs && len(buf) > 0 && buf[0] == '*' {
		words := a.spans[a.to : a.to+aheadArgs]
		count, n := cutShort(buf, words, maxArgs, maxBulk)
		if n == 0 {
			if count, n = cutLong(buf, words, maxArgs, maxBulk); n == 0 {
				break
			}
		}
		if n > maxQuery {
			break
		}
		a.cmds[a.n].args, a.cmds[a.n].size = uint16(count), uint16(n)
		if arg < count {
			dst = append(dst, words[arg].of(buf))
		}
		a.to += count
		a.n++
		buf = buf[n:]
	}
	return dst
}

// cutShort is cut for a command of up to nine words of up to 99 bytes, as nearly
// all are that come in pipelines. It returns 0, 0 for others too.
func cutShort(buf []byte, words []span, maxArgs, maxBulk int) (count, n int) {
	if len(buf) < 4 || buf[2] != '\r' {
		return 0, 0
	}
	count = int(buf[1] - '0')
	if count == 0 || count > min(maxArgs, len(words), 9) {
		return 0, 0
	}
	i := 4
	for k := range words[:count] {
		// A header, and as many bytes as one of two digits has.
		if len(buf)-i < 8 {
			return 0, 0
		}
		w := binary.LittleEndian.Uint32(buf[i:])
		size := int(byte(w>>8) - '0')
		i += 4
		if byte(w>>16) != '\r' {
			d := byte(w>>16) - '0'
			if size == 0 || d > 9 || byte(w>>24) != '\r' {
				return 0, 0
			}
			size = size*10 + int(d)
			i++
		}
		if byte(w) != '$' || byte(w>>8)-'0' > 9 || size > maxBulk || len(buf)-i < size+2 || i+size >= aheadBytes {
			return 0, 0
		}
		words[k] = span{uint16(i), uint16(size)}
		i += size + 2
	}
	return count, i
}

// cutLong is cut of the words as spans.
func cutLong(buf []byte, words []span, maxArgs, maxBulk int) (count, n int) {
	var table [aheadArgs][]byte
	count, n = cut(buf, table[:], maxArgs, maxBulk)
	if n >= aheadBytes {
		return 0, 0
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(buf)))
	for i, word := range table[:count] {
		words[i] = span{uint16(uintptr(unsafe.Pointer(unsafe.SliceData(word))) - start), uint16(len(word))}
	}
	return count, n
}
