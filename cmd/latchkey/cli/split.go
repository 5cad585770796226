package cli

import (
	"errors"
	"strings"
)

// errQuotes is what splitArgs answers for a line whose quotes do not pair up.
var errQuotes = errors.New("unbalanced quotes")

// splitArgs splits a line into arguments by the rules of Redis's inline
// protocol and redis-cli's prompt: blanks separate; "..." knows \n \r \t \b \a,
// \xHH and \ before any other byte; '...' knows only \'; a closing quote must
// be followed by a blank or the end. A blank line yields no arguments.
func splitArgs(line string) ([]string, error) {
	// C strings end at NUL, and so does a line typed into redis-cli.
	if end := strings.IndexByte(line, 0); end >= 0 {
		line = line[:end]
	}
	var args []string
	for i := 0; ; {
		for i < len(line) && isBlank(line[i]) {
			i++
		}
		if i == len(line) {
			return args, nil
		}
		arg, next, err := splitArg(line, i)
		if err != nil {
			return nil, err
		}
		args, i = append(args, arg), next
	}
}

// splitArg reads the argument that begins at line[i] and returns it with the
// index behind it.
func splitArg(line string, i int) (arg string, next int, err error) {
	var b strings.Builder
	for i < len(line) {
		switch c := line[i]; c {
		// \v and \f separate arguments but, as in Redis, do not end one.
		case ' ', '\n', '\r', '\t':
			return b.String(), i, nil
		case '"', '\'':
			if c == '"' {
				i, err = doubleQuoted(&b, line, i+1)
			} else {
				i, err = singleQuoted(&b, line, i+1)
			}
			if err != nil {
				return "", 0, err
			}
			if i < len(line) && !isBlank(line[i]) {
				return "", 0, errQuotes
			}
			return b.String(), i, nil
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String(), i, nil
}

// doubleQuoted unescapes up to the closing quote and returns the index behind it.
func doubleQuoted(b *strings.Builder, line string, i int) (int, error) {
	for ; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			return i + 1, nil
		case c == '\\' && i+3 < len(line) && line[i+1] == 'x' && isHex(line[i+2]) && isHex(line[i+3]):
			b.WriteByte(hexValue(line[i+2])<<4 | hexValue(line[i+3]))
			i += 3
		case c == '\\' && i+1 < len(line):
			i++
			b.WriteByte(unescape(line[i]))
		default:
			b.WriteByte(c)
		}
	}
	return 0, errQuotes
}

// singleQuoted copies up to the closing quote and returns the index behind it.
func singleQuoted(b *strings.Builder, line string, i int) (int, error) {
	for ; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'':
			return i + 1, nil
		case c == '\\' && i+1 < len(line) && line[i+1] == '\'':
			b.WriteByte('\'')
			i++
		default:
			b.WriteByte(c)
		}
	}
	return 0, errQuotes
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

func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func hexValue(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	}
	return c - 'a' + 10
}
