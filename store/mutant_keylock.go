//go:build mutant_keylock

package store

const (
	mutantNoKeyLock     = true
	mutantNoUndo        = false
	mutantNoWake        = false
	mutantNoExpiryWake  = false
	mutantPromotedKeeps = false
)
