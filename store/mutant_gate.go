//go:build mutant_gate

package store

const (
	mutantNoKeyLock     = false
	mutantNoUndo        = false
	mutantNoWake        = false
	mutantNoExpiryWake  = false
	mutantGateStays     = true
	mutantPromotedKeeps = false
)
