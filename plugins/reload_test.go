package plugins_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/proxy/resp"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// answers is a guest whose command replies n.
func answers(t *testing.T, n int, commands ...string) string {
	return guest{body: fmt.Sprintf(`(call $reply_int (i64.const %d)) (return (i32.const 0))`, n), commands: commands}.build(t)
}

func replaceWith(t *testing.T, path, with string) {
	t.Helper()
	b, err := os.ReadFile(with)
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestReload(t *testing.T) {
	b := newBench(t, plugins.Options{})
	path := answers(t, 1)
	b.want("-ERR Error reloading module: no such module with that name", "MODULE", "RELOAD", "h")
	b.want("+OK", "MODULE", "LOAD", path)
	b.want(":1", "H.RUN", "k")

	replaceWith(t, path, answers(t, 2, "H.RUN", "H.MORE"))
	b.want(":1", "H.RUN", "k")
	b.want("+OK", "MODULE", "RELOAD", "h")
	b.want(":2", "H.RUN", "k")
	b.want(":2", "H.MORE", "k")

	// The counts go on: of the module, and of the command that both have.
	if l, calls := b.host.List()[0], b.eng.Table.Lookup([]byte("h.run")).Usage(); l.Calls != 4 {
		t.Errorf("after a reload %d calls were counted of the module, want 4", l.Calls)
	} else if b.sess.FlushStats(); calls.Calls.Load() != 3 {
		t.Errorf("after a reload %d calls were counted of H.RUN, want 3", calls.Calls.Load())
	}

	// What is not right leaves all as it was.
	replaceWith(t, path, guest{commands: []string{"GET"}}.build(t))
	if got := b.do("MODULE", "RELOAD", "h"); !strings.Contains(got, "the name is taken") {
		t.Errorf("a command name that is taken: %s", got)
	}
	if err := os.WriteFile(path, []byte("\x00asm"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := b.do("MODULE", "RELOAD", "h"); !strings.HasPrefix(got, "-ERR Error loading the extension: ") {
		t.Errorf("a file that is no module: %s", got)
	}
	if got := b.do("MODULE", "RELOAD", "h", cad("c")); !strings.Contains(got, "holds the module cad, wanted h") {
		t.Errorf("another module's file: %s", got)
	}
	b.want(":2", "H.RUN", "k")
	b.want(":2", "H.MORE", "k")

	// Another file; commands that it has not go.
	b.want("+OK", "MODULE", "RELOAD", "h", answers(t, 3))
	b.want(":3", "H.RUN", "k")
	b.want("-ERR unknown command 'H.MORE', with args beginning with: 'k' ", "H.MORE", "k")
	b.want("-ERR wrong number of arguments for 'module|reload' command", "MODULE", "RELOAD", "h", path, "x")
}

// A call whose command was looked up before the reload, as MULTI does, runs on
// the new code; after an unload it is told.
func TestCallsOnTheirWayThroughAReload(t *testing.T) {
	b := newBench(t, plugins.Options{})
	b.want("+OK", "MODULE", "LOAD", answers(t, 1))
	run := func(spec *command.Spec) string {
		w := resp.NewWriter()
		b.eng.Run(&command.Call{S: &b.sess, Spec: spec, Args: [][]byte{[]byte("H.RUN"), []byte("k")}, Reply: w})
		return string(w.Bytes())
	}
	old := b.eng.Table.Lookup([]byte("h.run"))
	b.want("+OK", "MODULE", "RELOAD", "h", answers(t, 2))
	if got := run(old); got != ":2\r\n" {
		t.Errorf("a call from before the reload: %q", got)
	}
	b.want("+OK", "MODULE", "UNLOAD", "h")
	if got := run(old); got != "-PLUGINERR h: the module was unloaded\r\n" {
		t.Errorf("a call from before the unload: %q", got)
	}
}

func TestDigest(t *testing.T) {
	b := newBench(t, plugins.Options{})
	path := answers(t, 1)
	wasm, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	right := fmt.Sprintf("%x", sha256.Sum256(wasm))
	for digest, want := range map[string]string{
		"sha256:":                           "wanted sha256: and the 64 hexadecimal digits",
		"sha256:" + right[:62]:              "wanted sha256: and the 64 hexadecimal digits",
		"SHA256:" + strings.Repeat("0", 64): "the file's SHA-256 is " + right + ", wanted 000",
		"sha256:" + strings.Repeat("0", 64): "the file's SHA-256 is " + right + ", wanted 000",
	} {
		if got := b.do("MODULE", "LOAD", path, digest); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", digest, got, want)
		}
	}
	b.want("*0", "MODULE", "LIST")
	b.want("+OK", "MODULE", "LOAD", path, "Sha256:"+strings.ToUpper(right), "an argument")
	if got := b.do("MODULE", "LIST"); !strings.Contains(got, "*1\r\n$11\r\nan argument\r\n") {
		t.Errorf("the digest is not the module's argument: %q", got)
	}
}

// MODULE KILL ends what runs, and undoes it; others go on.
func TestModuleKill(t *testing.T) {
	b := newBench(t, plugins.Options{})
	b.want("-ERR Error killing the calls of a module: no such module with that name", "MODULE", "KILL", "h")
	b.want("+OK", "MODULE", "LOAD", guest{body: write + `(loop $again (br $again))`}.build(t))
	b.want("-NOTBUSY No calls of the module in execution right now.", "MODULE", "KILL", "h")
	other := b.another(t)
	reply := make(chan string)
	go func() { reply <- other.do("H.RUN", "k") }()
	killed := 0
	for got := ""; got == ""; runtime.Gosched() {
		n, err := b.host.Kill("h")
		if err != nil {
			t.Fatal(err)
		}
		killed += n
		select {
		case got = <-reply:
			if got != "-PLUGINERR h: killed by MODULE KILL" || killed == 0 {
				t.Errorf("the call that was killed %d times replied %q", killed, got)
			}
		default:
		}
	}
	b.want("$-1", "GET", "k")
	b.want(":1", "H.CALLS")
}
