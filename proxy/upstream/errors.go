package upstream

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/latchkey-proxy/latchkey/proxy/resp"
)

// The sorts of failure, to be told apart with errors.Is. What Wait returns wraps one of them in an
// [*Error], whose text begins with an error code and is fit to be sent to a client.
var (
	// ErrUnavailable says that the command was not sent, because the upstream cannot be reached
	// or refuses the connection. It was not executed.
	ErrUnavailable = errors.New("UPSTREAMDOWN upstream is unreachable")

	// ErrUnknownOutcome says that the command was written, and its reply was lost. It may or may
	// not have been executed; sending it again may execute it twice.
	ErrUnknownOutcome = errors.New("UPSTREAMLOST connection to upstream was lost after the command was sent; its outcome is unknown")

	// ErrBusy says that the command was not sent, because too much is waiting already.
	ErrBusy = errors.New("UPSTREAMBUSY too many commands wait for upstream")

	// ErrRequest says that the command was not sent, because it is not something a connection may
	// carry: not exactly one command, an unknown protocol version or a database out of range.
	ErrRequest = errors.New("ERR request cannot be forwarded")

	// ErrClosed says that the pool or subscriber was closed before the command was sent. It comes
	// together with ErrUnavailable.
	ErrClosed = errors.New("UPSTREAMDOWN upstream connections are closed")

	// ErrCanceled is returned by Wait when its cancel channel ended the wait. The command goes on.
	ErrCanceled = errors.New("wait for upstream reply was canceled")
)

// errProtocol is the cause when the upstream says what no Redis would say at that point.
var errProtocol = errors.New("it sent a reply that no command asked for")

// Error is a failure of the upstream. Its text is one line without CR, LF or NUL, begins with an
// error code and can be sent to a client after a "-". It never holds keys, values or passwords.
type Error struct {
	kind  error
	text  string
	cause error
	// only means that the failure concerns one database or protocol version, and the upstream
	// is otherwise well.
	only bool
}

// Error returns the line for the client.
func (e *Error) Error() string { return e.text }

// Unwrap gives the sort of failure (ErrUnavailable ...) and, if there is one, its cause.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.kind}
	}
	return []error{e.kind, e.cause}
}

func newError(kind error, cause error, parts ...string) *Error {
	return &Error{kind: kind, cause: cause, text: oneLine(strings.Join(parts, ""))}
}

func unreachable(address string, cause error) *Error {
	return newError(ErrUnavailable, cause, "UPSTREAMDOWN upstream ", address, " is unreachable: ", reason(cause))
}

// refused is the failure of a handshake: step is the command that the upstream answered with line.
func refused(address, step, line string) *Error {
	hint := ""
	switch code, _, _ := strings.Cut(line, " "); code {
	case "NOAUTH", "WRONGPASS":
		hint = " (check the user and password in the upstream URL)"
	}
	return newError(ErrUnavailable, nil, "UPSTREAMDOWN upstream ", address, " refused the connection: it answered ", step, " with ", line, hint)
}

func notSent(address string, cause error) *Error {
	return newError(ErrUnavailable, cause, "UPSTREAMDOWN connection to upstream ", address,
		" was lost before the command was sent (", reason(cause), ")")
}

func outcomeUnknown(address string, cause error) *Error {
	return newError(ErrUnknownOutcome, cause, "UPSTREAMLOST connection to upstream ", address,
		" was lost after the command was sent (", reason(cause), "); its outcome is unknown")
}

// reason is an error's text without the repetition of addresses that net.OpError adds, and without
// the bytes that a FrameError quotes: they may be another client's.
func reason(err error) string {
	var bad *resp.FrameError
	if errors.As(err, &bad) {
		return fmt.Sprintf("it sent what is no reply, at byte %d of a frame", bad.Offset)
	}
	switch {
	case errors.Is(err, ErrClosed):
		return "latchkey closed it"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it closed the connection in the middle of a reply"
	case errors.Is(err, io.EOF):
		return "it closed the connection"
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err.Error()
	}
	return err.Error()
}

// maxErrorText bounds what a foreign error text may add to a reply.
const maxErrorText = 512

func oneLine(s string) string {
	if len(s) > maxErrorText {
		s = strings.ToValidUTF8(s[:maxErrorText], "") + "..."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
