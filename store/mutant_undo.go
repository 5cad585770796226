//go:build mutant_undo

package store

const (
	mutantNoKeyLock     = false
	mutantNoUndo        = true
	mutantNoWake        = false
	mutantNoExpiryWake  = false
	mutantPromotedKeeps = false
)
