package histories

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/latchkey-proxy/latchkey/proxy"
	"github.com/latchkey-proxy/latchkey/proxy/config"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

func TestMain(m *testing.M) {
	// As the program does: a spinning script has a processor of its own beside
	// those that serve the network.
	runtime.GOMAXPROCS(2 * runtime.NumCPU())
	goleak.VerifyTestMain(m)
}

// soon is how long a test waits for what must happen.
const soon = 30 * time.Second

// server is a whole server on a loopback port, with a clock that the test moves
// and a log that the test reads.
type server struct {
	*proxy.Server
	t     testing.TB
	addr  string
	clock *store.ManualClock
	log   *effectLog
	doors *doors
}

// firstMilli is what the clock of a server shows in the beginning. The time is
// an easy one to read in a failing history.
const firstMilli = 1_000_000_000

// start serves until the test ends. The periodic work of a server does not run;
// a test that wants the expiry cycle calls it.
func start(t testing.TB) *server {
	t.Helper()
	s := &server{t: t, clock: store.NewManualClock(firstMilli), log: &effectLog{}, doors: newDoors()}
	var directives []string // as in the tests of package proxy
	if n := os.Getenv("LATCHKEY_EVENT_LOOPS"); n != "" {
		directives = []string{"--event-loops", n}
	}
	cfg, err := config.Load(config.ParseArgs(directives, nil))
	if err != nil {
		t.Fatal(err)
	}
	families := append(command.Families(), heldCommands(s.doors), luaCommands(t))
	p, err := proxy.New(proxy.Options{
		Config:    cfg,
		Families:  families,
		Log:       slog.New(slog.NewTextHandler(io.Discard, nil)),
		Clock:     s.clock,
		EffectLog: s.log,
	})
	if err != nil {
		t.Fatalf("proxy.New: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen on a free loopback port: %v", err)
	}
	p.Serve(l)
	s.Server, s.addr = p, l.Addr().String()
	t.Cleanup(func() {
		s.doors.openAll()
		if err := p.Close(soon); err != nil {
			t.Errorf("Close: %v", err)
		}
		if n := p.Store().Counter.LockWaiting.Load(); n != 0 {
			t.Errorf("%d transactions stand in a queue after Close, want none", n)
		}
	})
	return s
}

// effectLog is the log of a server in memory: each transaction's effects as the
// commands that replay them, databases included. It refuses to append when it
// is told to.
type effectLog struct {
	store.MemoryLog

	mu      sync.Mutex
	refuse  func() bool
	records [][]byte
	db      int // selected by the records so far
	keep    bool
	refused int
}

var errRefused = errors.New("the test's log is full")

// Append implements store.EffectLog.
func (l *effectLog) Append(effects []store.Effect) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuse != nil && l.refuse() {
		l.refused++
		return 0, errRefused
	}
	if l.keep {
		var rec []byte
		for i := range effects {
			if effects[i].DB != l.db {
				l.db = effects[i].DB
				rec = appendCommand(rec, "SELECT", strconv.Itoa(l.db))
			}
			rec = effects[i].AppendRESP(rec)
		}
		l.records = append(l.records, rec)
	}
	return l.MemoryLog.Append(effects)
}

// refuseSome lets about one append of n fail.
func (l *effectLog) refuseSome(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse = nil
	if n > 0 {
		l.refuse = func() bool { return rand.IntN(n) == 0 }
	}
}

// client is a connection. Its methods belong to one goroutine.
type client struct {
	conn net.Conn
	r    *bufio.Reader
	buf  []byte
	// peeking, when set, is closed by another goroutine that reads ahead.
	peeking <-chan struct{}
}

// dial connects; the connection ends with the test at the latest.
func (s *server) dial() *client {
	s.t.Helper()
	c, err := s.connect()
	if err != nil {
		s.t.Fatalf("connect to the server: %v", err)
	}
	s.t.Cleanup(func() { c.conn.Close() })
	return c
}

func (s *server) connect() (*client, error) {
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, r: bufio.NewReader(conn)}, nil
}

func (c *client) send(args ...string) error {
	c.buf = appendCommand(c.buf[:0], args...)
	_, err := c.conn.Write(c.buf)
	return err
}

func (c *client) read() (transcript.Reply, error) {
	c.conn.SetReadDeadline(time.Now().Add(soon))
	if c.peeking != nil {
		<-c.peeking
		c.peeking = nil
	}
	return transcript.ReadReply(c.r)
}

// do sends a command and reads its reply.
func (c *client) do(args ...string) (transcript.Reply, error) {
	if err := c.send(args...); err != nil {
		return transcript.Reply{}, err
	}
	return c.read()
}

// must is do for a command that the connection must survive.
func (s *server) must(c *client, args ...string) transcript.Reply {
	s.t.Helper()
	r, err := c.do(args...)
	if err != nil {
		s.t.Fatalf("%.60q: %v", args, err)
	}
	return r
}

// want fails the test unless the reply's text is the given one. An absent value
// is "(nil)".
func (s *server) want(c *client, text string, args ...string) {
	s.t.Helper()
	if got := textOf(s.must(c, args...)); got != text {
		s.t.Fatalf("%.60q: got %q, want %q", args, got, text)
	}
}

func textOf(r transcript.Reply) string {
	switch r.Kind {
	case transcript.NilBulk, transcript.NilArray, transcript.Null:
		return "(nil)"
	}
	return r.Text
}

func appendCommand(dst []byte, args ...string) []byte {
	dst = append(dst, '*')
	dst = strconv.AppendInt(dst, int64(len(args)), 10)
	dst = append(dst, "\r\n"...)
	for _, a := range args {
		dst = append(dst, '$')
		dst = strconv.AppendInt(dst, int64(len(a)), 10)
		dst = append(dst, "\r\n"...)
		dst = append(dst, a...)
		dst = append(dst, "\r\n"...)
	}
	return dst
}

// eventually waits for something that nobody announces.
func (s *server) eventually(what string, yes func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(soon); !yes(); runtime.Gosched() {
		if time.Now().After(deadline) {
			s.t.Fatalf("did not come true within %v: %s", soon, what)
		}
	}
}

// waiting is the number of transactions that stand in the queue of a key.
func (s *server) waiting() int { return int(s.Store().Counter.LockWaiting.Load()) }
