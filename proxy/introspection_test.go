package proxy

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/proxy/resp"
	"github.com/latchkey-proxy/latchkey/store/command"
	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

func newDiscard() command.Reply { return resp.NewWriter() }

func TestCommandAgainstRedis(t *testing.T) {
	redis := startRedis(t)
	compareWithRedis(t, startServer(t), redis, []string{
		"COMMAND FOO", "COMMAND FOO bar", "COMMAND COUNT x", "COMMAND HELP x", "COMMAND HELP",
		"COMMAND LIST FILTERBY", "COMMAND LIST FILTERBY MODULE", "COMMAND LIST FILTERBY MODULE none", "COMMAND LIST FILTERBY ACLCAT none",
		"COMMAND LIST FILTERBY PATTERN getra*", "COMMAND LIST FILTERBY PATTERN GETRANGE", "COMMAND LIST FILTERBY PATTERN client|getn*",
		"COMMAND LIST FILTERBY FOO bar", "COMMAND LIST FOO", "COMMAND LIST FILTERBY MODULE none x", "COMMAND LIST x FILTERBY MODULE none",
		"COMMAND LIST FILTERBY MODULE x FILTERBY MODULE y",
		"COMMAND INFO nosuch", "COMMAND INFO nosuch|sub", "COMMAND INFO client|nosuch", "COMMAND INFO GET nosuch CLIENT|ID get|x",
		"COMMAND DOCS nosuch",
		"COMMAND GETKEYS", "COMMAND GETKEYS GET k", "COMMAND GETKEYS MSET a 1 b 2", "COMMAND GETKEYS MSET a 1 b", "COMMAND GETKEYS mget a b c",
		"COMMAND GETKEYS SET k v NX GET", "COMMAND GETKEYS BITOP AND d a b", "COMMAND GETKEYS LCS a b", "COMMAND GETKEYS WATCH a b",
		"COMMAND GETKEYS PUBLISH c m", "COMMAND GETKEYS SSUBSCRIBE c", "COMMAND GETKEYS PING x", "COMMAND GETKEYS NOSUCH k", "COMMAND GETKEYS GET a b",
		"COMMAND GETKEYS CLIENT GETNAME", "COMMAND GETKEYS CLIENT FOO", "COMMAND GETKEYS MULTI x",
		"COMMAND GETKEYSANDFLAGS", "COMMAND GETKEYSANDFLAGS GET k", "COMMAND GETKEYSANDFLAGS SET k v", "COMMAND GETKEYSANDFLAGS SET k v get",
		"COMMAND GETKEYSANDFLAGS MSET a 1 b 2", "COMMAND GETKEYSANDFLAGS BITOP AND d a b", "COMMAND GETKEYSANDFLAGS BITFIELD k GET u8 0",
		"COMMAND GETKEYSANDFLAGS BITFIELD k INCRBY u8 0 1", "COMMAND GETKEYSANDFLAGS PING x", "COMMAND GETKEYSANDFLAGS NOSUCH x",
	})
}

// TestCommandInfoAgainstRedis compares the entry of every command that both
// servers have, but for the order within sets, and for the sub-commands, which are compared one
// by one. Tips are those of Redis 7.2, which has more than 7.0.
func TestCommandInfoAgainstRedis(t *testing.T) {
	redis := startRedis(t)
	s := startServer(t)
	for _, hello := range []string{"HELLO 2", "HELLO 3"} {
		theirs, ours := dial(t, redis), s.dial(t)
		theirs.do(hello)
		ours.do(hello)
		compared := 0
		var compare func(spec *command.Spec)
		compare = func(spec *command.Spec) {
			name := spec.FullName()
			want, got := theirs.entry(name), ours.entry(name)
			if want.Kind == got.Kind && len(want.Elems) == 10 {
				compared++
				for i, what := range []string{"name", "arity", "flags", "first key", "last key", "step", "categories", "tips", "key specs", "sub-commands"} {
					if i == 7 || i == 9 {
						continue
					}
					w := show(sorted(want.Elems[i]))
					if g := show(sorted(got.Elems[i])); w != g && !changedInRedis72[name+" "+what] {
						t.Errorf("COMMAND INFO %s, %s, after %s\n latchkey %s\n redis    %s", name, what, hello, g, w)
					}
				}
				if want.Elems[9].Kind != got.Elems[9].Kind {
					t.Errorf("COMMAND INFO %s, sub-commands, after %s: kind %c, redis %c", name, hello, got.Elems[9].Kind, want.Elems[9].Kind)
				}
			}
			for _, sub := range spec.Sub {
				compare(sub)
			}
		}
		for _, spec := range s.engine.Table.All() {
			compare(spec)
		}
		if compared < 60 {
			t.Errorf("only %d commands are known to both", compared)
		}
	}
}

// changedInRedis72 are facts in which Redis 7.2, by its own descriptions of the
// commands, is not as 7.0.
var changedInRedis72 = map[string]bool{
	"cluster|shards flags":          true,
	"cluster|slots flags":           true,
	"command|getkeys arity":         true,
	"command|getkeysandflags arity": true,
	"wait flags":                    true,
}

// entry is COMMAND INFO of one command.
func (c *testClient) entry(name string) transcript.Reply {
	c.t.Helper()
	c.send("COMMAND", "INFO", name)
	r, err := transcript.ReadReply(c.r)
	if err != nil || len(r.Elems) != 1 {
		c.t.Fatalf("COMMAND INFO %s: %s, %v", name, show(r), err)
	}
	return r.Elems[0]
}

// sorted is a reply with the statuses of its sets in order.
func sorted(r transcript.Reply) transcript.Reply {
	r.Elems = slices.Clone(r.Elems)
	statuses := len(r.Elems) > 0
	for i := range r.Elems {
		r.Elems[i] = sorted(r.Elems[i])
		statuses = statuses && r.Elems[i].Kind == transcript.Status
	}
	if statuses {
		slices.SortFunc(r.Elems, func(a, b transcript.Reply) int { return strings.Compare(a.Text, b.Text) })
	}
	return r
}

func TestCommandCounts(t *testing.T) {
	s := startServer(t)
	c := s.dial(t)
	n := len(s.engine.Table.All())
	for _, line := range []string{"COMMAND", "COMMAND INFO"} {
		c.send(strings.Fields(line)...)
		if r, err := transcript.ReadReply(c.r); err != nil || len(r.Elems) != n {
			t.Errorf("%s: %d entries, %v; the table has %d", line, len(r.Elems), err, n)
		}
	}
	c.send("COMMAND", "DOCS")
	if r, err := transcript.ReadReply(c.r); err != nil || len(r.Elems) != 2*n {
		t.Errorf("COMMAND DOCS: %d elements, %v; the table has %d commands", len(r.Elems), err, n)
	}
	if got := c.do("COMMAND COUNT"); got != show(transcript.Reply{Kind: transcript.Int, Text: c.do("COMMAND COUNT")[1:]}) {
		t.Errorf("COMMAND COUNT: %s", got)
	}
}

// COMMAND LIST without a filter names the sub-commands too.
func TestCommandListAgainstRedis(t *testing.T) {
	redis := startRedis(t)
	list := func(c *testClient) map[string]bool {
		c.send("COMMAND", "LIST")
		r, err := transcript.ReadReply(c.r)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, e := range r.Elems {
			names[e.Text] = true
		}
		return names
	}
	s := startServer(t)
	theirs, ours := list(dial(t, redis)), list(s.dial(t))
	common := 0
	for name := range theirs {
		container, _, sub := strings.Cut(name, "|")
		spec := s.engine.Table.Lookup([]byte(container))
		if spec == nil || sub && spec.SubByName([]byte(name[len(container)+1:])) == nil {
			continue // not built
		}
		common++
		if !ours[name] {
			t.Errorf("COMMAND LIST has no %s, redis-server's has", name)
		}
	}
	if common < 150 {
		t.Errorf("only %d names are known to both", common)
	}
}

func TestCommandDocs(t *testing.T) {
	s := startServer(t)
	c := s.dial(t)
	c.want("HELLO 3", c.do("HELLO 3"))
	for _, tc := range []struct{ command, want string }{
		{"echo", `%["echo" %["summary" "Answers its argument." "since" "1.0.0" "group" "connection" "complexity" "O(1)" ` +
			`"arguments" *[%["name" "message" "type" "string" "display_text" "message"]]]]`},
		{"CLIENT|REPLY", `%["client|reply" %["summary" "Chooses whether commands are answered." "since" "3.2.0" "group" "connection" "complexity" "O(1)" ` +
			`"arguments" *[%["name" "on" "type" "oneof" "arguments" *[` +
			`%["name" "on" "type" "pure-token" "display_text" "on" "token" "ON"] ` +
			`%["name" "off" "type" "pure-token" "display_text" "off" "token" "OFF"] ` +
			`%["name" "skip" "type" "pure-token" "display_text" "skip" "token" "SKIP"]]]]]]`},
		{"watch", `%["watch" %["summary" "Makes the next EXEC depend on these keys staying as they are." "since" "2.2.0" "group" "transactions" "complexity" "O(1) for every key." ` +
			`"arguments" *[%["name" "key" "type" "key" "display_text" "key" "key_spec_index" :0 "flags" ~[+multiple]]]]]`},
	} {
		c.want("COMMAND DOCS "+tc.command, tc.want)
	}
	if got := c.do("COMMAND DOCS client"); !strings.Contains(got, `"subcommands" %["client|caching" %[`) {
		t.Errorf("COMMAND DOCS client does not document the sub-commands: %s", got)
	}
}

// TestTableIsDocumented: what COMMAND DOCS and docs/COMMANDS.md say of a command
// is there and can be read.
func TestTableIsDocumented(t *testing.T) {
	s := startServer(t)
	var check func(spec *command.Spec)
	check = func(spec *command.Spec) {
		if _, err := spec.Arguments(); err != nil {
			t.Error(err)
		}
		if !strings.HasSuffix(spec.Summary, ".") {
			t.Errorf("%s: the summary %q is no sentence", spec.FullName(), spec.Summary)
		}
		if spec.Since == "" || spec.Group == "" {
			t.Errorf("%s: since %q, group %q; both must be given", spec.FullName(), spec.Since, spec.Group)
		}
		for _, sub := range spec.Sub {
			check(sub)
		}
	}
	for _, spec := range s.engine.Table.All() {
		check(spec)
	}
}

// TestHelpAgainstRedis compares HELP of the containers that both servers have;
// lines on what Redis 7.0 does not know are left out.
func TestHelpAgainstRedis(t *testing.T) {
	redis := startRedis(t)
	s := startServer(t)
	theirs, ours := dial(t, redis), s.dial(t)
	for _, name := range []string{"client", "command", "pubsub"} {
		want, got := helpLines(strings.Replace(theirs.do(name+" HELP"), redis70Help, redis72Help, 1)), helpLines(ours.do(name+" HELP"))
		for _, line := range slices.Sorted(maps.Keys(want)) {
			if !got[line] {
				t.Errorf("%s HELP lacks the line %q", name, line)
			}
		}
	}
}

func helpLines(reply string) map[string]bool {
	lines := make(map[string]bool)
	for _, l := range strings.Split(strings.Trim(reply, "*[]"), " +") {
		lines[strings.TrimLeft(l, "+")] = true
	}
	return lines
}
