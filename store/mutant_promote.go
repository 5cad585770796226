//go:build mutant_promote

package store

const (
	mutantNoKeyLock     = false
	mutantNoUndo        = false
	mutantPromotedKeeps = true
)
