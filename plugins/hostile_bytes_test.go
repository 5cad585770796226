package plugins_test

import (
	"encoding/json"

	"github.com/latchkey-proxy/latchkey/plugins/manifest"
)

// shape is a module of which only what a test is about is written down: bytes, as
// the format has them, so that modules can be made that no assembler makes. The
// functions that latchkey wants are there: 0 lk_abi, 1 lk_arena, 2 lk_init, 3
// lk_command.
type shape struct {
	types    [][]byte // from 4 on; below are () i32, (i32) i32, (i32 i32 i32) i32, ()
	imports  [][]byte // which shift all functions
	funcs    [][]byte // bodies, with their locals, of functions of the type "()"
	tables   [][]byte
	memory   []byte // its limits; default one page
	globals  [][]byte
	exports  [][]byte // beside those latchkey wants
	start    []byte
	elements [][]byte
	data     [][]byte
	command  []byte // what lk_command does, without locals
	init     []byte
	last     []byte // sections behind all others
}

// Numbers of the format.
const (
	secType = iota + 1
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData

	opEnd      = 0x0b
	opCall     = 0x10
	opI32Const = 0x41
	typeI32    = 0x7f
)

func leb(n int) []byte {
	var b []byte
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

func cat(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// sized is content behind its length.
func sized(content ...[]byte) []byte {
	c := cat(content...)
	return append(leb(len(c)), c...)
}

// vector is items behind their number.
func vector(items ...[]byte) []byte { return append(leb(len(items)), cat(items...)...) }

func section(id byte, content ...[]byte) []byte { return append([]byte{id}, sized(content...)...) }

// times is b n times.
func times(n int, b ...byte) []byte {
	out := make([]byte, 0, n*len(b))
	for range n {
		out = append(out, b...)
	}
	return out
}

// many is n items that are all b.
func many(n int, b ...byte) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = b
	}
	return out
}

// locals begin a function's body: that many of type i32.
func locals(n int) []byte { return cat([]byte{1}, leb(n), []byte{typeI32}) }

func name(s string) []byte { return sized([]byte(s)) }

func export(as string, kind byte, index int) []byte { return cat(name(as), []byte{kind}, leb(index)) }

func importFunc(module, field string, typ int) []byte {
	return cat(name(module), name(field), []byte{0}, leb(typ))
}

// bytes is the module, without a manifest.
func (s shape) bytes() []byte {
	const i32 = typeI32
	head := len(s.imports)
	types := append([][]byte{{0x60, 0, 1, i32}, {0x60, 1, i32, 1, i32}, {0x60, 3, i32, i32, i32, 1, i32}, {0x60, 0, 0}}, s.types...)
	funcs := [][]byte{{0}, {1}, {0}, {2}}
	body := func(code ...byte) []byte { return sized([]byte{0}, code, []byte{opEnd}) }
	if s.init == nil {
		s.init = []byte{opI32Const, 0}
	}
	bodies := [][]byte{
		body(opI32Const, 1), body(opI32Const, 0x80, 8), body(s.init...), body(append(s.command, opI32Const, 0x7f)...),
	}
	for _, f := range s.funcs {
		funcs, bodies = append(funcs, []byte{3}), append(bodies, sized(f, []byte{opEnd}))
	}
	exports := append([][]byte{
		export("lk_abi", 0, head), export("lk_arena", 0, head+1), export("lk_init", 0, head+2), export("lk_command", 0, head+3),
		export("memory", 2, 0),
	}, s.exports...)
	if s.memory == nil {
		s.memory = []byte{0, 1}
	}
	m := []byte("\x00asm\x01\x00\x00\x00")
	add := func(id byte, items [][]byte) {
		if len(items) > 0 {
			m = append(m, section(id, vector(items...))...)
		}
	}
	add(secType, types)
	add(secImport, s.imports)
	add(secFunction, funcs)
	add(secTable, s.tables)
	add(secMemory, [][]byte{s.memory})
	add(secGlobal, s.globals)
	add(secExport, exports)
	if s.start != nil {
		m = append(m, section(secStart, s.start)...)
	}
	add(secElement, s.elements)
	add(secCode, bodies)
	add(secData, s.data)
	return append(m, s.last...)
}

// file is the module with a manifest.
func (s shape) file() []byte { return packed(s.bytes(), description()) }

type object map[string]any

// description is the manifest of a module named h with the commands H.CALLS and
// H.RUN, which has a key.
func description() object {
	return object{
		"name": "h", "version": "1.0.0", "abi": object{"min": 1, "max": 1},
		"commands": []any{
			object{"name": "H.CALLS", "id": 0, "arity": 1, "flags": []any{"readonly"}, "summary": "Counts."},
			object{"name": "H.RUN", "id": 1, "arity": -2, "flags": []any{"write"}, "keys": object{"first": 1, "last": 1, "step": 1}, "summary": "Is hostile."},
		},
		"capabilities": object{"read": []any{"k"}, "write": []any{"k"}},
		"limits":       object{"instances": 1},
	}
}

// packed puts a manifest behind a module, whether it is one or not.
func packed(wasm []byte, man any) []byte {
	text, err := json.Marshal(man)
	if err != nil {
		panic(err)
	}
	return packedText(wasm, text)
}

func packedText(wasm, text []byte) []byte {
	return cat(wasm, section(0, name(manifest.SectionName), text))
}
