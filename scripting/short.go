package scripting

// instructionNanos is about what an instruction takes, in ns: what a script under
// latches spends of its transaction's allowance.
const instructionNanos = 16
