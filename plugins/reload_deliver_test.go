package plugins_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins"
)

// held is a log that holds up the guest which writes to it until it is let go.
type held struct {
	slog.Handler
	in, out chan struct{}
}

// open is called in the bubble whose time is to pass meanwhile.
func (h *held) open() *held {
	h.in, h.out = make(chan struct{}, 1), make(chan struct{})
	return h
}

func (h *held) Enabled(context.Context, slog.Level) bool { return true }

func (h *held) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "from a plugin" {
		h.in <- struct{}{}
		<-h.out
	}
	return nil
}

// logs has a guest write to the log, and then spend more than a slice of fuel.
const logs = `(call $log (i32.const 1) (i32.const 0) (i32.const 1))
	(loop $l (local.set $n (i32.add (local.get $n) (i32.const 1))) (br_if $l (i32.lt_u (local.get $n) (i32.const 100000))))`

// TestReloadBesideTimer: what the old code is being told when the module is
// reloaded it ends, nobody waits for that, and the new code is told what comes
// after.
func TestReloadBesideTimer(t *testing.T) {
	slow := telling(map[string]any{"timers": true}, logs)
	slow.exports = strings.Replace(slow.exports, `(param $token i64) (result i32)`, `(param $token i64) (result i32) (local $n i32)`, 1)
	// The new code writes down a token that is greater by one.
	next := telling(map[string]any{"timers": true}, "")
	next.exports = strings.Replace(next.exports, `(i32.wrap_i64 (local.get $token))`, `(i32.wrap_i64 (i64.add (i64.const 1) (local.get $token)))`, 1)
	path := next.build(t)
	log := new(held)
	inBubble(t, slow, plugins.Options{Log: slog.New(log)}, func(t *testing.T, b *bench) {
		log.open()
		b.want(":1", "H.SET", "k", "\x01")
		time.Sleep(time.Millisecond)
		b.want(":2", "H.SET", "k", "\x05")
		<-log.in // the old code is told of the first, and holds the list
		b.want("+OK", "MODULE", "RELOAD", "h", path)
		time.Sleep(time.Minute)
		close(log.out)
		if got := b.told(t); got != "*2 $2 T1 $2 T6" {
			t.Errorf("after the reload the guests were told %q, want T1 by the old and T6 by the new", got)
		}
		if l := b.host.List()[0]; l.Delivered != 2 || l.Dropped != 0 || l.Queued != 0 || l.Timers != 0 {
			t.Errorf("the module has %d delivered, %d dropped, %d queued and %d timers; want 2, 0, 0 and 0", l.Delivered, l.Dropped, l.Queued, l.Timers)
		}
	})
}

// TestUnloadEndsTimer: a module that goes does not end what it is being told.
func TestUnloadEndsTimer(t *testing.T) {
	slow := telling(map[string]any{"timers": true}, logs)
	slow.exports = strings.Replace(slow.exports, `(param $token i64) (result i32)`, `(param $token i64) (result i32) (local $n i32)`, 1)
	log := new(held)
	inBubble(t, slow, plugins.Options{Log: slog.New(log)}, func(t *testing.T, b *bench) {
		log.open()
		b.want(":1", "H.SET", "k", "\x01")
		<-log.in
		b.want("+OK", "MODULE", "RELOAD", "h")
		done := make(chan string)
		go func() { done <- b.another(t).do("MODULE", "UNLOAD", "h") }()
		synctest.Wait()
		close(log.out)
		if got := <-done; got != "+OK" {
			t.Errorf("MODULE UNLOAD replied %q", got)
		}
		if got := b.told(t); got != "*0" {
			t.Errorf("what was under way at MODULE UNLOAD left %q behind", got)
		}
	})
}

// TestReloadWithLess: what was to be told to the old code, and the new one neither
// asks for nor could take, is dropped, but for the ends of clients, which are kept for
// who can be told.
func TestReloadWithLess(t *testing.T) {
	all := telling(map[string]any{"timers": true, "clients": true, "events": []string{"string"}}, "")
	again := all.build(t)
	none := telling(map[string]any{}, "")
	none.exports = ""
	bare := none.build(t)
	some := telling(map[string]any{"clients": true}, "")
	i, j := strings.Index(some.exports, `(func (export "lk_timer")`), strings.Index(some.exports, `(func (export "lk_closed")`)
	some.exports = some.exports[:i] + some.exports[j:]
	clients := some.build(t)
	inBubble(t, all, plugins.Options{}, func(t *testing.T, b *bench) {
		c := b.client(t)
		c.sess.Client = person{7}
		c.want(":0", "H.BIND", "k")
		c.want(":0", "H.BIND", "k2")
		b.want(":1", "H.SET", "k", "\x01")
		b.want(":2", "H.SET", "k", "\x02")
		b.want("+OK", "MODULE", "RELOAD", "h", clients)
		time.Sleep(time.Minute)
		if l := b.host.List()[0]; b.told(t) != "*0" || l.Dropped != 2 || l.Queued != 0 {
			t.Errorf("code without lk_timer was told %q, %d were dropped and %d are queued; want none, 2 and 0", b.told(t), l.Dropped, l.Queued)
		}
		b.want("+OK", "MODULE", "RELOAD", "h", bare)
		c.leave(7)
		b.want("+OK", "SET", "k9", "v")
		if got := b.told(t); got != "*0" {
			t.Errorf("code that asks for nothing was told %q", got)
		}
		b.want("$1\r\nx", "GET", "k")
		b.want("+OK", "MODULE", "RELOAD", "h", again)
		if got := b.told(t); got != "*2 $2 C5 $2 C5" {
			t.Errorf("when the first code came back it was told %q, want twice of the client", got)
		}
		b.want("$-1", "GET", "k")
	})
}

// TestReloadKeepsBindings: a client that goes after, or while, the module is reloaded
// is told of once, to the new code.
func TestReloadKeepsBindings(t *testing.T) {
	g := telling(map[string]any{"clients": true}, "")
	next := g
	next.exports = strings.Replace(next.exports, `(call $push (i32.const 67)`, `(call $push (i32.const 78)`, 1) // N for C
	path := next.build(t)
	inBubble(t, g, plugins.Options{}, func(t *testing.T, b *bench) {
		one, two := b.client(t), b.client(t)
		one.sess.Client, two.sess.Client = person{7}, person{8}
		one.want(":0", "H.BIND", "k")
		two.want(":0", "H.BIND", "k2")
		b.want("+OK", "MODULE", "RELOAD", "h")
		one.want(":0", "H.BIND", "k3") // in the second code
		one.leave(7)
		if got := b.told(t); got != "*2 $2 C5 $2 C5" {
			t.Errorf("after a reload the code was told %q, want of two keys", got)
		}
		// Somebody holds what lk_closed wants, so the end of a client waits meanwhile.
		tx := b.eng.Store.NewTx()
		tx.Begin()
		tx.Add(0, []byte("o"))
		if err := tx.Acquire(nil); err != nil {
			t.Fatal(err)
		}
		two.leave(8)
		synctest.Wait()
		b.want("+OK", "MODULE", "RELOAD", "h", path)
		b.want("+OK", "MODULE", "RELOAD", "h", path)
		tx.Rollback()
		if got := b.told(t); got != "*3 $2 C5 $2 C5 $2 C5" && got != "*3 $2 C5 $2 C5 $2 N5" {
			t.Errorf("the end of a client beside two reloads was told %q, want once more", got)
		}
		b.want("$-1", "GET", "k2")
	})
}

// TestReloadRenumbers: who waits in a command is served by the command of that name,
// whatever its number is now; who waits in one that takes other keys, or is gone,
// is told so.
func TestReloadRenumbers(t *testing.T) {
	bothWays(t, func(t *testing.T, g guest) {
		b := hostile(t, g, time.Minute)
		w := b.client(t).begin("H.POP", "k")
		next := g
		next.commands = []string{"H.WRITE", "H.POP"}
		next.body = strings.Replace(next.body, `(i32.eq (local.get $id) (i32.const 2))`, `(i32.eq (local.get $id) (i32.const 1))`, 1)
		b.want("+OK", "MODULE", "RELOAD", "h", next.build(t))
		b.want("+OK", "SET", "k", "v")
		if got := <-w; got != "$1\r\nv" {
			t.Errorf("after H.POP has got another number its client got %q", got)
		}
		w = b.client(t).begin("H.POP", "k")
		other := next
		other.many = true
		b.want("+OK", "MODULE", "RELOAD", "h", other.build(t))
		b.want("+OK", "SET", "k", "v")
		if got := <-w; !strings.HasPrefix(got, "-PLUGINERR h: the module was reloaded meanwhile") {
			t.Errorf("after H.POP takes other keys its client got %q", got)
		}
		b.want(":1", "DEL", "k")
		w = b.client(t).begin("H.POP", "k")
		other.commands = []string{"H.WRITE"}
		b.want("+OK", "MODULE", "RELOAD", "h", other.build(t))
		b.want("+OK", "SET", "k", "v")
		if got := <-w; !strings.HasPrefix(got, "-PLUGINERR h: the module was reloaded meanwhile") {
			t.Errorf("after H.POP is gone its client got %q", got)
		}
		b.want("$1\r\nv", "GET", "k")
		b.want("+OK", "MODULE", "UNLOAD", "h")
	})
}

// TestKillAfterReload: MODULE KILL reaches the calls that run on the old code, and
// those are counted.
func TestKillAfterReload(t *testing.T) {
	log := new(held).open()
	b := newBench(t, plugins.Options{MaxTime: time.Hour, Log: slog.New(log)})
	b.want("+OK", "MODULE", "LOAD", guest{body: write + `(call $log (i32.const 1) (i32.const 0) (i32.const 1))` + forever}.build(t))
	reply := make(chan string)
	o := b.another(t)
	go func() { reply <- o.do("H.RUN", "k") }()
	<-log.in
	b.want("+OK", "MODULE", "RELOAD", "h", answers(t, 1))
	b.want("+OK", "MODULE", "RELOAD", "h", answers(t, 2))
	if n := b.host.List()[0].Running; n != 1 {
		t.Errorf("%d calls run, want the one on the first code", n)
	}
	b.want("+OK", "MODULE", "KILL", "h")
	close(log.out)
	if got := <-reply; got != "-PLUGINERR h: killed by MODULE KILL" {
		t.Errorf("the call on the old code replied %q", got)
	}
	b.want("$-1", "GET", "k")
	b.want(":2", "H.RUN", "k")
	b.want("-NOTBUSY No calls of the module in execution right now.", "MODULE", "KILL", "h")
}
