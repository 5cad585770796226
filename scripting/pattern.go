package scripting

import (
	lua "github.com/yuin/gopher-lua"
)

// Lua 5.1's patterns, byte-wise, every step paid from the run's budget.

const (
	maxCaptures      = 32
	captureOpen      = -1
	capturePosition  = -2
	maxPatternLevels = 200
)

type capture struct{ start, length int }

// matcher is one search. Its errors are raised on L.
type matcher struct {
	L        *lua.LState
	run      *run
	src, pat string
	levels   int
	level    int // captures so far
	captures [maxCaptures]capture
}

func (m *matcher) fail(msg string) { raise(m.L, 1, msg) }

// step pays for one unit of work.
func (m *matcher) step() {
	m.run.left--
	if m.run.left <= 0 {
		m.run.pay(m.L, 0)
	}
}

// classEnd is the index after the single-character class that begins at p.
func (m *matcher) classEnd(p int) int {
	if p >= len(m.pat) {
		m.fail("malformed pattern (ends with '%')")
	}
	c := m.pat[p]
	p++
	switch c {
	case '%':
		if p >= len(m.pat) {
			m.fail("malformed pattern (ends with '%')")
		}
		return p + 1
	case '[':
		if p < len(m.pat) && m.pat[p] == '^' {
			p++
		}
		for first := true; first || p >= len(m.pat) || m.pat[p] != ']'; first = false {
			if p >= len(m.pat) {
				m.fail("malformed pattern (missing ']')")
			}
			c := m.pat[p]
			p++
			if c == '%' && p < len(m.pat) {
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
func (m *matcher) matchSet(c byte, p, end int) bool {
	want := true
	if m.pat[p+1] == '^' {
		want = false
		p++
	}
	for p++; p < end; p++ {
		switch {
		case m.pat[p] == '%':
			p++
			if matchClass(c, m.pat[p]) {
				return want
			}
		case p+2 < end && m.pat[p+1] == '-':
			if m.pat[p] <= c && c <= m.pat[p+2] {
				return want
			}
			p += 2
		case m.pat[p] == c:
			return want
		}
	}
	return !want
}

func (m *matcher) single(s, p, end int) bool {
	if s >= len(m.src) {
		return false
	}
	c := m.src[s]
	switch m.pat[p] {
	case '.':
		return true
	case '%':
		return matchClass(c, m.pat[p+1])
	case '[':
		if n := end - p; n > 64 {
			m.run.left -= n >> 6
		}
		return m.matchSet(c, p, end-1)
	}
	return m.pat[p] == c
}

// match matches pat[p:] at src[s:] and returns the end of the match, or -1.
func (m *matcher) match(s, p int) int {
	if m.levels++; m.levels > maxPatternLevels {
		m.fail("pattern too complex")
	}
	defer func() { m.levels-- }()
	for {
		m.step()
		if p >= len(m.pat) {
			return s
		}
		switch m.pat[p] {
		case '(':
			if p+1 < len(m.pat) && m.pat[p+1] == ')' {
				return m.open(s, p+2, capturePosition)
			}
			return m.open(s, p+1, captureOpen)
		case ')':
			return m.close(s, p+1)
		case '%':
			if p+1 >= len(m.pat) {
				m.fail("malformed pattern (ends with '%')")
			}
			switch c := m.pat[p+1]; {
			case c == 'b':
				if s = m.balance(s, p+2); s < 0 {
					return -1
				}
				p += 4
				continue
			case c == 'f':
				p += 2
				if p >= len(m.pat) || m.pat[p] != '[' {
					m.fail("missing '[' after '%f' in pattern")
				}
				end := m.classEnd(p)
				var before, here byte
				if s > 0 {
					before = m.src[s-1]
				}
				if s < len(m.src) {
					here = m.src[s]
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
			if p+1 == len(m.pat) {
				if s == len(m.src) {
					return s
				}
				return -1
			}
		}
		end := m.classEnd(p)
		var suffix byte
		if end < len(m.pat) {
			suffix = m.pat[end]
		}
		switch suffix {
		case '?':
			if m.single(s, p, end) {
				if e := m.match(s+1, end+1); e >= 0 {
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
				if e := m.match(s, end+1); e >= 0 {
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

func (m *matcher) longest(s, p, end int) int {
	n := 0
	for m.single(s+n, p, end) {
		n++
		if n&7 == 0 {
			m.step()
		}
	}
	for ; n >= 0; n-- {
		if e := m.match(s+n, end+1); e >= 0 {
			return e
		}
	}
	return -1
}

func (m *matcher) open(s, p, what int) int {
	if m.level >= maxCaptures {
		m.fail("too many captures")
	}
	m.captures[m.level] = capture{s, what}
	m.level++
	e := m.match(s, p)
	if e < 0 {
		m.level--
	}
	return e
}

func (m *matcher) close(s, p int) int {
	i := m.level - 1
	for ; i >= 0 && m.captures[i].length != captureOpen; i-- {
	}
	if i < 0 {
		m.fail("invalid pattern capture")
	}
	m.captures[i].length = s - m.captures[i].start
	e := m.match(s, p)
	if e < 0 {
		m.captures[i].length = captureOpen
	}
	return e
}

func (m *matcher) balance(s, p int) int {
	if p+1 >= len(m.pat) {
		m.fail("unbalanced pattern")
	}
	open, shut := m.pat[p], m.pat[p+1]
	if s >= len(m.src) || m.src[s] != open {
		return -1
	}
	depth := 1
	for i := s + 1; i < len(m.src); i++ {
		if i&7 == 0 {
			m.step()
		}
		switch m.src[i] {
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

func (m *matcher) back(s int, digit byte) int {
	i := int(digit) - '1'
	if i < 0 || i >= m.level || m.captures[i].length == captureOpen {
		m.fail("invalid capture index")
	}
	c := m.captures[i]
	n := max(c.length, 0)
	m.run.left -= n >> 6
	if len(m.src)-s >= n && m.src[c.start:c.start+n] == m.src[s:s+n] {
		return s + n
	}
	return -1
}

// value is capture i, or the whole match src[s:e] when the pattern has none.
func (m *matcher) value(i, s, e int) lua.LValue {
	if i >= m.level {
		if i != 0 {
			m.fail("invalid capture index")
		}
		return m.sub(s, e)
	}
	c := m.captures[i]
	switch c.length {
	case captureOpen:
		m.fail("unfinished capture")
	case capturePosition:
		return number(float64(c.start + 1))
	}
	return m.sub(c.start, c.start+c.length)
}

// sub shares the subject's memory, as Go strings do.
func (m *matcher) sub(s, e int) lua.LValue {
	m.run.mem += 32
	return lua.LString(m.src[s:e])
}

// push pushes all captures, or the whole match.
func (m *matcher) push(s, e int) int {
	n := max(m.level, 1)
	for i := range n {
		m.L.Push(m.value(i, s, e))
	}
	return n
}
