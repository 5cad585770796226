package proxy

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/latchkey-proxy/latchkey/proxy/upstream"
	"github.com/latchkey-proxy/latchkey/store/command"
	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout is how long a test waits for what must happen soon.
const testTimeout = 20 * time.Second

// startServer serves the proxy's commands and the data families on a free port
// of the loopback interface, until the test ends.
func startServer(t testing.TB, families ...[]*command.Spec) *Server {
	t.Helper()
	return startServerWith(t, Options{Families: families})
}

// transport are the directives that say how clients are served: event-loops as
// LATCHKEY_EVENT_LOOPS wants it, so that the same tests can be run on loops and on
// goroutines (make test does both).
func transport() []string {
	if n := os.Getenv("LATCHKEY_EVENT_LOOPS"); n != "" {
		return []string{"--event-loops", n}
	}
	return nil
}

// testClient is a connection to a server, the one under test or redis-server.
type testClient struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
}

func dial(t testing.TB, addr string) *testClient {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatalf("dial %s: %v", addr, err)
	}
	t.Cleanup(func() { conn.Close() })
	return &testClient{t, conn, bufio.NewReader(conn)}
}

func (s *Server) dial(t testing.TB) *testClient {
	t.Helper()
	return dial(t, s.Addrs()[0].String())
}

func (c *testClient) send(args ...string) {
	c.t.Helper()
	b := make([][]byte, len(args))
	for i, a := range args {
		b[i] = []byte(a)
	}
	if _, err := c.conn.Write(upstream.AppendCommand(nil, b...)); err != nil {
		c.t.Fatalf("send %q: %v", args, err)
	}
}

// read reads one frame and shows it in one line; "(closed)" at the end of the
// connection.
func (c *testClient) read() string {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(testTimeout))
	r, err := transcript.ReadReply(c.r)
	if err != nil {
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			c.t.Fatalf("no reply within %v", testTimeout)
		}
		return "(closed)"
	}
	return show(r)
}

// do sends a command of words without blanks and returns its reply.
func (c *testClient) do(line string) string {
	c.t.Helper()
	c.send(strings.Fields(line)...)
	return c.read()
}

// want fails the test unless the reply to the command is the given one.
func (c *testClient) want(line, reply string) {
	c.t.Helper()
	if got := c.do(line); got != reply {
		c.t.Fatalf("%s\n got %s\nwant %s", line, got, reply)
	}
}

// show is a reply in one line.
func show(r transcript.Reply) string {
	switch r.Kind {
	case transcript.Status, transcript.Error, transcript.Int, transcript.Double, transcript.Bool, transcript.Big:
		return string(r.Kind) + r.Text
	case transcript.Bulk:
		return strconv.Quote(r.Text)
	case transcript.Verbatim:
		return "=" + strconv.Quote(r.Text)
	case transcript.Null, transcript.NilBulk, transcript.NilArray:
		return "(nil)"
	}
	var b strings.Builder
	b.WriteByte(byte(r.Kind))
	b.WriteByte('[')
	for i, e := range r.Elems {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(show(e))
	}
	b.WriteByte(']')
	return b.String()
}

// eventually asks until the answer is yes.
func eventually(t testing.TB, what string, yes func() bool) {
	t.Helper()
	deadline := time.Now().Add(testTimeout)
	for !yes() {
		if time.Now().After(deadline) {
			t.Fatalf("did not come true within %v: %s", testTimeout, what)
		}
		time.Sleep(time.Millisecond)
	}
}

// startRedis starts the redis-server that judges replies, or skips the test.
func startRedis(t testing.TB) string {
	t.Helper()
	return transcript.StartJudge(t).Addr
}

// field is the value of a field in a line of CLIENT LIST.
func field(line, name string) string {
	for _, f := range strings.Fields(line) {
		if v, ok := strings.CutPrefix(f, name+"="); ok {
			return v
		}
	}
	return fmt.Sprintf("(no field %s in %q)", name, line)
}
