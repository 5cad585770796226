package plugins_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/plugins/manifest"
)

// goGuest builds testdata/goguest.
func goGuest(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out := filepath.Join(dir, "g.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, "./testdata/goguest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, msg)
	}
	type object map[string]any
	var commands []object
	for i, name := range []string{"G.WASI", "G.PANIC", "G.BLOCK", "G.EXIT", "G.LEAVE"} {
		commands = append(commands, object{"name": name, "id": i, "arity": 1, "flags": []string{"readonly"}, "summary": "Tries Go."})
	}
	man, err := json.Marshal(object{
		"name": "g", "version": "1.0.0", "abi": object{"min": 1, "max": 1}, "commands": commands, "limits": object{"instances": 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if wasm, err = manifest.Pack(wasm, man); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, wasm, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestGoGuest(t *testing.T) {
	path := goGuest(t)
	logged := &texts{}
	b := newBench(t, plugins.Options{MaxTime: 30 * time.Second, Log: slog.New(logged), Seed: func() [32]byte { return [32]byte{1} }})
	b.want("+OK", "MODULE", "LOAD", path)
	first := b.do("G.WASI")
	if !strings.HasPrefix(first, ":") {
		t.Fatalf("G.WASI replied %q", first)
	}
	b.want(first, "G.WASI") // the seed is the same
	if want := "one line, and 0 arguments, 0 variables"; logged.with(want) != 2 {
		t.Errorf("what the guest printed is not in the log: %q", logged.seen)
	}
	for command, want := range map[string]string{
		"G.PANIC": "-PLUGINERR g: wasm error: unreachable",
		"G.BLOCK": "-PLUGINERR g: wasm error: unreachable",
		"G.EXIT":  "-PLUGINERR g: the guest has exited with code 3",
	} {
		b.want(want, command)
		b.want(first, "G.WASI")
	}
	// A goroutine that a call has left behind acts in the next one of its instance, and it
	// is that one that fails: nobody else is harmed, and the instance is replaced.
	b.want(":1", "G.LEAVE")
	b.want("-PLUGINERR g: more replies than one, or than the aggregate has elements", "G.WASI")
	b.want(first, "G.WASI")
	if logged.with("panic: on purpose") != 1 {
		t.Errorf("the panic's message is not in the log: %q", logged.seen)
	}
}

// texts keeps what guests write to the log.
type texts struct {
	slog.Handler
	seen []string
}

func (l *texts) Enabled(context.Context, slog.Level) bool { return true }

func (l *texts) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "text" {
			l.seen = append(l.seen, a.Value.String())
		}
		return true
	})
	return nil
}

func (l *texts) with(text string) int {
	n := 0
	for _, s := range l.seen {
		if strings.Contains(s, text) {
			n++
		}
	}
	return n
}

// TestWASI calls every function of WASI with arguments that mean nothing, inside
// and outside of memory: it returns an error number or traps.
func TestWASI(t *testing.T) {
	for _, f := range plugins.WASIFunctions() {
		for _, value := range []int{0, 3, 64, 65533, -1} {
			call := "(call $f"
			for _, typ := range f.Params {
				call += fmt.Sprintf(" (%s.const %d)", typ, value)
			}
			call += ")"
			if len(f.Results) > 0 {
				call = "(local.set $i " + call + ")"
			}
			g := guest{imports: fmt.Sprintf("(import %q %q (func $f (param %s)%s))", "wasi_snapshot_preview1", f.Name, strings.Join(f.Params, " "), map[bool]string{true: " (result i32)"}[len(f.Results) > 0])}
			g.body = write + call + `(if (i32.gt_u (local.get $i) (i32.const 76)) (then (return (i32.const 1)))) (return (i32.const -103))`
			b := hostile(t, g, time.Minute)
			got := b.do("H.RUN", "k")
			if got != "-ERR invalid argument" && !strings.HasPrefix(got, "-PLUGINERR h: pointer ") && !strings.HasPrefix(got, "-PLUGINERR h: the guest has exited") {
				t.Errorf("%s of %d replied %q", f.Name, value, got)
			}
			b.want("$-1", "GET", "k")
		}
	}
}
