package plugins_test

import (
	"testing"

	"github.com/latchkey-proxy/latchkey/store"
)

func TestHostileWakes(t *testing.T) { attackAll(t, wakes()) }

// wakes are guests whose client waits, and that do what they may not once it is
// woken. Whoever woke it is told nothing of that.
func wakes() []attack {
	const (
		block = `(return (call $block (i32.add (local.get $frame) (i32.const 24)) (i32.const 1) (i64.const 0) (i64.const 7)))`
		soon  = `(return (call $block (i32.add (local.get $frame) (i32.const 24)) (i32.const 1) (i64.const 1) (i64.const 7)))`
		again = `(return (i32.const 1))`
	)
	waker := func(body string) string {
		return `(func (export "lk_wake") (param $token i64) (param $reason i32) (param $argc i32) (param $frame i32) (result i32) (local $i i32)` +
			write + body + ` (i32.const 0))`
	}
	// woken by a key.
	byKey := func(name, want, body string) attack {
		return attack{name: "lk_wake " + name, want: want, idle: true, guest: guest{
			caps: map[string]any{"block": true}, body: block, exports: waker(body),
		}, scene: wakeByKey}
	}
	// woken by the end of its time.
	byTime := func(name, want, body string) attack {
		return attack{name: "lk_wake " + name + " when the time is up", want: want, idle: true, guest: guest{
			caps: map[string]any{"block": true}, body: soon, exports: waker(body),
		}, scene: func(_ *testing.T, b *bench) string { return b.do("H.RUN", "k") }}
	}
	brought := func(a attack) attack { a.maxTime = brief; return a }
	return []attack{
		byKey("traps", pluginE+"wasm error: unreachable", `unreachable`),
		byTime("traps", pluginE+"wasm error: unreachable", `unreachable`),
		brought(byKey("does not end", pluginE+tooLong, forever)),
		brought(byTime("does not end", pluginE+tooLong, forever)),
		brought(byKey("calls the host without end", pluginE+tooLong, repeated(`(drop (call $exists (i32.const 0) (i32.const 1)))`))),
		func() attack {
			a := byKey("recurs", pluginE+"calls are nested too deeply", `(call $r)`)
			a.guest.funcs = `(func $r (call $r))`
			return a
		}(),
		byKey("reads beyond its frame", pluginE+"wasm error: out of bounds memory access", `(drop (i32.load (i32.add (local.get $frame) (i32.const 0x7fffffff))))`),
		byKey("has a pointer that is outside", "is outside of memory", `(drop (call $get (i32.const -1) (i32.const 9) (i32.const 0) (i32.const 0)))`),
		byKey("gives two replies", "more replies than one", `(call $reply_null) (call $reply_null)`),
		byKey("gives no reply", pluginE+"the reply is not complete", ``),
		byKey("gives half a reply", pluginE+"the reply is not complete", `(call $reply_array (i32.const 2)) (call $reply_null)`),
		byKey("goes on and gives a reply", pluginE, `(call $reply_null) `+again),
		byKey("returns 2", pluginE+"lk_wake returned 2", `(return (i32.const 2))`),
		byKey("returns -2^31", pluginE+"lk_wake returned -2147483648", `(return (i32.const -2147483648))`),
		byKey("waits for more", "ERR h: not allowed in MULTI", block),
		byTime("goes on", "$-1", again),
		byTime("wakes itself and goes on", "$-1", `(drop (call $wake (i32.const 0) (i32.const 1))) `+again),
		byKey("frees what it was never given", "is not a handle of a reply", `(call $call_free (i32.const 9))`),
		func() attack { // it gets its own writes to see no more than those of others
			a := byKey("changes its key and goes on", pluginE+"wasm error: unreachable", `
				(global.set $woken (i32.add (global.get $woken) (i32.const 1)))
				(if (i32.eq (global.get $woken) (i32.const 2)) (then unreachable)) `+again)
			a.guest.funcs = `(global $woken (mut i32) (i32.const 0))`
			return a
		}(),
		{
			// Without lk_wake, lk_command runs again.
			name: "lk_command traps once it is woken", idle: true, want: pluginE + "wasm error: unreachable", scene: wakeByKey,
			guest: guest{caps: map[string]any{"block": true}, body: `(if (call $exists (i32.const 0) (i32.const 1)) (then ` + write + ` unreachable))` + block},
		},
		{
			name: "lk_command does not end once it is woken", idle: true, want: pluginE + tooLong, scene: wakeByKey, maxTime: brief,
			guest: guest{caps: map[string]any{"block": true}, body: `(if (call $exists (i32.const 0) (i32.const 1)) (then ` + write + forever + `))` + block},
		},
	}
}

// wakeByKey has a client wait for k, and others change it until it has its reply.
func wakeByKey(t *testing.T, b *bench) string {
	c := b.client(t)
	reply := c.begin("H.RUN", "k")
	for {
		b.want("+OK", "SET", "k", "v")
		b.want(":1", "DEL", "k")
		select {
		case got := <-reply:
			return got
		case <-c.parked: // it waits again
		}
	}
}

func TestHostileDeliveries(t *testing.T) { attackAll(t, deliveries()) }

// deliveries are guests that misbehave where no client waits for them: told that a
// timer is due, a key was changed, a client is gone.
func deliveries() []attack {
	traps := func(a attack, n int64) attack { a.traps, a.idle = n, true; return a }
	brought := func(a attack) attack { a.maxTime = brief; return a }

	timer := func(name, body string) attack {
		return traps(attack{name: "lk_timer " + name, commands: []string{"H.SET k"}, guest: guest{
			caps: map[string]any{"timers": true}, commands: []string{"H.SET"},
			exports: `(func (export "lk_timer") (param $token i64) (result i32) (local $i i32)` + write + body + `(i32.const 0))`,
			body:    `(drop (call $timer_set (i64.const 1) (i64.const 1))) (call $reply_null)`,
		}}, 1)
	}
	event := func(name, body string) attack {
		return attack{name: "lk_event " + name, commands: []string{"SET k v", "DEL k"}, traps: 1, guest: guest{
			caps: map[string]any{"events": []string{"string"}},
			exports: `(func (export "lk_event") (param $class i32) (param $argc i32) (param $frame i32) (result i32) (local $i i32)
				(drop (call $set (i32.const 8) (i32.const 5) (i32.const 33) (i32.const 1) (i32.const 0) (i64.const 0)))` + body + `(i32.const 0))`,
			body: `unreachable`,
		}}
	}
	// The end of a client is told three times.
	closed := func(name, body string) attack {
		return traps(attack{name: "lk_closed " + name, guest: guest{
			caps: map[string]any{"clients": true},
			exports: `(func (export "lk_closed") (param $token i64) (param $argc i32) (param $frame i32) (result i32) (local $i i32)` +
				write + body + `(i32.const 0))`,
			body: `(drop (call $bind_client (i32.const 0) (i32.const 1) (i64.const 5))) (call $reply_null)`,
		}, want: "$-1", scene: func(t *testing.T, b *bench) string {
			b.sess.Client = person{7}
			b.sess.Wait = &store.Wait{Done: make(chan struct{})}
			reply := b.do("H.RUN", "k")
			b.eng.ClientGone(7)
			return reply
		}}, 3)
	}
	recurs := func(a attack) attack { a.guest.funcs = `(func $r (call $r))`; return a }
	const (
		waits   = `(if (i32.eqz (call $block (i32.const 24) (i32.const 0) (i64.const 0) (i64.const 0))) (then (return (i32.const 0)))) unreachable`
		beyond  = `(drop (i32.load (i32.add (local.get $frame) (i32.const 0x7fffffff))))`
		outside = `(drop (call $get (i32.const -1) (i32.const 9) (i32.const 0) (i32.const 0)))`
		// It traps unless what is not its own is denied, and if it is.
		reaches = `(if (i32.ne (call $set (i32.const 16) (i32.const 6) (i32.const 33) (i32.const 1) (i32.const 0) (i64.const 0)) (i32.const -101)) (then (return (i32.const 0)))) unreachable`
	)
	return []attack{
		timer("traps", `unreachable`),
		brought(timer("does not end", forever)),
		brought(timer("calls the host without end", repeated(`(drop (call $fence))`))),
		recurs(timer("recurs", `(call $r)`)),
		timer("replies", `(call $reply_null)`),
		timer("waits", waits),
		timer("has a pointer that is outside", outside),
		timer("reaches for a key that is not granted", reaches),
		event("traps", `unreachable`),
		brought(event("does not end", forever)),
		brought(event("calls the host without end", repeated(`(drop (call $fence))`))),
		recurs(event("recurs", `(call $r)`)),
		event("replies", `(call $reply_null)`),
		event("waits", waits),
		event("reads beyond its frame", beyond),
		event("has a pointer that is outside", outside),
		event("reaches for a key that is not granted", reaches),
		closed("traps", `unreachable`),
		brought(closed("does not end", forever)),
		brought(closed("calls the host without end", repeated(`(drop (call $fence))`))),
		recurs(closed("recurs", `(call $r)`)),
		closed("replies", `(call $reply_null)`),
		closed("waits", waits),
		closed("reads beyond its frame", beyond),
		closed("has a pointer that is outside", outside),
		closed("reaches for a key that is not granted", reaches),
		{
			// It has as many timers as it may, each of which sets as many again.
			name: "timers that set timers without end", idle: true, commands: []string{"H.SET k"}, heap: 96 << 20,
			scene: func(t *testing.T, b *bench) string {
				reply := b.do("H.SET", "k")
				for b.host.List()[1].Delivered < 10_000 {
					b.want("$-1", "GET", "k")
				}
				if m := b.host.List()[1]; m.Timers+m.Queued > 20_000 {
					t.Errorf("the module has %d timers and %d that are due, want 20,000 at most", m.Timers, m.Queued)
				}
				return reply
			},
			guest: guest{
				caps: map[string]any{"timers": true}, commands: []string{"H.SET"},
				exports: `(func (export "lk_timer") (param $token i64) (result i32) (call $more) (i32.const 0))`,
				funcs:   `(func $more (loop $l (br_if $l (i64.gt_s (call $timer_set (i64.const 1) (i64.const 1)) (i64.const 0)))))`,
				body:    `(call $more) (call $reply_null)`,
			},
		},
	}
}
