package fuel

import "slices"

// Import names an imported function.
type Import struct{ Module, Name string }

// What the export [EntryName] returns of [Options.Kept].
const (
	KeptNone   = 0 // none was kept, and none will be
	KeptAwait  = 1 // none was kept so far
	KeptFilled = 2 // one was kept
)

// What is known of [Options.Foreseen], while the export [EntryName] runs.
const (
	ForeseenNone     = 0 // the host has foreseen nothing, or was asked for something else since
	ForeseenAwait    = 1 // the call that was foreseen may still come
	ForeseenAnswered = 2 // it came, and was answered in the guest
)

// maxEntry is the most parameters and results that a function may have to be an
// Options.Entry: there must be room for those that are added.
const maxEntry = 8

// entry is what is added for Options.Entry: the globals that are passed with a
// call, and the function that passes them.
//
//	EntryName(params..., fuel i64, foreseen i32, asked i64, answer i32) ->
//		(results..., fuel i64, kept i32, argument i64, foreseen i32)
//
// asked are the parameters of the call that is foreseen, the second times 2^32, and answer
// its result.
//
// A call of a guest costs the host tens of instructions for each global that it
// reads or sets by itself, and hundreds for each call of a function of its own.
type entry struct {
	fn       uint32 // of the original
	kept     []bool // which imports are Options.Kept
	foreseen []bool // which are Options.Foreseen
}

// answers tells whether calls of an import may be answered in the guest.
func (e *entry) answers(fn uint32) bool {
	return e != nil && int(fn) < len(e.kept) && (e.kept[fn] || e.foreseen[fn])
}

// findEntry returns what is to be added for the options, or nil if the module has
// no such function.
func (m *module) findEntry(opt Options) *entry {
	fn, ok := m.exported[opt.Entry]
	if !ok {
		return nil
	}
	if t := m.funcType(fn); len(t.params) > maxEntry || len(t.results) > maxEntry {
		return nil
	}
	e := &entry{fn: fn, kept: make([]bool, len(m.imports)), foreseen: make([]bool, len(m.imports))}
	for i, name := range m.importNames {
		t := m.funcType(uint32(i))
		e.kept[i] = name == opt.Kept && string(t.params) == string([]byte{typeI64}) && len(t.results) == 0
		e.foreseen[i] = name == opt.Foreseen && string(t.params) == string([]byte{typeI32, typeI32}) &&
			string(t.results) == string([]byte{typeI32})
	}
	return e
}

// The globals that are added for an entry, beside those of fuel and depth.
func (m *module) keptGlobal() uint32     { return uint32(m.globals) + 2 }
func (m *module) argumentGlobal() uint32 { return uint32(m.globals) + 3 }
func (m *module) foreseenGlobal() uint32 { return uint32(m.globals) + 4 }
func (m *module) askedGlobal() uint32    { return uint32(m.globals) + 5 }
func (m *module) answerGlobal() uint32   { return uint32(m.globals) + 6 }

const entryGlobals = 5

// functionType is the type of the function that is added.
func (e *entry) functionType(m *module) (params, results []byte) {
	t := m.funcType(e.fn)
	return append(slices.Clone(t.params), typeI64, typeI32, typeI64, typeI32), append(slices.Clone(t.results), typeI64, typeI32, typeI64, typeI32)
}

// body returns the body of the function that is added, with its locals.
func (e *entry) body(m *module) []byte {
	params := uint32(len(m.funcType(e.fn).params))
	w := &emitter{}
	w.raw(0).get(params).raw(opGlobalSet).u32(m.fuelGlobal())
	w.get(params + 1).raw(opGlobalSet).u32(m.foreseenGlobal())
	w.get(params + 2).raw(opGlobalSet).u32(m.askedGlobal())
	w.get(params + 3).raw(opGlobalSet).u32(m.answerGlobal())
	w.i32(KeptAwait).raw(opGlobalSet).u32(m.keptGlobal())
	for i := range params {
		w.get(i)
	}
	w.raw(opCall).u32(m.shift(e.fn))
	w.raw(opGlobalGet).u32(m.fuelGlobal())
	w.raw(opGlobalGet).u32(m.keptGlobal())
	w.i32(KeptNone).raw(opGlobalSet).u32(m.keptGlobal())
	w.raw(opGlobalGet).u32(m.argumentGlobal())
	w.raw(opGlobalGet).u32(m.foreseenGlobal())
	w.i32(ForeseenNone).raw(opGlobalSet).u32(m.foreseenGlobal())
	return w.raw(opEnd).b
}

// appendKept appends a call of the import fn whose argument is kept if it may be.
// scratch is a local of type i64.
func (m *module) appendKept(b []byte, fn, scratch uint32) []byte {
	w := &emitter{b: b}
	w.set(scratch).raw(opGlobalGet).u32(m.keptGlobal()).i32(KeptAwait).raw(opI32Eq, opIf, typeEmpty)
	w.get(scratch).raw(opGlobalSet).u32(m.argumentGlobal())
	w.i32(KeptFilled).raw(opGlobalSet).u32(m.keptGlobal())
	w.raw(opElse).get(scratch).raw(opCall).u32(fn)
	return w.raw(opEnd).b
}

// appendForeseen appends a call of the import fn that is answered here if it was
// foreseen. Its arguments go to two locals of type i32, the first of which is given.
func (m *module) appendForeseen(b []byte, fn, first uint32) []byte {
	w := &emitter{b: b}
	w.set(first + 1).set(first).raw(opGlobalGet).u32(m.foreseenGlobal()).i32(ForeseenAwait).raw(opI32Eq)
	w.wide(first).wide(first+1).i64(32).raw(opI64Shl, opI64Or).raw(opGlobalGet).u32(m.askedGlobal()).raw(opI64Eq, opI32And)
	w.raw(opIf, typeI32)
	w.i32(ForeseenAnswered).raw(opGlobalSet).u32(m.foreseenGlobal()).raw(opGlobalGet).u32(m.answerGlobal())
	w.raw(opElse).get(first).get(first + 1).raw(opCall).u32(fn)
	return w.raw(opEnd).b
}
