package proxy

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy/upstream"
)

// clientCases are commands whose replies must be redis-server's.
var clientCases = []string{
	"CLIENT", "CLIENT FOO", "CLIENT FOO bar", "CLIENT MAINT_NOTIFICATIONS ON", "CLIENT CAPA redirect", "CLIENT HELP x",
	"CLIENT GETNAME", "CLIENT GETNAME x", "CLIENT SETNAME", "CLIENT SETNAME me", "CLIENT GETNAME", "CLIENT SETNAME \x7f", "CLIENT ID x",
	"CLIENT GETREDIR", "CLIENT GETREDIR x", "CLIENT INFO x",
	"CLIENT LIST TYPE", "CLIENT LIST FOO", "CLIENT LIST TYPE foo", "CLIENT LIST TYPE master", "CLIENT LIST TYPE replica", "CLIENT LIST TYPE pubsub",
	"CLIENT LIST ID", "CLIENT LIST ID abc", "CLIENT LIST ID 1 abc", "CLIENT LIST ID 0", "CLIENT LIST ID 99999", "CLIENT LIST TYPE normal ID 1",
	"CLIENT KILL", "CLIENT KILL ID", "CLIENT KILL nonsense", "CLIENT KILL ID abc", "CLIENT KILL ID 0", "CLIENT KILL ID 99999", "CLIENT KILL TYPE foo",
	"CLIENT KILL TYPE replica", "CLIENT KILL USER nobody", "CLIENT KILL SKIPME maybe", "CLIENT KILL ID 99999 FOO", "CLIENT KILL ADDR 1.2.3.4:5",
	"CLIENT KILL ADDR 1.2.3.4:5 LADDR 1.2.3.4:5", "CLIENT KILL FOO bar", "CLIENT KILL USER default TYPE pubsub", "CLIENT KILL ID 99999 SKIPME no",
	"CLIENT PAUSE", "CLIENT PAUSE abc", "CLIENT PAUSE -1", "CLIENT PAUSE 1 FOO", "CLIENT PAUSE 1 ALL x", "CLIENT PAUSE 0", "CLIENT PAUSE 1 write",
	"CLIENT PAUSE 9223372036854775808", "CLIENT UNPAUSE", "CLIENT UNPAUSE x",
	"CLIENT REPLY", "CLIENT REPLY FOO", "CLIENT REPLY ON", "CLIENT REPLY ON x",
	"CLIENT NO-EVICT", "CLIENT NO-EVICT on", "CLIENT NO-EVICT OFF", "CLIENT NO-EVICT foo",
	"CLIENT UNBLOCK", "CLIENT UNBLOCK abc", "CLIENT UNBLOCK 99999", "CLIENT UNBLOCK -1", "CLIENT UNBLOCK 99999 FOO", "CLIENT UNBLOCK 99999 ERROR", "CLIENT UNBLOCK abc FOO",
	"CLIENT UNBLOCK 99999 ERROR x",
	"CLIENT TRACKING", "CLIENT TRACKING foo", "CLIENT TRACKING off", "CLIENT TRACKING on FOO", "CLIENT TRACKING on OPTIN OPTOUT", "CLIENT TRACKING on BCAST OPTIN",
	"CLIENT TRACKING on REDIRECT 99999", "CLIENT TRACKING on REDIRECT abc", "CLIENT TRACKING on PREFIX a", "CLIENT TRACKING on REDIRECT",
	"CLIENT TRACKINGINFO", "CLIENT TRACKINGINFO x", "CLIENT CACHING", "CLIENT CACHING yes", "CLIENT CACHING foo",
	"MONITOR x", "MULTI", "CLIENT SETNAME other", "CLIENT GETNAME", "CLIENT UNBLOCK 99999", "CLIENT PAUSE x", "MONITOR", "EXEC", "CLIENT GETNAME",
}

func TestClientAgainstRedis(t *testing.T) {
	redis := startRedis(t)
	compareWithRedis(t, startServer(t), redis, clientCases)
}

// Redis 7.2 says the last line of HELP otherwise than 7.0.
const redis70Help, redis72Help = "    Prints this help.", "    Print this help."

// compareWithRedis sends the same commands to both servers, in both protocols,
// and wants equal replies.
func compareWithRedis(t *testing.T, s *Server, redis string, lines []string) {
	t.Helper()
	for _, hello := range []string{"HELLO 2", "HELLO 3"} {
		theirs, ours := dial(t, redis), s.dial(t)
		theirs.do(hello)
		ours.do(hello)
		for _, line := range lines {
			want, got := strings.Replace(theirs.do(line), redis70Help, redis72Help, 1), ours.do(line)
			if got != want {
				t.Errorf("%s, after %s\n latchkey %s\n redis    %s", line, hello, got, want)
			}
		}
	}
}

func TestClientSetInfo(t *testing.T) {
	c := startServer(t).dial(t)
	c.want("CLIENT SETINFO lib-name redis-go", "+OK")
	c.want("CLIENT SETINFO LIB-VER 1.2.3", "+OK")
	c.want("CLIENT SETINFO libname x", "-ERR Unrecognized option 'libname'")
	c.send("CLIENT", "SETINFO", "lib-name", "a b")
	if got, want := c.read(), "-ERR lib-name cannot contain spaces, newlines or special characters."; got != want {
		t.Errorf("a name with a blank: got %s, want %s", got, want)
	}
	if line := c.do("CLIENT INFO"); field(line, "lib-name") != "redis-go" || !strings.Contains(line, "lib-ver=1.2.3\\n") {
		t.Errorf("CLIENT INFO does not show the library: %s", line)
	}
}

// TestEmptyName: the empty name is no command, whatever was asked before.
func TestEmptyName(t *testing.T) {
	c := startServer(t).dial(t)
	c.do("HELLO 3")
	c.want("PING", "+PONG")
	c.want("NOSUCH", "-ERR unknown command 'NOSUCH', with args beginning with: ")
	c.send("", "x")
	if got, want := c.read(), "-ERR unknown command '', with args beginning with: 'x' "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestClientReply(t *testing.T) {
	s := startServer(t)
	c := s.dial(t)
	c.send("CLIENT", "REPLY", "OFF")
	c.send("SET", "k", "1")
	c.send("NOSUCH")
	c.want("CLIENT REPLY ON", "+OK")
	c.want("GET k", `"1"`)
	c.send("CLIENT", "REPLY", "SKIP")
	c.send("GET", "k")
	c.want("PING", "+PONG")

	// A command that waits sends off what came before it; its own reply must
	// be dropped all the same.
	other := s.dial(t)
	other.want("CLIENT PAUSE 100000 WRITE", "+OK")
	c.send("PING")
	c.send("CLIENT", "REPLY", "SKIP")
	c.send("SET", "k", "2")
	c.send("GET", "k")
	if got := c.read(); got != "+PONG" {
		t.Fatalf("before the wait: got %s, want +PONG", got)
	}
	eventually(t, "the write is held", func() bool { return strings.Contains(other.do("CLIENT LIST"), "flags=b") })
	other.want("CLIENT UNPAUSE", "+OK")
	if got := c.read(); got != `"2"` {
		t.Errorf("after the skipped reply: got %s, want \"2\"", got)
	}
}

// listLine is a line of CLIENT LIST with the fields of Redis 7.2.
var listLine = regexp.MustCompile(`^id=\d+ addr=127\.0\.0\.1:\d+ laddr=127\.0\.0\.1:\d+ fd=\d+ name=\S* age=\d+ idle=\d+ flags=[A-Za-z]+ db=\d+ ` +
	`sub=\d+ psub=\d+ ssub=\d+ multi=-?\d+ qbuf=\d+ qbuf-free=\d+ argv-mem=\d+ multi-mem=\d+ rbs=\d+ rbp=\d+ obl=\d+ oll=\d+ omem=\d+ tot-mem=\d+ ` +
	`events=rw? cmd=\S+ user=default redir=-1 resp=[23] lib-name=\S* lib-ver=\S*$`)

// listed is the line of the client in CLIENT LIST.
func (c *testClient) listed(id string) string {
	c.t.Helper()
	c.send("CLIENT", "LIST", "ID", id)
	return strings.TrimSuffix(strings.Trim(c.read(), `"`), `\n`)
}

func TestClientListFields(t *testing.T) {
	s := startServer(t)
	asker := s.dial(t)
	for _, tc := range []struct {
		name  string
		setup []string
		field string
		want  string
	}{
		{"fresh", []string{"PING"}, "flags", "N"},
		{"named", []string{"CLIENT SETNAME me"}, "name", "me"},
		{"queued", []string{"MULTI", "SET k v", "SET k w"}, "multi", "2"},
		{"queueing", []string{"MULTI"}, "flags", "x"},
		{"subscribed", []string{"SUBSCRIBE a", "PSUBSCRIBE p*"}, "flags", "P"},
		{"patterns", []string{"SUBSCRIBE a", "PSUBSCRIBE p*"}, "psub", "1"},
		{"monitor", []string{"MONITOR"}, "flags", "O"},
		{"not evicted", []string{"CLIENT NO-EVICT on"}, "flags", "e"},
		{"not touching", []string{"CLIENT NO-TOUCH on", "CLIENT NO-EVICT on"}, "flags", "eT"},
		{"RESP3", []string{"HELLO 3"}, "resp", "3"},
		{"last command", []string{"CLIENT GETNAME"}, "cmd", "client|getname"},
		{"nothing sent", nil, "cmd", "NULL"},
	} {
		c := s.dial(t)
		id := ""
		if tc.setup != nil {
			id = strings.TrimPrefix(c.do("CLIENT ID"), ":")
			for _, line := range tc.setup {
				c.do(line)
			}
		} else {
			eventually(t, "the client is listed", func() bool {
				all := strings.Split(strings.Trim(asker.do("CLIENT LIST"), `"`), `\n`)
				id = field(all[len(all)-2], "id")
				return field(all[len(all)-2], "addr") == c.conn.LocalAddr().String()
			})
		}
		// The last batch's facts are copied before its reply leaves.
		line := asker.listed(id)
		if got := field(line, tc.field); got != tc.want {
			t.Errorf("%s: %s=%s, want %s, in %s", tc.name, tc.field, got, tc.want, line)
		}
		if !listLine.MatchString(line) {
			t.Errorf("%s: the line does not have the fields of Redis 7.2: %s", tc.name, line)
		}
	}

	dirty := s.dial(t)
	id := strings.TrimPrefix(dirty.do("CLIENT ID"), ":")
	dirty.want("SET w 1", "+OK")
	dirty.want("WATCH w", "+OK")
	asker.want("SET w 2", "+OK")
	if line := asker.listed(id); field(line, "flags") != "d" {
		t.Errorf("a client whose watched key has changed: flags=%s, want d", field(line, "flags"))
	}
}

// lockKey holds the lock of a key until the returned function is called.
func lockKey(t *testing.T, s *Server, key string) (unlock func()) {
	t.Helper()
	tx := s.store.NewTx()
	tx.Begin()
	tx.Add(0, []byte(key))
	if err := tx.Acquire(nil); err != nil {
		t.Fatalf("lock %s: %v", key, err)
	}
	return tx.Rollback
}

func TestClientKillEndsAWaitForAKey(t *testing.T) {
	s := startServer(t)
	unlock := lockKey(t, s, "k")
	defer unlock()
	waiting, asker := s.dial(t), s.dial(t)
	id := strings.TrimPrefix(waiting.do("CLIENT ID"), ":")
	waiting.send("SET", "k", "v")
	eventually(t, "the client waits", func() bool { return field(asker.listed(id), "flags") == "b" })
	asker.want("CLIENT UNBLOCK "+id, ":0") // it is no blocked command
	asker.want("CLIENT KILL ID "+id, ":1")
	if got := waiting.read(); got != "(closed)" && !strings.HasPrefix(got, "-UNBLOCKED") {
		t.Errorf("the killed client read %s, want the end of the connection", got)
	}
	asker.want("CLIENT LIST ID "+id, `""`)
	unlock()
	asker.want("GET k", "(nil)")
}

func TestClientKillSelf(t *testing.T) {
	s := startServer(t)
	c := s.dial(t)
	c.want("CLIENT KILL "+c.conn.LocalAddr().String(), "+OK")
	if got := c.read(); got != "(closed)" {
		t.Errorf("after killing itself the client read %s", got)
	}
	c, other := s.dial(t), s.dial(t)
	other.want("PING", "+PONG")
	c.want("CLIENT KILL TYPE normal MAXAGE 1000", ":0")
	c.want("CLIENT KILL MAXAGE 0 TYPE normal", "-ERR maxage should be greater than 0")
	c.send("CLIENT", "KILL", "ADDR", "", "SKIPME", "no")
	if got := c.read(); got != ":0" {
		t.Errorf("CLIENT KILL ADDR \"\": got %s, want :0, for no client has no address", got)
	}
	c.want("CLIENT KILL LADDR "+s.Addrs()[0].String()+" SKIPME yes", ":1")
	if got := other.read(); got != "(closed)" {
		t.Errorf("a client killed by LADDR read %s", got)
	}
}

func TestClientUnblock(t *testing.T) {
	s := startServer(t)
	blocked, asker := s.dial(t), s.dial(t)
	id := strings.TrimPrefix(blocked.do("CLIENT ID"), ":")
	asker.want("CLIENT UNBLOCK "+id, ":0")
	for _, tc := range []struct{ how, want string }{
		{"", ":0"}, {" TIMEOUT", ":0"}, {" ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK"},
	} {
		blocked.send("WAIT", "1", "0")
		eventually(t, "the command is blocked", func() bool { return asker.do("CLIENT UNBLOCK "+id+tc.how) == ":1" })
		if got := blocked.read(); got != tc.want {
			t.Errorf("CLIENT UNBLOCK%s: the command answered %s, want %s", tc.how, got, tc.want)
		}
		asker.want("CLIENT UNBLOCK "+id, ":0")
	}
	blocked.send("WAIT", "1", "0")
	eventually(t, "the command is blocked", func() bool { return field(asker.listed(id), "flags") == "b" })
	asker.want("CLIENT PAUSE 100000 WRITE", "+OK")
	asker.want("CLIENT UNBLOCK "+id, ":1")
	if got := blocked.read(); got != ":0" {
		t.Errorf("unblocked within a pause: got %s, want :0", got)
	}
	blocked.send("SET", "k", "v")
	eventually(t, "the write is held", func() bool { return field(asker.listed(id), "flags") == "b" })
	asker.want("CLIENT UNBLOCK "+id, ":0") // the pause holds it, no command of its own
	asker.want("CLIENT UNPAUSE", "+OK")
	if got := blocked.read(); got != "+OK" {
		t.Errorf("after the pause: got %s, want +OK", got)
	}
}

// TestClientListWhileOthersRun is for the race detector: whatever the clients
// do, LIST, KILL and PAUSE may look at them.
func TestClientListWhileOthersRun(t *testing.T) {
	s := startServer(t)
	stop := make(chan struct{})
	var workers sync.WaitGroup
	batch := []string{
		"SET k v", "GET k", "MULTI", "INCR n", "EXEC", "WATCH k", "SUBSCRIBE c", "UNSUBSCRIBE c", "CLIENT SETNAME x",
		"CLIENT NO-TOUCH on", "CLIENT NO-EVICT on", "MONITOR", "RESET", "CLIENT SETINFO lib-name y", "PUBLISH c m", "HELLO 3", "DISCARD",
	}
	for range 4 {
		workers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if s.clients.len() > 10 { // they come faster than -race lets them go
					time.Sleep(time.Millisecond)
					continue
				}
				c := s.dial(t)
				go io.Copy(io.Discard, c.conn)
				for range 20 {
					for _, line := range batch {
						args := strings.Fields(line)
						b := make([][]byte, len(args))
						for i := range args {
							b[i] = []byte(args[i])
						}
						c.conn.Write(upstream.AppendCommand(nil, b...)) // fails when it was killed
					}
				}
				c.conn.Close()
			}
		})
	}
	asker := s.dial(t)
	for n := range 150 {
		if list := asker.do("CLIENT LIST"); !strings.Contains(list, "cmd=client|list") {
			t.Fatalf("CLIENT LIST does not list its asker: %s", list)
		}
		if n%10 == 0 {
			asker.do("CLIENT KILL TYPE pubsub")
		}
		if n%7 == 0 {
			asker.want("CLIENT PAUSE 1 WRITE", "+OK")
		}
		if n%50 == 49 {
			asker.do("CLIENT KILL TYPE normal")
		}
	}
	close(stop)
	asker.do("CLIENT UNPAUSE")
	workers.Wait()
	eventually(t, "all others are gone", func() bool { return s.clients.len() == 1 })
}

func TestClientPauseHolds(t *testing.T) {
	for _, tc := range []struct {
		mode  string
		lines []string // sent by one client; the last is held
		held  bool
		want  string
	}{
		{"WRITE", []string{"GET k"}, false, "(nil)"},
		{"WRITE", []string{"SET k v"}, true, "+OK"},
		{"WRITE", []string{"PUBLISH c m"}, true, ":0"},
		{"WRITE", []string{"MULTI", "GET k", "EXEC"}, false, "*[(nil)]"},
		{"WRITE", []string{"CLIENT SETNAME x"}, false, "+OK"},
		{"ALL", []string{"GET k"}, true, "(nil)"},
		{"ALL", []string{"PING"}, true, "+PONG"},
	} {
		t.Run(tc.mode+" "+strings.Join(tc.lines, ";"), func(t *testing.T) {
			s := startServer(t)
			c := s.dial(t)
			c.want("PING", "+PONG")
			s.pauseClients(time.Hour, tc.mode == "ALL")
			for _, line := range tc.lines[:len(tc.lines)-1] {
				c.do(line)
			}
			c.send(strings.Fields(tc.lines[len(tc.lines)-1])...)
			held := func() bool {
				n := 0
				s.clients.each(func(c *client) {
					c.mu.Lock()
					defer c.mu.Unlock()
					if c.shown.blocked {
						n++
					}
				})
				return n == 1 && s.store.Counter.BlockedClients.Load() == 1
			}
			if tc.held {
				eventually(t, "the command is held, and counted as blocked", held)
				s.resumeClients()
			}
			if got := c.read(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if n := s.store.Counter.BlockedClients.Load(); n != 0 {
				t.Errorf("%d clients count as blocked in the end, want 0", n)
			}
		})
	}
}

func TestClientPauseHoldsExecWithWrites(t *testing.T) {
	s := startServer(t)
	c, asker := s.dial(t), s.dial(t)
	id := strings.TrimPrefix(c.do("CLIENT ID"), ":")
	c.want("MULTI", "+OK")
	c.want("SET k v", "+QUEUED")
	asker.want("CLIENT PAUSE 100000 WRITE", "+OK")
	c.send("EXEC")
	eventually(t, "EXEC is held", func() bool { return field(asker.listed(id), "flags") == "xb" })
	asker.want("GET k", "(nil)")
	asker.want("CLIENT UNPAUSE", "+OK")
	if got := c.read(); got != "*[+OK]" {
		t.Errorf("EXEC answered %s after the pause", got)
	}
}

// TestClientPauseIsTight: a write that had passed the first check when the pause
// began, and waits for its key, is held too.
func TestClientPauseIsTight(t *testing.T) {
	for _, lines := range [][]string{{"SET k v"}, {"MULTI", "SET k v", "EXEC"}} {
		t.Run(lines[len(lines)-1], func(t *testing.T) {
			s := startServer(t)
			unlock := lockKey(t, s, "k")
			writer, asker, pauser := s.dial(t), s.dial(t), s.dial(t)
			id := strings.TrimPrefix(writer.do("CLIENT ID"), ":")
			for _, line := range lines[:len(lines)-1] {
				writer.do(line)
			}
			writer.send(strings.Fields(lines[len(lines)-1])...)
			eventually(t, "the writer waits for its key", func() bool { return strings.Contains(field(asker.listed(id), "flags"), "b") })
			pauser.send("CLIENT", "PAUSE", "100000", "WRITE")
			eventually(t, "the pause has begun", s.engine.Pausing.Load)
			unlock()
			if got := pauser.read(); got != "+OK" {
				t.Fatalf("CLIENT PAUSE: %s", got)
			}
			asker.want("GET k", "(nil)")
			asker.want("CLIENT UNPAUSE", "+OK")
			if got := writer.read(); got != "+OK" && got != "*[+OK]" {
				t.Errorf("the writer read %s after the pause", got)
			}
			asker.want("GET k", `"v"`)
		})
	}
}

func TestClientPauseModes(t *testing.T) {
	s := startServer(t)
	left := func(writes bool) time.Duration { d, _ := s.pauseLeft(writes); return d }
	s.pauseClients(time.Hour, true)
	s.pauseClients(time.Minute, false)
	if d := left(false); d < 59*time.Minute {
		t.Errorf("a shorter WRITE behind ALL: reads are held for %v, want an hour: the later end and the stricter mode count", d)
	}
	s.resumeClients()
	s.pauseClients(time.Minute, false)
	if d := left(false); d != 0 {
		t.Errorf("WRITE after UNPAUSE holds reads for %v", d)
	}
	s.pauseClients(0, true)
	if d := left(false); d < 50*time.Second {
		t.Errorf("ALL behind WRITE: reads are held for %v, want the minute of the first", d)
	}
	s.resumeClients()

	// In its time a pause ends by itself, and those held go on.
	c := s.dial(t)
	c.want("CLIENT PAUSE 20 ALL", "+OK")
	c.want("PING", "+PONG")
	if s.engine.Pausing.Load() {
		t.Error("the pause is over, but Pausing is set")
	}
}

func TestClientKillWithinAPause(t *testing.T) {
	s := startServer(t)
	c, asker := s.dial(t), s.dial(t)
	id := strings.TrimPrefix(c.do("CLIENT ID"), ":")
	asker.want("CLIENT PAUSE 100000 WRITE", "+OK")
	c.send("SET", "k", "v")
	eventually(t, "the write is held", func() bool { return field(asker.listed(id), "flags") == "b" })
	asker.want("CLIENT KILL ID "+id, ":1")
	if got := c.read(); got != "(closed)" {
		t.Errorf("the killed client read %s", got)
	}
	eventually(t, "its goroutine has ended", func() bool { return s.clients.len() == 1 })
	asker.want("CLIENT UNPAUSE", "+OK")
	asker.want("GET k", "(nil)")
}

// TestCloseWithinAPause: a server that ends does not wait for a pause.
func TestCloseWithinAPause(t *testing.T) {
	s := startServer(t)
	c := s.dial(t)
	id := strings.TrimPrefix(c.do("CLIENT ID"), ":")
	s.pauseClients(time.Hour, false)
	c.send("SET", "k", "v")
	asker := s.dial(t)
	eventually(t, "the write is held", func() bool { return field(asker.listed(id), "flags") == "b" })
	begun := time.Now()
	if err := s.Close(testTimeout); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > testTimeout/2 {
		t.Errorf("Close took %v", took)
	}
	if got := c.read(); got != "(closed)" {
		t.Errorf("the held client read %s", got)
	}
}

func TestClientListOrder(t *testing.T) {
	s := startServer(t)
	clients := make([]*testClient, 5)
	for i := range clients {
		clients[i] = s.dial(t)
		clients[i].want("PING", "+PONG")
	}
	lines := strings.Split(strings.Trim(clients[0].do("CLIENT LIST"), `"`), `\n`)
	for i, line := range lines[:len(lines)-1] {
		if field(line, "id") != fmt.Sprint(i+1) {
			t.Errorf("line %d of CLIENT LIST is of client %s, want them in the order in which they came", i+1, field(line, "id"))
		}
	}
}
