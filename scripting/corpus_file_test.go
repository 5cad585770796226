package scripting

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// A corpus file holds scripts beside what redis-server 7.0.15 answers to them,
// and what its keyspace holds then. testdata/corpus/README.md describes the form.

// snippet is one script of the corpus.
type snippet struct {
	file    string
	line    int
	notes   []string   // the comments and empty lines above
	setup   [][]string // commands that stand before it
	setups  []string   // as they are written
	options []string   // the lines of options, as they are written
	keys    []string
	args    []string
	proto   int
	command string // EVAL or EVAL_RO
	quoted  bool   // the source is written as one string in quotes
	source  string
	want    outcome
	differs []difference
}

// outcome is what can be seen of a script.
type outcome struct {
	reply string
	keys  []string // one line for each key, in order
}

func (o outcome) equal(p outcome) bool { return o.reply == p.reply && slices.Equal(o.keys, p.keys) }

func (o outcome) String() string {
	return strings.Join(append([]string{o.reply}, o.keys...), "\n      ")
}

// difference is one that is accepted: which engines, why, and what they answer.
type difference struct {
	engine string // vm, closures or both
	reason string
	got    outcome
}

// differsIn finds the accepted difference of an engine.
func (s *snippet) differsIn(engine string) *difference {
	for i, d := range s.differs {
		if d.engine == engine || d.engine == "both" {
			return &s.differs[i]
		}
	}
	return nil
}

// corpusFile is one file: its snippets, and what stands after the last.
type corpusFile struct {
	path     string
	snippets []*snippet
	tail     []string
}

func readCorpus(t testing.TB) (files []*corpusFile) {
	t.Helper()
	paths, err := filepath.Glob("testdata/corpus/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no corpus in testdata/corpus: %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parseCorpus(path, string(text))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

func newSnippet() *snippet {
	return &snippet{keys: []string{"k1", "k2"}, args: []string{"a1", "a2"}, proto: 2, command: "EVAL"}
}

// parseCorpus reads a corpus file.
func parseCorpus(path, text string) (*corpusFile, error) {
	f := &corpusFile{path: path}
	var s *snippet       // the one whose results follow
	next := newSnippet() // the one whose options are read
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		fail := func(what string) error { return fmt.Errorf("%s:%d: %s: %q", path, i+1, what, line) }
		mark, rest, _ := strings.Cut(line, " ")
		switch mark {
		case "", "#":
			next.notes = append(next.notes, line)
		case "$":
			words, err := transcript.SplitWords(rest)
			if err != nil || len(words) == 0 {
				return nil, fail("not a command")
			}
			next.setup, next.setups = append(next.setup, words), append(next.setups, rest)
		case "@":
			if err := next.option(rest); err != nil {
				return nil, fail(err.Error())
			}
			next.options = append(next.options, rest)
		case ">", ">q":
			s, next = next, newSnippet()
			s.file, s.line, s.source = filepath.Base(path), i+1, rest
			if s.quoted = mark == ">q"; s.quoted {
				words, err := transcript.SplitWords(rest)
				if err != nil || len(words) != 1 {
					return nil, fail("not one string in quotes")
				}
				s.source = words[0]
			}
			f.snippets = append(f.snippets, s)
		case ".", "=", "~", "!vm", "!closures", "!both", "!=", "!~":
			if s == nil {
				return nil, fail("no script stands above")
			}
			d := len(s.differs) - 1
			switch {
			case mark == ".":
				s.source += "\n" + rest
			case mark == "=":
				s.want.reply = rest
			case mark == "~":
				s.want.keys = append(s.want.keys, rest)
			case mark != "!=" && mark != "!~":
				s.differs = append(s.differs, difference{engine: mark[1:], reason: rest})
			case d < 0:
				return nil, fail("no line of !vm, !closures or !both stands above")
			case mark == "!=":
				s.differs[d].got.reply = rest
			default:
				s.differs[d].got.keys = append(s.differs[d].got.keys, rest)
			}
		default:
			return nil, fail("unknown mark")
		}
	}
	if f.tail = next.notes; len(next.setup)+len(next.options) != 0 {
		return nil, fmt.Errorf("%s: commands or options at the end, and no script", path)
	}
	return f, nil
}

// option reads one line of options.
func (s *snippet) option(text string) error {
	words, err := transcript.SplitWords(text)
	if err != nil || len(words) == 0 {
		return fmt.Errorf("not options")
	}
	switch words[0] {
	case "keys":
		s.keys = words[1:]
	case "args":
		s.args = words[1:]
	case "resp3":
		s.proto = 3
	case "readonly":
		s.command = "EVAL_RO"
	default:
		return fmt.Errorf("unknown option; there are keys, args, resp3 and readonly")
	}
	return nil
}

// print writes the file as parseCorpus reads it.
func (f *corpusFile) print() []byte {
	var b bytes.Buffer
	line := func(mark, text string) {
		if text != "" {
			text = " " + text
		}
		b.WriteString(mark + text + "\n")
	}
	results := func(reply, key string, o outcome) {
		line(reply, o.reply)
		for _, k := range o.keys {
			line(key, k)
		}
	}
	for _, s := range f.snippets {
		for _, n := range s.notes {
			line(n, "")
		}
		for _, o := range s.options {
			line("@", o)
		}
		for _, c := range s.setups {
			line("$", c)
		}
		if s.quoted {
			line(">q", transcript.Quote(s.source))
		} else {
			line(">", strings.ReplaceAll(s.source, "\n", "\n. "))
		}
		results("=", "~", s.want)
		for _, d := range s.differs {
			line("!"+d.engine, d.reason)
			results("!=", "!~", d.got)
		}
	}
	for _, n := range f.tail {
		line(n, "")
	}
	return b.Bytes()
}

// lineOf writes a reply on one line, long strings shortened.
func lineOf(r transcript.Reply) string {
	list := func(open, shut string, pairs, sorted bool) string {
		var parts []string
		for i := 0; i < len(r.Elems); i++ {
			text := lineOf(r.Elems[i])
			if pairs {
				i++
				text += ": " + lineOf(r.Elems[i])
			}
			parts = append(parts, text)
		}
		if sorted {
			slices.Sort(parts)
		}
		return open + strings.Join(parts, " ") + shut
	}
	switch r.Kind {
	case transcript.Status:
		return "+" + plainText(r.Text)
	case transcript.Error:
		return "-" + plainText(r.Text)
	case transcript.Int:
		return r.Text
	case transcript.Bulk:
		return shortQuote(r.Text)
	case transcript.NilBulk:
		return "nil"
	case transcript.NilArray:
		return "nil-array"
	case transcript.Null:
		return "null"
	case transcript.Bool:
		if r.Text == "t" {
			return "true"
		}
		return "false"
	case transcript.Double:
		return "," + r.Text
	case transcript.Big:
		return "(" + r.Text
	case transcript.Verbatim:
		return "=" + shortQuote(r.Text)
	case transcript.Map: // in the order of the keys: Lua has none
		return list("{", "}", true, true)
	case transcript.Set:
		return list("~[", "]", false, true)
	}
	return list("[", "]", false, false)
}

// plainText is a line as it is, or quoted when it has bytes that are not ASCII.
func plainText(s string) string {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return transcript.Quote(s)
		}
	}
	return s
}

// shortQuote quotes a string; of a long one the beginning, the length and a name.
func shortQuote(s string) string {
	const most = 1500
	if len(s) <= most {
		return transcript.Quote(s)
	}
	return fmt.Sprintf("%s...(%d bytes, SHA1 %s)", transcript.Quote(s[:60]), len(s), SumSHA1([]byte(s)))
}
