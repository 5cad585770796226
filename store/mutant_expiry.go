//go:build mutant_expiry

package store

const (
	mutantNoKeyLock     = false
	mutantNoUndo        = false
	mutantNoWake        = false
	mutantNoExpiryWake  = true
	mutantGateStays     = false
	mutantPromotedKeeps = false
)
