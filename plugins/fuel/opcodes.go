package fuel

// Types of values, and the empty block type.
const (
	typeI32       = 0x7f
	typeI64       = 0x7e
	typeF32       = 0x7d
	typeF64       = 0x7c
	typeV128      = 0x7b
	typeFuncRef   = 0x70
	typeExternRef = 0x6f
	typeFunc      = 0x60
	typeEmpty     = 0x40
)

func isValType(t byte) bool {
	return t >= typeV128 && t <= typeI32 || t == typeFuncRef || t == typeExternRef
}

// Instructions that are looked at or emitted by name.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI32Eqz       = 0x45
	opI32Eq        = 0x46
	opI32GtU       = 0x4b
	opI32LeU       = 0x4d
	opI64Eq        = 0x51
	opI64LtS       = 0x53
	opI64GtU       = 0x56
	opI64LeU       = 0x58
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32And       = 0x71
	opI32Or        = 0x72
	opI64Add       = 0x7c
	opI64Sub       = 0x7d
	opI64Or        = 0x84
	opI64Shl       = 0x86
	opI64ShrU      = 0x88
	opI64ExtendU   = 0xad
	opRefNull      = 0xd0
	opRefFunc      = 0xd2
	opMisc         = 0xfc
	opVector       = 0xfd

	miscMemoryInit = 8
	miscDataDrop   = 9
	miscMemoryCopy = 10
	miscMemoryFill = 11
	miscTableInit  = 12
	miscElemDrop   = 13
	miscTableCopy  = 14
	miscTableGrow  = 15
	miscTableSize  = 16
	miscTableFill  = 17

	vectorConst   = 0x0c
	vectorShuffle = 0x0d
)

// plainOp reports whether op is an instruction of one byte without immediates:
// comparisons, arithmetic, conversions, sign extension, and the odd ones.
func plainOp(op byte) bool {
	switch {
	case op == opUnreachable, op == 0x01, op == opReturn, op == opDrop, op == 0x1b:
		return true
	case op >= 0x45 && op <= 0xc4, op == 0xd1:
		return true
	}
	return false
}

// accessOp reports whether op loads from or stores to memory, with a memarg.
func accessOp(op byte) bool { return op >= 0x28 && op <= 0x3e }

// Prices, in units of one simple instruction (a third to half a nanosecond
// where this was measured).
const (
	costCall     = 4
	costIndirect = 8
	costHostCall = 100 // the way out of the guest and back; what is done there is the host's to charge
	costGrow     = 500
)

// cost returns the price of a one-byte instruction. Structure (block, end,
// else) costs nothing, since it compiles to nothing.
func cost(op byte) int {
	switch op {
	case opBlock, opElse, opEnd:
		return 0
	case 0x6d, 0x6e, 0x6f, 0x70: // i32.div and rem
		return 16
	case 0x7f, 0x80, 0x81, 0x82: // i64.div and rem: 20 to 90 cycles on older processors
		return 32
	case 0x91, 0x95, 0x9f, 0xa3: // f32.sqrt, f32.div, f64.sqrt, f64.div
		return 16
	case opBrTable:
		return 4
	}
	if op >= 0xa8 && op <= 0xb1 { // float to integer, with its checks
		return 4
	}
	return 1
}

// vectorForm is what follows a vector instruction.
type vectorForm byte

const (
	vectorUnknown vectorForm = iota
	vectorPlain
	vectorAccess     // memarg
	vectorAccessLane // memarg, lane
	vectorLane       // lane
	vectorBytes      // 16 bytes: a constant or the lanes of a shuffle
)

// vectorInstruction returns the form of a vector instruction, how many lanes
// its immediate may name, and its price.
func vectorInstruction(op uint32) (form vectorForm, lanes byte, price int) {
	switch {
	case op <= 0x0b, op == 0x5c, op == 0x5d:
		return vectorAccess, 0, 2
	case op == vectorConst, op == vectorShuffle:
		return vectorBytes, 0, 2
	case op <= 0x14:
		return vectorPlain, 0, 2
	case op <= 0x22:
		return vectorLane, laneCount(op), 2
	case op >= 0x54 && op <= 0x5b:
		return vectorAccessLane, 16 >> ((op - 0x54) & 3), 2
	case op > 0xff, op == 0x9a, op == 0xa2, op == 0xa5, op == 0xa6, op == 0xaf, op == 0xb0,
		op >= 0xb2 && op <= 0xb4, op == 0xbb, op == 0xc2, op == 0xc5, op == 0xc6, op == 0xcf, op == 0xd0,
		op >= 0xd2 && op <= 0xd4, op == 0xe2, op == 0xee:
		return vectorUnknown, 0, 0
	case op == 0xe3, op == 0xe7, op == 0xef, op == 0xf3: // sqrt and div
		return vectorPlain, 0, 32
	case op == 0xd5, op == 0x62, op >= 0x6b && op <= 0x6d, op >= 0xf8: // i64x2.mul, popcnt, byte shifts, conversions: several instructions each
		return vectorPlain, 0, 8
	}
	return vectorPlain, 0, 2
}

// laneCount returns the number of lanes for extract_lane and replace_lane.
func laneCount(op uint32) byte {
	switch {
	case op <= 0x17:
		return 16
	case op <= 0x1a:
		return 8
	case op <= 0x1c:
		return 4
	case op <= 0x1e:
		return 2
	case op <= 0x20:
		return 4
	}
	return 2
}
