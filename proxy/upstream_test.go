package proxy

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy/upstream"
)

// startBefore runs latchkey in front of a redis-server, of which it owns lock:*
// and, in database 3, own:*.
func startBefore(t testing.TB, redis string) *Server {
	t.Helper()
	return startServerWith(t, Options{}, "--upstream", "redis://"+redis, "--own", "lock:*", "--own", "db3/own:*")
}

// each sends commands and wants their replies, which follow each of them.
func (c *testClient) each(what string, pairs ...string) {
	c.t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		if got := c.do(pairs[i]); got != pairs[i+1] {
			c.t.Errorf("%s: %s\n got  %s\n want %s", what, pairs[i], got, pairs[i+1])
		}
	}
}

const crossOwner = "-CROSSOWNER Keys in request belong to different owners: some are latchkey's, some are the upstream's"

func TestUpstreamKeepsItsKeys(t *testing.T) {
	redis := startRedis(t)
	c, behind := startBefore(t, redis).dial(t), dial(t, redis)
	c.each("through latchkey",
		"SET lock:a mine NX", "+OK", "SET b theirs", "+OK", "GET lock:a", `"mine"`, "GET b", `"theirs"`,
		"SELECT 3", "+OK", "SET own:x mine", "+OK", "SET lock:y mine", "+OK", "SET z theirs", "+OK",
		"SELECT 0", "+OK", "SET own:x theirs", "+OK")
	behind.each("on the upstream", "KEYS lock:*", "*[]", "GET b", `"theirs"`, "GET own:x", `"theirs"`,
		"SELECT 3", "+OK", "KEYS *", `*["z"]`)
	c.each("keyless commands speak of the upstream", "DBSIZE", ":2", "SELECT 3", "+OK", "DBSIZE", ":1", "RANDOMKEY", `"z"`,
		"RESET", "+RESET", "DBSIZE", ":2")
	c.each("both owners in one command", "MSET lock:a 1 b 2", crossOwner, "MGET b lock:a", crossOwner, "DEL lock:a b", crossOwner,
		"COPY b lock:b", crossOwner)
	c.send("EVAL", "return redis.call('get', KEYS[1])", "2", "lock:a", "b")
	if got := c.read(); got != crossOwner {
		t.Errorf("EVAL with keys of both: %s, want %s", got, crossOwner)
	}
	c.send("EVAL", "return redis.call('hset', KEYS[1], 'f', 'v')", "1", "hash")
	if got := c.read(); got != ":1" {
		t.Errorf("EVAL with the upstream's key, of a command latchkey lacks: %s, want :1", got)
	}
	behind.each("on the upstream", "SELECT 0", "+OK", "HGET hash f", `"v"`)
	if _, err := c.conn.Write([]byte("SET inline 1\r\nGET inline\r\nGET lock:a\r\nHGET hash f\r\n")); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"+OK", `"1"`, `"mine"`, `"v"`} {
		if got := c.read(); got != want {
			t.Errorf("inline command %d: %s, want %s", i+1, got, want)
		}
	}
}

func TestUpstreamTransactions(t *testing.T) {
	redis := startRedis(t)
	c := startBefore(t, redis).dial(t)
	c.each("a block of the upstream's", "MULTI", "+OK", "SET a 1", "+QUEUED", "HSET h f v", "+QUEUED", "INCR a", "+QUEUED", "EXEC", "*[+OK :1 :2]")
	c.each("a block of latchkey's", "MULTI", "+OK", "SET lock:a 1", "+QUEUED", "INCR lock:a", "+QUEUED", "EXEC", "*[+OK :2]")
	c.each("a block of both", "MULTI", "+OK", "SET lock:a 7", "+QUEUED", "SET a 7", "+QUEUED", "EXEC", crossOwner, "GET lock:a", `"2"`, "GET a", `"2"`)
	c.each("a command of the upstream's on a key of latchkey's", "MULTI", "+OK", "HSET lock:h f v", "+QUEUED",
		"EXEC", "*[-ERR command 'hset' is known to the upstream only, and its keys are latchkey's]")
	c.each("a wrong command in a block", "MULTI", "+OK", "HSET h", "-ERR wrong number of arguments for 'hset' command",
		"EXEC", "-EXECABORT Transaction discarded because of previous errors.")
	c.each("in a block nothing blocks", "MULTI", "+OK", "BZPOPMIN none 0", "+QUEUED", "EXEC", "*[(nil)]")
	if got := c.do("WATCH a"); !strings.HasPrefix(got, "-ERR WATCH of keys that belong to the upstream") {
		t.Errorf("WATCH a: %s, want a refusal", got)
	}
}

// TestUpstreamCommands: commands that latchkey does not know, and Redis does.
// The same commands go to a redis-server of their own, which judges.
func TestUpstreamCommands(t *testing.T) {
	s, judge := startBefore(t, startRedis(t)), startRedis(t)
	for _, hello := range []string{"HELLO 2", "HELLO 3"} {
		theirs, ours := dial(t, judge), s.dial(t)
		theirs.do(hello)
		ours.do(hello)
		for _, line := range []string{
			"FLUSHALL", "HSET h f 1 g 2", "HGETALL h", "hget h f", "HSET h", "HSET", "HGET h f g", "ZADD z 1 a 2 b", "ZRANGE z 0 -1 WITHSCORES",
			"ZUNIONSTORE out 1 z", "ZUNION 1 z", "ZUNION x z", "GEOADD g 13.36 38.11 p", "PFADD hll a b", "PFCOUNT hll", "XADD x 1-1 f v", "XLEN x",
			"XREAD COUNT 1 STREAMS x 0", "XGROUP CREATE x grp 0", "XGROUP NOSUCH x", "XGROUP", "XGROUP HELP", "XINFO STREAM none",
			"XREADGROUP GROUP grp me STREAMS x >", "SORT z ALPHA", "SORT z BY nosort STORE out", "SORT_RO z ALPHA", "SORT", "HSCAN h 0",
			"FUNCTION LIST", "FCALL none 1 h", "ZMPOP 1 z MIN", "HINCRBY h f x", "ZADD h 1 a",
		} {
			if line == "FLUSHALL" { // speaks of both owners, so it is refused
				theirs.do(line)
				ours.do("DEL h z x g hll out")
				continue
			}
			if want, got := theirs.do(line), ours.do(line); got != want {
				t.Errorf("%s, after %s\n latchkey %s\n redis    %s", line, hello, got, want)
			}
		}
	}
	c := s.dial(t)
	const own = "' is known to the upstream only, and its keys are latchkey's"
	c.each("keys of latchkey's", "HSET lock:h f v", "-ERR command 'hset"+own, "ZUNIONSTORE lock:a 1 lock:b", "-ERR command 'zunionstore"+own,
		"ZUNIONSTORE lock:a 1 z", crossOwner, "SORT z STORE lock:a", crossOwner, "XREAD STREAMS x lock:x 0 0", crossOwner)
	const refused = "is not forwarded to the upstream: it is about the server or the connection; send it there yourself"
	c.each("what is not forwarded", "BZPOPMIN z 0", "-"+errForwardBlocking, "XREAD BLOCK 0 STREAMS x $", "-"+errForwardBlocking,
		"PSYNC ? -1", "-ERR command 'psync' "+refused, "FAILOVER", "-ERR command 'failover' "+refused)
	if got := c.do("NOSUCH a b"); !strings.HasPrefix(got, "-ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b'") {
		t.Errorf("NOSUCH: %s, want an unknown command", got)
	}
}

// TestUpstreamCommandsNeedAPassword: who has not authenticated learns nothing.
func TestUpstreamCommandsNeedAPassword(t *testing.T) {
	s := startServerWith(t, Options{}, "--upstream", "redis://"+startRedis(t), "--requirepass", "secret")
	c := s.dial(t)
	if got := c.do("HGET h f"); !strings.HasPrefix(got, "-ERR unknown command 'HGET'") {
		t.Errorf("HGET before AUTH: %s, want an unknown command", got)
	}
	c.each("after AUTH", "AUTH secret", "+OK", "HSET h f v", ":1", "HGET h f", `"v"`)
}

// TestUpstreamOrder: the replies of a long pipeline of local and forwarded
// commands stand in the order of the commands, for clients of both protocols at
// once.
func TestUpstreamOrder(t *testing.T) {
	s := startBefore(t, startRedis(t))
	t.Run("clients", func(t *testing.T) {
		for _, proto := range []string{"2", "3"} {
			t.Run("RESP"+proto, func(t *testing.T) {
				t.Parallel()
				c := s.dial(t)
				c.do("HELLO " + proto)
				const n = 10_000
				var b bytes.Buffer
				for i := range n {
					key := []string{"lock:n", "n"}[i%2] + proto
					b.Write(upstream.AppendCommand(nil, "INCR", key))
				}
				wrote := make(chan error, 1)
				go func() {
					_, err := c.conn.Write(b.Bytes())
					wrote <- err
				}()
				for i := range n {
					if got, want := c.read(), fmt.Sprintf(":%d", i/2+1); got != want {
						t.Fatalf("reply %d is %s, want %s", i, got, want)
					}
				}
				if err := <-wrote; err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// TestUpstreamDown: the upstream's keys answer an error at once, and latchkey's
// work as ever.
func TestUpstreamDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close() // nobody listens there now
	c := startBefore(t, addr).dial(t)
	for _, line := range []string{"GET a", "HGET h f", "DBSIZE"} {
		if got := c.do(line); !strings.HasPrefix(got, "-UPSTREAMDOWN upstream "+addr) {
			t.Errorf("%s: %s, want UPSTREAMDOWN", line, got)
		}
	}
	slowest := time.Duration(0)
	for i := range 1000 {
		began := time.Now()
		if got, want := c.do("INCR lock:a"), fmt.Sprintf(":%d", i+1); got != want {
			t.Fatalf("INCR lock:a: %s, want %s", got, want)
		}
		slowest = max(slowest, time.Since(began))
	}
	if slowest > time.Second {
		t.Errorf("with the upstream down a command on a key of latchkey's took %v", slowest)
	}
}

// TestUpstreamLost: the upstream takes a command and dies before it answers.
func TestUpstreamLost(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go dieOnGet(l)
	c := startBefore(t, l.Addr().String()).dial(t)
	c.send("SET", "lock:a", "1")
	c.send("GET", "a")
	c.send("GET", "lock:a")
	if got := c.read(); got != "+OK" {
		t.Errorf("before the lost command: %s, want +OK", got)
	}
	if got := c.read(); !strings.HasPrefix(got, "-UPSTREAMLOST ") {
		t.Errorf("the lost command: %s, want UPSTREAMLOST", got)
	}
	if got := c.read(); got != `"1"` {
		t.Errorf("after the lost command: %s, want \"1\"", got)
	}
}

// dieOnGet is an upstream that is well until it is asked for a key.
func dieOnGet(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			buf := make([]byte, 4096)
			for {
				n, err := conn.Read(buf)
				if err != nil || bytes.Contains(buf[:n], []byte("GET")) {
					return
				}
				reply := "+PONG\r\n"
				if bytes.Contains(buf[:n], []byte("COMMAND")) {
					reply = "*0\r\n"
				}
				// One for each command.
				conn.Write([]byte(strings.Repeat(reply, bytes.Count(buf[:n], []byte("*")))))
			}
		}()
	}
}

// TestUpstreamClientGone: a client that leaves with commands under way costs
// those of others nothing.
func TestUpstreamClientGone(t *testing.T) {
	s := startBefore(t, startRedis(t))
	stays := s.dial(t)
	for range 20 {
		leaves := s.dial(t)
		for range 100 {
			leaves.send("INCR", "n")
		}
		leaves.conn.Close()
		stays.each("beside one who leaves", "ECHO here", `"here"`, "SET k here", "+OK", "GET k", `"here"`)
	}
}

func TestParseReply(t *testing.T) {
	for _, bad := range []string{
		"", "*", "*1\r\n", "$5\r\nab\r\n", "$-", "*2\r\n:1\r\n", ":x\r\n", "?\r\n", "+OK\r\n+OK\r\n",
		"*9999999999\r\n", strings.Repeat("*1\r\n", 100) + ":1\r\n",
	} {
		if r, err := parseReply([]byte(bad)); err == nil {
			t.Errorf("parseReply(%.40q) is %+v, want an error", bad, r)
		}
	}
	r, err := parseReply([]byte("*3\r\n$4\r\nname\r\n*2\r\n:-1\r\n$-1\r\n+x\r\n"))
	if err != nil || string(r.elems[0].text) != "name" || r.elems[1].elems[0].n != -1 || string(r.elems[2].text) != "x" {
		t.Errorf("parseReply: %+v, %v", r, err)
	}
}
