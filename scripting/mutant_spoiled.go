//go:build mutant_spoiled

package scripting

const (
	mutantWritableLibrary = false
	mutantKeepSpoiled     = true
)
