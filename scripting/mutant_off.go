//go:build !mutant_library && !mutant_spoiled

package scripting

// The guarantees that a mutant build leaves out, to prove that the tests see it.
const (
	mutantWritableLibrary = false // a library table takes what a script stores into it
	mutantKeepSpoiled     = false // a state is used again whatever its last run came to
)
