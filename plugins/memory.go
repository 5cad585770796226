package plugins

import "github.com/tetratelabs/wazero/experimental"

// linear is the linear memory of an instance. wazero is given it in place of what it
// would allocate itself, so that host functions find bytes without asking wazero
// for them each time. It moves when it grows: no view of it lasts beyond that.
type linear []byte

// Allocate is experimental.MemoryAllocator's. wazero asks once, for the module's
// only memory.
func (in *instance) Allocate(capacity, _ uint64) experimental.LinearMemory {
	in.memory = make(linear, 0, capacity)
	return &in.memory
}

// Reallocate is experimental.LinearMemory's: memory grows, and what is new is zero.
func (l *linear) Reallocate(size uint64) []byte {
	*l = append(*l, make([]byte, size-uint64(len(*l)))...)
	return *l
}

// Free is experimental.LinearMemory's.
func (l *linear) Free() { *l = nil }

// at returns the range that begins at ptr, or false if it is not all in memory.
func (l linear) at(ptr, length uint32) ([]byte, bool) {
	end := uint64(ptr) + uint64(length)
	if end > uint64(len(l)) {
		return nil, false
	}
	return l[ptr:end:end], true
}
