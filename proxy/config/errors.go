package config

import (
	"strconv"
	"strings"
)

// Origin is where a setting came from.
type Origin struct {
	File string // as it was named; "standard input" or "command line" for those
	Line int    // from 1; 0 on the command line
}

// CommandLine and StandardInput are the File of an Origin that is no file.
const (
	CommandLine   = "command line"
	StandardInput = "standard input"
)

// String returns "lk.conf:3", "standard input:3" or "command line".
func (o Origin) String() string {
	if o.Line == 0 {
		return o.File
	}
	return o.File + ":" + strconv.Itoa(o.Line)
}

// Error is what is wrong with a source: a directive that is not known, a value it does not take, a file that cannot
// be read.
type Error struct {
	Origin     Origin
	Directive  string // as written; empty if the line could not be split
	Value      string // as written; empty for secrets
	Reason     string
	Suggestion string // what would be right; may be empty
	Cause      error  // of a file that cannot be read; may be nil
}

// Error says where and what: "lk.conf:3: unknown directive 'mxaclients'".
func (e *Error) Error() string {
	text := ""
	if e.Origin != (Origin{}) { // a value that a command gives has none
		text = e.Origin.String() + ": "
	}
	if e.Directive != "" && e.Value != "" {
		text += "'" + clip(e.Directive+" "+e.Value) + "': "
	} else if e.Directive != "" {
		text += "'" + clip(e.Directive) + "': "
	}
	return text + e.Reason
}

// Hint says what to do about it: "did you mean 'maxclients'?". It may be empty.
func (e *Error) Hint() string { return e.Suggestion }

// Unwrap returns the error of the file system behind it, if any.
func (e *Error) Unwrap() error { return e.Cause }

// Warning is something accepted that will not do what the operator may expect.
type Warning struct {
	Origin    Origin
	Directive string
	Text      string
}

// String returns the warning in one line.
func (w Warning) String() string { return w.Origin.String() + ": " + w.Directive + ": " + w.Text }

// Setting is a directive that a source sets.
type Setting struct {
	Origin    Origin
	Directive string
}

// ReplyError is the error reply to CONFIG SET or CONFIG REWRITE; its text is complete and begins with its code, ERR.
type ReplyError struct{ text string }

// Error returns the reply's text, without the leading minus sign and in one line.
func (e *ReplyError) Error() string { return e.text }

func replyError(text string) error {
	b := []byte(text)
	for i, c := range b {
		if c == '\r' || c == '\n' {
			b[i] = ' '
		}
	}
	return &ReplyError{string(b)}
}

// mostQuoted is how much of what others wrote an error quotes, in bytes.
const mostQuoted = 128

// clip shortens what others wrote, and makes one printable line of it.
func clip(s string) string {
	b := []byte(shorten(s))
	for i, c := range b {
		if c < ' ' || c == 0x7f {
			b[i] = '?'
		}
	}
	return string(b)
}

// clipReply shortens what a client wrote for an error that goes back to it. As in
// Redis the name ends at its first zero byte.
func clipReply(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return shorten(s)
}

func shorten(s string) string {
	if len(s) > mostQuoted {
		return s[:mostQuoted] + "..."
	}
	return s
}

// nearest returns the known name that is fewest edits away from name, or "" if none is near.
func (r *registry) nearest(name string) string {
	if len(name) > 64 {
		return ""
	}
	best, least := "", min(len(name)/3, 3)+1
	for _, e := range r.order {
		if e.Hidden {
			continue
		}
		for _, known := range append([]string{e.Name}, e.Aliases...) {
			if d := edits(name, known); d < least {
				best, least = known, d
			}
		}
	}
	return best
}

// edits counts the insertions, deletions, replacements and exchanges of neighbours that lead from a to b.
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
