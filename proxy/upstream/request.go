package upstream

import (
	"bytes"
	"strconv"
)

// oneCommand says whether raw is exactly one command as an array of bulk strings. A connection is
// shared: half a command, or two, would hand one client's reply to another.
func oneCommand(raw []byte) bool {
	args, rest, ok := header(raw, '*')
	if !ok || args < 1 {
		return false
	}
	for ; args > 0; args-- {
		var n int
		if n, rest, ok = header(rest, '$'); !ok || n > len(rest)-2 {
			return false
		}
		if rest[n] != '\r' || rest[n+1] != '\n' {
			return false
		}
		rest = rest[n+2:]
	}
	return len(rest) == 0
}

// header reads a line of sign, decimal digits, CR, LF and returns the number and what follows.
func header(b []byte, sign byte) (n int, rest []byte, ok bool) {
	if len(b) < 4 || b[0] != sign {
		return 0, nil, false
	}
	for i := 1; i < len(b) && i < 12; i++ {
		switch d := b[i] - '0'; {
		case d <= 9:
			n = n*10 + int(d)
		case b[i] == '\r' && i > 1 && i+1 < len(b) && b[i+1] == '\n':
			return n, b[i+2:], true
		default:
			return 0, nil, false
		}
	}
	return 0, nil, false
}

// AppendCommand appends a command as an array of bulk strings, as Request.Raw wants it.
func AppendCommand[S []byte | string](b []byte, args ...S) []byte {
	b = append(strconv.AppendInt(append(b, '*'), int64(len(args)), 10), '\r', '\n')
	for _, a := range args {
		b = append(strconv.AppendInt(append(b, '$'), int64(len(a)), 10), '\r', '\n')
		b = append(append(b, a...), '\r', '\n')
	}
	return b
}

// flatArray splits the frame of a RESP2 array of bulk strings, nulls and integers, which is all
// that a subscribed connection gets, into views appended to parts.
func flatArray(frame []byte, parts [][]byte) ([][]byte, bool) {
	n, rest, ok := header(frame, '*')
	if !ok || n > cap(parts)-len(parts) {
		return nil, false
	}
	for ; n > 0; n-- {
		if len(rest) == 0 {
			return nil, false
		}
		var part []byte
		switch size, after, bulk := header(rest, '$'); {
		case bulk && size <= len(after)-2:
			part, rest = after[:size:size], after[size+2:]
		case bulk:
			return nil, false
		case rest[0] == ':', bytes.HasPrefix(rest, []byte("$-1\r\n")): // a count, no channel
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				return nil, false
			}
			rest = rest[end+1:]
		default:
			return nil, false
		}
		parts = append(parts, part)
	}
	return parts, len(rest) == 0
}

// isTransaction says whether cmds are MULTI, commands that are not EXEC, and EXEC.
func isTransaction(cmds [][]byte) bool {
	last := len(cmds) - 1
	if last < 1 || !bytes.EqualFold(cmds[0], []byte("*1\r\n$5\r\nMULTI\r\n")) {
		return false
	}
	for i, cmd := range cmds {
		// An EXEC with arguments is an error upstream, and executes nothing.
		if bytes.EqualFold(cmd, []byte("*1\r\n$4\r\nEXEC\r\n")) != (i == last) {
			return false
		}
	}
	return true
}
