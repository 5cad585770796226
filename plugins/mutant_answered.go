//go:build mutant_answered

package plugins

const (
	mutantNoSettle   = false
	mutantNoAnswered = true
)
