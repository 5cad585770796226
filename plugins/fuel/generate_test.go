package fuel

import "math/rand/v2"

// generate returns a random valid module: three functions of two i32 that call
// each other, with blocks, loops, branches of all kinds, memory and a table, and a
// fourth without branches that calls the host.
func generate(rnd *rand.Rand) []byte {
	g := generator{rnd: rnd}
	section := func(id byte, content ...byte) {
		g.module = append(g.module, id)
		g.module = appendU32(g.module, uint32(len(content)))
		g.module = append(g.module, content...)
	}
	g.module = wasm()
	section(secType, 3, typeFunc, 2, typeI32, typeI32, 1, typeI32, typeFunc, 1, typeI32, 1, typeI32, typeFunc, 1, typeI64, 0)
	imports := append(appendName(appendName([]byte{2}, "env"), "triple"), 0, 1)
	section(secImport, append(appendName(appendName(imports, "env"), "note"), 0, 2)...)
	section(secFunction, 4, 0, 0, 0, 0)
	section(secTable, 1, typeFuncRef, 1, 5, 5)
	section(secMemory, 1, 1, 1, 2)
	section(secGlobal, 1, typeI32, 1, opI32Const, 3, opEnd)
	section(secExport, 4, 1, 'a', 0, 2, 1, 'b', 0, 3, 1, 'c', 0, 4, 1, 'm', 2, 0)
	section(secElement, 1, 0, opI32Const, 1, opEnd, 3, 2, 3, 4)
	section(secDataCount, 1)
	code := []byte{4}
	for range 3 {
		g.code = []byte{1, 3, typeI32}
		g.blocks = []bool{true}
		g.room = 20 + rnd.IntN(300)
		for range 1 + rnd.IntN(8) {
			g.statement(0)
		}
		g.value(0)
		g.code = append(g.code, opEnd)
		code = append(appendU32(code, uint32(len(g.code))), g.code...)
	}
	g.straight()
	code = append(appendU32(code, uint32(len(g.code))), g.code...)
	section(secCode, code...)
	section(secData, 1, 1, 5, 'h', 'e', 'l', 'l', 'o')
	return g.module
}

type generator struct {
	rnd    *rand.Rand
	module []byte
	code   []byte
	blocks []bool // of each open block, whether a branch to it takes a value
	room   int    // roughly how many more instructions to make
}

func (g *generator) put(b ...byte) { g.code = append(g.code, b...) }

func (g *generator) block(depth int, value bool, head ...byte) {
	g.put(head...)
	g.blocks = append(g.blocks, value && head[0] != opLoop)
	g.statements(depth)
	if value {
		g.value(depth + 1)
	}
	if head[0] == opIf && (value || g.rnd.IntN(2) == 0) {
		g.put(opElse)
		g.statements(depth)
		if value {
			g.value(depth + 1)
		}
	}
	g.blocks = g.blocks[:len(g.blocks)-1]
	g.put(opEnd)
}

func (g *generator) statements(depth int) {
	for range g.rnd.IntN(4) {
		g.statement(depth + 1)
	}
	if g.rnd.IntN(10) == 0 {
		for range g.rnd.IntN(200) {
			g.put(0x01) // nop: more than may be skipped, now and then
		}
	}
}

// target picks a label and puts the value it wants.
func (g *generator) target(depth int) byte {
	d := g.rnd.IntN(len(g.blocks))
	if g.blocks[len(g.blocks)-1-d] {
		g.value(depth + 1)
	}
	return byte(d)
}

func (g *generator) statement(depth int) {
	g.room--
	if depth > 8 || g.room < 0 {
		g.put(0x01)
		return
	}
	switch g.rnd.IntN(19) {
	case 0, 1, 2:
		g.value(depth)
		g.put(opLocalSet, byte(g.rnd.IntN(5)))
	case 3:
		g.value(depth)
		g.put(opGlobalSet, 0)
	case 4:
		g.address(depth)
		g.value(depth)
		g.put(0x36, 2, 8) // i32.store
	case 5:
		g.block(depth, false, opBlock, typeEmpty)
	case 6, 7:
		g.block(depth, false, opLoop, typeEmpty)
	case 8:
		g.value(depth)
		g.block(depth, false, opIf, typeEmpty)
	case 9, 10:
		d := g.target(depth)
		g.value(depth)
		g.put(opBrIf, d)
		if g.blocks[len(g.blocks)-1-int(d)] {
			g.put(opDrop)
		}
	case 11:
		if g.rnd.IntN(3) == 0 {
			g.put(opBr, g.target(depth))
		}
	case 12:
		// Targets of a table must all want the same.
		d := g.target(depth)
		g.value(depth)
		g.put(opBrTable, 2, d, d, d)
	case 13:
		if g.rnd.IntN(3) == 0 {
			g.value(depth)
			g.put(opReturn)
		}
	case 14:
		g.address(depth)
		g.address(depth)
		g.put(opI32Const, byte(g.rnd.IntN(64)))
		if g.rnd.IntN(2) == 0 {
			g.put(opMisc, miscMemoryFill, 0)
		} else {
			g.put(opMisc, miscMemoryCopy, 0, 0)
		}
	case 15:
		g.address(depth)
		g.put(opI32Const, byte(g.rnd.IntN(6)), opI32Const, byte(g.rnd.IntN(2)), opMisc, miscMemoryInit, 0, 0)
	case 16:
		g.value(depth)
		g.put(opI64ExtendU, opCall, 1)
	case 17, 18:
		g.dispatch(depth)
	}
}

// straight makes a function as those that hand a call over to the host, or nearly so.
func (g *generator) straight() {
	g.code = []byte{1, 3, typeI32}
	plain := func() {
		switch g.rnd.IntN(5) {
		case 0:
			g.put(opI32Const, byte(g.rnd.IntN(64)))
		case 1:
			g.put(opGlobalGet, 0)
		case 2:
			g.put(opLocalGet, byte(g.rnd.IntN(3))) // one of them is no parameter
		default:
			g.put(opLocalGet, byte(g.rnd.IntN(2)))
		}
	}
	for range g.rnd.IntN(4) {
		switch plain(); g.rnd.IntN(4) {
		case 0:
			g.put(opLocalSet, byte(g.rnd.IntN(5)))
		case 1:
			g.put(opI32Const, 0xff, 0x3f, 0x71) // 8191, i32.and
			g.put(0x28, 2, 4, opLocalTee, byte(g.rnd.IntN(5)), opDrop)
		case 2:
			g.put(opGlobalSet, 0)
		case 3: // it stays on the stack
			if g.rnd.IntN(3) != 0 {
				g.put(opDrop)
			}
		}
	}
	switch plain(); g.rnd.IntN(8) {
	case 0:
		g.put(opI64ExtendU, opCall, 1)
		plain()
	case 1:
		g.put(opCall, 0, opCall, 0)
	case 2:
	default:
		g.put(opCall, 0)
	}
	g.put(opReturn)
	if g.rnd.IntN(2) == 0 {
		g.put(opUnreachable)
	}
	g.put(opEnd)
}

// dispatch makes a loop around a table of its pieces, as Go's compiler does, and
// much that is nearly so.
func (g *generator) dispatch(depth int) {
	local, pieces := byte(g.rnd.IntN(5)), 1+g.rnd.IntN(5)
	g.put(opLoop, typeEmpty)
	head := len(g.blocks)
	g.blocks = append(g.blocks, false)
	for range pieces {
		g.put(opBlock, typeEmpty)
		g.blocks = append(g.blocks, false)
	}
	g.put(opLocalGet, local, opBrTable, byte(pieces))
	for range pieces + 1 {
		d := g.rnd.IntN(pieces + 1)
		if out := g.rnd.IntN(len(g.blocks)); !g.blocks[len(g.blocks)-1-out] && g.rnd.IntN(4) == 0 {
			d = out
		}
		g.put(byte(d))
	}
	for range pieces {
		g.blocks = g.blocks[:len(g.blocks)-1]
		g.put(opEnd)
		g.statements(depth)
		for range g.rnd.IntN(3) {
			g.jump(depth, local, head, pieces)
		}
	}
	g.blocks = g.blocks[:head]
	g.put(opEnd)
}

// jump goes to a piece of the dispatch whose head is that block, or does nearly so.
func (g *generator) jump(depth int, local byte, head, pieces int) {
	inner := 0
	switch g.rnd.IntN(3) {
	case 0:
		g.value(depth + 1)
		g.put(opIf, typeEmpty)
		inner = 1
	case 1: // a block in the place of one that was closed
		g.put(opBlock, typeEmpty)
		inner = 1
	}
	g.put(opI32Const, byte(g.rnd.IntN(pieces+3)))
	if g.rnd.IntN(8) == 0 {
		g.put(0x01)
	}
	if g.rnd.IntN(8) == 0 {
		local = byte(g.rnd.IntN(5))
	}
	g.put(opLocalSet, local, opBr, byte(len(g.blocks)+inner-1-head))
	if inner == 1 {
		g.put(opEnd)
	}
}

// address puts a value that lies within the memory.
func (g *generator) address(depth int) {
	g.value(depth + 1)
	g.put(opI32Const, 0xff, 0x3f, 0x71) // 8191, i32.and
}

func (g *generator) value(depth int) {
	g.room--
	if depth > 8 || g.room < 0 {
		g.put(opLocalGet, byte(g.rnd.IntN(5)))
		return
	}
	switch g.rnd.IntN(14) {
	case 0, 1:
		g.put(opI32Const, byte(g.rnd.IntN(64)))
	case 2, 3:
		g.put(opLocalGet, byte(g.rnd.IntN(5)))
	case 4:
		g.put(opGlobalGet, 0)
	case 5, 6:
		g.value(depth + 1)
		g.value(depth + 1)
		ops := []byte{opI32Add, opI32Sub, 0x6c, 0x6e, 0x6f, 0x48, 0x73}
		g.put(ops[g.rnd.IntN(len(ops))])
	case 7:
		g.address(depth)
		g.put(0x28, 2, 4)
	case 8:
		g.value(depth + 1)
		g.value(depth + 1)
		g.put(opCall, byte(2+g.rnd.IntN(4)))
	case 9:
		g.value(depth + 1)
		g.value(depth + 1)
		g.put(opI32Const, byte(g.rnd.IntN(5)), opCallIndirect, 0, 0)
	case 10:
		g.value(depth + 1)
		g.put(opCall, 0)
	case 11:
		g.block(depth, true, opBlock, typeI32)
	case 12:
		g.value(depth + 1)
		g.block(depth, true, opIf, typeI32)
	case 13:
		g.block(depth, true, opLoop, typeI32)
	}
}
