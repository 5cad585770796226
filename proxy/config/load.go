package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/latchkey-proxy/latchkey/proxy/quoting"
)

// What the sources may have at most. A configuration is small; these keep a wrong path from filling the memory.
const (
	maxFileBytes    = 1 << 20
	maxLineBytes    = 64 << 10
	maxIncludeDepth = 8
	maxFiles        = 256
)

// Sources are what the settings are read from, in this order: a later one wins.
type Sources struct {
	File    string    // path of the configuration file; empty for none
	Stdin   io.Reader // nil if standard input is not to be read
	Options string    // lines made of the command line's flags, as ParseArgs does

	// CheckUpstream judges the URLs of upstream, which this package does not read; nil takes any. Its errors must
	// not repeat the URL, which may hold a password.
	CheckUpstream func(url string) error

	open func(path string) (io.ReadCloser, error)         // os.Open, but in tests
	glob func(pattern string) (paths []string, err error) // filepath.Glob, but in tests
}

// ParseArgs takes the command line apart as redis-server does: an optional file first, flags `--directive value ...`
// whose values reach to the next flag, and `-` as the first or last argument for standard input, which Sources.Stdin
// will be then. The argument after a flag is its value even if it begins with --, but for --save, which may stand
// alone. args is without the program's and the sub-command's names.
func ParseArgs(args []string, stdin io.Reader) Sources {
	var s Sources
	i := 0
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		s.File = args[0]
		i = 1
	}
	var options strings.Builder
	complete := true // the last flag has a value
	for ; i < len(args); i++ {
		arg := args[i]
		last := i == len(args)-1
		switch {
		case arg == "-" && (i == 0 || last):
			s.Stdin = stdin
		case complete && strings.HasPrefix(arg, "--"):
			if options.Len() > 0 {
				options.WriteByte('\n')
			}
			options.WriteString(arg[2:])
			options.WriteByte(' ')
			// "--port 7000" in one argument has its value already.
			words, err := quoting.Split(arg)
			complete = err != nil || len(words) != 1
			if !complete && strings.EqualFold(arg, "--save") && (last || strings.HasPrefix(args[i+1], "--")) {
				options.WriteString(`""`)
				complete = true
			}
		default:
			options.WriteString(quoting.Quote(arg))
			options.WriteByte(' ')
			complete = true
		}
	}
	s.Options = options.String()
	return s
}

// Load returns the settings of the sources. The error is an *Error.
func Load(s Sources) (*Config, error) {
	c := New()
	if s.open == nil {
		s.open = openFile
	}
	if s.glob == nil {
		s.glob = filepath.Glob
	}
	l := &loader{c: c, s: s}
	if s.File != "" {
		path, err := filepath.Abs(s.File)
		if err != nil {
			return nil, &Error{Origin: Origin{File: s.File}, Reason: err.Error(), Cause: err}
		}
		c.path = path
		if err := l.file(s.File, Origin{File: s.File}); err != nil {
			return nil, err
		}
	}
	if s.Stdin != nil {
		text, err := readText(s.Stdin)
		if err != nil {
			return nil, &Error{Origin: Origin{File: StandardInput}, Reason: err.Error(), Cause: err}
		}
		if err := l.text(text, StandardInput); err != nil {
			return nil, err
		}
	}
	if err := l.text(s.Options, CommandLine); err != nil {
		return nil, err
	}
	return c, nil
}

// openFile opens a file; directories and devices are refused, pipes are not: shells pass files as /dev/fd/63.
func openFile(path string) (io.ReadCloser, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() || info.Mode()&(fs.ModeDevice|fs.ModeSocket) != 0 {
		return nil, errors.New("not a regular file")
	}
	return os.Open(path)
}

func readText(r io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxFileBytes {
		return "", errors.New("longer than 1 MiB, which no configuration is")
	}
	return string(b), nil
}

type loader struct {
	c     *Config
	s     Sources
	depth int
	files int
}

// file reads a file; at is where it is named.
func (l *loader) file(path string, at Origin) error {
	l.files++
	if l.files > maxFiles {
		return &Error{Origin: at, Directive: "include", Value: path, Reason: "more than 256 files"}
	}
	if l.depth > maxIncludeDepth {
		return &Error{Origin: at, Directive: "include", Value: path, Reason: "more than 8 files deep", Suggestion: "does a file include itself?"}
	}
	fail := func(err error) error {
		e := &Error{Origin: at, Reason: "cannot read the configuration file: " + systemText(err), Cause: err}
		if at.Line > 0 {
			e.Directive, e.Value, e.Reason = "include", path, "cannot read the file: "+systemText(err)
		} else if errors.Is(err, fs.ErrNotExist) {
			e.Suggestion = "directives on the command line begin with --, such as --port 6380; `latchkey help` lists the sub-commands"
		}
		return e
	}
	f, err := l.s.open(path)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	text, err := readText(f)
	if err != nil {
		return fail(err)
	}
	return l.text(text, path)
}

func (l *loader) text(text, file string) error {
	for n := 1; text != ""; n++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		at := Origin{File: file, Line: n}
		if file == CommandLine {
			at.Line = 0
		}
		if len(line) > maxLineBytes {
			return &Error{Origin: at, Reason: "the line is longer than 64 KiB"}
		}
		line = strings.Trim(line, " \t\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if strings.IndexByte(line, 0) >= 0 {
			return &Error{Origin: at, Reason: "the line has a NUL byte", Suggestion: "is this a text file?"}
		}
		words, err := quoting.Split(line)
		if err != nil {
			return &Error{Origin: at, Reason: "unbalanced quotes", Suggestion: "a closing quote must be followed by a blank or the end of the line"}
		}
		if len(words) == 0 {
			continue
		}
		if err := l.directive(strings.ToLower(words[0]), words[1:], at); err != nil {
			return err
		}
	}
	return nil
}

// directive sets one directive from a source.
func (l *loader) directive(name string, args []string, at Origin) error {
	c := l.c
	e, _ := c.known.Load().lookup(name)
	switch {
	case e != nil && name == "include":
		return l.include(args, at)
	case e != nil:
		if err := c.load(e, name, args, at); err != nil {
			return err
		}
		if url := c.String("upstream"); e.Name == "upstream" && url != "" && l.s.CheckUpstream != nil {
			if err := l.s.CheckUpstream(url); err != nil {
				return &Error{Origin: at, Directive: name, Reason: err.Error()}
			}
		}
		return nil
	case obsolete(name) && len(args) == 1:
		c.ignore(name, at)
		return nil
	case strings.Contains(name, "."):
		if len(args) == 0 {
			return &Error{Origin: at, Directive: name, Reason: "a module's setting needs a value"}
		}
		if len(c.moduleSettings) >= maxWords {
			return &Error{Origin: at, Directive: name, Reason: "more than 4096 settings of modules"}
		}
		c.moduleSettings[name] = moduleSetting{args: args, origin: at}
		return nil
	case name == "sentinel":
		return &Error{Origin: at, Directive: name, Reason: "latchkey is not a Sentinel", Suggestion: "run redis-sentinel for that"}
	}
	err := &Error{Origin: at, Reason: "unknown directive '" + clip(name) + "'"}
	if near := c.known.Load().nearest(name); near != "" {
		err.Suggestion = "did you mean '" + near + "'?"
	} else if at.File == CommandLine {
		err.Suggestion = "directives on the command line begin with --, such as --port 6380; docs/CONFIG.md lists them"
	} else {
		err.Suggestion = "docs/CONFIG.md lists the directives"
	}
	return err
}

func (l *loader) include(args []string, at Origin) error {
	if len(args) != 1 {
		return &Error{Origin: at, Directive: "include", Reason: "wrong number of arguments", Suggestion: "include takes one path"}
	}
	l.depth++
	defer func() { l.depth-- }()
	if !strings.ContainsAny(args[0], "*?[") {
		return l.file(args[0], at)
	}
	paths, err := l.s.glob(args[0])
	if err != nil {
		return &Error{Origin: at, Directive: "include", Value: args[0], Reason: err.Error(), Cause: err}
	}
	for _, path := range paths {
		if err := l.file(path, at); err != nil {
			return err
		}
	}
	return nil
}

// load takes a value from a source.
func (c *Config) load(e *entry, name string, args []string, at Origin) error {
	fail := func(reason string) error {
		err := &Error{Origin: at, Directive: name, Reason: reason, Suggestion: name + " takes " + e.Takes()}
		if !e.Redacted {
			err.Value = strings.Join(args, " ")
		}
		return err
	}
	// One argument with blanks in it counts as several: --bind "127.0.0.1 ::1".
	if e.Kind.manyArguments() && e.Kind != Lines && len(args) == 1 && args[0] != "" {
		words, err := quoting.Split(args[0])
		if err != nil {
			return fail("unbalanced quotes")
		}
		args = words
	}
	v, err := e.parse(args, e.value.Load())
	if err != nil {
		return fail(err.Error())
	}
	if e.Kind == Lines {
		old := e.value.Load().origins
		v.origins = append(old[:len(old):len(old)], at)
	}
	if e.Kind == SavePoints {
		if v, err = c.addSavePoints(e, v); err != nil {
			return fail(err.Error())
		}
	}
	if e.Unsupported != "" && v.text != e.initial.text {
		if e.Required {
			err := fail(e.Unsupported).(*Error)
			err.Suggestion = ""
			return err
		}
		c.warn(name, e.Unsupported, at)
		return nil
	}
	if e.Warn != "" && v.text != e.initial.text {
		c.warn(name, e.Warn, at)
	}
	if e.Ignored {
		c.ignore(name, at)
	}
	e.value.Store(v)
	return nil
}

// addSavePoints lets the first save of the sources replace the default, and later ones add to it, unless empty.
func (c *Config) addSavePoints(e *entry, v *value) (*value, error) {
	if !c.savesGiven || v.text == "" {
		c.savesGiven = true
		return v, nil
	}
	old := e.value.Load().words
	if len(old)+len(v.words) > maxWords {
		return nil, fmt.Errorf("more than %d values", maxWords)
	}
	words := append(old[:len(old):len(old)], v.words...)
	return &value{text: strings.Join(words, " "), words: words}, nil
}

// warn notes a warning; repeating a line for ever does not make the list longer for ever.
func (c *Config) warn(name, text string, at Origin) {
	if len(c.warnings) < maxWords {
		c.warnings = append(c.warnings, Warning{Origin: at, Directive: name, Text: text})
	}
}

// ignore notes a setting without effect.
func (c *Config) ignore(name string, at Origin) {
	if len(c.ignored) < maxWords {
		c.ignored = append(c.ignored, Setting{Origin: at, Directive: name})
	}
}
