//go:build mutant_promote

package store

const (
	mutantNoKeyLock     = false
	mutantNoUndo        = false
	mutantNoWake        = false
	mutantNoExpiryWake  = false
	mutantGateStays     = false
	mutantPromotedKeeps = true
)
