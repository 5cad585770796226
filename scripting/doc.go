// Package scripting runs Lua scripts the way Redis does, inside a transaction
// of the caller's: EVAL, EVALSHA and the SCRIPT family, and later functions.
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
//   - A script can always be stopped: every VM instruction, and every loop of a
//     library function, pays from one [Limits] budget which also looks at the
//     kill flag, the clock and the memory account. pcall, coroutines and
//     metamethods cannot catch that.
//   - A source is bounded in size, nesting and the work its compilation takes
//     before it is compiled.
//
// What is not: gopher-lua's tables differ from Lua's in the order of pairs and in
// the length operator on tables with holes.
//
// gopher-lua's virtual machine runs the code. The parser (parse.go) is ours: it
// gives Lua's own error texts and bounds, and builds gopher-lua's syntax tree,
// which lower.go rewrites where the machine has an operation without a bound.
package scripting
