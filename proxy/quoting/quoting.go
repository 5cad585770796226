// Package quoting reads and writes lines of words as Redis does: in redis.conf, at
// redis-cli's prompt, in MONITOR and in transcripts.
package quoting

import "errors"

// ErrQuotes is what Split answers for a quote that is not closed, or is closed inside a word.
var ErrQuotes = errors.New("unbalanced quotes")

// Split splits a line into words as redis.conf and redis-cli write them (Redis's sdssplitargs): blanks separate
// words; "double quotes" know \n \r \t \b \a, \xHH and a backslash before any other byte; 'single quotes' know \' only;
// a closing quote must be followed by a blank or the end. A NUL byte ends the line. The words are copies. The only
// error is ErrQuotes.
func Split(line string) ([]string, error) {
	for i := 0; i < len(line); i++ {
		if line[i] == 0 {
			line = line[:i]
			break
		}
	}
	var words []string
	p := 0
	for {
		for p < len(line) && isSpace(line[p]) {
			p++
		}
		if p == len(line) {
			return words, nil
		}
		word, next, err := splitWord(line, p)
		if err != nil {
			return nil, err
		}
		words, p = append(words, word), next
	}
}

func splitWord(line string, p int) (word string, next int, err error) {
	var b []byte
	var quote byte
	for ; p < len(line); p++ {
		c := line[p]
		switch {
		case quote == 0:
			switch c {
			// \v and \f come between words but do not end one, as in Redis.
			case ' ', '\n', '\r', '\t':
				return string(b), p, nil
			case '"', '\'':
				quote = c
			default:
				b = append(b, c)
			}
		case c == quote:
			p++
			if p < len(line) && !isSpace(line[p]) {
				return "", 0, ErrQuotes
			}
			return string(b), p, nil
		case c == '\\' && quote == '\'':
			if p+1 < len(line) && line[p+1] == '\'' {
				p++
				c = '\''
			}
			b = append(b, c)
		case c == '\\' && p+1 < len(line):
			if p+3 < len(line) && line[p+1] == 'x' && isHex(line[p+2]) && isHex(line[p+3]) {
				b = append(b, unhex(line[p+2])<<4|unhex(line[p+3]))
				p += 3
				continue
			}
			p++
			b = append(b, unescape(line[p]))
		default:
			b = append(b, c)
		}
	}
	if quote != 0 {
		return "", 0, ErrQuotes
	}
	return string(b), p, nil
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c >= 'a':
		return c - 'a' + 10
	}
	return c - 'A' + 10
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

const hexDigits = "0123456789abcdef"

// Append appends s to dst so that Split reads it back as one word, as Redis's sdscatrepr: in double quotes, with
// bytes that are not printable ASCII as \xHH.
func Append[S []byte | string](dst []byte, s S) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\', '"':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		case '\a':
			dst = append(dst, `\a`...)
		case '\b':
			dst = append(dst, `\b`...)
		default:
			if c >= ' ' && c < 0x7f {
				dst = append(dst, c)
			} else {
				dst = append(dst, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
			}
		}
	}
	return append(dst, '"')
}

// Quote is Append to nothing.
func Quote(s string) string { return string(Append(make([]byte, 0, len(s)+2), s)) }

// QuoteIfNeeded leaves words as they are that Split reads back without quotes.
func QuoteIfNeeded(s string) string {
	if s == "" {
		return `""`
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\'' || c == '\\' {
			return Quote(s)
		}
	}
	return s
}
