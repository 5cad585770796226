// Package fuel makes a WebAssembly module safe to run inside a server: it
// refuses modules whose shape would keep a compiler busy for minutes, and
// rewrites the others so that no piece of guest code runs long without asking
// the host whether it may go on.
//
// [Check] reads a module with bounds on everything and reports the first thing
// that is malformed, unknown or too large. [Instrument] does the same and
// returns a module that computes the same, with these additions:
//
//   - A mutable i64 global holds fuel, exported as [GlobalName] for the host.
//     Guest code is charged its instruction count before it runs (a division
//     or a square root costs more, see cost in opcodes.go). When fuel falls
//     below zero the guest calls the imported host function [RefillName] of
//     module [HostModule], of type (i64) -> i64. It receives the negative fuel
//     and returns what the global is set to; it may schedule, look at a
//     deadline, grant a slice, or end the call by a panic. Fuel begins at zero,
//     so a start function is asked for too.
//   - No path within a function runs more than 4,096 units without a check,
//     and none more than 256 after a call has returned.
//   - memory.fill, memory.copy and memory.init work in pieces of at most 1 MiB
//     with a check before each; these, memory.grow and the table instructions
//     are charged by length.
//   - Calls nested deeper than a limit call the same host function with
//     [DepthExceeded], then trap.
//   - Memories and tables are given maxima.
//   - Jumps of code that Go's compiler wrote branch to where they lead, in place of
//     going through a table (dispatch.go).
//   - Small functions that do nothing but call an import are put in place of their
//     calls (inline.go).
//   - The function that the host calls most, [Options.Entry], can be called with what
//     the host would have to set and read besides, and keep the argument of one call
//     of an import, [Options.Kept], until it returns, and be answered in the guest what
//     the host has foreseen that it will ask, [Options.Foreseen].
//
// The charge is an upper bound: code that is skipped by a branch may have been
// charged, at most 64 units for each check passed, or the rest of a straight
// run that is left early.
//
// # What is guaranteed, and why
//
// Additions are inserted between instructions and leave the operand stack as
// it was, and replaced instructions are replaced by calls of the same type. So
// the result is valid exactly if the original is, as long as no index of the
// original means one of the additions. Therefore every index is checked
// against the original's own spaces: a module without globals that writes
// global 0 would, once rewritten, write its own fuel. Types are not checked
// here. They are left to the compiler, which sees the rewritten module only.
//
// Custom sections are dropped, but for the names of functions and locals: debug
// sections would describe code that has moved, and a manifest is read before.
//
// The package allocates nothing that the module's bytes do not pay for, is
// safe on hostile input and may be used by several goroutines at once.
package fuel
