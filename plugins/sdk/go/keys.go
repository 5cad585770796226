package latchkey

import "unsafe"

// SetOptions are SET's.
type SetOptions struct {
	NX, XX  bool  // only if the key does not exist; only if it does
	KeepTTL bool  // keep the time to live
	PX      int64 // milliseconds after commit in which the key expires; 0: never
	PXAT    int64 // or the Unix time in milliseconds at which it does
}

func (o SetOptions) pack() (flags uint32, px int64) {
	if o.NX {
		flags |= 1
	}
	if o.XX {
		flags |= 2
	}
	if o.KeepTTL {
		flags |= 4
	}
	px = o.PX
	if o.PXAT != 0 {
		flags |= 8
		px = o.PXAT
	}
	return flags, px
}

// Get is the string at key, a copy; ok is false if there is none.
func (c *Call) Get(key []byte) (value []byte, ok bool, err error) { return c.AppendGet(nil, key) }

// AppendGet appends the string at key to dst, which spares an allocation.
func (c *Call) AppendGet(dst, key []byte) (value []byte, ok bool, err error) {
	return read(dst, func(buf unsafe.Pointer, size uint32) int32 {
		return hostGet(start(key), uint32(len(key)), buf, size)
	})
}

// Set writes a string, whatever was there; done is false if an option forbids it.
func (c *Call) Set(key, value []byte, o SetOptions) (done bool, err error) {
	flags, px := o.pack()
	code := hostSet(start(key), uint32(len(key)), start(value), uint32(len(value)), flags, px)
	return code == 1, failed(code)
}

// onKey and onKeyAndValue call a host function. The methods that use them are inlined, so
// that a short command has one frame less on its way to the host: for WebAssembly Go
// compiles a frame to some 250 instructions of the processor. To the compiler a call by
// name is too dear for that, one of a parameter is not; and what is passed must be inlined
// itself, or it would be called through a table.
func onKey(host func(key []byte) int32, key []byte) int32 { return host(key) }

func onKeyAndValue(host func(key, value []byte) int32, key, value []byte) int32 {
	return host(key, value)
}

func onArgs(host func(key, value int) int32, key, value int) int32 { return host(key, value) }

func del(key []byte) int32         { return hostDel(start(key), uint32(len(key))) }
func exists(key []byte) int32      { return hostExists(start(key), uint32(len(key))) }
func typeOf(key []byte) int32      { return hostType(start(key), uint32(len(key))) }
func cadArgs(key, value int) int32 { return hostCADArgs(uint32(key), uint32(value)) }
func cad(key, value []byte) int32 {
	return hostCAD(start(key), uint32(len(key)), start(value), uint32(len(value)))
}

// Del deletes a key of any type.
func (c *Call) Del(key []byte) (existed bool, err error) {
	code := onKey(del, key)
	return code == 1, failed(code)
}

// Exists tells whether the key exists.
func (c *Call) Exists(key []byte) (bool, error) {
	code := onKey(exists, key)
	return code == 1, failed(code)
}

// Type is the type of a value.
type Type int32

// The types.
const (
	TypeNone Type = iota // the key does not exist
	TypeString
	TypeList
	TypeSet
	TypeHash
	TypeZSet
	TypeStream
	TypeOwn   // a state that this module keeps at the key
	TypeOther // that of another module
)

// Type is the type of the value at key.
func (c *Call) Type(key []byte) (Type, error) {
	code := onKey(typeOf, key)
	return Type(code), failed(code)
}

// IncrBy adds delta to the integer at key, 0 if there is none, and keeps its time
// to live.
func (c *Call) IncrBy(key []byte, delta int64) (sum int64, err error) {
	code := hostIncrBy(start(key), uint32(len(key)), delta, unsafe.Pointer(&sum))
	return sum, failed(code)
}

// Comparison is what comparing a key's value came to.
type Comparison int32

// The outcomes.
const (
	Missing   Comparison = -1 // there is no such key
	Different Comparison = 0
	Equal     Comparison = 1 // and it was set or deleted
)

// CompareAndSet writes value if the string at key is old. px 0 keeps the time to
// live; above 0 the key expires px milliseconds after commit.
func (c *Call) CompareAndSet(key, old, value []byte, px int64) (Comparison, error) {
	code := hostCAS(start(key), uint32(len(key)), start(old), uint32(len(old)), start(value), uint32(len(value)), px)
	return Comparison(code), failed(code)
}

// CompareAndDeleteArgs is CompareAndDelete of two arguments by their indexes, as the client
// has sent them. As the first thing that a command does it is the quickest: the host mostly
// knows the answer before the command begins.
func (c *Call) CompareAndDeleteArgs(key, value int) (Comparison, error) {
	code := onArgs(cadArgs, key, value)
	return Comparison(code), failed(code)
}

// CompareAndDelete deletes the key if the string at it is value.
func (c *Call) CompareAndDelete(key, value []byte) (Comparison, error) {
	code := onKeyAndValue(cad, key, value)
	return Comparison(code), failed(code)
}

// What PTTL answers in place of a time.
const (
	NoTTL = -1 // the key never expires
	NoKey = -2 // it does not exist
)

// PTTL is the time to live in milliseconds, NoTTL or NoKey.
func (c *Call) PTTL(key []byte) (int64, error) {
	ms := hostPTTL(start(key), uint32(len(key)))
	if ms <= int64(ErrWrongType) {
		return 0, Code(ms)
	}
	return ms, nil
}

// PExpire has the key expire ms milliseconds after commit; 0: never.
func (c *Call) PExpire(key []byte, ms int64) (existed bool, err error) {
	code := hostPExpire(start(key), uint32(len(key)), ms)
	return code == 1, failed(code)
}

// Notify sends a keyspace event of the module class about the key at commit.
func (c *Call) Notify(event string, key []byte) error {
	return failed(hostNotify(unsafe.Pointer(unsafe.StringData(event)), uint32(len(event)), start(key), uint32(len(key))))
}
