//go:build mutant_undo

package store

const (
	mutantNoKeyLock     = false
	mutantNoUndo        = true
	mutantPromotedKeeps = false
)
