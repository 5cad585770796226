package transcript

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// judgeVersion begins the versions of redis-server whose answers the transcripts
// and the tests have.
const judgeVersion = "7.0."

// StartJudge starts the redis-server that a test compares with, with directives
// as StartServer takes them. It ends with the test. Where there is none, or another
// version, the test is skipped; with LATCHKEY_CI=1 it fails.
func StartJudge(t testing.TB, directives ...string) *Server {
	t.Helper()
	if missing := judgeMissing(); missing != "" {
		if os.Getenv("LATCHKEY_CI") == "1" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	s, err := StartServer(t.Context(), "redis-server", directives...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// Ask opens a connection for a test, and returns what sends a command over it and
// returns the reply. It ends with the test.
func (s *Server) Ask(t testing.TB) func(args ...string) Reply {
	t.Helper()
	c, err := dialConn(t.Context(), s.Target(), 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.nc.Close() })
	return func(args ...string) Reply {
		t.Helper()
		r, err := c.do(args...)
		if err != nil {
			t.Fatalf("%.200q: %v", args, err)
		}
		return r
	}
}

// judgeMissing says why there is no judge, "" if there is one.
var judgeMissing = sync.OnceValue(func() string {
	out, err := exec.Command("redis-server", "--version").Output()
	if err != nil {
		return "redis-server is missing: install the Debian package redis-server (" + err.Error() + ")"
	}
	if !strings.Contains(string(out), "v="+judgeVersion) {
		return "redis-server " + judgeVersion + "x is wanted, as in Debian 12's package redis-server; this is another: " + string(out)
	}
	return ""
})
