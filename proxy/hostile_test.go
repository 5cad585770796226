package proxy

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy/config"
	"github.com/latchkey-proxy/latchkey/proxy/upstream"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// holding is a family whose command HOLD keeps the locks of its keys for as
// long as the test wants, as a slow script does.
type holding struct {
	has     chan struct{} // receives when a HOLD has its keys
	release chan struct{} // lets one go
}

func newHolding() *holding {
	return &holding{make(chan struct{}, 16), make(chan struct{}, 16)}
}

func (h *holding) family() []*command.Spec {
	spec := func(name string, handler command.Handler) *command.Spec {
		return &command.Spec{
			Name: name, Arity: -2, Keys: command.AllKeys(command.KeyRW | command.KeyAccess | command.KeyUpdate), Access: command.Locked, Handler: handler,
			Flags: command.Write, Group: "generic", Since: "7.0.0", Complexity: "O(1)", Summary: "For tests.", Syntax: "key [key ...]",
		}
	}
	return []*command.Spec{
		spec("hold", func(c *command.Call) {
			h.has <- struct{}{}
			<-h.release
			c.OK()
		}),
		spec("lockall", func(c *command.Call) { c.OK() }),
	}
}

// pipe connects a client over a pipe: not one byte is buffered between the two,
// so whoever does not read is noticed at the first byte.
func (s *Server) pipe(t testing.TB) *testClient {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close() })
	s.admit(far)
	return &testClient{t, near, bufio.NewReader(near)}
}

// inline sends lines as inline commands in one write.
func (c *testClient) inline(lines ...string) {
	c.t.Helper()
	if _, err := c.conn.Write([]byte(strings.Join(lines, "\r\n") + "\r\n")); err != nil {
		c.t.Fatalf("send %q: %v", lines, err)
	}
}

// blocked waits until n clients wait for keys.
func (s *Server) blocked(t testing.TB, n int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d transactions wait for a key", n), func() bool { return s.store.Counter.LockWaiting.Load() == n })
}

// A client that waits for a key is sent what was answered before. If it does not
// read, that must hold up nobody but itself: neither the keys that it has
// already nor the one that it is given.
func TestWhoWaitsAndDoesNotReadHoldsNoKeys(t *testing.T) {
	h := newHolding()
	s := startServer(t, h.family())
	holder := s.dial(t)
	holder.send("HOLD", "b")
	<-h.has
	silent := s.pipe(t)
	silent.inline("PING", "LOCKALL a b")
	s.blocked(t, 1)
	h.release <- struct{}{}
	if got := holder.read(); got != "+OK" {
		t.Fatalf("HOLD: %s", got)
	}
	other := s.dial(t)
	other.want("SET a 1", "+OK")
	other.want("SET b 1", "+OK")
	for _, want := range []string{"+PONG", "+OK"} {
		if got := silent.read(); got != want {
			t.Fatalf("the silent client got %s, want %s: replies must keep their order", got, want)
		}
	}
	silent.want("PING", "+PONG")
}

// A handler that panics, whatever transaction it has begun by itself, leaves
// neither its client nor its keys unusable.
func TestPanicInAHandlerThatBeganATransaction(t *testing.T) {
	family := []*command.Spec{{
		Name: "burst", Arity: 2, Access: command.Free, Handler: func(c *command.Call) {
			c.Tx.Begin()
			c.Tx.Add(c.DB(), c.Args[1])
			if err := c.Tx.Acquire(c.S.Wait); err != nil {
				c.Err(command.WaitError(err))
				return
			}
			panic("the handler of the test")
		},
		Group: "generic", Since: "7.0.0", Complexity: "O(1)", Summary: "For tests.", Syntax: "key",
	}}
	s := startServer(t, family)
	c := s.dial(t)
	if got := c.do("BURST k"); !strings.HasPrefix(got, "-ERR") {
		t.Fatalf("BURST k: %s, want an error", got)
	}
	c.want("SET k 1", "+OK")
	s.dial(t).want("GET k", `"1"`)
}

// A client that leaves a hundred thousand patterns behind must not keep the
// others from publishing for longer than a moment.
func TestManyPatternsAreLeftInLinearTime(t *testing.T) {
	s := startServer(t)
	c := s.dial(t)
	const patterns, batch = 100_000, 1000
	go func() {
		w := bufio.NewWriterSize(c.conn, 1<<20)
		for i := 0; i < patterns; i += batch {
			args := [][]byte{[]byte("PSUBSCRIBE")}
			for j := range batch {
				args = append(args, fmt.Appendf(nil, "pattern:%08d", i+j))
			}
			w.Write(upstream.AppendCommand(nil, args...))
		}
		w.Flush()
	}()
	for range patterns {
		if got := c.read(); got == "(closed)" {
			t.Fatal("the subscriber was closed")
		}
	}
	other := s.dial(t)
	other.want("PUBSUB NUMPAT", fmt.Sprintf(":%d", patterns))
	c.conn.Close()
	start := time.Now()
	eventually(t, "all patterns are gone", func() bool { return other.do("PUBSUB NUMPAT") == ":0" })
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("leaving %d patterns took %v, want well below 3s: the time must not grow with their square", patterns, took)
	}
}

// The effects of a transaction that overwrites a key again and again are held
// until it ends: transaction-max-memory bounds them.
func TestATransactionIsBoundedInMemory(t *testing.T) {
	s := startServer(t)
	c := s.dial(t)
	c.want("CONFIG SET transaction-max-memory 1mb", "+OK")
	c.want("MULTI", "+OK")
	value := strings.Repeat("v", 600<<10)
	for range 4 {
		c.send("SET", "k", value)
		if got := c.read(); got != "+QUEUED" {
			t.Fatal(got)
		}
	}
	c.want("EXEC", "*[+OK +OK -"+command.ErrTxTooLarge+" -"+command.ErrTxTooLarge+"]")
	c.want("STRLEN k", fmt.Sprintf(":%d", len(value)))
	// A transaction that was undone weighs nothing in the next.
	c.want("MULTI", "+OK")
	c.want("APPEND k x", "+QUEUED")
	c.want("GETDEL k2", "+QUEUED")
	c.want("EXEC", fmt.Sprintf("*[:%d (nil)]", len(value)+1))
}

// Queued commands of all clients count against client-query-memory-limit, and
// what one client holds does not keep another from a command of usual size.
func TestQueuedAndHalfSentCommandsAreUnderOneCap(t *testing.T) {
	s := startServer(t)
	admin := s.dial(t)
	admin.want("CONFIG SET client-query-memory-limit 4mb", "+OK")
	value := strings.Repeat("v", 256<<10)
	refused := 0
	var greedy []*testClient
	for range 8 {
		c := s.dial(t)
		greedy = append(greedy, c)
		c.want("MULTI", "+OK")
		for range 8 {
			c.send("SET", "k", value)
			if got := c.read(); got != "+QUEUED" {
				refused++
				if got != "(closed)" && !strings.Contains(got, "client-query-memory-limit") {
					t.Fatalf("the refusal must name the directive: %s", got)
				}
				break
			}
		}
	}
	if refused == 0 {
		t.Error("8 clients queued 16 MiB beyond a limit of 4 MiB")
	}
	if held := s.queryMemory.Load(); held > 6<<20 {
		t.Errorf("clients hold %d bytes with a limit of 4 MiB", held)
	}
	for range 20 {
		s.dial(t).want("SET other 1", "+OK")
	}
	for _, c := range greedy {
		c.conn.Close()
	}
	admin.want("PING", "+PONG")
	eventually(t, "the memory is given back", func() bool { return s.queryMemory.Load() <= 21*smallQuery })
	admin.want("MULTI", "+OK")
	admin.want("SET k 1", "+QUEUED")
	admin.want("EXEC", "*[+OK]")
	admin.want("MULTI", "+OK")
	admin.want("SET k 1", "+QUEUED")
	admin.want("RESET", "+RESET")
	admin.want("MULTI", "+OK")
	admin.want("SET k 1", "+QUEUED")
	admin.want("DISCARD", "+OK")
	eventually(t, "all memory of queues is given back", func() bool {
		var n int64
		s.clients.each(func(c *client) { n += int64(c.query.Load()) })
		return n == s.queryMemory.Load()
	})
}

// CONFIG SET port moves the server while it runs; clients that are connected
// stay, and a port that cannot be had changes nothing.
func TestPortAndBindAtRunTime(t *testing.T) {
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		return port
	}
	first, second := free(), free()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, takenPort, _ := net.SplitHostPort(taken.Addr().String())

	cfg := config.New()
	if err := cfg.Set([]config.Pair{{Name: "port", Value: first}, {Name: "bind", Value: "127.0.0.1"}}, true); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Config: cfg, Families: command.Families(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	defer s.Close(time.Second)
	c := dial(t, "127.0.0.1:"+first)
	if got := c.do("CONFIG SET port " + takenPort); !strings.Contains(got, "Unable to listen on this port") {
		t.Fatalf("CONFIG SET of a port in use: %s", got)
	}
	c.want("CONFIG GET port", `*["port" "`+first+`"]`)
	dial(t, "127.0.0.1:"+first).want("PING", "+PONG")
	c.want("CONFIG SET port "+second, "+OK")
	dial(t, "127.0.0.1:"+second).want("PING", "+PONG")
	if conn, err := net.Dial("tcp", "127.0.0.1:"+first); err == nil {
		conn.Close()
		t.Error("the port that was given up still takes clients")
	}
	c.send("CONFIG", "SET", "bind", "*")
	if got := c.read(); got != "+OK" {
		t.Fatalf("CONFIG SET bind *: %s", got)
	}
	dial(t, "127.0.0.1:"+second).want("PING", "+PONG")
	c.want("CONFIG SET port 0", "+OK")
	c.want("PING", "+PONG")
	if n := len(s.Addrs()); n != 0 {
		t.Errorf("port 0 leaves %d addresses", n)
	}
}

// maxclients may not promise more than the system's limit of open files.
func TestMaxClientsFitsTheOpenFiles(t *testing.T) {
	c := startServer(t).dial(t)
	if got := c.do("CONFIG SET maxclients 4000000000"); !strings.Contains(got, "try with") {
		t.Errorf("CONFIG SET maxclients 4000000000: %s, want an error that names what is possible", got)
	}
	c.want("CONFIG GET maxclients", `*["maxclients" "10000"]`)
}

// Close ends clients in every state they can be in, within its time.
func TestCloseInEveryState(t *testing.T) {
	holder := &command.Spec{
		Name: "holdon", Arity: 2, Keys: command.OneKey(command.KeyRW | command.KeyAccess | command.KeyUpdate), Access: command.Locked,
		Handler: func(c *command.Call) { <-c.S.Wait.Done; c.OK() }, // as a script that is killed
		Flags:   command.Write, Group: "generic", Since: "7.0.0", Complexity: "O(1)", Summary: "For tests.", Syntax: "key",
	}
	for _, drain := range []time.Duration{0, 100 * time.Millisecond} {
		s := startServer(t, newHolding().family(), []*command.Spec{holder})
		send := func(lines ...string) *testClient {
			c := s.dial(t)
			c.inline(lines...)
			return c
		}
		send("HOLDON k")
		eventually(t, "the key is held", func() bool {
			tx := s.store.NewTx()
			tx.Begin()
			tx.Add(0, []byte("k"))
			if tx.AcquireFast() {
				tx.Rollback()
				return false
			}
			tx.Rollback()
			return true
		})
		send("LOCKALL a k")
		send("SET k 1")
		send("MULTI", "SET k 1", "EXEC")
		s.blocked(t, 3)
		send("FLUSHALL")
		eventually(t, "FLUSHALL waits at the gate", func() bool {
			waits := false
			s.clients.each(func(c *client) {
				c.mu.Lock()
				waits = waits || c.shown.blocked && c.lastCmd != nil && c.lastCmd.Name == "flushall"
				c.mu.Unlock()
			})
			return waits
		})
		send("SUBSCRIBE ch").read()
		send("MONITOR").read()
		send("WATCH w", "MULTI", "GET x").read()
		send("WAIT 1 0")
		send("*2")
		s.dial(t)
		s.pipe(t).inline("PING")
		p := s.pipe(t)
		p.inline("SUBSCRIBE ch")
		start := time.Now()
		if err := s.Close(drain); err != nil {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(start); took > drain+5*time.Second {
			t.Errorf("Close(%v) took %v", drain, took)
		}
	}
}

// Whatever way a key is written and removed, nothing of it stays in the account
// that maxmemory is judged by.
func TestMemoryAccountReturnsToZero(t *testing.T) {
	h := newHolding()
	s := startServer(t, h.family())
	c := s.dial(t)
	big := strings.Repeat("v", 10_000)
	for round := range 20 {
		for _, line := range []string{
			"SET a " + big, "APPEND a " + big, "SETRANGE a 50000 x", "SETBIT a 900000 1", "GETDEL a",
			"SET a 1 PX 100000", "INCR a", "PERSIST a", "PEXPIRE a 1000000", "RENAME a b", "COPY b c", "MSET d 1 e 2", "SET a x EXAT 1",
			"MULTI", "SET m " + big, "APPEND m y", "LPUSH m x", "SET m z", "EXEC",
			"MULTI", "FLUSHDB", "SET n " + big, "SELECT 3", "SET n " + big, "SWAPDB 3 4", "FLUSHDB", "EXEC",
			"SELECT 0", "RPUSH l a b c", "LPOP l", "SADD s a b c 1 2 3", "SMOVE s t a", "SUNIONSTORE u s t", "LMOVE l l2 LEFT RIGHT",
			"SET p 1 PX 1", "BITOP NOT q n", "MOVE n 2",
		} {
			c.do(line)
		}
		switch round % 3 {
		case 0:
			c.want("FLUSHALL", "+OK")
		default:
			for db := range 5 {
				c.want(fmt.Sprintf("SELECT %d", db), "+OK")
				c.send("KEYS", "*")
				keys := c.read()
				for _, k := range strings.Fields(strings.Trim(keys, "*[]")) {
					if round%3 == 1 {
						c.do("DEL " + strings.Trim(k, `"`))
					} else {
						c.do("PEXPIREAT " + strings.Trim(k, `"`) + " 1")
					}
				}
			}
			c.want("SELECT 0", "+OK")
		}
		eventually(t, "what expires is removed", func() bool { // no cron without Listen
			s.store.ExpireCycle(time.Second)
			return s.store.Size(0) == 0
		})
		if used := s.store.UsedMemory(); used != 0 {
			t.Fatalf("round %d: the store is empty and %d bytes are in use", round, used)
		}
	}
}

// A panic in the search for a command's keys ends its client and nothing else.
func TestPanicOutsideOfAHandler(t *testing.T) {
	family := []*command.Spec{{
		Name: "burst", Arity: -2, Keys: command.AllKeys(command.KeyRW | command.KeyAccess | command.KeyUpdate), Access: command.Locked,
		Extra:   func(*command.Call, func(int, []byte)) { panic("the search for keys of the test") },
		Handler: func(c *command.Call) { c.OK() },
		Flags:   command.Write, Group: "generic", Since: "7.0.0", Complexity: "O(1)", Summary: "For tests.", Syntax: "key [key ...]",
	}}
	s := startServer(t, family)
	for range 3 {
		if got := s.dial(t).do("BURST k"); got != "(closed)" && !strings.HasPrefix(got, "-ERR") {
			t.Fatalf("BURST k: %s", got)
		}
	}
	c := s.dial(t)
	c.want("MULTI", "+OK")
	c.want("BURST k", "+QUEUED")
	if got := c.do("EXEC"); got != "(closed)" && !strings.HasPrefix(got, "-ERR") {
		t.Fatalf("EXEC of BURST k: %s", got)
	}
	s.dial(t).want("SET k 1", "+OK")
	s.dial(t).want("FLUSHALL", "+OK")
}

// A client that pipelines subscriptions faster than it reads is slowed down, not
// closed.
func TestSubscriptionsDoNotOutrunTheirReader(t *testing.T) {
	s := startServer(t)
	admin := s.dial(t)
	admin.send("CONFIG", "SET", "client-output-buffer-limit", "pubsub 4mb 0 0")
	if got := admin.read(); got != "+OK" {
		t.Fatal(got)
	}
	c := s.pipe(t)
	const channels = 60_000
	name := strings.Repeat("c", 100)
	go func() {
		for i := range channels {
			if _, err := c.conn.Write(upstream.AppendCommand(nil, "SUBSCRIBE", fmt.Sprintf("%s%06d", name, i))); err != nil {
				return
			}
		}
	}()
	for i := range channels {
		if got := c.read(); !strings.HasSuffix(got, fmt.Sprintf(" :%d]", i+1)) {
			t.Fatalf("confirmation %d: %s", i, got)
		}
		if i == 0 {
			var last, same int64
			eventually(t, "the queue is full and grows no more, or the limit is reached", func() bool {
				var queued int64
				s.clients.each(func(c *client) { queued += c.out.pending.Load() })
				if same++; queued != last {
					last, same = queued, 0
				}
				return same > 50 && queued > queueHigh || s.stats.outputLimit.Load() > 0
			})
		}
	}
}

// A short command must not make a reply that takes all memory.
func TestRepliesAreBounded(t *testing.T) {
	s := startServer(t)
	s.maxReply.Store(16 << 20)
	c := s.dial(t)
	c.send("SET", "big", strings.Repeat("v", 1<<20))
	if got := c.read(); got != "+OK" {
		t.Fatal(got)
	}
	line := "MGET" + strings.Repeat(" big", 100_000) // 100 GiB
	want := fmt.Sprintf("-ERR the reply is larger than %d bytes", 16<<20)
	c.want(line, want)
	c.want("MULTI", "+OK")
	c.want("INCR n", "+QUEUED")
	c.want(line, "+QUEUED")
	c.want("INCR n", "+QUEUED")
	c.want("EXEC", "*[:1 "+want+" :2]")
	c.want("PING", "+PONG")
}
