package proxy

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// monitored reads n lines and returns them without time and address.
func (c *testClient) monitored(n int) []string {
	c.t.Helper()
	lines := make([]string, n)
	for i := range lines {
		line := c.read()
		m := monitorFormat.FindStringSubmatch(line)
		if m == nil {
			c.t.Fatalf("line %d of MONITOR has not Redis's format: %s", i, line)
		}
		lines[i] = m[1] + m[2]
	}
	return lines
}

var monitorFormat = regexp.MustCompile(`(?s)^\+\d{10}\.\d{6} (\[\d+) (?:127\.0\.0\.1:\d+|unix:\S+)(\] ".*)$`)

// TestMonitorAgainstRedis sends the same commands to both servers and wants the
// same lines in the same order.
func TestMonitorAgainstRedis(t *testing.T) {
	redis := startRedis(t)
	s := startServer(t)
	commands := [][]string{
		{"PING"},
		{"set", "k", "a b\x00\xff\"\\\n\r\t\a\b~\x7f"},
		{"INCR", "k"},
		{"GET", "k", "too", "many"},
		{"NOSUCH"},
		{"AUTH", "secret"},
		{"HELLO", "3", "AUTH", "user", "secret"},
		{"CLIENT", "ID"},
		{"CLIENT", "LIST"},
		{"CLIENT", "NO-TOUCH"},
		{"MULTI"},
		{"SET", "a", "1"},
		{"INCR", "k"},
		{"GET", "a"},
		{"EXEC"},
		{"MULTI"},
		{"SET", "a", "2"},
		{"DISCARD"},
		{"WATCH", "a"},
		{"UNWATCH"},
		{"MGET", "a", "k", "none"},
		{"PUBLISH", "c", "m"},
		{"SUBSCRIBE", "c"},
		{"UNSUBSCRIBE", "c"},
		{"RESET"},
		{"ECHO", "last"},
	}
	var lines [2][]string
	for i, addr := range []string{redis, s.Addrs()[0].String()} {
		mon, c := dial(t, addr), dial(t, addr)
		mon.want("MONITOR", "+OK")
		for _, args := range commands {
			c.send(args...)
			c.read()
		}
		for {
			line := mon.monitored(1)[0]
			lines[i] = append(lines[i], line)
			if strings.HasSuffix(line, `"last"`) {
				break
			}
		}
	}
	if want, got := strings.Join(lines[0], "\n"), strings.Join(lines[1], "\n"); got != want {
		t.Errorf("MONITOR\n--- latchkey\n%s\n--- redis\n%s", got, want)
	}
}

func TestMonitorClientAgainstRedis(t *testing.T) {
	redis := startRedis(t)
	s := startServer(t)
	for _, hello := range []string{"HELLO 2", "HELLO 3"} {
		var got [2]string
		for i, addr := range []string{redis, s.Addrs()[0].String()} {
			mon, c := dial(t, addr), dial(t, addr)
			mon.do(hello)
			mon.want("MONITOR", "+OK")
			mon.send("MONITOR") // no reply
			got[i] = mon.do("GET k") + mon.do("SET k v") + mon.do("NOSUCH")
			got[i] += mon.do("RESET") + mon.do("GET k")
			c.want("PING", "+PONG")
			got[i] += mon.do("PING")
		}
		if got[0] != got[1] {
			t.Errorf("a client in MONITOR, after %s\n latchkey %s\n redis    %s", hello, got[1], got[0])
		}
	}
	if n := s.engine.Monitors.Load(); n != 0 {
		t.Errorf("%d monitors after RESET, want 0", n)
	}
}

// TestMonitorRerun: a transaction that has to run again is shown once.
func TestMonitorRerun(t *testing.T) {
	s := startServer(t)
	tx := s.store.NewTx()
	var c command.Session
	c.Tx = tx
	mon := s.dial(t)
	mon.want("MONITOR", "+OK")
	spec := s.engine.Table.Lookup([]byte("set"))
	reply := newDiscard()
	call := func(key string) *command.Call {
		return &command.Call{E: s.engine, S: &c, Spec: spec, Args: [][]byte{[]byte("set"), []byte(key), []byte("v")}, Tx: tx, Reply: reply, From: command.FromScript}
	}
	tx.Begin()
	if err := tx.Acquire(nil); err != nil {
		t.Fatal(err)
	}
	s.engine.Exec(call("a"))
	tx.Rollback() // as a clash would
	tx.Begin()
	if err := tx.Acquire(nil); err != nil {
		t.Fatal(err)
	}
	s.engine.Exec(call("a"))
	s.engine.Exec(call("b"))
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`[0 lua] "set" "a" "v"`, `[0 lua] "set" "b" "v"`} {
		if line := mon.read(); !strings.HasSuffix(line, want) {
			t.Errorf("got %s, want a line that ends in %s", line, want)
		}
	}
}

func TestMonitorLeaves(t *testing.T) {
	s := startServer(t)
	mon := s.dial(t)
	mon.want("MONITOR", "+OK")
	mon.conn.Close()
	eventually(t, "the monitor has gone", func() bool { return s.engine.Monitors.Load() == 0 && s.clients.len() == 0 })
}

func TestMonitorSlowReader(t *testing.T) {
	s := startServer(t)
	s.bufferLimit.Store(&bufferLimits{pubsub: s.bufferLimit.Load().pubsub})
	s.bufferLimit.Load().pubsub.Hard = 1 << 20
	mon, c := s.dial(t), s.dial(t)
	mon.want("MONITOR", "+OK")
	value := strings.Repeat("x", 1<<18)
	eventually(t, "a monitor that does not read is closed", func() bool {
		c.want("ECHO "+value, `"`+value+`"`)
		return s.engine.Monitors.Load() == 0
	})
	if n := s.stats.outputLimit.Load(); n != 1 {
		t.Errorf("%d clients were closed at their output limit, want 1", n)
	}
}

func TestMonitorLine(t *testing.T) {
	s := startServer(t)
	at := time.Unix(1700000000, 42_000)
	for _, tc := range []struct{ args, want string }{
		{"HELLO", `"HELLO"`},
		{"AUTH u p", `"AUTH" "(redacted)" "(redacted)"`},
		{"AUTH a b c", `"AUTH" "(redacted)" "(redacted)" "(redacted)"`},
		{"HELLO 3 auth u p SETNAME n", `"HELLO" "3" "auth" "(redacted)" "(redacted)" "SETNAME" "n"`},
		{"HELLO 3 SETNAME n AUTH u p", `"HELLO" "3" "SETNAME" "n" "AUTH" "(redacted)" "(redacted)"`},
		{"HELLO 9 AUTH u p", `"HELLO" "9" "AUTH" "(redacted)" "(redacted)"`},
		{"HELLO 3 NOSUCH AUTH u", `"HELLO" "3" "NOSUCH" "AUTH" "(redacted)"`},
	} {
		fields := strings.Fields(tc.args)
		spec := s.engine.Table.Lookup([]byte(fields[0]))
		var args [][]byte
		for _, a := range fields {
			args = append(args, []byte(a))
		}
		line := monitorLine(at, &command.Call{S: &command.Session{DB: 5}, Spec: spec, Args: args, From: command.FromScript})
		if got, want := string(line), "+1700000000.000042 [5 lua] "+tc.want+"\r\n"; got != want {
			t.Errorf("%s\n got %swant %s", tc.args, got, want)
		}
	}
}

// TestMonitorScripts: a command that runs others is shown before them, whether
// it succeeds, fails or is undone, alone and within a transaction.
func TestMonitorScripts(t *testing.T) {
	script := &command.Spec{
		Name: "test.script", Arity: 3, Flags: command.SkipMonitor, Access: command.Locked, Keys: command.OneKey(command.KeyRW),
		Handler: func(c *command.Call) {
			set := c.E.Table.Lookup([]byte("set"))
			s := command.Session{DB: c.S.DB, Tx: c.Tx, Client: c.S.Client}
			inner := command.Call{S: &s, Spec: set, Args: [][]byte{[]byte("set"), c.Args[1], []byte("v")}, Tx: c.Tx, Reply: newDiscard(), From: command.FromScript}
			c.E.Exec(&inner)
			switch string(c.Args[2]) {
			case "fail":
				c.ErrKept("ERR kept")
			case "undo":
				c.Err("ERR undone")
			default:
				c.OK()
			}
		},
	}
	s := startServer(t, []*command.Spec{script})
	mon, c := s.dial(t), s.dial(t)
	mon.want("MONITOR", "+OK")
	for _, line := range []string{"TEST.SCRIPT k ok", "TEST.SCRIPT k fail", "TEST.SCRIPT k undo", "MULTI", "TEST.SCRIPT k ok", "EXEC", "ECHO last"} {
		c.do(line)
	}
	for _, want := range []string{
		`"TEST.SCRIPT" "k" "ok"`, `[0 lua] "set" "k" "v"`,
		`"TEST.SCRIPT" "k" "fail"`, `[0 lua] "set" "k" "v"`,
		`"TEST.SCRIPT" "k" "undo"`,
		`"MULTI"`, `"TEST.SCRIPT" "k" "ok"`, `[0 lua] "set" "k" "v"`, `"EXEC"`,
		`"ECHO" "last"`,
	} {
		if line := mon.read(); !strings.HasSuffix(line, want) {
			t.Errorf("got %s, want a line that ends in %s", line, want)
		}
	}
}
