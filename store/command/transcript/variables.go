package transcript

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// expandLine replaces the variables of a command's line. The line is split
// afterwards, so a value that stands alone is quoted, to stay one word.
func expandLine(line string, vars map[string]string, now time.Time) (string, error) {
	return expand(line, vars, now, func(before, value, after string) string {
		q := Quote(value)
		if (before == "" || strings.HasSuffix(before, " ")) && (after == "" || after[0] == ' ') {
			return q
		}
		return q[1 : len(q)-1]
	})
}

// expandBytes replaces the variables of raw bytes.
func expandBytes(raw string, vars map[string]string, now time.Time) (string, error) {
	return expand(raw, vars, now, func(_, value, _ string) string { return value })
}

func expand(s string, vars map[string]string, now time.Time, put func(before, value, after string) string) (string, error) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "${")
		b.WriteString(before)
		if !ok {
			return b.String(), nil
		}
		name, after, ok := strings.Cut(rest, "}")
		if !ok {
			return "", fmt.Errorf("no } behind ${%s", rest)
		}
		value, ok := vars[name]
		if !ok {
			var err error
			if value, err = compute(name, now); err != nil {
				return "", err
			}
		}
		b.WriteString(put(b.String(), value, after))
		s = after
	}
}

const maxRepeat = 16 << 20 // bytes of a value that is made by repetition

// compute evaluates what was not kept by a matcher: the clock, now and nowms,
// either with an integer added, and text*N, the text N times.
func compute(name string, now time.Time) (string, error) {
	if i := strings.LastIndexByte(name, '*'); i > 0 {
		n, err := strconv.Atoi(name[i+1:])
		if err != nil || n < 0 || n > maxRepeat/max(i, 1) {
			return "", fmt.Errorf("want text*N of at most %d bytes, have %s", maxRepeat, name)
		}
		return strings.Repeat(name[:i], n), nil
	}
	base, offset := name, int64(0)
	if i := strings.IndexAny(name, "+-"); i >= 0 {
		var err error
		base = name[:i]
		if offset, err = strconv.ParseInt(name[i:], 10, 64); err != nil {
			return "", err
		}
	}
	switch base {
	case "now":
		return strconv.FormatInt(now.Unix()+offset, 10), nil
	case "nowms":
		return strconv.FormatInt(now.UnixMilli()+offset, 10), nil
	}
	return "", fmt.Errorf("nothing was kept under the name %s: no matcher that ends in -> %s has matched", name, name)
}
