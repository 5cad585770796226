package latchkey

import "unsafe"

// Kind is the kind of a reply.
type Kind int32

// The kinds.
const (
	KindNull Kind = iota
	KindInt
	KindBulk
	KindSimple
	KindError
	KindArray
	KindMap
	KindSet
	KindDouble
	KindBool
	KindBigNumber
	KindVerbatim
)

// Reply is what a command replied that the module has called. It lives until it is freed, or
// the call ends.
type Reply struct {
	handle int32
}

// Do runs a command that the module may call, on keys that its own command declares.
// An error reply is a reply; an error is returned when the command was not run.
func (c *Call) Do(args ...[]byte) (Reply, error) {
	argv := make([]arg, len(args))
	for i, a := range args {
		argv[i] = argOf(a)
	}
	handle := hostCall(unsafe.Pointer(unsafe.SliceData(argv)), uint32(len(argv)))
	return Reply{handle}, failed(handle)
}

// DoStrings is Do for words.
func (c *Call) DoStrings(words ...string) (Reply, error) {
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	return c.Do(args...)
}

// argOf is b as the host reads it. The caller keeps b alive.
func argOf(b []byte) arg { return arg{uint32(uintptr(start(b))), uint32(len(b))} }

// Kind is the reply's kind.
func (r Reply) Kind() Kind { return Kind(hostCallType(r.handle)) }

// Int is an integer, or a boolean as 1 or 0. Of another kind it ends the call.
func (r Reply) Int() int64 { return hostCallInt(r.handle) }

// Double is a double. Of another kind it ends the call.
func (r Reply) Double() float64 { return hostCallDouble(r.handle) }

// Len is how many bytes a string has, elements an array or set, pairs a map; 0 for what
// has no length.
func (r Reply) Len() int { return max(int(hostCallLen(r.handle)), 0) }

// Elem is an element, of a map the keys at even and the values at odd indexes; ok is
// false beyond the last.
func (r Reply) Elem(i int) (e Reply, ok bool) {
	h := hostCallElem(r.handle, uint32(i))
	return Reply{h}, h > 0
}

// Bytes is what a string, status, error, big number or verbatim string holds, a
// copy; nil for another kind.
func (r Reply) Bytes() []byte {
	b, _, _ := read(nil, func(buf unsafe.Pointer, size uint32) int32 { return hostCallBytes(r.handle, buf, size) })
	return b
}

// Err is the error that the command replied, nil if it is another reply.
func (r Reply) Err() error {
	if r.Kind() != KindError {
		return nil
	}
	return Error(r.Bytes())
}

// Free gives the reply and its elements back before the call ends.
func (r Reply) Free() { hostCallFree(r.handle) }
