package transcript

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// File is one transcript: the sections of a family of commands.
type File struct {
	Path     string
	Sections []*Section

	head []string // the lines above the first section
}

// Section is a part of a file that starts from an empty server.
type Section struct {
	Name string
	Line int // of its header

	needs  []string // commands the server must have
	only   string   // the version that has what is shown here, when it is not redis-server 7.0
	source string
	proto  int // 2 or 3 when it is played in that one only
	items  []item
}

// item is a step, or a line that is kept as it is.
type item struct {
	trivia string
	step   *step
}

type op int

const (
	opCommand op = iota // one command, or a pipeline of several
	opRaw
	opRead
	opClose
	opSleep
)

// step is what one or several lines at the margin do, and what is expected.
type step struct {
	line   int
	source []string // as in the file
	conn   string
	op     op
	cmds   []string // the commands' text, before variables are replaced
	raw    string
	sleep  time.Duration

	want2 []frame
	want3 []frame // nil: as in RESP2
}

// Family is the file's name without its folder and ending.
func (f *File) Family() string {
	return strings.TrimSuffix(filepath.Base(f.Path), ".transcript")
}

// Open reads and parses the transcript at path.
func Open(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// Parse reads a transcript. Errors name the path and the line.
func Parse(path string, text []byte) (*File, error) {
	p := &parser{file: &File{Path: path}, fileScope: &Section{}}
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		p.at = i + 1
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, p.at, err)
		}
	}
	if err := p.endBlock(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", path, p.at, err)
	}
	for _, s := range p.file.Sections {
		if s.only != "" && s.source == "" {
			return nil, fmt.Errorf("%s:%d: section %q is marked only: %s, but no # source: says where its replies come from", path, s.Line, s.Name, s.only)
		}
	}
	return p.file, nil
}

type parser struct {
	file      *File
	fileScope *Section // the directives above the first section
	section   *Section
	step      *step
	block     []string // reply lines of step, not parsed yet
	at        int
}

func (p *parser) line(line string) error {
	if reply, ok := strings.CutPrefix(line, "  "); ok {
		if p.step == nil {
			return fmt.Errorf("a reply that no command stands above: %q", line)
		}
		p.block = append(p.block, reply)
		return nil
	}
	if rest, ok := p.continues(line); ok {
		p.step.source = append(p.step.source, line)
		p.step.cmds = append(p.step.cmds, rest)
		return nil
	}
	if err := p.endBlock(); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(line, "== "):
		s := *p.fileScope
		s.Name, s.Line = strings.TrimSpace(line[3:]), p.at
		for _, other := range p.file.Sections {
			if other.Name == s.Name {
				return fmt.Errorf("section %q begins on line %d already", s.Name, other.Line)
			}
		}
		p.section = &s
		p.file.Sections = append(p.file.Sections, p.section)
		return nil
	case line == "" || strings.HasPrefix(line, "#"):
		return p.trivia(line)
	case p.section == nil:
		return fmt.Errorf("a command above the first section (== name)")
	}
	s, err := parseStep(line)
	if err != nil {
		return err
	}
	s.line = p.at
	p.step = s
	p.section.items = append(p.section.items, item{step: s})
	return nil
}

// continues reports whether line is one more command of the pipeline above.
func (p *parser) continues(line string) (string, bool) {
	if p.step == nil || len(p.block) > 0 || p.step.op != opCommand {
		return "", false
	}
	conn, rest := cutConn(line)
	first := p.step.source[0]
	_, firstRest := cutConn(first)
	if conn != p.step.conn || !strings.HasPrefix(rest, "| ") || !strings.HasPrefix(firstRest, "| ") {
		return "", false
	}
	return rest[2:], true
}

func (p *parser) trivia(line string) error {
	scope := p.section
	if scope == nil {
		p.file.head = append(p.file.head, line)
		scope = p.fileScope
	} else {
		scope.items = append(scope.items, item{trivia: line})
	}
	directive, ok := strings.CutPrefix(line, "# ")
	if !ok {
		return nil
	}
	key, value, ok := strings.Cut(directive, ": ")
	if !ok || !slices.Contains([]string{"needs", "only", "source", "proto"}, key) {
		return nil
	}
	if slices.ContainsFunc(scope.items, func(i item) bool { return i.step != nil }) {
		return fmt.Errorf("# %s: must stand above the section's first command", key)
	}
	value = strings.TrimSpace(value)
	switch key {
	case "needs":
		for name := range strings.SplitSeq(value, ",") {
			scope.needs = append(slices.Clip(scope.needs), strings.TrimSpace(name))
		}
	case "only":
		scope.only = value
	case "source":
		scope.source = value
	case "proto":
		switch value {
		case "2":
			scope.proto = 2
		case "3":
			scope.proto = 3
		default:
			return fmt.Errorf("want # proto: 2 or # proto: 3, have %q", value)
		}
	}
	return nil
}

// endBlock parses the replies collected for the step above.
func (p *parser) endBlock() error {
	step, block := p.step, p.block
	p.step, p.block = nil, nil
	if step == nil || len(block) == 0 {
		return nil
	}
	two, three := block, []string(nil)
	if i := slices.Index(block, "resp3:"); i >= 0 {
		two, three = block[:i], block[i+1:]
	}
	var err error
	if step.want2, err = parseFrames(two); err != nil {
		return fmt.Errorf("reply of line %d: %w", step.line, err)
	}
	if step.want3, err = parseFrames(three); err != nil {
		return fmt.Errorf("reply of line %d in RESP3: %w", step.line, err)
	}
	return nil
}

// cutConn cuts the connection's name off a line.
func cutConn(line string) (conn, rest string) {
	if name, ok := strings.CutPrefix(line, "@"); ok {
		name, rest, _ = strings.Cut(name, " ")
		return name, rest
	}
	return "1", line
}

func parseStep(line string) (*step, error) {
	conn, rest := cutConn(line)
	s := &step{conn: conn, source: []string{line}}
	if !strings.HasPrefix(rest, ".") {
		s.cmds = []string{strings.TrimPrefix(rest, "| ")}
		_, err := SplitWords(s.cmds[0])
		return s, err
	}
	word, arg, _ := strings.Cut(rest, " ")
	var err error
	switch word {
	case ".read":
		s.op = opRead
	case ".close":
		s.op = opClose
	case ".raw":
		s.op = opRaw
		s.raw, err = unquote(arg)
	case ".sleep":
		s.op = opSleep
		s.sleep, err = time.ParseDuration(arg)
	default:
		err = fmt.Errorf("unknown line of the player: %s; known are .read .raw .close .sleep", word)
	}
	return s, err
}

// replies reports whether frames are expected below the step.
func (s *step) replies() bool { return s.op != opClose && s.op != opSleep }

// want is what the step expects in RESP2 or RESP3.
func (s *step) want(proto int) []frame {
	if proto == 2 {
		return s.want2
	}
	if s.want3 != nil {
		return s.want3
	}
	frames := make([]frame, len(s.want2))
	for i, f := range s.want2 {
		lines := asRESP3(f.lines)
		// The lines were parsed once with other words for null: they parse again.
		parsed, err := parseFrames(lines)
		if err != nil || len(parsed) != 1 {
			panic(fmt.Sprintf("transcript: line %d: RESP3 form of %q does not parse: %v", s.line, f.lines, err))
		}
		frames[i] = parsed[0]
	}
	return frames
}

// Bytes is the transcript as it stands in its file.
func (f *File) Bytes() []byte {
	var b bytes.Buffer
	put := func(indent string, lines ...string) {
		for _, line := range lines {
			b.WriteString(indent)
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	put("", f.head...)
	for _, sec := range f.Sections {
		put("", "== "+sec.Name)
		for _, it := range sec.items {
			if it.step == nil {
				put("", it.trivia)
				continue
			}
			put("", it.step.source...)
			for _, w := range it.step.want2 {
				put("  ", w.lines...)
			}
			if it.step.want3 != nil {
				put("  ", "resp3:")
				for _, w := range it.step.want3 {
					put("  ", w.lines...)
				}
			}
		}
	}
	return b.Bytes()
}
