package cli

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

func TestMain(m *testing.M) {
	// The environment of whoever runs the tests must not log in anywhere.
	os.Unsetenv("LATCHKEY_AUTH")
	os.Unsetenv("REDISCLI_AUTH")
	goleak.VerifyTestMain(m)
}

// program finds a program of a Debian package, or skips the test; with
// LATCHKEY_CI=1 it fails it.
func program(t *testing.T, name, debian string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	text := fmt.Sprintf("%s is not installed: apt-get install %s", name, debian)
	if os.Getenv("LATCHKEY_CI") == "1" {
		t.Fatal(text)
	}
	// It may: the README promises that Go is all that is needed.
	t.Skip(text)
	return ""
}

// redis is a redis-server that ends with the test.
type redis struct {
	port   string
	socket string
}

func startRedis(t *testing.T, args ...string) redis {
	t.Helper()
	s := transcript.StartJudge(t, args...)
	_, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return redis{port, s.Socket}
}

// result is what a run of the program left.
type result struct {
	exit        int
	out, errOut string
}

// cli runs the client against r with standard input from in.
func (r redis) cli(in string, args ...string) result {
	return runCLI(in, append([]string{"-p", r.port}, args...)...)
}

func runCLI(in string, args ...string) result {
	var out, errOut bytes.Buffer
	exit := Run(args, strings.NewReader(in), &out, &errOut)
	return result{exit, out.String(), errOut.String()}
}

// redisCLI runs redis-cli against r.
func (r redis) redisCLI(t *testing.T, in string, args ...string) result {
	t.Helper()
	cmd := exec.Command(program(t, "redis-cli", "redis-tools"), append([]string{"-p", r.port}, args...)...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &errOut
	err := cmd.Run()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// want checks a result. Its texts must be contained in what was printed, or be
// it, if they begin with "=".
func (got result) want(t *testing.T, exit int, out, errOut string) {
	t.Helper()
	matches := func(got, want string) bool {
		if exact, ok := strings.CutPrefix(want, "="); ok {
			return got == exact
		}
		return strings.Contains(got, want)
	}
	if got.exit != exit || !matches(got.out, out) || !matches(got.errOut, errOut) {
		t.Errorf("exit %d, output %q, errors %q\nwant exit %d, output %q, errors %q (a leading = means all of it)",
			got.exit, got.out, got.errOut, exit, out, errOut)
	}
}
