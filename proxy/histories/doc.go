// Package histories holds what must be true of a whole server when many clients
// use it at once: that every history of a lock is one that a single lock could
// have had, that nothing of an undone transaction remains, that a script holds
// up nobody but those who want its keys, and that the effect log retells what
// has happened. It consists of tests.
//
// The histories are judged by porcupine, a checker of linearizability. That
// they can fail is shown by two mutants of the store, behind the build tags
// mutant_keylock and mutant_undo; TestMutantsAreCaught builds and runs them.
package histories
