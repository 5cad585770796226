//go:build mutant_settle

package plugins

const (
	mutantNoSettle   = true
	mutantNoAnswered = false
)
