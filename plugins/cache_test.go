package plugins_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins"
)

// counting compiles as the server's child process does, and counts.
func counting(n *int) plugins.CompileFunc {
	return func(_ context.Context, _ time.Duration, dir string, code []byte) error {
		*n++
		return plugins.CompileInto(dir, 256, code)
	}
}

// A module is compiled once: servers that start later find it. What was damaged
// meanwhile is compiled again, never run.
func TestCacheKeepsWhatWasCompiled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	compiled := 0
	start := func() {
		t.Helper()
		b := newBench(t, plugins.Options{CacheDir: dir, Compile: counting(&compiled)})
		b.want("+OK", "MODULE", "LOAD", cad("c"))
		b.want("+OK", "SET", "k", "v")
		b.want(":1", "CAD.WASM", "k", "v")
		b.host.Close()
	}
	expect := func(n int, after string) {
		t.Helper()
		start()
		if compiled != n {
			t.Fatalf("%d compilations after %s, want %d", compiled, after, n)
		}
	}
	expect(1, "the first start")
	expect(1, "the second start")

	code := findOne(t, dir, func(path string) bool {
		return !strings.HasSuffix(path, ".entry")
	})
	b, err := os.ReadFile(code)
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{
		"cut off": b[:len(b)/2],
		"changed": append(bytes.Clone(b[:len(b)-1]), b[len(b)-1]^1),
		"empty":   nil,
	} {
		if err := os.WriteFile(code, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		expect(compiled+1, "the code was "+name)
	}
	if err := os.Remove(code); err != nil {
		t.Fatal(err)
	}
	expect(compiled+1, "the code was removed")
	entry := findOne(t, dir, func(path string) bool { return strings.HasSuffix(path, ".entry") })
	for _, text := range []string{"", "x", "../../etc/passwd 00", strings.Repeat("x", 5000)} {
		if err := os.WriteFile(entry, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		expect(compiled+1, "the entry was "+text)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "compile-*")); len(left) != 0 {
		t.Errorf("left in the cache: %v", left)
	}
}

func findOne(t *testing.T, dir string, is func(string) bool) string {
	t.Helper()
	var found []string
	filepath.Walk(dir, func(path string, st os.FileInfo, err error) error {
		if err == nil && st.Mode().IsRegular() && is(path) {
			found = append(found, path)
		}
		return nil
	})
	if len(found) != 1 {
		t.Fatalf("found %v in %s, want one", found, dir)
	}
	return found[0]
}

// Others must not be able to put native code where the server finds it.
func TestCacheMustBePrivate(t *testing.T) {
	for _, mode := range []os.FileMode{0o755, 0o777, 0o701, 0o720} {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		b := newBench(t, plugins.Options{CacheDir: dir})
		if got := b.do("MODULE", "LOAD", cad("c")); !strings.Contains(got, "mode 0700") {
			t.Errorf("a cache of mode %o: %s", mode, got)
		}
		b.want("*0", "MODULE", "LIST")
	}
}

// A compiler that fails leaves neither a module nor anything in the cache.
func TestCompilerFails(t *testing.T) {
	dir := t.TempDir()
	os.Chmod(dir, 0o700)
	for _, tt := range []struct {
		compile plugins.CompileFunc
		want    string
	}{
		{func(context.Context, time.Duration, string, []byte) error { return errors.New("no room") }, "cannot be compiled: no room"},
		{func(context.Context, time.Duration, string, []byte) error { return nil }, "left 0 files"},
	} {
		b := newBench(t, plugins.Options{CacheDir: dir, Compile: tt.compile})
		if got := b.do("MODULE", "LOAD", cad("c")); !strings.Contains(got, tt.want) {
			t.Errorf("%s, want %s", got, tt.want)
		}
		b.want("*0", "MODULE", "LIST")
		b.want("-ERR unknown command 'CAD.WASM', with args beginning with: 'k' 'v' ", "CAD.WASM", "k", "v")
		if left, _ := os.ReadDir(dir); len(left) > 1 { // wazero's own folder
			t.Errorf("left in the cache: %v", left)
		}
	}
}

// Whoever asks what is loaded does not wait for a module that is being compiled.
func TestListWhileLoading(t *testing.T) {
	compiling, goOn := make(chan struct{}), make(chan struct{})
	b := newBench(t, plugins.Options{CacheDir: filepath.Join(t.TempDir(), "c"), Compile: func(_ context.Context, _ time.Duration, dir string, code []byte) error {
		close(compiling)
		<-goOn
		return plugins.CompileInto(dir, 256, code)
	}})
	loaded := make(chan error)
	go func() { loaded <- b.host.Load(b.eng.Table, plugins.Loading{Path: cad("c")}) }()
	<-compiling
	listed := make(chan int)
	go func() { listed <- len(b.host.List()) }()
	select {
	case n := <-listed:
		if n != 0 {
			t.Errorf("%d modules are listed before one is loaded", n)
		}
	case <-time.After(20 * time.Second):
		t.Error("List waits for a compilation")
	}
	close(goOn)
	if err := <-loaded; err != nil {
		t.Fatal(err)
	}
	b.want(":-1", "CAD.WASM", "k", "v")
}
