package transcript

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/resp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func transcripts(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, glob := range []string{"../testdata/*.transcript", "../../../proxy/testdata/*.transcript"} {
		found, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	if len(paths) == 0 {
		t.Fatal("no transcripts in store/command/testdata and proxy/testdata")
	}
	return paths
}

// TestJudge holds every transcript against redis-server, so that none of them
// says what redis-server does not.
func TestJudge(t *testing.T) {
	target := StartJudge(t).Target()
	v, err := askVersion(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(v, "7.0.") {
		if os.Getenv("LATCHKEY_CI") == "1" {
			t.Fatalf("the transcripts are redis-server 7.0's, this one is %s", v)
		}
		t.Skipf("the transcripts are redis-server 7.0's (Debian 12's package redis-server), this one is %s", v)
	}
	commands := 0
	for _, path := range transcripts(t) {
		f, err := Open(path)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, proto := range []int{2, 3} {
			t.Run(fmt.Sprintf("%s/RESP%d", f.Family(), proto), func(t *testing.T) {
				res, err := Play(t.Context(), target, f, proto)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range res.Differences {
					t.Error(d)
				}
				if proto == 2 {
					commands += res.Commands
				}
			})
		}
	}
	if commands < 1500 {
		t.Errorf("%d commands were replayed in RESP2, want at least 1500: did a family lose its transcript?", commands)
	}
}

func askVersion(ctx context.Context, target Target) (string, error) {
	c, err := dialConn(ctx, target, 2)
	if err != nil {
		return "", err
	}
	defer c.nc.Close()
	r, err := c.do("INFO", "server")
	if err != nil {
		return "", err
	}
	_, after, _ := strings.Cut(r.Text, "redis_version:")
	version, _, _ := strings.Cut(after, "\r\n")
	return version, nil
}

// TestFilesRoundTrip: writing a transcript that was read changes nothing, so
// Record touches replies alone.
func TestFilesRoundTrip(t *testing.T) {
	for _, path := range transcripts(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Parse(path, text)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := f.Bytes(); !bytes.Equal(got, text) {
			t.Errorf("%s: read and written it differs: %d bytes, want %d", path, len(got), len(text))
		}
	}
}

// TestEveryStepHasReplies: a step that was never recorded would fail on each
// server, but a section that the judge skips is replayed by none here.
func TestEveryStepHasReplies(t *testing.T) {
	for _, path := range transcripts(t) {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, sec := range f.Sections {
			for _, it := range sec.items {
				if it.step != nil && it.step.replies() && it.step.want2 == nil {
					t.Errorf("%s:%d: no reply stands below %s", path, it.step.line, it.step.source[0])
				}
			}
		}
	}
}

// unrecorded is a transcript without replies but for its matchers.
const unrecorded = `# A comment stays.

== one

SET k v
GET none
CONFIG GET maxmemory
KEYS *
  ? unordered
| INCR n
| INCR n
PEXPIRE k 10000
PTTL k
  ? int 9900..10000
@sub SUBSCRIBE news
PUBLISH news hi
@sub .read
@sub .close
CLIENT ID
  ? int -> id
@2 CLIENT KILL ID ${id}
.read
`

func TestRecord(t *testing.T) {
	target := StartJudge(t).Target()
	f, err := Parse("one.transcript", []byte(unrecorded))
	if err != nil {
		t.Fatal(err)
	}
	if err := Record(t.Context(), target, f); err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		"SET k v\n", "SET k v\n  +OK\n",
		"GET none\n", "GET none\n  (nil)\n",
		"CONFIG GET maxmemory\n", "CONFIG GET maxmemory\n  *2\n    \"maxmemory\"\n    \"0\"\n  resp3:\n  %1\n    \"maxmemory\"\n    \"0\"\n",
		"  ? unordered\n", "  ? unordered\n  *1\n    \"k\"\n",
		"| INCR n\n| INCR n\n", "| INCR n\n| INCR n\n  :1\n  :2\n",
		"PEXPIRE k 10000\n", "PEXPIRE k 10000\n  :1\n",
		"SUBSCRIBE news\n", "SUBSCRIBE news\n  *3\n    \"subscribe\"\n    \"news\"\n    :1\n",
		"PUBLISH news hi\n", "PUBLISH news hi\n  :1\n",
		"@sub .read\n", "@sub .read\n  *3\n    \"message\"\n    \"news\"\n    \"hi\"\n",
		"KILL ID ${id}\n.read\n", "KILL ID ${id}\n  :1\n.read\n  (closed)\n",
	).Replace(unrecorded)
	if got := string(f.Bytes()); got != want {
		t.Errorf("recorded:\n%s\nwant:\n%s", got, want)
	}
	again, err := Parse("one.transcript", f.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, proto := range []int{2, 3} {
		res, err := Play(t.Context(), target, again, proto)
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Differences) > 0 || res.Equal != res.Commands || res.Commands != 12 {
			t.Errorf("RESP%d: replayed after recording: %d commands, %d equal, want 12 and no differences: %v", proto, res.Commands, res.Equal, res.Differences)
		}
	}
}

// TestPlayFindsDifferences: what differs is found, whatever its kind, and left
// over messages are too.
func TestPlayFindsDifferences(t *testing.T) {
	target := StartJudge(t).Target()
	for name, text := range map[string]string{
		"other text":        "SET k v\n  +KO\n",
		"other kind":        "SET k v\n  \"OK\"\n",
		"other absence":     "GET none\n  (nil array)\n  resp3:\n  (nil)\n",
		"too few":           "| SET k v\n| GET k\n  +OK\n",
		"too many":          "GET none\n  (nil)\n  (nil)\n",
		"out of range":      "DBSIZE\n  ? int 1..2\n",
		"no match":          "ECHO abc\n  ? bulk ab\n",
		"element":           "MGET a b\n  *2\n    (nil)\n    \"b\"\n",
		"missing element":   "KEYS *\n  ? unordered\n  *1\n    \"k\"\n",
		"left over message": "@sub SUBSCRIBE c\n  ? any\nPUBLISH c m\n  :1\n",
		"not closed":        "PING\n  (closed)\n",
		"never kept":        "CLIENT KILL ID ${id}\n  :1\n",
	} {
		f, err := Parse(name, []byte("== section\n"+text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, proto := range []int{2, 3} {
			res, err := Play(t.Context(), target, f, proto)
			if err != nil {
				t.Errorf("%s: RESP%d: %v", name, proto, err)
			} else if len(res.Differences) != 1 {
				t.Errorf("%s: RESP%d: %d differences, want 1 in:\n%s", name, proto, len(res.Differences), text)
			}
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"GET k\n":                           "f:1: a command above the first section",
		"== a\n  +OK\n":                     "f:2: a reply that no command stands above",
		"== a\nGET k\n  *2\n    :1\n":       "f:4: reply of line 2: the aggregate above holds fewer values",
		"== a\nGET k\n  OK\n":               "not a reply: \"OK\"",
		"== a\nGET k\n  ? number\n":         "unknown matcher \"number\"",
		"== a\nGET \"k\n":                   "f:2: unbalanced quotes",
		"== a\n.wait 2s\n":                  "unknown line of the player: .wait",
		"== a\n# only: redis 7.2\nPING\n":   "no # source: says",
		"== a\nPING\n  +PONG\n# needs: x\n": "must stand above the section's first command",
		"== a\n== a\n":                      "section \"a\" begins on line 1 already",
		"== a\nGET k\n  ? int 3\n":          "want a range such as 1..9",
		"== a\n# proto: 4\nPING\n  +PONG\n": "want # proto: 2 or # proto: 3",
		"== a\nMGET a\n  *1\n  \"k\"\n":     "want a value 2 spaces deep",
		"== a\nMGET a\n  *99999999999999\n": "want the number of elements",
	} {
		_, err := Parse("f", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}

func TestSplitWords(t *testing.T) {
	for line, want := range map[string][]string{
		`SET k v`:                 {"SET", "k", "v"},
		`  SET   k  "" `:          {"SET", "k", ""},
		`SET k "a b\n\x00\xff\""`: {"SET", "k", "a b\n\x00\xff\""},
		`SET k 'a "b" \n \''`:     {"SET", "k", `a "b" \n '`},
		`SET k a"b"`:              {"SET", "k", "ab"},
		`X "\a\b\t\r\\\q\xg"`:     {"X", "\a\b\t\r\\qxg"},
	} {
		got, err := SplitWords(line)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("SplitWords(%s) = %q, %v; want %q", line, got, err, want)
		}
	}
	for _, line := range []string{`"a`, `'a`, `"a"b`, `"a\`} {
		if got, err := SplitWords(line); err == nil {
			t.Errorf("SplitWords(%s) = %q, want an error", line, got)
		}
	}
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	if got, err := unquote(Quote(string(every))); err != nil || got != string(every) {
		t.Errorf("unquote(Quote(every byte)) = %q, %v", got, err)
	}
}

// TestReadReplyAgreesWithTidwall reads RESP2 with an independent reader too.
func TestReadReplyAgreesWithTidwall(t *testing.T) {
	const wire = "+OK\r\n-ERR no\r\n:-42\r\n$5\r\na\r\nbc\r\n$-1\r\n*3\r\n:1\r\n$0\r\n\r\n*1\r\n$1\r\nx\r\n*0\r\n"
	ours := bufio.NewReader(strings.NewReader(wire))
	theirs := resp.NewReader(strings.NewReader(wire))
	for i := range 7 {
		got, err := ReadReply(ours)
		if err != nil {
			t.Fatalf("reply %d: %v", i, err)
		}
		want, _, err := theirs.ReadValue()
		if err != nil {
			t.Fatalf("reply %d: tidwall/resp: %v", i, err)
		}
		if !sameAsTidwall(got, want) {
			t.Errorf("reply %d: %q, tidwall/resp reads %v %q", i, got.Lines(), want.Type(), want)
		}
	}
}

func sameAsTidwall(r Reply, v resp.Value) bool {
	switch v.Type() {
	case resp.SimpleString:
		return r.Kind == Status && r.Text == v.String()
	case resp.Error:
		return r.Kind == Error && r.Text == v.String()
	case resp.Integer:
		return r.Kind == Int && r.Text == fmt.Sprint(v.Integer())
	case resp.BulkString:
		if v.IsNull() {
			return r.Kind == NilBulk
		}
		return r.Kind == Bulk && r.Text == v.String()
	case resp.Array:
		return r.Kind == Array && slices.EqualFunc(r.Elems, v.Array(), sameAsTidwall)
	}
	return false
}

func TestReadReply(t *testing.T) {
	for wire, want := range map[string]string{
		"%1\r\n+k\r\n*-1\r\n":       "%1|  +k|  (nil array)",
		">2\r\n$1\r\na\r\n_\r\n":    ">2|  \"a\"|  (null)",
		"~1\r\n#t\r\n":              "~1|  #t",
		",inf\r\n":                  ",inf",
		"(12345678901234567890\r\n": "(12345678901234567890",
		"=5\r\ntxt:a\r\n":           "=txt:\"a\"",
		"-ERR x \r\n":               "-\"ERR x \"",
	} {
		r, err := ReadReply(bufio.NewReader(strings.NewReader(wire)))
		if got := strings.Join(r.Lines(), "|"); err != nil || got != want {
			t.Errorf("%q reads as %q, %v; want %q", wire, got, err, want)
			continue
		}
		frames, err := parseFrames(r.Lines())
		if err != nil || len(frames) != 1 || !frames[0].pattern.matches(r, nil) {
			t.Errorf("%q: its text %q does not parse back to it: %v", wire, r.Lines(), err)
		}
	}
	for _, wire := range []string{
		"", "+OK", "+OK\n", "\r\n", "?\r\n", ":x\r\n", "$99999999999\r\n", "$3\r\nab\r\n", "$1\r\nabc\r\n",
		"*2\r\n:1\r\n", "%-1\r\n", "*-2\r\n", "*1048577\r\n", strings.Repeat("*1\r\n", 40) + ":1\r\n",
	} {
		if r, err := ReadReply(bufio.NewReader(strings.NewReader(wire))); err == nil {
			t.Errorf("%.40q reads as %q, want an error", wire, r.Lines())
		}
	}
}

func TestKnownDifferences(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	page := "# Page\n\n| difference | reason |\n|---|---|\n" +
		"| `strings / SET / SET k v` | because |\n" +
		"| `strings / pipe / \\| GET *` | a pipeline |\n" +
		"| `keys / none / GET k` | not met |\n"
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	k, err := OpenKnown(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		section, command string
		want             bool
	}{
		{"SET", "SET k v", true},
		{"SET", "SET k v NX", false},
		{"other", "SET k v", false},
		{"pipe", "| GET a", true},
	} {
		d := Difference{Path: "x/strings.transcript", Section: c.section, Command: c.command}
		if got := k.Lists(d); got != c.want {
			t.Errorf("Lists(%s / %s) = %v, want %v", c.section, c.command, got, c.want)
		}
	}
	stale := k.Stale()
	if len(stale) != 1 || stale[0].Line != 7 || stale[0].Reason != "not met" {
		t.Errorf("Stale() = %+v, want the row of line 7 alone", stale)
	}
	if err := os.WriteFile(path, []byte("| `strings: SET` | because |\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKnown(path); err == nil || !strings.Contains(err.Error(), ":1: want") {
		t.Errorf("a row without sections: error %v, want one that names line 1 and the form", err)
	}
}

// TestCompatibilityPage: each row of the page names a command that stands in a
// transcript, so a typing error is not taken for a difference that went away.
func TestCompatibilityPage(t *testing.T) {
	known, err := OpenKnown("../../../docs/COMPATIBILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range transcripts(t) {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, sec := range f.Sections {
			for _, it := range sec.items {
				if it.step != nil {
					known.Lists(Difference{Path: path, Section: sec.Name, Command: it.step.source[len(it.step.source)-1]})
				}
			}
		}
	}
	for _, row := range known.Stale() {
		t.Errorf("%s:%d: no transcript has %s / %s / %s", known.Path, row.Line, row.Family, row.Section, row.Command)
	}
}

func TestExpand(t *testing.T) {
	now := time.Unix(1000, 500e6)
	vars := map[string]string{"id": "7", "raw": "a b\n"}
	for line, want := range map[string]string{
		"KILL ID ${id}":                    "KILL ID \"7\"",
		`R k 0 "${raw}"`:                   `R k 0 "a b\n"`,
		"R ${raw} ${id}${id}":              `R "a b\n" 77`,
		"E k ${now+100} ${nowms-1} ${now}": `E k "1100" "1000499" "1000"`,
		"S ${ab*3}":                        `S "ababab"`,
	} {
		if got, err := expandLine(line, vars, now); err != nil || got != want {
			t.Errorf("expandLine(%s) = %s, %v; want %s", line, got, err, want)
		}
	}
	if got, err := expandBytes("x${raw}y${z*2}", vars, now); err != nil || got != "xa b\nyzz" {
		t.Errorf("expandBytes = %q, %v", got, err)
	}
	for _, line := range []string{"${nosuch}", "${id", "${a*x}", "${a*99999999}", "${ab*9223372036854775807}", "${now+x}"} {
		if got, err := expandLine(line, vars, now); err == nil {
			t.Errorf("expandLine(%s) = %q, want an error", line, got)
		}
	}
}
