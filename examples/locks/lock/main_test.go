package lock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/latchkey-proxy/latchkey/examples/locks/internal/demo"
	"github.com/latchkey-proxy/latchkey/examples/locks/internal/server"
)

// ttl is longer than any test: a lock ends when a test makes it end.
const ttl = time.Minute

// servers is what TestMain has started: three, independent of each other.
var servers *server.Set

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		servers, err = server.Start(3)
		if errors.Is(err, server.ErrMissing) && os.Getenv("LATCHKEY_CI") != "1" {
			fmt.Println("skipping all tests:", err)
			return 0
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := m.Run()
		if err := errors.Join(servers.Close(), goleak.Find()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}())
}

// clients returns a client for each of the three servers, and the test's own key, which is deleted at the end.
func clients(t *testing.T) ([]redis.UniversalClient, string) {
	t.Helper()
	key := fmt.Sprintf("test:%s:%d", t.Name(), time.Now().UnixNano())
	var all []redis.UniversalClient
	for _, addr := range servers.Addrs {
		c := demo.Dial(addr)
		t.Cleanup(func() {
			if err := errors.Join(c.Del(context.Background(), key).Err(), c.Close()); err != nil {
				t.Errorf("clean up %s: %v", addr, err)
			}
		})
		all = append(all, c)
	}
	return all, key
}

func client(t *testing.T) (redis.UniversalClient, string) {
	t.Helper()
	all, key := clients(t)
	return all[0], key
}

// must fails the test at once when something that is not under test goes wrong.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantValue checks what is in the key; "" means that it must not exist.
func wantValue(t *testing.T, c redis.UniversalClient, key, want, when string) {
	t.Helper()
	got, err := c.Get(t.Context(), key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%s the key holds %q, want %q", when, got, want)
	}
}

// wantErr checks an error by errors.Is; nil wants none.
func wantErr(t *testing.T, got, want error, what string) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s returned %v, want %v", what, got, want)
	}
}

// bounded is a context for tests that wait for something to happen, so that they fail rather than hang when it
// does not. Sixteen clients that fight for three servers on a machine that is busy otherwise took 20 s.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
