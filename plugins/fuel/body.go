package fuel

// body is a function's body in the module, and what is to be changed in it.
type body struct {
	fn       uint32
	locals   int // parameters and locals
	groups   int // entries of the list of locals
	groupsAt int // where the first of them begins
	start    int // first byte, the count of groups
	code     int // first instruction
	end      int // after the last end
}

// Bounds of charging, in units.
const (
	// maxRun is the most that runs without a check.
	maxRun = 4096
	// maxSkipped is the most that is charged to one point for code that a
	// branch may skip.
	maxSkipped = 64
	// maxAfterCall is the most that runs without a check after a call returns.
	// Otherwise the returns from deep recursion would add up.
	maxAfterCall = 256
)

// point is a place where fuel is charged and checked, for itself and for what
// follows until another point takes over. A point charges only code that it
// dominates within one turn of the innermost loop: what stands after it in its
// own block, and the blocks in there that have no point of their own.
type point struct {
	at       int
	cost     int
	branches bool // a branch may skip what is charged from now on
	skipped  int  // charged since then
}

// edit is a change of the code. at never decreases from one to the next.
type edit struct {
	at, end int // the bytes that are replaced; nothing is where at == end
	kind    editKind
	value   uint32
}

type editKind byte

const (
	editPoint    editKind = iota // charge for points[value]
	editFunction                 // an index of a function: value
	editReturn                   // return becomes a branch to label value, if calls are counted
	editHelper                   // a call of helper value
	editAnswered                 // a call of import value, an Options.Kept or Options.Foreseen
	editInline                   // a call that is site value
	editLabel                    // a label: value
	editGet                      // local value is put on the stack
	editUnless                   // a branch to label value, unless what is on the stack is other than 0
)

// frame is a block that the walk is in.
type frame struct {
	op       byte // opBlock, opLoop, opIf, opElse; opBlock for the function
	point    int  // charges the instructions that come next
	branches bool // there was a branch within
	entry    int  // units since the last check on entry to an if
	join     int  // largest number of units since the last check, of the branches to the end
	meets    meets

	serial   uint32 // among all blocks of the function
	dispatch int    // one more than the index of the loop's walk.dispatches; 0: none
}

// walk checks the code of one function after the other and plans its edits.
// Its slices are used again for the next function.
type walk struct {
	m       *module
	helpers *helpers
	exact   bool   // see Options
	entry   *entry // or nil
	r       reader
	b       body
	frames  []frame
	points  []point
	edits   []edit
	run     int // most units on a path from the last check to here
	blocks  int
	loops   int
	targets int
	tables  int // targets of all functions so far
	flow    flow
	nested  bool // calls functions that may call this one again
	foresee bool // calls an Options.Foreseen, and has the locals for its arguments
	serial  uint32
	jumps   jumps

	inlining inlining
}

// function walks through b.
func (w *walk) function(b body) error {
	w.b = b
	w.r = reader{b: w.m.bytes[:b.end], at: b.code, fn: int(b.fn), what: "code"}
	w.frames, w.points, w.edits = w.frames[:0], w.points[:0], w.edits[:0]
	w.run, w.blocks, w.loops, w.targets, w.nested, w.foresee = 0, 0, 0, 0, false, false
	w.flow.depth, w.serial = 0, 0
	w.jumps.reset()
	w.inlining.sites, w.inlining.locals = w.inlining.sites[:0], w.inlining.locals[:0]
	w.frames = append(w.frames, frame{op: opBlock})
	w.newPoint(b.code)
	for len(w.frames) > 0 && w.r.err == nil {
		w.instruction()
	}
	if w.r.err == nil && w.r.at != b.end {
		w.r.fail("%d bytes after the end of the function", b.end-w.r.at)
	}
	// Every check is an if, so the points are blocks for the compiler.
	if n := w.blocks + len(w.points); w.r.err == nil && n*b.locals > w.m.limits.BlockLocals {
		w.r.failAt(b.code, "%d blocks and checks times %d locals, at most %d are allowed", n, b.locals, w.m.limits.BlockLocals)
	}
	// A compiler has each local live through each loop: its time grows with
	// the square of this.
	if w.r.err == nil && w.loops*b.locals > w.m.limits.LoopLocals {
		w.r.failAt(b.code, "%d loops times %d locals, at most %d are allowed", w.loops, b.locals, w.m.limits.LoopLocals)
	}
	if w.r.err == nil && w.flow.steps > w.m.limits.FlowSteps {
		w.r.failAt(b.code, "a compiler takes %d steps through the blocks of this function and those before it, at most %d are allowed; a function of very many blocks must be divided", w.flow.steps, w.m.limits.FlowSteps)
	}
	if w.r.err != nil {
		return w.r.err
	}
	return nil
}

func (w *walk) top() *frame { return &w.frames[len(w.frames)-1] }

// newPoint makes a point at the given offset, which the innermost block's next
// instructions are charged to.
func (w *walk) newPoint(at int) {
	w.edits = append(w.edits, edit{at: at, end: at, kind: editPoint, value: uint32(len(w.points))})
	w.top().point = len(w.points)
	w.points = append(w.points, point{at: at})
	w.flow.check()
	w.run = 0
}

// charge books units for the instruction at the given offset.
func (w *walk) charge(at, units int) {
	p := &w.points[w.top().point]
	if units > 0 && (w.exact || w.run+units > maxRun || p.cost+units > maxRun || p.branches && p.skipped+units > maxSkipped) {
		w.newPoint(at)
		p = &w.points[len(w.points)-1]
	}
	p.cost += units
	if p.branches {
		p.skipped += units
	}
	w.run += units
}

// branch notes that control may leave here for the end or the head of the block
// that is depth blocks out.
// between is how many blocks a compiler puts on the way.
func (w *walk) branch(depth uint32, between int) {
	target := &w.frames[len(w.frames)-1-int(depth)]
	w.flow.branch(target.op, &target.meets, between)
	if target.op != opLoop { // a loop's head has a check of its own
		target.join = max(target.join, w.run)
	}
}

// diverge notes that what follows in this block may be skipped.
func (w *walk) diverge() {
	f := w.top()
	f.branches = true
	w.points[f.point].branches = true
}

// returned notes that a function ran here, the end of which had no check.
func (w *walk) returned() { w.run = max(w.run, maxRun-maxAfterCall) }

func (w *walk) label() uint32 {
	start := w.r.at
	d := w.r.u32()
	if w.r.err == nil && uint64(d) >= uint64(len(w.frames)) {
		w.r.failAt(start, "label %d, but only %d blocks are open", d, len(w.frames))
		return 0
	}
	return d
}

// enter opens a block whose instruction stands at the given offset.
func (w *walk) enter(at int, op byte) {
	start := w.r.at
	if w.r.at < len(w.r.b) && (w.r.b[w.r.at] == typeEmpty || isValType(w.r.b[w.r.at])) {
		w.r.at++
	} else if t := w.r.signed(33); w.r.err == nil {
		switch {
		case t < 0:
			w.r.failAt(start, "unknown block type %d", t)
		case t >= int64(len(w.m.types)):
			w.r.failAt(start, "type %d, but the module has %d", t, len(w.m.types))
		case len(w.m.types[t].params) > w.m.limits.Results:
			w.r.failAt(start, "block with %d parameters, at most %d are allowed", len(w.m.types[t].params), w.m.limits.Results)
		}
	}
	if w.r.err != nil { // the code may have ended there
		return
	}
	w.blocks++
	if len(w.frames) > w.m.limits.Nesting {
		w.r.failAt(start, "blocks nested deeper than %d", w.m.limits.Nesting)
		return
	}
	parent := *w.top()
	w.serial++
	w.frames = append(w.frames, frame{op: op, point: parent.point, entry: w.run, serial: w.serial})
	w.flow.open(op, &w.top().meets)
	if w.r.b[start] == typeEmpty {
		w.headEntered(at, op)
	}
	switch op {
	case opLoop:
		w.loops++
		w.newPoint(w.r.at)
		w.charge(w.r.at, 1)
	case opIf:
		w.diverge()
	}
}

func (w *walk) leave() {
	f := *w.top()
	w.flow.close(f.op, &f.meets)
	w.frames = w.frames[:len(w.frames)-1]
	if f.op == opIf {
		f.join = max(f.join, f.entry) // without else: the way past it
	}
	w.run = max(w.run, f.join)
	if len(w.frames) > 0 && f.branches {
		w.diverge()
	}
}

// instruction reads, checks and charges one instruction.
func (w *walk) instruction() {
	r := &w.r
	at := r.at
	op := r.byte()
	if r.err != nil {
		return
	}
	if plainOp(op) {
		w.charge(at, cost(op))
		switch op {
		case opReturn:
			w.edits = append(w.edits, edit{at, r.at, editReturn, uint32(len(w.frames) - 1)})
			w.branch(uint32(len(w.frames)-1), 0)
			w.flow.end()
			w.diverge()
		case opUnreachable:
			w.flow.end()
			w.diverge()
		}
		return
	}
	if accessOp(op) {
		w.access()
		w.charge(at, cost(op))
		return
	}
	switch op {
	case opBlock, opLoop, opIf:
		w.charge(at, cost(op))
		w.enter(at, op)
	case opElse:
		f := w.top()
		if f.op != opIf {
			r.failAt(at, "else outside of an if")
			return
		}
		w.flow.arm(&f.meets)
		f.op = opElse
		f.join = max(f.join, w.run)
		w.run = f.entry
		// The point of the first arm does not dominate the second.
		f.point = w.frames[len(w.frames)-2].point
		w.diverge()
	case opEnd:
		w.leave()
	case opBr, opBrIf:
		w.charge(at, cost(op))
		if d := w.label(); r.err == nil {
			if op == opBr {
				if to, ok := w.forward(at, d); ok {
					w.edits = append(w.edits, edit{at + 1, r.at, editLabel, to})
					d = to
				}
				w.branch(d, 0)
				w.flow.end()
			} else {
				w.branch(d, 1)
				w.flow.next()
			}
			w.diverge()
		}
	case opBrTable:
		w.charge(at, cost(op))
		w.branchTable(at)
	case opCall:
		w.call(at)
	case opCallIndirect:
		w.charge(at, costIndirect)
		r.index(len(w.m.types), "type")
		if t := r.index(len(w.m.tables), "table"); r.err == nil && w.m.tables[t].refType != typeFuncRef {
			r.failAt(at, "call_indirect through table %d, which holds no functions", t)
		}
		w.nested = true
		w.returned()
	case 0x1c: // select with a type
		w.charge(at, cost(op))
		if n := r.u32(); r.err == nil && n != 1 {
			r.failAt(at, "select with %d types, expected 1", n)
		}
		r.valType()
	case opLocalGet, opLocalSet, opLocalTee:
		w.charge(at, cost(op))
		start := r.at
		i := r.u32()
		if r.err == nil && uint64(i) >= uint64(w.b.locals) {
			r.failAt(start, "local %d, but the function has %d", i, w.b.locals)
		}
		switch op {
		case opLocalGet:
			w.headAsks(at, i)
		case opLocalSet:
			w.jumps.set(at, r.at, i)
		}
	case opGlobalGet, opGlobalSet:
		w.charge(at, cost(op))
		r.index(w.m.globals, "global")
	case 0x25, 0x26: // table.get, table.set
		w.charge(at, cost(op))
		r.index(len(w.m.tables), "table")
	case opMemorySize:
		w.charge(at, cost(op))
		w.memoryIndex()
	case opMemoryGrow:
		w.charge(at, costGrow)
		w.memoryIndex()
		w.help(at, r.at, helperKey{kind: helperGrow})
	case opI32Const:
		w.charge(at, cost(op))
		w.jumps.constant(r.signed(32), r.at)
	case opI64Const:
		w.charge(at, cost(op))
		r.signed(64)
	case opF32Const:
		w.charge(at, cost(op))
		r.skip(4)
	case opF64Const:
		w.charge(at, cost(op))
		r.skip(8)
	case opRefNull:
		w.charge(at, cost(op))
		r.refType()
	case opRefFunc:
		w.charge(at, cost(op))
		w.functionIndex()
	case opMisc:
		w.misc(at)
	case opVector:
		w.vector(at)
	default:
		r.failAt(at, "instruction 0x%02x is not in WebAssembly 2.0", op)
	}
}

// branchTable reads the targets of a br_table at the given offset.
func (w *walk) branchTable(at int) {
	heads, labels := w.headTable(at), len(w.jumps.labels)
	n := w.r.count(w.m.limits.BranchTargets-w.targets, "br_table targets in one function")
	w.targets += n
	if w.tables += n; w.r.err == nil && w.tables > w.m.limits.TableTargets {
		w.r.fail("%d br_table targets in all functions, at most %d are allowed", w.tables, w.m.limits.TableTargets)
	}
	for i := 0; i <= n && w.r.err == nil; i++ { // and the default
		if l := w.label(); w.r.err == nil {
			w.branch(l, 1)
			if heads {
				w.jumps.labels = append(w.jumps.labels, l)
			}
		}
	}
	w.flow.end()
	if w.r.err == nil {
		w.diverge()
		if heads {
			w.dispatches(at, w.jumps.labels[labels:])
		}
	}
}

// functionIndex reads the index of a function and plans its change.
func (w *walk) functionIndex() uint32 {
	start := w.r.at
	i := w.r.index(w.m.functions(), "function")
	if w.r.err == nil && int(i) >= len(w.m.imports) {
		w.edits = append(w.edits, edit{start, w.r.at, editFunction, i + 1})
	}
	return i
}

func (w *walk) call(at int) {
	// The point must be planned before the index that stands behind it.
	peek := w.r
	i := peek.index(w.m.functions(), "function")
	imported := int(i) < len(w.m.imports)
	if peek.err == nil && !imported {
		if site, ok := w.inline(i); ok {
			s := w.inlining.sites[site].fn
			w.charge(at, s.cost)
			w.r = peek
			w.edits = append(w.edits, edit{at, w.r.at, editInline, uint32(site)})
			w.answer(s.calls)
			return
		}
	}
	if imported {
		w.charge(at, costHostCall)
	} else {
		w.charge(at, costCall)
		w.nested = true
		w.returned()
	}
	w.functionIndex()
	if w.r.err == nil && imported && w.answer(i) {
		w.edits = append(w.edits, edit{at, w.r.at, editAnswered, i})
	}
}

// answer tells whether a call of an import may be answered in the guest, and if so
// notes what that takes.
func (w *walk) answer(fn uint32) bool {
	if !w.entry.answers(fn) {
		return false
	}
	w.foresee = w.foresee || w.entry.foreseen[fn]
	// An if with two arms is less than two checks.
	w.blocks += 2
	w.flow.check()
	w.flow.check()
	return true
}

// help replaces the instruction by a call of a helper.
func (w *walk) help(at, end int, key helperKey) {
	if w.r.err != nil {
		return
	}
	i, ok := w.helpers.index(key)
	if !ok {
		w.r.failAt(at, "memory.init of more than %d segments", maxHelpers)
		return
	}
	w.edits = append(w.edits, edit{at, end, editHelper, i})
}

func (w *walk) memoryIndex() { w.m.needMemory(&w.r, w.r.u32()) }

// access reads a memarg.
func (w *walk) access() {
	start := w.r.at
	if align := w.r.u32(); w.r.err == nil && align > 4 {
		w.r.failAt(start, "alignment 2^%d, at most 2^4 is possible", align)
	}
	w.r.u32()
	w.m.needMemory(&w.r, 0)
}

// misc reads an instruction with the prefix 0xfc.
func (w *walk) misc(at int) {
	r, m := &w.r, w.m
	op := r.u32()
	segments := func() uint32 {
		if r.err == nil && m.nData < 0 {
			r.failAt(at, "memory.init or data.drop without a data count section")
		}
		return r.index(max(m.nData, 0), "data segment")
	}
	switch {
	case r.err != nil:
	case op < miscMemoryInit: // float to integer, saturating
		w.charge(at, 4)
	case op == miscMemoryInit:
		w.charge(at, costCall)
		i := segments()
		w.memoryIndex()
		w.help(at, r.at, helperKey{helperInit, i})
	case op == miscDataDrop:
		w.charge(at, 1)
		segments()
	case op == miscMemoryCopy:
		w.charge(at, costCall)
		w.memoryIndex()
		w.memoryIndex()
		w.help(at, r.at, helperKey{kind: helperCopy})
	case op == miscMemoryFill:
		w.charge(at, costCall)
		w.memoryIndex()
		w.help(at, r.at, helperKey{kind: helperFill})
	case op == miscTableInit:
		w.spendFirst(at)
		r.index(m.elements, "element segment")
		r.index(len(m.tables), "table")
	case op == miscElemDrop:
		w.charge(at, 1)
		r.index(m.elements, "element segment")
	case op == miscTableCopy:
		w.spendFirst(at)
		r.index(len(m.tables), "table")
		r.index(len(m.tables), "table")
	case op == miscTableGrow:
		w.charge(at, costGrow)
		w.spendFirst(at)
		r.index(len(m.tables), "table")
	case op == miscTableFill:
		w.spendFirst(at)
		r.index(len(m.tables), "table")
	case op == miscTableSize:
		w.charge(at, 1)
		r.index(len(m.tables), "table")
	default:
		r.failAt(at, "instruction 0xfc %d is not in WebAssembly 2.0", op)
	}
}

// spendFirst has the length on top of the stack charged before an instruction
// that works on a table. Tables are too small for that to need pieces.
func (w *walk) spendFirst(at int) {
	w.charge(at, costCall)
	w.help(at, at, helperKey{kind: helperSpend})
}

// vector reads an instruction with the prefix 0xfd.
func (w *walk) vector(at int) {
	r := &w.r
	op := r.u32()
	if r.err != nil {
		return
	}
	form, lanes, price := vectorInstruction(op)
	if form == vectorUnknown {
		r.failAt(at, "instruction 0xfd %d is not in WebAssembly 2.0", op)
		return
	}
	if form == vectorAccess || form == vectorAccessLane {
		w.access()
	}
	switch form {
	case vectorLane, vectorAccessLane:
		if lane := r.byte(); r.err == nil && lane >= lanes {
			r.failAt(r.at-1, "lane %d, but there are %d", lane, lanes)
		}
	case vectorBytes:
		r.skip(16)
	}
	w.charge(at, price)
}
