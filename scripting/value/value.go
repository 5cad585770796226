package value

import (
	"math"
	"unsafe"
)

// Kind says what a value is.
type Kind uint8

// The kinds. Light is light userdata, of which cjson.null is one. Threads are the
// virtual machine's alone.
const (
	KindNil Kind = iota
	KindBool
	KindNumber
	KindString
	KindTable
	KindFunction
	KindLight
	KindThread
	// KindCell is a variable that closures share; no script sees it.
	KindCell
)

// String is the kind's name as Lua's type says it.
func (k Kind) String() string {
	return [...]string{"nil", "boolean", "number", "string", "table", "function", "userdata", "thread", "cell"}[k]
}

// Value is one Lua value. The zero Value is nil. Values must not be compared
// with ==, but with Equal.
type Value struct {
	// p is &numberTag for a number; the bytes of a string, the table, the
	// function or the cell; otherwise nil.
	p unsafe.Pointer
	// n has the bits of a number. Otherwise its high byte is the kind and the
	// rest a string's length, a boolean, or the name of light userdata.
	n uint64
}

const (
	kindShift = 56
	lowMask   = 1<<kindShift - 1
)

var (
	numberTag byte
	emptyText byte // what p of the empty string points to
)

// Nil is nil.
var Nil = Value{}

// True and False are the booleans.
var (
	True  = Value{n: uint64(KindBool)<<kindShift | 1}
	False = Value{n: uint64(KindBool) << kindShift}
)

// Bool makes a boolean.
func Bool(b bool) Value {
	if b {
		return True
	}
	return False
}

// Number makes a number.
func Number(f float64) Value { return Value{unsafe.Pointer(&numberTag), math.Float64bits(f)} }

// SetNumber is *v = Number(f). Where a number stands already the collector need not
// hear of it.
func (v *Value) SetNumber(f float64) {
	if v.p == unsafe.Pointer(&numberTag) {
		v.n = math.Float64bits(f)
		return
	}
	*v = Number(f)
}

// Int makes the number n.
func Int(n int) Value { return Number(float64(n)) }

// String makes a string of any bytes, which it shares with s.
func String(s string) Value {
	if len(s) == 0 {
		return Value{unsafe.Pointer(&emptyText), uint64(KindString) << kindShift}
	}
	return Value{unsafe.Pointer(unsafe.StringData(s)), uint64(KindString)<<kindShift | uint64(len(s))}
}

// FromTable makes a table value; t is not nil.
func FromTable(t *Table) Value {
	return Value{unsafe.Pointer(t), uint64(KindTable) << kindShift}
}

// Light makes light userdata out of a name below 2^56: two with one name are
// equal. 0 is C's null pointer, which cjson.null is.
func Light(name uint64) Value { return Value{nil, uint64(KindLight)<<kindShift | name&lowMask} }

// Func makes a function out of p, which is an engine's own; p is not nil.
func Func(p unsafe.Pointer) Value { return Value{p, uint64(KindFunction) << kindShift} }

// Thread makes a coroutine out of p, which is an engine's own; p is not nil.
func Thread(p unsafe.Pointer) Value { return Value{p, uint64(KindThread) << kindShift} }

// Cell makes the holder of a shared variable out of p, which is an engine's own.
func Cell(p unsafe.Pointer) Value { return Value{p, uint64(KindCell) << kindShift} }

// Kind is what v is.
func (v Value) Kind() Kind {
	if v.p == unsafe.Pointer(&numberTag) {
		return KindNumber
	}
	return Kind(v.n >> kindShift)
}

// IsNil tells whether v is nil.
func (v Value) IsNil() bool { return v.p == nil && v.n == 0 }

// IsNumber tells whether v is a number.
func (v Value) IsNumber() bool { return v.p == unsafe.Pointer(&numberTag) }

// IsString tells whether v is a string.
func (v Value) IsString() bool {
	return v.n>>kindShift == uint64(KindString) && v.p != unsafe.Pointer(&numberTag)
}

// IsTable tells whether v is a table.
func (v Value) IsTable() bool {
	return v.n == uint64(KindTable)<<kindShift && v.p != unsafe.Pointer(&numberTag)
}

// IsFunction tells whether v is a function.
func (v Value) IsFunction() bool {
	return v.n == uint64(KindFunction)<<kindShift && v.p != unsafe.Pointer(&numberTag)
}

// Truthy tells whether v is neither nil nor false.
func (v Value) Truthy() bool { return v.p != nil || v.n != 0 && v.n != uint64(KindBool)<<kindShift }

// AsBool is a boolean; v must be one.
func (v Value) AsBool() bool { return v.n&1 != 0 }

// AsNumber is a number; v must be one.
func (v Value) AsNumber() float64 { return math.Float64frombits(v.n) }

// AsString is a string, which shares v's bytes; v must be one.
func (v Value) AsString() string { return unsafe.String((*byte)(v.p), int(v.n&lowMask)) }

// AsBytes is AsString as bytes that nobody may write to.
func (v Value) AsBytes() []byte { return unsafe.Slice((*byte)(v.p), int(v.n&lowMask)) }

// AsTable is a table; v must be one.
func (v Value) AsTable() *Table { return (*Table)(v.p) }

// AsLight is the name of light userdata; v must be some.
func (v Value) AsLight() uint64 { return v.n & lowMask }

// Pointer is what a table, a function or a cell was made of.
func (v Value) Pointer() unsafe.Pointer { return v.p }

// Equal is Lua's rawequal: numbers by value, strings by bytes, tables and functions by identity.
func Equal(a, b Value) bool {
	if a.IsNumber() || b.IsNumber() {
		return a.p == b.p && a.AsNumber() == b.AsNumber()
	}
	if a.n != b.n {
		return false
	}
	if a.p == b.p {
		return true
	}
	return a.n>>kindShift == uint64(KindString) && a.AsString() == b.AsString()
}

// Same tells without a look at their bytes that two values are equal and no numbers;
// values of which it says no may be equal all the same.
func Same(a, b Value) bool {
	return a.p == b.p && a.n == b.n && a.p != unsafe.Pointer(&numberTag)
}

// Bytes makes a string of b without a copy: no one may change b from then on.
func Bytes(b []byte) Value {
	if len(b) == 0 {
		return String("")
	}
	return Value{unsafe.Pointer(unsafe.SliceData(b)), uint64(KindString)<<kindShift | uint64(len(b))}
}
