package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins/manifest"
	"github.com/latchkey-proxy/latchkey/proxy/config"
)

// wire is a connection that speaks in lines.
type wire struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

// withModule runs a server with the conformance guest.
func withModule(t *testing.T, directives ...string) (dial func() *wire, stop func()) {
	t.Helper()
	args := append([]string{"--plugin-cache-dir", t.TempDir() + "/cache", "--loadmodule", "../../plugins/abitest/abitest.wasm", "--enable-module-command", "yes"}, directives...)
	addr, stop, err := serveInside(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return func() *wire {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(30 * time.Second))
		return &wire{t, conn, bufio.NewReader(conn)}
	}, stop
}

func (w *wire) send(words string) {
	w.t.Helper()
	fields := strings.Fields(words)
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(fields))
	for _, f := range fields {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(f), f)
	}
	if _, err := io.WriteString(w.conn, b.String()); err != nil {
		w.t.Fatal(err)
	}
}

// line is the first line of a reply, or the text of a bulk.
func (w *wire) line() string {
	w.t.Helper()
	s, err := w.r.ReadString('\n')
	if err != nil {
		w.t.Fatalf("no reply: %v", err)
	}
	s = strings.TrimRight(s, "\r\n")
	if strings.HasPrefix(s, "$") && s != "$-1" {
		s, err = w.r.ReadString('\n')
		if err != nil {
			w.t.Fatalf("no reply: %v", err)
		}
		return strings.TrimRight(s, "\r\n")
	}
	return s
}

func (w *wire) want(reply, words string) {
	w.t.Helper()
	w.send(words)
	if got := w.line(); got != reply {
		w.t.Fatalf("%s replied %q, want %q", words, got, reply)
	}
}

// until asks until the reply is as wanted.
func (w *wire) until(reply, words string) {
	w.t.Helper()
	for range 1000 {
		w.send(words)
		got := w.line()
		for n := 0; strings.HasPrefix(got, "*") && got != "*0"; {
			fmt.Sscanf(got, "*%d", &n)
			got = ""
			for range n {
				got += w.line() + " "
			}
		}
		if got == reply {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	w.t.Fatalf("%s never replied %q", words, reply)
}

// blocked counts blocked clients through INFO.
func (w *wire) blocked(n int) {
	w.t.Helper()
	for range 1000 {
		w.send("INFO clients")
		text := w.bulk()
		if strings.Contains(text, fmt.Sprintf("blocked_clients:%d\r\n", n)) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	w.t.Fatalf("there never were %d blocked clients", n)
}

func (w *wire) bulk() string {
	w.t.Helper()
	head, err := w.r.ReadString('\n')
	n := 0
	if _, err2 := fmt.Sscanf(head, "$%d", &n); err != nil || err2 != nil {
		w.t.Fatalf("found %q, wanted a bulk: %v", head, err)
	}
	b := make([]byte, n+2)
	if _, err := io.ReadFull(w.r, b); err != nil {
		w.t.Fatal(err)
	}
	return string(b[:n])
}

func TestModuleBlocksOverTheWire(t *testing.T) {
	dial, stop := withModule(t)
	defer stop()
	a, b, c := dial(), dial(), dial()
	a.send("CLIENT ID")
	id := strings.TrimPrefix(a.line(), ":")
	a.send(parkWords)
	c.blocked(1)
	b.send(parkWords)
	c.blocked(2)
	c.want("+OK", "SET abi:k first")
	if got := a.line(); got != "first" {
		t.Errorf("who waited first got %q", got)
	}
	if got := b.line(); got != "first" {
		t.Errorf("who waited second got %q", got)
	}
	a.send(parkWords)
	c.blocked(1)
	c.want(":1", "CLIENT UNBLOCK "+id+" ERROR")
	if got := a.line(); !strings.HasPrefix(got, "-UNBLOCKED") {
		t.Errorf("after CLIENT UNBLOCK ERROR the client got %q", got)
	}
	a.send(parkWords)
	c.blocked(1)
	c.want(":1", "CLIENT KILL ID "+id)
	c.blocked(0)
	b.send(parkWords)
	c.blocked(1)
	b.conn.Close() // who goes away leaves the queue
	c.blocked(0)
	c.want("+OK", "MODULE UNLOAD abitest")
}

// parkWords is a program that waits for abi:k, and when woken replies the string
// that is there.
const parkWords = `ABI.RUN abi:k @1 #1 % 4096 1 0 7 !block | @1 #1 4096 64 !get "&`

func TestModuleIsToldOfClients(t *testing.T) {
	dial, stop := withModule(t)
	defer stop()
	a, c := dial(), dial()
	a.want(":0", "ABI.RUN abi:k @1 #1 5 !bind_client =")
	c.want("*0", "LRANGE abi:told 0 -1")
	a.conn.Close()
	c.until("c5 ", "LRANGE abi:told 0 -1")
	b := dial()
	b.want(":0", "ABI.RUN abi:k @1 #1 6 !bind_client =")
	b.send("CLIENT ID")
	c.want(":1", "CLIENT KILL ID "+strings.TrimPrefix(b.line(), ":"))
	c.until("c5 c6 ", "LRANGE abi:told 0 -1")
}

func TestModuleShutdown(t *testing.T) {
	dial, stop := withModule(t)
	a, c := dial(), dial()
	a.send(parkWords)
	c.blocked(1)
	began := time.Now()
	stop()
	if took := time.Since(began); took > 900*time.Millisecond {
		t.Errorf("a server with a blocked client took %v to stop", took)
	}
}

func TestModuleParameters(t *testing.T) {
	dial, stop := withModule(t, "--abitest.number", "3")
	defer stop()
	c := dial()
	read := func(name string) string {
		c.send(`ABI.RUN abi:k @9 #9 4096 64 !config_get "& | ` + name)
		return c.line()
	}
	if got := read("number"); got != "3" {
		t.Errorf("the guest reads %q, the command line said 3", got)
	}
	c.want("+OK", "CONFIG SET abitest.number 5")
	if got := read("number"); got != "5" {
		t.Errorf("after CONFIG SET the guest reads %q", got)
	}
	c.send("CONFIG GET abitest.n*")
	if got := c.line() + c.line() + c.line(); got != "*2abitest.number5" {
		t.Errorf("CONFIG GET replied %q", got)
	}
	c.send("CONFIG SET abitest.number 10")
	if got := c.line(); !strings.HasPrefix(got, "-ERR CONFIG SET failed") {
		t.Errorf("a number beyond the maximum: %q", got)
	}
	c.send("CONFIG SET abitest.mode fast")
	if got := c.line(); !strings.Contains(got, "immutable") {
		t.Errorf("CONFIG SET of what is immutable: %q", got)
	}
	c.want("+OK", "MODULE RELOAD abitest")
	if got := read("number"); got != "5" {
		t.Errorf("after MODULE RELOAD the guest reads %q", got)
	}
	c.want("+OK", "MODULE UNLOAD abitest")
	c.want("*0", "CONFIG GET abitest.*")
	path := "../../plugins/abitest/abitest.wasm"
	c.want("+OK", "MODULE LOADEX "+path+" CONFIG abitest.mode fast CONFIG abitest.text x ARGS a b")
	if got := read("mode") + read("text") + read("number"); got != "fastx3" {
		t.Errorf("after MODULE LOADEX the guest reads %q", got)
	}
	c.want("+OK", "MODULE UNLOAD abitest")
	for words, want := range map[string]string{
		" CONFIG abitest.none 1":                             `found a value for "abitest.none", wanted one of the module's parameters: abitest.text`,
		" CONFIG abitest.mode quick":                         "abitest.mode",
		" CONFIG abitest.mode fast CONFIG abitest.mode slow": "given twice",
		" CONFIG abitest.mode":                               "syntax error",
		" NONSENSE":                                          "syntax error",
	} {
		c.send("MODULE LOADEX " + path + words)
		if got := c.line(); !strings.HasPrefix(got, "-ERR") || !strings.Contains(got, want) {
			t.Errorf("MODULE LOADEX%s replied %q, want %q", words, got, want)
		}
		c.want("*0", "CONFIG GET abitest.*")
	}
}

// TestPluginDeny: the directive withholds what the manifest asks for, and knows
// every capability.
func TestPluginDeny(t *testing.T) {
	dial, stop := withModule(t, "--plugin-deny", "abitest", "block", "state", "--plugin-deny", "*", "timers", "--plugin-deny", "other", "write")
	defer stop()
	c := dial()
	c.want(":-101", "ABI.RUN abi:k 1000 1 !timer_set =")
	c.want(":-101", "ABI.RUN abi:k 4096 1 4100 !state_get =")
	c.want(":1", "ABI.RUN abi:k @1 #1 @1 #1 0 0 !set =")
	all := manifest.Capabilities{Read: []string{""}, Write: []string{""}, Commands: []string{"GET"}, Timers: true, Events: []string{"new"}, State: manifest.StateRead, Block: true, Clients: true}
	if _, err := config.Load(config.ParseArgs(append([]string{"--plugin-deny", "m"}, all.Names()...), strings.NewReader(""))); err != nil {
		t.Errorf("plugin-deny does not know what a manifest can ask for: %v", err)
	}
	if _, err := config.Load(config.ParseArgs([]string{"--plugin-deny", "m", "everything"}, strings.NewReader(""))); err == nil || !strings.Contains(err.Error(), `"everything" is no capability`) {
		t.Errorf("plugin-deny takes what is no capability: %v", err)
	}
}
