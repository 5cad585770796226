package resp

import (
	"errors"
	"math"
)

// Limits that hold where a [Limits] field is zero; redis.conf's defaults.
const (
	// DefaultMaxBulk is proto-max-bulk-len, in bytes.
	DefaultMaxBulk = 512 << 20
	// DefaultMaxQuery is client-query-buffer-limit, in bytes.
	DefaultMaxQuery = 1 << 30
	// DefaultMaxInline bounds the line of an inline command and of a header, in
	// bytes without the line's end.
	DefaultMaxInline = 64 << 10
	// DefaultMaxMultibulk bounds the arguments of one command, as Redis 7.0.
	DefaultMaxMultibulk = math.MaxInt32
	// DefaultMaxReadAhead bounds what [Reader.ReadAhead] collects, in bytes.
	DefaultMaxReadAhead = 64 << 10
)

// What a client may send before it has authenticated, as Redis 7.0.
const (
	unauthenticatedArgs = 10
	unauthenticatedBulk = 16 << 10
)

// Limits bounds what a [Reader] accepts. The zero value holds a client that has
// not authenticated to the defaults above.
//
// Limits belongs to the goroutine that calls Next. That goroutine may change
// any field between two calls of the Reader; a command is judged by the limits
// found when its headers are parsed.
type Limits struct {
	// MaxBulk is proto-max-bulk-len: the longest argument, in bytes.
	MaxBulk int
	// MaxQuery is client-query-buffer-limit: the longest command with its
	// headers, in bytes. A longer one ends in [ErrQueryLimit], for which Redis
	// closes without a reply. Redis counts one argument at a time, where we
	// count the whole command, because we hold it whole.
	MaxQuery int
	// MaxInline is the longest line, in bytes without its end.
	MaxInline int
	// MaxMultibulk is the largest number of arguments.
	MaxMultibulk int
	// MaxReadAhead is how many bytes ReadAhead may collect.
	MaxReadAhead int
	// Authenticated lifts the bounds for clients that still owe an AUTH: ten
	// arguments and 16 KiB for each.
	Authenticated bool
	// Grow, when set, is asked before the Reader takes delta more bytes, and
	// told of bytes given back by a negative delta, whose result is ignored.
	// It is for a cap over all clients; an error ends the Reader with that
	// error. It is called by whoever called the Reader's method.
	Grow func(delta int) error
}

// cuts are the most arguments, bytes of an argument and bytes altogether of a
// command that can be cut into a table of this size.
func (lim *Limits) cuts(table int) (args, bulk, query int) {
	args, bulk = table, lim.MaxBulk
	if bulk <= 0 {
		bulk = DefaultMaxBulk
	}
	if !lim.Authenticated {
		args, bulk = min(args, unauthenticatedArgs), min(bulk, unauthenticatedBulk)
	}
	if lim.MaxMultibulk > 0 {
		args = min(args, lim.MaxMultibulk)
	}
	// A command this short is within client-query-buffer-limit, which is at
	// least 1 MiB in Redis; a smaller one is looked at in parseSlow.
	query = lim.MaxQuery
	if query <= 0 {
		query = DefaultMaxQuery
	}
	return args, bulk, query
}

func orDefault(limit, def int) int {
	if limit <= 0 {
		return def
	}
	return limit
}

// ErrQueryLimit ends a [Reader] whose client sent a command longer than
// [Limits.MaxQuery]. Redis closes the connection without a reply.
var ErrQueryLimit = errors.New("resp: command is longer than client-query-buffer-limit")

// ErrReadAheadFull is returned by [Reader.ReadAhead] when Limits.MaxReadAhead
// bytes wait already. It changes nothing.
var ErrReadAheadFull = errors.New("resp: read-ahead limit reached")

// ProtocolError is the verdict on bytes that are no command. The connection
// sends Reply as an error and closes.
type ProtocolError struct {
	// Reply is redis-server's error text without the leading '-', such as
	// "ERR Protocol error: invalid multibulk length".
	Reply string
}

func (e *ProtocolError) Error() string { return "resp: " + e.Reply }

func protocolError(text string) *ProtocolError {
	return &ProtocolError{Reply: "ERR Protocol error: " + text}
}

// The verdicts of redis-server 7.0.15 on requests, in its words. The one that
// quotes a byte is made where it is found.
var (
	errTooBigCount      = protocolError("too big mbulk count string")
	errInvalidCount     = protocolError("invalid multibulk length")
	errUnauthCount      = protocolError("unauthenticated multibulk length")
	errTooBigBulkLength = protocolError("too big bulk count string")
	errInvalidBulk      = protocolError("invalid bulk length")
	errUnauthBulk       = protocolError("unauthenticated bulk length")
	errTooBigInline     = protocolError("too big inline request")
	errUnbalanced       = protocolError("unbalanced quotes in request")
)

// errNotDollar quotes the byte that stands where a '$' should. CR and LF become
// spaces, for the text has to fit into one line.
func errNotDollar(got byte) *ProtocolError {
	if got == '\r' || got == '\n' {
		got = ' '
	}
	return protocolError("expected '$', got '" + string([]byte{got}) + "'")
}
