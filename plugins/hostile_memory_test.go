package plugins_test

import "testing"

func TestHostileMemory(t *testing.T) { attackAll(t, memories()) }

// memories are guests that take as much as they can get.
func memories() []attack {
	const grow = `(drop (memory.grow (i32.const 1)))`
	out := []attack{
		{name: "memory grows in an endless loop", guest: guest{body: repeated(grow)}, want: tooLong},
		{name: "memory grows by all pages there are", guest: guest{body: `(drop (memory.grow (i32.const 65535))) unreachable`}, want: "unreachable"},
		{name: "memory grows by 2^32 pages", guest: guest{body: `(drop (memory.grow (i32.const -1)))` + forever}, want: tooLong},
		{
			name: "memory grows in each call", guest: guest{body: `(drop (memory.grow (i32.const 255))) unreachable`},
			commands: []string{"H.RUN k", "H.RUN k", "H.RUN k", "H.RUN k"}, want: "unreachable",
		},
		{name: "memory grows and is then read beyond", guest: guest{body: grow + `(drop (i32.load (i32.mul (memory.size) (i32.const 65536))))`}, want: "out of bounds memory access"},
		{name: "fill of all memory, again and again", guest: guest{body: `(drop (memory.grow (i32.const 255)))` + repeated(`(memory.fill (i32.const 0) (i32.const 1) (i32.const 16777216))`)}, want: tooLong},
		{name: "copy of all memory, again and again", guest: guest{body: `(drop (memory.grow (i32.const 255)))` + repeated(`(memory.copy (i32.const 8) (i32.const 0) (i32.const 16777208))`)}, want: tooLong},
		{name: "fill beyond memory", guest: guest{body: `(memory.fill (i32.const 65535) (i32.const 1) (i32.const 2))`}, want: "out of bounds memory access"},
		{name: "fill of 4 GiB", guest: guest{body: `(memory.fill (i32.const 0) (i32.const 1) (i32.const -1))`}, want: "out of bounds memory access"},
		{name: "copy from beyond memory", guest: guest{body: `(memory.copy (i32.const 0) (i32.const -8) (i32.const 16))`}, want: "out of bounds memory access"},
		{name: "copy to beyond memory", guest: guest{body: `(memory.copy (i32.const -8) (i32.const 0) (i32.const 16))`}, want: "out of bounds memory access"},
		{name: "init beyond its segment", guest: guest{funcs: `(data $d "abc")`, body: `(memory.init $d (i32.const 0) (i32.const 2) (i32.const 2))`}, want: "out of bounds memory access"},
		{name: "init of a dropped segment", guest: guest{funcs: `(data $d "abc")`, body: `(data.drop $d) (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1))`}, want: "out of bounds memory access"},
		{name: "load beyond memory", guest: guest{body: `(drop (i32.load (i32.const -1)))`}, want: "out of bounds memory access"},
		{name: "load whose offset wraps around", guest: guest{body: `(drop (i64.load offset=4294967295 (i32.const -1)))`}, want: "out of bounds memory access"},
		{name: "store beyond memory", guest: guest{body: `(v128.store (i32.const 65521) (v128.const i64x2 0 0))`}, want: "out of bounds memory access"},
		{name: "table grows in an endless loop", guest: guest{funcs: `(table 0 funcref)`, body: repeated(`(drop (table.grow 0 (ref.null func) (i32.const 1)))`)}, want: tooLong},
		{name: "table grows by 2^32 entries", guest: guest{funcs: `(table 0 funcref)`, body: `(drop (table.grow 0 (ref.null func) (i32.const -1))) unreachable`}, want: "unreachable"},
		{name: "table is filled in an endless loop", guest: guest{funcs: `(table 131072 funcref)`, body: repeated(`(table.fill 0 (i32.const 0) (ref.null func) (i32.const 131072))`)}, want: tooLong},
		{name: "table is copied in an endless loop", guest: guest{funcs: `(table 131072 funcref)`, body: repeated(`(table.copy 0 0 (i32.const 1) (i32.const 0) (i32.const 131071))`)}, want: tooLong},
		{name: "table is read beyond its end", guest: guest{funcs: `(table 1 funcref)`, body: `(drop (table.get 0 (i32.const 1)))`}, want: "invalid table access"},
		{name: "call of an empty table entry", guest: guest{funcs: `(table 1 funcref) (type $v (func))`, body: `(call_indirect (type $v) (i32.const 0))`}, want: "invalid table access"},
		{name: "call of a table entry of another type", guest: guest{
			funcs: `(table 1 funcref) (elem (i32.const 0) $f) (type $v (func)) (func $f (param i32))`, body: `(call_indirect (type $v) (i32.const 0))`,
		}, want: "indirect call type mismatch"},
		{name: "call of a host function through a table", guest: guest{
			funcs: `(table 1 funcref) (elem (i32.const 0) $reply_simple) (type $v (func (param i32 i32)))`,
			body:  `(call_indirect (type $v) (i32.const -1) (i32.const -1) (i32.const 0))`,
		}, want: "is outside of memory"},

		{
			name: "values of any size", guest: guest{body: repeated(`(drop (call $set (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 65536) (i32.const 0) (i64.const 0)))`)},
			want: "a call writes more than 256 MiB", heap: 1 << 30,
		},
		{name: "values swapped without end", guest: guest{
			body: repeated(`(drop (call $cas (i32.const 0) (i32.const 1) (i32.const 33) (i32.const 1) (i32.const 0) (i32.const 65536) (i64.const 0)))
				(drop (call $set (i32.const 0) (i32.const 1) (i32.const 33) (i32.const 1) (i32.const 0) (i64.const 0)))`),
		}, want: pluginE, heap: 1 << 30},
		{name: "state of any size", guest: guest{
			caps: map[string]any{"state": "write"},
			body: `(drop (memory.grow (i32.const 200)))` + repeated(`(drop (call $state_set (i32.const 0) (i32.const 10000000) (i32.const 1)))`),
		}, want: pluginE, heap: 1 << 30},
		{name: "key state of any size", guest: guest{
			body: `(drop (call $del (i32.const 0) (i32.const 1))) (drop (memory.grow (i32.const 200)))` +
				repeated(`(drop (call $key_state_set (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 10000000) (i32.const 1) (i32.const 0) (i64.const 0)))`),
		}, want: pluginE, heap: 1 << 30},
		{name: "key state made longer without end", guest: guest{
			body: `(drop (call $del (i32.const 0) (i32.const 1))) (drop (memory.grow (i32.const 200)))
				(drop (call $key_state_set (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 8) (i32.const 1) (i32.const 0) (i64.const 0)))` +
				repeated(`(drop (call $key_state_write (i32.const 0) (i32.const 1) (local.get $i) (i32.const 0) (i32.const 1000000)))
					(local.set $i (i32.add (local.get $i) (i32.const 1000000)))`),
		}, want: pluginE, heap: 1 << 30},
	}
	for i := range out {
		if out[i].want == tooLong || out[i].want == pluginE {
			out[i].maxTime = brief
		}
	}
	return out
}
