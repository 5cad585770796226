package glob

// Match reports whether the whole of s matches pattern. With nocase, ASCII letters match in either case.
// It keeps nothing, allocates nothing and may be called from any goroutine.
//
//   - any bytes, none included
//     ?        one byte
//     [abc]    one of these bytes; [a-c] a range, in either order; [^abc] any other byte
//     \x       the byte x itself, also inside brackets
//
// As in redis-server: an empty s is matched by the empty pattern only, not by *; a class without its closing
// bracket ends with the pattern; in [a-] the closing bracket is the end of the range; bytes from 0x80 sort
// below 0x00 in ranges; an escaped byte in a class keeps its case under nocase; nothing is matched beyond the
// 1,000th star that is not the last element.
//
// It takes time up to the product of both lengths: MatchWhile is for those that are a client's choice.
func Match[P, S ~string | ~[]byte](pattern P, s S, nocase bool) bool {
	return MatchWhile(pattern, s, nocase, nil)
}

// stepsBetween is how many elements, and bytes of classes, MatchWhile looks at before it asks.
const stepsBetween = 4096

// MatchWhile is Match that asks goOn from time to time whether to go on, with the number of steps since it asked last;
// a step takes one to three nanoseconds. After goOn has said no the result means nothing. A short match never asks.
func MatchWhile[P, S ~string | ~[]byte](pattern P, s S, nocase bool, goOn func(steps int) bool) bool {
	if len(s) == 0 {
		return len(pattern) == 0
	}
	steps := 0
	// Every element but * takes exactly one byte. So after a mismatch only the most recent * needs to be
	// tried again one byte further on: what an earlier * could gain, the later one can swallow as well.
	p, i := 0, 0
	retryPattern, retryFrom, stars := -1, 0, 0
	for i < len(s) {
		if p < len(pattern) && pattern[p] == '*' {
			for p < len(pattern) && pattern[p] == '*' {
				p++
			}
			if p == len(pattern) {
				return true
			}
			retryPattern, retryFrom = p, i
			if stars++; stars > maxStars {
				return false
			}
			continue
		}
		if p < len(pattern) {
			ok, next := matchOne(pattern, p, s[i], nocase)
			if steps += next - p; steps >= stepsBetween {
				if goOn != nil && !goOn(steps) {
					return false
				}
				steps = 0
			}
			if ok {
				p = next
				i++
				continue
			}
		}
		if retryPattern < 0 {
			return false
		}
		retryFrom++
		p, i = retryPattern, retryFrom
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// maxStars is how many stars redis-server follows.
const maxStars = 1000

// matchOne matches c against the element at pattern[p], which is not *, and returns where the next begins.
func matchOne[P ~string | ~[]byte](pattern P, p int, c byte, nocase bool) (ok bool, next int) {
	switch pattern[p] {
	case '?':
		return true, p + 1
	case '[':
		return matchClass(pattern, p+1, c, nocase)
	case '\\':
		if p+1 < len(pattern) {
			p++
		}
	}
	if nocase {
		return lower(pattern[p]) == lower(c), p + 1
	}
	return pattern[p] == c, p + 1
}

// matchClass matches c against the class whose first byte after the bracket is pattern[p].
func matchClass[P ~string | ~[]byte](pattern P, p int, c byte, nocase bool) (ok bool, next int) {
	not := p < len(pattern) && pattern[p] == '^'
	if not {
		p++
	}
	for p < len(pattern) {
		switch rest := len(pattern) - p; {
		case pattern[p] == '\\' && rest >= 2:
			p++
			if pattern[p] == c {
				ok = true
			}
		case pattern[p] == ']':
			return ok != not, p + 1
		case rest >= 3 && pattern[p+1] == '-':
			// Redis compares signed chars, and folds case only after putting the ends in order.
			from, to, b := int8(pattern[p]), int8(pattern[p+2]), int8(c)
			if from > to {
				from, to = to, from
			}
			if nocase {
				from, to, b = int8(lower(byte(from))), int8(lower(byte(to))), int8(lower(c))
			}
			if from <= b && b <= to {
				ok = true
			}
			p += 2
		case nocase:
			if lower(pattern[p]) == lower(c) {
				ok = true
			}
		default:
			if pattern[p] == c {
				ok = true
			}
		}
		p++
	}
	return ok != not, p
}

// lower folds ASCII letters, as tolower does in the C locale.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}
