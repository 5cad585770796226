// Package closure is the second engine of scripting: it compiles the syntax tree
// of a script to Go closures over the values and tables of scripting/value.
//
// A [World] has the libraries, which no script can change; [World.Compile] makes
// a [Program] of a tree, or says why it does not cover it (coroutines, code
// loaded from strings, the table of globals as a value); a [Machine] runs it.
// All of that is decided before a script has any effect.
//
// What is guaranteed is what package scripting guarantees of a run: it can be
// stopped, it is bounded in instructions, memory and depth, and it leaves nothing
// behind for the next one. Beyond the virtual machine this engine is exact in the length
// operator, the order of pairs, the texts and places of errors, numbers and the
// account of memory.
//
// Globals are constants: Redis lets no script assign one, and neither does this
// engine, so that a name like redis.call is resolved when the script is compiled.
package closure
