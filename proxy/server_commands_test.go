package proxy

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy/config"
	"github.com/latchkey-proxy/latchkey/store/command"
	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// startServerWith is startServer with directives ("--name value ...") and
// options of the test's own.
func startServerWith(t testing.TB, o Options, directives ...string) *Server {
	t.Helper()
	cfg, err := config.Load(config.ParseArgs(append(transport(), directives...), nil))
	if err != nil {
		t.Fatalf("directives %q: %v", directives, err)
	}
	o.Config, o.Families = cfg, append(command.Families(), o.Families...)
	o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := New(o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen on a free loopback port: %v", err)
	}
	s.Serve(l)
	t.Cleanup(func() {
		if err := s.Close(time.Second); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// text asks for a bulk or verbatim string.
func (c *testClient) text(words ...string) string {
	c.t.Helper()
	c.send(words...)
	c.conn.SetReadDeadline(time.Now().Add(testTimeout))
	r, err := transcript.ReadReply(c.r)
	if err != nil || r.Kind != transcript.Bulk && r.Kind != transcript.Verbatim {
		c.t.Fatalf("%s: got %s (%v), want a text", strings.Join(words, " "), show(r), err)
	}
	return r.Text
}

func TestServerCommandsAgainstRedis(t *testing.T) {
	redis := startRedis(t)
	s := startServerWith(t, Options{}, "--enable-debug-command", "local")
	theirs := dial(t, redis)
	if got := theirs.do("DEBUG SLEEP 0"); got != "+OK" {
		t.Fatalf("the redis-server of the tests does not allow DEBUG: %s", got)
	}
	lines := []string{
		"SLOWLOG HELP", "LATENCY HELP", "MEMORY HELP", "ACL HELP", "CONFIG HELP",
		"SLOWLOG GET x", "SLOWLOG GET -2", "SLOWLOG GET 1 2", "SLOWLOG FOO",
		"LATENCY HISTORY none", "LATENCY GRAPH none", "LATENCY RESET none", "LATENCY HISTOGRAM none", "LATENCY FOO",
		"MEMORY USAGE none", "MEMORY USAGE none SAMPLES x", "MEMORY USAGE none SAMPLES -1", "MEMORY USAGE none FOO", "MEMORY FOO",
		"ACL WHOAMI", "ACL USERS", "ACL LIST", "ACL GETUSER default", "ACL GETUSER none", "ACL CAT", "ACL CAT none", "ACL CAT read x",
		"ACL DELUSER default", "ACL DELUSER none", "ACL SETUSER", "ACL GENPASS 0", "ACL GENPASS 4097", "ACL GENPASS x", "ACL GENPASS 1 2",
		"ACL LOG", "ACL LOG 5", "ACL LOG x", "ACL LOG RESET", "ACL DRYRUN none get", "ACL DRYRUN default none", "ACL DRYRUN default get",
		"ACL DRYRUN default get k", "ACL DRYRUN default", "ACL FOO",
		"ROLE", "ROLE x", "REPLICAOF NO ONE", "REPLICAOF h", "REPLICAOF h port", "REPLICAOF h 65536", "SLAVEOF no one",
		"SHUTDOWN FOO", "SHUTDOWN SAVE NOSAVE", "SHUTDOWN ABORT", "SHUTDOWN ABORT NOW", "SHUTDOWN NOSAVE ABORT",
		"SAVE x", "BGSAVE FOO", "LASTSAVE x", "BGREWRITEAOF x", "TIME x", "LOLWUT VERSION x",
		"DEBUG", "DEBUG FOO", "DEBUG SLEEP", "DEBUG SLEEP 0", "DEBUG SLEEP abc", "DEBUG SLEEP -1", "DEBUG JMAP", "DEBUG OBJECT", "DEBUG OBJECT none",
		"DEBUG ERROR ABC", "DEBUG SET-ACTIVE-EXPIRE 0", "DEBUG SET-ACTIVE-EXPIRE 1", "DEBUG CHANGE-REPL-ID", "DEBUG PROTOCOL none",
	}
	for _, kind := range []string{"string", "integer", "double", "bignum", "null", "array", "set", "map", "true", "false", "verbatim"} {
		lines = append(lines, "DEBUG PROTOCOL "+kind)
	}
	compareWithRedis(t, s, redis, lines)
}

// Attributes and pushes are no replies, so they are compared byte for byte.
func TestDebugProtocolBesideReplies(t *testing.T) {
	redis := startRedis(t)
	s := startServerWith(t, Options{}, "--enable-debug-command", "yes")
	read := func(c *testClient, n int) string {
		b := make([]byte, n)
		c.conn.SetReadDeadline(time.Now().Add(testTimeout))
		if _, err := io.ReadFull(c.r, b); err != nil {
			t.Fatalf("DEBUG PROTOCOL attrib: %q, then %v", b, err)
		}
		return string(b)
	}
	const want3 = "|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n$39\r\nSome real reply following the attribute\r\n"
	const push3 = ">2\r\n$16\r\nserver-cpu-usage\r\n:42\r\n$40\r\nSome real reply following the push reply\r\n"
	const want2 = "$39\r\nSome real reply following the attribute\r\n"
	for name, c := range map[string]*testClient{"redis": dial(t, redis), "latchkey": s.dial(t)} {
		c.send("DEBUG", "PROTOCOL", "attrib")
		if got := read(c, len(want2)); got != want2 {
			t.Errorf("%s, RESP2: got %q, want %q", name, got, want2)
		}
		c.want("DEBUG PROTOCOL push", "-ERR RESP2 is not supported by this command")
		c.do("HELLO 3")
		c.send("DEBUG", "PROTOCOL", "attrib")
		if got := read(c, len(want3)); got != want3 {
			t.Errorf("%s, RESP3: got %q, want %q", name, got, want3)
		}
		c.send("DEBUG", "PROTOCOL", "push")
		if got := read(c, len(push3)); got != push3 {
			t.Errorf("%s, RESP3: got %q, want %q", name, got, push3)
		}
	}
}

func TestDebugIsProtected(t *testing.T) {
	c := startServerWith(t, Options{}).dial(t)
	const want = `-ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.`
	for _, line := range []string{"DEBUG SLEEP 0", "DEBUG HELP", "DEBUG NOSUCH"} {
		c.want(line, want)
	}
}

func TestDebugSleepHoldsUpItsClientOnly(t *testing.T) {
	s := startServerWith(t, Options{}, "--enable-debug-command", "yes")
	sleeper, other := s.dial(t), s.dial(t)
	sleeper.want("CLIENT ID", ":1")
	sleeper.send("DEBUG", "SLEEP", "3000")
	eventually(t, "the sleeper is within DEBUG SLEEP", func() bool {
		return strings.Contains(other.text("CLIENT", "LIST", "ID", "1"), "cmd=debug")
	})
	other.want("SET k v", "+OK")
	other.want("CLIENT KILL ID 1", ":1")
	if got := sleeper.read(); got != "(closed)" {
		t.Errorf("the killed sleeper read %s, want the end of its connection", got)
	}
	eventually(t, "the sleeper's goroutine ends", func() bool { return s.clients.len() == 1 })
}

func TestDebugObject(t *testing.T) {
	c := startServerWith(t, Options{}, "--enable-debug-command", "yes").dial(t)
	for _, tt := range []struct{ value, encoding string }{
		{"12", "int"}, {"abc", "embstr"}, {strings.Repeat("x", 45), "raw"},
	} {
		c.want("SET k "+tt.value, "+OK")
		if got := c.do("DEBUG OBJECT k"); !strings.Contains(got, " encoding:"+tt.encoding+" ") {
			t.Errorf("DEBUG OBJECT of %q: %s, want encoding:%s", tt.value, got, tt.encoding)
		}
	}
	// It is the one that OBJECT ENCODING names, however the value was made.
	for _, command := range []string{"SET k 12", "INCRBYFLOAT k 1", "APPEND k 4", "SETRANGE k 0 " + strings.Repeat("x", 45)} {
		c.do(command)
		encoding := strings.Trim(c.do("OBJECT ENCODING k"), `"`)
		if got := c.do("DEBUG OBJECT k"); !strings.Contains(got, " encoding:"+encoding+" ") {
			t.Errorf("DEBUG OBJECT after %s: %s, want encoding:%s", command, got, encoding)
		}
	}
	c.want("MULTI", "+OK")
	c.want("DEBUG OBJECT k", "+QUEUED")
	if got := c.do("EXEC"); !strings.Contains(got, "encoding:raw") {
		t.Errorf("DEBUG OBJECT within MULTI: %s", got)
	}
	c.want("SET k w", "+OK") // the key was let go
}

func TestShutdown(t *testing.T) {
	asked := make(chan struct{}, 1)
	s := startServerWith(t, Options{Shutdown: func() { asked <- struct{}{} }})
	c := s.dial(t)
	c.send("SET", "k", "v")
	c.send("SHUTDOWN", "NOSAVE")
	if got := c.read(); got != "+OK" {
		t.Errorf("the reply before SHUTDOWN: %s, want +OK", got)
	}
	if got := c.read(); got != "(closed)" {
		t.Errorf("after SHUTDOWN: %s, want the end of the connection and no reply", got)
	}
	select {
	case <-asked:
	default:
		t.Error("Options.Shutdown was not called")
	}
	alone := startServerWith(t, Options{}).dial(t)
	if got := alone.do("SHUTDOWN"); !strings.HasPrefix(got, "-ERR ") {
		t.Errorf("SHUTDOWN without Options.Shutdown: %s, want an error", got)
	}
}

func TestLolwut(t *testing.T) {
	c := startServerWith(t, Options{}).dial(t)
	c.do("HELLO 3")
	for _, line := range []string{"LOLWUT", "LOLWUT VERSION 5", "LOLWUT VERSION 5 1000000000", "LOLWUT VERSION 6 -7", "LOLWUT FOO"} {
		got := c.text(strings.Fields(line)...)
		if !strings.HasSuffix(got, "Redis ver. "+RedisVersion+"\n") || len(got) > 2000 {
			t.Errorf("%s: %d bytes ending in %q", line, len(got), got[max(0, len(got)-40):])
		}
	}
	if a, b := drawKey(5, func(int) int { return 0 }), drawKey(5, func(n int) int { return n - 1 }); a == b {
		t.Error("keys that are cut differently look alike")
	}
}

func TestACLShowsThePasswordAsDigestOnly(t *testing.T) {
	c := startServerWith(t, Options{}, "--requirepass", "foo").dial(t)
	c.want("AUTH foo", "+OK")
	const digest = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	c.want("ACL LIST", `*["user default on #`+digest+` ~* &* +@all"]`)
	if got := c.do("ACL GETUSER default"); !strings.Contains(got, `"passwords" *["`+digest+`"]`) || strings.Contains(got, "nopass") {
		t.Errorf("ACL GETUSER default: %s", got)
	}
	for bits, length := range map[string]int{"1": 1, "5": 2, "256": 64, "4096": 1024} {
		if got := c.text("ACL", "GENPASS", bits); len(got) != length {
			t.Errorf("ACL GENPASS %s has %d digits, want %d", bits, len(got), length)
		}
	}
}
