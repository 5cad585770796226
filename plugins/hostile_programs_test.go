package plugins_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/store"
)

// TestHostilePrograms has the conformance guest call host functions at random, with arguments
// from the edges of what there is: it gets one whole reply, what has failed leaves nothing, what
// is not granted stays as it was, and a call that runs under latches, with locked keys, or is
// promoted anywhere, does the same.
func TestHostilePrograms(t *testing.T) {
	cases := 1000
	if testing.Short() {
		cases = 200
	}
	w := newWorlds(t)
	random := rand.New(rand.NewPCG(3, 4))
	for range cases {
		w.run(t, randomProgram(random.IntN))
	}
}

// FuzzPrograms is TestHostilePrograms with programs that the fuzzer finds: each byte is a choice.
func FuzzPrograms(f *testing.F) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		seed := make([]byte, 100)
		for i := range seed {
			seed[i] = byte(random.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		newWorlds(t).run(t, randomProgram(func(n int) int {
			if len(choices) == 0 {
				return 0
			}
			c := int(choices[0]) % n
			choices = choices[1:]
			return c
		}))
	})
}

// worlds are stores that differ in how long a call may run under latches.
type worlds []*bench

func newWorlds(t testing.TB) (w worlds) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, allowance := range []func() int64{
		nil,
		func() int64 { return 0 },
		func() int64 { return random.Int64N(20_000) },
	} {
		b := newBenchOn(t, plugins.Options{MaxTime: time.Minute, Seed: func() (seed [32]byte) { return seed }},
			store.Options{Allowance: allowance, Clock: stoppedClock{}})
		addEval(t, b)
		b.want("+OK", "MODULE", "LOAD", "abitest/abitest.wasm")
		for _, key := range []string{"ro:k", "other"} {
			b.want("+OK", "SET", key, "before")
		}
		w = append(w, b)
	}
	return w
}

func (w worlds) run(t *testing.T, words string) {
	w.once(t, words)
	if strings.Contains(words, "!cad_args") { // with what it asks first foreseen, but in world 0
		w[0].program("@1 #1 !exists =")
		w.once(t, words)
	}
}

func (w worlds) once(t *testing.T, words string) {
	var first string
	for i, b := range w {
		b.do("DEL", "abi:k", "abi:l")
		before := b.kept()
		got := b.program(words)
		if !wholeReply(got) || strings.Contains(got, "internal error") || strings.Contains(got, "wazero)") || strings.Contains(got, "runtime error") {
			t.Fatalf("%s\nreplied %q", words, clip(got))
		}
		after := b.kept()
		if strings.HasPrefix(got, "-") && after != before {
			t.Fatalf("%s\nfailed with %q and left %s, want what was before: %s", words, clip(got), clip(after), clip(before))
		}
		if !strings.HasSuffix(after, "ro:k=$6\r\nbefore :-1 other=$6\r\nbefore :-1") {
			t.Fatalf("%s\nreached what is not granted: %s", words, clip(after))
		}
		switch did := got + " " + after; {
		case i == 0:
			first = did
		case did != first:
			t.Fatalf("%s\ndid in world %d %q\nand in world 0 %q", words, i, clip(did), clip(first))
		}
	}
}

// kept is what is stored under the keys that programs name.
func (b *bench) kept() string {
	var out []string
	for _, key := range []string{"abi:k", "abi:l", "latchkey:module:abitest", "ro:k", "other"} {
		value := b.do("GET", key)
		if strings.HasPrefix(value, "-WRONGTYPE") {
			value = b.do("DUMP", key)
		}
		out = append(out, fmt.Sprintf("%s=%s %s", key, value, b.do("PTTL", key)))
	}
	return strings.Join(out, " ")
}

// wholeReply tells whether there is one reply in RESP2, without its last line break.
func wholeReply(s string) bool {
	rest, ok := skipReply(s+"\r\n", 0)
	return ok && rest == ""
}

func skipReply(s string, depth int) (rest string, ok bool) {
	line, rest, ok := strings.Cut(s, "\r\n")
	if !ok || line == "" || depth > 100 {
		return "", false
	}
	n := 0
	switch line[0] {
	case '+', '-', ':':
		return rest, true
	case '$':
		if _, err := fmt.Sscan(line[1:], &n); err != nil || n < -1 || n >= 0 && len(rest) < n+2 {
			return "", false
		}
		if n >= 0 {
			rest = rest[n+2:]
		}
		return rest, true
	case '*':
		if _, err := fmt.Sscan(line[1:], &n); err != nil || n < -1 {
			return "", false
		}
		for ; n > 0; n-- {
			if rest, ok = skipReply(rest, depth+1); !ok {
				return "", false
			}
		}
		return rest, true
	}
	return "", false
}

// randomProgram is words for bench.program, as the choices say: choose returns 0 to n-1.
func randomProgram(choose func(n int) int) string {
	pick := func(list ...string) string { return list[choose(len(list))] }
	number := func() string {
		return pick("0", "1", "2", "3", "-1", "-2", "5", "7", "8", "64", "256", "1000000", "4096", "4097", "4099", "65535", "65536", "131064", "131068",
			"131071", "131072", "1048576", "1048577", "2147483647", "-2147483648", "4294967295", "4294967296", "4611686018427387904",
			"9223372036854775807", "-9223372036854775808", "-103", "-101")
	}
	text := func() string {
		return "'" + pick("", "v", "10", "-123", "9223372036854775807", "txt", "abi:k", "abi:l", "ro:k", "other", "latchkey:module:abitest",
			"GET", "SET", "RPUSH", "EVAL", "ABI.RUN", "FLUSHALL", "OBJECT", "ENCODING", "px", "number", "ERR~no", strings.Repeat("x", 5000))
	}
	key := func() string { return pick("@1 #1", "@1 #1", "@1 #1", "@1 #1", "@2 #2", text()) }
	value := func() string {
		switch choose(4) {
		case 0:
			return text()
		case 1:
			return number() + " " + number()
		}
		return pick("'v", "'12345", "4096 8", "4096 64", "@1 #1")
	}
	script := func() string {
		return "'" + pick("return~1", "return~redis.call('get',KEYS[1])", "return~redis.call('set',KEYS[1],'v')", "return~redis.call('rpush',KEYS[1],'v')",
			"return~redis.call('abi.run',KEYS[1],'1','!reply_int')", "return~redis.call('abi.run',KEYS[1],'!fence')", "return~redis.pcall('abi.run',KEYS[1],'!nosuch')",
			"return~redis.call('set','other','v')", "return~{1,{2,'x'},false}", "return~{err='MY~e'}", "error('no')", "redis.call('set',KEYS[1],'v')~error('no')", "local~x=0~for~i=1,3000~do~x=x+i~end~return~x")
	}
	command := func() (words string, n int) {
		switch choose(6) {
		case 0:
			return "'EVAL " + script() + " '1 " + pick("@1 #1", "'abi:l", "'other"), 4
		case 1:
			return "'ABI.RUN @1 #1 '" + pick("1~!reply_int", "!reply_null", "!nosuch", "=", "^"), 3
		case 2:
			return "'SET " + key() + " " + value(), 3
		case 3:
			return pick("'RPUSH", "'GET", "'APPEND") + " " + key() + " " + value(), 3
		case 4:
			return "'OBJECT 'ENCODING " + key(), 3
		}
		return pick("'GET", "'FLUSHALL", "'", "'nosuch") + " " + key(), 1 + choose(3)
	}
	functions := plugins.HostFunctions()
	// call is one call of a host function, most often with arguments that make sense.
	call := func() string {
		f := functions[choose(len(functions))]
		var args []string
		for i := 0; i < len(f.Names); i++ {
			switch name := f.Names[i]; {
			case choose(8) == 0:
				args = append(args, number())
			case strings.HasSuffix(name, "_index"):
				args = append(args, pick("0", "1", "1", "1", "2", "3", number()))
			case name == "key":
				args, i = append(args, key()), i+1
			case i+1 < len(f.Names) && strings.HasSuffix(f.Names[i+1], "len"):
				args, i = append(args, value()), i+1
			case name == "buf":
				args, i = append(args, pick("4096 4096", "4096 64", "4096 0", "4097 3", number()+" "+number())), i+1
			case name == "handle":
				args = append(args, pick("&", "&", "&", "1", "2", "3", number()))
			case name == "version_out" || name == "out":
				args = append(args, pick("4160", "4099", number()))
			case name == "px" || name == "ms" || name == "timeout":
				args = append(args, pick("0", "0", "100000", "100000000", number()))
			case name == "flags":
				args = append(args, pick("0", "0", "0", "1", "2", "4", "8", number()))
			case name == "n" || name == "index" || name == "offset":
				args = append(args, pick("0", "1", "2", "3", "-1", number()))
			default:
				args = append(args, number())
			}
		}
		if f.Name == "timer_set" && len(args) > 0 {
			args[0] = pick("-1", "315360000000", "100000000", "9223372036854775807") // none that is due meanwhile
		}
		words := strings.Join(append(args, "!"+f.Name), " ")
		if f.Name == "fence" || f.Name == "timer_set" {
			words += " 0 %" // a number that is not the same each time
		}
		return words
	}
	var out []string
	for range 1 + choose(12) {
		switch choose(10) {
		case 0, 1:
			words, n := command()
			out = append(out, words, "%", "4096", fmt.Sprint(n), "!call")
			for range choose(4) {
				out = append(out, "&", pick("!call_type", "!call_len", "4096 64 !call_bytes", "!call_int", "0 !call_elem", "!call_free"))
			}
		case 2:
			out = append(out, pick("=", `"8`, `"&`, "%", "^", ">1", ">511", "!reply_null", "2 !reply_array", "-1 !reply_array", "1 !reply_map", "-1 !reply_map", "2 !reply_len"))
		default:
			out = append(out, call())
		}
	}
	if choose(4) != 0 {
		out = append(out, "=")
	}
	return pick("", "", "", "ABI.RUN2 abi:k abi:l ", "ABI.RO x ") + strings.Join(out, " ")
}

// stoppedClock has one time for ever.
type stoppedClock struct{}

func (stoppedClock) NowMilli() int64 { return 1_700_000_000_000 }
func (stoppedClock) NowMicro() int64 { return 1_700_000_000_000_000 }
