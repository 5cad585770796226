package fuel

// flow estimates what a compiler takes to learn which blocks of a function
// dominate which: wazero walks up from each block, and from each edge, to what it
// looks for, mostly to the function's beginning. So code of many blocks one after the
// other costs the square of their number: 8,000 times "block, br_if, end", 56 KB,
// half a minute. The estimate counts these steps, and no fewer than there are. A step
// takes some 5 ns, two or three times as long where the blocks outgrow the caches.
type flow struct {
	depth int // how many blocks dominate the one that the walk is in; unreached: none can reach it
	steps int // of all functions so far
}

const unreached = -1

// edgesPerStep is how many of the edges that lead to a block a compiler compares a
// new one with in the time of a step.
const edgesPerStep = 8

// meets is what comes together at the end of a block, or at a loop's head.
type meets struct {
	header int // depth where the block was entered
	edges  int
	low    int // least depth of the blocks that they leave
	sum    int // of these depths
	first  bool
	second bool // edges leave the arms of an if
}

// open notes that a block is entered; of a loop and an if's arm a new one begins.
func (f *flow) open(op byte, m *meets) {
	*m = meets{header: f.depth}
	switch op {
	case opLoop:
		f.next()
		m.header = f.depth
	case opIf:
		f.steps += 2 * max(f.depth, 0) // the other arm
		f.next()
	}
}

// next begins a block that the present one leads to.
func (f *flow) next() {
	if f.depth != unreached {
		f.steps += f.depth
		f.depth++
		f.steps += f.depth
	}
}

// branch notes an edge to the end of a block, or the head of a loop. between is how
// many blocks stand in between.
func (f *flow) branch(op byte, m *meets, between int) {
	if f.depth == unreached {
		return
	}
	depth := f.depth + between
	f.steps += 2 * between * depth
	if op == opLoop {
		f.steps += 3 * (depth - m.header)
		return
	}
	f.steps += depth + m.edges/edgesPerStep
	m.edges++
	m.sum += depth
	if m.edges == 1 || depth < m.low {
		m.low = depth
	}
	if op == opElse {
		m.second = true
	} else {
		m.first = true
	}
}

// end notes that nothing follows in the block.
func (f *flow) end() { f.depth = unreached }

// arm begins the else of an if.
func (f *flow) arm(m *meets) {
	f.branch(opIf, m, 0)
	if f.depth = m.header; f.depth != unreached {
		f.depth++
	}
}

// close notes the end of a block.
func (f *flow) close(op byte, m *meets) {
	if op == opLoop {
		f.next() // reached from within only
		return
	}
	f.branch(op, m, 0)
	if op == opIf && m.header != unreached { // the way past it
		f.depth = m.header
		f.branch(opElse, m, 1)
	}
	if m.edges == 0 {
		f.depth = unreached
		return
	}
	// Where they meet is below what dominates them all: of both arms that is where
	// the if began, of other edges at most the highest block that one leaves.
	if m.first && m.second && (op == opIf || op == opElse) {
		m.low = m.header
	}
	f.steps += 2 * (m.sum - m.edges*m.low)
	f.depth = m.low + 1
	f.steps += f.depth
}

// check notes a check of fuel: an if that calls, and goes on.
func (f *flow) check() {
	if f.depth != unreached {
		f.steps += 7 * (f.depth + 1)
		f.depth++
	}
}
