package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// exchange sends bytes as they are, half-closes, and returns all that comes back
// until the server closes.
func exchange(t testing.TB, addr string, in []byte) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(testTimeout))
	go func() {
		conn.Write(in)
		conn.(*net.TCPConn).CloseWrite()
	}()
	out, err := io.ReadAll(conn)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		t.Fatalf("%.60q: %v after %.60q", in, err, out)
	}
	return string(out)
}

// live is how many bytes the objects take that are in use.
func live() int64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// What a client may send before AUTH.
func TestUnauthenticatedSizes(t *testing.T) {
	s := startServer(t)
	s.dial(t).want("CONFIG SET requirepass sesame", "+OK")
	for in, want := range map[string]string{
		"*11\r\n":                    "-ERR Protocol error: unauthenticated multibulk length\r\n",
		"*2\r\n$4\r\nAUTH\r\n$16385": "-ERR Protocol error: unauthenticated bulk length\r\n",
	} {
		if strings.HasSuffix(in, "16385") {
			in += "\r\n"
		}
		if got := exchange(t, s.Addrs()[0].String(), []byte(in)); got != want {
			t.Errorf("%q before AUTH: got %q, want %q and the end", in, got, want)
		}
	}
}

// A length that is claimed is not memory that is taken.
func TestClaimedLengthsTakeNoMemory(t *testing.T) {
	s := startServer(t)
	before := live()
	const clients, sent = 64, 96 << 10
	body := append([]byte("*2147483647\r\n$536870912\r\n"), make([]byte, sent)...)
	for range clients {
		c := s.dial(t)
		if _, err := c.conn.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	var received int64
	eventually(t, "all bytes are received", func() bool {
		received = s.stats.netIn.Load()
		return received >= clients*int64(len(body))
	})
	limit := 2*received + clients<<20
	if held := s.queryMemory.Load(); held > limit {
		t.Errorf("%d bytes received of %d clients, %d held: more than twice and 1 MiB for each", received, clients, held)
	}
	if grown := live() - before; grown > limit {
		t.Errorf("%d bytes received, the heap grew by %d, want at most %d", received, grown, limit)
	}
}

// Requests that are no commands get the verdict of redis-server, byte for byte,
// and nothing after them is run.
func TestVerdictsAsRedis(t *testing.T) {
	s := startServer(t)
	judge := startRedis(t)
	requests := []string{
		"*1\r\n*1\r\n$4\r\nPING\r\n", // nested
		"*-1\r\nPING\r\n", "*0\r\nPING\r\n", "*-2\r\n*1\r\n$4\r\nPING\r\n",
		"*+1\r\n$4\r\nPING\r\n", "* 1\r\n$4\r\nPING\r\n", "*1 \r\n$4\r\nPING\r\n", "*01\r\n$4\r\nPING\r\n",
		"*9223372036854775808\r\n", "*99999999999999999999999\r\n", "*2147483648\r\n", "*x\r\n",
		"*1\r\n$-1\r\n", "*1\r\n$+4\r\nPING\r\n", "*1\r\n$ 4\r\nPING\r\n", "*1\r\n$4 \r\nPING\r\n", "*1\r\n$04\r\nPING\r\n",
		"*1\r\n$536870913\r\n", "*1\r\n$9223372036854775807\r\n", "*1\r\n$18446744073709551616\r\n", "*1\r\n$\r\n", "*1\r\n:4\r\n", "*1\r\nPING\r\n",
		"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n", // what stands for CRLF is not looked at
		"PING \"a\r\n", "PING 'a'b\r\n", "PING \"\\x41\\n\"\r\n",
		"\r\n\r\nPING\r\n", "*1\r\n$0\r\n\r\n",
		strings.Repeat("x", 65<<10), "*" + strings.Repeat("1", 65<<10), "*1\r\n$" + strings.Repeat("1", 65<<10),
	}
	for _, in := range requests {
		in := in + "*3\r\n$3\r\nSET\r\n$7\r\nhostile\r\n$1\r\n1\r\n"
		if len(in) > 1<<10 {
			in = in[:65<<10] // the rest would be unread when the connection is closed, and reset it
		}
		got, want := exchange(t, s.Addrs()[0].String(), []byte(in)), exchange(t, judge, []byte(in))
		if got != want {
			t.Errorf("%.80q\n have %q\n want %q", in, got, want)
		}
		ours, theirs := s.dial(t).do("GETDEL hostile"), dial(t, judge).do("GETDEL hostile")
		if ours != theirs {
			t.Errorf("%.80q: what followed left %s, in redis-server %s", in, ours, theirs)
		}
	}
}

// Clients that send halves of commands share one cap.
func TestHalfCommandsOfManyClients(t *testing.T) {
	s := startServer(t)
	admin := s.dial(t)
	const limit, clients = 4 << 20, 200
	admin.want(fmt.Sprintf("CONFIG SET client-query-memory-limit %d", limit), "+OK")
	half := append([]byte("*2\r\n$3\r\nGET\r\n$10000000\r\n"), make([]byte, 128<<10)...)
	for range clients {
		go func(conn net.Conn) { conn.Write(half) }(s.dial(t).conn)
	}
	eventually(t, "those beyond the cap are closed", func() bool { return s.stats.queryLimit.Load() > 100 })
	if held := s.queryMemory.Load(); held > limit+clients*smallQuery {
		t.Errorf("clients hold %d bytes with a cap of %d", held, limit)
	}
	admin.want("PING", "+PONG")
	s.dial(t).want("SET k 1", "+OK")
}

// Who does not read is closed at client-output-buffer-limit, in every way in
// which replies reach a client, and nobody waits for it.
func TestWhoDoesNotReadIsClosed(t *testing.T) {
	s := startServer(t)
	admin := s.dial(t)
	admin.send("CONFIG", "SET", "client-output-buffer-limit", "normal 4mb 0 0 pubsub 1mb 0 0")
	if got := admin.read(); got != "+OK" {
		t.Fatal(got)
	}
	admin.send("SET", "big", strings.Repeat("v", 5<<20))
	if got := admin.read(); got != "+OK" {
		t.Fatal(got)
	}
	closed := func(what string) {
		t.Helper()
		eventually(t, what+" is closed", func() bool { return s.clients.len() == 1 })
	}
	s.pipe(t).inline("GET big")
	closed("who asks for more than the hard limit")

	// All else stands in the pipe at its first byte.
	message := strings.Repeat("m", 64<<10)
	for _, way := range []string{"SUBSCRIBE ch", "PSUBSCRIBE c*", "MONITOR"} {
		c := s.pipe(t)
		c.inline(way)
		eventually(t, way+" is seen", func() bool { return s.hub.listening.Load() > 0 || s.engine.Monitors.Load() > 0 })
		start := time.Now()
		for range 64 {
			admin.send("PUBLISH", "ch", message)
			admin.read()
		}
		closed("who does not read after " + way)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: the publisher was held up for %v", way, took)
		}
	}
	if n := s.stats.outputLimit.Load(); n != 4 {
		t.Errorf("%d clients were closed at the limit, want 4", n)
	}

	// CLIENT KILL ends a client that is blocked in its write.
	c := s.pipe(t)
	c.inline("PING")
	eventually(t, "the reply waits to be read", func() bool {
		stuck := false
		s.clients.each(func(c *client) { stuck = stuck || c.out.pending.Load() > 0 })
		return stuck
	})
	admin.want("CLIENT KILL TYPE normal SKIPME yes", ":1")
	closed("a client killed while it writes")
}

// A pipeline of a million commands keeps its order and takes no more memory than
// a short one.
func TestPipelineOfAMillion(t *testing.T) {
	s := startServer(t)
	c := s.dial(t)
	n := 1_000_000
	if testing.Short() {
		n = 200_000 // under the race detector, a million outlast the client's patience
	}
	before := live()
	go func() {
		batch := bytes.Repeat([]byte("*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n"), 1000)
		for range n / 1000 {
			if _, err := c.conn.Write(batch); err != nil {
				return
			}
		}
	}()
	c.conn.SetReadDeadline(time.Now().Add(testTimeout))
	var peak atomic.Int64
	for i := 1; i <= n; i++ {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			t.Fatalf("reply %d: %v", i, err)
		}
		if want := fmt.Sprintf(":%d\r\n", i); string(line) != want {
			t.Fatalf("reply %d is %q, want %q", i, line, want)
		}
		if i%(n/4) == 0 {
			peak.Store(max(peak.Load(), live()-before))
		}
	}
	if p := peak.Load(); p > 4<<20 {
		t.Errorf("the pipeline took %d bytes of heap at its height, want at most 4 MiB", p)
	}
}

// Patterns that make a matcher with a stack try everything.
func TestPathologicalPatterns(t *testing.T) {
	s := startServer(t)
	c := s.dial(t)
	pattern := strings.Repeat("a*", 500) + "b"
	name := strings.Repeat("a", 20_000)
	start := time.Now()
	c.want("SET "+name+" 1", "+OK")
	c.want("KEYS "+pattern, "*[]")
	c.want("CONFIG GET "+pattern, "*[]")
	c.want("COMMAND LIST FILTERBY PATTERN "+pattern, "*[]")
	c.want("PUBSUB CHANNELS "+pattern, "*[]")
	l := s.dial(t)
	l.do("PSUBSCRIBE " + pattern)
	l.do("SUBSCRIBE " + name)
	c.want("PUBSUB CHANNELS "+pattern, "*[]")
	c.want("PUBLISH "+name+" m", ":1")
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("patterns of 500 stars on names of 20,000 bytes took %v", took)
	}
}

// What a web page makes a browser send ends the connection at its first word, before
// the command that it smuggles.
func TestBrowsersAreCutOff(t *testing.T) {
	s := startServer(t)
	for _, in := range []string{
		"POST / HTTP/1.1\r\nHost: localhost:6380\r\n\r\nSET smuggled 1\r\n",
		"Host: localhost\r\nSET smuggled 1\r\n",
		"*1\r\n$4\r\npost\r\nSET smuggled 1\r\n",
	} {
		if got := exchange(t, s.Addrs()[0].String(), []byte(in)); got != "" {
			t.Errorf("%q: got %q, want the end and no reply", in, got)
		}
	}
	s.dial(t).want("EXISTS smuggled", ":0")
}

// Who wants no replies gets none for a protocol error either.
func TestProtocolErrorUnderReplyOff(t *testing.T) {
	c := startServer(t).dial(t)
	if _, err := c.conn.Write([]byte("CLIENT REPLY OFF\r\n*1\r\n$abc\r\n")); err != nil {
		t.Fatal(err)
	}
	if got := c.read(); got != "(closed)" {
		t.Errorf("got %s, want the end of the connection", got)
	}
}
