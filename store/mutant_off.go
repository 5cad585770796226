//go:build !mutant_keylock && !mutant_undo && !mutant_promote

package store

// The guarantees that a mutant build leaves out, to prove that the tests see it.
const (
	mutantNoKeyLock     = false // key locks are not taken
	mutantNoUndo        = false // rollback restores nothing
	mutantPromotedKeeps = false // what is promoted keeps what it did under latches
)
