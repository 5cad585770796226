package plugins_test

import (
	"strings"
	"testing"
	"time"
)

func TestHostileLoops(t *testing.T) { attackAll(t, loops()) }

const (
	forever = `(loop $l (br $l))`
	tooLong = "ran for longer than plugin-max-time"
	pluginE = "PLUGINERR h: "
	brief   = 150 * time.Millisecond // a plugin-max-time that is reached
)

// repeated is an endless loop around an instruction.
func repeated(what string) string { return `(loop $l ` + what + ` (br $l))` }

// loops are guests that do not end by themselves.
func loops() []attack {
	rep := strings.Repeat
	const div = "(drop (i64.div_u (i64.const 1) (i64.const 2)))"
	out := []attack{
		{name: "endless loop", guest: guest{body: forever}},
		{name: "endless loop with parameters", guest: guest{body: `(i32.const 1) (loop $l (param i32) (result i32) (br $l)) drop`}},
		{name: "endless loop by a branch table", guest: guest{body: `(loop $l (br_table $l $l $l (local.get $i)))`}},
		{name: "endless loop of nested loops", guest: guest{body: `(loop $a (loop $b (local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $b (i32.and (local.get $i) (i32.const 7))) (br $a)))`}},
		{name: "endless loop of calls", guest: guest{funcs: `(func $f)`, body: repeated(`(call $f)`)}},
		{name: "endless loop of indirect calls", guest: guest{funcs: `(table 1 funcref) (type $v (func)) (elem (i32.const 0) $f) (func $f)`, body: repeated(`(call_indirect (type $v) (i32.const 0))`)}},
		{name: "endless loop of divisions", guest: guest{body: repeated(rep(div, 1000))}},
		{name: "endless loop of long straight lines", guest: guest{funcs: `(func $d ` + rep(div, 20_000) + `)`, body: repeated(`(call $d)`)}},
		{name: "endless loop of roots", guest: guest{body: repeated(`(drop (f64.sqrt (f64.const 2)))`)}},
		{name: "endless loop of vectors", guest: guest{body: repeated(`(drop (f64x2.div (v128.const i64x2 1 2) (v128.const i64x2 3 4)))`)}},
		{name: "endless loop of reads", guest: guest{body: repeated(`(drop (call $exists (i32.const 0) (i32.const 1)))`)}},
		{name: "endless loop of copies", guest: guest{body: repeated(`(drop (call $get (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 65536)))`)}},
		{name: "endless loop of deletions", guest: guest{body: repeated(`(drop (call $del (i32.const 0) (i32.const 1))) ` + write)}, want: pluginE},
		{name: "endless loop of counting", guest: guest{body: `(drop (call $del (i32.const 0) (i32.const 1)))` + repeated(`(drop (call $incrby (i32.const 0) (i32.const 1) (i64.const 1) (i32.const 40)))`)}},
		{name: "endless loop of expiries", guest: guest{body: repeated(`(drop (call $pexpire (i32.const 0) (i32.const 1) (i64.const 100000)))`)}},
		{name: "endless loop of fences", guest: guest{body: repeated(`(drop (call $fence))`)}},
		{name: "endless loop of random bytes", guest: guest{body: repeated(`(call $random (i32.const 0) (i32.const 65536))`)}},
		{name: "endless loop of log lines", guest: guest{body: repeated(`(call $log (i32.const 1) (i32.const 0) (i32.const 60000))`)}},
		{name: "endless loop of wakes", guest: guest{body: repeated(`(drop (call $wake (i32.const 0) (i32.const 1)))`)}},
		{name: "endless loop of questions about the client", guest: guest{body: repeated(`(drop (call $client (i32.const 0) (i32.const 40) (i32.const 8)))`)}},
		{name: "endless loop of WASI calls", guest: guest{
			imports: `(import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))`, body: repeated(`(drop (call $yield))`),
		}},
		{name: "endless loop of sleeps", guest: guest{
			imports: `(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))`,
			body:    `(i64.store (i32.const 4120) (i64.const 3600000000000))` + repeated(`(drop (call $poll (i32.const 4096) (i32.const 8192) (i32.const 1) (i32.const 8256)))`),
		}},
		{name: "endless loop of printing", guest: guest{
			imports: `(import "wasi_snapshot_preview1" "fd_write" (func $print (param i32 i32 i32 i32) (result i32)))`,
			body: `(loop $f (i32.store offset=8192 (local.get $i) (i32.const 0)) (i32.store offset=8196 (local.get $i) (i32.const 65536))
				(br_if $f (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 8))) (i32.const 8192))))` +
				repeated(`(drop (call $print (i32.const 1) (i32.const 8192) (i32.const 1024) (i32.const 40)))`),
		}},
		{name: "endless loop of printed line breaks", guest: guest{
			imports: `(import "wasi_snapshot_preview1" "fd_write" (func $print (param i32 i32 i32 i32) (result i32)))`,
			body: `(memory.fill (i32.const 8192) (i32.const 10) (i32.const 32768)) (i32.store (i32.const 4096) (i32.const 8192)) (i32.store (i32.const 4100) (i32.const 32768))` +
				repeated(`(drop (call $print (i32.const 2) (i32.const 4096) (i32.const 1) (i32.const 40)))`),
		}},
		{name: "endless loop of notifications", guest: guest{body: repeated(`(drop (call $notify (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 1)))`)}, want: pluginE},
		{name: "endless loop of bound clients", guest: guest{
			caps: map[string]any{"clients": true}, exports: closedExport,
			body: repeated(`(drop (call $bind_client (i32.const 0) (i32.const 1) (i64.const 1)))`),
		}, want: pluginE},
		{name: "endless loop of unbound clients", guest: guest{body: repeated(`(drop (call $unbind_client (i32.const 0) (i32.const 1)))`)}, want: pluginE},
		{name: "endless loop of timers", guest: guest{
			caps: map[string]any{"timers": true}, exports: timerExport,
			body: repeated(`(drop (call $timer_set (i64.const 1) (i64.const 1)))`),
		}, want: pluginE},
		{name: "endless loop in lk_arena", guest: guest{arena: forever + `(i32.const 0)`}, want: "lk_arena: " + tooLong, dead: true},

		{name: "recursion", guest: guest{funcs: `(func $r (call $r))`, body: `(call $r)`}, want: "calls are nested too deeply"},
		{name: "recursion of two", guest: guest{funcs: `(func $r (call $s)) (func $s (call $r))`, body: `(call $r)`}, want: "calls are nested too deeply"},
		{name: "recursion through a table", guest: guest{funcs: `(table 1 funcref) (type $v (func)) (elem (i32.const 0) $f) (func $f (call_indirect (type $v) (i32.const 0)))`, body: `(call $f)`}, want: "calls are nested too deeply"},
		{name: "recursion with large frames", guest: guest{funcs: `(func $r (local ` + rep("v128 ", 1000) + `) (call $r))`, body: `(call $r)`}, want: "calls are nested too deeply"},
		{name: "recursion of lk_command", guest: guest{
			body:  `(drop (call $again (local.get $id) (local.get $argc) (local.get $frame)))`,
			funcs: `(func $again (param i32 i32 i32) (result i32) (call $again (local.get 0) (local.get 1) (local.get 2)))`,
		}, want: "calls are nested too deeply"},

		{name: "fuel of its manifest", guest: guest{body: forever, limits: map[string]int{"fuel": 1000}}, want: "out of fuel: more than the 1000 units of its manifest"},
		{name: "fuel of many slices", guest: guest{body: forever, limits: map[string]int{"fuel": 10_000_000}}, want: "out of fuel: more than the 10000000 units of its manifest"},
		{name: "a manifest that asks for all fuel", guest: guest{body: forever, limits: map[string]int{"fuel": 1 << 40}}},
	}
	for i := range out {
		if out[i].want == "" {
			out[i].want = tooLong
		}
		if out[i].want == tooLong || out[i].want == pluginE || out[i].dead {
			out[i].maxTime = brief
		}
	}
	return out
}

const (
	closedExport = `(func (export "lk_closed") (param i64 i32 i32) (result i32) (i32.const 0))`
	timerExport  = `(func (export "lk_timer") (param i64) (result i32) (i32.const 0))`
	eventExport  = `(func (export "lk_event") (param i32 i32 i32) (result i32) (i32.const 0))`
)
