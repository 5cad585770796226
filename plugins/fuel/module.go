package fuel

import (
	"bytes"
	"strings"
)

// Identifiers of sections.
const (
	secCustom = iota
	secType
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
	secDataCount
	secEnd
)

// sectionOrder is the order in which sections stand in a module.
var sectionOrder = [...]byte{
	secType, secImport, secFunction, secTable, secMemory, secGlobal, secExport,
	secStart, secElement, secDataCount, secCode, secData,
}

var sectionNames = [secEnd]string{
	"custom section", "type section", "import section", "function section", "table section",
	"memory section", "global section", "export section", "start section", "element section",
	"code section", "data section", "data count section",
}

const maxPages = 65536 // pages of 64 KiB in a memory of 32 bits

// section is where a section's content lies. For vectors items is where the
// first item begins, after the count.
type section struct {
	present   bool
	items     int
	end       int
	count     int
	functions []functionRef // function indexes in it, in order
}

// functionRef is an encoded function index that has to be rewritten.
type functionRef struct {
	at, end int
	index   uint32
}

type funcType struct {
	params, results []byte // views into the module
}

type table struct {
	refType  byte
	min, max uint32
	hasMax   bool
}

type memory struct {
	min, max uint32
	hasMax   bool
}

// module is what has to be known of a module to check and rewrite its code.
type module struct {
	bytes       []byte
	limits      Limits
	sections    [secEnd]section
	types       []funcType
	imports     []uint32          // type of each imported function
	exported    map[string]uint32 // functions by the names of their exports
	importNames []Import
	funcs       []uint32 // type of each defined function
	tables      []table
	memory      *memory
	globals     int
	elements    int
	data        []uint32 // length of each data segment
	nData       int      // from the data count section, -1 without
	bodies      []body
	names       []byte // content of the name section
}

// parse reads a module and checks everything but the bodies of its functions.
func parse(wasm []byte, lim Limits) (*module, error) {
	m := &module{bytes: wasm, limits: lim, nData: -1}
	r := reader{b: wasm, fn: -1, what: "module"}
	if len(wasm) > lim.ModuleBytes {
		r.failAt(lim.ModuleBytes, "module of %d bytes, at most %d are allowed", len(wasm), lim.ModuleBytes)
		return nil, r.err
	}
	if !bytes.HasPrefix(wasm, []byte("\x00asm\x01\x00\x00\x00")) {
		r.fail("not a WebAssembly module of version 1: it must begin with 00 61 73 6d 01 00 00 00")
		return nil, r.err
	}
	r.at = 8
	order := sectionOrder[:]
	for r.more() {
		start := r.at
		id := r.byte()
		if id >= secEnd {
			r.failAt(start, "unknown section %d, at most %d is known", id, secEnd-1)
			break
		}
		r.what = sectionNames[id]
		content := r.until(r.u32())
		if r.err != nil {
			break
		}
		if id == secCustom {
			m.custom(&content)
		} else {
			next := bytes.IndexByte(order, id)
			if next < 0 {
				r.failAt(start, "%s twice or after a section that it must precede", sectionNames[id])
				break
			}
			order = order[next+1:]
			m.section(id, &content)
			if content.err == nil && content.at < len(content.b) {
				content.fail("%s: %d bytes left over", content.what, len(content.b)-content.at)
			}
		}
		if content.err != nil {
			return nil, content.err
		}
	}
	r.what = "module"
	if len(m.bodies) != len(m.funcs) {
		r.fail("%d functions declared, %d bodies in the code section", len(m.funcs), len(m.bodies))
	}
	if m.nData >= 0 && m.nData != len(m.data) {
		r.fail("data count is %d, but there are %d data segments", m.nData, len(m.data))
	}
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

func (m *module) functions() int { return len(m.imports) + len(m.funcs) }

func (m *module) funcType(fn uint32) funcType {
	if int(fn) < len(m.imports) {
		return m.types[m.imports[fn]]
	}
	return m.types[m.funcs[int(fn)-len(m.imports)]]
}

func (m *module) custom(r *reader) {
	if name := r.name(); r.err == nil && string(name) == "name" && m.names == nil {
		m.names = r.b[r.at:]
	}
}

// section reads the section that id names.
func (m *module) section(id byte, r *reader) {
	s := &m.sections[id]
	s.present, s.end = true, len(r.b)
	lim := &m.limits
	each := func(limit int, items string, item func()) {
		s.count = r.count(limit, items)
		s.items = r.at
		for i := 0; i < s.count && r.err == nil; i++ {
			item()
		}
	}
	switch id {
	case secType:
		each(lim.Types, "types", func() { m.readType(r) })
	case secImport:
		each(lim.Imports, "imports", func() { m.readImport(r) })
	case secFunction:
		each(lim.Functions, "functions", func() {
			m.funcs = append(m.funcs, r.index(len(m.types), "type"))
		})
	case secTable:
		each(lim.Tables, "tables", func() { m.readTable(r) })
	case secMemory:
		each(1, "memories", func() { m.readMemory(r) })
	case secGlobal:
		each(lim.Globals, "globals", func() { m.readGlobal(r, s) })
	case secExport:
		seen := make(map[string]bool)
		m.exported = make(map[string]uint32)
		each(lim.Exports, "exports", func() { m.readExport(r, s, seen) })
	case secStart:
		s.items = r.at
		m.functionRef(r, s)
	case secElement:
		room := lim.ElementItems
		each(lim.Elements, "element segments", func() { m.readElement(r, s, &room) })
	case secDataCount:
		m.nData = int(r.u32())
		if r.err == nil && m.nData > lim.DataSegments {
			r.fail("%d data segments, at most %d are allowed", m.nData, lim.DataSegments)
		}
	case secCode:
		m.readCode(r, s)
	case secData:
		each(lim.DataSegments, "data segments", func() { m.readData(r) })
	}
}

func (m *module) readType(r *reader) {
	if form := r.byte(); r.err == nil && form != typeFunc {
		r.failAt(r.at-1, "type section: form 0x%02x, only functions (0x60) are known", form)
		return
	}
	list := func(limit int, items string) []byte {
		n := r.count(limit, items)
		start := r.at
		for i := 0; i < n && r.err == nil; i++ {
			r.valType()
		}
		return r.b[start:r.at:r.at]
	}
	t := funcType{params: list(m.limits.Params, "parameters"), results: list(m.limits.Results, "results")}
	m.types = append(m.types, t)
}

func (m *module) readImport(r *reader) {
	start := r.at
	from, name := r.name(), r.name()
	if r.err == nil && string(from) == HostModule {
		r.failAt(start, "import %q %q: that import module is reserved", from, name)
	}
	if kind := r.byte(); r.err == nil && kind != 0 {
		r.failAt(r.at-1, "import %q %q is not a function: memories, tables and globals cannot be imported", from, name)
	}
	m.imports = append(m.imports, r.index(len(m.types), "type"))
	m.importNames = append(m.importNames, Import{string(from), string(name)})
}

// readLimits reads the limits of a table or memory.
func (r *reader) readLimits() (lo, hi uint32, bounded bool) {
	flag := r.byte()
	if r.err == nil && flag > 1 {
		r.failAt(r.at-1, "%s: limits of kind 0x%02x, only 0 and 1 are known", r.what, flag)
	}
	lo = r.u32()
	if flag == 1 {
		if hi = r.u32(); r.err == nil && hi < lo {
			r.fail("%s: minimum %d is larger than maximum %d", r.what, lo, hi)
		}
	}
	return lo, hi, flag == 1
}

func (m *module) readTable(r *reader) {
	start := r.at
	t := table{refType: r.refType()}
	t.min, t.max, t.hasMax = r.readLimits()
	if r.err == nil && uint64(t.min) > uint64(m.limits.TableEntries) {
		r.failAt(start, "table of %d entries, at most %d are allowed", t.min, m.limits.TableEntries)
	}
	m.tables = append(m.tables, t)
}

func (m *module) readMemory(r *reader) {
	start := r.at
	var mem memory
	mem.min, mem.max, mem.hasMax = r.readLimits()
	if r.err == nil && max(mem.min, mem.max) > maxPages {
		r.failAt(start, "memory of %d pages, at most %d are possible", max(mem.min, mem.max), maxPages)
	}
	m.memory = &mem
}

func (m *module) readGlobal(r *reader, s *section) {
	r.valType()
	if mutable := r.byte(); r.err == nil && mutable > 1 {
		r.failAt(r.at-1, "global section: mutability 0x%02x, only 0 and 1 are known", mutable)
	}
	m.constExpr(r, s)
	m.globals++
}

// constExpr reads a constant expression: one constant and an end. global.get is
// not among them, since it may name imported globals only, and there are none.
func (m *module) constExpr(r *reader, s *section) {
	start := r.at
	switch op := r.byte(); op {
	case opI32Const:
		r.signed(32)
	case opI64Const:
		r.signed(64)
	case opF32Const:
		r.skip(4)
	case opF64Const:
		r.skip(8)
	case opRefNull:
		r.refType()
	case opRefFunc:
		m.functionRef(r, s)
	case opVector:
		if r.u32() != vectorConst {
			r.failAt(start, "%s: not a constant expression", r.what)
		}
		r.skip(16)
	default:
		r.failAt(start, "%s: instruction 0x%02x in a constant expression", r.what, op)
	}
	if end := r.byte(); r.err == nil && end != opEnd {
		r.failAt(r.at-1, "%s: constant expression goes on with 0x%02x, expected end", r.what, end)
	}
}

// functionRef reads a function index and keeps its place.
func (m *module) functionRef(r *reader, s *section) {
	start := r.at
	i := r.index(m.functions(), "function")
	if r.err == nil {
		s.functions = append(s.functions, functionRef{start, r.at, i})
	}
}

func (m *module) readExport(r *reader, s *section, seen map[string]bool) {
	start := r.at
	name := string(r.name())
	switch {
	case r.err != nil:
		return
	case seen[name]:
		r.failAt(start, "export %q twice", name)
	case strings.HasPrefix(name, reservedPrefix):
		r.failAt(start, "export %q: names beginning with %q are reserved", name, reservedPrefix)
	}
	seen[name] = true
	switch kind := r.byte(); kind {
	case 0:
		if m.functionRef(r, s); r.err == nil {
			m.exported[name] = s.functions[len(s.functions)-1].index
		}
	case 1:
		r.index(len(m.tables), "table")
	case 2:
		m.needMemory(r, r.u32())
	case 3:
		r.index(m.globals, "global")
	default:
		r.failAt(r.at-1, "export %q: unknown kind 0x%02x", name, kind)
	}
}

// needMemory fails unless memory i exists, which can be memory 0 only.
func (m *module) needMemory(r *reader, i uint32) {
	switch {
	case r.err != nil:
	case i != 0:
		r.fail("memory %d, only memory 0 is possible", i)
	case m.memory == nil:
		r.fail("memory 0, but the module has no memory")
	}
}

// readElement reads an element segment in one of its eight forms. Bit 0 of the
// flags says passive or declarative, bit 1 explicit table (or declarative), bit 2
// expressions in place of indexes.
func (m *module) readElement(r *reader, s *section, room *int) {
	start := r.at
	flags := r.u32()
	if r.err == nil && flags > 7 {
		r.failAt(start, "element section: unknown flags %d", flags)
		return
	}
	if flags&1 == 0 {
		if flags&2 != 0 {
			r.index(len(m.tables), "table")
		} else if r.err == nil && len(m.tables) == 0 {
			r.fail("element segment for table 0, but the module has no table")
		}
		m.constExpr(r, s)
	}
	expressions := flags&4 != 0
	if flags&3 != 0 {
		if expressions {
			r.refType()
		} else if kind := r.byte(); r.err == nil && kind != 0 {
			r.failAt(r.at-1, "element section: kind 0x%02x, only functions (0) are known", kind)
		}
	}
	n := r.count(*room, "items in element segments")
	*room -= n
	for i := 0; i < n && r.err == nil; i++ {
		if expressions {
			m.constExpr(r, s)
		} else {
			m.functionRef(r, s)
		}
	}
	m.elements++
}

func (m *module) readData(r *reader) {
	start := r.at
	flags := r.u32()
	switch flags {
	case 0, 1:
	case 2:
		m.needMemory(r, r.u32())
	default:
		r.failAt(start, "data section: unknown flags %d", flags)
	}
	if flags != 1 {
		m.needMemory(r, 0)
		m.constExpr(r, &m.sections[secData])
	}
	n := r.u32()
	r.skip(n)
	m.data = append(m.data, n)
}

// readCode finds the bodies and their locals; check walks through them later,
// when the data segments, which stand behind, are known as well.
func (m *module) readCode(r *reader, s *section) {
	s.count = r.count(m.limits.Functions, "function bodies")
	s.items = r.at
	if r.err == nil && s.count != len(m.funcs) {
		r.fail("%d functions declared, %d bodies in the code section", len(m.funcs), s.count)
	}
	for i := 0; i < s.count && r.err == nil; i++ {
		r.fn = len(m.imports) + i
		start := r.at
		content := r.until(r.u32())
		if r.err == nil && len(content.b)-content.at > m.limits.BodyBytes {
			r.failAt(start, "body of %d bytes, at most %d are allowed", len(content.b)-content.at, m.limits.BodyBytes)
		}
		if r.err != nil {
			return
		}
		b := body{fn: uint32(r.fn), locals: len(m.types[m.funcs[i]].params), start: content.at, end: len(content.b)}
		b.groups = content.count(m.limits.Locals, "groups of locals")
		b.groupsAt = content.at
		for g := 0; g < b.groups && content.err == nil; g++ {
			at := content.at
			n := content.u32()
			content.valType()
			if content.err == nil && uint64(n)+uint64(b.locals) > uint64(m.limits.Locals) {
				content.failAt(at, "%d parameters and locals, at most %d are allowed", uint64(n)+uint64(b.locals), m.limits.Locals)
			}
			b.locals += int(n)
		}
		if content.err != nil {
			r.err = content.err
			return
		}
		b.code = content.at
		m.bodies = append(m.bodies, b)
	}
	r.fn = -1
}
