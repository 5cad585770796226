// Package proxy serves clients: it listens, reads commands, decides who owns
// their keys, and runs them on the store or hands them to the upstream. It
// brings the commands that concern connections, transactions, publish and
// subscribe, and the server itself.
//
// The names that matter are Server and Options. A client is served in turns (turn.go):
// by an event loop of package netloop, which it leaves before it waits for anything,
// or by a goroutine of its own in front of an upstream and where there is no epoll.
// What others send to it (messages, monitor lines) goes through its output queue
// and a goroutine that only such clients have.
//
// Guaranteed: replies leave in the order of their commands, whoever executed
// them; nothing that a client sends ends the process or changes another
// client's state; a reply leaves only when all that it tells is as durable as
// the effect log promises.
package proxy
