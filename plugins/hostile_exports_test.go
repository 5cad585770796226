package plugins_test

import "testing"

func TestHostileExports(t *testing.T) { attackAll(t, exports()) }

// exports are modules whose exported functions trap, do not end, return what they
// may not, or are not what their names say.
func exports() []attack {
	const i32, unreachable = typeI32, 0x00
	hostFunc := func(field string, params, results []byte) (imports, types [][]byte) {
		return [][]byte{importFunc("latchkey_v1", field, 4)}, [][]byte{cat([]byte{0x60}, sized(params), sized(results))}
	}
	// replaced exports something else in the place of one of the functions.
	replaced := func(name, refused string, exports ...[]byte) attack {
		return attack{name: name, refused: refused, file: func() []byte {
			// As shape.bytes has it, but for the section of exports.
			s := shape{globals: [][]byte{{i32, 0, opI32Const, 1, opEnd}}, funcs: [][]byte{{0}}}.bytes()
			return packed(withExports(s, exports...), description())
		}}
	}
	abi, arena, start, command, memory := export("lk_abi", 0, 0), export("lk_arena", 0, 1), export("lk_init", 0, 2), export("lk_command", 0, 3), export("memory", 2, 0)
	extra := func(name, refused string, e []byte) attack {
		return replaced(name, refused, abi, arena, start, command, memory, e)
	}
	return []attack{
		{name: "unreachable", guest: guest{body: `unreachable`}, want: pluginE + "wasm error: unreachable"},
		{name: "division by zero", guest: guest{body: `(drop (i32.div_u (i32.const 1) (local.get $i)))`}, want: pluginE + "wasm error: integer divide by zero"},
		{name: "division that overflows", guest: guest{body: `(drop (i64.div_s (i64.const -9223372036854775808) (i64.extend_i32_s (i32.sub (local.get $i) (i32.const 1)))))`}, want: pluginE + "wasm error: integer overflow"},
		{name: "no number made an integer", guest: guest{body: `(drop (i32.trunc_f64_s (f64.const nan)))`}, want: pluginE + "wasm error: invalid conversion to integer"},
		{name: "exit", guest: guest{imports: `(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))`, body: `(call $exit (i32.const 0))`}, want: pluginE + "the guest has exited with code 0"},

		{name: "lk_arena has no room", guest: guest{arena: `(i32.const 0)`}, want: "lk_arena(4096) returned 0: no room for the arguments", dead: true},
		{name: "lk_arena is unaligned", guest: guest{arena: `(i32.const 1028)`}, want: "lk_arena(4096) returned 1028", dead: true},
		{name: "lk_arena is at the end of memory", guest: guest{arena: `(i32.const 65528)`}, want: "lk_arena(4096) returned 65528", dead: true},
		{name: "lk_arena is outside of memory", guest: guest{arena: `(i32.const -8)`}, want: "lk_arena(4096) returned 4294967288", dead: true},
		{name: "lk_arena traps", guest: guest{arena: `unreachable`}, want: "lk_arena: wasm error: unreachable", dead: true},
		{name: "lk_arena writes and traps", guest: guest{arena: write + `unreachable`}, want: "lk_arena: wasm error: unreachable", dead: true},
		{name: "lk_arena replies", guest: guest{arena: `(call $reply_null) (i32.const 1024)`, body: `(call $reply_null)`}, want: "more replies than one", dead: true},
		{name: "lk_arena is a host function", dead: true, want: "is not a handle of a reply", file: func() []byte {
			imports, types := hostFunc("call_type", []byte{i32}, []byte{i32})
			s := shape{imports: imports, types: types}.bytes()
			return packed(withExports(s, export("lk_abi", 0, 1), export("lk_arena", 0, 0), export("lk_init", 0, 3), export("lk_command", 0, 4), memory), description())
		}},
		{name: "lk_command is a host function", dead: true, want: pluginE, file: func() []byte {
			imports, types := hostFunc("call_bytes", []byte{i32, i32, i32}, []byte{i32})
			s := shape{imports: imports, types: types}.bytes()
			return packed(withExports(s, export("lk_abi", 0, 1), export("lk_arena", 0, 2), export("lk_init", 0, 3), export("lk_command", 0, 0), memory), description())
		}},

		{name: "lk_abi returns 2", file: func() []byte {
			s := shape{init: []byte{opI32Const, 2}}.bytes()
			return packed(withExports(s, export("lk_abi", 0, 2), arena, start, command, memory), description())
		}, refused: "lk_abi returned 2, wanted 1"},
		{name: "lk_init refuses", file: shape{init: []byte{opI32Const, 3}}.file, refused: "lk_init returned 3, wanted 0"},
		{name: "lk_init traps", file: shape{init: []byte{unreachable}}.file, refused: "lk_init failed: wasm error: unreachable"},
		{name: "lk_init does not end", file: shape{init: []byte{0x03, 0x40, 0x0c, 0, opEnd, opI32Const, 0}}.file, refused: "lk_init failed: " + tooLong, maxTime: brief},
		{name: "lk_init calls the host", guest: guest{init: `(drop (call $fence)) (i32.const 0)`}, refused: "lk_init failed: a host function was called outside of a command"},
		{name: "lk_init writes", guest: guest{init: write + `(i32.const 0)`}, refused: "lk_init failed: a host function was called outside of a command"},
		{name: "lk_init prints without end", maxTime: brief, refused: "lk_init failed: " + tooLong, guest: guest{
			imports: `(import "wasi_snapshot_preview1" "fd_write" (func $print (param i32 i32 i32 i32) (result i32)))`,
			init: `(i32.store (i32.const 4096) (i32.const 0)) (i32.store (i32.const 4100) (i32.const 65536))` +
				repeated(`(drop (call $print (i32.const 1) (i32.const 4096) (i32.const 1) (i32.const 4104)))`) + `(i32.const 0)`,
		}},
		{name: "lk_init grows memory without end", maxTime: brief, refused: "lk_init failed: " + tooLong, guest: guest{init: repeated(`(drop (memory.grow (i32.const 1)))`) + `(i32.const 0)`}},
		{name: "_initialize traps", guest: guest{exports: `(func (export "_initialize") unreachable)`}, refused: "_initialize failed: wasm error: unreachable"},
		{name: "_initialize does not end", guest: guest{exports: `(func (export "_initialize") (loop $l (br $l)))`}, refused: "_initialize failed: " + tooLong, maxTime: brief},
		{name: "_initialize takes a parameter", guest: guest{exports: `(func (export "_initialize") (param i32))`}, refused: "_initialize"},
		{name: "_initialize exits", guest: guest{
			imports: `(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))`,
			exports: `(func (export "_initialize") (call $exit (i32.const 0)))`,
		}, refused: "_initialize failed: the guest has exited with code 0"},

		replaced("no exports", "does not export the function lk_abi"),
		replaced("no lk_command", "does not export the function lk_command", abi, arena, start, memory),
		replaced("no memory", `does not export its memory as "memory"`, abi, arena, start, command),
		replaced("memory by another name", `does not export its memory as "memory"`, abi, arena, start, command, export("mem", 2, 0)),
		replaced("memory that is a function", `does not export its memory as "memory"`, abi, arena, start, command, export("memory", 0, 4)),
		replaced("lk_command that is a global", "does not export the function lk_command", abi, arena, start, memory, export("lk_command", 3, 0)),
		replaced("lk_command of another type", "lk_command(i32) -> i32, wanted (i32, i32, i32) -> i32", abi, arena, start, memory, export("lk_command", 0, 1)),
		replaced("lk_abi without a result", "lk_abi(), wanted () -> i32", export("lk_abi", 0, 4), arena, start, command, memory),
		extra("lk_wake of another type", "lk_wake(), wanted (i64, i32, i32, i32) -> i32", export("lk_wake", 0, 4)),
		extra("lk_timer of another type", "lk_timer(i32) -> i32, wanted (i64) -> i32", export("lk_timer", 0, 1)),
		extra("lk_event of another type", "lk_event() -> i32, wanted (i32, i32, i32) -> i32", export("lk_event", 0, 0)),
		extra("lk_closed of another type", "lk_closed(), wanted (i64, i32, i32) -> i32", export("lk_closed", 0, 4)),
		extra("an export twice", `export "lk_abi" twice`, abi),
		extra("an export of nothing", "function 99, but the module has 5", export("x", 0, 99)),
		{name: "timers without lk_timer", guest: guest{caps: map[string]any{"timers": true}}, refused: "does not export the function lk_timer"},
		{name: "events without lk_event", guest: guest{caps: map[string]any{"events": []string{"string"}}}, refused: "does not export the function lk_event"},
		{name: "clients without lk_closed", guest: guest{caps: map[string]any{"clients": true}}, refused: "does not export the function lk_closed"},
	}
}

// withExports is a module that exports what is given and nothing else.
func withExports(wasm []byte, exports ...[]byte) []byte {
	out := append([]byte{}, wasm[:8]...)
	for at := 8; at < len(wasm); {
		n, size := uleb(wasm[at+1:])
		end := at + 1 + size + n
		if wasm[at] == secExport {
			out = append(out, section(secExport, vector(exports...))...)
		} else {
			out = append(out, wasm[at:end]...)
		}
		at = end
	}
	return out
}

func uleb(b []byte) (n, size int) {
	for {
		n |= int(b[size]&0x7f) << (7 * size)
		size++
		if b[size-1] < 0x80 {
			return n, size
		}
	}
}
