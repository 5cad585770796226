// Package scripting runs Lua scripts the way Redis does, inside a transaction
// of the caller's: EVAL, EVALSHA and the SCRIPT family, FCALL and the FUNCTION family.
//
// An [Engine] compiles sources once ([Engine.Compile], bounded before any key is
// locked), keeps them in a bounded [Cache], and runs a [Script] on one of its
// pooled, hardened states ([Engine.Run]). Each redis.call goes through the
// run's [Caller]; the reply is described to a command.Reply without a detour
// through text.
//
// What is guaranteed:
//
//   - A script cannot see or change what another one left. Library tables, the
//     globals and the string metatable are read-only, and a state is thrown away
//     after any end other than a normal return.
//   - A script can always be stopped: every VM instruction, every call and round
//     of a loop, and every loop of a library function, pays from one [Limits] budget which also looks at the
//     kill flag, the clock and the memory account. pcall, coroutines and
//     metamethods cannot catch that.
//   - A source is bounded in size, nesting and the work its compilation takes
//     before it is compiled.
//
// Two engines run scripts. Package closure takes those it covers, which are all but
// those with coroutines, load, loadstring or _G; gopher-lua's virtual machine takes
// the others, and everything that is compiled after SetSecondEngine(false). A library of
// functions is one source to them. What is not guaranteed: the
// machine's tables differ from Lua's in the order of pairs, in the length
// operator on tables with holes, and in zeros below zero, which it loses.
//
// The parser (parse.go) is ours: it gives Lua's own error texts and bounds, and
// builds gopher-lua's syntax tree. The second engine compiles it as it is; for the
// machine, lower.go rewrites where that has an operation without a bound.
package scripting
