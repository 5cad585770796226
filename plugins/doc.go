// Package plugins runs WebAssembly modules that bring commands of their own,
// loaded as Redis loads modules: MODULE LOAD, MODULE LIST, MODULE UNLOAD.
//
// Host is the name that matters. It checks a module's shape and manifest
// (plugins/fuel, plugins/manifest), compiles it, and adds its commands to the
// table; each call of such a command binds an instance of the module to the
// transaction it runs in. The functions that a guest can call are in the files
// abi_*.go, one variable each, and docs/PLUGIN-ABI.md is made from them.
//
// Guaranteed: a guest reaches nothing but the keys its command declares, within
// the prefixes its manifest asks for; a trap, exhausted fuel or time, or a bad
// pointer undoes what the command did, answers -PLUGINERR, and costs the guest
// its instance; a loop in a guest never keeps Go from scheduling or collecting
// for longer than a slice of fuel. Linear memory is a cache and not state: any
// call may land on any instance.
package plugins
