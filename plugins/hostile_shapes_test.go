package plugins_test

import (
	"testing"

	"github.com/latchkey-proxy/latchkey/store/underrace"
)

// Compiling them is most of it, and that is slow in a program with the detector.
func TestHostileShapes(t *testing.T) { attackAll(t, underrace.Sample(shapes(), 4)) }

const max32 = "\xff\xff\xff\xff\x0f" // 2^32-1

// shapes are modules that keep a compiler busy, or make it or an instance large.
// Those at the limits are loaded; they end what they are told to do.
func shapes() []attack {
	const (
		block, loop, ifOp, br, brIf, brTable = 0x02, 0x03, 0x04, 0x0c, 0x0d, 0x0e
		empty                                = 0x40
		nop, drop, i64div, i64const          = 0x01, 0x1a, 0x80, 0x42
		funcref                              = 0x70
	)
	ends := func(n int) []byte { return times(n, opEnd) }
	table := func(targets int) []byte {
		return cat([]byte{opI32Const, 0, brTable}, leb(targets), times(targets+1, 0))
	}
	var tables, divisions, smallLoops []byte
	for range 250 {
		tables = append(tables, cat([]byte{block, empty}, table(1000), ends(1))...)
	}
	divisions = times(40_000, i64const, 1, i64const, 2, i64div, drop)
	smallLoops = times(8, loop, empty, opEnd)
	run := []byte{opCall, 4} // the first of shape.funcs
	one := func(body ...[]byte) shape { return shape{funcs: [][]byte{cat(body...)}, command: run} }
	none := []byte{0} // no locals

	of := func(name, refused, want string, s shape) attack {
		return attack{name: name, file: s.file, refused: refused, want: want, dead: refused == ""}
	}
	return []attack{
		// The compile bombs that were found.
		of("500 nested loops with 500 locals", "times 500 locals", "", one(locals(500), times(500, loop, empty), ends(500))),
		of("128 nested loops with 1,000 locals", "times 1000 locals", "", one(locals(1000), times(128, loop, empty), ends(128))),
		of("5,000 ifs with 1,000 locals", "times 1000 locals", "", one(locals(1000), times(5000, opI32Const, 0, ifOp, empty, opEnd))),
		of("10,000 blocks with 16 locals", "times 16 locals", "", one(locals(16), times(10_000, block, empty, opEnd))),
		of("50,000 nested blocks", "blocks nested deeper than 1024", "", one(none, times(50_000, block, empty), ends(50_000))),
		of("250 branch tables of 1,000", "br_table targets", "", one(none, tables)),
		of("a branch table of 65,000 targets", "br_table targets in one function", "", one(none, []byte{block, empty}, table(64_999), ends(1))),
		of("8,000 blocks one after the other", "steps through the blocks", "", one(none, times(8000, block, empty, opI32Const, 0, brIf, 0, opEnd))),
		of("8,000 loops one after the other", "steps through the blocks", "", one(none, times(8000, loop, empty, opEnd))),
		of("8,000 ifs one after the other", "steps through the blocks", "", one(none, times(8000, opI32Const, 0, ifOp, empty, opEnd))),
		of("branch table of 4 billion", "br_table", "", one(none, []byte{opI32Const, 0, brTable}, []byte(max32), ends(1))),
		of("a million locals", "1000000 parameters and locals, at most 1024", "", one(locals(1_000_000))),
		of("locals that add up to 2^32", "parameters and locals, at most 1024", "", one([]byte{2}, []byte(max32), []byte{typeI32, 1, typeI32})),
		of("4 billion groups of locals", "4294967295 groups of locals, at most 1024", "", one([]byte(max32))),
		of("body of 256 KiB and more", "at most 262144", "", one(none, times(256<<10, nop))),
		of("50,001 functions", "at most 50000", "", shape{funcs: many(49_998, 0)}),
		of("4,097 types", "at most 4096", "", shape{types: many(4093, 0x60, 0, 0)}),
		of("type of 129 parameters", "129 parameters, at most 128", "", shape{types: [][]byte{cat([]byte{0x60}, vector(many(129, typeI32)...), []byte{0})}}),
		of("type of 17 results", "17 results, at most 16", "", shape{types: [][]byte{cat([]byte{0x60, 0}, vector(many(17, typeI32)...))}}),
		of("block of 17 parameters", "block with 17 parameters, at most 16", "",
			shape{types: [][]byte{cat([]byte{0x60}, vector(many(17, typeI32)...), []byte{0})}, funcs: [][]byte{cat(none, times(17, opI32Const, 0), []byte{block, 4}, times(17, drop), ends(1))}}),
		of("1,025 imports", "at most 1024", "", shape{imports: many(1025, importFunc("latchkey_v1", "reply_null", 3)...)}),
		of("8,193 globals", "at most 8192", "", shape{globals: many(8193, typeI32, 0, opI32Const, 0, opEnd)}),
		of("100,001 data segments", "at most 100000", "", shape{data: many(100_001, 1, 0)}),
		of("8,193 element segments", "at most 8192", "", shape{tables: [][]byte{{funcref, 0, 1}}, elements: many(8193, 0, opI32Const, 0, opEnd, 0)}),
		of("262,145 element items", "at most 262144", "", shape{elements: [][]byte{cat([]byte{1, 0}, leb(262_145), times(262_145, 0))}}),
		of("17 tables", "17 tables, at most 16", "", shape{tables: many(17, funcref, 0, 1)}),
		of("table of 4 billion", "table of 4294967295 entries", "", shape{tables: [][]byte{cat([]byte{funcref, 0}, []byte(max32))}}),
		of("memory of 4 GiB", "memory begins with 65536 pages", "", shape{memory: []byte{0, 0x80, 0x80, 4}}),
		of("memory of 65,537 pages", "at most 65536", "", shape{memory: []byte{0, 0x81, 0x80, 4}}),
		of("memory of more than it may grow to", "minimum 2 is larger than maximum 1", "", shape{memory: []byte{1, 2, 1}}),

		// At the limits.
		of("50,000 functions", "", returned, shape{funcs: many(49_996, 0)}),
		of("1,024 nested blocks", "", returned, one(none, times(1023, block, empty), ends(1023))),
		of("8 loops with 1,024 locals", "", returned, one(locals(1024), smallLoops)),
		of("a branch table of 32,000 targets", "", returned, one(none, []byte{block, empty}, table(31_999), ends(1))),
		of("1,700 blocks one after the other", "", returned, one(none, times(1700, block, empty, opI32Const, 0, brIf, 0, opEnd))),
		of("240 KB of divisions", "", returned, one(none, divisions)),
		of("16 tables of 131,072", "", returned, shape{tables: many(16, funcref, 0, 0x80, 0x80, 8)}),
		of("8,192 globals", "", returned, shape{globals: many(8192, typeI32, 1, opI32Const, 0, opEnd)}),
		of("100,000 data segments", "", returned, shape{data: many(100_000, 0, opI32Const, 0, opEnd, 0)}),
		of("256 pages", "", returned, shape{memory: []byte{0, 0x80, 2}}),
		of("memory that may grow to 4 GiB", "", returned, shape{memory: []byte{1, 1, 0x80, 0x80, 4}}),

		// Instances that cannot be made.
		of("data beyond memory", "cannot be instantiated", "", shape{data: [][]byte{cat([]byte{0, opI32Const, 0x7f, opEnd}, name("xx"))}}),
		of("elements beyond the table, which are left out", "", returned, shape{tables: [][]byte{{funcref, 0, 1}}, elements: [][]byte{{0, opI32Const, 1, opEnd, 1, 0}}}),
		of("start that traps", "unreachable", "", shape{start: []byte{4}, funcs: [][]byte{{0, 0}}}),
		of("start that recurs", "calls are nested too deeply", "", shape{start: []byte{4}, funcs: [][]byte{{0, opCall, 4}}}),
		of("start that calls the host", "a host function was called outside of a command", "",
			shape{imports: [][]byte{importFunc("latchkey_v1", "reply_null", 3)}, start: []byte{5}, funcs: [][]byte{{0, opCall, 0}}}),
		of("start that is a host function", "a host function was called outside of a command", "",
			shape{imports: [][]byte{importFunc("latchkey_v1", "reply_null", 3)}, start: []byte{0}}),
		func() attack {
			a := of("start that does not end", tooLong, "", shape{start: []byte{4}, funcs: [][]byte{{0, loop, empty, br, 0, opEnd}}})
			a.maxTime = brief
			return a
		}(),
	}
}

// returned is what is answered when lk_command returns -1 at once.
const returned = pluginE + "lk_command returned -1"
