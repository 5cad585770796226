package transcript

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The player's own kinds: what it writes where a reply would stand.
const (
	noReply Kind = 'w' // "(no reply)"
	closed  Kind = 'c' // "(closed)"
	notSent Kind = 'x' // "(not sent: why)"; no transcript expects it
)

var words = map[string]Kind{
	"(nil)":       NilBulk,
	"(nil array)": NilArray,
	"(null)":      Null,
	"(no reply)":  noReply,
	"(closed)":    closed,
}

// frame is one expected reply: its lines, without the indent of the block, and
// what they mean.
type frame struct {
	lines   []string
	pattern pattern
}

// pattern is a reply in which some values may be left open.
type pattern struct {
	kind      Kind   // of a literal; 0 when match is set
	text      string // of a literal
	elems     []pattern
	unordered bool
	rest      bool // the last of elems stood for "? rest"; it is not in elems

	match   string // int, bulk, verbatim, status, error, double, array, any
	lo, hi  float64
	expr    *regexp.Regexp
	capture string
}

// parseFrames reads the frames of one block.
func parseFrames(lines []string) ([]frame, error) {
	var frames []frame
	for len(lines) > 0 {
		p := &patternParser{lines: lines}
		pat, err := p.next(0)
		if err != nil {
			return nil, err
		}
		frames = append(frames, frame{lines: lines[:p.at], pattern: pat})
		lines = lines[p.at:]
	}
	return frames, nil
}

type patternParser struct {
	lines []string
	at    int
}

func (p *patternParser) next(depth int) (pattern, error) {
	if p.at == len(p.lines) {
		return pattern{}, fmt.Errorf("the aggregate above holds fewer values than it says")
	}
	line := p.lines[p.at]
	indent := strings.Repeat("  ", depth)
	s, ok := strings.CutPrefix(line, indent)
	if !ok || s == "" || s[0] == ' ' {
		return pattern{}, fmt.Errorf("want a value %d spaces deep, have %q", 2*depth, line)
	}
	p.at++
	if s == "? unordered" || s == "? set" {
		if p.at == len(p.lines) {
			return pattern{unordered: true}, nil // not recorded yet: matches nothing
		}
		pat, err := p.next(depth)
		pat.unordered = true
		return pat, err
	}
	if m, ok := strings.CutPrefix(s, "? "); ok {
		return parseMatcher(m)
	}
	if k, ok := words[s]; ok {
		return pattern{kind: k}, nil
	}
	pat := pattern{kind: Kind(s[0]), text: s[1:]}
	switch pat.kind {
	case '"':
		text, err := unquote(s)
		return pattern{kind: Bulk, text: text}, err
	case Verbatim:
		format, q, ok := strings.Cut(s[1:], ":")
		text, err := unquote(q)
		if !ok || err != nil {
			return pat, fmt.Errorf("want =txt:\"...\", have %q", s)
		}
		pat.text = format + ":" + text
		return pat, nil
	case Status, Error:
		if strings.HasPrefix(pat.text, `"`) {
			text, err := unquote(pat.text)
			pat.text = text
			return pat, err
		}
		return pat, nil
	case Int, Double, Bool, Big:
		return pat, nil
	case Array, Map, Set, Push:
		n, err := strconv.Atoi(pat.text)
		if err != nil || n < 0 || n > maxReplyElems {
			return pat, fmt.Errorf("want the number of elements behind %c, have %q", pat.kind, s)
		}
		pat.text = ""
		if pat.kind == Map {
			n *= 2
		}
		for range n {
			if pat.rest = p.takeRest(depth + 1); pat.rest {
				return pat, nil
			}
			e, err := p.next(depth + 1)
			if err != nil {
				return pat, err
			}
			pat.elems = append(pat.elems, e)
		}
		pat.rest = p.takeRest(depth + 1)
		return pat, nil
	}
	return pat, fmt.Errorf("not a reply: %q", s)
}

// takeRest takes the line that leaves an aggregate's other elements open.
func (p *patternParser) takeRest(depth int) bool {
	if p.at == len(p.lines) || p.lines[p.at] != strings.Repeat("  ", depth)+"? rest" {
		return false
	}
	p.at++
	return true
}

func parseMatcher(s string) (pattern, error) {
	s, capture, _ := strings.Cut(s, " -> ")
	word, rest, _ := strings.Cut(s, " ")
	pat := pattern{match: word, capture: capture, lo: math.Inf(-1), hi: math.Inf(1)}
	switch word {
	case "any", "array":
		if rest != "" {
			return pat, fmt.Errorf("nothing may follow %q, have %q", word, rest)
		}
	case "int", "double":
		if rest == "" {
			return pat, nil
		}
		lo, hi, ok := strings.Cut(rest, "..")
		var err1, err2 error
		pat.lo, err1 = strconv.ParseFloat(lo, 64)
		pat.hi, err2 = strconv.ParseFloat(hi, 64)
		if !ok || err1 != nil || err2 != nil {
			return pat, fmt.Errorf("want a range such as 1..9, have %q", rest)
		}
	case "bulk", "verbatim", "status", "error":
		if rest == "" {
			rest = ".*"
		}
		expr, err := regexp.Compile(`(?s)\A(?:` + rest + `)\z`)
		if err != nil {
			return pat, err
		}
		pat.expr = expr
	default:
		return pat, fmt.Errorf("unknown matcher %q; known are int, double, bulk, verbatim, status, error, array, any, rest, unordered, set", word)
	}
	return pat, nil
}

// matches reports whether r is what p expects, and keeps what p captures.
func (p pattern) matches(r Reply, vars map[string]string) bool {
	if p.match == "" {
		return p.matchesLiteral(r, vars)
	}
	ok := false
	switch p.match {
	case "any":
		ok = true
	case "array":
		ok = r.Kind.isAggregate()
	case "int":
		ok = r.Kind == Int && p.inRange(r.Text)
	case "double":
		ok = (r.Kind == Double || r.Kind == Bulk) && p.inRange(r.Text)
	case "bulk":
		ok = r.Kind == Bulk && p.expr.MatchString(latin1(r.Text))
	case "verbatim":
		if r.Kind == Verbatim {
			_, text, _ := strings.Cut(r.Text, ":")
			ok = p.expr.MatchString(latin1(text))
		} else {
			ok = r.Kind == Bulk && p.expr.MatchString(latin1(r.Text))
		}
	case "status":
		ok = r.Kind == Status && p.expr.MatchString(latin1(r.Text))
	case "error":
		ok = r.Kind == Error && p.expr.MatchString(latin1(r.Text))
	}
	if ok && p.capture != "" {
		vars[p.capture] = r.Text
	}
	return ok
}

// latin1 makes each byte a rune, so that an expression can name any byte as
// \xHH and a dot stands for one byte.
func latin1(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

func (p pattern) inRange(s string) bool {
	f, err := strconv.ParseFloat(s, 64)
	return err == nil && p.lo <= f && f <= p.hi
}

func (p pattern) matchesLiteral(r Reply, vars map[string]string) bool {
	if p.kind != r.Kind || p.text != r.Text {
		return false
	}
	if len(p.elems) > len(r.Elems) || len(p.elems) < len(r.Elems) && !p.rest {
		return false
	}
	if p.unordered {
		return p.matchesUnordered(r, vars)
	}
	for i, e := range p.elems {
		if !e.matches(r.Elems[i], vars) {
			return false
		}
	}
	return true
}

// matchesUnordered gives each expected element the first one left that it
// matches. The elements of a map are its pairs.
func (p pattern) matchesUnordered(r Reply, vars map[string]string) bool {
	width := 1
	if p.kind == Map {
		width = 2
	}
	left := slices.Collect(slices.Chunk(r.Elems, width))
	for want := range slices.Chunk(p.elems, width) {
		i := slices.IndexFunc(left, func(have []Reply) bool {
			kept := maps.Clone(vars)
			for j, e := range want {
				if !e.matches(have[j], kept) {
					return false
				}
			}
			maps.Copy(vars, kept)
			return true
		})
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return true
}

// hasMatcher reports whether a frame leaves anything open but the order of its
// outermost aggregate.
func (f frame) hasMatcher() bool {
	for i, line := range f.lines {
		if i == 0 && line == "? unordered" {
			continue
		}
		if strings.HasPrefix(strings.TrimLeft(line, " "), "? ") {
			return true
		}
	}
	return false
}

// sorted returns r with its elements in the order of their text.
func (r Reply) sorted() Reply {
	width := 1
	if r.Kind == Map {
		width = 2
	}
	chunks := slices.Collect(slices.Chunk(slices.Clone(r.Elems), width))
	slices.SortStableFunc(chunks, func(a, b []Reply) int {
		return slices.Compare(a[0].Lines(), b[0].Lines())
	})
	r.Elems = slices.Concat(chunks...)
	return r
}

// asRESP3 is what lines of RESP2 are expected to be in RESP3: both kinds of
// absent values are one there, the arrays of publish and subscribe are pushes,
// and "? set" makes an array a set.
func asRESP3(lines []string) []string {
	out := slices.Clone(lines)
	for i, line := range out {
		s := strings.TrimLeft(line, " ")
		if s == "(nil)" || s == "(nil array)" {
			out[i] = line[:len(line)-len(s)] + "(null)"
		}
		if i > 0 && strings.HasPrefix(s, "*") && strings.HasSuffix(out[i-1], "? set") {
			out[i] = line[:len(line)-len(s)] + "~" + s[1:]
		}
	}
	if len(out) > 1 && out[0][0] == '*' && slices.Contains(pushKinds, strings.TrimLeft(out[1], " ")) {
		out[0] = ">" + out[0][1:]
	}
	return out
}

var pushKinds = []string{
	`"subscribe"`, `"psubscribe"`, `"ssubscribe"`,
	`"unsubscribe"`, `"punsubscribe"`, `"sunsubscribe"`,
	`"message"`, `"pmessage"`, `"smessage"`,
}
