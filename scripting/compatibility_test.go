package scripting

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

const compatibilityPage = "../docs/COMPATIBILITY.md"

// TestCorpusPage: docs/COMPATIBILITY.md sums up the accepted differences of the
// corpus. That each is one still, TestCorpus proves.
func TestCorpusPage(t *testing.T) {
	type row struct{ engine, reason string }
	scripts, both := map[row]int{}, 0
	for _, f := range readCorpus(t) {
		for _, s := range f.snippets {
			for _, d := range s.differs {
				scripts[row{d.engine, d.reason}]++
			}
			if s.differsIn("closures") != nil {
				both++
			}
		}
	}
	const most = 9
	if both > most {
		t.Errorf("%d accepted differences of the second engine, want at most %d", both, most)
	}
	var rows []row
	for r := range scripts {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(strings.Compare(a.engine, b.engine), strings.Compare(a.reason, b.reason))
	})
	names := map[string]string{"vm": "virtual machine", "closures": "closures", "both": "both"}
	want := "| engine | reason | scripts |\n|---|---|---|\n"
	for _, r := range rows {
		want += fmt.Sprintf("| %s | %s | %d |\n", names[r.engine], r.reason, scripts[r])
	}
	page, err := os.ReadFile(compatibilityPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), "| engine | reason | scripts |\n")
	if !ok {
		t.Fatalf("%s has no table of the corpus's differences", compatibilityPage)
	}
	end := strings.Index(rest, "\n\n") + 1
	if got := "| engine | reason | scripts |\n" + rest[:end]; got == want {
		return
	}
	if !updating() {
		t.Fatalf("%s does not sum up the corpus; %s. It should say\n%s", compatibilityPage, updateHint, want)
	}
	if err := os.WriteFile(compatibilityPage, []byte(before+want+rest[end:]), 0o644); err != nil {
		t.Fatal(err)
	}
}

// byDesign are the rows on scripts of the table of differences by design, by their
// first cell: what a client does that shows the difference. Its words are what it
// was answered.
var byDesign = map[string]func(p *probe) string{
	"a script fails after it wrote": func(p *probe) string {
		p.ask("EVAL", "redis.call('set', 'k', 'v') error('x')", "0")
		return p.ask("GET", "k")
	},
	"a script that has written runs too long": func(p *probe) string {
		defer p.spin("redis.call('set', 'k', 'v')")()
		return p.ask("SCRIPT", "KILL")
	},
	"several scripts run too long": func(p *probe) string {
		defer p.spin("")()
		return p.other().ask("EVAL", "return 'ran'", "0")
	},
	"a script runs": func(p *probe) string {
		defer p.spin("")()
		return p.ask("PING")
	},
	"a function leaves something in its library's variables": func(p *probe) string {
		p.ask("FUNCTION", "LOAD", libSource("l", "local n = 0 redis.register_function('f', function() n = n + 1 return n end)"))
		return p.ask("FCALL", "f", "0") + p.ask("FCALL", "f", "0")
	},
	"FUNCTION STATS, KILL while a script of EVAL runs": func(p *probe) string {
		defer p.spin("")()
		return p.ask("FUNCTION", "STATS")
	},
	"functions whose names differ in case alone": func(p *probe) string {
		return p.ask("FUNCTION", "LOAD", libSource("l", "redis.register_function('f', function() end) redis.register_function('F', function() end)"))
	},
	"an engine named `wasm` in a first line": func(p *probe) string {
		return p.ask("FUNCTION", "LOAD", "#!wasm name=l\n")
	},
	"an error in a function with more than 255 constants": func(p *probe) string {
		source := []byte("local t, n = {}, nil ")
		for i := range 300 {
			source = append(strconv.AppendInt(append(source, "t.c"...), int64(i), 10), "=1 "...)
		}
		return p.ask("EVAL", string(source)+"t.missing()", "0")
	},
	"one call with more than some 195 arguments, one assignment to as many fields, and what else takes as many of Lua's registers, in a script that the virtual machine runs or in `loadstring`": func(p *probe) string {
		return p.ask("EVAL", "return type(loadstring('return f(' .. ('1,'):rep(220) .. '1)'))", "0")
	},
	"blocks, brackets and functions in each other, in `loadstring`": func(p *probe) string {
		return p.ask("EVAL", "return type(loadstring(('do '):rep(199) .. ('end '):rep(199)))", "0")
	},
	"a stack overflow that pcall catches, on the virtual machine or in `loadstring`": func(p *probe) string {
		return p.ask("EVAL", "return select(2, pcall(loadstring('local function f() return 1 + f() end f()', '=c')))", "0")
	},
	"collectgarbage": func(p *probe) string {
		p.ask("EVAL", "return collectgarbage('setpause', 150)", "0")
		return p.ask("EVAL", "return collectgarbage('setpause', 200)", "0")
	},
	"a NUL in the word of an option, such as `EX\\0`": func(p *probe) string {
		return p.ask("EVAL", `return redis.call("set", "k", "v", "EX\0", "10")`, "0")
	},
	"PUBLISH in a script or MULTI": func(p *probe) string {
		listener := p.other()
		listener.ask("SUBSCRIBE", "c")
		p.ask("EVAL", "redis.call('publish', 'c', 'from the script') error('x')", "0")
		p.ask("PUBLISH", "c", "from the client")
		return listener.next()
	},
}

// elsewhere are those whose difference takes a restart, an append-only file or the
// clock to see, and the tests that show them.
var elsewhere = map[string]string{
	"a script with more than some 16,000 different constants, on the virtual machine": "TestConstants",
	"FLUSHALL and what else needs all keys, beside a slow script":                     "proxy/histories",
	"scripts after a restart":                       "TestScriptsOutliveARestart",
	"libraries after a restart":                     "docs/SCRIPTING.md: there is no append-only file yet",
	"undeclared keys in a script":                   "proxy/histories: only the time differs",
	"MONITOR":                                       "proxy",
	"SELECT in a script, keys in several databases": "proxy/histories: only the locks differ",
}

// TestDesignDifferences: each row of the table of differences by design that is
// about scripts and functions is one, as redis-server shows.
func TestDesignDifferences(t *testing.T) {
	page, err := os.ReadFile(compatibilityPage)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Differences by design")
	table, _, _ = strings.Cut(table, "\n## ")
	listed := map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 {
			continue
		}
		name := strings.TrimPrefix(cells[0], "| ")
		listed[name] = true
		if byDesign[name] == nil && elsewhere[name] == "" && strings.Contains(line, "script") {
			t.Errorf("no test shows the difference %q", name)
		}
	}
	for name := range elsewhere {
		if !listed[name] {
			t.Errorf("%s has no row %q", compatibilityPage, name)
		}
	}
	for name, show := range byDesign {
		if !listed[name] {
			t.Errorf("%s has no row %q", compatibilityPage, name)
		}
		t.Run(name, func(t *testing.T) {
			theirs := show(newProbe(t, transcript.StartJudge(t).Addr))
			ours := show(newProbe(t, startLatchkey(t, Options{Version: "7.0.15"}, Settings{})))
			if theirs == ours {
				t.Errorf("listed, but not different: both answer %s", ours)
			}
			t.Logf("redis-server: %s", theirs)
			t.Logf("latchkey:     %s", ours)
		})
	}
}

// probe is a client that looks for a difference.
type probe struct {
	t    *testing.T
	addr string
	*asker
}

func newProbe(t *testing.T, addr string) *probe {
	p := &probe{t, addr, dialServer(t, addr)}
	if got := p.ask("CONFIG", "SET", "busy-reply-threshold", "1"); got != "+OK" {
		t.Fatalf("CONFIG SET: %s", got)
	}
	return p
}

func (p *probe) other() *probe { return &probe{p.t, p.addr, dialServer(p.t, p.addr)} }

func (p *probe) ask(args ...string) string {
	p.t.Helper()
	r, err := p.asker.ask(2, args...)
	if err != nil {
		p.t.Fatalf("%q: %v", args, err)
	}
	return lineOf(r)
}

// next is a message that was not asked for.
func (p *probe) next() string {
	p.t.Helper()
	r, err := transcript.ReadReply(p.read[2])
	if err != nil {
		p.t.Fatal(err)
	}
	return lineOf(r)
}

// spin has another client run a script that begins with src and does not end. It
// returns when the script is past the threshold; stop ends it.
func (p *probe) spin(src string) (stop func()) {
	p.t.Helper()
	p.other().send("EVAL", src+" while true do end", "0")
	for strings.HasPrefix(p.ask("FUNCTION", "KILL"), "-NOTBUSY") { // which never ends a script
	}
	return func() {
		if strings.HasPrefix(p.ask("SCRIPT", "KILL"), "-UNKILLABLE") {
			p.send("SHUTDOWN", "NOSAVE")
		}
	}
}

func (p *probe) send(args ...string) {
	p.t.Helper()
	if err := p.asker.send(2, args...); err != nil {
		p.t.Fatalf("%q: %v", args, err)
	}
}

// TestKnownScriptDifferences replays the transcripts of the scripting commands: the
// replies are redis-server's, latchkey's differ where docs/COMPATIBILITY.md says so,
// and nowhere else.
func TestKnownScriptDifferences(t *testing.T) {
	known, err := transcript.OpenKnown(compatibilityPage)
	if err != nil {
		t.Fatal(err)
	}
	families := map[string]bool{}
	judge := transcript.StartJudge(t).Target()
	ours := transcript.TCP(startLatchkey(t, Options{Version: "7.0.15"}, Settings{}))
	ours.Later = true
	for _, path := range []string{"../proxy/testdata/scripting.transcript", "../proxy/testdata/functions.transcript"} {
		f, err := transcript.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		families[f.Family()] = true
		theirs, err := transcript.Play(t.Context(), judge, f, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range theirs.Differences {
			t.Errorf("redis-server does not answer as the transcript says: %s", d)
		}
		res, err := transcript.Play(t.Context(), ours, f, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range res.Differences {
			if !known.Lists(d) {
				t.Errorf("%s does not list %s", compatibilityPage, d)
			}
		}
	}
	for _, row := range known.Stale() {
		if families[row.Family] {
			t.Errorf("%s:%d: listed, but not different: %s / %s / %s", compatibilityPage, row.Line, row.Family, row.Section, row.Command)
		}
	}
}
