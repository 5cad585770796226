package transcript

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Quote writes s between double quotes, with the escapes that [SplitWords]
// reads. Whatever is not printable ASCII becomes \xHH, so that a transcript
// shows bytes and not what an editor makes of them.
func Quote(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		case '\a':
			b.WriteString(`\a`)
		case '\b':
			b.WriteString(`\b`)
		default:
			if c < ' ' || c > '~' {
				fmt.Fprintf(&b, `\x%02x`, c)
			} else {
				b.WriteByte(c)
			}
		}
	}
	b.WriteByte('"')
	return b.String()
}

// unquote reads what quote wrote; nothing may follow the closing quote.
func unquote(s string) (string, error) {
	words, err := SplitWords(s)
	if err != nil {
		return "", err
	}
	if len(words) != 1 || s == "" || s[0] != '"' {
		return "", fmt.Errorf("want one string in double quotes, have %s", s)
	}
	return words[0], nil
}

var errQuotes = errors.New("unbalanced quotes, or a closing quote that is not followed by a space")

// SplitWords splits a line into arguments as redis-cli does: words between
// spaces; double quotes with \n \r \t \a \b \xHH and \ before any other
// character; single quotes in which only \' is an escape.
func SplitWords(line string) ([]string, error) {
	var words []string
	for i := 0; ; {
		for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
			i++
		}
		if i == len(line) {
			return words, nil
		}
		var b strings.Builder
		for i < len(line) && line[i] != ' ' && line[i] != '\t' {
			if line[i] != '"' && line[i] != '\'' {
				b.WriteByte(line[i])
				i++
				continue
			}
			n, err := quoted(&b, line[i:])
			if err != nil {
				return nil, err
			}
			i += n
			if i < len(line) && line[i] != ' ' && line[i] != '\t' {
				return nil, errQuotes
			}
		}
		words = append(words, b.String())
	}
}

// quoted appends the quoted string at the start of s to b and returns its
// length with both quotes.
func quoted(b *strings.Builder, s string) (int, error) {
	q := s[0]
	for i := 1; i < len(s); i++ {
		c := s[i]
		if c == q {
			return i + 1, nil
		}
		if c != '\\' || i+1 == len(s) {
			b.WriteByte(c)
			continue
		}
		next := s[i+1]
		if q == '\'' {
			if next == '\'' {
				c, i = next, i+1
			}
			b.WriteByte(c)
			continue
		}
		i++
		switch next {
		case 'n':
			next = '\n'
		case 'r':
			next = '\r'
		case 't':
			next = '\t'
		case 'a':
			next = '\a'
		case 'b':
			next = '\b'
		case 'x':
			if i+2 < len(s) {
				if v, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
					next, i = byte(v), i+2
				}
			}
		}
		b.WriteByte(next)
	}
	return 0, errQuotes
}
