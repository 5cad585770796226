//go:build mutant_library

package scripting

const (
	mutantWritableLibrary = true
	mutantKeepSpoiled     = false
)
