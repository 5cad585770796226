package plugins_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/store"
)

// telling is a guest that writes down what it is told: lk_timer, lk_event and
// lk_closed append the letter of theirs to the list at o, by RPUSH, with the
// token or the event's number.
func telling(caps map[string]any, more string) guest {
	caps["commands"] = []string{"RPUSH"}
	return guest{
		commands: []string{"H.SET", "H.CANCEL", "H.BIND", "H.UNBIND", "H.TRAP"}, caps: caps,
		limits: map[string]int{"instances": 4},
		data:   `T0RPUSHo`, // T0 at 256, RPUSH at 258, o at 263
		funcs: `
		(func $push (param $letter i32) (param $n i32)
			(i32.store8 (i32.const 256) (local.get $letter))
			(i32.store8 (i32.const 257) (i32.add (i32.const 48) (local.get $n)))
			(i32.store (i32.const 512) (i32.const 258)) (i32.store (i32.const 516) (i32.const 5))
			(i32.store (i32.const 520) (i32.const 263)) (i32.store (i32.const 524) (i32.const 1))
			(i32.store (i32.const 528) (i32.const 256)) (i32.store (i32.const 532) (i32.const 2))
			(local.set $n (call $call (i32.const 512) (i32.const 3)))
			(if (i32.lt_s (local.get $n) (i32.const 1)) (then unreachable)))`,
		exports: `
		(func (export "lk_timer") (param $token i64) (result i32)
			(call $push (i32.const 84) (i32.wrap_i64 (local.get $token)))
			` + more + `
			(i32.const 0))
		(func (export "lk_event") (param $class i32) (param $argc i32) (param $frame i32) (result i32)
			(call $push (i32.const 69) (local.get $class))
			(i32.const 0))
		(func (export "lk_closed") (param $token i64) (param $argc i32) (param $frame i32) (result i32)
			(call $push (i32.const 67) (i32.wrap_i64 (local.get $token)))
			(if (i32.ne (call $del (i32.load offset=16 (local.get $frame)) (i32.load offset=20 (local.get $frame))) (i32.const 1)) (then unreachable))
			(i32.const 0))`,
		body: `
		(if (i32.eq (local.get $id) (i32.const 1)) (then
			(call $reply_int (call $timer_set (i64.const 1500) (i64.load8_u (i32.load offset=32 (local.get $frame)))))))
		(if (i32.eq (local.get $id) (i32.const 2)) (then
			(call $reply_int (i64.extend_i32_s (call $timer_cancel (i64.sub (i64.load8_u (i32.load offset=32 (local.get $frame))) (i64.const 48)))))))
		(if (i32.eq (local.get $id) (i32.const 3)) (then
			(drop (call $set (i32.load offset=24 (local.get $frame)) (i32.load offset=28 (local.get $frame)) (i32.const 33) (i32.const 1) (i32.const 0) (i64.const 0)))
			(call $reply_int (i64.extend_i32_s (call $bind_client (i32.load offset=24 (local.get $frame)) (i32.load offset=28 (local.get $frame)) (i64.const 5))))))
		(if (i32.eq (local.get $id) (i32.const 4)) (then
			(call $reply_int (i64.extend_i32_s (call $unbind_client (i32.load offset=24 (local.get $frame)) (i32.load offset=28 (local.get $frame)))))))
		(if (i32.eq (local.get $id) (i32.const 5)) (then
			(drop (call $timer_set (i64.const 1) (i64.const 9)))
			(drop (call $bind_client (i32.load offset=24 (local.get $frame)) (i32.load offset=28 (local.get $frame)) (i64.const 9)))
			unreachable))`,
	}
}

// told is what the guest has been told, once there is nothing more to tell.
func (b *bench) told(t *testing.T) string {
	synctest.Wait()
	return strings.ReplaceAll(b.do("LRANGE", "o", "0", "-1"), "\r\n", " ")
}

func inBubble(t *testing.T, g guest, opt plugins.Options, run func(t *testing.T, b *bench)) {
	path := g.build(t)
	synctest.Test(t, func(t *testing.T) {
		if opt.MaxTime == 0 {
			opt.MaxTime = time.Minute
		}
		b := newBenchOn(t, opt, store.Options{Clock: wallClock{}})
		b.want("+OK", "MODULE", "LOAD", path)
		run(t, b)
		b.host.Close()
	})
}

func TestTimers(t *testing.T) {
	inBubble(t, telling(map[string]any{"timers": true}, ""), plugins.Options{}, func(t *testing.T, b *bench) {
		b.want(":1", "H.SET", "k", "\x01")
		time.Sleep(time.Second)
		b.want(":2", "H.SET", "k", "\x02")
		b.want(":3", "H.SET", "k", "\x03")
		b.do("H.TRAP", "k") // its timer was never set
		if n := b.host.List()[0].Timers; n != 3 {
			t.Errorf("%d timers, want 3", n)
		}
		b.want(":1", "H.CANCEL", "k", "3")
		b.want(":0", "H.CANCEL", "k", "3")
		b.want(":0", "H.CANCEL", "k", "4")
		time.Sleep(500 * time.Millisecond)
		if got := b.told(t); got != "*1 $2 T1" {
			t.Errorf("after 1.5 s the guest was told %q", got)
		}
		time.Sleep(time.Minute)
		if got := b.told(t); got != "*2 $2 T1 $2 T2" {
			t.Errorf("at last the guest was told %q", got)
		}
		b.want(":5", "H.SET", "k", "\x04") // 4 was of the call that trapped
		b.want("+OK", "MODULE", "UNLOAD", "h")
		time.Sleep(time.Minute)
		if got := b.told(t); got != "*2 $2 T1 $2 T2" {
			t.Errorf("after MODULE UNLOAD the guest was told %q", got)
		}
	})
}

// TestTimerIsUndone: a timer whose guest traps leaves nothing behind.
func TestTimerIsUndone(t *testing.T) {
	for _, more := range []string{`unreachable`, `(return (i32.const -103))`, `(call $reply_int (i64.const 1))`, `(return (i32.const 5))`} {
		inBubble(t, telling(map[string]any{"timers": true}, more), plugins.Options{}, func(t *testing.T, b *bench) {
			b.do("H.SET", "k", "\x01")
			time.Sleep(time.Minute)
			if got := b.told(t); got != "*0" {
				t.Errorf("a timer with %s left %q behind", more, got)
			}
		})
	}
}

// TestBusyDelivery: what a module is to be told waits for as long as all its
// instances are in use, in its order, and keeps its keys from nobody meanwhile.
func TestBusyDelivery(t *testing.T) {
	g := telling(map[string]any{"timers": true, "events": []string{"string"}}, "")
	g.commands = append(g.commands, "H.LOG")
	g.body = `(if (i32.eq (local.get $id) (i32.const 6)) (then
		(call $log (i32.const 1) (i32.const 0) (i32.const 1)) (call $reply_int (i64.const 0)) (return (i32.const 0))))` + g.body
	g.limits = map[string]int{"instances": 1}
	log := new(held)
	inBubble(t, g, plugins.Options{Log: slog.New(log)}, func(t *testing.T, b *bench) {
		log.open()
		b.want(":1", "H.SET", "k", "\x01")
		other, reply := b.client(t), make(chan string, 1)
		go func() { reply <- other.do("H.LOG", "x") }()
		<-log.in
		b.want("+OK", "SET", "k1", "v")
		time.Sleep(10 * time.Minute) // ten times as long as one wait for an instance
		b.want("+OK", "SET", "k1", "w")
		if l := b.host.List()[0]; l.Queued > 3 || l.Delivered != 0 || l.Dropped != 0 {
			t.Errorf("while its instance is busy: %d queued, %d delivered, %d dropped", l.Queued, l.Delivered, l.Dropped)
		}
		close(log.out)
		if got := <-reply; got != ":0" {
			t.Errorf("H.LOG replied %q", got)
		}
		if got := b.told(t); got != "*3 $2 E1 $2 T1 $2 E1" {
			t.Errorf("the guest was told %q, want the event, the timer, and the second event", got)
		}
	})
}

func TestEvents(t *testing.T) {
	g := telling(map[string]any{"events": []string{"generic", "string", "expired"}}, "")
	inBubble(t, g, plugins.Options{}, func(t *testing.T, b *bench) {
		b.want("+OK", "SET", "k", "v")      // string
		b.want(":1", "DEL", "k")            // generic
		b.want("+OK", "SET", "other", "v")  // of a key that it may read
		b.want("+OK", "SET", "secret", "v") // of one that it may not
		b.want(":1", "LPUSH", "k2", "v")    // list: not subscribed to
		b.want(":-101", "H.BIND", "o2")     // what the module does itself
		b.want("+OK", "SET", "k", "v", "PX", "10")
		b.do("EVAL", "redis.call('set', KEYS[1], 'v') error('undone')", "1", "k")
		if got := b.told(t); got != "*5 $2 E1 $2 E0 $2 E1 $2 E1 $2 E0" {
			t.Errorf("the guest was told %q, want E1 E0 E1 E1 E0", got)
		}
		time.Sleep(time.Second)
		b.eng.Store.ExpireCycle(time.Second)
		if got := b.told(t); got != "*6 $2 E1 $2 E0 $2 E1 $2 E1 $2 E0 $2 E7" {
			t.Errorf("after a key expired the guest was told %q", got)
		}
		if n := b.host.List()[0].Delivered; n != 6 {
			t.Errorf("%d events were delivered, want 6", n)
		}
		b.want("+OK", "MODULE", "UNLOAD", "h")
		if n := b.eng.Store.Notify(); n != 0 {
			t.Errorf("events of the classes %b are still made when no module wants them", n)
		}
	})
}

// leave ends the connection of a client.
func (c *client) leave(id int64) { c.eng.ClientGone(id) }

func TestClosed(t *testing.T) {
	g := telling(map[string]any{"clients": true}, "")
	path := g.build(t)
	inBubble(t, g, plugins.Options{}, func(t *testing.T, b *bench) {
		c := b.client(t)
		c.sess.Client = person{7}
		c.want(":0", "H.BIND", "k")
		c.want(":0", "H.BIND", "k2")
		c.want(":0", "H.UNBIND", "k2")
		c.do("H.TRAP", "k3")
		b.want(":-106", "H.BIND", "o2") // nobody to bind it to
		c.leave(8)
		if got := b.told(t); got != "*0" {
			t.Errorf("when another client went the guest was told %q", got)
		}
		c.leave(7)
		if got := b.told(t); got != "*1 $2 C5" {
			t.Errorf("when the client went the guest was told %q", got)
		}
		b.want("$-1", "GET", "k")
		b.want("$1\r\nx", "GET", "k2")
		c.leave(7)

		// One who goes while the module is not loaded.
		c.want(":0", "H.BIND", "k")
		b.want("+OK", "MODULE", "UNLOAD", "h")
		c.leave(7)
		b.want("$1\r\nx", "GET", "k")
		b.want("+OK", "MODULE", "LOAD", path)
		if got := b.told(t); got != "*2 $2 C5 $2 C5" {
			t.Errorf("when it was loaded again the guest was told %q", got)
		}
		b.want("$-1", "GET", "k")
	})
}

// TestClosedIsTriedAgain: the end of a client is told three times before it is
// given up, and beside a transaction that holds the list it is run again.
func TestClosedIsTriedAgain(t *testing.T) {
	g := telling(map[string]any{"clients": true}, "")
	logged := &lines{}
	inBubble(t, g, plugins.Options{Log: slog.New(logged)}, func(t *testing.T, b *bench) {
		c := b.client(t)
		c.sess.Client = person{7}
		c.want(":0", "H.BIND", "k")
		c.want(":1", "DEL", "k") // so lk_closed traps
		c.leave(7)
		if got := b.told(t); got != "*0" {
			t.Errorf("lk_closed trapped and left %q behind", got)
		}
		if n := logged.count("what a module was told was undone"); n != 3 {
			t.Errorf("lk_closed was tried %d times, want 3", n)
		}
		c.want(":0", "H.BIND", "k")
		tx := b.eng.Store.NewTx()
		tx.Begin()
		tx.Add(0, []byte("o"))
		if err := tx.Acquire(nil); err != nil {
			t.Fatal(err)
		}
		c.leave(7)
		synctest.Wait()
		tx.Rollback()
		if got := b.told(t); got != "*1 $2 C5" {
			t.Errorf("when the list was free again the guest had been told %q", got)
		}
		if b.eng.Store.Counter.Reruns.Load() == 0 {
			t.Error("the transaction that found the list held was not run again")
		}
	})
}

// person is a client with a number.
type person struct{ id int64 }

func (p person) ID() int64    { return p.id }
func (p person) Name() string { return fmt.Sprint("name", p.id) }
func (p person) User() string { return "someone" }
func (p person) Addr() string { return "192.0.2.1:1234" }

// lines counts what is logged.
type lines struct {
	slog.Handler
	seen []string
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.seen = append(l.seen, r.Message)
	return nil
}

func (l *lines) count(message string) int {
	n := 0
	for _, s := range l.seen {
		if s == message {
			n++
		}
	}
	return n
}

// TestEventsAreBounded: a module that does not keep up loses events, which are
// counted, and nobody waits for it.
func TestEventsAreBounded(t *testing.T) {
	g := telling(map[string]any{"events": []string{"string"}}, "")
	inBubble(t, g, plugins.Options{}, func(t *testing.T, b *bench) {
		hold := b.eng.Store.NewTx()
		hold.Begin()
		hold.Add(0, []byte("o"))
		if err := hold.Acquire(nil); err != nil {
			t.Fatal(err)
		}
		b.want("+OK", "SET", "k", "v")
		synctest.Wait() // its delivery waits for the list
		for range 10_100 {
			b.want("+OK", "SET", "k9", "v")
		}
		hold.Rollback()
		synctest.Wait()
		l := b.host.List()[0]
		if l.Delivered+l.Dropped != 10_101 || l.Dropped < 90 || l.Delivered < 10_000 {
			t.Errorf("%d events were delivered and %d dropped, want 10101 together, and no more than 10000 kept", l.Delivered, l.Dropped)
		}
	})
}

// TestDisabled: too many traps disable a module, until it is enabled.
func TestDisabled(t *testing.T) {
	g := telling(map[string]any{"timers": true, "clients": true}, "")
	inBubble(t, g, plugins.Options{MaxFailures: 3, FailureWindow: time.Second}, func(t *testing.T, b *bench) {
		for range 2 {
			b.do("H.TRAP", "k")
		}
		time.Sleep(2 * time.Second) // those do not count any more
		for range 2 {
			b.want("-PLUGINERR h: wasm error: unreachable", "H.TRAP", "k")
		}
		c := b.client(t)
		c.sess.Client = person{7}
		c.want(":0", "H.BIND", "k")
		b.do("H.SET", "k", "\x01")
		b.want("-PLUGINERR h: wasm error: unreachable", "H.TRAP", "k")
		const want = "-PLUGINDISABLED h: it has failed 3 times within 1s, at last with: wasm error: unreachable"
		b.want(want, "H.TRAP", "k")
		b.want(want, "H.CALLS")
		c.leave(7)
		time.Sleep(time.Minute) // the timer was dropped, the client is kept
		if got := b.told(t); got != "*0" {
			t.Errorf("while it was disabled the guest was told %q", got)
		}
		if err := b.host.Enable("h"); err != nil {
			t.Fatal(err)
		}
		if got := b.told(t); got != "*1 $2 C5" {
			t.Errorf("when it was enabled the guest was told %q", got)
		}
		b.want(":0", "H.CANCEL", "k", "1")
		if err := b.host.Disable("h", "by hand"); err != nil {
			t.Fatal(err)
		}
		b.want("-PLUGINDISABLED h: by hand", "H.CALLS")
		if got := b.host.List()[0].Disabled; got != "by hand" {
			t.Errorf("the list says that it is disabled because of %q", got)
		}
		if err := b.host.Enable("none"); err != plugins.ErrNoSuchModule {
			t.Errorf("enabling a module that is not there: %v", err)
		}
	})
}

var _ store.Clock = wallClock{}

// TestClosedBesideLoads: of who goes while the module is being loaded or unloaded the guest is
// told, too, once.
func TestClosedBesideLoads(t *testing.T) {
	b := newBench(t, plugins.Options{})
	path := telling(map[string]any{"clients": true}, "").build(t)
	b.want("+OK", "MODULE", "LOAD", path)
	const rounds, clients = 20, 100
	c := b.client(t)
	for round := range rounds {
		for id := range int64(clients) {
			c.sess.Client = person{id}
			c.want(":0", "H.BIND", fmt.Sprint("k", id))
		}
		b.want("+OK", "MODULE", "UNLOAD", "h")
		var leaving sync.WaitGroup
		for part := range int64(4) {
			leaving.Go(func() {
				for id := part; id < clients; id += 4 {
					c.leave(id)
					time.Sleep(time.Microsecond)
				}
			})
		}
		b.want("+OK", "MODULE", "LOAD", path)
		leaving.Wait()
		told := fmt.Sprintf(":%d", (round+1)*clients)
		for patience := 5000; b.do("LLEN", "o") != told; patience-- {
			if patience == 0 {
				t.Fatalf("after %d loads the guest was told of %s clients, want %s", round+1, b.do("LLEN", "o"), told)
			}
			time.Sleep(time.Millisecond)
		}
	}
}
