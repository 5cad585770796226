package fuel

import "slices"

// Check reports why a module would be refused by [Instrument] with the same
// limits, as an [*Error], or nil. It does not validate types; compiling the
// result of Instrument does.
func Check(wasm []byte, lim Limits) error {
	lim = lim.withDefaults()
	m, err := parse(wasm, lim)
	if err != nil {
		return err
	}
	w := walk{m: m, helpers: newHelpers(m)}
	for _, b := range m.bodies {
		if err := w.function(b); err != nil {
			return err
		}
	}
	return nil
}

// Instrument returns the module with fuel and depth accounting added, in memory
// of its own. It fails with an [*Error] if the module is malformed, exceeds a
// limit, or uses a reserved name; a module that is already instrumented is
// refused for the last reason. See the package comment for what is added.
func Instrument(wasm []byte, opt Options) ([]byte, error) {
	opt = opt.withDefaults()
	m, err := parse(wasm, opt.Limits)
	if err != nil {
		return nil, err
	}
	if m.memory != nil && m.memory.min > opt.MemoryPages {
		return nil, &Error{Offset: m.sections[secMemory].items, Func: -1, Reason: "memory begins with " +
			pages(m.memory.min) + ", at most " + pages(opt.MemoryPages) + " are allowed"}
	}
	w := &writer{m: m, opt: opt, helpers: newHelpers(m), types: newTypes(m), entry: m.findEntry(opt)}
	return w.module()
}

// writer puts the rewritten module together.
type writer struct {
	m       *module
	opt     Options
	helpers *helpers
	types   *types
	entry   *entry // or nil
	out     []byte
}

// shift returns where the function i of the original stands in the result: the
// import of refill comes after the guest's imports.
func (m *module) shift(i uint32) uint32 {
	if int(i) < len(m.imports) {
		return i
	}
	return i + 1
}

func (m *module) refill() uint32      { return uint32(len(m.imports)) }
func (m *module) fuelGlobal() uint32  { return uint32(m.globals) }
func (m *module) depthGlobal() uint32 { return uint32(m.globals) + 1 }

func (w *writer) module() ([]byte, error) {
	m := w.m
	// Code comes first: it decides which types and helpers are needed.
	refillType := w.types.index([]byte{typeI64}, []byte{typeI64})
	code, err := w.code()
	if err != nil {
		return nil, err
	}
	helperTypes := make([]uint32, len(w.helpers.keys))
	for i, key := range w.helpers.keys {
		helperTypes[i] = w.types.index(key.params(), key.results())
		b := w.helpers.body(key, w.opt.MemoryPages, m)
		code = appendU32(code, uint32(len(b)))
		code = append(code, b...)
	}
	if w.entry != nil {
		params, results := w.entry.functionType(m)
		helperTypes = append(helperTypes, w.types.index(params, results))
		b := w.entry.body(m)
		code = append(appendU32(code, uint32(len(b))), b...)
	}

	w.out = make([]byte, 0, len(m.bytes)+len(m.bytes)/2+1024)
	w.out = append(w.out, m.bytes[:8]...)
	w.vector(secType, w.types.added, w.types.encoded)

	var b []byte
	b = appendName(b, HostModule)
	b = appendName(b, RefillName)
	b = append(b, 0)
	b = appendU32(b, refillType)
	w.vector(secImport, 1, b)

	b = nil
	for _, t := range helperTypes {
		b = appendU32(b, t)
	}
	w.vector(secFunction, len(helperTypes), b)
	w.tables()
	w.memory()

	mutableZero := []byte{typeI64, 1, opI64Const, 0, opEnd}
	globals := slices.Concat(mutableZero, mutableZero)
	b = appendName(nil, GlobalName)
	b = append(b, 3)
	b = appendU32(b, m.fuelGlobal())
	if w.entry == nil {
		w.vector(secGlobal, 2, globals)
		w.vector(secExport, 1, b)
	} else {
		zero := []byte{typeI32, 1, opI32Const, 0, opEnd} // KeptNone, ForeseenNone
		w.vector(secGlobal, 2+entryGlobals, slices.Concat(globals, zero, mutableZero, zero, mutableZero, zero))
		b = append(appendName(b, KeptName), 3)
		b = appendU32(b, m.keptGlobal())
		b = append(appendName(b, ForeseenName), 3)
		b = appendU32(b, m.foreseenGlobal())
		b = append(appendName(b, EntryName), 0)
		b = appendU32(b, m.helperFunction(uint32(len(w.helpers.keys))))
		w.vector(secExport, 4, b)
	}

	w.copied(secStart)
	w.vector(secElement, 0, nil)
	if m.nData >= 0 {
		w.section(secDataCount, appendU32(nil, uint32(m.nData)))
	}
	b = appendU32(nil, uint32(len(m.bodies)+len(helperTypes)))
	w.section(secCode, append(b, code...))
	w.vector(secData, 0, nil)
	if names := m.shiftedNames(); names != nil {
		w.section(secCustom, names)
	}
	return w.out, nil
}

func (w *writer) section(id byte, content []byte) {
	w.out = append(w.out, id)
	w.out = appendU32(w.out, uint32(len(content)))
	w.out = append(w.out, content...)
}

// vector writes a section of the original with items added to its end.
func (w *writer) vector(id byte, added int, items []byte) {
	s := &w.m.sections[id]
	if s.count+added == 0 && !s.present {
		return
	}
	b := appendU32(nil, uint32(s.count+added))
	b = w.appendShifted(b, s)
	w.section(id, append(b, items...))
}

// copied writes a section that is no vector, if the original has it.
func (w *writer) copied(id byte) {
	if s := &w.m.sections[id]; s.present {
		w.section(id, w.appendShifted(nil, s))
	}
}

// appendShifted appends a section's items with their function indexes shifted.
func (w *writer) appendShifted(b []byte, s *section) []byte {
	at := s.items
	for _, ref := range s.functions {
		b = append(b, w.m.bytes[at:ref.at]...)
		b = appendU32(b, w.m.shift(ref.index))
		at = ref.end
	}
	return append(b, w.m.bytes[at:s.end]...)
}

// tables writes the tables with a maximum each, so that table.grow is bounded.
func (w *writer) tables() {
	if len(w.m.tables) == 0 {
		return
	}
	b := appendU32(nil, uint32(len(w.m.tables)))
	for _, t := range w.m.tables {
		most := uint32(w.m.limits.TableEntries)
		if t.hasMax {
			most = min(most, t.max)
		}
		b = append(b, t.refType, 1)
		b = appendU32(b, t.min)
		b = appendU32(b, most)
	}
	w.section(secTable, b)
}

// memory writes the memory with a maximum.
func (w *writer) memory() {
	if w.m.memory == nil {
		return
	}
	b := []byte{1, 1}
	b = appendU32(b, w.m.memory.min)
	w.section(secMemory, appendU32(b, w.m.maxPages(w.opt.MemoryPages)))
}

// maxPages returns the largest number of pages memory may have in the result.
func (m *module) maxPages(limit uint32) uint32 {
	if m.memory != nil && m.memory.hasMax {
		return min(m.memory.max, limit)
	}
	return limit
}

// code returns the rewritten bodies, each with its length before it.
func (w *writer) code() ([]byte, error) {
	walk := walk{m: w.m, helpers: w.helpers, exact: w.opt.exact, entry: w.entry}
	out := make([]byte, 0, 2*(w.m.sections[secCode].end-w.m.sections[secCode].items))
	var b []byte
	for _, original := range w.m.bodies {
		if err := walk.function(original); err != nil {
			return nil, err
		}
		b = w.body(b[:0], &walk)
		out = appendU32(out, uint32(len(b)))
		out = append(out, b...)
	}
	return out, nil
}

// body appends the body that walk has just been through, with its edits made.
//
// A function that calls others is put into a block, after which the depth is
// counted down again; its returns become branches to the block's end. Other
// branches to the function's end mean the block then without being changed.
func (w *writer) body(b []byte, walk *walk) []byte {
	m, src := w.m, walk.b
	scratch := uint32(src.locals)
	weight := int64(1 + src.locals/64)
	groups, inlined := src.groups+1+len(walk.inlining.locals), scratch+1
	if walk.foresee {
		groups++
		inlined += 2
	}
	b = appendU32(b, uint32(groups))
	b = append(b, m.bytes[src.groupsAt:src.code]...)
	b = append(b, 1, typeI64)
	if walk.foresee {
		b = append(b, 2, typeI32)
	}
	for _, t := range walk.inlining.locals {
		b = append(b, 1, t)
	}
	if walk.nested {
		b = appendAdd(b, m.depthGlobal(), scratch, weight)
		b = append(b, opLocalGet)
		b = appendU32(b, scratch)
		b = append(b, opI64Const)
		b = appendS64(b, int64(w.opt.Depth))
		b = append(b, opI64GtU, opIf, typeEmpty, opCall)
		b = appendU32(b, w.helpers.function(helperOverflow))
		b = append(b, opEnd, opBlock)
		b = w.types.appendBlock(b, m.funcType(src.fn).results)
	}
	at := src.code
	for _, e := range walk.edits {
		if e.kind == editReturn && !walk.nested {
			continue
		}
		b = append(b, m.bytes[at:e.at]...)
		at = e.end
		switch e.kind {
		case editPoint:
			b = w.helpers.appendCharge(b, int64(walk.points[e.value].cost), scratch)
		case editFunction:
			b = appendU32(b, e.value)
		case editReturn:
			b = append(b, opBr)
			b = appendU32(b, e.value)
		case editHelper:
			b = append(b, opCall)
			b = appendU32(b, m.helperFunction(e.value))
		case editAnswered:
			b = w.appendHostCall(b, e.value, scratch)
		case editInline:
			b = w.appendInlined(b, walk.inlining.sites[e.value], inlined, scratch)
		case editLabel:
			b = appendU32(b, e.value)
		case editGet:
			b = appendU32(append(b, opLocalGet), e.value)
		case editUnless:
			b = appendU32(append(b, opI32Eqz, opBrIf), e.value)
		}
	}
	b = append(b, m.bytes[at:src.end]...) // ends with the end of the function, or of the block
	if walk.nested {
		b = appendAdd(b, m.depthGlobal(), scratch, -weight)
		b = append(b, opEnd)
	}
	return b
}
