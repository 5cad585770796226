package proxy

import (
	"strconv"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// slowArgsOf are the arguments of the slow log's entries, newest first.
func slowArgsOf(c *testClient) []string {
	c.t.Helper()
	c.send("SLOWLOG", "GET", "-1")
	r, err := transcript.ReadReply(c.r)
	if err != nil || r.Kind != transcript.Array {
		c.t.Fatalf("SLOWLOG GET -1: %s (%v)", show(r), err)
	}
	var out []string
	for _, e := range r.Elems {
		var words []string
		for _, a := range e.Elems[3].Elems {
			words = append(words, a.Text)
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

// TestSlowlogShowsNoSecrets looks for the secrets themselves, wherever they
// might stand.
func TestSlowlogShowsNoSecrets(t *testing.T) {
	s := startServerWith(t, Options{}, "--slowlog-log-slower-than", "0")
	c := s.dial(t)
	const secret = "hunter2"
	for _, line := range []string{
		"CONFIG SET timeout 0 requirepass " + secret + " maxmemory 0",
		"config set REQUIREPASS " + secret,
		"AUTH " + secret, "AUTH default " + secret, "AUTH wrong" + secret,
		"HELLO 2 AUTH default " + secret + " SETNAME me", "HELLO 2 SETNAME me auth default " + secret, "HELLO 2 AUTH default wrong" + secret,
		"ACL SETUSER bob >" + secret, "ACL DELUSER " + secret, "ACL GETUSER " + secret,
		"MULTI", "AUTH " + secret, "CONFIG SET requirepass " + secret, "EXEC",
		"AUTH", "CONFIG SET requirepass",
	} {
		c.do(line)
	}
	shown := slowArgsOf(c)
	for _, args := range shown {
		if strings.Contains(args, secret) {
			t.Errorf("SLOWLOG shows a secret: %s", args)
		}
	}
	for _, want := range []string{
		"CONFIG SET timeout 0 requirepass (redacted) maxmemory 0", "config set REQUIREPASS (redacted)",
		"HELLO 2 AUTH (redacted) (redacted) SETNAME me", "HELLO 2 SETNAME me auth (redacted) (redacted)",
		"ACL SETUSER (redacted) (redacted)", "MULTI",
	} {
		found := false
		for _, args := range shown {
			found = found || args == want
		}
		if !found {
			t.Errorf("SLOWLOG does not show %q:\n%s", want, strings.Join(shown, "\n"))
		}
	}
	for _, args := range shown {
		if args == "EXEC" {
			t.Error("SLOWLOG shows EXEC; as in Redis only what it ran is logged")
		}
	}
}

func TestSlowlogKeepsLittle(t *testing.T) {
	s := startServerWith(t, Options{}, "--slowlog-log-slower-than", "0", "--slowlog-max-len", "3")
	c := s.dial(t)
	c.want("CLIENT SETNAME me", "+OK")
	c.send(append([]string{"MGET"}, strings.Fields(strings.Repeat("k ", 40))...)...)
	c.read()
	c.want("GET "+strings.Repeat("x", 200), "(nil)")
	got := slowArgsOf(c)
	want := []string{
		"GET " + strings.Repeat("x", 128) + "... (72 more bytes)",
		"MGET " + strings.Repeat("k ", 30) + "... (10 more arguments)",
		"CLIENT SETNAME me",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("SLOWLOG\n got %q\nwant %q", got, want)
	}
	for i := range 20 {
		c.want("SET k "+strconv.Itoa(i), "+OK")
	}
	c.want("SLOWLOG LEN", ":3")
	c.want("CONFIG SET slowlog-log-slower-than -1", "+OK")
	c.want("SLOWLOG RESET", "+OK")
	c.want("SET k v", "+OK")
	c.want("SLOWLOG LEN", ":0")
	c.want("SLOWLOG GET", "*[]")
	c.want("CONFIG SET slowlog-max-len 0", "+OK")
	c.want("CONFIG SET slowlog-log-slower-than 0", "+OK")
	c.want("SET k v", "+OK")
	c.want("SLOWLOG LEN", ":0")
}

// The ids go on growing and the client is the one that asked.
func TestSlowlogEntry(t *testing.T) {
	s := startServerWith(t, Options{}, "--slowlog-log-slower-than", "0")
	c := s.dial(t)
	c.want("SET k v", "+OK")
	c.want("SLOWLOG RESET", "+OK")
	c.want("CLIENT SETNAME me", "+OK")
	c.send("SLOWLOG", "GET", "1")
	r, err := transcript.ReadReply(c.r)
	if err != nil || len(r.Elems) != 1 || len(r.Elems[0].Elems) != 6 {
		t.Fatalf("SLOWLOG GET 1: %s (%v)", show(r), err)
	}
	e := r.Elems[0].Elems
	if e[0].Text != "2" || e[4].Text != c.conn.LocalAddr().String() || e[5].Text != "me" {
		t.Errorf("entry %s: want id 2 of client %s named me", show(r.Elems[0]), c.conn.LocalAddr())
	}
}
