package text

import (
	"strings"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/scripting/numeral"
)

// Lua 5.1's patterns, byte-wise, every step paid from the run's budget.

const (
	maxCaptures     = 32
	captureOpen     = -1
	capturePosition = -2
	// maxPatternLevels bounds what nests on the Go stack, some 300 bytes a level.
	// Lua itself goes on until the C stack ends.
	maxPatternLevels = 1 << 14
)

type capture struct{ start, length int }

// Failer raises errors on an engine. Its methods do not return.
type Failer interface {
	// Fail raises msg with the position of who called the library.
	Fail(msg string)
	// Ended unwinds a script whose account is exhausted.
	Ended()
}

// Matcher is one search of Src for Pat. It pays for each step and raises its
// errors on Failer.
type Matcher struct {
	Failer   Failer
	Account  *budget.Account
	Src, Pat string
	// Level is the number of captures so far. It must be 0 before each Match.
	Level    int
	levels   int
	captures [maxCaptures]capture
}

func (m *Matcher) fail(msg string) { m.Failer.Fail(msg) }

// ends says whether the pattern ends at p. To Lua 5.1 it does at a NUL, too.
func (m *Matcher) ends(p int) bool { return p >= len(m.Pat) || m.Pat[p] == 0 }

// step pays for one unit of work.
func (m *Matcher) step() {
	m.Account.Left--
	if m.Account.Left <= 0 && !m.Account.Check() {
		m.Failer.Ended()
	}
}

// classEnd is the index after the single-character class that begins at p.
func (m *Matcher) classEnd(p int) int {
	if m.ends(p) {
		m.fail("malformed pattern (ends with '%')")
	}
	c := m.Pat[p]
	p++
	switch c {
	case '%':
		if m.ends(p) {
			m.fail("malformed pattern (ends with '%')")
		}
		return p + 1
	case '[':
		if p < len(m.Pat) && m.Pat[p] == '^' {
			p++
		}
		for first := true; first || p >= len(m.Pat) || m.Pat[p] != ']'; first = false {
			if m.ends(p) {
				m.fail("malformed pattern (missing ']')")
			}
			c := m.Pat[p]
			p++
			if c == '%' && !m.ends(p) {
				p++
			}
		}
		return p + 1
	}
	return p
}

func matchClass(c, class byte) bool {
	var ok bool
	switch class | 0x20 {
	case 'a':
		ok = c|0x20-'a' < 26
	case 'c':
		ok = c < 32 || c == 127
	case 'd':
		ok = isDigit(c)
	case 'l':
		ok = c-'a' < 26
	case 'p':
		ok = c > 32 && c < 127 && !(c|0x20-'a' < 26) && !isDigit(c)
	case 's':
		ok = c == ' ' || c-'\t' < 5
	case 'u':
		ok = c-'A' < 26
	case 'w':
		ok = c|0x20-'a' < 26 || isDigit(c)
	case 'x':
		ok = isDigit(c) || c|0x20-'a' < 6
	case 'z':
		ok = c == 0
	default:
		return class == c
	}
	if class-'A' < 26 {
		return !ok
	}
	return ok
}

// matchSet matches c against the set pat[p:end], where pat[p] is '[' and
// pat[end] its ']'.
func (m *Matcher) matchSet(c byte, p, end int) bool {
	want := true
	if m.Pat[p+1] == '^' {
		want = false
		p++
	}
	for p++; p < end; p++ {
		switch {
		case m.Pat[p] == '%':
			p++
			if matchClass(c, m.Pat[p]) {
				return want
			}
		case p+2 < end && m.Pat[p+1] == '-':
			if m.Pat[p] <= c && c <= m.Pat[p+2] {
				return want
			}
			p += 2
		case m.Pat[p] == c:
			return want
		}
	}
	return !want
}

func (m *Matcher) single(s, p, end int) bool {
	if s >= len(m.Src) {
		return false
	}
	c := m.Src[s]
	switch m.Pat[p] {
	case '.':
		return true
	case '%':
		return matchClass(c, m.Pat[p+1])
	case '[':
		if n := end - p; n > 64 {
			m.Account.Left -= n >> 6
		}
		return m.matchSet(c, p, end-1)
	}
	return m.Pat[p] == c
}

// Match matches Pat[p:] at src[s:] and returns the end of the match, or -1.
func (m *Matcher) Match(s, p int) int {
	if m.levels++; m.levels > maxPatternLevels {
		m.fail("pattern too complex")
	}
	e := m.match(s, p)
	m.levels-- // an error ends the search
	return e
}

func (m *Matcher) match(s, p int) int {
	for {
		m.step()
		if m.ends(p) {
			return s
		}
		switch m.Pat[p] {
		case '(':
			if p+1 < len(m.Pat) && m.Pat[p+1] == ')' {
				return m.open(s, p+2, capturePosition)
			}
			return m.open(s, p+1, captureOpen)
		case ')':
			return m.close(s, p+1)
		case '%':
			if m.ends(p + 1) {
				m.fail("malformed pattern (ends with '%')")
			}
			switch c := m.Pat[p+1]; {
			case c == 'b':
				if s = m.balance(s, p+2); s < 0 {
					return -1
				}
				p += 4
				continue
			case c == 'f':
				p += 2
				if m.ends(p) || m.Pat[p] != '[' {
					m.fail("missing '[' after '%f' in pattern")
				}
				end := m.classEnd(p)
				var before, here byte
				if s > 0 {
					before = m.Src[s-1]
				}
				if s < len(m.Src) {
					here = m.Src[s]
				}
				if m.matchSet(before, p, end-1) || !m.matchSet(here, p, end-1) {
					return -1
				}
				p = end
				continue
			case isDigit(c):
				if s = m.back(s, c); s < 0 {
					return -1
				}
				p += 2
				continue
			}
		case '$':
			if m.ends(p + 1) {
				if s == len(m.Src) {
					return s
				}
				return -1
			}
		}
		end := m.classEnd(p)
		var suffix byte
		if end < len(m.Pat) {
			suffix = m.Pat[end]
		}
		switch suffix {
		case '?':
			if m.single(s, p, end) {
				if e := m.Match(s+1, end+1); e >= 0 {
					return e
				}
			}
			p = end + 1
		case '*':
			return m.longest(s, p, end)
		case '+':
			if !m.single(s, p, end) {
				return -1
			}
			return m.longest(s+1, p, end)
		case '-':
			for {
				if e := m.Match(s, end+1); e >= 0 {
					return e
				}
				if !m.single(s, p, end) {
					return -1
				}
				m.step()
				s++
			}
		default:
			if !m.single(s, p, end) {
				return -1
			}
			s++
			p = end
		}
	}
}

func (m *Matcher) longest(s, p, end int) int {
	n := 0
	for m.single(s+n, p, end) {
		n++
		if n&7 == 0 {
			m.step()
		}
	}
	for ; n >= 0; n-- {
		if e := m.Match(s+n, end+1); e >= 0 {
			return e
		}
	}
	return -1
}

func (m *Matcher) open(s, p, what int) int {
	if m.Level >= maxCaptures {
		m.fail("too many captures")
	}
	m.captures[m.Level] = capture{s, what}
	m.Level++
	e := m.Match(s, p)
	if e < 0 {
		m.Level--
	}
	return e
}

func (m *Matcher) close(s, p int) int {
	i := m.Level - 1
	for ; i >= 0 && m.captures[i].length != captureOpen; i-- {
	}
	if i < 0 {
		m.fail("invalid pattern capture")
	}
	m.captures[i].length = s - m.captures[i].start
	e := m.Match(s, p)
	if e < 0 {
		m.captures[i].length = captureOpen
	}
	return e
}

func (m *Matcher) balance(s, p int) int {
	if m.ends(p) || m.ends(p+1) {
		m.fail("unbalanced pattern")
	}
	open, shut := m.Pat[p], m.Pat[p+1]
	if s >= len(m.Src) || m.Src[s] != open {
		return -1
	}
	depth := 1
	for i := s + 1; i < len(m.Src); i++ {
		if i&7 == 0 {
			m.step()
		}
		switch m.Src[i] {
		case shut:
			if depth--; depth == 0 {
				return i + 1
			}
		case open:
			depth++
		}
	}
	return -1
}

func (m *Matcher) back(s int, digit byte) int {
	i := int(digit) - '1'
	if i < 0 || i >= m.Level || m.captures[i].length == captureOpen {
		m.fail("invalid capture index")
	}
	c := m.captures[i]
	n := c.length
	if n < 0 { // a position: to Lua a text of huge length
		return -1
	}
	m.Account.Left -= n >> 6
	if len(m.Src)-s >= n && m.Src[c.start:c.start+n] == m.Src[s:s+n] {
		return s + n
	}
	return -1
}

// Capture is what a capture took.
type Capture struct {
	Text string
	// Position is the index of a position capture, from 1 on; 0 for others.
	Position int
}

// Captures is how many values a match src[s:e] has: the captures, or the whole match.
func (m *Matcher) Captures() int { return max(m.Level, 1) }

// Capture is capture i, from 0 on, or the whole match Src[s:e] when the pattern
// has none. It shares the subject's memory.
func (m *Matcher) Capture(i, s, e int) Capture {
	if i >= m.Level {
		if i != 0 {
			m.fail("invalid capture index")
		}
		return Capture{Text: m.Src[s:e]}
	}
	c := m.captures[i]
	switch c.length {
	case captureOpen:
		m.fail("unfinished capture")
	case capturePosition:
		return Capture{Position: c.start + 1}
	}
	return Capture{Text: m.Src[c.start : c.start+c.length]}
}

// Replace hands to grow what a replacement text of gsub stands for, after the
// match Src[s:e].
func (m *Matcher) Replace(repl string, s, e int, grow func(string)) {
	run := 0
	for i := 0; i < len(repl); i++ {
		if repl[i] != '%' {
			continue
		}
		grow(repl[run:i])
		i++
		run = i
		if i >= len(repl) {
			grow("\x00") // what C finds behind the end
			return
		}
		if c := repl[i]; isDigit(c) {
			run = i + 1
			if c == '0' {
				grow(m.Src[s:e])
				continue
			}
			got := m.Capture(int(c-'1'), s, e)
			if got.Position > 0 {
				got.Text = numeral.Text(float64(got.Position))
			}
			grow(got.Text)
		}
	}
	grow(repl[min(run, len(repl)):])
}

// Plain says whether a pattern matches nothing but itself; like Lua's find it
// looks no further than a NUL.
func Plain(pattern string) bool {
	pattern, _, _ = strings.Cut(pattern, "\x00")
	return !strings.ContainsAny(pattern, "^$*+?.([%-")
}

func isDigit(c byte) bool { return c-'0' < 10 }
