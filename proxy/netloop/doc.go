// Package netloop serves many connections from one goroutine.
//
// A [Loop] waits for all of its sockets with one epoll, reads where there is
// something to be read, lets the connection's [Handler] act, and writes the
// answers of all when each has had its turn. A connection that is silent costs
// no goroutine, and a request neither a switch of goroutines nor the read that
// would only say that nothing is left.
//
// # Nobody waits for another
//
// Handlers may block and may take long. Who runs the loop has a role, not a
// goroutine of its own: a Handler that is about to wait calls [Conn.Leave], and
// another goroutine takes the role over, with everything that is left to do. From a
// Handler that neither returns nor leaves, the role is taken after some
// milliseconds, as Go's scheduler takes the processor from a system call. The
// goroutine that has lost the role sees its connection through the turn, and gives
// it back to the loop then. So what a Handler does is the same on the loop and beside
// it.
//
// It exists on Linux; elsewhere [New] says so.
package netloop

import "errors"

// Verdict is what a turn has come to.
type Verdict uint8

const (
	// Idle: there is nothing more to be read.
	Idle Verdict = iota
	// Again: there is more to do at once, after the others have had their turn.
	Again
	// Answered: there are replies; Answer is called when the others have had
	// their turn, and before anything is waited for.
	Answered
	// Ended: the connection is to be closed.
	Ended
)

// Handler is what serves one connection. Its methods are called one at a time,
// but by different goroutines.
type Handler interface {
	// Turn reads with TryRead, executes and returns before long: what one read
	// brought is enough. It is also called when there is nothing to read, after
	// Poke.
	Turn() Verdict
	// Answer writes the replies and returns Idle, or Ended.
	Answer() Verdict
	// End is called once, after Ended. The socket is closed when it returns.
	End()
}

// ErrAgain is what TryRead returns when there is nothing to be read.
var ErrAgain error = again{}

type again struct{}

func (again) Error() string   { return "netloop: nothing to read for now" }
func (again) Timeout() bool   { return true }
func (again) Temporary() bool { return true }

// ErrUnsupported is returned by New where there are no loops.
var ErrUnsupported = errors.New("netloop: event loops are built for Linux on amd64 and arm64 only")
