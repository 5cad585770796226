//go:build !mutant_keylock && !mutant_undo

package store

// The guarantees that a mutant build leaves out, to prove that the tests see it.
const (
	mutantNoKeyLock = false // key locks are not taken
	mutantNoUndo    = false // rollback restores nothing
)
