package proxy

import (
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/scripting"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// trackingCases are commands on RESP3 whose replies must be redis-server's.
var trackingCases = []string{
	"CLIENT CACHING maybe", "CLIENT CACHING", "CLIENT CACHING yes no", "CLIENT TRACKING on off", "CLIENT TRACKING on OPTIN OPTOUT",
	"CLIENT TRACKING on PREFIX a", "CLIENT TRACKING on BCAST OPTOUT", "CLIENT TRACKING maybe OPTIN", "CLIENT TRACKINGINFO",
	"CLIENT TRACKING ON", "CLIENT TRACKINGINFO", "CLIENT GETREDIR", "CLIENT CACHING yes", "CLIENT CACHING no", "CLIENT CACHING maybe",
	"CLIENT TRACKING on BCAST", "CLIENT TRACKING on BCAST OPTIN", "CLIENT TRACKING on PREFIX a BCAST", "CLIENT TRACKING on PREFIX a",
	"CLIENT TRACKING on NOLOOP OPTIN", "CLIENT TRACKINGINFO", "CLIENT TRACKING on OPTOUT", "CLIENT TRACKING on optin optout", "CLIENT CACHING no",
	"CLIENT CACHING YES", "CLIENT TRACKINGINFO", "PING", "CLIENT TRACKINGINFO", "CLIENT CACHING maybe",
	"CLIENT CACHING yes", "NOSUCH", "CLIENT TRACKINGINFO",
	"CLIENT CACHING yes", "CLIENT NOSUCH", "CLIENT TRACKINGINFO",
	"CLIENT CACHING yes", "CLIENT CACHING", "CLIENT TRACKINGINFO",
	"CLIENT CACHING yes", "CLIENT", "CLIENT TRACKINGINFO",
	"CLIENT CACHING yes", "MULTI", "CLIENT TRACKINGINFO", "EXEC", "CLIENT TRACKINGINFO",
	"CLIENT CACHING yes", "MULTI", "DISCARD", "CLIENT TRACKINGINFO",
	"CLIENT CACHING yes", "MULTI", "NOSUCH", "EXEC", "CLIENT TRACKINGINFO",
	"MULTI", "CLIENT CACHING yes", "CLIENT TRACKINGINFO", "EXEC", "CLIENT TRACKINGINFO",
	"CLIENT TRACKING on", "CLIENT TRACKINGINFO", "CLIENT TRACKING on OPTOUT NOLOOP", "CLIENT CACHING no", "CLIENT TRACKINGINFO",
	"CLIENT TRACKING off OPTIN OPTOUT", "CLIENT TRACKINGINFO", "CLIENT GETREDIR",
	"CLIENT TRACKING on OPTIN", "CLIENT CACHING yes", "CLIENT TRACKING off", "CLIENT TRACKING on OPTIN", "CLIENT TRACKINGINFO",
	"RESET", "CLIENT TRACKINGINFO", "CLIENT GETREDIR",
}

func TestTrackingAgainstRedis(t *testing.T) {
	theirs, ours := dial(t, startRedis(t)), startServer(t).dial(t)
	theirs.do("HELLO 3")
	ours.do("HELLO 3")
	for _, line := range trackingCases {
		if want, got := theirs.do(line), ours.do(line); got != want {
			t.Errorf("%s\n latchkey %s\n redis    %s", line, got, want)
		}
	}
}

func TestTrackingRefused(t *testing.T) {
	c := startServer(t).dial(t)
	const resp2 = "-ERR CLIENT TRACKING needs RESP3: begin the connection with HELLO 3"
	c.want("CLIENT TRACKING ON", resp2)
	c.want("CLIENT TRACKING ON OPTIN", resp2)
	c.do("HELLO 3")
	id := strings.TrimPrefix(c.do("CLIENT ID"), ":")
	c.want("CLIENT TRACKING ON BCAST PREFIX a", "-ERR CLIENT TRACKING with BCAST is not supported; without it the keys that are read are tracked")
	c.want("CLIENT TRACKING ON REDIRECT "+id, "-ERR CLIENT TRACKING with REDIRECT is not supported; without it RESP3 clients (HELLO 3) are told themselves")
	if got := c.do("CLIENT TRACKINGINFO"); !strings.Contains(got, `"off"`) {
		t.Errorf("a refused CLIENT TRACKING left tracking on: %s", got)
	}
}

// trackedReads are transcripts: which of the keys a, b and c does the client
// track at the end? Redis tells when all of them change, latchkey has told
// before. all says that latchkey takes back everything, because keys are read
// that are no arguments.
var trackedReads = []struct {
	name  string
	all   bool
	lines string
}{
	{"a read", false, "CLIENT TRACKING on; GET a"},
	{"an absent key", false, "CLIENT TRACKING on; DEL a; GET a"},
	{"several keys", false, "CLIENT TRACKING on; MGET c a c"},
	{"an error", false, "CLIENT TRACKING on; GETRANGE a x y"},
	{"wrong arity", false, "CLIENT TRACKING on; GET a b"},
	{"a write", false, "CLIENT TRACKING on; SET a 1; INCR b; GETSET c 1"},
	{"no reads of keys", false, "CLIENT TRACKING on; KEYS *; DBSIZE; PING; SCAN 0"},
	{"before it is on", false, "GET a; CLIENT TRACKING on; EXISTS b"},
	{"optin without caching", false, "CLIENT TRACKING on OPTIN; GET a"},
	{"optin", false, "CLIENT TRACKING on OPTIN; CLIENT CACHING yes; GET a; GET b"},
	{"optin, past client commands", false, "CLIENT TRACKING on OPTIN; CLIENT CACHING yes; CLIENT ID; CLIENT CACHING x; GET a; GET b"},
	{"optin, used up", false, "CLIENT TRACKING on OPTIN; CLIENT CACHING yes; NOSUCH; GET a"},
	{"optin, used up by no subcommand", false, "CLIENT TRACKING on OPTIN; CLIENT CACHING yes; CLIENT NOSUCH; GET a"},
	{"optin, transaction", false, "CLIENT TRACKING on OPTIN; CLIENT CACHING yes; MULTI; PTTL a; GET a; SET c 1; EXEC; GET b"},
	{"optin, within transaction", false, "CLIENT TRACKING on OPTIN; MULTI; GET a; CLIENT CACHING yes; GET b; GET c; EXEC; GET a"},
	{"optin, discarded", false, "CLIENT TRACKING on OPTIN; CLIENT CACHING yes; MULTI; GET a; DISCARD; GET b"},
	{"on within transaction", false, "MULTI; GET a; CLIENT TRACKING on; GET b; EXEC; GET c"},
	{"optout", false, "CLIENT TRACKING on OPTOUT; GET a; CLIENT CACHING no; GET b; GET c"},
	{"optout, transaction", false, "CLIENT TRACKING on OPTOUT; CLIENT CACHING no; MULTI; GET a; EXEC; GET b"},
	{"noloop", false, "CLIENT TRACKING on NOLOOP; GET a"},
	{"aborted", false, "CLIENT TRACKING on; MULTI; GET a; NOSUCH; EXEC"},
	{"script", true, "CLIENT TRACKING on; EVAL return(redis.call('get','b')) 0"},
	{"read-only script", true, "CLIENT TRACKING on; EVAL_RO return(redis.call('get',KEYS[1])) 1 a"},
	{"optin, script", true, "CLIENT TRACKING on OPTIN; CLIENT CACHING yes; EVAL return(redis.call('get','b')) 0"},
	{"optin, script in transaction", true, "CLIENT TRACKING on OPTIN; CLIENT CACHING yes; MULTI; EVAL return(redis.call('get','b')) 0; GET a; EXEC"},
	{"script without caching", false, "CLIENT TRACKING on OPTIN; EVAL return(redis.call('get','b')) 0"},
}

// invalidations sends lines and a PING, and returns the keys that the messages
// until its reply name; "*" is all.
func (c *testClient) invalidations(lines ...string) []string {
	c.t.Helper()
	for _, line := range lines {
		c.send(strings.Fields(line)...)
	}
	c.send("PING", "end")
	var keys []string
	for {
		got := c.read()
		switch list, ok := strings.CutPrefix(got, `>["invalidate" `); {
		case got == `"end"`:
			slices.Sort(keys)
			return slices.Compact(keys)
		case got == "(closed)":
			c.t.Fatalf("closed after %q", lines)
		case ok && list == "(nil)]":
			keys = append(keys, "*")
		case ok:
			for _, quoted := range strings.Fields(strings.Trim(list, "*[]")) {
				key, err := strconv.Unquote(quoted)
				if err != nil {
					c.t.Fatalf("message %s: %v", got, err)
				}
				keys = append(keys, key)
			}
		}
	}
}

func TestTrackedReads(t *testing.T) {
	redis := startRedis(t)
	s := startScripts(t)
	for _, test := range trackedReads {
		t.Run(test.name, func(t *testing.T) {
			lines := strings.Split(test.lines, "; ")
			theirs, writer, ours := dial(t, redis), dial(t, redis), s.dial(t)
			writer.do("MSET a 1 b 1 c 1")
			theirs.do("HELLO 3")
			ours.do("HELLO 3")
			want := theirs.invalidations(lines...)
			writer.do("MSET a 2 b 2 c 2")
			want = append(want, theirs.invalidations()...)
			if test.all {
				want = []string{"*"} // Redis 7.0 forgets what a script reads, 7.2 does not
			}
			got := ours.invalidations(lines...)
			if !slices.Equal(got, want) {
				t.Errorf("%s\n latchkey invalidates %q\n redis tracks        %q", test.lines, got, want)
			}
		})
	}
}

func startScripts(t *testing.T) *Server {
	t.Helper()
	e, err := scripting.New(scripting.Options{})
	if err != nil {
		t.Fatalf("scripting.New: %v", err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	return startServer(t, scripting.NewRunner(e, scripting.Settings{}, 1, log).Specs())
}

// TestInvalidationFollows: the message comes behind the reply that it takes
// back, and before the next one.
func TestInvalidationFollows(t *testing.T) {
	c := startServer(t).dial(t)
	c.do("HELLO 3")
	c.want("MSET a 1 b 2", "+OK")
	c.want("CLIENT TRACKING on", "+OK")
	for _, args := range [][]string{{"GET", "a"}, {"MGET", "b", "a", "b"}, {"MULTI"}, {"PTTL", "a"}, {"GET", "a"}, {"EXEC"}, {"PING"}} {
		c.send(args...)
	}
	for _, want := range []string{
		`"1"`, `>["invalidate" *["a"]]`,
		`*["2" "1" "2"]`, `>["invalidate" *["a" "b"]]`,
		"+OK", "+QUEUED", "+QUEUED", `*[:-1 "1"]`, `>["invalidate" *["a"]]`, "+PONG",
	} {
		if got := c.read(); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}

	// A reply that is not sent leaves nothing to take back, and RESP2 has no messages.
	c.send("CLIENT", "REPLY", "SKIP")
	c.send("GET", "a")
	c.want("PING", "+PONG")
	c.send("CLIENT", "REPLY", "OFF")
	c.send("GET", "a")
	c.want("CLIENT REPLY ON", "+OK")
	c.do("HELLO 2")
	c.want("GET a", `"1"`)
	c.want("PING", "+PONG")
	c.do("HELLO 3")
	c.want("GET a", `"1"`)
	if got, want := c.read(), `>["invalidate" *["a"]]`; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	c.want("CLIENT TRACKING off", "+OK")
	c.want("GET a", `"1"`)
	c.want("PING", "+PONG")
}

// TestInvalidationOfSubscriber: messages and invalidations share the way out.
func TestInvalidationOfSubscriber(t *testing.T) {
	c := startServer(t).dial(t)
	c.do("HELLO 3")
	c.want("SUBSCRIBE news", `>["subscribe" "news" :1]`)
	c.want("CLIENT TRACKING on", "+OK")
	for _, args := range [][]string{{"MULTI"}, {"PUBLISH", "news", "x"}, {"GET", "a"}, {"EXEC"}, {"PING"}} {
		c.send(args...)
	}
	for _, want := range []string{"+OK", "+QUEUED", "+QUEUED", "*[:1 (nil)]", `>["message" "news" "x"]`, `>["invalidate" *["a"]]`, "+PONG"} {
		if got := c.read(); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

func TestTrackingIsShown(t *testing.T) {
	s := startServer(t)
	c, other := s.dial(t), s.dial(t)
	shown := func(flags, redir, clients string) {
		t.Helper()
		line := c.do("CLIENT INFO")
		if field(line, "flags") != flags || field(line, "redir") != redir {
			t.Errorf("CLIENT INFO: want flags=%s redir=%s: %s", flags, redir, line)
		}
		if got := other.do("INFO clients"); !strings.Contains(got, `tracking_clients:`+clients+`\r\n`) {
			t.Errorf("INFO clients: want tracking_clients:%s: %s", clients, got)
		}
	}
	c.do("HELLO 3")
	shown("N", "-1", "0")
	c.want("CLIENT TRACKING on", "+OK")
	shown("t", "0", "1")
	c.want("RESET", "+RESET")
	shown("N", "-1", "0")
}

// TestInvalidationOfScriptFamily: every command that runs others is known by its flag.
func TestInvalidationOfScriptFamily(t *testing.T) {
	s := startScripts(t)
	for _, name := range []string{"eval", "evalsha", "eval_ro", "evalsha_ro"} {
		spec := s.engine.Table.Lookup([]byte(name))
		if spec == nil || spec.Flags&command.SkipMonitor == 0 {
			t.Errorf("%s lacks the flag by which tracking knows that it reads keys which are no arguments", name)
		}
	}
}

// TestInvalidationOfUpstream: the upstream's keys are invalidated behind the
// replies that it sends, as ours are.
func TestInvalidationOfUpstream(t *testing.T) {
	c := startBefore(t, startRedis(t)).dial(t)
	c.do("HELLO 3")
	c.want("SET theirs 1", "+OK")
	c.want("SET lock:ours 2", "+OK")
	c.want("CLIENT TRACKING on", "+OK")
	for _, args := range [][]string{{"GET", "theirs"}, {"GET", "lock:ours"}, {"HGET", "h", "f"}, {"MULTI"}, {"GET", "theirs"}, {"EXEC"}, {"SET", "theirs", "3"}, {"PING"}} {
		c.send(args...)
	}
	for _, want := range []string{
		`"1"`, `>["invalidate" *["theirs"]]`, `"2"`, `>["invalidate" *["lock:ours"]]`, "(nil)", `>["invalidate" *["h"]]`,
		"+OK", "+QUEUED", `*["1"]`, `>["invalidate" *["theirs"]]`, "+OK", "+PONG",
	} {
		if got := c.read(); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}
