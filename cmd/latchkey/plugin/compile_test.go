package plugin

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins"
)

// TestMain lets the test's own program be the child that compiles.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "plugin" {
		os.Exit(Program{}.Run(os.Args[2:], os.Stdin, io.Discard, os.Stderr))
	}
	os.Exit(m.Run())
}

func leb(n int) []byte {
	var b []byte
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

func section(id byte, content []byte) []byte {
	return append(append([]byte{id}, leb(len(content))...), content...)
}

// nested is a module of one function with that many loops within each other,
// each of which uses that many locals.
func nested(loops, locals int) []byte {
	body := append([]byte{1}, leb(locals)...)
	body = append(body, 0x7f) // i32
	for i := range loops {
		body = append(body, 0x03, 0x40) // loop
		for l := range 4 {
			n := leb((i*4 + l) % locals)
			body = append(append(append(body, 0x20), n...), 0x21) // local.get, local.set
			body = append(body, n...)
		}
		body = append(append(append(body, 0x20), leb(i%locals)...), 0x0d, 0) // br_if 0
	}
	for range loops + 1 {
		body = append(body, 0x0b)
	}
	m := []byte("\x00asm\x01\x00\x00\x00")
	m = append(m, section(1, []byte{1, 0x60, 0, 0})...)
	m = append(m, section(3, []byte{1, 0})...)
	return append(m, section(10, append(append([]byte{1}, leb(len(body))...), body...))...)
}

func TestChildCompiles(t *testing.T) {
	dir := t.TempDir()
	if err := Child(16)(context.Background(), time.Minute, dir, nested(3, 8)); err != nil {
		t.Fatal(err)
	}
	if made, _ := os.ReadDir(dir); len(made) != 1 {
		t.Errorf("the child left %v, want wazero's folder", made)
	}
}

// A module that keeps the compiler busy ends the child, not the caller.
func TestChildIsLimited(t *testing.T) {
	bomb := nested(2000, 2000)
	if err := Child(16)(context.Background(), 100*time.Millisecond, t.TempDir(), bomb); err != plugins.ErrCompileTime {
		t.Errorf("a bomb of %d bytes: %v", len(bomb), err)
	}

	tight := compileLimits(16)
	tight.space = 256 << 20 // less than a Go program starts with
	if err := child(tight)(context.Background(), time.Hour, t.TempDir(), nested(3, 8)); err == nil || !strings.Contains(err.Error(), "its compiler was ended") {
		t.Errorf("a child without room: %v", err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := Child(16)(ctx, time.Hour, t.TempDir(), bomb); err != context.DeadlineExceeded {
		t.Errorf("past the deadline: %v", err)
	}
}

// A child has no children, whatever program it is.
func TestChildHasNoChildren(t *testing.T) {
	t.Setenv(childMark, "1")
	if err := Child(16)(context.Background(), time.Minute, t.TempDir(), nested(3, 8)); err == nil || !strings.Contains(err.Error(), "was asked to load one") {
		t.Errorf("a child that loads a module: %v", err)
	}
}

func TestChildRefuses(t *testing.T) {
	for name, code := range map[string][]byte{"nothing": nil, "garbage": []byte("\x00asm\x01\x00\x00\x00\xff\xff"), "cut off": nested(3, 8)[:40]} {
		err := Child(16)(context.Background(), time.Minute, t.TempDir(), code)
		if err == nil || strings.Contains(err.Error(), "did not say why") || strings.Contains(err.Error(), "was ended") {
			t.Errorf("%s: %v, want an error that says what is wrong", name, err)
		}
	}
	for _, args := range [][]string{nil, {"dir"}, {"dir", "1", "1", "1"}, {"dir", "1", "1", "1", "x"}, {"dir", "0", "1", "1", "1"}, {"", "1", "1", "1", "1"}} {
		if code := compile(args, strings.NewReader(""), io.Discard); code != exitUsage {
			t.Errorf("compile %q: exit code %d, want %d", args, code, exitUsage)
		}
	}
}
