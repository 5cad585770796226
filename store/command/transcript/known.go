package transcript

import (
	"fmt"
	"os"
	"strings"
)

// Known is one row of the table of known differences: where a server may differ
// from the transcripts, and why it does.
type Known struct {
	Family  string // the transcript's name without .transcript
	Section string
	Command string // as in the transcript; ending in * it stands for all that begin so
	Reason  string
	Line    int // of the row in its file

	hits int
}

// KnownDifferences are the rows of one file.
type KnownDifferences struct {
	Path string
	Rows []*Known
}

// OpenKnown reads the rows from a Markdown page. A row is a line of a table
// whose first cell holds, in a code span, `family / section / command`; the
// other cells are the reason. A vertical bar in the command is written \|.
func OpenKnown(path string) (*KnownDifferences, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	k := &KnownDifferences{Path: path}
	for i, line := range strings.Split(string(text), "\n") {
		rest, ok := strings.CutPrefix(line, "| `")
		if !ok {
			continue
		}
		anchor, rest, ok := strings.Cut(rest, "` |")
		parts := strings.SplitN(strings.ReplaceAll(anchor, `\|`, "|"), " / ", 3)
		reason := strings.Trim(rest, " |")
		if !ok || len(parts) != 3 || reason == "" {
			return nil, fmt.Errorf("%s:%d: want | `family / section / command` | reason |, have %s", path, i+1, line)
		}
		k.Rows = append(k.Rows, &Known{Family: parts[0], Section: parts[1], Command: parts[2], Reason: reason, Line: i + 1})
	}
	return k, nil
}

// Lists reports whether a row stands for the difference, and counts it.
func (k *KnownDifferences) Lists(d Difference) bool {
	family := (&File{Path: d.Path}).Family()
	for _, row := range k.Rows {
		if row.Family != family || row.Section != d.Section {
			continue
		}
		prefix, wild := strings.CutSuffix(row.Command, "*")
		if row.Command == d.Command || wild && strings.HasPrefix(d.Command, prefix) {
			row.hits++
			return true
		}
	}
	return false
}

// Stale returns the rows that stood for no difference in any replay: what they
// describe is equal now, or gone from the transcripts.
func (k *KnownDifferences) Stale() []*Known {
	var rows []*Known
	for _, row := range k.Rows {
		if row.hits == 0 {
			rows = append(rows, row)
		}
	}
	return rows
}
