package plugins_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/scripting"
	"github.com/latchkey-proxy/latchkey/store"
)

// hostile is a bench with a guest loaded, and EVAL.
func hostile(t testing.TB, g guest, maxTime time.Duration) *bench {
	t.Helper()
	b := newBench(t, plugins.Options{MaxTime: maxTime})
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	engine, err := scripting.New(scripting.Options{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.eng.Table.Add("", scripting.NewRunner(engine, scripting.Settings{}, 2, log).Specs()); err != nil {
		t.Fatal(err)
	}
	b.want("+OK", "MODULE", "LOAD", g.build(t))
	return b
}

// undone checks that a command is answered with an error and has left nothing
// behind, and that the next call works: on a new instance if replaced is set,
// else on the one that served the command.
func (b *bench) undone(want string, replaced bool, args ...string) {
	b.t.Helper()
	before := len(b.log.Records())
	if got := b.do(args...); !strings.HasPrefix(got, "-") || !strings.Contains(got, want) || strings.Contains(got, "\n") {
		b.t.Errorf("%s replied %q, want an error with %q", strings.Join(args, " "), clip(got), want)
	}
	if rec := b.log.Records(); len(rec) != before {
		b.t.Errorf("%s left the effects %q behind", strings.Join(args, " "), rec[before:])
	}
	b.want("$-1", "GET", args[1])
	next := ":1"
	if !replaced {
		next = ":2"
	}
	if got := b.do("H.CALLS"); got != next {
		b.t.Errorf("after %s, H.CALLS replied %q, want %q: instance replaced is %v", strings.Join(args, " "), got, next, replaced)
	}
}

func clip(s string) string { return s[:min(len(s), 200)] }

func TestTraps(t *testing.T) {
	const (
		forever  = `(loop $l (br $l))`
		replyOne = `(call $reply_int (i64.const 1))`
		pluginE  = "PLUGINERR h: "
	)
	for _, tt := range []struct {
		name string
		g    guest
		want string
		kept bool // the instance is
	}{
		{name: "unreachable", g: guest{body: `unreachable`}, want: pluginE + "wasm error: unreachable"},
		{name: "division by zero", g: guest{body: `(drop (i32.div_u (i32.const 1) (local.get $i)))`}, want: pluginE + "wasm error: integer divide by zero"},
		{name: "load out of memory", g: guest{body: `(drop (i32.load (i32.const -1)))`}, want: pluginE + "wasm error: out of bounds memory access"},
		{name: "endless loop", g: guest{body: forever}, want: "ran for longer than plugin-max-time"},
		{name: "endless loop of host calls", g: guest{body: `(loop $l (drop (call $exists (i32.const 0) (i32.const 1))) (br $l))`}, want: "ran for longer than plugin-max-time"},
		{name: "endless loop of replies", g: guest{body: `(call $reply_array (i32.const 1048576)) (loop $l (call $reply_null) (br $l))`}, want: "more replies than"},
		{name: "endless loop of fences", g: guest{body: `(loop $l (drop (call $fence)) (br $l))`}, want: "ran for longer than plugin-max-time"},
		{name: "endless loop of log lines", g: guest{body: `(loop $l (call $log (i32.const 1) (i32.const 0) (i32.const 60000)) (br $l))`}, want: "ran for longer than plugin-max-time"},
		{name: "reply of any size", g: guest{body: `(call $reply_array (i32.const 1048576)) (loop $l (call $reply_bulk (i32.const 0) (i32.const 65536)) (br $l))`}, want: "the reply is larger than 256 MiB"},
		{name: "values of any size", g: guest{body: `(loop $l (drop (call $set (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 65536) (i32.const 0) (i64.const 0))) (br $l))`}, want: "a call writes more than 256 MiB"},
		{name: "fuel", g: guest{body: forever, limits: map[string]int{"fuel": 1000}}, want: "out of fuel: more than the 1000 units of its manifest"},
		{name: "fuel of many slices", g: guest{body: forever, limits: map[string]int{"fuel": 10_000_000}}, want: "out of fuel: more than the 10000000 units of its manifest"},
		{name: "recursion", g: guest{funcs: `(func $r (call $r))`, body: `(call $r)`}, want: "calls are nested too deeply"},
		{name: "two replies", g: guest{body: replyOne + replyOne}, want: "more replies than one"},
		{name: "reply after the last element", g: guest{body: `(call $reply_array (i32.const 1))` + replyOne + replyOne}, want: "more replies than one"},
		{name: "reply after an empty array", g: guest{body: `(call $reply_array (i32.const 0))` + replyOne}, want: "more replies than one"},
		{name: "reply after an error", g: guest{body: `(call $reply_error (i32.const 0) (i32.const 1))` + replyOne}, want: "more replies than one"},
		{name: "negative array", g: guest{body: `(call $reply_array (i32.const -2))`}, want: "negative or too large number of elements"},
		{name: "huge map", g: guest{body: `(call $reply_map (i32.const 1048577))`}, want: "negative or too large number of elements"},
		{name: "deep arrays", g: guest{body: `(loop $l (call $reply_array (i32.const 1)) (br $l))`}, want: "aggregate replies nest deeper than 32"},
		{name: "status of two lines", g: guest{body: `(call $reply_simple (i32.const 32) (i32.const 5))`}, want: "a status reply has a line break in it"},
		{name: "no room for arguments", g: guest{arena: `(i32.const 0)`}, want: "lk_arena(4096) returned 0: no room for the arguments"},
		{name: "arena unaligned", g: guest{arena: `(i32.const 1028)`}, want: "lk_arena(4096) returned 1028"},
		{name: "arena at the end of memory", g: guest{arena: `(i32.const 65528)`}, want: "lk_arena(4096) returned 65528"},
		{name: "arena outside of memory", g: guest{arena: `(i32.const -8)`}, want: "lk_arena(4096) returned 4294967288"},
		{name: "arena traps", g: guest{arena: `unreachable`}, want: "lk_arena: wasm error: unreachable"},
		{name: "arena does not return", g: guest{arena: forever + `(i32.const 0)`}, want: "lk_arena: ran for longer than plugin-max-time"},

		{name: "no reply", g: guest{body: ``}, want: pluginE + "the reply is not complete", kept: true},
		{name: "incomplete array", g: guest{body: `(call $reply_array (i32.const 2))` + replyOne}, want: pluginE + "the reply is not complete", kept: true},
		{name: "incomplete map", g: guest{body: `(call $reply_map (i32.const 1))` + replyOne}, want: pluginE + "the reply is not complete", kept: true},
		{name: "incomplete inner array", g: guest{body: `(call $reply_array (i32.const 1)) (call $reply_array (i32.const 1))`}, want: pluginE + "the reply is not complete", kept: true},
		{name: "code nil", g: guest{body: `(return (i32.const -1))`}, want: pluginE + "lk_command returned -1", kept: true},
		{name: "code 7 after a reply", g: guest{body: replyOne + `(return (i32.const 7))`}, want: pluginE + "lk_command returned 7", kept: true},
		{name: "code wrong type", g: guest{body: `(return (i32.const -100))`}, want: "-WRONGTYPE Operation against a key", kept: true},
		{name: "code denied", g: guest{body: `(return (i32.const -101))`}, want: "-NOPERM h: not declared by the command", kept: true},
		{name: "code no memory", g: guest{body: `(return (i32.const -102))`}, want: "-OOM command not allowed", kept: true},
		{name: "code invalid", g: guest{body: `(return (i32.const -103))`}, want: "-ERR invalid argument", kept: true},
		{name: "empty error", g: guest{body: `(call $reply_error (i32.const 0) (i32.const 0))`}, want: "-ERR", kept: true},
		{name: "error of two lines", g: guest{body: `(call $reply_error (i32.const 32) (i32.const 5))`}, want: "-+x", kept: true},
		{name: "long error", g: guest{body: `(call $reply_error (i32.const 0) (i32.const 65536))`}, want: "-k", kept: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.g.body = write + tt.g.body
			limit := time.Minute
			if strings.Contains(tt.want, "plugin-max-time") {
				limit = 200 * time.Millisecond
			}
			b := hostile(t, tt.g, limit)
			if tt.g.arena != "" {
				// The next command asks for the arena again, and fails as well.
				before := len(b.log.Records())
				for range 2 {
					if got := b.do("H.RUN", "k"); !strings.HasPrefix(got, "-PLUGINERR h: "+tt.want) {
						t.Errorf("H.RUN replied %q, want -PLUGINERR h: %s", got, tt.want)
					}
				}
				if len(b.log.Records()) != before {
					t.Errorf("a command that never ran left effects behind")
				}
				return
			}
			b.undone(tt.want, !tt.kept, "H.RUN", "k")
		})
	}
}

// TestPointers gives every host function every pointer outside of memory.
func TestPointers(t *testing.T) {
	type attempt struct{ what, call string }
	var attempts []attempt
	for _, f := range plugins.HostFunctions() {
		for i, name := range f.Names {
			if i+1 == len(f.Names) || !strings.HasSuffix(f.Names[i+1], "len") && f.Names[i+1] != "cap" {
				continue
			}
			for _, bad := range [][2]int{{65535, 2}, {65537, 0}, {-1, 1}, {0, -1}, {-1, -1}, {8, 65536}} {
				call := "(call $" + f.Name
				for j, typ := range f.Params {
					value := 0
					switch {
					case j == i:
						value = bad[0]
					case j == i+1:
						value = bad[1]
					case strings.HasSuffix(f.Names[j], "len"):
						value = 1
					}
					call += fmt.Sprintf(" (%s.const %d)", typ, value)
				}
				call += ")"
				if len(f.Results) > 0 {
					call = "(drop " + call + ")"
				}
				attempts = append(attempts, attempt{fmt.Sprintf("%s with %s %d and length %d", f.Name, name, bad[0], bad[1]), call})
			}
		}
	}
	if len(attempts) < 60 {
		t.Fatalf("only %d attempts were found: are the usages of the host functions written as before?", len(attempts))
	}
	g := guest{body: write}
	for i, a := range attempts {
		g.commands = append(g.commands, fmt.Sprintf("H.BAD%d", i))
		g.body += fmt.Sprintf("(if (i32.eq (local.get $id) (i32.const %d)) (then %s))\n", i+1, a.call)
	}
	b := hostile(t, g, time.Second)
	for i, a := range attempts {
		b.undone("PLUGINERR h: pointer ", true, fmt.Sprintf("H.BAD%d", i), "k")
		if t.Failed() {
			t.Fatalf("that was %s", a.what)
		}
	}
}

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

// TestLoadDoesNotEnd refuses modules that misbehave before their first command.
func TestLoadDoesNotEnd(t *testing.T) {
	for _, tt := range []struct{ name, init, want string }{
		{"refusal", `(i32.const 3)`, "lk_init returned 3, wanted 0"},
		{"trap", `unreachable`, "lk_init failed: wasm error: unreachable"},
		{"endless loop", `(loop $l (br $l)) (i32.const 0)`, "lk_init failed: ran for longer than plugin-max-time"},
		{"host call", `(drop (call $fence)) (i32.const 0)`, "lk_init failed: a host function was called outside of a command"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, plugins.Options{MaxTime: 100 * time.Millisecond})
			path := guest{init: tt.init}.build(t)
			if got := b.do("MODULE", "LOAD", path); !strings.HasPrefix(got, "-ERR Error loading the extension: ") || !strings.Contains(got, tt.want) {
				t.Errorf("MODULE LOAD replied %q, want an error with %q", got, tt.want)
			}
			if n := len(b.host.List()); n != 0 {
				t.Errorf("%d modules are loaded after a refusal", n)
			}
		})
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
