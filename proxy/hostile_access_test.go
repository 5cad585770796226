package proxy

import (
	"bufio"
	"bytes"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// farConn is a connection that seems to come from elsewhere.
type farConn struct {
	net.Conn
	remote net.Addr
}

func (c farConn) RemoteAddr() net.Addr { return c.remote }

// from connects a client that seems to come from an address.
func (s *Server) from(t testing.TB, ip string) *testClient {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close() })
	go s.admit(farConn{far, &net.TCPAddr{IP: net.ParseIP(ip), Port: 4000}})
	return &testClient{t, near, bufio.NewReader(near)}
}

// Without a password only this machine may come.
func TestProtectedMode(t *testing.T) {
	s := startServer(t)
	admin := s.dial(t)
	for _, ip := range []string{"10.0.0.1", "192.168.1.1", "2001:db8::1", "0.0.0.0", "::ffff:10.0.0.1"} {
		c := s.from(t, ip)
		if got := c.read(); !strings.HasPrefix(got, "-DENIED ") {
			t.Errorf("a client from %s without a password: %s, want DENIED", ip, got)
		}
		if got := c.read(); got != "(closed)" {
			t.Errorf("a client from %s is not closed after its refusal: %s", ip, got)
		}
	}
	for _, ip := range []string{"127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"} {
		s.from(t, ip).want("PING", "+PONG")
	}
	admin.want("CONFIG SET requirepass sesame", "+OK")
	far := s.from(t, "10.0.0.1")
	far.want("PING", "-"+command.ErrNoAuth)
	far.want("AUTH sesame", "+OK")
	far.want("PING", "+PONG")
	admin.want("CONFIG SET requirepass nobody protected-mode no", "+OK")
	admin.send("CONFIG", "SET", "requirepass", "")
	if got := admin.read(); got != "+OK" {
		t.Fatal(got)
	}
	s.from(t, "10.0.0.1").want("PING", "+PONG")
}

// Before AUTH a client may AUTH, HELLO, QUIT and RESET, and nothing else, in
// whatever form it asks.
func TestBeforeAuth(t *testing.T) {
	s := startServer(t)
	s.dial(t).want("CONFIG SET requirepass sesame", "+OK")
	var all []*command.Spec
	for _, spec := range s.engine.Table.All() {
		all = append(all, spec)
		all = append(all, spec.Sub...)
	}
	free := map[string]bool{"auth": true, "hello": true, "quit": true, "reset": true}
	refused := 0
	for _, spec := range all {
		if len(spec.Sub) != 0 || spec.Parent() == nil && free[spec.Name] {
			continue
		}
		words := strings.Split(spec.FullName(), "|")
		for len(words) < max(spec.Arity, -spec.Arity) {
			words = append(words, "1")
		}
		c := s.dial(t)
		if got := c.do(strings.Join(words, " ")); !strings.HasSuffix(got, command.ErrNoAuth) {
			t.Errorf("%v before AUTH: %s", words, got)
		}
		c.conn.Close()
		refused++
	}
	if refused < 100 {
		t.Errorf("%d commands were tried; the table has more", refused)
	}
	c := s.dial(t)
	c.want("HELLO 3", "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
	c.want("AUTH wrong", "-"+errWrongPass)
	c.want("AUTH nobody sesame", "-"+errWrongPass)
	c.want("RESET", "+RESET")
	c.want("GET k", "-"+command.ErrNoAuth)
	c.want("AUTH default sesame", "+OK")
	c.want("GET k", "(nil)")
	c.want("RESET", "+RESET")
	c.want("GET k", "-"+command.ErrNoAuth)
	c.want("QUIT", "+OK")
}

// Passwords are shown nowhere.
func TestPasswordsAreNotShown(t *testing.T) {
	var log lockedBuffer
	s, err := New(Options{Families: command.Families(), Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(l)
	defer s.Close(time.Second)
	admin := s.dial(t)
	admin.want("CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 1000", "+OK")
	m := s.dial(t)
	m.want("MONITOR", "+OK")
	admin.want("CONFIG SET requirepass sesame1", "+OK")
	c := s.dial(t)
	for _, line := range []string{
		"AUTH sesame2", "AUTH default sesame2", "HELLO 3 AUTH default sesame2", "HELLO 9 AUTH default sesame1", "AUTH a sesame3 b",
		"AUTH sesame1", "HELLO 2 AUTH default sesame1 SETNAME me", "CONFIG SET requirepass sesame4 nonsense x",
		"MULTI", "AUTH sesame1", "HELLO 2 AUTH default sesame1", "EXEC", "CONFIG SET requirepass sesame6",
	} {
		c.do(line)
	}
	for _, line := range []string{"SLOWLOG GET -1", "INFO everything", "CLIENT LIST", "LATENCY DOCTOR", "COMMAND COUNT"} {
		if got := admin.do(line); strings.Contains(got, "sesame") {
			t.Errorf("%s shows a password: %s", line, got[max(0, strings.Index(got, "sesame")-80):])
		}
	}
	admin.want("ECHO the-end", `"the-end"`)
	for line := ""; !strings.Contains(line, "the-end"); {
		if line = m.read(); strings.Contains(line, "sesame") {
			t.Errorf("MONITOR shows a password: %s", line)
		}
	}
	if text := log.String(); strings.Contains(text, "sesame") {
		t.Errorf("the log shows a password: %s", text)
	}
}

// lockedBuffer is a log that many goroutines write to.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
