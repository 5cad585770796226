//go:build !linux || !(amd64 || arm64)

package netloop

import (
	"net"
	"time"
)

// Loop cannot be had here.
type Loop struct{}

// Conn is a connection of a Loop.
type Conn struct{ net.Conn }

// New says that there are no loops.
func New(bool) (*Loop, error) { return nil, ErrUnsupported }

// Close ends the loop.
func (*Loop) Close() {}

// Take says that there are no loops.
func (*Loop) Take(net.Conn) (*Conn, error) { return nil, ErrUnsupported }

// Len is how many connections the loop serves.
func (*Loop) Len() int { return 0 }

// Waited is how long the loop has waited for events in all.
func (*Loop) Waited() time.Duration { return 0 }

// Give has the loop pass connections to another.
func (*Loop) Give(int, *Loop) {}

// Start has the loop serve the connection.
func (*Conn) Start(Handler) {}

// Poke gives the Handler a turn.
func (*Conn) Poke() {}

// Leave gives the loop to another goroutine.
func (*Conn) Leave() {}

// Readable tells whether a read may bring something.
func (*Conn) Readable() bool { return false }

// TryRead reads what is there.
func (*Conn) TryRead([]byte) (int, error) { return 0, ErrUnsupported }

// TryWrite writes as much as the socket takes now.
func (*Conn) TryWrite([]byte) (int, error) { return 0, ErrUnsupported }

// FD is the socket's descriptor.
func (*Conn) FD() int { return -1 }
