package plugins_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/proxy/resp"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// bench is an engine with the data families and a plugin host.
type bench struct {
	t    testing.TB
	eng  *command.Engine
	host *plugins.Host
	log  *store.MemoryLog
	sess command.Session
	w    resp.Writer
}

func newBench(t testing.TB, opt plugins.Options) *bench {
	t.Helper()
	return newBenchOn(t, opt, store.Options{})
}

func newBenchOn(t testing.TB, opt plugins.Options, on store.Options) *bench {
	t.Helper()
	log := &store.MemoryLog{Keep: true}
	on.Log = log
	st, err := store.New(on)
	if err != nil {
		t.Fatal(err)
	}
	table, err := command.NewTable(command.Families()...)
	if err != nil {
		t.Fatal(err)
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	opt.Allowed = func(*command.Call) bool { return true }
	host, err := plugins.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	if err := table.Add("", host.Commands()); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, eng: &command.Engine{Table: table, Store: st, Log: opt.Log}, host: host, log: log}
	b.eng.SlowAfter.Store(-1)
	host.Attach(b.eng)
	b.sess.Tx, b.sess.Proto = st.NewTx(), 2
	return b
}

// do runs a command and returns its reply in RESP2.
func (b *bench) do(args ...string) string {
	b.t.Helper()
	argv := make([][]byte, len(args))
	for i, a := range args {
		argv[i] = []byte(a)
	}
	spec, msg := b.eng.Table.Find(argv)
	if spec == nil {
		return "-" + msg
	}
	b.w.Reset()
	b.sess.BeginBatch()
	b.eng.Run(&command.Call{S: &b.sess, Spec: spec, Args: argv, Reply: &b.w})
	return strings.TrimSuffix(string(b.w.Bytes()), "\r\n")
}

func (b *bench) want(reply string, args ...string) {
	b.t.Helper()
	if got := b.do(args...); got != reply {
		b.t.Fatalf("%s replied %q, want %q", strings.Join(args, " "), got, reply)
	}
}

func cad(lang string) string {
	return filepath.Join("..", "examples", "plugins", "cad", lang, "cad.wasm")
}

func TestCompareAndDelete(t *testing.T) {
	for _, lang := range []string{"c", "wat"} {
		t.Run(lang, func(t *testing.T) {
			b := newBench(t, plugins.Options{})
			b.want("-ERR unknown command 'CAD.WASM', with args beginning with: 'lock' 'mine' ", "CAD.WASM", "lock", "mine")
			b.want("+OK", "MODULE", "LOAD", cad(lang))
			b.want(":-1", "CAD.WASM", "lock", "mine")
			b.want("+OK", "SET", "lock", "mine")
			b.want(":0", "CAD.WASM", "lock", "other")
			b.want("$4\r\nmine", "GET", "lock")
			b.want(":1", "cad.wasm", "lock", "mine")
			b.want("$-1", "GET", "lock")
			b.want("-ERR wrong number of arguments for 'cad.wasm' command", "CAD.WASM", "lock")
			long := strings.Repeat("x", 100_000)
			b.want("+OK", "SET", "lock", long)
			b.want(":0", "CAD.WASM", "lock", long+"y")
			b.want(":1", "CAD.WASM", "lock", long)
			b.want("+OK", "MODULE", "UNLOAD", "cad")
			b.want("-ERR unknown command 'CAD.WASM', with args beginning with: 'lock' 'mine' ", "CAD.WASM", "lock", "mine")
			b.want("+OK", "MODULE", "LOAD", cad(lang))
			b.want(":-1", "CAD.WASM", "lock", "mine")
		})
	}
}

func TestLoadIsRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	wasm, err := os.ReadFile(cad("wat"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, want string }{
		{filepath.Join(dir, "none.wasm"), "no such file"},
		{write("native.so", []byte("\x7fELF\x02\x01")), "native library (ELF)"},
		{write("text.wasm", []byte("hello")), "not a WebAssembly module"},
		{write("bare.wasm", []byte("\x00asm\x01\x00\x00\x00")), "latchkey.manifest"},
		{write("cut.wasm", wasm[:len(wasm)-7]), "cut.wasm"},
		{dir, "found a directory, wanted a regular file"},
		{cad("c"), "plugin-dir"},
	} {
		b := newBench(t, plugins.Options{Dir: dir})
		before := len(b.eng.Table.All())
		got := b.do("MODULE", "LOAD", tt.path)
		if !strings.HasPrefix(got, "-ERR Error loading the extension: ") || !strings.Contains(got, tt.want) {
			t.Errorf("MODULE LOAD %s replied %q, want an error with %q", tt.path, got, tt.want)
		}
		if after := len(b.eng.Table.All()); after != before || len(b.host.List()) != 0 {
			t.Errorf("MODULE LOAD %s left %d commands and %d modules behind", tt.path, after-before, len(b.host.List()))
		}
	}
}

func TestLoadTwice(t *testing.T) {
	b := newBench(t, plugins.Options{})
	b.want("+OK", "MODULE", "LOAD", cad("wat"))
	if got := b.do("MODULE", "LOAD", cad("c")); !strings.Contains(got, "a module named cad is loaded already") {
		t.Fatalf("loading a second module of the name replied %q", got)
	}
	b.want("-ERR Error unloading module: no such module with that name", "MODULE", "UNLOAD", "nope")
}

func TestEffects(t *testing.T) {
	b := newBench(t, plugins.Options{})
	b.do("MODULE", "LOAD", cad("wat"))
	b.do("SET", "lock", "mine")
	b.do("CAD.WASM", "lock", "mine")
	rec := b.log.Records()
	if last := rec[len(rec)-1]; last != "*2\r\n$3\r\nDEL\r\n$4\r\nlock\r\n" {
		t.Fatalf("the effect of CAD.WASM is %q, want DEL lock", last)
	}
}

func BenchmarkCompareAndDelete(b *testing.B) {
	for _, lang := range []string{"c", "wat"} {
		b.Run(lang, func(b *testing.B) {
			e := newBench(b, plugins.Options{})
			e.log.Keep = false
			e.do("MODULE", "LOAD", cad(lang))
			e.do("SET", "lock", "mine")
			argv := [][]byte{[]byte("CAD.WASM"), []byte("lock"), []byte("other")}
			spec, _ := e.eng.Table.Find(argv)
			call := &command.Call{}
			b.ReportAllocs()
			for b.Loop() {
				e.w.Reset()
				*call = command.Call{S: &e.sess, Spec: spec, Args: argv, Reply: &e.w}
				e.eng.Run(call)
			}
		})
	}
}
