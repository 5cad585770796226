package plugins_test

import (
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/scripting"
)

// caller is a guest that calls a command so often, and replies the error that it
// gave at last, or null.
func caller(times int, commands []string, words ...string) guest {
	body, data := calling(words...)
	before, after, _ := strings.Cut(body, "(local.set $i (call $call ")
	body = before + `(global.set $turns (i32.const ` + fmt.Sprint(times-1) + `))
		(loop $more (local.set $i (call $call ` + after + `
			(global.set $turns (i32.sub (global.get $turns) (i32.const 1)))
			(br_if $more (i32.ge_s (global.get $turns) (i32.const 0))))
		(call $reply_null)`
	return guest{
		body: body, data: data, funcs: `(global $turns (mut i32) (i32.const 0))`,
		caps: map[string]any{"commands": commands, "read": []string{""}, "write": []string{""}},
	}
}

// What a command costs that a guest calls is the guest's: each of these takes much
// longer than plugin-max-time, in few calls, and is ended. Nothing is written.
func TestCalledCommandsArePaidFor(t *testing.T) {
	const long = 10_000
	for _, tt := range []struct {
		name string
		g    guest
		max  time.Duration
		want string
	}{
		{"LCS", caller(1, []string{"LCS"}, "LCS", "k", "k2", "LEN"), 20 * time.Millisecond, tooLong},
		{"BITCOUNT", caller(100, []string{"BITCOUNT"}, "BITCOUNT", "wide"), 20 * time.Millisecond, tooLong},
		{"BITPOS", caller(100, []string{"BITPOS"}, "BITPOS", "wide", "1"), 20 * time.Millisecond, tooLong},
		{"BITOP", caller(100, []string{"BITOP"}, "BITOP", "NOT", "k", "wide"), time.Minute, "a call writes more than 256 MiB"},
		{"SETRANGE", caller(1, []string{"SETRANGE"}, "SETRANGE", "k", "300000000", "x"), time.Minute, "a call writes more than 256 MiB"},
		{"SETBIT", caller(1, []string{"SETBIT"}, "SETBIT", "k", "4000000000", "1"), time.Minute, "a call writes more than 256 MiB"},
		{"BITFIELD", caller(1, []string{"BITFIELD"}, "BITFIELD", "k", "SET", "u8", "4000000000", "1"), time.Minute, "a call writes more than 256 MiB"},
		{"SET", caller(100_000, []string{"SET"}, "SET", "k", strings.Repeat("v", 3000)), time.Minute, "a call writes more than 256 MiB"},
		{"a script", caller(1, []string{"EVAL"}, "EVAL", "while true do end", "1", "k"), 20 * time.Millisecond, tooLong},
		{"a script that catches", caller(1, []string{"EVAL"}, "EVAL", "while true do pcall(function() while true do end end) end", "1", "k"), 20 * time.Millisecond, tooLong},
		{"a script that calls", caller(1, []string{"EVAL", "LCS"}, "EVAL", "while true do redis.pcall('lcs', KEYS[1], KEYS[2], 'LEN') end", "2", "k", "k2"), 20 * time.Millisecond, tooLong},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := tt.g
			g.many = true
			b := newBench(t, plugins.Options{MaxTime: time.Minute})
			addEval(t, b)
			b.eng.MaxValue.Store(512 << 20)
			b.want("+OK", "MODULE", "LOAD", g.build(t))
			b.want("+OK", "SET", "k", strings.Repeat("ab", long/2))
			b.want("+OK", "SET", "k2", strings.Repeat("ba", long/2))
			b.want(":40000001", "SETRANGE", "wide", "40000000", "x")
			before, keys := len(b.log.Records()), []string{"H.RUN", "k", "k2", "wide"}
			b.host.SetMaxTime(tt.max)
			got := b.do(keys...)
			for strings.Contains(got, "lk_abi failed: "+tooLong) {
				got = b.do(keys...) // a busy machine took so long to make the instance
			}
			if !strings.Contains(got, pluginE+tt.want) {
				t.Errorf("%s called by a plugin: %q, want an error with %q", tt.name, clip(got), tt.want)
			}
			if left := b.log.Records()[before:]; len(left) != 0 {
				t.Errorf("it left the effects %q behind", clip(strings.Join(left, " ")))
			}
			b.host.SetMaxTime(time.Minute)
			b.want(":1", "H.CALLS")
		})
	}
}

// A guest is paid for by the script that calls its command: the script's budget
// ends it, past any pcall.
func TestScriptsPayForPlugins(t *testing.T) {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	engine, err := scripting.New(scripting.Options{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, plugins.Options{MaxTime: time.Hour})
	settings := scripting.Settings{Limits: scripting.Limits{Instructions: 1_000_000}}
	if err := b.eng.Table.Add("", scripting.NewRunner(engine, settings, 2, log).Specs()); err != nil {
		t.Fatal(err)
	}
	b.want("+OK", "MODULE", "LOAD", guest{body: `(if (i32.eq (local.get $argc) (i32.const 2)) (then ` + forever + `)) (call $reply_null)`}.build(t))
	b.want("$-1", "EVAL", "return redis.call('h.run', KEYS[1], 'x')", "1", "k")
	if got, want := b.do("EVAL", "redis.pcall('h.run', KEYS[1]) return 1", "1", "k"), "-ERR Script exceeded its instruction budget"; !strings.HasPrefix(got, want) {
		t.Errorf("a script that calls a guest without end: %q, want %q", got, want)
	}
	// Its part is undone, and what it did is not charged to the next.
	b.want(":1", "EVAL", "redis.call('h.run', KEYS[1], 'x') return 1", "1", "k")
}

// MODULE KILL of a module ends what its guest has called.
func TestModuleKillReachesWhatIsCalled(t *testing.T) {
	for name, g := range map[string]guest{
		"another plugin":             caller(1_000_000, []string{"I.RUN"}, "I.RUN", "k"),
		"a script":                   caller(1_000_000, []string{"EVAL"}, "EVAL", "while true do end", "1", "k"),
		"a script that calls plugin": caller(1_000_000, []string{"EVAL", "I.RUN"}, "EVAL", "while true do redis.pcall('i.run', KEYS[1]) end", "1", "k"),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, plugins.Options{MaxTime: time.Hour})
			addEval(t, b)
			b.want("+OK", "MODULE", "LOAD", g.build(t))
			b.want("+OK", "MODULE", "LOAD", guest{name: "i", body: forever}.build(t))
			other, reply := b.another(t), make(chan string)
			go func() { reply <- other.do("H.RUN", "k") }()
			for got := ""; got == ""; runtime.Gosched() {
				if _, err := b.host.Kill("h"); err != nil {
					t.Fatal(err)
				}
				select {
				case got = <-reply:
					if !strings.HasPrefix(got, "-PLUGINERR h: ") || !strings.Contains(got, "killed by MODULE KILL") {
						t.Errorf("the call that was killed replied %q", got)
					}
				default:
				}
			}
			b.want(":1", "H.CALLS")
		})
	}
}

// What one instruction is charged beyond a slice of fuel counts for the manifest's limit: to grow by 100
// pages costs as much as to write them, 800,000 units.
func TestBulkInstructionsAreCharged(t *testing.T) {
	for _, tt := range []struct {
		fuel int
		want string
	}{
		{700_000, "-PLUGINERR h: out of fuel: more than the 700000 units of its manifest"},
		{900_000, ":1"},
	} {
		b := newBench(t, plugins.Options{})
		b.want("+OK", "MODULE", "LOAD", guest{
			body:   `(drop (memory.grow (i32.const 100))) (call $reply_int (i64.const 1)) (return (i32.const 0))`,
			limits: map[string]int{"fuel": tt.fuel, "memory_pages": 200, "instances": 1},
		}.build(t))
		b.want(tt.want, "H.RUN", "k")
	}
}
