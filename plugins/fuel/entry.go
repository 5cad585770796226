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

// maxEntry is the most parameters and results that a function may have to be an
// Options.Entry: there must be room for those that are added.
const maxEntry = 8

// entry is what is added for Options.Entry: the globals that are passed with a
// call, and the function that passes them.
//
//	EntryName(params..., fuel i64) -> (results..., fuel i64, kept i32, argument i64)
//
// A call of a guest costs the host tens of instructions for each global that it
// reads or sets by itself, and hundreds for each call of a function of its own.
type entry struct {
	fn   uint32 // of the original
	kept []bool // which imports are Options.Kept
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
	e := &entry{fn: fn, kept: make([]bool, len(m.imports))}
	for i, name := range m.importNames {
		t := m.funcType(uint32(i))
		e.kept[i] = name == opt.Kept && string(t.params) == string([]byte{typeI64}) && len(t.results) == 0
	}
	return e
}

func (m *module) keptGlobal() uint32     { return uint32(m.globals) + 2 }
func (m *module) argumentGlobal() uint32 { return uint32(m.globals) + 3 }

// functionType is the type of the function that is added.
func (e *entry) functionType(m *module) (params, results []byte) {
	t := m.funcType(e.fn)
	return append(slices.Clone(t.params), typeI64), append(slices.Clone(t.results), typeI64, typeI32, typeI64)
}

// body returns the body of the function that is added, with its locals.
func (e *entry) body(m *module) []byte {
	params := uint32(len(m.funcType(e.fn).params))
	w := &emitter{}
	w.raw(0).get(params).raw(opGlobalSet).u32(m.fuelGlobal())
	w.i32(KeptAwait).raw(opGlobalSet).u32(m.keptGlobal())
	for i := range params {
		w.get(i)
	}
	w.raw(opCall).u32(m.shift(e.fn))
	w.raw(opGlobalGet).u32(m.fuelGlobal())
	w.raw(opGlobalGet).u32(m.keptGlobal())
	w.i32(KeptNone).raw(opGlobalSet).u32(m.keptGlobal())
	w.raw(opGlobalGet).u32(m.argumentGlobal())
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
