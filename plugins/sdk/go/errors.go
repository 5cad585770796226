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

// failed is the error of a host function's result, nil if it is none. It is
// inlined, and what is rare is not.
func failed(code int32) error {
	if code > int32(ErrWrongType) {
		return nil
	}
	return hostError(code)
}

//go:noinline
func hostError(code int32) error { return Code(code) }
