//go:build mutant_undo

package store

const (
	mutantNoKeyLock     = false
	mutantNoUndo        = true
	mutantNoWake        = false
	mutantNoExpiryWake  = false
	mutantGateStays     = false
	mutantPromotedKeeps = false
)
