package main

import (
	"bufio"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// Every template makes commands, again and again, and draws from pools that are
// there: draw panics otherwise.
func TestTemplates(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for family, templates := range families {
		for _, template := range templates {
			for range 200 {
				words := disturb(rnd, expand(rnd, template))
				if len(words) == 0 || words[0] == "" || strings.ContainsAny(words[0], "${}| ") {
					t.Fatalf("%s: %q makes %q", family, template, words)
				}
			}
		}
	}
	for _, line := range setup {
		if words, err := transcript.SplitWords(line); err != nil || len(words) == 0 {
			t.Errorf("setup: %q: %v", line, err)
		}
	}
}

func TestExpand(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	seen := map[int]bool{}
	for range 1000 {
		words := expand(rnd, "SET $db {NX|EX $bit}")
		if !strings.EqualFold(words[0], "SET") || !slices.Contains(pools["db"], words[1]) {
			t.Fatalf("%q", words)
		}
		options := words[2:]
		seen[len(options)] = true
		for len(options) > 0 {
			switch {
			case strings.EqualFold(options[0], "NX"):
				options = options[1:]
			case len(options) > 1 && strings.EqualFold(options[0], "EX") && slices.Contains(pools["bit"], options[1]):
				options = options[2:]
			default:
				t.Fatalf("%q", words)
			}
		}
	}
	for _, n := range []int{0, 1, 2, 3, 6} {
		if !seen[n] {
			t.Errorf("no command had %d words of options", n)
		}
	}
}

func TestSameSeedSameCases(t *testing.T) {
	names := []string{"bits", "keys"}
	for n := range 50 {
		a, b := draft(7, n, names), draft(7, n, names)
		if a.proto != b.proto || !slices.EqualFunc(a.commands, b.commands, slices.Equal) {
			t.Fatalf("case %d: %q and %q", n, a.commands, b.commands)
		}
	}
}

func TestAlike(t *testing.T) {
	for _, test := range []struct {
		command, a, b string
		want          bool
	}{
		{"get k", "$1\r\nx\r\n", "$1\r\nx\r\n", true},
		{"get k", "$1\r\nx\r\n", "$1\r\ny\r\n", false},
		{"get k", "$1\r\n1\r\n", ":1\r\n", false},
		{"get k", "$-1\r\n", "*-1\r\n", false},
		{"get k", "-ERR a\r\n", "-ERR b\r\n", false},
		{"keys *", "*2\r\n$1\r\nx\r\n$1\r\ny\r\n", "*2\r\n$1\r\ny\r\n$1\r\nx\r\n", true},
		{"keys *", "*1\r\n$1\r\nx\r\n", "*2\r\n$1\r\ny\r\n$1\r\nx\r\n", false},
		{"mget x y", "*2\r\n$1\r\nx\r\n$1\r\ny\r\n", "*2\r\n$1\r\ny\r\n$1\r\nx\r\n", false},
		{"PTTL k", ":1000\r\n", ":990\r\n", true},
		{"PTTL k", ":-1\r\n", ":1\r\n", false},
		{"strlen k", ":1000\r\n", ":990\r\n", false},
		{"scan 0 count 1000", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nb\r\n", false},
		{"scan 0 count 1", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n", "*2\r\n$1\r\n7\r\n*0\r\n", true},
		{"exec", "*2\r\n:1\r\n*1\r\n:5\r\n", "*2\r\n:1\r\n*1\r\n:5\r\n", true},
		{"exec", "*2\r\n:1\r\n+OK\r\n", "*2\r\n+OK\r\n:1\r\n", false},
		{"dump k", "$1\r\nx\r\n", "$1\r\ny\r\n", true},
		{"dump k", "$1\r\nx\r\n", "$-1\r\n", false},
		{"dump", "-ERR a\r\n", "-ERR b\r\n", false},
	} {
		words := strings.Fields(test.command)
		if got := alike(leewayOf(words), reply(t, test.a), reply(t, test.b)); got != test.want {
			t.Errorf("%s: %q and %q: alike is %v", test.command, test.a, test.b, got)
		}
	}
}

func reply(t *testing.T, wire string) transcript.Reply {
	t.Helper()
	r, err := transcript.ReadReply(bufio.NewReader(strings.NewReader(wire)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
