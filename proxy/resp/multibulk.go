package resp

import (
	"bytes"
	"math"
)

// cut finds the arguments of the multibulk command at the start of buf and
// puts views of them into table. It returns their number and the length of the
// command, or 0, 0 if the command is not whole, not in order or beyond the
// limits: scan.multibulk then finds out which. It is the way that almost every
// command takes, so it does nothing else.
func cut(buf []byte, table [][]byte, maxArgs, maxBulk int) (count, n int) {
	const noDigit = 10
	if len(buf) < 4 {
		return 0, 0
	}
	d := buf[1] - '0'
	if d == 0 || d >= noDigit {
		return 0, 0
	}
	count = int(d)
	maxBulk = min(maxBulk, len(buf)) // and no overflow below
	i := 2
	for buf[i] != '\r' {
		d := buf[i] - '0'
		if d >= noDigit {
			return 0, 0
		}
		count = count*10 + int(d)
		i++
		if count > maxArgs || i == len(buf) {
			return 0, 0
		}
	}
	if count > maxArgs || count > len(table) {
		return 0, 0
	}
	i += 2
	table = table[:count]
	for k := range table {
		// "$0\r\n\r\n" is the shortest bulk.
		if i+6 > len(buf) || buf[i] != '$' {
			return 0, 0
		}
		first, second := buf[i+1]-'0', buf[i+2]
		if first >= noDigit {
			return 0, 0
		}
		length := int(first)
		switch { // of one digit, of two, of more: of the last there are few
		case second == '\r':
			i += 4
		case length == 0 || second-'0' >= noDigit:
			return 0, 0
		case buf[i+3] == '\r':
			length = length*10 + int(second-'0')
			i += 5
		default:
			length = length*10 + int(second-'0')
			for i += 3; buf[i] != '\r'; {
				d := buf[i] - '0'
				if d >= noDigit {
					return 0, 0
				}
				length = length*10 + int(d)
				i++
				if length > maxBulk || i == len(buf) {
					return 0, 0
				}
			}
			i += 2
		}
		if length > maxBulk || len(buf)-i < length+2 {
			return 0, 0
		}
		table[k] = buf[i : i+length : i+length]
		i += length + 2
	}
	return count, i
}

// scan is how far a multibulk command has been looked at. All offsets count
// from the start of the command.
type scan struct {
	count int // arguments, once the first header is read; 0 before
	left  int // arguments not yet seen whole
	pos   int // where the next header starts
	need  int // the first offset that tells more; 0 if not known
}

// multibulk goes on looking at the command at the start of buf, which must
// begin with what the last call saw. It returns the length of the command, 0
// if more bytes are needed, or an error and where it ends. A count of zero or
// less is a command of its own, with s.count 0.
func (s *scan) multibulk(buf []byte, lim *Limits) (n int, bad *ProtocolError) {
	if s.count == 0 {
		end, bad := header(buf, 0, lim, errTooBigCount)
		if end == 0 || bad != nil {
			return end, bad
		}
		count, ok := parseInt(buf[1 : end-2])
		switch {
		case !ok || count > int64(orDefault(lim.MaxMultibulk, DefaultMaxMultibulk)):
			return end, errInvalidCount
		case count > unauthenticatedArgs && !lim.Authenticated:
			return end, errUnauthCount
		case count <= 0:
			return end, nil
		}
		s.count, s.left, s.pos = int(count), int(count), end
	}
	for s.left > 0 {
		if s.need == 0 {
			end, bad := header(buf, s.pos, lim, errTooBigBulkLength)
			if end == 0 || bad != nil {
				return end, bad
			}
			if buf[s.pos] != '$' {
				return end, errNotDollar(buf[s.pos])
			}
			length, ok := parseInt(buf[s.pos+1 : end-2])
			switch {
			case !ok || length < 0 || length > int64(orDefault(lim.MaxBulk, DefaultMaxBulk)):
				return end, errInvalidBulk
			case length > unauthenticatedBulk && !lim.Authenticated:
				return end, errUnauthBulk
			}
			s.need = end + min(int(length), math.MaxInt/2) + 2
		}
		if len(buf) < s.need {
			return 0, nil
		}
		s.pos, s.need = s.need, 0
		s.left--
	}
	return s.pos, nil
}

// header returns where the header that starts at pos ends: two bytes after its
// CR, whatever the second one is, as in Redis. It is 0 if more bytes are
// needed. tooBig is the verdict on a line that goes on for too long.
//
// Redis looks for the CR with a string function, which stops at a NUL: a header
// with a NUL has no end.
func header(buf []byte, pos int, lim *Limits, tooBig *ProtocolError) (end int, bad *ProtocolError) {
	i, bad := lineEnd(buf[pos:], '\r', lim, tooBig)
	switch {
	case bad != nil:
		return pos + i, bad
	case i < 0 || pos+i+2 > len(buf):
		return 0, nil
	}
	return pos + i + 2, nil
}

// lineEnd returns the index of the terminator, or -1 if it has not come yet, or
// the error tooBig and how many bytes it took.
func lineEnd(buf []byte, terminator byte, lim *Limits, tooBig *ProtocolError) (int, *ProtocolError) {
	limit := orDefault(lim.MaxInline, DefaultMaxInline)
	window := buf[:min(len(buf), limit+1)]
	i := bytes.IndexByte(window, terminator)
	if i >= 0 && bytes.IndexByte(window[:i], 0) < 0 {
		return i, nil
	}
	if len(buf) > limit {
		return limit + 1, tooBig
	}
	return -1, nil
}

// parseInt reads a decimal as strictly as Redis does in headers: no plus sign,
// no spaces, no leading zeros, no "-0", within 64 bits.
func parseInt(s []byte) (int64, bool) {
	const longest = 20 // "-9223372036854775808"
	if len(s) == 0 || len(s) > longest {
		return 0, false
	}
	if len(s) == 1 && s[0] == '0' {
		return 0, true
	}
	negative := s[0] == '-'
	if negative {
		s = s[1:]
	}
	if len(s) == 0 || s[0] < '1' || s[0] > '9' {
		return 0, false
	}
	// At most 20 digits are left, and 19 always fit into 64 bits unsigned.
	var v uint64
	for i, c := range s {
		c -= '0'
		if c > 9 || i == 19 {
			return 0, false
		}
		v = v*10 + uint64(c)
	}
	switch {
	case negative && v <= 1<<63:
		return -int64(v), true
	case !negative && v < 1<<63:
		return int64(v), true
	}
	return 0, false
}
