package glob

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		pattern, s string
		nocase     bool
		want       bool
	}{
		{"", "", false, true},
		{"*", "", false, false},
		{"", "a", false, false},
		{"*", "a", false, true},
		{"a*", "a", false, true},
		{"a**", "a", false, true},
		{"?", "", false, false},
		{"?", "a", false, true},
		{"??", "a", false, false},
		{"a?c", "abc", false, true},
		{"*b", "aab", false, true},
		{"*ab*c", "aabbabc", false, true},
		{"*a*b", "ba", false, false},
		{"a*b*c", "aXbXbXc", false, true},
		{"**a**", "xay", false, true},
		{"[abc]", "b", false, true},
		{"[abc]", "d", false, false},
		{"[^a]", "a", false, false},
		{"[^a]", "b", false, true},
		{"[a-c]x", "bx", false, true},
		{"[c-a]", "b", false, true},
		{"[a-]", "b", false, false},
		{"[a-]", "]", false, true},
		{"[a-]", "^", false, true},
		{"[]", "a", false, false},
		{"[]a]", "a", false, false},
		{"[^]", "a", false, true},
		{"[", "[", false, false},
		{"[^", "x", false, true},
		{"[a", "a", false, true},
		{"[a", "b", false, false},
		{"[ab", "ab", false, false},
		{`[\]]`, "]", false, true},
		{`[\`, `\`, false, true},
		{`[\a-c]`, "-", false, true},
		{`[\a-c]`, "b", false, false},
		{"[a^]", "^", false, true},
		{`\*`, "*", false, true},
		{`\*`, "a", false, false},
		{`\`, `\`, false, true},
		{`a\`, `a\`, false, true},
		{`\\`, `\`, false, true},
		{`\[a]`, "[a]", false, true},
		{"ABC", "abc", false, false},
		{"ABC", "abc", true, true},
		{"[A-C]", "b", true, true},
		{"[ABC]", "b", true, true},
		{`[\A]`, "a", true, false},
		{"[Z-a]", "m", true, false},
		{"[\x80-\xff]", "\x90", false, true},
		{"[\x01-\xff]", "a", false, false},
		{"[\xff-\x01]", "\x00", false, true},
		{"É", "é", true, false},
	} {
		if got := Match(test.pattern, test.s, test.nocase); got != test.want {
			t.Errorf("Match(%q, %q, %v) is %v, want %v", test.pattern, test.s, test.nocase, got, test.want)
		}
		if got := Match([]byte(test.pattern), []byte(test.s), test.nocase); got != test.want {
			t.Errorf("Match of bytes (%q, %q, %v) is %v, want %v", test.pattern, test.s, test.nocase, got, test.want)
		}
	}
}

// TestMatchWhile: a match that takes long asks all the while, and ends when it is told to.
func TestMatchWhile(t *testing.T) {
	const n = 1 << 20
	long := strings.Repeat("a", n)
	for _, test := range []struct{ pattern, s string }{
		{"*" + long[:n/2] + "b", long},
		{"*" + strings.Repeat("?", n/2) + "b*", long},
		{"*" + strings.Repeat("[a-z]", n/8) + "b", long},
		{"*a*" + long[:n/2] + "b", long},
		{"[" + strings.Repeat("b", n) + "]*b", long},
		{"*[" + strings.Repeat("b", n) + "]", long},
	} {
		const enough = 10
		asked := 0
		MatchWhile(test.pattern, test.s, false, func(steps int) bool {
			if steps < stepsBetween {
				t.Fatalf("%.20s... asked after %d steps, want %d", test.pattern, steps, stepsBetween)
			}
			asked++
			return asked < enough
		})
		if asked != enough && test.pattern[0] != '[' {
			t.Errorf("%.20s... asked %d times, want %d", test.pattern, asked, enough)
		}
	}
	if !MatchWhile("*"+long+"*", long, false, func(int) bool { return true }) {
		t.Error("a long match that may go on fails")
	}
	MatchWhile("a*b?[a-z]", "abbbbc", true, func(int) bool { t.Error("a short match asks"); return true })
}

// reference tries every length for every star: plainly right, and exponential.
func reference(pattern, s string, nocase bool) bool {
	if len(s) == 0 {
		return len(pattern) == 0
	}
	return referenceRest(pattern, s, nocase)
}

func referenceRest(pattern, s string, nocase bool) bool {
	if pattern == "" {
		return s == ""
	}
	if pattern[0] == '*' {
		for i := 0; i <= len(s); i++ {
			if referenceRest(pattern[1:], s[i:], nocase) {
				return true
			}
		}
		return false
	}
	if s == "" {
		return false
	}
	ok, next := matchOne(pattern, 0, s[0], nocase)
	return ok && referenceRest(pattern[next:], s[1:], nocase)
}

// random returns up to n bytes out of letters.
func random(r *rand.Rand, letters string, n int) string {
	b := make([]byte, r.IntN(n+1))
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}

const patternLetters = "aabbABc*?[]^-\\"

func TestMatchReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	matches := 0
	for range 300000 {
		pattern, s, nocase := random(r, patternLetters, 9), random(r, "abABc-]", 7), r.IntN(2) == 0
		want := reference(pattern, s, nocase)
		if want {
			matches++
		}
		if got := Match(pattern, s, nocase); got != want {
			t.Fatalf("Match(%q, %q, %v) is %v, the reference says %v", pattern, s, nocase, got, want)
		}
	}
	if matches < 1000 {
		t.Errorf("only %d of the random pairs match: this compares nothing", matches)
	}
}

// TestLinear would take longer than the universe has, did a star try every length.
func TestLinear(t *testing.T) {
	if Match(strings.Repeat("a*", 2000)+"b", strings.Repeat("a", 20000), false) {
		t.Error("matched")
	}
	if !Match(strings.Repeat("a*", 1000)+"b", strings.Repeat("a", 20000)+"b", false) {
		t.Error("did not match")
	}
}

// TestMaxStars is redis-server 7.0.15's bound: KEYS with a thousand "*?" finds a
// key of 50,000 bytes, with one more it finds nothing.
func TestMaxStars(t *testing.T) {
	s := strings.Repeat("a", 5000)
	for _, c := range []struct {
		pattern string
		want    bool
	}{
		{strings.Repeat("*?", 1000), true},
		{strings.Repeat("*?", 1001), false},
		{strings.Repeat("*a", 1000) + "*", true},
		{strings.Repeat("**?", 1000), true},
	} {
		if got := Match(c.pattern, s, false); got != c.want {
			t.Errorf("%d bytes of %.6s...: %v, want %v", len(c.pattern), c.pattern, got, c.want)
		}
	}
}

// TestMatchRedis asks redis-server: KEYS for case-sensitive matching, CONFIG GET for the other.
func TestMatchRedis(t *testing.T) {
	ask := transcript.StartJudge(t).Ask(t)
	r := rand.New(rand.NewPCG(3, 4))
	keys := map[string]bool{"[": true, "]": true, "-": true, "^": true, `\`: true, "\x80": true, "\xff": true, "\x00": true, "\x7f": true, "*": true, "?": true}
	for len(keys) < 200 {
		if k := random(r, "abABc-]^\\\x80\xff", 6); k != "" {
			keys[k] = true
		}
	}
	for k := range keys {
		ask("SET", k, "")
	}
	patterns := []string{"[\x80-\xff]", "[\xff-a]", "[a-\xff]*", "[^", "[", "[a", "[a-", "[a-]", `[\`, `\`, `[\]a]`, "[]", "[^]", "**", "*a**b*"}
	for range 1500 {
		patterns = append(patterns, random(r, patternLetters+"\x80\xff", 8))
	}
	for _, p := range patterns {
		want := ask("KEYS", p).Words()
		var got []string
		for k := range keys {
			if Match(p, k, false) {
				got = append(got, k)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("KEYS %q: we match %q, redis-server %q", p, got, want)
		}
	}
	var names []string
	for i, w := range ask("CONFIG", "GET", "*").Words() {
		if i%2 == 0 {
			names = append(names, w)
		}
	}
	for range 1000 {
		p := random(r, "pPoOrRtTaAiInN*?[]^-", 7) + "*"
		var want, got []string
		for i, w := range ask("CONFIG", "GET", p).Words() {
			if i%2 == 0 {
				want = append(want, w)
			}
		}
		for _, name := range names {
			if Match(p, name, true) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("CONFIG GET %q: we match %q, redis-server %q", p, got, want)
		}
	}
}

func FuzzMatch(f *testing.F) {
	for _, s := range []string{"", "*", "a*b", "[a-c]", "[^", `[\]`, "*a*a*a*b"} {
		f.Add(s, "aab", false)
		f.Add(s, "AB]", true)
	}
	f.Fuzz(func(t *testing.T, pattern, s string, nocase bool) {
		got := Match(pattern, s, nocase)
		if Match([]byte(pattern), []byte(s), nocase) != got {
			t.Errorf("Match(%q, %q, %v) differs between string and bytes", pattern, s, nocase)
		}
		if strings.Count(pattern, "*") <= 4 && len(pattern) <= 24 && len(s) <= 24 && got != reference(pattern, s, nocase) {
			t.Errorf("Match(%q, %q, %v) is %v, the reference says otherwise", pattern, s, nocase, got)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	for _, bench := range []struct{ name, pattern, s string }{
		{"literal", "lock:invoice:1000042", "lock:invoice:1000042"},
		{"prefix", "lock:*", "lock:invoice:1000042"},
		{"infix", "*:invoice:*", "lock:invoice:1000042"},
		{"class", "lock:[a-z]*:[0-9]*", "lock:invoice:1000042"},
		{"hostile", strings.Repeat("a*", 20) + "b", strings.Repeat("a", 1000)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := []byte(bench.s)
			b.ReportAllocs()
			for b.Loop() {
				Match(bench.pattern, s, false)
			}
		})
	}
}
