package resp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/proxy/resp"
)

// frames writes down what a FrameReader makes of a source: type and length of
// each frame, and how it ends.
func frames(src io.Reader, most int) string {
	r := resp.NewFrameReader(src, most, nil)
	var b strings.Builder
	for {
		f, err := r.Next()
		if err != nil {
			if _, again := r.Next(); again != err {
				return fmt.Sprintf("after %v, Next returned %v", err, again)
			}
			switch err {
			case io.EOF:
				return b.String() + "EOF"
			case io.ErrUnexpectedEOF:
				return b.String() + "cut"
			}
			return b.String() + err.Error()
		}
		if f.Raw[f.Start] != f.Type {
			return fmt.Sprintf("type %q, but %.80q starts at %d", f.Type, f.Raw, f.Start)
		}
		fmt.Fprintf(&b, "%c%d ", f.Type, len(f.Raw))
	}
}

const badFrame = "resp: bad reply frame at byte "

var frameCases = []struct{ name, in, want string }{
	{"nothing", "", "EOF"},
	{
		"simple ones", "+OK\r\n-ERR x\r\n:-1\r\n:+1\r\n_\r\n#t\r\n#f\r\n,1.5e+10\r\n,-inf\r\n,nan\r\n(-123\r\n+\r\n",
		"+5 -8 :5 :5 _3 #4 #4 ,10 ,7 ,6 (7 +3 EOF",
	},
	{"bulks", "$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n!5\r\nERR x\r\n=5\r\ntxt:a\r\n", "$9 $6 $5 !11 =11 EOF"},
	{"aggregates", "*0\r\n*-1\r\n*1\r\n:1\r\n%1\r\n:1\r\n:2\r\n~1\r\n_\r\n>1\r\n+x\r\n", "*4 *5 *8 %12 ~7 >8 EOF"},
	{"nested", "*2\r\n*2\r\n:1\r\n*0\r\n%1\r\n$1\r\na\r\n*1\r\n~0\r\n:5\r\n", "*35 :4 EOF"},
	{"attribute", "|1\r\n+k\r\n*1\r\n:1\r\n$1\r\na\r\n:1\r\n", "$23 :4 EOF"},
	{"attribute within", "*1\r\n|1\r\n+k\r\n:1\r\n:2\r\n:3\r\n", "*20 :4 EOF"},
	{"attribute on an attribute", "|0\r\n|0\r\n:2\r\n", ":12 EOF"},
	{"attribute of a push", "|0\r\n>1\r\n:2\r\n", ">12 EOF"},
	{"attribute alone", "|0\r\n", "cut"},

	{"cut status", "+OK\r", "cut"},
	{"cut bulk", "$3\r\nabc\r", "cut"},
	{"cut array", "*2\r\n:1\r\n", "cut"},

	{"unknown type", "x\r\n", badFrame + `0: got 'x' where a reply type should stand`},
	{"streamed string", "$?\r\n;0\r\n", badFrame + `3: "?" is no length of '$'`},
	{"streamed array", "*?\r\n.\r\n", badFrame + `3: "?" is no number of elements of '*'`},
	{"LF alone", "+OK\n", badFrame + `3: line of '+' ends with LF, not CRLF`},
	{"nothing but LF", ":\n", badFrame + `1: line of ':' ends with LF, not CRLF`},
	{"CR within", "+O\rK\r\n", badFrame + `5: "O\rK" does not go with type '+'`},
	{"no number", ":x\r\n", badFrame + `3: "x" does not go with type ':'`},
	{"two signs", ":+-1\r\n", badFrame + `5: "+-1" does not go with type ':'`},
	{"no boolean", "#x\r\n", badFrame + `3: "x" does not go with type '#'`},
	{"no null", "_x\r\n", badFrame + `3: "x" does not go with type '_'`},
	{"no double", ",\r\n", badFrame + `2: "" does not go with type ','`},
	{"no big number", "(1.5\r\n", badFrame + `5: "1.5" does not go with type '('`},
	{"length -2", "$-2\r\n", badFrame + `4: "-2" is no length of '$'`},
	{"length of an error -1", "!-1\r\n", badFrame + `4: "-1" is no length of '!'`},
	{"length 01", "$01\r\na\r\n", badFrame + `4: "01" is no length of '$'`},
	{"bulk too short", "$1\r\nab\r\n", badFrame + `6: bulk of 1 bytes is not followed by CRLF`},
	{"verbatim without format", "=3\r\ntxt\r\n", badFrame + `3: "3" is no length of '='`},
	{"verbatim with a format too long", "=6\r\ntext:a\r\n", badFrame + `11: verbatim string without a format of three letters`},
	{"count -2", "*-2\r\n", badFrame + `4: "-2" is no number of elements of '*'`},
	{"count of a map -1", "%-1\r\n", badFrame + `4: "-1" is no number of elements of '%'`},
	{"count beyond 32 bits", "*2147483648\r\n", badFrame + `12: "2147483648" is no number of elements of '*'`},
	{"push within", "*1\r\n>0\r\n", badFrame + `7: push inside another reply`},
	{"deepest", strings.Repeat("*1\r\n", resp.MaxDepth) + ":1\r\n", "*516 EOF"},
	{"too deep", strings.Repeat("*1\r\n", resp.MaxDepth+1) + ":1\r\n", badFrame + "515: nested deeper than 128"},
	{"header without end", "*" + strings.Repeat("1", 1000), badFrame + "512: header of '*' has no end"},
	{"nothing after what is bad", ":x\r\n:1\r\n", badFrame + `3: "x" does not go with type ':'`},
	{"whole before what is bad", ":1\r\n:x\r\n", ":4 " + badFrame + `3: "x" does not go with type ':'`},
}

func TestFrames(t *testing.T) {
	for _, c := range frameCases {
		in := []byte(c.in)
		for i := 0; i <= len(in); i++ {
			if got := frames(&pieces{in[:i], in[i:]}, 0); got != c.want {
				t.Fatalf("%s: %.60q cut at %d\n got %s\nwant %s", c.name, in, i, got, c.want)
			}
		}
		if got := frames(&chunks{in, 1}, 0); got != c.want {
			t.Errorf("%s: %.60q byte by byte\n got %s\nwant %s", c.name, in, got, c.want)
		}
	}
}

func TestFrameErrors(t *testing.T) {
	in := "-ERR a\r\n!5\r\nERR b\r\n|1\r\n+k\r\n:1\r\n-ERR c\r\n+OK\r\n>1\r\n-ERR d\r\n"
	r := resp.NewFrameReader(strings.NewReader(in), 0, nil)
	for _, want := range []string{"ERR a", "ERR b", "ERR c", "", ""} {
		f, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if string(f.ErrorText()) != want || f.IsError() != (want != "") || f.IsPush() != (f.Type == '>') {
			t.Errorf("%q: error text %q, IsError %v, IsPush %v; want text %q", f.Raw, f.ErrorText(), f.IsError(), f.IsPush(), want)
		}
	}
}

func TestFrameLimit(t *testing.T) {
	for _, in := range []string{"$10\r\n0123456789\r\n", "+0123456789abcd\r\n", "*3\r\n:1\r\n:2\r\n+5\r\n", "*2\r\n:123456\r\n_\r\n"} {
		for _, size := range []int{1, 3, 100} {
			if got := frames(&chunks{[]byte(in), size}, len(in)); !strings.HasSuffix(got, "EOF") {
				t.Errorf("%q with its length as limit: %s", in, got)
			}
			if got := frames(&chunks{[]byte(in), size}, len(in)-1); got != resp.ErrFrameTooBig.Error() {
				t.Errorf("%q with its length less one as limit: %s", in, got)
			}
		}
	}
	// An announced length is refused before its bytes come.
	src := script{send("$2000000000\r\n"), func([]byte) (int, error) { panic("read on") }}
	if _, err := resp.NewFrameReader(&src, 0, nil).Next(); err != resp.ErrFrameTooBig {
		t.Errorf("a bulk of 2 GB: %v, want ErrFrameTooBig", err)
	}
}

func TestFrameMemory(t *testing.T) {
	var held, most int
	grow := func(delta int) error { held += delta; most = max(most, held); return nil }
	for _, in := range []string{"$1000000000\r\nabc", "*2147483647\r\n" + strings.Repeat(":1\r\n", 1000)} {
		held, most = 0, 0
		r := resp.NewFrameReader(strings.NewReader(in), 0, grow)
		if _, err := r.Next(); err != io.ErrUnexpectedEOF {
			t.Errorf("%.30q: %v", in, err)
		}
		if most > 2*len(in)+1<<20 || held != r.Memory() {
			t.Errorf("%.30q: %d bytes taken for %d, Grow told of %d, Memory %d", in, most, len(in), held, r.Memory())
		}
		r.Release()
		if held != 0 {
			t.Errorf("%.30q: after Release %d bytes are held", in, held)
		}
	}
	full := errors.New("full")
	r := resp.NewFrameReader(strings.NewReader(":1\r\n"), 0, func(int) error { return full })
	if _, err := r.Next(); err != full {
		t.Errorf("Next: %v, want what grow returned", err)
	}
}

func TestFrameBuffered(t *testing.T) {
	src := script{send(":1\r\n:2\r\n$4\r\nab"), fail(os.ErrDeadlineExceeded), send("cd\r\n")}
	r := resp.NewFrameReader(&src, 0, nil)
	next := func(want string) {
		t.Helper()
		if f, err := r.Next(); err != nil || string(f.Raw) != want {
			t.Fatalf("Next: %q, %v, want %q", f.Raw, err, want)
		}
	}
	next(":1\r\n")
	for range 2 { // asking changes nothing
		if !r.Buffered() {
			t.Error("a whole frame has been read, but Buffered is false")
		}
	}
	next(":2\r\n")
	if r.Buffered() {
		t.Error("half a frame has been read, but Buffered is true")
	}
	if _, err := r.Next(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("Next: %v, want the timeout", err)
	}
	next("$4\r\nabcd\r\n")
}

// TestFramesOfWriter reads every reply that the Writer can build.
func TestFramesOfWriter(t *testing.T) {
	for proto := 2; proto <= 3; proto++ {
		for _, c := range replies {
			var w resp.Writer
			w.SetProto(proto)
			w.Array(1)
			if c.name == "push" || c.name == "rewound" {
				w.Reset()
			}
			c.write(&w)
			var raw []byte
			r := resp.NewFrameReader(bytes.NewReader(w.Bytes()), 0, nil)
			for {
				f, err := r.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatalf("%s in RESP%d: %q: %v", c.name, proto, w.Bytes(), err)
				}
				raw = append(raw, f.Raw...)
			}
			if !bytes.Equal(raw, w.Bytes()) {
				t.Errorf("%s in RESP%d: %q is read as %q", c.name, proto, w.Bytes(), raw)
			}
		}
	}
}
