package latchkey

import "unsafe"

// at is what stands at an address of the arena, which the variable of that name keeps
// alive: frames lie there, and so do their arguments.
func at(address uintptr) unsafe.Pointer { return unsafe.Add(nil, address) }

func (c *Call) head() *frameHead { return (*frameHead)(at(c.frame)) }

// view is the argument itself. For WebAssembly Go compiles what follows a branch or
// a call to a jump through a table, so this has one branch, and is inlined: it looks at
// the one call that there is and not at c, which might be nil; and the slice is put
// together as the compiler lays it out, since unsafe.Slice would look at what the host
// has written for its own frame.
func (*Call) view(i int) []byte {
	if uint(i) >= uint(the.argc) {
		panic(noArg)
	}
	a := *(*arg)(at(the.frame + unsafe.Sizeof(frameHead{}) + uintptr(i)*unsafe.Sizeof(arg{})))
	b := slice{at(uintptr(a.ptr)), int(a.len), int(a.len)}
	return *(*[]byte)(unsafe.Pointer(&b))
}

type slice struct {
	start         unsafe.Pointer
	length, limit int
}

var noArg any = "latchkey: there is no argument of that number"
