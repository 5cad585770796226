package fuel

// Go's compiler writes no structured control flow. It makes each function that jumps a
// loop around a table of its pieces; a jump sets the number of a piece and goes to
// the loop's head:
//
//	(loop $head
//	  (block $2 (block $1 (block $0 (br_table $0 $1 $2 (local.get $piece))))
//	    piece 0, which jumps to piece 2 by (local.set $piece (i32.const 2)) (br $head)
//	    ...
//
// So every jump, and every call, goes through a table, which takes a processor that
// guesses wrong some twenty nanoseconds, and keeps WebAssembly's compiler from seeing
// what follows what. But most jumps go forward, where the block that the table would
// branch to is still open: these are made to branch there at once. And before the table
// is looked at, piece 0 is asked for, where each call begins.
//
// Nothing happens between the head and the table, and a branch out of blocks without
// results does the same wherever it comes from. So the function computes what it did.

// dispatch is a loop whose head is nothing but blocks and a branch table on a local.
type dispatch struct {
	local   uint32
	blocks  uint32   // serial of the first of the blocks
	targets []uint32 // by the table's index: the frame that is branched to. The last is for all above
}

// jumps is what is known of a function's dispatches and of the jump that may come.
type jumps struct {
	found  []dispatch
	labels []uint32 // of all their tables

	// The head of the loop that was entered last, as long as it may become one.
	headEnd int // where the next instruction of it must stand
	head    dispatch
	asked   bool // head.local was read

	// The last i32.const and, if it follows, local.set.
	value    uint32
	constEnd int
	local    uint32
	setEnd   int
}

func (j *jumps) reset() { *j = jumps{found: j.found[:0], labels: j.labels[:0]} }

func (j *jumps) constant(value int64, end int) { j.value, j.constEnd = uint32(value), end }

func (j *jumps) set(at, end int, local uint32) {
	if j.constEnd == at {
		j.local, j.setEnd = local, end
	}
}

// headEntered notes a block or loop without parameters and results, whose
// instruction stands at the given offset. It is the top frame.
func (w *walk) headEntered(at int, op byte) {
	j := &w.jumps
	switch {
	case op == opLoop:
		j.headEnd, j.head, j.asked = w.r.at, dispatch{blocks: w.serial + 1}, false
	case op == opBlock && at == j.headEnd && !j.asked:
		j.headEnd = w.r.at
	}
}

// headAsks notes that a local is read.
func (w *walk) headAsks(at int, local uint32) {
	if j := &w.jumps; at == j.headEnd && !j.asked {
		j.headEnd, j.head.local, j.asked = w.r.at, local, true
	}
}

// headTable tells whether a branch table at the given offset is what a loop
// dispatches by.
func (w *walk) headTable(at int) bool { return at == w.jumps.headEnd && w.jumps.asked }

// dispatches notes the labels of the branch table that the innermost loop
// dispatches by.
func (w *walk) dispatches(at int, labels []uint32) {
	j := &w.jumps
	w.edits = append(w.edits, edit{at, at, editGet, j.head.local}, edit{at, at, editUnless, labels[0]})
	w.blocks++
	for i, label := range labels {
		labels[i] = uint32(len(w.frames)-1) - label
	}
	j.head.targets = labels
	j.found = append(j.found, j.head)
	j.headEnd = -1
	for i := len(w.frames) - 1; ; i-- {
		if w.frames[i].op == opLoop {
			w.frames[i].dispatch = len(j.found)
			return
		}
	}
}

// forward returns the label of the block that a branch at the given offset ends up
// in: label is a loop that dispatches by what was set just before.
func (w *walk) forward(at int, label uint32) (to uint32, ok bool) {
	head := len(w.frames) - 1 - int(label)
	j, i := &w.jumps, w.frames[head].dispatch
	if i == 0 || at != j.setEnd || j.local != j.found[i-1].local {
		return 0, false
	}
	d := &j.found[i-1]
	target := int(d.targets[min(uint64(j.value), uint64(len(d.targets)-1))])
	switch {
	case target == head:
		return 0, false
	case target > head:
		// The blocks were opened one after the other, so those still open tell by their
		// serials.
		if target >= len(w.frames) || w.frames[target].serial != d.blocks+uint32(target-head-1) {
			return 0, false
		}
	}
	return uint32(len(w.frames) - 1 - target), true
}
