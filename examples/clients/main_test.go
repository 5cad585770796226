package clients

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/latchkey-proxy/latchkey/examples/clients/internal/server"
)

// program is what each test starts a server of.
var program *server.Program

// unlock is the script of everybody who releases a lock: all libraries here have it or its like.
const unlock = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		program, err = server.Find()
		if errors.Is(err, server.ErrMissing) && os.Getenv("LATCHKEY_CI") != "1" {
			fmt.Println("skipping all tests:", err)
			return 0
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := m.Run()
		err = program.Close()
		// rueidis asks whether the server is a cluster, then waits out a second in a goroutine that nothing ends.
		leaks := goleak.Find(goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
		if err := errors.Join(err, leaks); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}())
}

// start starts a server, empty, for the time of the test.
func start(t *testing.T, directives ...string) *server.Server {
	t.Helper()
	s, err := program.Start(directives...)
	must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// bounded is a context for all of a test, so that what never comes fails it rather than hang it.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want checks a reply and that there was no error.
func want[T comparable](t *testing.T, what string, got T, err error, wanted T) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: error %q, want %v", what, err, wanted)
	}
	if got != wanted {
		t.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}

// wantErr checks that an error is, or has in its chain, the wanted one.
func wantErr(t *testing.T, what string, got, wanted error) {
	t.Helper()
	if !errors.Is(got, wanted) {
		t.Errorf("%s: error %v, want %v", what, got, wanted)
	}
}
