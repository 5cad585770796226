package fuel

// A call of a host function leaves a guest of most languages through a small function
// without branches, which does nothing but hand over what it was given: Go's loads the
// parameters from its stack, and stores the result there. Where such a function is called
// its code is put in place of the call: a frame of wazero's costs more than what is in it.
// The function itself stays, for whoever calls it through a table.

// Bounds of inlining, so that what is added is a small part of what a module may be.
const (
	maxInlineBytes  = 96      // of a function that is inlined
	maxInlineLocals = 16      // its parameters and locals
	maxInlineSites  = 32      // calls that are replaced in a function
	maxInlined      = 1 << 16 // bytes of code in all functions
)

// small is a function that is inlined.
type small struct {
	body   body
	locals []byte // types of its parameters and locals
	params int
	cost   int
	calls  uint32 // the import that it calls
}

// site is a call that is replaced.
type site struct {
	fn    *small
	first int // its first local, among those that are added for inlined functions
}

// inlining is what the walk knows of small functions.
type inlining struct {
	known  map[uint32]*small // of functions that are called and short; nil: not inlined
	bytes  int
	sites  []site // of the function that the walk is in
	locals []byte // types of the locals that are added for them
}

// inline returns the index of the site of a call of fn, or false if it stays a call.
func (w *walk) inline(fn uint32) (int, bool) {
	in := &w.inlining
	if in.bytes > maxInlined || len(in.sites) >= maxInlineSites {
		return 0, false
	}
	b := w.m.bodies[int(fn)-len(w.m.imports)]
	if b.end-b.code > maxInlineBytes || b.locals > maxInlineLocals {
		return 0, false
	}
	s, ok := in.known[fn]
	if !ok {
		s = w.m.small(b)
		if in.known == nil {
			in.known = make(map[uint32]*small)
		}
		in.known[fn] = s
	}
	if s == nil {
		return 0, false
	}
	first := len(in.locals)
	for i := range in.sites {
		if in.sites[i].fn == s { // it has its locals already
			first = in.sites[i].first
		}
	}
	if first == len(in.locals) {
		in.locals = append(in.locals, s.locals...)
	}
	in.bytes += b.end - b.code
	in.sites = append(in.sites, site{s, first})
	return len(in.sites) - 1, true
}

// small returns what is to be known of a function to inline it, or nil if it has
// branches, calls anything but one import, reads a local that it has not set, or is
// malformed, as the walk through it will say.
func (m *module) small(b body) *small {
	s := &small{body: b, params: len(m.funcType(b.fn).params), cost: 1}
	s.locals = append(s.locals, m.funcType(b.fn).params...)
	groups := reader{b: m.bytes[:b.end], at: b.groupsAt}
	for range b.groups {
		for n := groups.u32(); n > 0; n-- {
			s.locals = append(s.locals, groups.b[groups.at])
		}
		groups.at++
	}
	var set [maxInlineLocals]bool
	calls := 0
	ok := m.straight(b, func(op byte, _, _ int, index uint32) bool {
		switch op {
		case opLocalGet:
			if int(index) >= len(s.locals) || int(index) >= s.params && !set[index] {
				return false
			}
		case opLocalSet, opLocalTee:
			if int(index) >= len(s.locals) {
				return false
			}
			set[index] = true
		case opGlobalGet, opGlobalSet:
			if int(index) >= m.globals {
				return false
			}
		case opCall:
			if int(index) >= len(m.imports) {
				return false
			}
			calls++
			s.calls = index
			s.cost += costHostCall
			return true
		case opUnreachable:
			return false
		}
		if accessOp(op) && m.memory == nil {
			return false
		}
		s.cost += cost(op)
		return true
	})
	if !ok || calls != 1 {
		return nil
	}
	return s
}

// straight visits the instructions of a function up to its end or a return, if it has
// no others than plain ones, constants, accesses of memory, locals and globals, and calls.
// index is that of a local, global or function. It returns whether that is so and visit
// always says true.
func (m *module) straight(b body, visit func(op byte, start, end int, index uint32) bool) bool {
	r := reader{b: m.bytes[:b.end], at: b.code}
	for r.err == nil {
		start, index := r.at, uint32(0)
		op := r.byte()
		switch {
		case op == opEnd && r.at == b.end, op == opReturn:
			return r.err == nil
		case plainOp(op):
		case accessOp(op):
			if r.u32() > 4 {
				return false
			}
			r.u32()
		case op == opLocalGet, op == opLocalSet, op == opLocalTee, op == opGlobalGet, op == opGlobalSet, op == opCall:
			index = r.u32()
		case op == opI32Const:
			r.signed(32)
		case op == opI64Const:
			r.signed(64)
		case op == opF32Const:
			r.skip(4)
		case op == opF64Const:
			r.skip(8)
		default:
			return false
		}
		if r.err != nil || !visit(op, start, r.at, index) {
			return false
		}
	}
	return false
}

// appendInlined appends a function in place of its call. locals is the first local of
// those that are added for inlined functions; scratch is as in appendKept, and the two
// after it as in appendForeseen.
func (w *writer) appendInlined(b []byte, s site, locals, scratch uint32) []byte {
	m, first := w.m, locals+uint32(s.first)
	e := &emitter{b: b}
	for i := s.fn.params; i > 0; i-- {
		e.set(first + uint32(i) - 1)
	}
	// A return may leave more on the stack than is returned: a branch does not.
	e.raw(opBlock)
	e.b = w.types.appendBlock(e.b, m.funcType(s.fn.body.fn).results)
	m.straight(s.fn.body, func(op byte, start, end int, index uint32) bool {
		switch op {
		case opLocalGet, opLocalSet, opLocalTee:
			e.raw(op).u32(first + index)
		case opCall:
			e.b = w.appendHostCall(e.b, index, scratch)
		default:
			e.raw(m.bytes[start:end]...)
		}
		return true
	})
	return e.raw(opBr, 0, opEnd).b
}

// appendHostCall appends a call of an import, or what answers it.
func (w *writer) appendHostCall(b []byte, fn, scratch uint32) []byte {
	switch {
	case !w.entry.answers(fn):
		return appendU32(append(b, opCall), fn)
	case w.entry.foreseen[fn]:
		return w.m.appendForeseen(b, fn, scratch+1)
	}
	return w.m.appendKept(b, fn, scratch)
}
