package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
)

const maxHistory = 1000 // lines

// Control keys as a terminal in raw mode sends them.
const (
	keyCtrlA     = 1
	keyCtrlB     = 2
	keyCtrlC     = 3
	keyCtrlD     = 4
	keyCtrlE     = 5
	keyCtrlF     = 6
	keyCtrlH     = 8
	keyTab       = 9
	keyLineFeed  = 10
	keyCtrlK     = 11
	keyCtrlL     = 12
	keyReturn    = 13
	keyCtrlN     = 14
	keyCtrlP     = 16
	keyCtrlU     = 21
	keyCtrlW     = 23
	keyEscape    = 27
	keyBackspace = 127
)

// editor reads lines from a terminal with the usual keys and a history in
// memory. A line longer than the terminal is wide scrolls sideways. Each rune
// counts as one column.
type editor struct {
	in    *bufio.Reader
	out   io.Writer
	raw   func() (restore func(), err error) // nil if the input needs none
	width func() int
	mask  bool // show asterisks

	history []string // oldest first

	// The line being edited.
	prompt string
	line   []rune
	pos    int
	recall int    // index in history; len(history) for the new line
	draft  []rune // the new line while an old one is shown
}

func newEditor(f *os.File, out io.Writer) *editor {
	return &editor{
		in:    bufio.NewReader(f),
		out:   out,
		raw:   func() (func(), error) { return makeRaw(f) },
		width: func() int { return columns(f) },
	}
}

// remember adds a line to the history unless it repeats the last.
func (e *editor) remember(line string) {
	if n := len(e.history); n > 0 && e.history[n-1] == line {
		return
	}
	if len(e.history) == maxHistory {
		e.history = append(e.history[:0], e.history[1:]...)
	}
	e.history = append(e.history, line)
}

// readLine shows the prompt and returns the line when Return is pressed. It
// answers io.EOF for Ctrl-D and Ctrl-C on an empty line; Ctrl-C on another
// begins a new one.
func (e *editor) readLine(prompt string) (string, error) {
	if e.raw != nil {
		restore, err := e.raw()
		if err != nil {
			return "", err
		}
		defer restore()
	}
	e.prompt, e.line, e.pos, e.recall = prompt, nil, 0, len(e.history)
	for {
		e.show()
		r, _, err := e.in.ReadRune()
		if err != nil {
			e.write("\r\n")
			return "", err
		}
		switch r {
		case keyReturn, keyLineFeed:
			e.pos = len(e.line)
			e.show()
			e.write("\r\n")
			return string(e.line), nil
		case keyCtrlC:
			e.write("^C\r\n")
			if len(e.line) == 0 {
				return "", io.EOF
			}
			e.line, e.pos, e.recall = nil, 0, len(e.history)
		case keyCtrlD:
			if len(e.line) == 0 {
				e.write("\r\n")
				return "", io.EOF
			}
			e.cut(e.pos, e.pos+1)
		case keyEscape:
			if err := e.escape(); err != nil {
				return "", err
			}
		default:
			e.key(r)
		}
	}
}

// key applies a key that is one rune.
func (e *editor) key(r rune) {
	switch r {
	case keyCtrlA:
		e.pos = 0
	case keyCtrlE:
		e.pos = len(e.line)
	case keyCtrlB:
		e.pos = max(0, e.pos-1)
	case keyCtrlF:
		e.pos = min(len(e.line), e.pos+1)
	case keyCtrlH, keyBackspace:
		e.cut(e.pos-1, e.pos)
	case keyCtrlK:
		e.cut(e.pos, len(e.line))
	case keyCtrlU:
		e.cut(0, e.pos)
	case keyCtrlW:
		from := e.pos
		for from > 0 && e.line[from-1] == ' ' {
			from--
		}
		for from > 0 && e.line[from-1] != ' ' {
			from--
		}
		e.cut(from, e.pos)
	case keyCtrlL:
		e.write("\x1b[H\x1b[2J")
	case keyCtrlP:
		e.recallLine(e.recall - 1)
	case keyCtrlN:
		e.recallLine(e.recall + 1)
	case keyTab:
		r = ' ' // a pasted one; the terminal's width of a tab is not known here
		fallthrough
	default:
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return // bytes that are no text are written as \xHH in quotes
		}
		e.line = append(e.line, 0)
		copy(e.line[e.pos+1:], e.line[e.pos:])
		e.line[e.pos] = r
		e.pos++
	}
}

// escape reads the rest of an escape sequence and applies it; unknown ones are
// swallowed whole.
func (e *editor) escape() error {
	kind, err := e.in.ReadByte()
	if err != nil {
		return err
	}
	if kind != '[' && kind != 'O' {
		return nil
	}
	var parameter []byte
	for {
		c, err := e.in.ReadByte()
		if err != nil {
			return err
		}
		if c < '@' || c > '~' {
			if len(parameter) < 16 {
				parameter = append(parameter, c)
			}
			continue
		}
		e.sequence(string(parameter), c)
		return nil
	}
}

func (e *editor) sequence(parameter string, final byte) {
	switch final {
	case 'A':
		e.recallLine(e.recall - 1)
	case 'B':
		e.recallLine(e.recall + 1)
	case 'C':
		e.key(keyCtrlF)
	case 'D':
		e.key(keyCtrlB)
	case 'H':
		e.pos = 0
	case 'F':
		e.pos = len(e.line)
	case '~':
		switch parameter {
		case "1", "7":
			e.pos = 0
		case "4", "8":
			e.pos = len(e.line)
		case "3":
			e.cut(e.pos, e.pos+1)
		}
	}
}

// recallLine replaces the line by one of the history, or by the draft behind them.
func (e *editor) recallLine(at int) {
	if at < 0 || at > len(e.history) || e.mask {
		return
	}
	if e.recall == len(e.history) {
		e.draft = e.line
	}
	e.recall = at
	if at == len(e.history) {
		e.line = e.draft
	} else {
		e.line = []rune(e.history[at])
	}
	e.pos = len(e.line)
}

// cut removes line[from:to], as far as there is such a part.
func (e *editor) cut(from, to int) {
	from, to = max(0, from), min(to, len(e.line))
	if from < to {
		e.line = append(e.line[:from:from], e.line[to:]...)
		e.pos = from
	}
}

// show draws the prompt and the part of the line around the cursor.
func (e *editor) show() {
	prompt := []rune(e.prompt)
	room := max(e.width()-len(prompt)-1, 8)
	from := max(0, e.pos-room)
	visible := string(e.line[from:min(len(e.line), from+room)])
	if e.mask {
		visible = strings.Repeat("*", len([]rune(visible)))
	}
	e.write(fmt.Sprintf("\r%s%s\x1b[0K\r\x1b[%dC", e.prompt, visible, len(prompt)+e.pos-from))
}

// write hands text to the terminal at once. If the terminal is gone, the next
// read fails.
func (e *editor) write(text string) {
	io.WriteString(e.out, text)
	if f, ok := e.out.(interface{ Flush() error }); ok {
		f.Flush()
	}
}
