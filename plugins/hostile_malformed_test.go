package plugins_test

import (
	"bytes"
	"testing"
)

func TestHostileMalformed(t *testing.T) { attackAll(t, malformed()) }

// malformed are files that are no valid modules, and modules that reach for what
// is added to them when they are given fuel.
func malformed() []attack {
	const (
		globalGet, globalSet, i64const, drop, br = 0x23, 0x24, 0x42, 0x1a, 0x0c
		refFunc, callIndirect, localGet          = 0xd2, 0x11, 0x20
	)
	whole := shape{}.bytes()
	body := func(code ...byte) shape { return shape{funcs: [][]byte{append([]byte{0}, code...)}} }
	file := func(name, refused string, wasm []byte) attack {
		return attack{name: name, refused: refused, file: func() []byte { return packed(wasm, description()) }}
	}
	of := func(name, refused string, s shape) attack { return file(name, refused, s.bytes()) }
	raw := func(name, refused string, wasm []byte) attack {
		return attack{name: name, refused: refused, file: func() []byte { return wasm }}
	}
	sections := func(s ...[]byte) []byte { return cat(append([][]byte{[]byte("\x00asm\x01\x00\x00\x00")}, s...)...) }
	packedWhole := packed(whole, description())
	return []attack{
		raw("nothing", "not a WebAssembly module", nil),
		raw("half a magic number", "not a WebAssembly module", []byte("\x00as")),
		raw("magic number alone", "it ends after 4 bytes, within its head", []byte("\x00asm")),
		raw("a native library", "native library (ELF)", []byte("\x7fELF\x02\x01\x01")),
		raw("a component", "this is a WebAssembly component, wanted a module", []byte("\x00asm\x0d\x00\x01\x00")),
		raw("17 MiB of zeros", "at most 16777216 are read", make([]byte, 17<<20)),
		raw("16 MiB of zeros in a custom section", "latchkey.manifest", sections(section(0, name("x"), make([]byte, 16<<20-64)))),
		raw("4 million empty custom sections", "latchkey.manifest", sections(times(4<<20, 0, 1, 0))),
		raw("cut off in the manifest", "longer than the module", packedWhole[:len(packedWhole)-7]),
		raw("cut off in the code", "longer than the module", packedWhole[:len(whole)-7]),
		file("custom section without a name", "ends within its name", sections([]byte{0, 0})),
		file("custom section whose name is longer than it", "ends within its name", sections([]byte{0, 2, 9, 'a'})),
		file("section of 4 GiB", "longer than the module", sections(append([]byte{1}, max32...))),
		file("section of no known number", "unknown section 13", sections([]byte{13, 0})),
		file("length of six bytes", "longer than the module", sections([]byte{1, 0x80, 0x80, 0x80, 0x80, 0x80, 0})),
		file("4 billion types", "4294967295 types, at most 4096", sections(section(secType, []byte(max32)))),
		file("4 billion functions", "4294967295 functions, at most 50000", sections(section(secType, vector([]byte{0x60, 0, 0})), section(secFunction, []byte(max32)))),
		file("4 billion bodies", "4294967295 function bodies, at most 50000", sections(section(secCode, []byte(max32)))),
		file("4 billion bytes of a name", "4294967295 bytes announced, 0 left", sections(section(secExport, []byte{1}, []byte(max32)))),
		file("4 billion bytes of data", "4294967295 bytes announced, 0 left", sections(section(secMemory, vector([]byte{0, 1})), section(secData, []byte{1, 0, opI32Const, 0, opEnd}, []byte(max32)))),
		file("functions without bodies", "4 functions declared, 0 bodies", sections(section(secType, vector([]byte{0x60, 0, 0})), section(secFunction, vector(many(4, 0)...)))),
		file("sections twice", "twice or after", sections(section(secType, vector([]byte{0x60, 0, 0})), section(secType, vector([]byte{0x60, 0, 0})))),
		file("nothing but a manifest", "does not export the function lk_abi", sections()),
		of("name section of garbage", "", shape{last: section(0, name("name"), bytes.Repeat([]byte{0xff}, 1000))}).loads(),
		of("name section of 4 billion names", "", shape{last: section(0, name("name"), []byte{1, 5}, []byte(max32))}).loads(),
		of("code twice", "code section twice", shape{last: []byte{secCode, 1, 0}}),
		file("bytes behind the last type", "type section: 1 bytes left over", sections(section(secType, vector([]byte{0x60, 0, 0}), []byte{0}))),
		file("body without an end", "unexpected end", sections(
			section(secType, vector([]byte{0x60, 0, 0})), section(secFunction, vector([]byte{0})), section(secCode, vector([]byte{1, 0})))),
		file("body that goes on behind its end", "1 bytes after the end", sections(
			section(secType, vector([]byte{0x60, 0, 0})), section(secFunction, vector([]byte{0})), section(secCode, vector([]byte{3, 0, opEnd, opEnd})))),

		of("instruction of no known number", "instruction 0xff", body(0xff)),
		of("instruction of threads", "instruction 0xfe", body(0xfe, 3, 0)),
		of("instruction of exceptions", "instruction 0x06", body(0x06, 0x40, opEnd)),
		of("tail call", "instruction 0x12", body(0x12, 0)),
		of("empty stack", "cannot be compiled", body(drop)),
		of("values left on the stack", "cannot be compiled", body(opI32Const, 1)),
		of("integers of the wrong size", "cannot be compiled", body(opI32Const, 1, i64const, 1, 0x6a, drop)),
		of("label that is not open", "label 1", body(br, 1)),
		of("local that is not there", "local 0", body(localGet, 0, drop)),

		// Fuel forging: what these would reach is there once the module has its fuel.
		of("fuel set", "global 0, but the module has 0", body(i64const, 0x7f, globalSet, 0)),
		of("fuel set behind a global of its own", "global 1, but the module has 1", shape{
			globals: [][]byte{{typeI32, 1, opI32Const, 0, opEnd}}, funcs: [][]byte{{0, i64const, 0x7f, globalSet, 1}},
		}),
		of("depth read", "global 1, but the module has 0", body(globalGet, 1, drop)),
		of("fuel exported", "global 0, but the module has 0", shape{exports: [][]byte{export("fuel", 3, 0)}}),
		of("fuel's name exported", "reserved", shape{globals: [][]byte{{0x7e, 1, i64const, 0, opEnd}}, exports: [][]byte{export("latchkey_fuel", 3, 0)}}),
		of("refill imported", "reserved", shape{types: [][]byte{{0x60, 1, 0x7e, 1, 0x7e}}, imports: [][]byte{importFunc("latchkey_host", "refill", 4)}}),
		of("refill called", "function 5, but the module has 5", body(opCall, 5)),
		of("refill exported", "function 4, but the module has 4", shape{exports: [][]byte{export("x", 0, 4)}}),
		of("refill in a table", "function 4, but the module has 4", shape{tables: [][]byte{{0x70, 0, 1}}, elements: [][]byte{{0, opI32Const, 0, opEnd, 1, 4}}}),
		of("refill referred to", "function 5, but the module has 5", body(refFunc, 5, drop)),
		of("refill begun with", "function 4, but the module has 4", shape{start: []byte{4}}),
		of("refill's type called", "type 4, but the module has 4", shape{
			tables: [][]byte{{0x70, 0, 1}}, funcs: [][]byte{{0, i64const, 0, opI32Const, 0, callIndirect, 4, 0, drop}},
		}),

		// Imports that there are not.
		of("import of a file system", "only functions of latchkey_v1 and wasi_snapshot_preview1", shape{imports: [][]byte{importFunc("env", "open", 3)}}),
		of("import of a later function", "which ABI 1 does not have", shape{imports: [][]byte{importFunc("latchkey_v1", "steal", 3)}}),
		of("import of no known WASI function", "WASI preview 1 does not have", shape{imports: [][]byte{importFunc("wasi_snapshot_preview1", "system", 3)}}),
		of("import of another type", "wanted (i32, i32)", shape{imports: [][]byte{importFunc("latchkey_v1", "reply_simple", 3)}}),
		of("import of a memory", "is not a function", shape{imports: [][]byte{cat(name("latchkey_v1"), name("memory"), []byte{2, 0, 1})}}),
		of("import of a global", "is not a function", shape{imports: [][]byte{cat(name("latchkey_v1"), name("fence"), []byte{3, 0x7e, 1})}}),
		of("import of a table", "is not a function", shape{imports: [][]byte{cat(name("latchkey_v1"), name("t"), []byte{1, 0x70, 0, 1})}}),
	}
}

// loads makes of an attack that is to be refused one that is loaded and fails
// then.
func (a attack) loads() attack {
	a.refused, a.want, a.dead = "", returned, true
	return a
}
