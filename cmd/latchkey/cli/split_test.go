package cli

import (
	"slices"
	"testing"
)

func TestSplitArgs(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		{"", nil},
		{" \t\r\n\v\f", nil},
		{"set k v", []string{"set", "k", "v"}},
		{"  set\tk\r\n", []string{"set", "k"}},
		{`""`, []string{""}},
		{`'' ""`, []string{"", ""}},
		{`"a b" 'c d'`, []string{"a b", "c d"}},
		{`"\n\r\t\b\a\\\"\q"`, []string{"\n\r\t\b\a\\\"q"}},
		{`"\x00\xfF\xAb"`, []string{"\x00\xff\xab"}},
		{`"\x0g\x"`, []string{"x0gx"}},
		{`'\n \' "'`, []string{`\n ' "`}},
		{`ab"c d"`, []string{"abc d"}},
		{`ab'c d' e`, []string{"abc d", "e"}},
		{`a\b`, []string{`a\b`}},
		{"a\vb", []string{"a\vb"}},
		{"\"é\" \xff", []string{"é", "\xff"}},
		{"a b\x00c d", []string{"a", "b"}},
	} {
		got, err := splitArgs(c.line)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("splitArgs(%q) = %q, %v; want %q", c.line, got, err, c.want)
		}
	}
	for _, line := range []string{`"`, `'`, `"a`, `'a`, `a"`, `"a"b`, `'a'b`, `"a"'b'`, `"\"`, `'\'`, `"\x0`, `a "b`} {
		if got, err := splitArgs(line); err == nil {
			t.Errorf("splitArgs(%q) = %q; want an error", line, got)
		}
	}
}

// FuzzSplitArgs holds splitArgs against the quoting of replies: what
// appendQuoted writes is read back as it was.
func FuzzSplitArgs(f *testing.F) {
	f.Add(`set "a\x00" 'b'`)
	f.Fuzz(func(t *testing.T, s string) {
		splitArgs(s)
		quoted := string(appendQuoted(nil, []byte(s)))
		got, err := splitArgs(quoted)
		if err != nil || len(got) != 1 || got[0] != s {
			t.Errorf("%q quoted as %s is read back as %q, %v", s, quoted, got, err)
		}
	})
}
