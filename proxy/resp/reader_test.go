package resp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy/resp"
)

const setnx = "*3\r\n$5\r\nSETNX\r\n$8\r\nlock:key\r\n$16\r\n0123456789abcdef\r\n"

// multibulk encodes a command.
func multibulk(args ...string) []byte {
	var w resp.Writer
	w.Array(len(args))
	for _, arg := range args {
		w.BulkString(arg)
	}
	return w.Bytes()
}

// script is a source whose every Read does the next step.
type script []func(b []byte) (int, error)

func (s *script) Read(b []byte) (int, error) {
	if len(*s) == 0 {
		return 0, io.EOF
	}
	step := (*s)[0]
	*s = (*s)[1:]
	return step(b)
}

func send(text string) func(b []byte) (int, error) {
	return func(b []byte) (int, error) { return copy(b, text), nil }
}

func fail(err error) func(b []byte) (int, error) {
	return func([]byte) (int, error) { return 0, err }
}

func wantCommand(t *testing.T, r *resp.Reader, want ...string) (args [][]byte) {
	t.Helper()
	args, _, err := r.Next()
	if err != nil {
		t.Fatalf("Next: %v, want the command %q", err, want)
	}
	if got, want := fmt.Sprintf("%q", args), fmt.Sprintf("%q", want); got != want {
		t.Fatalf("Next: %.200s, want %.200s", got, want)
	}
	return args
}

func TestNextReadsOnlyWhenItMust(t *testing.T) {
	r := resp.NewReader(&script{
		send("PING\r\nECHO a\r\nECH"),
		send("O b\r\n"),
	}, nil)
	if r.Buffered() || r.QueryMemory() != 0 {
		t.Errorf("a new Reader is buffered (%v) or holds memory (%d)", r.Buffered(), r.QueryMemory())
	}
	wantCommand(t, r, "PING")
	if !r.Buffered() {
		t.Error("a whole command has been read, but Buffered is false")
	}
	wantCommand(t, r, "ECHO", "a")
	if r.Buffered() {
		t.Error("half a command has been read, but Buffered is true")
	}
	if got := r.Unread(); got != 3 {
		t.Errorf("Unread is %d after 3 bytes of a command", got)
	}
	wantCommand(t, r, "ECHO", "b")
	if r.Buffered() {
		t.Error("nothing is left, but Buffered is true")
	}
	if _, _, err := r.Next(); err != io.EOF {
		t.Errorf("Next at the end: %v, want io.EOF", err)
	}
	if !r.Buffered() {
		t.Error("Next would return io.EOF without reading, but Buffered is false")
	}
}

func TestBufferedKeepsViews(t *testing.T) {
	r := resp.NewReader(strings.NewReader("ECHO \"a b\"\r\nECHO \"c d\"\r\nECHO e\r\n*x\r\n"), nil)
	for _, want := range []string{"a b", "c d", "e"} {
		args := wantCommand(t, r, "ECHO", want)
		for range 2 { // asking changes nothing
			if !r.Buffered() {
				t.Fatalf("after %q: Buffered is false", want)
			}
		}
		if got := fmt.Sprintf("%s", args); got != "[ECHO "+want+"]" {
			t.Fatalf("Buffered changed the arguments to %s", got)
		}
	}
	var bad *resp.ProtocolError
	if _, _, err := r.Next(); !errors.As(err, &bad) {
		t.Fatalf("Next: %v, want a protocol error", err)
	}
}

func TestBufferedSeesNewLimits(t *testing.T) {
	lim := new(resp.Limits)
	big := strings.Repeat("x", 20000)
	r := resp.NewReader(bytes.NewReader(append([]byte("AUTH x\r\n"), multibulk("ECHO", big)...)), lim)
	wantCommand(t, r, "AUTH", "x")
	lim.Authenticated = true
	wantCommand(t, r, "ECHO", big)
}

func TestTimeoutIsNotTheEnd(t *testing.T) {
	r := resp.NewReader(&script{
		send("*1\r\n$4\r\nPI"), fail(os.ErrDeadlineExceeded), send("NG\r\n"), fail(os.ErrClosed),
	}, nil)
	if _, _, err := r.Next(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("Next: %v, want the timeout", err)
	}
	wantCommand(t, r, "PING")
	for range 2 {
		if _, _, err := r.Next(); !errors.Is(err, os.ErrClosed) {
			t.Fatalf("Next: %v, want the source's error", err)
		}
	}
}

func TestSourceWithoutProgress(t *testing.T) {
	r := resp.NewReader(readerFunc(func([]byte) (int, error) { return 0, nil }), nil)
	if _, _, err := r.Next(); err != io.ErrNoProgress {
		t.Errorf("Next: %v, want io.ErrNoProgress", err)
	}
	r = resp.NewReader(readerFunc(func(b []byte) (int, error) { return len(b) + 1, nil }), nil)
	if _, _, err := r.Next(); err == nil {
		t.Error("a source that returns more than asked for goes unnoticed")
	}
}

type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func TestReadAhead(t *testing.T) {
	var src script
	r := resp.NewReader(&src, nil)
	src = script{send(setnx)}
	args := wantCommand(t, r, "SETNX", "lock:key", "0123456789abcdef")

	// More than the free space, so that the buffer has to be replaced while the
	// views are in use.
	var sent int
	for {
		src = script{func(b []byte) (int, error) {
			for i := range b {
				b[i] = "PING\r\n"[(sent+i)%6]
			}
			sent += len(b)
			return len(b), nil
		}}
		_, err := r.ReadAhead()
		if err == resp.ErrReadAheadFull {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if sent != resp.DefaultMaxReadAhead || r.Unread() != sent {
		t.Errorf("read ahead %d bytes, %d unread, want %d", sent, r.Unread(), resp.DefaultMaxReadAhead)
	}
	if got := fmt.Sprintf("%s", args); got != "[SETNX lock:key 0123456789abcdef]" {
		t.Errorf("ReadAhead changed the views to %s", got)
	}
	src = nil
	for range sent / 6 {
		wantCommand(t, r, "PING")
	}
	if sent%6 == 0 {
		t.Fatal("the test should end within a command")
	}
	if _, _, err := r.Next(); err != io.ErrUnexpectedEOF {
		t.Errorf("Next: %v, want io.ErrUnexpectedEOF", err)
	}
}

func TestReadAheadSeesTheEnd(t *testing.T) {
	src := script{send("PING\r\n"), send("ECHO a\r\n"), fail(os.ErrDeadlineExceeded), fail(io.EOF)}
	r := resp.NewReader(&src, nil)
	wantCommand(t, r, "PING")
	if n, err := r.ReadAhead(); n != 8 || err != nil {
		t.Errorf("ReadAhead: %d, %v", n, err)
	}
	if _, err := r.ReadAhead(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("ReadAhead: %v, want the timeout", err)
	}
	if _, err := r.ReadAhead(); err != io.EOF {
		t.Errorf("ReadAhead: %v, want io.EOF", err)
	}
	wantCommand(t, r, "ECHO", "a")
	if _, _, err := r.Next(); err != io.EOF {
		t.Errorf("Next: %v, want io.EOF", err)
	}
}

// TestClaimsTakeNoMemory sends claims of much and bytes of little.
func TestClaimsTakeNoMemory(t *testing.T) {
	for _, in := range []string{
		"*2147483647\r\n",
		"*1\r\n$536870912\r\n",
		"*1\r\n$536870912\r\n" + strings.Repeat("x", 100_000),
		"*2147483647\r\n" + strings.Repeat("$0\r\n\r\n", 100_000),
		"*2147483647\r\n" + strings.Repeat("$536870912\r\n", 1),
	} {
		for _, size := range []int{1 << 20, 1000} {
			var held, most int
			lim := resp.Limits{Authenticated: true, Grow: func(delta int) error {
				held += delta
				most = max(most, held)
				return nil
			}}
			r := resp.NewReader(&chunks{[]byte(in), size}, &lim)
			if _, _, err := r.Next(); err != io.ErrUnexpectedEOF {
				t.Errorf("%.40q: %v, want io.ErrUnexpectedEOF", in, err)
			}
			if bound := 2*len(in) + 1<<20; most > bound || r.QueryMemory() != held {
				t.Errorf("%.40q of %d bytes: %d bytes taken, want at most %d; QueryMemory %d, Grow told of %d",
					in, len(in), most, bound, r.QueryMemory(), held)
			}
			r.Release()
			if r.QueryMemory() != 0 || held != 0 {
				t.Errorf("%.40q: after Release QueryMemory is %d, Grow told of %d", in, r.QueryMemory(), held)
			}
		}
	}
}

// chunks is a source that returns at most size bytes at once.
type chunks struct {
	rest []byte
	size int
}

func (c *chunks) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.rest[:min(c.size, len(c.rest))])
	c.rest = c.rest[n:]
	return n, nil
}

func TestMemoryIsGivenBack(t *testing.T) {
	var held int
	lim := resp.Limits{Authenticated: true, Grow: func(delta int) error { held += delta; return nil }}
	big := strings.Repeat("x", 8<<20)
	many := make([]string, 100_000)
	for i := range many {
		many[i] = "x"
	}
	waits := func(b []byte) (int, error) { return 0, os.ErrDeadlineExceeded }
	for name, command := range map[string][]byte{
		"one argument of 8 MiB":        multibulk("ECHO", big),
		"a hundred thousand arguments": multibulk(many...),
		"inline with quotes":           []byte(`ECHO "` + big[:60000] + "\"\r\n"),
	} {
		r := resp.NewReader(io.MultiReader(bytes.NewReader(command), readerFunc(waits)), &lim)
		if _, raw, err := r.Next(); err != nil || !bytes.Equal(raw, command) {
			t.Fatalf("%s: error %v, or raw is not the command", name, err)
		}
		r.Next() // waits
		if r.QueryMemory() > 128<<10 || held != r.QueryMemory() {
			t.Errorf("%s: then waiting holds %d bytes, Grow told of %d", name, r.QueryMemory(), held)
		}
		r.Release()
		if held != 0 {
			t.Errorf("%s: after Release Grow is told of %d bytes", name, held)
		}
	}
}

func TestGrowRefuses(t *testing.T) {
	full := errors.New("query memory of all clients is used up")
	limit, held := 1<<20, 0
	lim := resp.Limits{Authenticated: true, Grow: func(delta int) error {
		if held+delta > limit && delta > 0 {
			return full
		}
		held += delta
		return nil
	}}
	r := resp.NewReader(bytes.NewReader(multibulk("ECHO", strings.Repeat("x", 4<<20))), &lim)
	for range 2 {
		if _, _, err := r.Next(); err != full {
			t.Fatalf("Next: %v, want what Grow returned", err)
		}
	}
	r.Release()
	if held != 0 {
		t.Errorf("after Release %d bytes are held", held)
	}
}

func TestMaxQuery(t *testing.T) {
	command := multibulk("ECHO", strings.Repeat("x", 2000))
	for _, size := range []int{1, 100, 1 << 20} {
		lim := resp.Limits{Authenticated: true, MaxQuery: len(command)}
		r := resp.NewReader(&chunks{command, size}, &lim)
		if _, _, err := r.Next(); err != nil {
			t.Errorf("command as long as MaxQuery, in pieces of %d: %v", size, err)
		}
		lim.MaxQuery--
		r = resp.NewReader(&chunks{command, size}, &lim)
		if _, _, err := r.Next(); err != resp.ErrQueryLimit {
			t.Errorf("command one byte longer than MaxQuery, in pieces of %d: %v, want ErrQueryLimit", size, err)
		}
	}
}

func TestLimitsAtTheEdge(t *testing.T) {
	for _, c := range []struct {
		lim  resp.Limits
		in   string
		want string
	}{
		{resp.Limits{MaxBulk: 3}, "*1\r\n$3\r\nabc\r\n", `"abc"; EOF`},
		{resp.Limits{MaxBulk: 3}, "*1\r\n$4\r\nabcd\r\n", "ERR Protocol error: invalid bulk length"},
		{resp.Limits{MaxMultibulk: 1}, "*1\r\n$1\r\na\r\n", `"a"; EOF`},
		{resp.Limits{MaxMultibulk: 1}, "*2\r\n$1\r\na\r\n$1\r\nb\r\n", "ERR Protocol error: invalid multibulk length"},
		{resp.Limits{MaxInline: 4}, "PING\n", `"PING"; EOF`},
		{resp.Limits{MaxInline: 4}, "PING \n", "ERR Protocol error: too big inline request"},
		{resp.Limits{MaxBulk: 1<<63 - 1}, "*1\r\n$9223372036854775807\r\nx", "cut"},
	} {
		c.lim.Authenticated = true
		if got, _, _ := transcribe(strings.NewReader(c.in), &c.lim); got != c.want {
			t.Errorf("%q with %+v: %s, want %s", c.in, c.lim, got, c.want)
		}
	}
}

// TestLongPipeline sends a million commands and watches memory and order.
func TestLongPipeline(t *testing.T) {
	const total = 1_000_000
	sent := 0
	var rest []byte
	src := readerFunc(func(b []byte) (int, error) {
		n := 0
		for n < len(b) {
			if len(rest) == 0 {
				if sent == total {
					break
				}
				rest = fmt.Appendf(rest[:0], "*2\r\n$4\r\nECHO\r\n$7\r\n%07d\r\n", sent)
				sent++
			}
			m := copy(b[n:], rest)
			n += m
			rest = rest[m:]
		}
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	})
	r := resp.NewReader(src, &resp.Limits{Authenticated: true})
	for i := range total {
		args, _, err := r.Next()
		if err != nil {
			t.Fatalf("command %d: %v", i, err)
		}
		n := 0
		for _, c := range args[1] {
			n = n*10 + int(c-'0')
		}
		if n != i {
			t.Fatalf("command %d came where %d should be", n, i)
		}
		if r.QueryMemory() > 64<<10 {
			t.Fatalf("command %d: %d bytes held", i, r.QueryMemory())
		}
	}
	if _, _, err := r.Next(); err != io.EOF {
		t.Fatalf("after the last: %v", err)
	}
}

// TestBigCommandsAreLinear bounds all that is allocated on the way to a big
// command, which bounds what is copied.
func TestBigCommandsAreLinear(t *testing.T) {
	bulks := []string{"MSET"}
	for range 64 {
		bulks = append(bulks, strings.Repeat("x", 1<<20))
	}
	for name, command := range map[string][]byte{
		"one bulk of 64 MiB":   multibulk("ECHO", strings.Repeat("x", 64<<20)),
		"64 bulks of 1 MiB":    multibulk(bulks...),
		"a million of 4 bytes": append([]byte("*1000000\r\n"), bytes.Repeat([]byte("$4\r\nabcd\r\n"), 1_000_000)...),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := resp.NewReader(&chunks{command, 64 << 10}, &resp.Limits{Authenticated: true})
		start := time.Now()
		_, raw, err := r.Next()
		runtime.ReadMemStats(&after)
		if err != nil || len(raw) != len(command) {
			t.Fatalf("%s: %v, %d of %d bytes", name, err, len(raw), len(command))
		}
		if got, want := int(after.TotalAlloc-before.TotalAlloc), 6*len(command)+1<<20; got > want {
			t.Errorf("%s: %d bytes allocated for %d, want at most %d", name, got, len(command), want)
		}
		t.Logf("%s: %d bytes allocated for %d, in %v", name, after.TotalAlloc-before.TotalAlloc, len(command), time.Since(start))
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	in := bytes.Repeat([]byte(setnx+"GET lock:key\r\n"), 100)
	src := bytes.NewReader(in)
	r := resp.NewReader(src, nil)
	drain := func() {
		src.Reset(in)
		for range 200 {
			if _, _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
			r.Buffered()
		}
	}
	if n := testing.AllocsPerRun(100, drain); n != 0 {
		t.Errorf("200 commands allocate %v times, want 0", n)
	}
}
