package scripting

// instructionNanos is about what an instruction takes, in ns: what a script under
// latches spends of its transaction's allowance.
const instructionNanos = 16

// briefInstructions is how many a script executes that counts as brief: to take or
// free a lock is a hundred, the commands' share included.
const briefInstructions = 256
