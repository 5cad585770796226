// Package cli is `latchkey cli`: a command line client for latchkey and for
// any other server that speaks RESP2. It is enough of redis-cli that somebody
// new to either needs nothing else installed: one command from the arguments,
// a prompt, commands from the lines of standard input, and --eval.
//
// [Run] is the only name other packages need.
//
// Replies look byte for byte as redis-cli 7.0 prints them, both for terminals
// (--no-raw) and for scripts (--raw). It differs from redis-cli on purpose:
//
//   - What could not be done goes to standard error as `latchkey: error:` lines.
//   - A command is not sent when its password was refused or its database could
//     not be selected; redis-cli sends it to database 0.
//   - A command is never sent twice: after a broken connection nobody can say
//     whether it ran. A connection that the server closed while nothing was
//     under way is replaced, unless MULTI or WATCH ended with it.
//   - Commands from standard input stop at the first failure of the connection,
//     with exit status 1, and with -e at the first error reply.
//   - It speaks RESP2 only.
//
// Bytes become replies through github.com/tidwall/resp, which trusts what it
// reads: it allocates what a header announces and recurses as deep as arrays
// nest. Therefore frame.go first collects one whole reply, within limits, and
// only then lets the library see it.
package cli
