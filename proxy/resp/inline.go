package resp

// keepUnquoted is the most memory that is kept for arguments with quotes, in
// bytes.
const keepUnquoted = 1 << 10

// scanInline returns the length of the inline command at the start of buf with
// its end, 0 if its end has not come, or an error and where it ends.
func scanInline(buf []byte, lim *Limits) (n int, bad *ProtocolError) {
	i, bad := lineEnd(buf, '\n', lim, errTooBigInline)
	if bad != nil {
		return i, bad
	}
	return i + 1, nil
}

// inline splits a line, which ends with LF or CRLF, into arguments, and returns
// their number. Arguments without quotes are views of the line, the others of
// f.unquoted.
func (r *Reader) inline(f *frame, line []byte) (int, error) {
	line = line[:len(line)-1]
	if len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	// First count and measure, so that the memory taken fits exactly.
	count, unquoted := 0, 0
	for i := 0; ; count++ {
		t, next := nextToken(line, i)
		if next < 0 {
			return 0, errUnbalanced
		}
		if next == i {
			break
		}
		if t.quoted {
			unquoted += next - t.start
		}
		i = next
	}
	if err := r.tableFor(f, count); err != nil {
		return 0, err
	}
	if unquoted > cap(f.unquoted) {
		if err := r.b.charge(unquoted - cap(f.unquoted)); err != nil {
			return 0, err
		}
		f.unquoted = make([]byte, 0, unquoted)
	}
	out := f.unquoted[:0]
	i := 0
	for k := range count {
		t, next := nextToken(line, i)
		if t.quoted {
			start := len(out)
			out = unquote(out, line[t.start:t.end])
			f.table[k] = out[start:len(out):len(out)]
		} else {
			f.table[k] = line[t.start:t.end:t.end]
		}
		i = next
	}
	f.args = f.table[:count]
	return count, nil
}

// token is one argument of an inline command, still with its quotes.
type token struct {
	start, end int
	quoted     bool
}

// nextToken finds the next argument at or after i. next is where to go on: i
// itself if there is no more argument, -1 if quotes are not balanced. The rules
// are Redis's: quotes may begin within an argument, but what follows a closing
// quote must be space.
func nextToken(line []byte, i int) (t token, next int) {
	begin := i
	for i < len(line) && isSpace(line[i]) {
		i++
	}
	if i == len(line) {
		return token{}, begin
	}
	t.start = i
	for ; i < len(line); i++ {
		switch c := line[i]; c {
		case ' ', '\n', '\r', '\t':
			// VT and FF separate arguments only at the start of one, as in Redis.
			t.end = i
			return t, i + 1
		case '"', '\'':
			t.quoted = true
			for i++; i < len(line) && line[i] != c; i++ {
				// A backslash escapes any byte within double quotes, and only the
				// quote within single ones.
				if line[i] == '\\' && i+1 < len(line) && (c == '"' || line[i+1] == '\'') {
					i++
				}
			}
			if i == len(line) || i+1 < len(line) && !isSpace(line[i+1]) {
				return t, -1
			}
			t.end = i + 1
			return t, i + 1
		}
	}
	t.end = i
	return t, i
}

// unquote appends the argument that a token with balanced quotes stands for.
func unquote(out, s []byte) []byte {
	i := 0
	for s[i] != '"' && s[i] != '\'' {
		i++
	}
	out = append(out, s[:i]...)
	quote := s[i]
	s = s[i+1 : len(s)-1]
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' || i+1 == len(s) {
			out = append(out, c)
			continue
		}
		if quote == '\'' {
			if s[i+1] == '\'' {
				i++
			}
			out = append(out, s[i])
			continue
		}
		i++
		switch s[i] {
		case 'x':
			if i+2 < len(s) {
				hi, lo := hexDigit(s[i+1]), hexDigit(s[i+2])
				if hi >= 0 && lo >= 0 {
					out = append(out, byte(hi<<4|lo))
					i += 2
					continue
				}
			}
			out = append(out, 'x')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'b':
			out = append(out, '\b')
		case 'a':
			out = append(out, '\a')
		default:
			out = append(out, s[i])
		}
	}
	return out
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
