//go:build mutant_keylock

package store

const (
	mutantNoKeyLock     = true
	mutantNoUndo        = false
	mutantNoWake        = false
	mutantNoExpiryWake  = false
	mutantGateStays     = false
	mutantPromotedKeeps = false
)
