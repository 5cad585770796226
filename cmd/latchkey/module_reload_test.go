package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/latchkey-proxy/latchkey/plugins/manifest"
)

// value is a whole reply as text: aggregates in brackets.
func (w *wire) value() string {
	w.t.Helper()
	head, err := w.r.ReadString('\n')
	if err != nil {
		w.t.Fatalf("no reply: %v", err)
	}
	head = strings.TrimRight(head, "\r\n")
	n := 0
	switch fmt.Sscanf(head[1:], "%d", &n); head[0] {
	case '$':
		if n < 0 {
			return "nil"
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(w.r, b); err != nil {
			w.t.Fatal(err)
		}
		return string(b[:n])
	case '*':
		var parts []string
		for range n {
			parts = append(parts, w.value())
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return head
}

// ask sends a command and returns its whole reply.
func (w *wire) ask(words string) string {
	w.t.Helper()
	w.send(words)
	return w.value()
}

// module is what INFO says of a module.
func (w *wire) module(name string) string {
	w.t.Helper()
	for line := range strings.SplitSeq(w.ask("INFO modules"), "\r\n") {
		if of, ok := strings.CutPrefix(line, "latchkey_module_"+name+":"); ok {
			return of
		}
	}
	return ""
}

func (w *wire) wantModule(name string, fields ...string) {
	w.t.Helper()
	got := "," + w.module(name) + ","
	for _, f := range fields {
		if !strings.Contains(got, ","+f+",") {
			w.t.Errorf("INFO modules says of %s %q, want %s", name, got, f)
		}
	}
}

// TestReloadOverTheWire: clients that wait, and what is bound to clients, outlive
// MODULE RELOAD; the new code knows whose they are.
func TestReloadOverTheWire(t *testing.T) {
	dial, stop := withModule(t)
	defer stop()
	c := dial()
	id := func(w *wire) string { return strings.TrimPrefix(w.ask("CLIENT ID"), ":") }
	const told = "LRANGE abi:told 0 -1"

	// One waits through two reloads, is woken by a write, and is known.
	var waits []*wire
	for _, field := range []string{"0", "1", "2", "3"} {
		w := dial()
		w.want("+OK", "CLIENT SETNAME waits-for-"+field)
		waits = append(waits, w)
		w.send("ABI.RUN abi:k" + field + " @1 #1 % 4096 1 0 7 !block | " + field + ` 4096 100 !client "&`)
		c.blocked(len(waits))
	}
	c.want("+OK", "MODULE RELOAD abitest")
	c.want("+OK", "MODULE RELOAD abitest")
	c.wantModule("abitest", "waiting=4", "running=0")
	if got := c.ask("MODULE UNLOAD abitest"); got != "-ERR Error unloading module: 4 clients wait in its commands" {
		t.Errorf("MODULE UNLOAD beside clients that wait since before the reload: %s", got)
	}
	for i, w := range waits {
		c.want("+OK", fmt.Sprintf("SET abi:k%d v", i))
		got, want := w.value(), ""
		switch i {
		case 0:
			want = id(w)
		case 1:
			want = "waits-for-1"
		case 2:
			want = "default"
		case 3:
			want = w.conn.LocalAddr().String()
		}
		if got != want {
			t.Errorf("after two reloads the code knows of its client, field %d: %q, want %q", i, got, want)
		}
	}
	c.wantModule("abitest", "waiting=0")

	// Who waits since before a reload can be unblocked, killed, and go.
	c.ask("DEL abi:k")
	a, b := dial(), dial()
	a.want("+OK", "CLIENT SETNAME a")
	aID, bID := id(a), id(b)
	for n, w := range []*wire{a, b} {
		w.send(parkWords)
		c.blocked(n + 1)
	}
	c.want("+OK", "MODULE RELOAD abitest")
	c.want(":1", "CLIENT UNBLOCK "+aID+" ERROR")
	if got := a.value(); !strings.HasPrefix(got, "-UNBLOCKED") {
		t.Errorf("after CLIENT UNBLOCK ERROR of one who waits since before a reload: %s", got)
	}
	c.want(":1", "CLIENT KILL ID "+bID)
	c.blocked(0)
	a.send(parkWords)
	c.blocked(1)
	c.want("+OK", "MODULE RELOAD abitest")
	a.conn.Close()
	c.blocked(0)

	// Bound before the reload, gone after it; both ends of a connection.
	c.ask("DEL abi:told")
	one, two := dial(), dial()
	one.want(":0", "ABI.RUN abi:one @1 #1 1 !bind_client =")
	two.want(":0", "ABI.RUN abi:two @1 #1 2 !bind_client =")
	two.want(":0", "ABI.RUN abi:taken-back @1 #1 9 !bind_client =")
	c.want("+OK", "MODULE RELOAD abitest")
	c.want(":0", "ABI.RUN abi:taken-back @1 #1 !unbind_client =")
	one.conn.Close()
	c.until("c1 ", told)
	twoID := id(two)
	c.want("+OK", "MODULE RELOAD abitest")
	c.want(":1", "CLIENT KILL ID "+twoID)
	c.until("c1 c2 ", told)
	c.want("*0", "LRANGE abi:nothing 0 -1")
	if got := c.ask(told); got != "[c1 c2]" {
		t.Errorf("the module was told %s of clients", got)
	}

	// A timer set before a reload is told to the new code.
	c.want(":1", "ABI.RUN abi:k 50 3 !timer_set =")
	c.want("+OK", "MODULE RELOAD abitest")
	c.until("c1 c2 t3 ", told)
	c.want("+OK", "MODULE UNLOAD abitest")
}

// TestReloadBesideCalls: no call is lost, made twice or answered with an error while
// the module is reloaded again and again.
func TestReloadBesideCalls(t *testing.T) {
	const clients, calls, reloads = 6, 150, 12
	dial, stop := withModule(t)
	defer stop()
	c := dial()
	var all sync.WaitGroup
	for n := range clients {
		w := dial()
		all.Go(func() {
			for i := 1; i <= calls; i++ {
				w.send(fmt.Sprintf("ABI.RUN abi:own%d @1 #1 1 4096 !incrby =", n))
				w.send("ABI.RUN abi:shared @1 #1 1 4096 !incrby =")
				if own, shared := w.value(), w.value(); own != ":1" || shared != ":1" {
					t.Errorf("beside MODULE RELOAD a call replied %q, another %q", own, shared)
					return
				}
			}
		})
	}
	for range reloads {
		c.want("+OK", "MODULE RELOAD abitest")
	}
	all.Wait()
	for n := range clients {
		c.want(fmt.Sprint(calls), fmt.Sprintf("GET abi:own%d", n))
	}
	c.want(fmt.Sprint(clients*calls), "GET abi:shared")
}

// TestLoadInMulti: what may compile for long is no part of a transaction, which others would wait for.
func TestLoadInMulti(t *testing.T) {
	dial, stop := withModule(t)
	defer stop()
	c := dial()
	for _, words := range []string{"MODULE LOAD ../../examples/plugins/cad/c/cad.wasm", "MODULE LOADEX ../../examples/plugins/cad/c/cad.wasm", "MODULE RELOAD abitest", "MODULE UNLOAD abitest", "LATCHKEY PLUGIN PUT x 00 x"} {
		c.want("+OK", "MULTI")
		c.want("-ERR Command not allowed inside a transaction", words)
		if got := c.ask("EXEC"); !strings.HasPrefix(got, "-EXECABORT") {
			t.Errorf("EXEC after %s: %s", words, got)
		}
	}
}

// A program for each capability that plugin-deny can withhold, what it replies when
// the capability is granted, and when it is not.
var capabilityPrograms = []struct{ capability, words, granted, denied string }{
	{"read", "ABI.RUN ro:k @1 #1 !exists =", ":0", ":-101"},
	{"write", "ABI.RUN abi:k @1 #1 @1 #1 0 0 !set =", ":1", ":-101"},
	{"commands", "ABI.RUN abi:none @12 #12 @1 #1 % 4096 2 !call = | GET", ":1", ":-101"},
	{"timers", "ABI.RUN abi:k 3600000 1 !timer_set =", ":1", ":-101"},
	{"state", "ABI.RUN abi:k 4096 1 4100 !state_get =", ":-1", ":-101"},
	{"block", "ABI.RUN abi:none @1 #1 % 4096 1 1 7 !block ^ | 5 =", ":5", "-NOPERM abitest: not declared by the command, or not granted to the module"},
	{"clients", "ABI.RUN abi:k @1 #1 5 !bind_client =", ":0", ":-101"},
}

// TestWithheldCapabilities: what plugin-deny withholds a module does not get, and gets
// all else; MODULE LIST says so.
func TestWithheldCapabilities(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	run := func(t *testing.T, deny string) {
		directives := []string{"--plugin-cache-dir", cache}
		if deny != "" {
			directives = append(directives, "--plugin-deny", "abitest", deny)
		}
		dial, stop := withModule(t, directives...)
		defer stop()
		c := dial()
		for _, p := range capabilityPrograms {
			want := p.granted
			if p.capability == deny {
				want = p.denied
			}
			switch deny + " " + p.capability {
			case "write clients", "read commands": // to bind a key is to write it; what is called reads one
				want = ":-101"
			case "read block": // who waits for a key reads it
				want = p.denied
			}
			if got := c.ask(p.words); got != want {
				t.Errorf("%s replied %q, want %q", p.words, got, want)
			}
		}
		all := []string{"read", "write", "commands", "timers", "events", "state", "block", "clients"}
		var has []string
		for _, name := range all {
			if name != deny {
				has = append(has, name)
			}
		}
		want := fmt.Sprintf("capabilities [%s] withheld [%s]", strings.Join(has, " "), deny)
		if got := c.ask("MODULE LIST"); !strings.Contains(got, want) {
			t.Errorf("MODULE LIST replied %s, want %s", got, want)
		}
		if deny == "commands" || deny == "write" {
			return // it writes down nothing of what it is told
		}
		// Events: a timer comes after what was to be told before it.
		c.ask("SET abi:k v")
		c.ask("DEL abi:k")
		switch deny {
		case "events":
			c.want(":2", "ABI.RUN abi:k 1 4 !timer_set =")
			c.until("t4 ", "LRANGE abi:told 0 -1")
		case "timers":
			c.until("e0 ", "LRANGE abi:told 0 -1")
		default:
			c.until("e0 ", "LRANGE abi:told 0 -1")
			c.want(":2", "ABI.RUN abi:k 1 4 !timer_set =")
			c.until("e0 t4 ", "LRANGE abi:told 0 -1")
		}
	}
	t.Run("nothing", func(t *testing.T) { run(t, "") })
	for _, name := range []string{"read", "write", "commands", "timers", "events", "state", "block", "clients"} {
		t.Run(name, func(t *testing.T) { run(t, name) })
	}
}

// TestDisabledModule: too many failures disable a module until MODULE RELOAD, which
// INFO modules shows; other modules go on.
func TestDisabledModule(t *testing.T) {
	const (
		trap     = "ABI.RUN abi:k !nosuch"
		trapped  = "-PLUGINERR abitest: wasm error: unreachable"
		disabled = "-PLUGINDISABLED abitest: it has failed 3 times within 1m0s, at last with: wasm error: unreachable"
		works    = "ABI.RUN abi:k @1 #1 !exists ="
	)
	dial, stop := withModule(t, "--plugin-max-failures", "3", "--loadmodule", "../../examples/plugins/cad/c/cad.wasm")
	defer stop()
	c, waits := dial(), dial()
	waits.send(parkWords)
	c.blocked(1)
	for n := range 3 {
		c.wantModule("abitest", fmt.Sprintf("traps=%d", n), "disabled=0")
		c.want(trapped, trap)
	}
	for _, words := range []string{trap, works, "ABI.RO x", "ABI.RUN2 abi:k abi:k2"} {
		c.want(disabled, words)
	}
	c.wantModule("abitest", "traps=3", "disabled=1", "waiting=1")
	c.wantModule("cad", "disabled=0")
	c.want(":-1", "CAD.WASM k v")
	c.want(strings.TrimPrefix(disabled, "-"), `EVAL return(redis.pcall('abi.ro','x').err) 0`)
	c.want("+OK", "MULTI")
	c.want("+QUEUED", works)
	if got := c.ask("EXEC"); got != "["+disabled+"]" {
		t.Errorf("in EXEC a disabled module replied %s", got)
	}
	// Who waits in it is told when his turn comes, and the key is free.
	c.want("+OK", "SET abi:k v")
	if got := waits.value(); got != disabled {
		t.Errorf("who waits in a disabled module is woken with %q", got)
	}
	c.want("v", "GET abi:k")

	// A reload that fails changes nothing; one that works ends it, and begins the count.
	if got := c.ask("MODULE RELOAD abitest ../../examples/plugins/cad/c/cad.wasm"); !strings.Contains(got, "holds the module cad, wanted abitest") {
		t.Errorf("MODULE RELOAD with another module's file: %s", got)
	}
	c.want(disabled, works)
	c.want("+OK", "MODULE RELOAD abitest")
	c.want(":1", works)
	c.wantModule("abitest", "traps=3", "disabled=0")
	c.want(trapped, trap)
	c.want(trapped, trap)
	c.want(":1", works)
	c.want("+OK", "CONFIG SET plugin-max-failures 0")
	for range 5 {
		c.want(trapped, trap)
	}
	c.want(":1", works)
	c.want("+OK", "CONFIG SET plugin-max-failures 1")
	c.want(trapped, trap)
	c.wantModule("abitest", "disabled=1")
	c.want("+OK", "MODULE UNLOAD abitest")
	c.want("+OK", "MODULE LOAD ../../plugins/abitest/abitest.wasm")
	c.want(":1", works)
}

// altered writes the conformance guest with another manifest to path.
func altered(t *testing.T, path string, alter ...string) {
	t.Helper()
	wasm, err := os.ReadFile("../../plugins/abitest/abitest.wasm")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := manifest.Document(wasm)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(alter...).Replace(string(doc))
	if len(alter) > 0 && text == string(doc) {
		t.Fatalf("the manifest has none of %q", alter)
	}
	if wasm, err = manifest.Pack(wasm, []byte(text)); err == nil {
		err = os.WriteFile(path, wasm, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestReloadKeepsParameters: they keep their values, whatever the command line says and whatever
// is wrong with the file, and are read meanwhile.
func TestReloadKeepsParameters(t *testing.T) {
	dial, stop := withModule(t, "--abitest.number", "3")
	defer stop()
	path := filepath.Join(t.TempDir(), "abitest.wasm")
	altered(t, path)
	c := dial()
	c.want("+OK", "MODULE RELOAD abitest "+path)
	read := func(w *wire, name string) string {
		return w.ask(`ABI.RUN abi:k @9 #9 4096 64 !config_get "& | ` + name)
	}
	keeps := func(after string) {
		t.Helper()
		if got := read(c, "number") + " " + read(c, "text"); got != "7 mine" {
			t.Errorf("after %s the guest reads %q, want 7 and mine", after, got)
		}
		if got := c.ask("CONFIG GET abitest.*"); got != "[abitest.text mine abitest.number 7 abitest.flag no abitest.mode slow]" {
			t.Errorf("after %s CONFIG GET replies %s", after, got)
		}
	}
	c.want("+OK", "CONFIG SET abitest.number 7 abitest.text mine abitest.flag no") // 7 is the default
	c.want("+OK", "MODULE RELOAD abitest")
	keeps("a reload")

	ended, reader := make(chan struct{}), dial()
	defer func() { <-ended }()
	enough := make(chan struct{})
	defer close(enough)
	go func() {
		defer close(ended)
		for {
			select {
			case <-enough:
				return
			default:
			}
			reader.send(`ABI.RUN abi:r @9 #9 4096 64 !config_get "& | text`)
			if got := reader.line(); got != "mine" {
				t.Errorf("during a reload the guest reads %q", got)
				return
			}
		}
	}()
	for _, wrong := range []struct {
		what, want string
		alter      []string
	}{
		{"a command's name that is taken", "the name is taken", []string{`"ABI.RO"`, `"GET"`}},
		{"that, and a parameter that is gone", "the name is taken", []string{`"ABI.RO"`, `"GET"`, `"name":"number"`, `"name":"amount"`}},
		{"a value out of the new range", "'abitest.number 7'", []string{`"default":7,"min":0`, `"default":8,"min":8`}},
	} {
		altered(t, path, wrong.alter...)
		for range 20 {
			if got := c.ask("MODULE RELOAD abitest"); !strings.Contains(got, wrong.want) {
				t.Fatalf("%s: %s", wrong.what, got)
			}
		}
		keeps(wrong.what)
	}
	altered(t, path)
	c.want("+OK", "MODULE RELOAD abitest")
	keeps("the file was mended")
}
