package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/latchkey-proxy/latchkey/cmd/latchkey/cli"
	"github.com/latchkey-proxy/latchkey/scripting"
)

const scriptUsage = `Usage:
  latchkey script check [OPTIONS] FILE [--keys KEY ...] [--args ARG ...]

Runs a Lua script as EVAL would, on an empty store in memory, and says what it
did: the commands it called with their lines, the keys it touched without having
them in KEYS, its globals, what it wrote, its reply. FILE may be - for standard
input.

Options:
  --seed FILE       commands to run before, one a line, as latchkey cli takes them
  --read-only       run it as EVAL_RO would
  --max-time MS     end the script after so long (default 5000)
  --keys KEY ...    KEYS, up to the next word that begins with --
  --args ARG ...    ARGV, up to the end

Exit codes: 0 nothing to mend, 1 the script does not parse, failed, or touched
undeclared keys, 2 usage.

  latchkey script check unlock.lua --keys lock:a --args token
`

// scriptCommand is `latchkey script`.
func scriptCommand(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	switch {
	case len(args) > 0 && (args[0] == "help" || asksForHelp(args)):
		io.WriteString(stdout, scriptUsage)
		return exitOK
	case len(args) == 0 || args[0] != "check":
		what := "script wants a sub-command: check"
		if len(args) > 0 {
			what = fmt.Sprintf("unknown sub-command %q of script", args[0])
		}
		fail(stderr, errors.New(what), "latchkey script help shows the usage")
		return exitUsage
	}
	c, err := parseScriptCheck(args[1:])
	if err != nil {
		fail(stderr, err, "latchkey script help shows the usage")
		return exitUsage
	}
	if err := c.read(stdin); err != nil {
		fail(stderr, err, "")
		return exitFailed
	}
	bad, err := c.run(stdout, stderr)
	if err != nil {
		fail(stderr, err, "")
		return exitFailed
	}
	if bad {
		return exitFailed
	}
	return exitOK
}

// asksForHelp looks for -h and --help among the options: behind --args stand arguments.
func asksForHelp(words []string) bool {
	if i := slices.Index(words, "--args"); i >= 0 {
		words = words[:i]
	}
	return slices.Contains(words, "--help") || slices.Contains(words, "-h")
}

// scriptCheck is one check of a script.
type scriptCheck struct {
	file, seedFile string
	src, seed      []byte
	keys, args     []string
	command        string
	maxTime        int64

	mu    sync.Mutex // of what the server's goroutine notes
	steps []scripting.Step
}

func parseScriptCheck(words []string) (*scriptCheck, error) {
	c := &scriptCheck{command: "EVAL", maxTime: 5000}
	for i := 0; i < len(words); i++ {
		w := words[i]
		value := func() (string, error) {
			if i++; i == len(words) {
				return "", fmt.Errorf("%s wants a value", w)
			}
			return words[i], nil
		}
		var err error
		switch {
		case w == "--args":
			c.args = words[i+1:]
			i = len(words)
		case w == "--keys":
			for i+1 < len(words) && !strings.HasPrefix(words[i+1], "--") {
				i++
				c.keys = append(c.keys, words[i])
			}
		case w == "--read-only":
			c.command = "EVAL_RO"
		case w == "--seed":
			c.seedFile, err = value()
		case w == "--max-time":
			var v string
			if v, err = value(); err == nil {
				if c.maxTime, err = strconv.ParseInt(v, 10, 32); err != nil || c.maxTime < 1 {
					err = fmt.Errorf("--max-time %s: want milliseconds, at least 1", v)
				}
			}
		case strings.HasPrefix(w, "-") && w != "-":
			err = fmt.Errorf("unknown option %s", w)
		case c.file != "":
			err = fmt.Errorf("one script at a time: %s and %s", c.file, w)
		default:
			c.file = w
		}
		if err != nil {
			return nil, err
		}
	}
	if c.file == "" {
		return nil, errors.New("which script?")
	}
	return c, nil
}

func (c *scriptCheck) read(stdin io.Reader) (err error) {
	if c.file == "-" {
		c.src, err = io.ReadAll(stdin)
	} else {
		c.src, err = os.ReadFile(c.file)
	}
	if err == nil && c.seedFile != "" {
		c.seed, err = os.ReadFile(c.seedFile)
	}
	return err
}

// Begin notes that what was noted before did not happen.
func (c *scriptCheck) Begin(string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = nil
}

// Step notes a call.
func (c *scriptCheck) Step(s scripting.Step) {
	const enough = 1 << 16
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.steps) < enough {
		c.steps = append(c.steps, s)
	}
}

// library is what the first line of a library of functions has, and no script may have.
var library = regexp.MustCompile(`^#![^\n]*\sname=`)

// run checks the script and writes what it found; bad says that there is something
// to mend.
func (c *scriptCheck) run(stdout, stderr io.Writer) (bad bool, err error) {
	var engine *scripting.Engine
	directives := []string{"--script-max-time", strconv.FormatInt(c.maxTime, 10), "--save", "", "--proto-max-bulk-len", "512mb"}
	addr, stop, err := serveInsideWith(directives, stderr, func(r *rooms) {
		engine = r.scripts.Engine()
		r.scripts.SetTracer(c)
	})
	if err != nil {
		return false, err
	}
	defer stop()
	name := scripting.SumSHA1(c.src).String()
	fmt.Fprintf(stdout, "script   %s, %d bytes, SHA1 %s\n", c.file, len(c.src), name)
	script, err := engine.Compile(c.src)
	if err != nil {
		fmt.Fprintf(stdout, "parses   no: %s\n", strings.TrimPrefix(err.Error(), "ERR "))
		if library.Match(c.src) {
			fmt.Fprintln(stdout, "result   this is a library of functions, for FUNCTION LOAD; what is checked here are scripts, for EVAL")
		}
		return true, nil
	}
	ran, why := script.Engine()
	if why != "" {
		ran += ", because the faster one does not cover: " + why
	}
	fmt.Fprintf(stdout, "parses   yes\nengine   %s\n", ran)

	host, port, _ := net.SplitHostPort(addr)
	ask := func(in io.Reader, args ...string) (string, int) {
		var out bytes.Buffer
		code := cli.Run(append([]string{"-h", host, "-p", port, "--no-raw"}, args...), in, &out, stderr)
		return strings.TrimRight(out.String(), "\n"), code
	}
	if c.seedFile != "" {
		if out, code := ask(bytes.NewReader(c.seed)); code != exitOK || strings.Contains("\n"+out, "\n(error)") {
			return false, fmt.Errorf("the commands of %s failed:\n%s", c.seedFile, out)
		}
	}
	c.Begin("")
	words := append([]string{c.command, string(c.src), strconv.Itoa(len(c.keys))}, c.keys...)
	reply, _ := ask(strings.NewReader(""), append(words, c.args...)...)
	failed := strings.HasPrefix(reply, "(error)") && strings.Contains(reply, " script: "+name)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls(stdout)
	undeclared := c.undeclared(stdout)
	c.globals(stdout, engine)
	c.written(stdout, failed)
	fmt.Fprintf(stdout, "reply    %s\n", strings.ReplaceAll(strings.TrimSpace(reply), "\n", "\n         "))
	switch {
	case failed:
		fmt.Fprintln(stdout, "result   the script failed, and nothing of it is left")
	case undeclared:
		fmt.Fprintln(stdout, "result   it ran, but pass the undeclared keys in KEYS: otherwise a run may have to begin anew, and nothing can tell beforehand what it touches")
	default:
		fmt.Fprintln(stdout, "result   ok")
	}
	return failed || undeclared, nil
}

// calls writes the commands that were called, those of one line together.
func (c *scriptCheck) calls(w io.Writer) {
	fmt.Fprintf(w, "calls    %d\n", len(c.steps))
	type row struct {
		text  string
		times int
	}
	var rows []row
	at := map[string]int{}
	for _, s := range c.steps {
		text := fmt.Sprintf("line %-4d %s", s.Line, showWords(s.Words))
		if s.Error != "" {
			text += "  -> " + s.Error
		}
		key := fmt.Sprint(s.Line, " ", strings.ToLower(s.Words[0]), s.Error != "")
		if i, ok := at[key]; ok {
			rows[i].times++
			continue
		}
		at[key] = len(rows)
		rows = append(rows, row{text, 1})
	}
	const shown = 50
	for i, r := range rows {
		if i == shown {
			fmt.Fprintf(w, "  and %d more\n", len(rows)-shown)
			return
		}
		if r.times > 1 {
			r.text += fmt.Sprintf("  (%d times, with these words the first time)", r.times)
		}
		fmt.Fprintf(w, "  %s\n", r.text)
	}
}

// showWords shows a command, shortened.
func showWords(words []string) string {
	const most, longest = 8, 40
	var b strings.Builder
	for i, word := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if i == most {
			fmt.Fprintf(&b, "... (%d more)", len(words)-most)
			break
		}
		if len(word) > longest {
			word = word[:longest] + "..."
		}
		if i > 0 && (word == "" || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r == '"' || r == 0xfffd || r == 0x7f })) {
			word = strconv.Quote(word)
		}
		b.WriteString(word)
	}
	return b.String()
}

// undeclared writes the keys that the script touched and had not in KEYS, with
// their lines.
func (c *scriptCheck) undeclared(w io.Writer) bool {
	lines := map[scripting.StepKey][]int{}
	var keys []scripting.StepKey
	for _, s := range c.steps {
		for _, k := range s.Keys {
			if k.Declared {
				continue
			}
			if lines[k] == nil {
				keys = append(keys, k)
			}
			if !slices.Contains(lines[k], s.Line) {
				lines[k] = append(lines[k], s.Line)
			}
		}
	}
	if len(keys) == 0 {
		fmt.Fprintln(w, "keys     all that it touched are in KEYS")
		return false
	}
	fmt.Fprintf(w, "keys     %d undeclared\n", len(keys))
	const shown = 20
	for i, k := range keys {
		if i == shown {
			fmt.Fprintf(w, "  and %d more\n", len(keys)-shown)
			break
		}
		where := make([]string, len(lines[k]))
		for i, n := range lines[k] {
			where[i] = strconv.Itoa(n)
		}
		name := showWords([]string{"", k.Name})[1:]
		if k.DB != 0 {
			name += fmt.Sprintf(" in database %d", k.DB)
		}
		fmt.Fprintf(w, "  %s, line %s\n", name, strings.Join(where, ", "))
	}
	return true
}

// globals writes the globals that not every script has: their use is an error.
func (c *scriptCheck) globals(w io.Writer, e *scripting.Engine) {
	all, err := e.Globals(c.src)
	if err != nil {
		return // it was compiled, so it parses
	}
	var known, odd []string
	for _, g := range all {
		switch {
		case g.Assigned:
			odd = append(odd, fmt.Sprintf("  %s is assigned in line %d: scripts may not make globals; write local %s", g.Name, g.Line, g.Name))
		case g.Known:
			known = append(known, g.Name)
		default:
			odd = append(odd, fmt.Sprintf("  %s, line %d, is unknown: an error when it is reached", g.Name, g.Line))
		}
	}
	if len(known) == 0 {
		known = []string{"none"}
	}
	fmt.Fprintf(w, "globals  %s\n", strings.Join(known, " "))
	for _, line := range odd {
		fmt.Fprintln(w, line)
	}
}

// written writes the keys that were changed.
func (c *scriptCheck) written(w io.Writer, undone bool) {
	var keys []string
	for _, s := range c.steps {
		if !s.Wrote {
			continue
		}
		for _, k := range s.Keys {
			if name := showWords([]string{"", k.Name})[1:]; !slices.Contains(keys, name) {
				keys = append(keys, name)
			}
		}
	}
	const shown = 20
	switch n := len(keys); {
	case n == 0:
		fmt.Fprintln(w, "writes   nothing")
	case n > shown:
		fmt.Fprintf(w, "writes   %s and %d more%s\n", strings.Join(keys[:shown], " "), n-shown, undoneWord(undone))
	default:
		fmt.Fprintf(w, "writes   %s%s\n", strings.Join(keys, " "), undoneWord(undone))
	}
}

func undoneWord(undone bool) string {
	if undone {
		return ", undone"
	}
	return ""
}
