package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// redisServer and redisCLI are the real ones, empty if they are not installed.
// In scripts redis-server is latchkey under that name.
var redisServer, redisCLI string

func TestMain(m *testing.M) {
	// A server within a test compiles modules with the program it runs in, which is
	// this one.
	if len(os.Args) > 1 && os.Args[1] == "plugin" {
		os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	redisServer, _ = exec.LookPath("redis-server")
	redisCLI, _ = exec.LookPath("redis-cli")
	testscript.Main(m, map[string]func(){"latchkey": main, "redis-server": main})
}

// TestScripts runs the program as its users do. Beside testscript's own
// commands, the scripts have:
//
//	start NAME [<FILE] PROGRAM [ARG ...]   start a server, with FILE as its standard input, and wait until it is
//	                                       ready; then stdout is what it has said so far
//	signal NAME TERM|INT                   send it a signal
//	ended NAME CODE                        wait until it has ended by itself, with this exit code; then stdout and
//	                                       stderr are all that it said
//
// $PORT, $PORT2 and $PORT3 are free TCP ports, $SOCK is a path that is short
// enough for a Unix socket. $CAD is the folder of an example plugin. $REDIS is the real redis-server, and the condition
// [redis] says whether there is one; with LATCHKEY_CI=1 there must be.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"PORT", "PORT2", "PORT3"} {
				port, err := freePort()
				if err != nil {
					return err
				}
				env.Setenv(name, strconv.Itoa(port))
			}
			// The path of a socket has 107 bytes at most, and $WORK may have as many.
			dir, err := os.MkdirTemp("", "lk")
			if err != nil {
				return err
			}
			env.Defer(func() { os.RemoveAll(dir) })
			env.Setenv("SOCK", dir+"/s")
			env.Setenv("REDIS", redisServer)
			cad, err := filepath.Abs("../../examples/plugins/cad")
			if err != nil {
				return err
			}
			env.Setenv("CAD", cad)
			env.Setenv("XDG_CACHE_HOME", env.WorkDir+"/cache") // of compiled modules
			env.Values[serversKey{}] = make(map[string]*process)
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond != "redis" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			if redisServer == "" && os.Getenv("LATCHKEY_CI") == "1" {
				return false, fmt.Errorf("redis-server is not installed; on Debian: apt install redis-server")
			}
			return redisServer != "", nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"start":  scriptStart,
			"signal": scriptSignal,
			"ended":  scriptEnded,
		},
	})
}

// serversKey is where a script keeps its servers, by name.
type serversKey struct{}

func scriptServer(ts *testscript.TestScript, name string) *process {
	s := ts.Value(serversKey{}).(map[string]*process)[name]
	if s == nil {
		ts.Fatalf("no server %s was started", name)
	}
	return s
}

func scriptStart(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start NAME [<FILE] PROGRAM [ARG ...]")
	}
	name, args := args[0], args[1:]
	var stdin string
	if file, ok := strings.CutPrefix(args[0], "<"); ok {
		stdin, args = ts.ReadFile(file), args[1:]
	}
	if len(args) == 0 {
		ts.Fatalf("usage: start NAME [<FILE] PROGRAM [ARG ...]")
	}
	s, err := startServer(ts.MkAbs("."), stdin, args[0], args[1:]...)
	if err != nil {
		ts.Fatalf("start %s: %v", name, err)
	}
	ts.Defer(s.stop)
	ts.Value(serversKey{}).(map[string]*process)[name] = s
	fmt.Fprint(ts.Stdout(), s.stdout)
}

func scriptSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL}
	if neg || len(args) != 2 || signals[args[1]] == nil {
		ts.Fatalf("usage: signal NAME TERM|INT|KILL")
	}
	ts.Check(scriptServer(ts, args[0]).cmd.Process.Signal(signals[args[1]]))
}

func scriptEnded(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ended NAME CODE")
	}
	s := scriptServer(ts, args[0])
	select {
	case <-s.exited:
	case <-time.After(patience):
		ts.Fatalf("%s has not ended within %v; it said:\n%s%s", args[0], patience, s.stdout, s.stderr)
	}
	fmt.Fprint(ts.Stdout(), s.stdout)
	fmt.Fprint(ts.Stderr(), s.stderr)
	if code := strconv.Itoa(s.cmd.ProcessState.ExitCode()); code != args[1] {
		ts.Fatalf("%s ended with %s, want exit code %s", args[0], s.cmd.ProcessState, args[1])
	}
}
