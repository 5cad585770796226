package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-h"}} {
		runCLI("", args...).want(t, 0, "Usage: latchkey cli", "=")
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--nothing"}, "unknown option --nothing"},
		{[]string{"-p"}, "-p needs a value"},
		{[]string{"-p", "x"}, `-p: "x" is not a port`},
		{[]string{"-p", "0"}, "is not a port"},
		{[]string{"-p", "65536"}, "is not a port"},
		{[]string{"-n", "-1"}, "is not a database"},
		{[]string{"-r", "many"}, "is not a number of repetitions"},
		{[]string{"-i", "-1"}, "is not a number of seconds"},
		{[]string{"-i", "NaN"}, "is not a number of seconds"},
		{[]string{"-3"}, "RESP2 only"},
		{[]string{"-u", "http://h"}, "neither redis nor rediss"},
		{[]string{"-u", "redis://h:99999"}, "is not a port"},
		{[]string{"-u", "redis://h/db"}, "is not a database"},
		{[]string{"--cert", "f"}, "need each other"},
		{[]string{"-x"}, "need a command"},
		{[]string{"-x", "-X", "t", "get"}, "exclude each other"},
	} {
		got := runCLI("", c.args...)
		got.want(t, 2, "=", c.want)
		if !strings.HasPrefix(got.errOut, "latchkey: error: ") || !strings.Contains(got.errOut, "\nlatchkey: hint: ") {
			t.Errorf("%q: %q has no error and hint lines", c.args, got.errOut)
		}
	}
	got := runCLI("", "-u", "redis://user:s3cret@ho st")
	if got.want(t, 2, "=", "-u: not a URL"); strings.Contains(got.errOut, "s3cret") {
		t.Errorf("the password is in the message: %s", got.errOut)
	}
}

func TestParse(t *testing.T) {
	env := map[string]string{"LATCHKEY_AUTH": "ours", "REDISCLI_AUTH": "theirs"}
	getenv := func(name string) string { return env[name] }
	parsed := func(args ...string) options {
		t.Helper()
		o, _, err := parse(args, getenv)
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return o
	}
	o := parsed()
	if o.address.String() != "127.0.0.1:6380" || o.password != "ours" || o.passwordShown {
		t.Errorf("defaults: %+v", o)
	}
	delete(env, "LATCHKEY_AUTH")
	if o := parsed(); o.password != "theirs" {
		t.Errorf("REDISCLI_AUTH: password %q", o.password)
	}
	if o := parsed("-a", "flag"); o.password != "flag" || !o.passwordShown {
		t.Errorf("-a: %+v", o)
	}
	o = parsed("-u", "rediss://me:p%40ss@[::1]:7000/3")
	if !o.address.tls || o.address.String() != "[::1]:7000" || o.user != "me" || o.password != "p@ss" || o.db != 3 {
		t.Errorf("-u: %+v", o)
	}
	o = parsed("-u", "redis://secret@db.example")
	if o.address.String() != "db.example:6380" || o.user != "" || o.password != "secret" {
		t.Errorf("-u with a password alone: %+v", o)
	}
	_, rest, _ := parse([]string{"-n", "1", "set", "-n", "2"}, getenv)
	if fmt.Sprint(rest) != "[set -n 2]" {
		t.Errorf("options end at the command: %q", rest)
	}
}

func TestLogin(t *testing.T) {
	r := startRedis(t, "--requirepass", "secret")
	r.cli("", "ping").want(t, 0, "NOAUTH", "=")
	r.cli("", "-a", "secret", "ping").want(t, 0, "=PONG\n", "latchkey: hint: other users")
	r.cli("", "-a", "secret", "--no-auth-warning", "ping").want(t, 0, "=PONG\n", "=")
	r.cli("", "--user", "default", "--pass", "secret", "--no-auth-warning", "ping").want(t, 0, "=PONG\n", "=")
	r.cli("", "-u", "redis://:secret@127.0.0.1:"+r.port+"/2", "--no-auth-warning", "client", "info").want(t, 0, " db=2 ", "=")
	// What cannot log in must not run as somebody else.
	r.cli("", "-a", "wrong", "ping").want(t, 1, "=", "login at 127.0.0.1:"+r.port+" failed: WRONGPASS")
	r.cli("", "-n", "1", "ping").want(t, 1, "=", "cannot select database 1: NOAUTH")
	r.cli("ping\nauth secret\nping\n").want(t, 0, "\nOK\nPONG\n", "=")
	t.Setenv("REDISCLI_AUTH", "wrong")
	t.Setenv("LATCHKEY_AUTH", "secret")
	r.cli("", "ping").want(t, 0, "=PONG\n", "=")

	open := startRedis(t)
	open.cli("", "ping").want(t, 0, "=PONG\n", "needs no password")
	open.cli("", "--user", "nobody", "ping").want(t, 1, "=", "WRONGPASS")
	open.cli("", "-n", "99", "set", "a", "1").want(t, 1, "=", "cannot select database 99: ERR DB index is out of range")
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	want := "=latchkey: error: cannot connect to 127.0.0.1:" + port + ": connection refused\n" +
		"latchkey: hint: no server is running there; -h, -p and -s choose another\n"
	runCLI("", "-p", port, "ping").want(t, 1, "=", want)
	runCLI("ping\nping\n", "-p", port).want(t, 1, "=", want)
	runCLI("", "-s", t.TempDir()+"/none", "ping").want(t, 1, "=", "no such file or directory")
	runCLI("", "-p", port, "--eval", t.TempDir()+"/none.lua").want(t, 1, "=", "cannot read the script")
	runCLI("", "-p", port, "--tls", "--cacert", os.DevNull, "ping").want(t, 1, "=", "holds no certificate")
	runCLI("", "-p", port, "help").want(t, 0, "help COMMAND", "=")
}

// fake is a server that answers every connection's first bytes with a text and
// closes it. count is how many connections it has had.
func fake(t *testing.T, answer string) (port string, count func() int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			n++
			nc.Read(make([]byte, 1024))
			io.WriteString(nc, answer)
			nc.Close()
		}
	}()
	stop := func() {
		l.Close()
		<-done
	}
	t.Cleanup(stop)
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, func() int { stop(); return n }
}

func TestBrokenServers(t *testing.T) {
	for _, c := range []struct{ answer, want string }{
		{"", "closed the connection before it had answered; whether the command ran is unknown"},
		{"$100\r\nabc", "closed the connection before it had answered"},
		{"HTTP/1.1 400 Bad Request\r\n\r\n", "it begins with 'H'; is this a Redis server?; the connection was closed"},
		{"%0\r\n", "RESP3"},
		{"*1048577\r\n", "outside of"},
	} {
		port, count := fake(t, c.answer)
		runCLI("", "-p", port, "incr", "a").want(t, 1, "=", c.want)
		if n := count(); n != 1 {
			t.Errorf("%q: the command was sent %d times", c.answer, n)
		}
	}
	port, _ := fake(t, "+PONG\r\n")
	runCLI("", "-p", port, "--tls", "ping").want(t, 1, "=", "latchkey: hint: the server does not speak TLS there")
}

func TestPipeFailures(t *testing.T) {
	r := startRedis(t)
	r.cli("set a x\nincr a\nset a y\n", "-e").want(t, 1, "=OK\n", "=latchkey: error: line 2: ERR value is not an integer or out of range\n")
	r.cli("", "get", "a").want(t, 0, "=x\n", "=")
	r.cli("ping\n\"\nping\n", "-e").want(t, 1, "=PONG\n", "line 2: Invalid argument(s)")
	r.cli("ping\nhello 3\nping\n").want(t, 1, "=PONG\n", "line 2: HELLO 3 would switch to RESP3")
	r.cli("", "client", "reply", "off").want(t, 1, "=", "never comes")
	r.cli("", "psync", "?", "-1").want(t, 1, "=", "replication stream")
	r.cli("", "-X", "TAG", "set", "a", "b").want(t, 1, "=", `no argument is "TAG"`)
	r.cli("", "--quoted-input", "echo", `"a`).want(t, 1, "=", "is not one quoted argument")
	r.cli("return ARGV[1]", "--eval", "-", ",", "v").want(t, 0, "=v\n", "=")
	r.cli("", "-s", r.socket, "ping").want(t, 0, "=PONG\n", "=")
	r.cli("", "shutdown", "nosave").want(t, 0, "=", "=")
}

func TestOutputFails(t *testing.T) {
	r := startRedis(t)
	var errOut bytes.Buffer
	pr, pw := io.Pipe()
	pr.Close()
	if exit := Run([]string{"-p", r.port, "-r", "-1", "ping"}, strings.NewReader(""), pw, &errOut); exit != 1 || !strings.Contains(errOut.String(), "cannot write to standard output") {
		t.Errorf("exit %d, %q; want the failed write to end an endless repetition", exit, errOut.String())
	}
}

func TestHelp(t *testing.T) {
	r := startRedis(t)
	r.cli("", "help", "get").want(t, 0, "=\n  GET key\n  summary: Get the value of a key\n  since: 1.0.0\n  group: string\n\n", "=")
	for command, want := range map[string]string{
		"set":         "  SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]\n",
		"config get":  "  CONFIG GET parameter [parameter ...]\n",
		"config":      "  CONFIG RESETSTAT\n",
		"mset":        "  MSET key value [key value ...]\n",
		"sort":        "[GET pattern [GET pattern ...]] [ASC | DESC]",
		"xadd":        "[<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <* | id>",
		"migrate":     `<key | "">`,
		"@string":     "  GETEX key",
		"nothing":     "No help for NOTHING",
		"@nothing":    "No help for @NOTHING",
		"get nothing": "No help for GET NOTHING",
	} {
		r.cli("", append([]string{"help"}, strings.Fields(command)...)...).want(t, 0, want, "=")
	}
}

// steps are the lines of a prompt, each with something that happens before it
// is typed, and the prompt that should be there then.
type steps struct {
	t       *testing.T
	steps   []step
	history []string
}

type step struct {
	prompt string
	before func()
	line   string
}

func (s *steps) readLine(prompt string) (string, error) {
	if len(s.steps) == 0 {
		return "", io.EOF
	}
	next := s.steps[0]
	s.steps = s.steps[1:]
	if prompt != next.prompt {
		s.t.Errorf("before %q the prompt is %q, want %q", next.line, prompt, next.prompt)
	}
	if next.before != nil {
		next.before()
	}
	return next.line, nil
}

func (s *steps) remember(line string) { s.history = append(s.history, line) }

// prompt runs steps at a prompt and returns what it printed.
func (r redis) prompt(t *testing.T, list ...step) result {
	t.Helper()
	opt, _, err := parse([]string{"-p", r.port, "--no-raw"}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	s := &session{opt: opt, out: bufio.NewWriter(&out), err: &errOut}
	defer s.drop()
	if err := s.connect(true); err != nil {
		s.complain(err)
	}
	exit := s.prompt(&steps{t: t, steps: list})
	s.out.Flush()
	return result{exit, out.String(), errOut.String()}
}

func TestPrompt(t *testing.T) {
	r := startRedis(t)
	at := "127.0.0.1:" + r.port
	r.prompt(t,
		step{prompt: at + "> ", line: "select 2"},
		step{prompt: at + "[2]> ", line: "multi"},
		step{prompt: at + "[2](TX)> ", line: "select 3"},
		step{prompt: at + "[3](TX)> ", line: "discard"},
		step{prompt: at + "[2]> ", line: "multi"},
		step{prompt: at + "[2](TX)> ", line: "nosuchcommand"},
		step{prompt: at + "[2](TX)> ", line: "select 4"},
		step{prompt: at + "[4](TX)> ", line: "exec"},
		step{prompt: at + "[2]> ", line: "multi"},
		step{prompt: at + "[2](TX)> ", line: "select 5"},
		step{prompt: at + "[5](TX)> ", line: "exec"},
		step{prompt: at + "[5]> ", line: "multi"},
		step{prompt: at + "[5](TX)> ", line: "reset"},
		step{prompt: at + "> ", line: "select 99"},
		step{prompt: at + "> ", line: "0 ping"},
		step{prompt: at + "> ", line: "connect 127.0.0.1 nowhere"},
		step{prompt: at + "> ", line: "connect localhost " + r.port},
		step{prompt: "localhost:" + r.port + "> ", line: "clear"},
		step{prompt: "localhost:" + r.port + "> ", line: "help"},
		step{prompt: "localhost:" + r.port + "> ", line: "debug sleep 0.5"},
		step{prompt: "localhost:" + r.port + "> ", line: "quit"},
		step{prompt: "not reached", line: "ping"},
	).want(t, 0, "\nOK\n(0.5", `latchkey: error: "nowhere" is not a port`)
}

func TestPromptReconnects(t *testing.T) {
	r := startRedis(t)
	at := "127.0.0.1:" + r.port
	kill := func() { r.cli("", "client", "kill", "type", "normal") }
	r.prompt(t,
		step{prompt: at + "> ", line: "select 3"},
		step{prompt: at + "[3]> ", line: "set a 1"},
		step{prompt: at + "[3]> ", before: kill, line: "incr a"},
		step{prompt: at + "[3]> ", line: "get a"},
	).want(t, 0, "=OK\nOK\n(integer) 2\n\"2\"\n", "=latchkey: "+at+" had closed the connection; connected again\n")

	r.prompt(t,
		step{prompt: at + "> ", line: "watch a"},
		step{prompt: at + "> ", line: "multi"},
		step{prompt: at + "(TX)> ", before: kill, line: "set lost 1"},
		step{prompt: "not connected> ", line: "exists lost"},
		step{prompt: at + "> ", line: "watch a"},
		step{prompt: at + "> ", before: kill, line: "multi"},
	).want(t, 0, "=OK\nOK\n(integer) 0\nOK\n", "MULTI or WATCH ended with it; nothing was sent")

	r.prompt(t,
		step{prompt: at + "> ", line: "shutdown nosave"},
		step{prompt: "not connected> ", line: "ping"},
		step{prompt: "not connected> ", line: "ping"},
	).want(t, 0, "=", "connection refused")
}

func TestEditor(t *testing.T) {
	const up, down, left, right, home, end, del = "\x1b[A", "\x1b[B", "\x1b[D", "\x1b[C", "\x1b[H", "\x1bOF", "\x1b[3~"
	for _, c := range []struct{ name, keys, want string }{
		{"plain", "get k\r", "get k"},
		{"line feed", "get k\n", "get k"},
		{"backspace", "gett\x7f k\r", "get k"},
		{"insert", "gt k" + left + left + left + "e\r", "get k"},
		{"home and end", "et " + home + "g" + end + "k\r", "get k"},
		{"ctrl-a and ctrl-e", "et \x01g\x05k\r", "get k"},
		{"delete", "xget k" + home + del + "\r", "get k"},
		{"ctrl-d deletes", "xget k\x01\x04\r", "get k"},
		{"past the ends", left + right + del + "\x7f" + "get k" + right + right + "\r", "get k"},
		{"ctrl-k", "get k and more" + strings.Repeat(left, 9) + "\x0b\r", "get k"},
		{"ctrl-u", "rubbish\x15get k\r", "get k"},
		{"ctrl-w", "get rubbish \x17k\r", "get k"},
		{"ctrl-c begins anew", "rubbish\x03get k\r", "get k"},
		{"unknown sequence", "get\x1b[200~ k\x1b[15;5~\r", "get k"},
		{"control keys are no text", "g\x00e\x1ft k\r", "get k"},
		{"tab", "get\tk\r", "get k"},
		{"runes", "écho ü" + left + "\x7f " + left + left + "\r", "écho ü"},
		{"last of the history", up + "\r", "second"},
		{"first of the history", up + up + up + "\r", "first"},
		{"back to the draft", "dra" + up + up + down + down + down + "ft\r", "draft"},
		{"ctrl-p and ctrl-n", "\x10\x10\x0e\r", "second"},
		{"edited history", up + "\x7f\x7f\r", "seco"},
	} {
		var out bytes.Buffer
		e := &editor{in: bufio.NewReader(strings.NewReader(c.keys)), out: &out, width: func() int { return 12 }}
		e.remember("first")
		e.remember("second")
		e.remember("second")
		got, err := e.readLine("> ")
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
		if e.history[0] != "first" || e.history[1] != "second" || len(e.history) != 2 {
			t.Errorf("%s: history is now %q", c.name, e.history)
		}
	}
	for _, keys := range []string{"\x04", "\x03", "", "half", "\x1b", "\x1b["} {
		e := &editor{in: bufio.NewReader(strings.NewReader(keys)), out: io.Discard, width: func() int { return 80 }}
		if line, err := e.readLine("> "); !errors.Is(err, io.EOF) {
			t.Errorf("%q: %q, %v; want EOF", keys, line, err)
		}
	}
	var out bytes.Buffer
	e := &editor{in: bufio.NewReader(strings.NewReader("secret\r")), out: &out, width: func() int { return 80 }, mask: true}
	if got, err := e.readLine("password: "); got != "secret" || err != nil || strings.Contains(out.String(), "s*") || !strings.Contains(out.String(), "******") {
		t.Errorf("masked: %q, %v, shown as %q", got, err, out.String())
	}
	for i := range maxHistory + 5 {
		e.remember(fmt.Sprint(i))
	}
	if len(e.history) != maxHistory || e.history[0] != "5" {
		t.Errorf("the history holds %d lines from %q; want %d from 5", len(e.history), e.history[0], maxHistory)
	}
}
