package text

// Position makes a Lua index, negative from the end, one from the beginning.
func Position(i, length int) int {
	if i < 0 {
		i += length + 1
	}
	return max(i, 0)
}

// anchored tells whether the pattern matches only where the search begins, and
// where what is to be matched stands in it.
func (m *Matcher) anchored() (anchor bool, p int) {
	if m.Pat != "" && m.Pat[0] == '^' {
		return true, 1
	}
	return false, 0
}

// Renew makes m ready for another search than the last one, which an error may have ended.
func (m *Matcher) Renew(src, pat string) {
	m.Src, m.Pat, m.Level, m.levels = src, pat, 0, 0
}

// Find returns the first match from init on, Src[s:e], as string.find and
// string.match do; ok is false when there is none. Its captures are m's then.
func (m *Matcher) Find(init int) (s, e int, ok bool) {
	anchor, p := m.anchored()
	for s = init; ; s++ {
		m.Level = 0
		if e = m.Match(s, p); e >= 0 {
			return s, e, true
		}
		if anchor || s >= len(m.Src) {
			return 0, 0, false
		}
	}
}

// Next returns the first match from at on, Src[s:e], as string.gmatch does, to
// which no pattern is anchored, and where the search after it begins.
func (m *Matcher) Next(at int) (s, e, next int, ok bool) {
	for s = at; s <= len(m.Src); s++ {
		m.Level = 0
		if e = m.Match(s, 0); e >= 0 {
			if e == s {
				return s, e, e + 1, true // an empty match: go on after it
			}
			return s, e, e, true
		}
	}
	return 0, 0, s, false
}

// Substitute is string.gsub: for each of the first limit matches Src[s:e] replace
// hands what is to stand in its place to grow. n is how many there were; without
// any b is not the subject but nothing. What b takes is charged before it is taken.
func (m *Matcher) Substitute(limit int, replace func(s, e int, grow func(string))) (b []byte, n int) {
	anchor, p := m.anchored()
	grow := func(piece string) {
		if len(b)+len(piece) > cap(b) && !m.Account.Alloc(2*(len(b)+len(piece))) {
			m.Failer.Ended()
		}
		b = append(b, piece...)
	}
	at := 0
	for n < limit {
		m.Level = 0
		e := m.Match(at, p)
		if e >= 0 {
			n++
			replace(at, e, grow)
		}
		if e >= 0 && e > at {
			at = e
		} else if at < len(m.Src) {
			grow(m.Src[at : at+1])
			at++
		} else {
			break
		}
		if anchor {
			break
		}
	}
	if n == 0 {
		return nil, 0
	}
	if at < len(m.Src) {
		grow(m.Src[at:])
	}
	return b, n
}
