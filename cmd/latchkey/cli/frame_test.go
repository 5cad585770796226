package cli

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

func TestFrameReader(t *testing.T) {
	const in = "+OK\r\n-ERR x\r\n:-12\r\n$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n*2\r\n*1\r\n:1\r\n$1\r\nb\r\n+line\nfeed\r\n"
	want := []string{"OK", "(error) ERR x", "(integer) -12", `"a\r\n"`, `""`, "(nil)", "(nil)", "(empty array)", "1) 1) (integer) 1\n2) \"b\"", "line\nfeed"}
	for name, src := range map[string]io.Reader{
		"whole": strings.NewReader(in),
		"bytes": iotest.OneByteReader(strings.NewReader(in)),
	} {
		f := newFrameReader(src)
		for _, w := range want {
			v, err := f.read()
			if got := string(appendTTY(nil, v, "")); err != nil || got != w+"\n" {
				t.Errorf("%s: read %q, %v; want %q", name, got, err, w)
			}
		}
		if _, err := f.read(); err != io.EOF {
			t.Errorf("%s: after the last reply: %v; want EOF", name, err)
		}
	}
	for end := 1; end < len("*2\r\n$3\r\nabc\r\n:1\r\n"); end++ {
		_, err := newFrameReader(strings.NewReader("*2\r\n$3\r\nabc\r\n:1\r\n"[:end])).read()
		if err != io.ErrUnexpectedEOF {
			t.Errorf("a reply cut after %d bytes: %v; want %v", end, err, io.ErrUnexpectedEOF)
		}
	}
}

// TestFrameReaderHostile feeds what tidwall/resp must not see: it would
// allocate, overflow its stack, or lose its place in the stream.
func TestFrameReaderHostile(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"$536870912\r\nx", io.ErrUnexpectedEOF.Error()},
		{"$536870913\r\nx", "outside of"},
		{"$9223372036854775808\r\n", "holds no number"},
		{"$-2\r\n", "outside of"},
		{"$x\r\n", "holds no number"},
		{"$\r\n", "holds no number"},
		{"*1048576\r\n", io.ErrUnexpectedEOF.Error()},
		{"*1048577\r\n:1\r\n", "outside of"},
		{strings.Repeat("*1048576\r\n", 6), "elements"},
		{strings.Repeat("*1\r\n", 1<<20), "nested deeper"},
		{":" + strings.Repeat("1", 1<<20), "a line of more"},
		{":" + strings.Repeat("1\n", 1<<20), "a line of more"},
		{":1.5\r\n", "holds no number"},
		{"$1\r\nabc", "no CRLF"},
		{"*1\r\nPING\r\n", "it begins with 'P'"},
		{"HTTP/1.1 400 Bad Request\r\n\r\n", "is this a Redis server?"},
		{"\r\n", "it begins with"},
		{"%1\r\n+a\r\n+b\r\n", "RESP3"},
		{"*1\r\n_\r\n", "RESP3"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		v, err := newFrameReader(strings.NewReader(c.in)).read()
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: read %v, %v; want an error with %q", c.in, v, err, c.want)
		}
		if !errors.Is(err, errNotRESP2) && err != io.ErrUnexpectedEOF {
			t.Errorf("%.40q: error %v is neither errNotRESP2 nor an unexpected end", c.in, err)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 256<<10+16*uint64(len(c.in)) {
			t.Errorf("%.40q: %d bytes allocated for %d", c.in, grown, len(c.in))
		}
	}
}

// FuzzFrameReader checks that whatever is accepted is written back by
// tidwall/resp as bytes that mean the same.
func FuzzFrameReader(f *testing.F) {
	for _, s := range []string{"+OK\r\n", "*2\r\n$1\r\na\r\n:1\r\n", "*-1\r\n", "$-1\r\n", "-E\r\n", "*1\r\n*0\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		v, err := newFrameReader(bytes.NewReader(in)).read()
		if err != nil {
			return
		}
		b, err := v.MarshalRESP()
		if err != nil {
			t.Fatalf("%q was read but cannot be written: %v", in, err)
		}
		again, err := newFrameReader(bytes.NewReader(b)).read()
		if err != nil || !again.Equals(v) {
			t.Fatalf("%q was read, written as %q, and then read as %v, %v", in, b, again, err)
		}
		for _, format := range []format{formatTTY, formatRaw, formatCSV, formatJSON} {
			layout{format: format}.reply(nil, v, false)
		}
	})
}
