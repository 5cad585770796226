package latchkey

import "unsafe"

// bytes is the argument itself: frames lie in the arena, and so do their arguments.
func (a arg) bytes() []byte {
	if a.len == 0 {
		return []byte{}
	}
	base := unsafe.Pointer(unsafe.SliceData(arena))
	return unsafe.Slice((*byte)(unsafe.Add(base, uintptr(a.ptr)-uintptr(base))), a.len)
}
