package scripting

import (
	"fmt"
	"strconv"
	"strings"
)

// token kinds beyond the single characters, in the order of Lua 5.1's reserved words.
const (
	tkEOF = iota + 257
	tkAnd
	tkBreak
	tkDo
	tkElse
	tkElseif
	tkEnd
	tkFalse
	tkFor
	tkFunction
	tkIf
	tkIn
	tkLocal
	tkNil
	tkNot
	tkOr
	tkRepeat
	tkReturn
	tkThen
	tkTrue
	tkUntil
	tkWhile
	tkConcat
	tkDots
	tkEq
	tkGe
	tkLe
	tkNe
	tkNumber
	tkName
	tkString
)

func reservedWord(s string) int {
	switch s {
	case "and":
		return tkAnd
	case "break":
		return tkBreak
	case "do":
		return tkDo
	case "else":
		return tkElse
	case "elseif":
		return tkElseif
	case "end":
		return tkEnd
	case "false":
		return tkFalse
	case "for":
		return tkFor
	case "function":
		return tkFunction
	case "if":
		return tkIf
	case "in":
		return tkIn
	case "local":
		return tkLocal
	case "nil":
		return tkNil
	case "not":
		return tkNot
	case "or":
		return tkOr
	case "repeat":
		return tkRepeat
	case "return":
		return tkReturn
	case "then":
		return tkThen
	case "true":
		return tkTrue
	case "until":
		return tkUntil
	case "while":
		return tkWhile
	}
	return 0
}

// tokenText is the token as error messages quote it.
func tokenText(kind int) string {
	switch kind {
	case tkEOF:
		return "<eof>"
	case tkNumber:
		return "<number>"
	case tkName:
		return "<name>"
	case tkString:
		return "<string>"
	case tkConcat:
		return ".."
	case tkDots:
		return "..."
	case tkEq:
		return "=="
	case tkGe:
		return ">="
	case tkLe:
		return "<="
	case tkNe:
		return "~="
	}
	if kind < 257 {
		if kind < 32 || kind == 127 {
			return fmt.Sprintf("char(%d)", kind)
		}
		return string([]byte{byte(kind)})
	}
	return [...]string{
		"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local",
		"nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
	}[kind-tkAnd]
}

type token struct {
	kind int
	text string  // name, or the value of a string
	num  float64 // value of a number
	raw  string  // the source text, for error messages
}

// near is the token as messages quote it. That of a string has its value between
// its delimiters: Lua's lexer reads both into one buffer.
func (t *token) near() string {
	switch {
	case t.kind == tkEOF:
		return "<eof>"
	case t.kind != tkString:
		return t.raw
	case t.raw[0] == '[':
		n := strings.IndexByte(t.raw[1:], '[') + 2
		return t.raw[:n] + t.text + t.raw[len(t.raw)-n:]
	}
	return t.raw[:1] + t.text + t.raw[:1]
}

// syntaxError is what the lexer and the parser panic with; parseChunk turns it
// into an error. Its text is Lua's.
type syntaxError struct{ msg string }

func (e *syntaxError) Error() string { return e.msg }

// lexer reads Lua 5.1 tokens out of a source held in memory.
type lexer struct {
	src   string
	pos   int
	line  int
	chunk string // the chunk's name in messages
}

func (lx *lexer) fail(msg, near string) {
	near, _, _ = strings.Cut(near, "\x00")
	if near != "" {
		msg += " near '" + near + "'"
	}
	panic(&syntaxError{lx.chunk + ":" + strconv.Itoa(lx.line) + ": " + msg})
}

func (lx *lexer) peek(n int) byte {
	if lx.pos+n < len(lx.src) {
		return lx.src[lx.pos+n]
	}
	return 0
}

func isDigit(c byte) bool { return c-'0' < 10 }

func isAlpha(c byte) bool { return c|0x20-'a' < 26 || c == '_' }

func isAlnum(c byte) bool { return isAlpha(c) || isDigit(c) }

// newline steps over one line break; \r\n and \n\r count once.
func (lx *lexer) newline() {
	c := lx.src[lx.pos]
	lx.pos++
	if d := lx.peek(0); (d == '\n' || d == '\r') && d != c {
		lx.pos++
	}
	lx.line++
}

func (lx *lexer) next() token {
	for lx.pos < len(lx.src) {
		c := lx.src[lx.pos]
		start := lx.pos
		switch c {
		case '\n', '\r':
			lx.newline()
			continue
		case ' ', '\t', '\v', '\f':
			lx.pos++
			continue
		case '-':
			if lx.peek(1) != '-' {
				lx.pos++
				return token{kind: '-', raw: "-"}
			}
			lx.pos += 2
			if lx.peek(0) == '[' {
				if sep := lx.separator(); sep >= 0 {
					lx.longBracket(sep, true)
					continue
				}
			}
			for lx.pos < len(lx.src) && lx.src[lx.pos] != '\n' && lx.src[lx.pos] != '\r' {
				lx.pos++
			}
			continue
		case '[':
			sep := lx.separator()
			if sep >= 0 {
				s := lx.longBracket(sep, false)
				return token{kind: tkString, text: s, raw: lx.src[start:lx.pos]}
			}
			if sep == -1 {
				lx.pos++
				return token{kind: '[', raw: "["}
			}
			lx.fail("invalid long string delimiter", lx.src[start:start-sep-1])
		case '=':
			return lx.pair('=', tkEq)
		case '<':
			return lx.pair('<', tkLe)
		case '>':
			return lx.pair('>', tkGe)
		case '~':
			return lx.pair('~', tkNe)
		case '"', '\'':
			return lx.quoted(c)
		case '.':
			if lx.peek(1) == '.' {
				if lx.peek(2) == '.' {
					lx.pos += 3
					return token{kind: tkDots, raw: "..."}
				}
				lx.pos += 2
				return token{kind: tkConcat, raw: ".."}
			}
			if isDigit(lx.peek(1)) {
				return lx.number()
			}
			lx.pos++
			return token{kind: '.', raw: "."}
		}
		if isDigit(c) {
			return lx.number()
		}
		if isAlpha(c) {
			for lx.pos < len(lx.src) && isAlnum(lx.src[lx.pos]) {
				lx.pos++
			}
			s := lx.src[start:lx.pos]
			if kind := reservedWord(s); kind != 0 {
				return token{kind: kind, raw: s}
			}
			return token{kind: tkName, text: s, raw: s}
		}
		lx.pos++
		if c == 0 {
			return token{} // Lua quotes none
		}
		return token{kind: int(c), raw: tokenText(int(c))}
	}
	return token{kind: tkEOF, raw: "<eof>"}
}

func (lx *lexer) pair(c byte, kind int) token {
	lx.pos++
	if lx.peek(0) == '=' {
		lx.pos++
		return token{kind: kind, raw: tokenText(kind)}
	}
	return token{kind: int(c), raw: string([]byte{c})}
}

// separator looks at a '[' and what follows: the number of = signs of a long
// bracket, -1 for a plain bracket, or less than -1 for a broken one (minus the
// length of what was read).
func (lx *lexer) separator() int {
	n := 0
	for lx.peek(1+n) == '=' {
		n++
	}
	switch {
	case lx.peek(1+n) == '[':
		return n
	case n == 0:
		return -1
	}
	return -n - 2
}

func (lx *lexer) longBracket(sep int, comment bool) string {
	lx.pos += sep + 2
	if c := lx.peek(0); c == '\n' || (c == '\r' && lx.pos < len(lx.src)) {
		lx.newline()
	}
	var b strings.Builder
	run := lx.pos
	for lx.pos < len(lx.src) {
		switch lx.src[lx.pos] {
		case ']':
			n := 0
			for lx.peek(1+n) == '=' {
				n++
			}
			if n == sep && lx.peek(1+n) == ']' {
				b.WriteString(lx.src[run:lx.pos])
				lx.pos += sep + 2
				return b.String()
			}
			lx.pos += n + 1
		case '\n', '\r':
			b.WriteString(lx.src[run:lx.pos])
			b.WriteByte('\n')
			lx.newline()
			run = lx.pos
		default:
			lx.pos++
		}
	}
	if comment {
		lx.fail("unfinished long comment", "<eof>")
	}
	lx.fail("unfinished long string", "<eof>")
	return ""
}

func (lx *lexer) quoted(quote byte) token {
	start := lx.pos
	lx.pos++
	var b strings.Builder
	run := lx.pos
	for {
		if lx.pos >= len(lx.src) {
			lx.fail("unfinished string", "<eof>")
		}
		c := lx.src[lx.pos]
		switch c {
		case quote:
			b.WriteString(lx.src[run:lx.pos])
			lx.pos++
			return token{kind: tkString, text: b.String(), raw: lx.src[start:lx.pos]}
		case '\n', '\r':
			lx.fail("unfinished string", string(quote)+b.String()+lx.src[run:lx.pos])
		case '\\':
			b.WriteString(lx.src[run:lx.pos])
			lx.pos++
			if lx.pos >= len(lx.src) {
				continue
			}
			c = lx.src[lx.pos]
			switch c {
			case 'a':
				b.WriteByte('\a')
			case 'b':
				b.WriteByte('\b')
			case 'f':
				b.WriteByte('\f')
			case 'n':
				b.WriteByte('\n')
			case 'r':
				b.WriteByte('\r')
			case 't':
				b.WriteByte('\t')
			case 'v':
				b.WriteByte('\v')
			case '\n', '\r':
				b.WriteByte('\n')
				lx.newline()
				run = lx.pos
				continue
			default:
				if !isDigit(c) {
					b.WriteByte(c)
					break
				}
				v := 0
				for i := 0; i < 3 && isDigit(lx.peek(0)); i++ {
					v = v*10 + int(lx.src[lx.pos]-'0')
					lx.pos++
				}
				if v > 255 {
					lx.fail("escape sequence too large", string(quote)+b.String())
				}
				b.WriteByte(byte(v))
				run = lx.pos
				continue
			}
			lx.pos++
			run = lx.pos
		default:
			lx.pos++
		}
	}
}

func (lx *lexer) number() token {
	start := lx.pos
	for isDigit(lx.peek(0)) || lx.peek(0) == '.' {
		lx.pos++
	}
	// To Lua 5.1 a NUL is one of any set of bytes: here it goes unseen.
	nul := func() bool { return lx.pos < len(lx.src) && lx.src[lx.pos] == 0 }
	if c := lx.peek(0); c == 'e' || c == 'E' || nul() {
		lx.pos++
		if c := lx.peek(0); c == '+' || c == '-' || nul() {
			lx.pos++
		}
	}
	for isAlnum(lx.peek(0)) {
		lx.pos++
	}
	raw := lx.src[start:lx.pos]
	v, ok := parseNumber(raw)
	if !ok {
		lx.fail("malformed number", raw)
	}
	return token{kind: tkNumber, num: v, raw: raw}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
