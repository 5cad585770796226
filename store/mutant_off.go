//go:build !mutant_keylock && !mutant_undo && !mutant_promote && !mutant_wake && !mutant_expiry && !mutant_gate

package store

// The guarantees that a mutant build leaves out, to prove that the tests see it.
const (
	mutantNoKeyLock     = false // key locks are not taken
	mutantNoUndo        = false // rollback restores nothing
	mutantNoWake        = false // a change wakes nobody who is blocked on the key
	mutantNoExpiryWake  = false // neither does an expiry
	mutantGateStays     = false // the gate stays closed until a slow transaction ends
	mutantPromotedKeeps = false // what is promoted keeps what it did under latches
)
