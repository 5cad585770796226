package plugins_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/store"
)

// hostile is a bench with a guest loaded, and EVAL.
func hostile(t testing.TB, g guest, maxTime time.Duration) *bench {
	t.Helper()
	b := newBench(t, plugins.Options{MaxTime: maxTime})
	addEval(t, b)
	b.want("+OK", "MODULE", "LOAD", g.build(t))
	return b
}

func clip(s string) string { return s[:min(len(s), 200)] }

// TestKeysOfOthers gives every function that takes a key one that it may not
// have.
func TestKeysOfOthers(t *testing.T) {
	writes := map[string]bool{
		"set": true, "del": true, "incrby": true, "cas": true, "cad": true, "pexpire": true,
		"key_state_set": true, "key_state_write": true, "wake": true, "bind_client": true, "unbind_client": true,
	}
	type attempt struct {
		name, key, call string
		denied          bool
	}
	var attempts []attempt
	for _, f := range plugins.HostFunctions() {
		if len(f.Names) == 0 || f.Names[0] != "key" {
			continue
		}
		for _, key := range []struct {
			at, n  int
			arg    string
			denied bool
		}{
			{8, 5, "k", true},                          // granted, not declared
			{0, 0, "k", true},                          // a part of what was declared
			{0, 2, "k", true},                          // more than what was declared
			{16, 6, "denied", true},                    // declared, not granted
			{24, 3, "r:1", writes[f.Name]},             // granted for reading
			{0, 1, "k", false}, {8, 5, "other", false}, // granted and declared
		} {
			call := fmt.Sprintf("(call $%s (i32.const %d) (i32.const %d)", f.Name, key.at, key.n)
			for j, typ := range f.Params[2:] {
				value := 0
				if strings.HasSuffix(f.Names[2+j], "out") {
					value = 40
				}
				call += fmt.Sprintf(" (%s.const %d)", typ, value)
			}
			call += ")"
			if f.Name == "bind_client" && !key.denied {
				continue // the manifest does not ask for clients
			}
			if f.Results[0] == "i64" {
				call = "(i32.wrap_i64 " + call + ")"
			}
			attempts = append(attempts, attempt{f.Name, key.arg, fmt.Sprintf("(i32.eq %s (i32.const -101))", call), key.denied})
		}
	}
	var g guest
	for i, a := range attempts {
		g.commands = append(g.commands, fmt.Sprintf("H.KEY%d", i))
		g.body += fmt.Sprintf("(if (i32.eq (local.get $id) (i32.const %d)) (then (call $reply_bool %s)))\n", i+1, a.call)
	}
	b := hostile(t, g, time.Second)
	for i, a := range attempts {
		want := ":0"
		if a.denied {
			want = ":1"
		}
		before := len(b.log.Records())
		if got := b.do(fmt.Sprintf("H.KEY%d", i), a.key); got != want {
			t.Errorf("whether %s in a command on %s is denied: %s replied %q, want %q", a.call, a.key, a.name, got, want)
		}
		if rec := b.log.Records()[before:]; a.denied && len(rec) != 0 {
			t.Errorf("%s was denied and left %q behind", a.call, rec)
		}
	}
}

func TestMemoryGrow(t *testing.T) {
	b := hostile(t, guest{
		body:   `(call $reply_int (i64.extend_i32_s (memory.grow (i32.const 1))))`,
		limits: map[string]int{"memory_pages": 3},
	}, time.Second)
	for _, want := range []string{":1", ":2", ":-1", ":-1"} {
		b.want(want, "H.RUN", "k")
	}
}

// TestEndlessLoopBesideOthers checks that Go schedules and collects while a
// guest loops: without fuel the first collection would wait for the loop's end,
// which comes only after the collections.
func TestEndlessLoopBesideOthers(t *testing.T) {
	for _, loop := range []string{`(loop $l (br $l))`, `(loop $l (drop (call $exists (i32.const 0) (i32.const 1))) (br $l))`} {
		runs := &lineHandler{seen: make(chan struct{}, 1)}
		b := newBench(t, plugins.Options{MaxTime: time.Hour, Log: slog.New(runs)})
		b.want("+OK", "MODULE", "LOAD", guest{body: `(call $log (i32.const 1) (i32.const 0) (i32.const 1))` + loop}.build(t))
		gone, ended := make(chan struct{}), make(chan string, 1)
		o := b.another(t)
		o.sess.Wait = &store.Wait{Done: gone}
		go func() { ended <- o.do("H.RUN", "k") }()
		<-runs.seen
		for range 5 {
			runtime.GC()
			b.want("$-1", "GET", "other")
		}
		close(gone)
		if got, want := <-ended, "-PLUGINERR h: the client was killed or is gone"; got != want {
			t.Errorf("%s replied %q, want %q", loop, got, want)
		}
	}
}

// lineHandler tells when a guest has written to the log.
type lineHandler struct {
	slog.Handler
	seen chan struct{}
}

func (h *lineHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "from a plugin" {
		h.seen <- struct{}{}
	}
	return nil
}

func TestClientGoneEndsCall(t *testing.T) {
	b := hostile(t, guest{body: `(loop $l (br $l))`}, time.Hour)
	gone := make(chan struct{})
	b.sess.Wait = &store.Wait{Done: gone}
	close(gone)
	b.want("-PLUGINERR h: the client was killed or is gone", "H.RUN", "k")
}

// TestPcall undoes the plugin's part of a script and nothing else.
func TestPcall(t *testing.T) {
	for name, body := range map[string]string{
		"trap": write + `unreachable`, "code": write + `(return (i32.const -103))`, "error": write + `(call $reply_error (i32.const 0) (i32.const 1))`,
		"no reply": write,
	} {
		t.Run(name, func(t *testing.T) {
			b := hostile(t, guest{body: body}, time.Second)
			got := b.do("EVAL", `redis.call('set', KEYS[1], 'before')
				local r = redis.pcall('h.run', KEYS[1])
				redis.call('append', KEYS[1], '-after')
				return type(r.err)`, "1", "k")
			if want := "$6\r\nstring"; got != want {
				t.Errorf("EVAL replied %q, want %q: an error in r.err", got, want)
			}
			b.want("$12\r\nbefore-after", "GET", "k")
			// An error that nobody catches undoes the script as well.
			if got := b.do("EVAL", `redis.call('set', KEYS[1], 'x') redis.call('h.run', KEYS[1])`, "1", "k"); !strings.HasPrefix(got, "-") {
				t.Errorf("EVAL replied %q, want an error", got)
			}
			b.want("$12\r\nbefore-after", "GET", "k")
		})
	}
}

// another is a second client of the bench's engine.
func (b *bench) another(t testing.TB) *bench {
	o := &bench{t: t, eng: b.eng, host: b.host, log: b.log}
	o.sess.Tx, o.sess.Proto = b.eng.Store.NewTx(), 2
	return o
}

// TestFewInstances runs many callers on one instance that traps at times, the
// callers holding keys that others want: each must come through, with a reply
// that is its own.
func TestFewInstances(t *testing.T) {
	const callers, rounds = 8, 60
	g := guest{
		commands: []string{"H.ECHO", "H.TRAP"},
		body: `(if (i32.eq (local.get $id) (i32.const 2)) (then ` + write + ` unreachable))
			(call $reply_bulk (i32.load offset=32 (local.get $frame)) (i32.load offset=36 (local.get $frame)))`,
	}
	b := hostile(t, g, 10*time.Second)
	var wg sync.WaitGroup
	for i := range callers {
		o := b.another(t)
		wg.Go(func() {
			for n := range rounds {
				key, mine := fmt.Sprintf("k%d", (i+n)%3), fmt.Sprintf("%d.%d", i, n)
				bulk := fmt.Sprintf("$%d\r\n%s", len(mine), mine)
				if got := o.do("H.ECHO", key, mine); got != bulk {
					t.Errorf("H.ECHO %s %s replied %q", key, mine, got)
				}
				if got := o.do("EVAL", "redis.call('set', KEYS[2], ARGV[1]) return redis.call('h.echo', KEYS[1], ARGV[1])", "2", key, fmt.Sprintf("k%d", (i+n+1)%3), mine); got != bulk {
					t.Errorf("H.ECHO in a script replied %q, want %q", got, bulk)
				}
				if n%5 == 0 {
					if got := o.do("H.TRAP", key); got != "-PLUGINERR h: wasm error: unreachable" {
						t.Errorf("H.TRAP replied %q", got)
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestAllInstancesBusy answers a caller who is gone while he waits for an
// instance.
func TestAllInstancesBusy(t *testing.T) {
	b := hostile(t, guest{body: `(loop $l (br $l))`}, time.Hour)
	// One of the two calls gets the instance and keeps it until its client is
	// gone; the other waits, and is let go by its own client's end.
	gone := make(chan struct{})
	replies := make(chan string)
	for i := range 2 {
		o := b.another(t)
		o.sess.Wait = &store.Wait{Done: gone}
		go func() { replies <- o.do("H.RUN", fmt.Sprintf("k%d", i)) }()
	}
	b.want("$-1", "GET", "k") // others are served meanwhile
	close(gone)
	for range 2 {
		if got := <-replies; got != "-PLUGINERR h: the client is gone" && got != "-PLUGINERR h: the client was killed or is gone" {
			t.Errorf("the call of a client that is gone replied %q", got)
		}
	}
	b.want(":1", "H.CALLS")
}

// TestUnloadBesideCalls unloads and loads while clients call.
func TestUnloadBesideCalls(t *testing.T) {
	const callers, rounds = 4, 25
	g := guest{body: `(loop $l (local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $l (i32.lt_u (local.get $i) (i32.const 20000))))
		(call $reply_int (i64.const 5))`, limits: map[string]int{"instances": 2}}
	b := hostile(t, g, 10*time.Second)
	path := b.host.List()[0].Path
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range callers {
		o := b.another(t)
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got := o.do("H.RUN", fmt.Sprintf("k%d", i))
				if got != ":5" && got != "-PLUGINERR h: the module was unloaded" && !strings.HasPrefix(got, "-ERR unknown command 'H.RUN'") {
					t.Errorf("H.RUN beside MODULE UNLOAD replied %q", got)
					return
				}
			}
		})
	}
	for range rounds {
		b.want("+OK", "MODULE", "UNLOAD", "h")
		b.want("+OK", "MODULE", "LOAD", path)
	}
	close(stop)
	wg.Wait()
	b.want(":5", "H.RUN", "k")
	b.want("+OK", "MODULE", "UNLOAD", "h")
}
