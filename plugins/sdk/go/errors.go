package latchkey

// Error is an error reply: a code word and what is wrong, such as
// Error("ERR the lease must be above 0").
type Error string

func (e Error) Error() string { return string(e) }

// Code is an error of the host's.
type Code int32

// The codes. As the result of Run they become the reply that Redis would give.
const (
	ErrWrongType Code = -100 // the key holds a value of another type
	ErrDenied    Code = -101 // not declared by the command, or not granted to the module
	ErrOOM       Code = -102 // the server's maxmemory is reached
	ErrInvalid   Code = -103 // an argument is out of range
	ErrNotInt    Code = -104 // the value is no integer, or the result would be none
	ErrLimit     Code = -105 // there are as many as there may be
	ErrContext   Code = -106 // not possible where the command is called from
)

func (c Code) Error() string {
	switch c {
	case ErrWrongType:
		return "the key holds a value of another type"
	case ErrDenied:
		return "the key was not declared by the command or is not granted to the module"
	case ErrOOM:
		return "the server's maxmemory is reached"
	case ErrInvalid:
		return "an argument is out of range"
	case ErrNotInt:
		return "the value is not an integer or out of range"
	case ErrLimit:
		return "there are as many as there may be"
	case ErrContext:
		return "not possible where the command is called from"
	}
	return "the host answered an error that this SDK does not know"
}

// failed is the error of a host function's result, nil if it is none. It has no branch
// and no call: for WebAssembly Go compiles a branch that is taken, and what follows a call,
// to a jump through a table.
func failed(code int32) error {
	n := int64(ErrWrongType) + 1 - int64(code)
	n &^= n >> 63 // 0 for what is below
	over := n - unknown
	over &^= over >> 63
	return failures[(n-over)&int64(len(failures)-1)]
}

// failures are nil, the errors of the codes from ErrWrongType down, and one for all that
// this SDK does not know. As many as a power of two need no look at the index.
var failures = [16]error{nil, ErrWrongType, ErrDenied, ErrOOM, ErrInvalid, ErrNotInt, ErrLimit, ErrContext, unknown: ErrContext - 1}

const unknown = 8
