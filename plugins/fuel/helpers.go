package fuel

import "strconv"

// maxHelpers bounds the functions added to a module. One memory.init of a few
// bytes costs one of a hundred.
const maxHelpers = 1024

// piece is how many bytes of memory a bulk instruction treats at a time.
const piece = 1 << 20

// helperKind is a function that is added to the module.
type helperKind byte

const (
	helperRefuel   helperKind = iota // () -> (): asks for fuel
	helperOverflow                   // () -> (): ends the call
	helperSpend                      // (n i32) -> n: charges n units
	helperGrow                       // memory.grow
	helperFill                       // memory.fill
	helperCopy                       // memory.copy
	helperInit                       // memory.init of one data segment
)

type helperKey struct {
	kind    helperKind
	segment uint32 // for helperInit
}

func (k helperKey) params() []byte {
	switch k.kind {
	case helperSpend, helperGrow:
		return []byte{typeI32}
	case helperFill, helperCopy, helperInit:
		return []byte{typeI32, typeI32, typeI32}
	}
	return nil
}

func (k helperKey) results() []byte {
	if k.kind == helperSpend || k.kind == helperGrow {
		return []byte{typeI32}
	}
	return nil
}

// helpers are the functions that a module needs in addition to its own. They
// follow the module's last function.
type helpers struct {
	m    *module
	keys []helperKey
	at   map[helperKey]uint32
}

func newHelpers(m *module) *helpers {
	h := &helpers{m: m, at: make(map[helperKey]uint32)}
	h.index(helperKey{kind: helperRefuel})
	h.index(helperKey{kind: helperOverflow})
	return h
}

// index returns the number of a helper, and whether there is room for it.
func (h *helpers) index(key helperKey) (uint32, bool) {
	i, ok := h.at[key]
	if !ok {
		if len(h.keys) >= maxHelpers {
			return 0, false
		}
		i = uint32(len(h.keys))
		h.at[key] = i
		h.keys = append(h.keys, key)
	}
	return i, true
}

// function returns the function index of a helper that every module has.
func (h *helpers) function(kind helperKind) uint32 {
	return h.m.helperFunction(h.at[helperKey{kind: kind}])
}

// helperFunction returns the function index of helper i.
func (m *module) helperFunction(i uint32) uint32 { return m.shift(uint32(m.functions())) + i }

// appendCharge appends a constant charge and the check. scratch is a local of
// type i64; testing it rather than the global saves a load.
func (h *helpers) appendCharge(b []byte, units int64, scratch uint32) []byte {
	b = appendAdd(b, h.m.fuelGlobal(), scratch, -units)
	return h.appendCheck(b, scratch)
}

// appendCheck appends the check of fuel, which scratch holds as well.
func (h *helpers) appendCheck(b []byte, scratch uint32) []byte {
	b = append(b, opLocalGet)
	b = appendU32(b, scratch)
	b = append(b, opI64Const, 0, opI64LtS, opIf, typeEmpty, opCall)
	b = appendU32(b, h.function(helperRefuel))
	return append(b, opEnd)
}

// appendAdd appends: global = local = global + n.
func appendAdd(b []byte, global, local uint32, n int64) []byte {
	b = append(b, opGlobalGet)
	b = appendU32(b, global)
	b = append(b, opI64Const)
	b = appendS64(b, n)
	b = append(b, opI64Add, opLocalTee)
	b = appendU32(b, local)
	b = append(b, opGlobalSet)
	return appendU32(b, global)
}

// body returns the body of a helper, with its locals.
func (h *helpers) body(key helperKey, limitPages uint32, m *module) []byte {
	e := &emitter{helpers: h}
	switch key.kind {
	case helperRefuel:
		e.raw(0, opGlobalGet).u32(m.fuelGlobal())
		e.raw(opCall).u32(m.refill())
		e.raw(opGlobalSet).u32(m.fuelGlobal())
		e.raw(opEnd)
		return e.b
	case helperOverflow:
		e.raw(0).i64(DepthExceeded).raw(opCall).u32(m.refill())
		e.raw(opDrop, opUnreachable, opEnd)
		return e.b
	case helperSpend, helperGrow:
		e.scratch = 1
	default:
		e.scratch = 3
	}
	e.raw(1, 1, typeI64) // one local: scratch

	const n = 2 // the parameter that is the length
	switch key.kind {
	case helperSpend:
		e.chargeLength(0, 0)
		e.get(0)

	case helperGrow:
		// A page costs its bytes as a fill would; what must fail costs nothing.
		e.raw(opMemorySize, 0, opI64ExtendU).wide(0).raw(opI64Add)
		e.i64(int64(m.maxPages(limitPages))).raw(opI64LeU, opIf, typeEmpty)
		e.raw(opGlobalGet).u32(m.fuelGlobal())
		e.wide(0).i64(13).raw(opI64Shl, opI64Sub)
		e.storeAndCheck()
		e.raw(opEnd)
		e.get(0).raw(opMemoryGrow, 0)

	case helperFill, helperCopy, helperInit:
		op := []byte{opMisc, miscMemoryFill, 0}
		switch key.kind {
		case helperCopy:
			op = []byte{opMisc, miscMemoryCopy, 0, 0}
		case helperInit:
			op = appendU32([]byte{opMisc, miscMemoryInit}, key.segment)
			op = append(op, 0)
		}
		e.get(n).i32(piece).raw(opI32GtU, opIf, typeEmpty)
		// What reaches out of bounds must trap before it writes anything, so it
		// is left to the instruction as it stands.
		e.beyondMemory(0, n)
		switch key.kind {
		case helperCopy:
			e.beyondMemory(1, n)
			e.raw(opI32Or)
		case helperInit:
			e.wide(1).wide(n).raw(opI64Add).i64(int64(m.data[key.segment])).raw(opI64GtU, opI32Or)
		}
		e.raw(opIf, typeEmpty).get(0).get(1).get(n).raw(op...).raw(opUnreachable, opEnd)
		if key.kind == helperCopy {
			// Overlapping ranges: towards lower addresses from the front, else from the back.
			e.get(0).get(1).raw(opI32LeU, opIf, typeEmpty)
			e.pieces(op, true, true)
			e.raw(opElse)
			e.pieces(op, false, true)
			e.raw(opEnd)
		} else {
			e.pieces(op, true, key.kind == helperInit)
		}
		e.raw(opEnd)
		e.chargeLength(n, 3)
		e.get(0).get(1).get(n).raw(op...)
	}
	return e.raw(opEnd).b
}

// emitter appends instructions to the body of a helper.
type emitter struct {
	helpers *helpers
	scratch uint32
	b       []byte
}

func (e *emitter) raw(b ...byte) *emitter    { e.b = append(e.b, b...); return e }
func (e *emitter) u32(v uint32) *emitter     { e.b = appendU32(e.b, v); return e }
func (e *emitter) get(local uint32) *emitter { return e.raw(opLocalGet).u32(local) }
func (e *emitter) set(local uint32) *emitter { return e.raw(opLocalSet).u32(local) }
func (e *emitter) i32(v int32) *emitter      { e.b = appendS64(append(e.b, opI32Const), int64(v)); return e }

func (e *emitter) i64(v int64) *emitter       { e.b = appendS64(append(e.b, opI64Const), v); return e }
func (e *emitter) wide(local uint32) *emitter { return e.get(local).raw(opI64ExtendU) }

// storeAndCheck takes the new fuel from the stack.
func (e *emitter) storeAndCheck() {
	e.raw(opLocalTee).u32(e.scratch)
	e.raw(opGlobalSet).u32(e.helpers.m.fuelGlobal())
	e.b = e.helpers.appendCheck(e.b, e.scratch)
}

// chargeLength charges a local of type i32, taken as unsigned, shifted right.
func (e *emitter) chargeLength(local uint32, shift int64) {
	e.raw(opGlobalGet).u32(e.helpers.m.fuelGlobal())
	e.wide(local)
	if shift > 0 {
		e.i64(shift).raw(opI64ShrU)
	}
	e.raw(opI64Sub)
	e.storeAndCheck()
}

// beyondMemory leaves 1 if the range at local start reaches past the memory.
func (e *emitter) beyondMemory(start, length uint32) {
	e.wide(start).wide(length).raw(opI64Add)
	e.raw(opMemorySize, 0, opI64ExtendU).i64(16).raw(opI64Shl, opI64GtU)
}

// pieces repeats op on a piece, from the front or from the back, while more
// than a piece is left. twoPointers says that local 1 moves along with local 0.
func (e *emitter) pieces(op []byte, forward, twoPointers bool) {
	const n = 2
	e.raw(opLoop, typeEmpty)
	e.b = e.helpers.appendCharge(e.b, piece>>3, e.scratch)
	if !forward {
		e.get(n).i32(piece).raw(opI32Sub).set(n)
	}
	for local := uint32(0); local < 2; local++ {
		e.get(local)
		if !forward {
			e.get(n).raw(opI32Add)
		}
	}
	e.i32(piece).raw(op...)
	if forward {
		e.get(0).i32(piece).raw(opI32Add).set(0)
		if twoPointers {
			e.get(1).i32(piece).raw(opI32Add).set(1)
		}
		e.get(n).i32(piece).raw(opI32Sub).set(n)
	}
	e.get(n).i32(piece).raw(opI32GtU, opBrIf, 0, opEnd)
}

// types are the function types added to a module's own.
type types struct {
	first   int
	at      map[string]uint32
	added   int
	encoded []byte
}

func newTypes(m *module) *types { return &types{first: len(m.types), at: make(map[string]uint32)} }

// index returns the index of a function type, which it adds once.
func (t *types) index(params, results []byte) uint32 {
	key := string(params) + ">" + string(results)
	i, ok := t.at[key]
	if !ok {
		i = uint32(t.first + t.added)
		t.at[key] = i
		t.added++
		t.encoded = appendU32(append(t.encoded, typeFunc), uint32(len(params)))
		t.encoded = append(t.encoded, params...)
		t.encoded = appendU32(t.encoded, uint32(len(results)))
		t.encoded = append(t.encoded, results...)
	}
	return i
}

// appendBlock appends the type of a block that takes nothing.
func (t *types) appendBlock(b, results []byte) []byte {
	switch len(results) {
	case 0:
		return append(b, typeEmpty)
	case 1:
		return append(b, results[0])
	}
	return appendS64(b, int64(t.index(nil, results)))
}

func pages(n uint32) string { return strconv.FormatUint(uint64(n), 10) + " pages" }

func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// appendS64 appends a signed LEB128, of i32 and i64 constants alike.
func appendS64(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func appendName(b []byte, name string) []byte {
	return append(appendU32(b, uint32(len(name))), name...)
}
