//go:build !mutant_settle && !mutant_answered

package plugins

// The guarantees that a mutant build leaves out, to prove that the tests see it.
const (
	mutantNoSettle   = false // what follows a foreseen answer does not wait for what it has done
	mutantNoAnswered = false // what a foreseen answer has done is not done
)
