//go:build mutant_wake

package store

const (
	mutantNoKeyLock     = false
	mutantNoUndo        = false
	mutantNoWake        = true
	mutantNoExpiryWake  = false
	mutantGateStays     = false
	mutantPromotedKeeps = false
)
