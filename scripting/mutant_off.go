//go:build !mutant_library

package scripting

// The guarantees that a mutant build leaves out, to prove that the tests see it.
const (
	mutantWritableLibrary = false // a library table takes what a script stores into it
)
