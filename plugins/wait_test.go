package plugins_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// popping is a guest whose H.POP key [timeout] waits until there is a string at
// key, takes it and replies it. With wake it does so in lk_wake.
func popping(wake bool) guest {
	const pop = `
(func $pop (param $argc i32) (param $frame i32) (result i32)
	(local $n i32)
	(local.set $n (call $get (i32.load offset=24 (local.get $frame)) (i32.load offset=28 (local.get $frame)) (i32.const 2048) (i32.const 100)))
	(if (i32.eq (local.get $n) (i32.const -1)) (then (return (i32.const 1))))
	(drop (call $del (i32.load offset=24 (local.get $frame)) (i32.load offset=28 (local.get $frame))))
	(call $reply_bulk (i32.const 2048) (local.get $n))
	(i32.const 0))
(func $timeout (param $argc i32) (param $frame i32) (result i64)
	(if (i32.lt_u (local.get $argc) (i32.const 3)) (then (return (i64.const 0))))
	(i64.mul (i64.const 1000) (i64.sub (i64.load8_u (i32.load offset=32 (local.get $frame))) (i64.const 48))))`
	g := guest{
		commands: []string{"H.POP", "H.WRITE"}, caps: map[string]any{"block": true}, funcs: pop,
		body: `(if (i32.eq (local.get $id) (i32.const 2)) (then
			(drop (call $wake (i32.load offset=24 (local.get $frame)) (i32.load offset=28 (local.get $frame))))
			(call $reply_null) (return (i32.const 0))))
		(if (i32.eqz (call $pop (local.get $argc) (local.get $frame))) (then (return (i32.const 0))))
		(return (call $block (i32.add (local.get $frame) (i32.const 24)) (i32.const 1) (call $timeout (local.get $argc) (local.get $frame)) (i64.const 77)))`,
	}
	if wake {
		g.exports = `(func (export "lk_wake") (param $token i64) (param $reason i32) (param $argc i32) (param $frame i32) (result i32)
			(if (i64.ne (local.get $token) (i64.const 77)) (then unreachable))
			(if (i32.eq (local.get $reason) (i32.const 1)) (then (call $reply_int (i64.const -1)) (return (i32.const 0))))
			(call $pop (local.get $argc) (local.get $frame)))`
	}
	return g
}

// client is one who may wait: parked receives each time it does.
type client struct {
	*bench
	parked    chan struct{}
	gone      chan struct{}
	unblocked chan error
}

func (b *bench) client(t testing.TB) *client {
	c := &client{bench: b.another(t), parked: make(chan struct{}, 100), gone: make(chan struct{}), unblocked: make(chan error, 1)}
	c.sess.Wait = &store.Wait{Done: c.gone, Unblocked: c.unblocked, Parked: func(blocked bool) func() {
		if blocked {
			c.parked <- struct{}{}
		}
		return func() {}
	}}
	return c
}

// begin sends a command that will wait, and returns when it does.
func (c *client) begin(args ...string) (reply chan string) {
	reply = make(chan string, 1)
	go func() { reply <- c.do(args...) }()
	select {
	case <-c.parked:
	case got := <-reply:
		c.t.Errorf("%q did not wait, but replied %q", args, got)
		reply <- got
	}
	return reply
}

func bothWays(t *testing.T, run func(t *testing.T, g guest)) {
	for _, wake := range []bool{true, false} {
		t.Run(fmt.Sprintf("lk_wake is %v", wake), func(t *testing.T) { run(t, popping(wake)) })
	}
}

// TestBlockIsFair: who waits for longest is served first, whatever order the
// writes come in, and nobody can take what was written for him.
func TestBlockIsFair(t *testing.T) {
	bothWays(t, func(t *testing.T, g guest) {
		b := hostile(t, g, time.Minute)
		var waiting []chan string
		for range 5 {
			waiting = append(waiting, b.client(t).begin("H.POP", "k"))
		}
		if n := b.host.List()[0].Waiting; n != 5 {
			t.Errorf("%d clients wait, want 5", n)
		}
		if got := b.do("MODULE", "UNLOAD", "h"); got != "-ERR Error unloading module: 5 clients wait in its commands" {
			t.Errorf("MODULE UNLOAD beside waiting clients replied %q", got)
		}
		for i, w := range waiting {
			v := fmt.Sprint("v", i)
			b.want("+OK", "SET", "k", v)
			b.want("$-1", "GET", "k") // the waiter was before us
			if got := <-w; got != "$2\r\n"+v {
				t.Errorf("waiter %d got %q, want %s", i, got, v)
			}
		}
		b.want("+OK", "MODULE", "UNLOAD", "h")
	})
}

// TestBlockInMultiAndScript: where nobody can wait, block says so.
func TestBlockInMultiAndScript(t *testing.T) {
	b := hostile(t, popping(true), time.Minute)
	if got := b.do("EVAL", "return redis.call('h.pop', KEYS[1])", "1", "k"); !strings.HasPrefix(got, "-ERR h: not allowed in MULTI, in a script") {
		t.Errorf("block in a script replied %q", got)
	}
	b.sess.InMulti = true
	if got := b.do("H.POP", "k"); !strings.HasPrefix(got, "-ERR h: not allowed in MULTI") {
		t.Errorf("block in MULTI replied %q", got)
	}
}

// TestBlockIsUndone: what a command wrote before it began to wait is undone.
func TestBlockIsUndone(t *testing.T) {
	g := popping(true)
	g.body = write + `(return (call $block (i32.add (local.get $frame) (i32.const 24)) (i32.const 1) (i64.const 0) (i64.const 77)))`
	g.commands = []string{"H.POP"}
	b := hostile(t, g, time.Minute)
	w := b.client(t).begin("H.POP", "k")
	b.want("$-1", "GET", "k")
	b.want("+OK", "SET", "k", "v")
	if got := <-w; got != "$1\r\nv" {
		t.Errorf("the waiter got %q", got)
	}
}

// TestBlockTimeout: the time is up to the millisecond, and the guest is told.
func TestBlockTimeout(t *testing.T) {
	for wake, want := range map[bool]string{true: ":-1", false: "$-1"} {
		synctest.Test(t, func(t *testing.T) {
			b := hostile(t, popping(wake), time.Minute)
			w := b.client(t).begin("H.POP", "k", "3")
			began := time.Now()
			if got := <-w; got != want || time.Since(began) != 3*time.Second {
				t.Errorf("lk_wake is %v: after %v the waiter got %q, want %q after 3 s", wake, time.Since(began), got, want)
			}
			b.host.Close()
		})
	}
}

// TestBlockEnds: CLIENT UNBLOCK, a client that is gone, and the store's end.
func TestBlockEnds(t *testing.T) {
	bothWays(t, func(t *testing.T, g guest) {
		b := hostile(t, g, time.Minute)
		c := b.client(t)
		w := c.begin("H.POP", "k")
		c.unblocked <- store.ErrUnblocked
		if got := <-w; got != "-"+command.ErrUnblocked {
			t.Errorf("after CLIENT UNBLOCK ERROR the waiter got %q", got)
		}
		w = c.begin("H.POP", "k")
		c.unblocked <- store.ErrTimeout
		if got := <-w; got != ":-1" && got != "$-1" {
			t.Errorf("after CLIENT UNBLOCK the waiter got %q", got)
		}
		w = c.begin("H.POP", "k")
		close(c.gone)
		if got := <-w; got != "-"+command.ErrCancelled {
			t.Errorf("a client that is gone got %q", got)
		}
		if n := b.eng.Store.Counter.BlockedClients.Load() + b.host.List()[0].Waiting; n != 0 {
			t.Errorf("%d clients wait still", n)
		}
		// What was written for those who are gone is there.
		b.want("+OK", "SET", "k", "v")
		b.want("$1\r\nv", "GET", "k")
		b.want(":1", "DEL", "k")
		w = b.client(t).begin("H.POP", "k")
		b.eng.Store.Close()
		if got := <-w; got != "-"+command.ErrCancelled {
			t.Errorf("at the store's end the waiter got %q", got)
		}
	})
}

// lockGuest's H.LOCK key takes the lock at key for a time, or waits for it.
func lockGuest() guest {
	g := popping(true)
	g.commands = []string{"H.LOCK"}
	g.body = `(if (call $set (i32.load offset=24 (local.get $frame)) (i32.load offset=28 (local.get $frame)) (i32.const 33) (i32.const 1) (i32.const 1) (i64.const 5000))
			(then (call $reply_int (i64.const 1)) (return (i32.const 0))))
		(return (call $block (i32.add (local.get $frame) (i32.const 24)) (i32.const 1) (i64.const 0) (i64.const 77)))`
	g.exports = `(func (export "lk_wake") (param $token i64) (param $reason i32) (param $argc i32) (param $frame i32) (result i32)
		(if (call $set (i32.load offset=24 (local.get $frame)) (i32.load offset=28 (local.get $frame)) (i32.const 33) (i32.const 1) (i32.const 1) (i64.const 5000))
			(then (call $reply_int (i64.const 2)) (return (i32.const 0))))
		(i32.const 1))`
	return g
}

// wallClock is the clock of a bubble of synctest.
type wallClock struct{}

func (wallClock) NowMilli() int64 { return time.Now().UnixMilli() }
func (wallClock) NowMicro() int64 { return time.Now().UnixMicro() }

// TestBlockExpiry: those who wait for a key are handed it in the millisecond in
// which it expires, one after the other, with nobody looking for expired keys.
func TestBlockExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBenchOn(t, plugins.Options{MaxTime: time.Minute}, store.Options{Clock: wallClock{}})
		b.want("+OK", "MODULE", "LOAD", lockGuest().build(t))
		b.want(":1", "H.LOCK", "k")
		began := time.Now()
		first, second := b.client(t).begin("H.LOCK", "k"), b.client(t).begin("H.LOCK", "k")
		for i, w := range []chan string{first, second} {
			want := time.Duration(i+1) * 5 * time.Second
			if got := <-w; got != ":2" || time.Since(began) != want {
				t.Errorf("waiter %d got %q after %v, want :2 after %v", i, got, time.Since(began), want)
			}
		}
		// A time to live that is changed moves the waking, too.
		began = time.Now()
		third := b.client(t).begin("H.LOCK", "k")
		b.want(":1", "PEXPIRE", "k", "60000")
		b.want(":1", "PEXPIRE", "k", "1234")
		if got := <-third; got != ":2" || time.Since(began) != 1234*time.Millisecond {
			t.Errorf("after PEXPIRE the waiter got %q after %v, want :2 after 1.234s", got, time.Since(began))
		}
		b.host.Close()
	})
}

// TestBlockWokenBy: all that changes a key wakes those who wait for it.
func TestBlockWokenBy(t *testing.T) {
	for _, tt := range [][]string{
		{"DEL", "k"},
		{"FLUSHDB"},
		{"FLUSHALL"},
		{"RENAME", "k", "k2"},
		{"PEXPIREAT", "k", "1"},
		{"GETDEL", "k"},
		{"EVAL", "return redis.call('del', KEYS[1])", "1", "k"},
	} {
		b := hostile(t, lockGuest(), time.Minute)
		b.want(":1", "H.LOCK", "k")
		w := b.client(t).begin("H.LOCK", "k")
		b.do(tt...)
		if got := <-w; got != ":2" {
			t.Errorf("after %q the waiter got %q", tt, got)
		}
	}
	// What changes nothing leaves them where they are.
	b := hostile(t, popping(true), time.Minute)
	c := b.client(t)
	w := c.begin("H.POP", "k")
	b.want("$-1", "H.WRITE", "k") // wake: it looks, and goes on waiting
	<-c.parked
	b.want("$-1", "GET", "k")
	b.want("+OK", "SET", "k", "v")
	if got := <-w; got != "$1\r\nv" {
		t.Errorf("the waiter got %q", got)
	}
}

// TestBlockTrapsInWake: the client gets the error, others go on waiting.
func TestBlockTrapsInWake(t *testing.T) {
	g := popping(true)
	g.exports = strings.Replace(g.exports, `(call $pop`, write+`(if (i32.eq (i32.load8_u (i32.load offset=32 (local.get $frame))) (i32.const 57)) (then unreachable)) (call $pop`, 1)
	b := hostile(t, g, time.Minute)
	first, second := b.client(t).begin("H.POP", "k", "9"), b.client(t).begin("H.POP", "k", "0")
	b.want("+OK", "SET", "k", "v")
	if got := <-first; got != "-PLUGINERR h: wasm error: unreachable" {
		t.Errorf("the first waiter got %q", got)
	}
	if got := <-second; got != "$1\r\nx" { // what the guest itself has written
		t.Errorf("the second waiter got %q", got)
	}
}

// TestBlockNotGranted: a module that does not ask for it, or from which it is
// withheld, cannot have clients wait.
func TestBlockNotGranted(t *testing.T) {
	g := popping(true)
	g.caps["block"] = false
	hostile(t, g, time.Minute).want("-NOPERM h: not declared by the command, or not granted to the module", "H.POP", "k")
	b := newBench(t, plugins.Options{Withheld: func(string) []string { return []string{"block", "timers"} }})
	b.want("+OK", "MODULE", "LOAD", popping(true).build(t))
	b.want("-NOPERM h: not declared by the command, or not granted to the module", "H.POP", "k")
	if l := b.host.List()[0]; fmt.Sprint(l.Capabilities, l.Withheld) != "[read write] [block]" {
		t.Errorf("the module has the capabilities %q, withheld %q", l.Capabilities, l.Withheld)
	}
}

// TestReloadBesideWaiting: who waits is served by the code that took the place of
// the one he began on, unless that cannot know what he waits for.
func TestReloadBesideWaiting(t *testing.T) {
	b := hostile(t, popping(true), time.Minute)
	w := b.client(t).begin("H.POP", "k")
	next := popping(true)
	next.exports = strings.Replace(next.exports, "(call $pop (local.get $argc) (local.get $frame))", "(call $reply_int (i64.const 99)) (i32.const 0)", 1)
	b.want("+OK", "MODULE", "RELOAD", "h", next.build(t))
	b.want("+OK", "SET", "k", "v")
	if got := <-w; got != ":99" {
		t.Errorf("after MODULE RELOAD the waiter got %q, want the new code's :99", got)
	}
	w = b.client(t).begin("H.POP", "k3")
	next.wakeVersion = 2
	b.want("+OK", "MODULE", "RELOAD", "h", next.build(t))
	if got := <-w; got != "-"+command.ErrUnblocked {
		t.Errorf("after MODULE RELOAD with another wake_version the waiter got %q", got)
	}
	b.want("+OK", "MODULE", "UNLOAD", "h")
}
