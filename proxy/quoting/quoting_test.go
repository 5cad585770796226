package quoting

import (
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	for in, want := range map[string][]string{
		"":                    nil,
		"  \t ":               nil,
		`a b`:                 {"a", "b"},
		`"" ''`:               {"", ""},
		`"a\x41\n\"b" 'c\'d'`: {"aA\n\"b", "c'd"},
		`"\x4g\q\\"`:          {"x4gq\\"},
		`'\n'`:                {`\n`},
		`a"b c"`:              {"ab c"},
		"a\vb\fc \v d":        {"a\vb\fc", "d"},
		"a\x00b":              {"a"},
		`\`:                   {`\`},
		" \t\r\n\v\f":         nil,
		"  set\tk\r\n":        {"set", "k"},
		`"a b" 'c d'`:         {"a b", "c d"},
		`"\n\r\t\b\a\\\"\q"`:  {"\n\r\t\b\a\\\"q"},
		`"\x00\xfF\xAb"`:      {"\x00\xff\xab"},
		`"\x0g\x"`:            {"x0gx"},
		`'\n \' "'`:           {`\n ' "`},
		`ab'c d' e`:           {"abc d", "e"},
		`a\b`:                 {`a\b`},
		"\"é\" \xff":          {"é", "\xff"},
	} {
		if got, err := Split(in); err != nil || !slices.Equal(got, want) {
			t.Errorf("Split(%q) is %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{`"`, `'`, `"a"b`, `'a'b`, `"\"`, `'\'`, `"a\`, `a "b' c`, `"a`, `'a`, `a"`, `"a"'b'`, `"\x0`, `a "b`} {
		if got, err := Split(in); err == nil {
			t.Errorf("Split(%q) is %q, want an error", in, got)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"", "a b", `"a\x41\n" 'c\'d'`, `"`, "a\x00b", "a\vb", `\`, `"\x4"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words, err := Split(line)
		if err != nil {
			return
		}
		quoted := make([]string, len(words))
		size := 0
		for i, w := range words {
			quoted[i] = Quote(w)
			size += len(w)
		}
		if size > len(line) {
			t.Errorf("Split(%q) has %d bytes of words", line, size)
		}
		again, err := Split(strings.Join(quoted, " "))
		if err != nil || !slices.Equal(words, again) {
			t.Errorf("Split(%q) is %q; quoted and split again %q, %v", line, words, again, err)
		}
		for i, w := range words {
			if strings.IndexByte(w, 0) < 0 {
				quoted[i] = QuoteIfNeeded(w)
			}
		}
		if again, err := Split(strings.Join(quoted, " ")); err != nil || !slices.Equal(words, again) {
			t.Errorf("Split(%q) is %q; quoted where needed and split again %q, %v", line, words, again, err)
		}
	})
}
