package fuel

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// wasm is a module of version 1 with the given sections.
func wasm(sections ...string) []byte {
	return []byte("\x00asm\x01\x00\x00\x00" + strings.Join(sections, ""))
}

func TestCheckRefusesMalformed(t *testing.T) {
	const (
		typ  = "\x01\x04\x01\x60\x00\x00" // () -> ()
		fn   = "\x03\x02\x01\x00"
		code = "\x0a\x04\x01\x02\x00\x0b"
	)
	if err := Check(wasm(typ, fn, code), Limits{}); err != nil {
		t.Fatalf("the smallest function is refused: %v", err)
	}
	for _, c := range []struct {
		name   string
		module []byte
		offset int
		want   string
	}{
		{"empty", nil, 0, "not a WebAssembly module"},
		{"version 2", []byte("\x00asm\x02\x00\x00\x00"), 0, "not a WebAssembly module of version 1"},
		{"unknown section", wasm("\x0d\x00"), 8, "unknown section 13"},
		{"section longer than module", wasm("\x01\x7f\x00"), 10, "type section: 127 bytes announced, 1 left"},
		{"section twice", wasm(typ, typ), 14, "type section twice"},
		{"section out of order", wasm(fn, typ), 11, "type 0, but the module has 0"},
		{"bytes left over", wasm("\x01\x05\x01\x60\x00\x00\x00"), 14, "type section: 1 bytes left over"},
		{"count of 4 billion", wasm("\x01\x05\xff\xff\xff\xff\x0f"), 10, "4294967295 types, at most 4096 are allowed"},
		{"count longer than content", wasm("\x01\x01\x05"), 10, "5 types announced in 0 bytes"},
		{"number of 6 bytes", wasm("\x01\x06\x80\x80\x80\x80\x80\x00"), 10, "number longer than 32 bits"},
		{"number with unused bits", wasm("\x01\x05\x80\x80\x80\x80\x10"), 10, "number longer than 32 bits"},
		{"number cut off", wasm("\x01\x01\x80"), 11, "unexpected end"},
		{"form of type", wasm("\x01\x04\x01\x5f\x00\x00"), 11, "form 0x5f"},
		{"value type", wasm("\x01\x05\x01\x60\x01\x7a\x00"), 13, "unknown value type 0x7a"},
		{"bodies missing", wasm(typ, fn), 18, "1 functions declared, 0 bodies"},
		{"bodies too many", wasm(typ, code), 17, "0 functions declared, 1 bodies"},
		{"body without end", wasm(typ, fn, "\x0a\x04\x01\x02\x00\x01"), 24, "unexpected end"},
		{"body goes on after end", wasm(typ, fn, "\x0a\x05\x01\x03\x00\x0b\x0b"), 24, "1 bytes after the end"},
		{"else without if", wasm(typ, fn, "\x0a\x05\x01\x03\x00\x05\x0b"), 23, "else outside of an if"},
		{"block of a type that is added", wasm(typ, fn, "\x0a\x07\x01\x05\x00\x02\x01\x0b\x0b"), 24, "type 1, but the module has 1"},
		{"tail call", wasm(typ, fn, "\x0a\x06\x01\x04\x00\x12\x00\x0b"), 23, "instruction 0x12 is not in WebAssembly 2.0"},
		{"exception", wasm(typ, fn, "\x0a\x06\x01\x04\x00\x06\x40\x0b"), 23, "instruction 0x06"},
		{"atomics", wasm(typ, fn, "\x0a\x06\x01\x04\x00\xfe\x03\x0b"), 23, "instruction 0xfe"},
		{"misc", wasm(typ, fn, "\x0a\x06\x01\x04\x00\xfc\x12\x0b"), 23, "instruction 0xfc 18"},
		{"relaxed vector", wasm(typ, fn, "\x0a\x07\x01\x05\x00\xfd\x80\x02\x0b"), 23, "instruction 0xfd 256"},
		{"hole between vectors", wasm(typ, fn, "\x0a\x07\x01\x05\x00\xfd\x9a\x01\x0b"), 23, "instruction 0xfd 154"},
		{"shared memory", wasm("\x05\x04\x01\x03\x01\x01"), 11, "limits of kind 0x03"},
		{"memory minimum above maximum", wasm("\x05\x04\x01\x01\x02\x01"), 14, "minimum 2 is larger than maximum 1"},
		{"two memories", wasm("\x05\x05\x02\x00\x01\x00\x01"), 10, "2 memories, at most 1"},
		{"table of 4 billion", wasm("\x04\x08\x01\x70\x00\xff\xff\xff\xff\x0f"), 11, "table of 4294967295 entries"},
		{"imported memory", wasm("\x02\x07\x01\x01a\x01b\x02\x00\x01"), 15, "is not a function"},
		{"name not UTF-8", wasm(typ, "\x02\x07\x01\x01\xff\x01b\x00\x00"), 17, "name is not UTF-8"},
		{"signed number too long", wasm("\x06\x0a\x01\x7f\x00\x41\xff\xff\xff\xff\x1f\x0b"), 14, "number longer than 32 bits"},
		{"initial value from a global", wasm("\x06\x06\x01\x7f\x00\x23\x00\x0b"), 13, "instruction 0x23 in a constant expression"},
		{"data count differs", wasm("\x0c\x01\x02"), 11, "data count is 2, but there are 0"},
		{"data without memory", wasm("\x0b\x06\x01\x00\x41\x00\x0b\x00"), 12, "no memory"},
		{"element flags", wasm("\x09\x02\x01\x08"), 11, "unknown flags 8"},
		{"export twice", wasm(typ, fn, "\x07\x09\x02\x01f\x00\x00\x01f\x00\x00", code), 25, `export "f" twice`},
		{"export of nothing", wasm("\x07\x05\x01\x01f\x00\x00"), 14, "function 0, but the module has 0"},
		{"start of nothing", wasm("\x08\x01\x00"), 10, "function 0, but the module has 0"},
	} {
		err := Check(c.module, Limits{})
		var e *Error
		if !errors.As(err, &e) || !contains(err, c.want) || e.Offset != c.offset {
			t.Errorf("%s: got %v; want offset %d: %s", c.name, err, c.offset, c.want)
		}
		if _, err2 := Instrument(c.module, Options{}); fmt.Sprint(err2) != fmt.Sprint(err) {
			t.Errorf("%s: Instrument says %v, Check %v", c.name, err2, err)
		}
	}
}

// Modules cut anywhere must be refused, not read past their end.
func TestCheckRefusesEveryPrefix(t *testing.T) {
	m := assemble(t, everything)
	if err := Check(m, Limits{}); err != nil {
		t.Fatal(err)
	}
	valid := 0
	for n := range m {
		if Check(m[:n], Limits{}) == nil {
			valid++ // between sections, before functions are declared
		}
	}
	if valid > 8 {
		t.Errorf("%d prefixes of %d are taken for modules, expected those between the first sections only", valid, len(m))
	}
}

func TestCheckRefusesForeignIndexes(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		// Each of these would mean something that instrumentation adds.
		{"fuel forged", `(module (func (export "f") (global.set 0 (i64.const 1000000000))))`, "global 0, but the module has 0"},
		{"fuel read", `(module (global i32 (i32.const 1)) (func (drop (global.get 1))))`, "global 1, but the module has 1"},
		{"fuel exported", `(module (export "fuel" (global 0)))`, "global 0, but the module has 0"},
		{"refill called", `(module (func (call 1)))`, "function 1, but the module has 1"},
		{"refill exported", `(module (func) (export "f" (func 1)))`, "function 1, but the module has 1"},
		{"refill started", `(module (func) (start 1))`, "function 1, but the module has 1"},
		{"refill in a table", `(module (func) (table 1 funcref) (elem (i32.const 0) func 1))`, "function 1, but the module has 1"},
		{"refill referred to", `(module (func (drop (ref.func 1))))`, "function 1, but the module has 1"},
		{"refill in a global", `(module (global funcref (ref.func 0)))`, "function 0, but the module has 0"},
		{"added type called", `(module (table 1 funcref) (func (call_indirect (type 1) (i32.const 0))))`, "type 1, but the module has 1"},
		{"scratch local", `(module (func (drop (local.get 0))))`, "local 0, but the function has 0"},
		{"block around the function", `(module (func (br 1)))`, "label 1, but only 1 blocks are open"},
		{"block around in a table", `(module (func (br_table 0 1 (i32.const 0))))`, "label 1, but only 1 blocks are open"},
		{"no table", `(module (type (func)) (func (call_indirect (type 0) (i32.const 0))))`, "table 0, but the module has 0"},
		{"no memory", `(module (func (i32.store (i32.const 0) (i32.const 0))))`, "no memory"},
		{"no memory to fill", `(module (func (memory.fill (i32.const 0) (i32.const 0) (i32.const 0))))`, "no memory"},
		{"no element segment", `(module (table 1 funcref) (func (elem.drop 0)))`, "element segment 0, but the module has 0"},
		{"refill imported", `(module (import "latchkey_host" "refill" (func (param i64) (result i64))))`, "that import module is reserved"},
		{"anything imported from there", `(module (import "latchkey_host" "x" (func)))`, "that import module is reserved"},
		{"fuel's name taken", `(module (global (export "latchkey_fuel") (mut i64) (i64.const 9)))`, `names beginning with "latchkey_" are reserved`},
		{"reserved prefix", `(module (func (export "latchkey_x")))`, `names beginning with "latchkey_" are reserved`},
		{"imported global", `(module (import "env" "g" (global (mut i64))))`, "is not a function"},
	} {
		err := Check(assemble(t, c.text), Limits{})
		if !contains(err, c.want) {
			t.Errorf("%s: got %v; want %s", c.name, err, c.want)
		}
	}
}

func TestCheckRefusesShapes(t *testing.T) {
	rep := strings.Repeat
	for _, c := range []struct{ name, text, want string }{
		{"nested loops and locals", fmt.Sprintf(`(module (func (local %s) %s %s))`, rep("i32 ", 500), rep("loop ", 500), rep("end ", 500)), "times 500 locals"},
		{"loops and locals", fmt.Sprintf(`(module (func (local %s) %s))`, rep("i32 ", 1000), rep("loop end ", 20)), "20 loops times 1000 locals, at most 8192"},
		{"ifs and locals", fmt.Sprintf(`(module (func (local %s) %s))`, rep("i32 ", 1000), rep("i32.const 0 if end ", 5000)), "times 1000 locals, at most 131072"},
		{"nested blocks", fmt.Sprintf(`(module (func %s %s))`, rep("block ", 1025), rep("end ", 1025)), "blocks nested deeper than 1024"},
		{"branch tables", fmt.Sprintf(`(module (func block %s end))`, rep("i32.const 0 br_table"+rep(" 0", 1001)+" ", 70)), "br_table targets in one function, at most"},
		{"locals", fmt.Sprintf(`(module (func (local %s)))`, rep("i32 ", 1025)), "1025 parameters and locals, at most 1024"},
		{"parameters and locals", fmt.Sprintf(`(module (func (param i32 i32) (local %s)))`, rep("i64 ", 1023)), "1025 parameters and locals, at most 1024"},
		{"body", fmt.Sprintf(`(module (func %s))`, rep("nop ", 256<<10)), "body of 262146 bytes, at most 262144"},
		{"results", fmt.Sprintf(`(module (type (func (result %s))))`, rep("i32 ", 17)), "17 results, at most 16"},
		{"parameters of a block", fmt.Sprintf(`(module (type (func (param %s))) (func (block (type 0))))`, rep("i32 ", 17)), "block with 17 parameters, at most 16"},
		{"parameters", fmt.Sprintf(`(module (type (func (param %s))))`, rep("i32 ", 129)), "129 parameters, at most 128"},
		{"tables", fmt.Sprintf(`(module %s)`, rep("(table 1 funcref)", 17)), "17 tables, at most 16"},
		{"functions", fmt.Sprintf(`(module %s)`, rep("(func)", 50_001)), "50001 functions, at most 50000"},
		{"data segments", fmt.Sprintf(`(module (memory 1) %s)`, rep(`(data "")`, 100_001)), "100001 data segments, at most 100000"},
		{"element items", fmt.Sprintf(`(module (func) (elem func %s))`, rep("0 ", 1<<18+1)), "262145 items in element segments, at most 262144"},
	} {
		if err := Check(assemble(t, c.text), Limits{}); !contains(err, c.want) {
			t.Errorf("%s: got %v; want %s", c.name, err, c.want)
		}
	}
	if err := Check(make([]byte, 16<<20+1), Limits{}); !contains(err, "module of 16777217 bytes, at most 16777216") {
		t.Errorf("large module: got %v", err)
	}
	// A limit of the caller's own counts.
	small := assemble(t, `(module (func block block end end))`)
	if err := Check(small, Limits{Nesting: 1}); !contains(err, "blocks nested deeper than 1") {
		t.Errorf("limit of 1: got %v", err)
	}
	if err := Check(small, Limits{Nesting: 2}); err != nil {
		t.Errorf("limit of 2: got %v", err)
	}
	big := assemble(t, `(module (memory 257))`)
	if _, err := Instrument(big, Options{}); !contains(err, "memory begins with 257 pages, at most 256 pages are allowed") {
		t.Errorf("memory: got %v", err)
	}
}

func TestInstrumentRefusesItsOwnOutput(t *testing.T) {
	out, err := Instrument(wasm(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Instrument(out, Options{}); !contains(err, "reserved") {
		t.Errorf("got %v; want a refusal of reserved names", err)
	}
}
