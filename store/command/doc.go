// Package command is what a command is: its Spec in the one Table, and Exec,
// the one gate through which clients, scripts and plugins run it.
//
// A family is a file with a table of Specs and their handlers below. A handler
// parses before it touches anything, reads and writes through Call.Tx, and
// describes its reply to Call.Reply; it does not know who asked. Engine.Run
// opens the transaction that a Spec asks for around Exec.
//
// Guaranteed: a handler that answers an error through Call.Err, or panics, leaves
// nothing behind. Not guaranteed: anything about keys that the key specs do not
// name; to touch one is a broken invariant.
package command
