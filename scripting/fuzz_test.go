package scripting

import (
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store/underload"
	"github.com/latchkey-proxy/latchkey/store/underrace"
)

// FuzzScript runs anything: it must end, and leave a clean world.
func FuzzScript(f *testing.F) {
	for _, src := range hostile {
		f.Add(src)
	}
	for _, src := range []string{unlockScript, "return {KEYS, ARGV}", "local t = {} t[#t+1] = 1 return #t", "return ('x'):rep(3)"} {
		f.Add(src)
	}
	e, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, src string) {
		lim := Limits{Instructions: 200_000, Memory: 8 << 20, Time: time.Second}
		before, begin := underload.Now(), time.Now()
		got := eval(e, newFakeStore(), src, lim)
		if took := time.Since(begin); took > before.Stretch(underrace.Slow*4*time.Second) {
			t.Errorf("took %v", took)
		}
		if strings.HasPrefix(got, "-ERR internal error") {
			t.Errorf("the machine failed: %s", got)
		}
		if got := eval(e, newFakeStore(), "return {type(string.len), #KEYS, KEYS[1]}", lim); got != "*3\r\n$8\r\nfunction\r\n:2\r\n$2\r\nk1\r\n" {
			t.Errorf("the next script sees %q", got)
		}
	})
}

// FuzzPattern searches anything with anything.
func FuzzPattern(f *testing.F) {
	for _, p := range []string{"%f[%a]%a+", "(a*(.)%w(%s*))", "[^%]a-z]", "%b()", "^(.-)%s*$", "()", "%1", "[a", "%", "(", "[]]", "%f", "a-b?c*d+"} {
		f.Add("hello (world) [x] 42", p, "%1<%0>")
	}
	e, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	s, err := e.Compile([]byte(`
		local s, p, r = ARGV[1], ARGV[2], ARGV[3]
		local out = {pcall(string.find, s, p)}
		out[#out+1] = pcall(string.gsub, s, p, r)
		pcall(function() for a, b in string.gmatch(s, p) do out[#out+1] = a end end)
		out[#out+1] = pcall(string.format, p, s, 1, 2.5)
		return #out`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, subject, pattern, repl string) {
		inv := &Invocation{
			Caller: newFakeStore(), Limits: Limits{Instructions: 1_000_000, Memory: 16 << 20},
			Args: [][]byte{[]byte(subject), []byte(pattern), []byte(repl)},
		}
		if err := e.Run(s, inv, &respWriter{}); err != nil && strings.Contains(err.Error(), "internal error") {
			t.Errorf("find(%q, %q) and gsub with %q: %v", subject, pattern, repl, err)
		}
	})
}
