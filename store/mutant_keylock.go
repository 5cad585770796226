//go:build mutant_keylock

package store

const (
	mutantNoKeyLock     = true
	mutantNoUndo        = false
	mutantPromotedKeeps = false
)
