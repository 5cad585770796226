// Package budget is the account of one run of a script: instructions, memory,
// time, and who may end it. Both engines pay from it, so that a script ends in
// the same way on either.
//
// An [Account] counts down Left; whoever finds it at zero or below calls Look,
// which settles the account and sets Stop when the run must end. An engine then
// unwinds the script in its own way, past every pcall.
package budget
