package command

import (
	"fmt"
	"strings"
)

// The texts of error replies, as redis-server 7.0 has them.
const (
	ErrWrongType       = "WRONGTYPE Operation against a key holding the wrong kind of value"
	ErrSyntax          = "ERR syntax error"
	ErrNotInteger      = "ERR value is not an integer or out of range"
	ErrNotFloat        = "ERR value is not a valid float"
	ErrNoSuchKey       = "ERR no such key"
	ErrOutOfRange      = "ERR index out of range"
	ErrDBIndex         = "ERR DB index is out of range"
	ErrInvalidDB       = "ERR invalid DB index"
	ErrOverflow        = "ERR increment or decrement would overflow"
	ErrDecrOverflow    = "ERR decrement would overflow"
	ErrNaN             = "ERR increment would produce NaN or Infinity"
	ErrStringTooLong   = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	ErrOffsetRange     = "ERR offset is out of range"
	ErrBitOffset       = "ERR bit offset is not an integer or out of range"
	ErrBit             = "ERR bit is not an integer or out of range"
	ErrInvalidCursor   = "ERR invalid cursor"
	ErrTimeout         = "ERR timeout is not a float or out of range"
	ErrNegativeTimeout = "ERR timeout is negative"
	ErrOOM             = "OOM command not allowed when used memory > 'maxmemory'."
	ErrTxTooLarge      = "OOM the changes of this script or transaction take more than transaction-max-memory"
	ErrMisconf         = "MISCONF Errors writing to the AOF file: the write was undone"
	ErrBusyKey         = "BUSYKEY Target key name already exists."
	ErrBusyFunction    = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
	ErrBusyScript      = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	ErrNoAuth          = "NOAUTH Authentication required."
	ErrNoScript        = "NOSCRIPT No matching script. Please use EVAL."
	ErrExecAbort       = "EXECABORT Transaction discarded because of previous errors."
	ErrCrossOwner      = "CROSSOWNER Keys in request belong to different owners: some are latchkey's, some are the upstream's"
	ErrInternal        = "ERR internal error"
	ErrCancelled       = "UNBLOCKED the wait for a key was ended"
	ErrUnblocked       = "UNBLOCKED client unblocked via CLIENT UNBLOCK"
	ErrReadOnlyScript  = "ERR Write commands are not allowed from read-only scripts."
)

// WrongArity is the error of a command called with a wrong number of arguments.
func WrongArity(s *Spec) string {
	name := s.fullName
	if name == "" {
		name = s.Name
	}
	return "ERR wrong number of arguments for '" + name + "' command"
}

// unknownCommand quotes at most 128 bytes of name and arguments, as Redis does.
func unknownCommand(args [][]byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, "ERR unknown command '%s', with args beginning with: ", clip(args[0], 128))
	quoted := 0
	for _, a := range args[1:] {
		if quoted >= 128 {
			break
		}
		part := clip(a, 128-quoted)
		fmt.Fprintf(&b, "'%s' ", part)
		quoted += len(part) + 3
	}
	return oneLine(b.String())
}

// unknownSubcommand names the container as it was called.
func unknownSubcommand(args [][]byte) string {
	return oneLine(fmt.Sprintf("ERR unknown subcommand '%s'. Try %s HELP.", clip(args[1], 128), strings.ToUpper(string(args[0]))))
}

// UnknownSubcommand is the error of a container asked for what it does not have
// or with too few arguments.
func UnknownSubcommand(s *Spec, sub []byte) string {
	if s.parent != nil {
		s = s.parent
	}
	return oneLine(fmt.Sprintf("ERR unknown subcommand or wrong number of arguments for '%s'. Try %s HELP.", clip(sub, 128), strings.ToUpper(s.Name)))
}

func clip(b []byte, n int) string {
	if len(b) > n {
		b = b[:n]
	}
	// Redis prints with %.*s: a NUL ends the text.
	s := string(b)
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	return s
}

// oneLine keeps what a client sent from breaking the reply's line. Ends of lines
// at its end are dropped, those within become blanks, as in Redis.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	s = strings.TrimRight(s, "\r\n")
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
}
