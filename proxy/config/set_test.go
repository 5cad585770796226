package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestSetOurs is what redis-server cannot judge: latchkey's own directives and its own verdicts.
func TestSetOurs(t *testing.T) {
	c := New()
	for _, test := range []struct{ name, value, want string }{
		{"maxmemory-policy", "allkeys-lru", "ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - latchkey never evicts: evicting a lock gives it to two holders; only noeviction is supported"},
		{"maxmemory-policy", "noeviction", "OK"},
		{"appendonly", "yes", "ERR CONFIG SET failed (possibly related to argument 'appendonly') - latchkey keeps its keys in memory only; an append-only file is not supported yet"},
		{"appendonly", "no", "OK"},
		{"own", "a", "ERR CONFIG SET failed (possibly related to argument 'own') - can't set immutable config"},
		{"upstream", "redis://h", "ERR CONFIG SET failed (possibly related to argument 'upstream') - can't set immutable config"},
		{"script-error-rollback", "no", "OK"},
		{"client-query-memory-limit", "2gb", "OK"},
		{"loglevel", "all", "ERR CONFIG SET failed (possibly related to argument 'loglevel') - argument(s) must be one of the following: debug, verbose, notice, warning, nothing"},
		{"requirepass", strings.Repeat("a", maxSetBytes+1), "ERR CONFIG SET failed (possibly related to argument 'requirepass') - argument is longer than 64 KiB"},
		{"no\r\nsuch", "1", "ERR Unknown option or number of arguments for CONFIG SET - 'no  such'"},
		{"maxmemory", "18446744073709551616", "ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value"},
		{"cluster-announce-human-nodename", "a b!", "ERR CONFIG SET failed (possibly related to argument 'cluster-announce-human-nodename') - Announced human node name contained invalid character"},
	} {
		if got := setReply(c, test.name, test.value); got != test.want {
			t.Errorf("CONFIG SET %s %.20q: got %q, want %q", test.name, test.value, got, test.want)
		}
	}
}

func TestProtected(t *testing.T) {
	for _, test := range []struct {
		value         string
		local, remote bool
	}{{"no", false, false}, {"yes", true, true}, {"local", true, false}} {
		c, err := Load(ParseArgs([]string{"--enable-protected-configs", test.value}, nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, local := range []bool{true, false} {
			want := test.remote
			if local {
				want = test.local
			}
			if got := c.Set([]Pair{{"dbfilename", "x"}}, local) == nil; got != want {
				t.Errorf("enable-protected-configs %s, local %v: CONFIG SET dbfilename accepted is %v, want %v", test.value, local, got, want)
			}
			if got := c.Allowed("enable-protected-configs", local); got != want {
				t.Errorf("Allowed(%s, local %v) is %v, want %v", test.value, local, got, want)
			}
		}
	}
}

func TestHooks(t *testing.T) {
	c := New()
	var calls []string
	hook := func(name string, refuse string) {
		c.OnChange(name, func(old, new string) error {
			calls = append(calls, name+" "+old+" "+new)
			if refuse != "" && new == refuse {
				return errors.New("no such luck")
			}
			return nil
		})
	}
	hook("port", "1")
	hook("timeout", "")
	hook("lua-time-limit", "")
	c.OnChange("timeout", func(_, _ string) error {
		if got := c.Int("port"); got != 7000 && got != 1 && got != 6380 {
			t.Errorf("a hook sees port %d", got)
		}
		return nil
	})

	if err := c.Set([]Pair{{"timeout", "5"}, {"port", "7000"}, {"maxclients", "9"}, {"busy-reply-threshold", "5000"}}, false); err != nil {
		t.Fatal(err)
	}
	if want := []string{"timeout 0 5", "port 6380 7000"}; !slices.Equal(calls, want) {
		t.Errorf("hooks were called %q, want %q: an unchanged value needs none", calls, want)
	}
	calls = nil
	err := c.Set([]Pair{{"timeout", "6"}, {"maxclients", "8"}, {"port", "1"}, {"lua-time-limit", "3"}}, false)
	if want := "ERR CONFIG SET failed (possibly related to argument 'port') - no such luck"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if want := []string{"timeout 5 6", "port 7000 1", "timeout 6 5"}; !slices.Equal(calls, want) {
		t.Errorf("hooks were called %q, want %q", calls, want)
	}
	if c.Int("timeout") != 5 || c.Int("maxclients") != 9 || c.Int("port") != 7000 || c.Int("busy-reply-threshold") != 5000 {
		t.Errorf("after a refusal: timeout %d, maxclients %d, port %d; want 5, 9, 7000", c.Int("timeout"), c.Int("maxclients"), c.Int("port"))
	}
	calls = nil
	if err := c.Set([]Pair{{"timeout", "7"}, {"maxclients", "x"}}, false); err == nil || len(calls) != 0 || c.Int("timeout") != 5 {
		t.Errorf("a bad value beside a good one: error %v, hooks %q, timeout %d; want an error, none, 5", err, calls, c.Int("timeout"))
	}
	// An alias and its name are one directive: its hook is called once, with the last value.
	if err := c.Set([]Pair{{"lua-time-limit", "1"}, {"busy-reply-threshold", "2"}}, false); err != nil || !slices.Equal(calls, []string{"lua-time-limit 5000 2"}) {
		t.Errorf("alias and name: error %v, hooks %q", err, calls)
	}
}

func TestConcurrentReads(t *testing.T) {
	c := New()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := range 2000 {
				if n := c.Int("timeout"); n != 0 && n != 1 && n != 2 {
					t.Errorf("timeout is %d", n)
				}
				c.Get("time*")
				c.Set([]Pair{{"timeout", []string{"1", "2"}[i%2]}}, false)
			}
		})
	}
	wg.Go(func() {
		for range 200 {
			if err := c.Register(Directive{Name: "m.x", Kind: Bool, Default: "no", Mutable: true}); err != nil {
				t.Error(err)
			}
			c.Unregister("m.x")
		}
	})
	wg.Wait()
}

func TestReadsOfTheWrongKindPanic(t *testing.T) {
	c := New()
	for name, read := range map[string]func(){
		"unknown": func() { c.Int("nosuch") },
		"kind":    func() { c.Int("bind") },
		"lines":   func() { c.String("user") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			read()
		}()
	}
}

func TestTypedReads(t *testing.T) {
	c := New()
	if err := c.Set([]Pair{{"client-output-buffer-limit", "pubsub 1mb 2kb 3"}, {"maxmemory-clients", "5%"}}, false); err != nil {
		t.Fatal(err)
	}
	normal, replica, pubsub := c.BufferLimits()
	if normal != (BufferLimit{}) || replica != (BufferLimit{256 << 20, 64 << 20, 60}) || pubsub != (BufferLimit{1 << 20, 2 << 10, 3}) {
		t.Errorf("buffer limits are %v %v %v", normal, replica, pubsub)
	}
	if c.Memory("maxmemory-clients") != -5 || c.Memory("proto-max-bulk-len") != 512<<20 || !c.Bool("protected-mode") || c.Bool("appendonly") {
		t.Error("typed reads disagree with the table")
	}
	if !c.Redacted("RequirePass") || !c.Redacted("upstream") || c.Redacted("port") || c.Redacted("nosuch") {
		t.Error("Redacted disagrees with the table")
	}
	if c.String("upstream") != "" {
		t.Error("an upstream by default")
	}
}

func TestRegister(t *testing.T) {
	c, err := Load(inMemory(map[string]string{"lk.conf": "cad.max 5\ncad.bad x\n"}, "lk.conf"))
	if err != nil {
		t.Fatal(err)
	}
	d := Directive{Name: "cad.max", Kind: Int, Default: "1", Min: 0, Max: 9, Mutable: true}
	if err := c.Register(d); err != nil || c.Int("cad.max") != 5 {
		t.Fatalf("error %v; the file's value should be taken", err)
	}
	if err := c.Register(d); err == nil {
		t.Error("registered twice")
	}
	if got := setReply(c, "CAD.max", "10"); got != "ERR CONFIG SET failed (possibly related to argument 'cad.max') - argument must be between 0 and 9 inclusive" {
		t.Error(got)
	}
	if got := setReply(c, "cad.max", "7"); got != "OK" || c.Get("cad.*")[0] != (Pair{"cad.max", "7"}) {
		t.Error(got, c.Get("cad.*"))
	}
	err = c.Register(Directive{Name: "cad.bad", Kind: Int, Max: 9, Default: "0"})
	if want := "lk.conf:2: 'cad.bad x': argument couldn't be parsed into an integer"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	// A value that MODULE LOADEX gives comes from no file.
	err = c.Register(Directive{Name: "cad.given", Kind: Int, Max: 9, Default: "0"}, "10")
	if want := "'cad.given 10': argument must be between 0 and 9 inclusive"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	for _, bad := range []Directive{{Name: "x"}, {Name: "a.b", Kind: Lines}, {Name: "a.b", Kind: Int, Default: "x"}, {Name: ".b"}} {
		if c.Register(bad) == nil {
			t.Errorf("registered %+v", bad)
		}
	}
	if !c.Unregister("Cad.Max") || c.Unregister("cad.max") || c.Unregister("port") || c.Lookup("cad.max") != nil {
		t.Error("Unregister should take out a module's setting, once, and nothing else")
	}
}

func TestRewrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lk.conf")
	const old = `# latchkey
Port   7000
timeout 5

# memory, 1 GiB
maxmemory 1073741824
own a:*
save 1 2
save 3 4
# the end of it
own "'b c'"
user default on nopass ~* &* +@all
loadmodule old.wasm
nosuch thing
slowlog-max-len 1
slowlog-max-len 2
tcp-keepalive 300
`
	const want = `# latchkey
Port   7000
timeout 6

# memory, 1 GiB
maxmemory 1073741824
own a:*
save 5 6
# the end of it
own "'b c'"
user default on nopass ~* &* +@all
loadmodule new.wasm "x y"
# ??? nosuch thing
slowlog-max-len 2
tcp-keepalive 300
loadmodule other.wasm
# Generated by CONFIG REWRITE
maxclients 50
`
	if err := os.WriteFile(path, []byte(strings.Replace(old, "nosuch thing\n", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.conf")
	if err := os.Symlink("lk.conf", link); err != nil {
		t.Fatal(err)
	}
	c, err := Load(Sources{File: link})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Set([]Pair{{"timeout", "6"}, {"maxclients", "50"}, {"save", "5 6"}}, false); err != nil {
		t.Fatal(err)
	}
	c.SetLines("loadmodule", [][]string{{"new.wasm", "x y"}, {"other.wasm"}})
	if err := c.Rewrite(c.Path()); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Appended lines follow the header, modules' among them, in table order.
	if w := strings.Replace(want, "loadmodule other.wasm\n# Generated by CONFIG REWRITE\nmaxclients 50\n", "# Generated by CONFIG REWRITE\nmaxclients 50\nloadmodule other.wasm\n", 1); string(got) != w {
		t.Errorf("got\n%s\nwant\n%s", got, w)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("permissions %v, %v; want 0600", info.Mode(), err)
	}
	if err := c.Rewrite(path); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.ReadFile(path); string(again) != string(got) {
		t.Errorf("a second rewrite changed the file to\n%s", again)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 2 {
		t.Errorf("files left behind: %q", left)
	}
	for path, want := range map[string]string{
		"":                                 "ERR The server is running without a config file",
		filepath.Join(dir, "none/lk.conf"): "ERR Rewriting config file: No such file or directory",
		dir:                                "ERR Rewriting config file: not a regular file",
	} {
		if err := c.Rewrite(path); err == nil || err.Error() != want {
			t.Errorf("Rewrite(%q): got %v, want %s", path, err, want)
		}
	}
	fresh := filepath.Join(dir, "fresh.conf")
	if err := c.Rewrite(fresh); err != nil {
		t.Errorf("a file that is gone is written anew: %v", err)
	}
	if _, err := Load(Sources{File: fresh}); err != nil {
		t.Error(err)
	}
}

func TestNearest(t *testing.T) {
	r := New().known.Load()
	for in, want := range map[string]string{"mxaclients": "maxclients", "prot": "port", "slave-read-onyl": "slave-read-only", "xyz": "", "": "", "hash-max-listpack-entry": "hash-max-listpack-entries"} {
		if got := r.nearest(in); got != want {
			t.Errorf("nearest to %q is %q, want %q", in, got, want)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	c := New()
	for b.Loop() {
		c.Int("maxclients")
	}
}
