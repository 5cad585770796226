package command_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/latchkey-proxy/latchkey/store/command"
	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// later are the commands of the data families that redis-server 7.0 lacks.
var later = []string{"delifeq", "delex", "digest", "msetex", "cas", "cad", "waitaof", "latchkey.overwrite"}

// changed are those that are as in Redis 7.2, whose COMMAND INFO says otherwise:
// WAIT may stand in a script.
var changed = []string{"wait"}

// Specs must say what COMMAND INFO of redis-server 7.0 says.
func TestSpecsAsRedis(t *testing.T) {
	judge := startRedis(t)()
	for _, family := range command.Families() {
		if _, err := command.NewTable(family); err != nil { // gives sub-commands their full names
			t.Fatal(err)
		}
		for _, s := range family {
			reply := judge.do(t, words("COMMAND INFO "+s.Name))
			if len(reply.Elems) != 1 || len(reply.Elems[0].Elems) < 9 {
				if !slices.Contains(later, s.Name) {
					t.Errorf("%s: redis-server does not know it, and it is not listed as later", s.Name)
				}
				continue
			}
			in := reply.Elems[0].Elems
			if got := fmt.Sprint(s.Arity); got != in[1].Text {
				t.Errorf("%s: arity %s, redis-server has %s", s.Name, got, in[1].Text)
			}
			if !slices.Contains(changed, s.Name) {
				compareSets(t, s.Name+": flags", s.Flags.Names(), in[2])
			}
			var cats []string
			for _, c := range s.AllCategories().Names() {
				cats = append(cats, "@"+c)
			}
			compareSets(t, s.Name+": categories", cats, in[6])
			compareKeySpecs(t, s, in[8].Elems)
			for what, text := range map[string]string{"summary": s.Summary, "since": s.Since, "group": s.Group, "complexity": s.Complexity} {
				if text == "" {
					t.Errorf("%s: no %s", s.Name, what)
				}
			}
		}
	}
}

func compareSets(t *testing.T, what string, got []string, want transcript.Reply) {
	t.Helper()
	var texts []string
	for _, e := range want.Elems {
		texts = append(texts, e.Text)
	}
	slices.Sort(got)
	slices.Sort(texts)
	if !slices.Equal(got, texts) {
		t.Errorf("%s %q, redis-server has %q", what, got, texts)
	}
}

func compareKeySpecs(t *testing.T, s *command.Spec, want []transcript.Reply) {
	t.Helper()
	if len(s.Keys) != len(want) {
		t.Errorf("%s: %d key specs, redis-server has %d", s.Name, len(s.Keys), len(want))
		return
	}
	for i, k := range s.Keys {
		in := pairs(want[i])
		what := fmt.Sprintf("%s: key spec %d:", s.Name, i)
		compareSets(t, what+" flags", k.Flags.Names(), in["flags"])
		if in["notes"].Text != k.Notes {
			t.Errorf("%s notes %q, redis-server has %q", what, k.Notes, in["notes"].Text)
		}
		begin, find := pairs(in["begin_search"]), pairs(in["find_keys"])
		if begin["type"].Text != "index" || find["type"].Text != "range" {
			continue
		}
		spec := pairs(find["spec"])
		got := fmt.Sprint(k.Begin, k.Last, max(k.Step, 1), k.Limit)
		from := pairs(begin["spec"])["index"].Text + " " + spec["lastkey"].Text + " " + spec["keystep"].Text + " " + spec["limit"].Text
		if got != from {
			t.Errorf("%s begin, last, step and limit are %s, redis-server has %s", what, got, from)
		}
	}
}

// pairs reads a flat array of names and values.
func pairs(r transcript.Reply) map[string]transcript.Reply {
	m := make(map[string]transcript.Reply)
	for i := 0; i+1 < len(r.Elems); i += 2 {
		m[r.Elems[i].Text] = r.Elems[i+1]
	}
	return m
}
