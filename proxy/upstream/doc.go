// Package upstream is the pipelined client to the Redis or Valkey that stands behind latchkey.
//
// [Open] makes a [Pool]; [Pool.Do] queues the bytes of one command and returns a [Call], whose
// [Call.Wait] gives the bytes of the reply; [Call.Release] hands the Call back. A [Subscriber]
// bridges channels over a connection of its own.
//
// # What is guaranteed
//
// Order: commands with the same Request.Sticky, database and protocol travel on one connection in
// the order of their Do calls, and are answered in that order.
//
// Privacy: a reply reaches the Call whose command caused it or nobody. Who loses interest releases
// the Call; the reply is then read and dropped. A reply that no command asked for ends the
// connection. For this every request is checked to be exactly one command.
//
// State: a connection belongs to one database and one protocol version, set in its handshake, and
// is shared by all clients. Commands that change what later commands on the connection mean, or
// that do not have exactly one reply, must be refused by the caller: AUTH, HELLO, SELECT, RESET,
// QUIT, MULTI, EXEC, DISCARD, WATCH, UNWATCH, ASKING, READONLY, READWRITE, MONITOR, SYNC, PSYNC,
// CLIENT (REPLY, TRACKING, SETNAME, NO-EVICT, NO-TOUCH ...), and the SUBSCRIBE families. Blocking
// commands must be refused too: they hold up everyone behind them. MULTI and EXEC are allowed
// inside one [Pool.DoBlock].
//
// Honesty: no command is ever sent twice. An error says whether the command can have been executed:
// [ErrUnavailable], [ErrBusy] and [ErrRequest] mean that it was not, [ErrUnknownOutcome] that
// nobody knows.
//
// Bounds: commands and bytes waiting on a connection, the size of a reply and the bytes of replies
// that nobody has released are limited by [Options]. While the upstream is down commands fail at
// once; one prober, and nobody else, dials until it is back, with growing pauses.
//
// # How it works
//
// A link is the queue of one connection. Do appends to the link's buffer under its mutex; the
// link's writer swaps that buffer for an empty one and sends it with one write, however many
// commands it holds; a reader matches replies to the Calls in order. When a connection is lost the
// reader ends first, then the writer settles every Call left: how many bytes the connection took
// tells apart "not sent" and "unknown". Nothing queued survives its connection.
//
// Locks, in order: Pool.mu, link.mu, flight.mu, gate.mu, Subscriber.mu; none is held while reading, writing
// or dialing.
package upstream
