package resp_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/proxy/resp"
	"github.com/latchkey-proxy/latchkey/store/command"
	"github.com/latchkey-proxy/latchkey/store/command/transcript"
	tidwall "github.com/tidwall/resp"
)

var _ command.Reply = (*resp.Writer)(nil)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

var replies = []struct {
	name         string
	write        func(w *resp.Writer)
	resp2, resp3 string // "" stands for: as in RESP2
}{
	{"OK", func(w *resp.Writer) { w.Status("OK") }, "+OK\r\n", ""},
	{"status", func(w *resp.Writer) { w.Status("QUEUED") }, "+QUEUED\r\n", ""},
	{"status of two lines", func(w *resp.Writer) { w.Status("a\r\n+b") }, "+a  +b\r\n", ""},
	{"error", func(w *resp.Writer) { w.Error("ERR syntax error") }, "-ERR syntax error\r\n", ""},
	{"error of two lines", func(w *resp.Writer) { w.Error("ERR a\nb\r") }, "-ERR a b \r\n", ""},
	{"0", func(w *resp.Writer) { w.Int(0) }, ":0\r\n", ""},
	{"1", func(w *resp.Writer) { w.Int(1) }, ":1\r\n", ""},
	{"-1", func(w *resp.Writer) { w.Int(-1) }, ":-1\r\n", ""},
	{"12345", func(w *resp.Writer) { w.Int(12345) }, ":12345\r\n", ""},
	{"least", func(w *resp.Writer) { w.Int(math.MinInt64) }, ":-9223372036854775808\r\n", ""},
	{"most", func(w *resp.Writer) { w.Int(math.MaxInt64) }, ":9223372036854775807\r\n", ""},
	{"bulk", func(w *resp.Writer) { w.Bulk([]byte("a\r\nb")) }, "$4\r\na\r\nb\r\n", ""},
	{"empty bulk", func(w *resp.Writer) { w.Bulk(nil) }, "$0\r\n\r\n", ""},
	{"bulk of a string", func(w *resp.Writer) { w.BulkString("Hello World") }, "$11\r\nHello World\r\n", ""},
	{"null", (*resp.Writer).Null, "$-1\r\n", "_\r\n"},
	{"null array", (*resp.Writer).NullArray, "*-1\r\n", "_\r\n"},
	{"array", func(w *resp.Writer) { w.Array(2); w.Int(1); w.Null() }, "*2\r\n:1\r\n$-1\r\n", "*2\r\n:1\r\n_\r\n"},
	{"empty array", func(w *resp.Writer) { w.Array(0) }, "*0\r\n", ""},
	{"map", func(w *resp.Writer) { w.Map(1); w.Int(7); w.Bool(true) }, "*2\r\n:7\r\n:1\r\n", "%1\r\n:7\r\n#t\r\n"},
	{"set", func(w *resp.Writer) { w.Set(1); w.Int(7) }, "*1\r\n:7\r\n", "~1\r\n:7\r\n"},
	{"push", func(w *resp.Writer) { w.Push(1); w.Int(7) }, "*1\r\n:7\r\n", ">1\r\n:7\r\n"},
	{"true", func(w *resp.Writer) { w.Bool(true) }, ":1\r\n", "#t\r\n"},
	{"false", func(w *resp.Writer) { w.Bool(false) }, ":0\r\n", "#f\r\n"},
	{"double", func(w *resp.Writer) { w.Double(1.5) }, "$3\r\n1.5\r\n", ",1.5\r\n"},
	{"double of 17 digits", func(w *resp.Writer) { w.Double(0.1) }, "$19\r\n0.10000000000000001\r\n", ",0.10000000000000001\r\n"},
	{"double whole", func(w *resp.Writer) { w.Double(100000) }, "$6\r\n100000\r\n", ",100000\r\n"},
	{"double large", func(w *resp.Writer) { w.Double(1e100) }, "$6\r\n1e+100\r\n", ",1e+100\r\n"},
	{"double small", func(w *resp.Writer) { w.Double(1e-5) }, "$22\r\n1.0000000000000001e-05\r\n", ",1.0000000000000001e-05\r\n"},
	{"double -0", func(w *resp.Writer) { w.Double(math.Copysign(0, -1)) }, "$2\r\n-0\r\n", ",-0\r\n"},
	{"double inf", func(w *resp.Writer) { w.Double(math.Inf(1)) }, "$3\r\ninf\r\n", ",inf\r\n"},
	{"double -inf", func(w *resp.Writer) { w.Double(math.Inf(-1)) }, "$4\r\n-inf\r\n", ",-inf\r\n"},
	{"double nan", func(w *resp.Writer) { w.Double(math.NaN()) }, "$3\r\nnan\r\n", ",nan\r\n"},
	{"big number", func(w *resp.Writer) { w.BigNumber("-123456789012345678901") }, "$22\r\n-123456789012345678901\r\n", "(-123456789012345678901\r\n"},
	{"verbatim", func(w *resp.Writer) { w.Verbatim("txt", "a\nb") }, "$3\r\na\nb\r\n", "=7\r\ntxt:a\nb\r\n"},
	{"verbatim of a short format", func(w *resp.Writer) { w.Verbatim("t", "a") }, "$1\r\na\r\n", "=5\r\nt  :a\r\n"},
	{"raw", func(w *resp.Writer) { w.Raw([]byte("*0\r\n")) }, "*0\r\n", ""},
	{"rewound", func(w *resp.Writer) {
		w.Int(1)
		m := w.Mark()
		w.Array(5)
		w.Int(2)
		w.Rewind(m)
		w.Int(3)
	}, ":1\r\n:3\r\n", ""},
}

func TestReplies(t *testing.T) {
	for _, c := range replies {
		if c.resp3 == "" {
			c.resp3 = c.resp2
		}
		for proto, want := range map[int]string{2: c.resp2, 3: c.resp3} {
			w := resp.NewWriter()
			w.SetProto(proto)
			c.write(w)
			if string(w.Bytes()) != want || w.Len() != len(want) || w.Proto() != proto {
				t.Errorf("%s in RESP%d: got %q, want %q", c.name, proto, w.Bytes(), want)
			}
		}
	}
}

// TestRepliesAgainstRedis compares with what redis-server sends for DEBUG
// PROTOCOL and for doubles and others made by scripts.
func TestRepliesAgainstRedis(t *testing.T) {
	socket := transcript.StartJudge(t, "--enable-debug-command", "yes").Socket
	cases := []struct {
		command []string
		write   func(w *resp.Writer)
	}{
		{[]string{"DEBUG", "PROTOCOL", "string"}, func(w *resp.Writer) { w.BulkString("Hello World") }},
		{[]string{"DEBUG", "PROTOCOL", "integer"}, func(w *resp.Writer) { w.Int(12345) }},
		{[]string{"DEBUG", "PROTOCOL", "double"}, func(w *resp.Writer) { w.Double(3.141) }},
		{[]string{"DEBUG", "PROTOCOL", "bignum"}, func(w *resp.Writer) { w.BigNumber("1234567999999999999999999999999999999") }},
		{[]string{"DEBUG", "PROTOCOL", "null"}, (*resp.Writer).Null},
		{[]string{"DEBUG", "PROTOCOL", "array"}, func(w *resp.Writer) { w.Array(3); w.Int(0); w.Int(1); w.Int(2) }},
		{[]string{"DEBUG", "PROTOCOL", "set"}, func(w *resp.Writer) { w.Set(3); w.Int(0); w.Int(1); w.Int(2) }},
		{[]string{"DEBUG", "PROTOCOL", "map"}, func(w *resp.Writer) {
			w.Map(3)
			for i := range 3 {
				w.Int(int64(i))
				w.Bool(i == 1)
			}
		}},
		{[]string{"DEBUG", "PROTOCOL", "verbatim"}, func(w *resp.Writer) { w.Verbatim("txt", "This is a verbatim\nstring") }},
		{[]string{"DEBUG", "PROTOCOL", "true"}, func(w *resp.Writer) { w.Bool(true) }},
		{[]string{"DEBUG", "PROTOCOL", "false"}, func(w *resp.Writer) { w.Bool(false) }},
		{[]string{"DEBUG", "PROTOCOL", "push"}, func(w *resp.Writer) {
			if w.Proto() == 2 {
				w.Error("ERR RESP2 is not supported by this command")
				return
			}
			w.Push(2)
			w.BulkString("server-cpu-usage")
			w.Int(42)
			w.BulkString("Some real reply following the push reply")
		}},
		{[]string{"EXEC"}, func(w *resp.Writer) { w.Error("ERR EXEC without MULTI") }},
		{[]string{"LPOP", "none", "1"}, (*resp.Writer).NullArray},
		{[]string{"EVAL", "return {ok='a\\r\\nb'}", "0"}, func(w *resp.Writer) { w.Status("a\r\nb") }},
		{[]string{"EVAL", "return {err='ERR a\\r\\nb'}", "0"}, func(w *resp.Writer) { w.Error("ERR a\r\nb") }},
		{[]string{"EVAL", "return {big_number='1\\r\\n2'}", "0"}, func(w *resp.Writer) { w.BigNumber("1\r\n2") }},
	}
	rng := newRand(2)
	for i := range 400 {
		var f float64
		switch i % 4 {
		case 0:
			f = math.Float64frombits(rng.Uint64())
		case 1:
			f = float64(rng.Int64N(1<<54)) / math.Pow10(rng.IntN(30))
		case 2:
			f = float64(rng.Int64N(1 << 54))
		case 3:
			f = math.Pow10(rng.IntN(60) - 30)
		}
		if math.IsNaN(f) {
			continue
		}
		cases = append(cases, struct {
			command []string
			write   func(w *resp.Writer)
		}{
			[]string{"EVAL", "return {double=tonumber(ARGV[1])}", "0", strconv.FormatFloat(f, 'g', -1, 64)},
			func(w *resp.Writer) { w.Double(f) },
		})
	}
	for proto := 2; proto <= 3; proto++ {
		hello := string(ask(t, socket, []byte(fmt.Sprintf("HELLO %d\r\n", proto))))
		_, hello, _ = strings.Cut(hello, "$2\r\nid\r\n") // the id differs
		_, hello, _ = strings.Cut(hello, "\r\n")
		for _, c := range cases {
			var request, want resp.Writer
			request.Array(len(c.command))
			for _, arg := range c.command {
				request.BulkString(arg)
			}
			want.SetProto(proto)
			c.write(&want)
			got := string(ask(t, socket, fmt.Appendf(nil, "HELLO %d\r\n%s", proto, request.Bytes())))
			_, got, found := strings.Cut(got, hello)
			if !found || got != string(want.Bytes()) {
				t.Errorf("%q in RESP%d: redis-server sends %q, the Writer %q", c.command, proto, got, want.Bytes())
			}
		}
	}
}

// TestRepliesReadByTidwall lets an independent reader parse RESP2.
func TestRepliesReadByTidwall(t *testing.T) {
	w := resp.NewWriter()
	w.Array(9)
	w.Status("fine")
	w.Error("ERR not")
	w.Int(-42)
	w.Bulk([]byte("a\r\nb"))
	w.Null()
	w.NullArray()
	w.Map(1)
	w.BulkString("k")
	w.Set(1)
	w.Bool(true)
	w.Double(0.5)
	w.Verbatim("txt", "text")
	v, n, err := tidwall.NewReader(bytes.NewReader(w.Bytes())).ReadValue()
	if err != nil || n != w.Len() || len(v.Array()) != 9 {
		t.Fatalf("tidwall/resp reads %d of %d bytes, %d elements, error %v", n, w.Len(), len(v.Array()), err)
	}
	a := v.Array()
	for i, want := range []string{"fine", "ERR not", "-42", "a\r\nb", "", "[]", "[k [1]]", "0.5", "text"} {
		if got := a[i].String(); got != want {
			t.Errorf("element %d is read as %q, want %q", i, got, want)
		}
	}
	for i, want := range []tidwall.Type{'+', '-', ':', '$', '$', '*', '*', '$', '$'} {
		if a[i].Type() != want {
			t.Errorf("element %d has type %q, want %q", i, rune(a[i].Type()), rune(want))
		}
	}
	if !a[4].IsNull() || !a[5].IsNull() {
		t.Error("nulls are not read as nulls")
	}
}

func TestResetKeepsLittleMemory(t *testing.T) {
	w := resp.NewWriter()
	w.Bulk(make([]byte, 1<<20))
	w.Reset()
	if w.Cap() != 0 || w.Len() != 0 {
		t.Errorf("after a reply of 1 MiB, Reset keeps %d bytes of memory and %d of replies", w.Cap(), w.Len())
	}
	// Batches of 64 KiB keep their memory while they go on, and lose it when
	// they stop.
	for range 100 {
		w.Bulk(make([]byte, 64<<10))
		w.Reset()
	}
	if w.Cap() < 64<<10 {
		t.Errorf("batches of 64 KiB keep only %d bytes", w.Cap())
	}
	for range 100 {
		w.Status("OK")
		w.Reset()
	}
	if w.Cap() > 16<<10 {
		t.Errorf("after a hundred small batches %d bytes are kept", w.Cap())
	}
}

func TestWriterRefusesMisuse(t *testing.T) {
	for name, misuse := range map[string]func(w *resp.Writer){
		"negative array":      func(w *resp.Writer) { w.Array(-1) },
		"negative map":        func(w *resp.Writer) { w.Map(-1) },
		"rewind to the front": func(w *resp.Writer) { w.Rewind(5) },
		"RESP4":               func(w *resp.Writer) { w.SetProto(4) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			misuse(resp.NewWriter())
		}()
	}
}
