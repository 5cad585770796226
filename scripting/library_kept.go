package scripting

import (
	"fmt"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// A state, or a machine of the second engine, keeps what frozen libraries have
// made, within these bounds.
const (
	maxInstances     = 64
	maxInstanceBytes = 8 << 20
)

// instance is what a library's body has made on one state.
type instance struct {
	callbacks map[string]value.Value // by the name in lower case
	bytes     int64
}

// instances are the frozen libraries of one state.
type instances struct {
	of         map[*Library]instance
	bytes      int64
	generation uint64 // of the engine, when they were made
}

// ForgetLibraries has every state drop what it keeps of libraries: some were
// replaced or deleted.
func (e *Engine) ForgetLibraries() { e.generation.Add(1) }

// callback is the function to call. Unless it is kept from an earlier call which
// cannot have changed it, body runs the library's body anew. That is on the house:
// how many instructions and bytes a call may take must not depend on the state it
// met. FUNCTION LOAD has bounded them.
func (kept *instances) callback(e *Engine, f *Function, a *budget.Account, limits Limits, body func(*loading)) (value.Value, error) {
	if now := e.generation.Load(); kept.generation != now {
		*kept = instances{generation: now}
	}
	lib := f.Library
	in, ok := kept.of[lib]
	if !ok {
		a.Reopen(Limits{Memory: max(limits.Memory, budget.DefaultMemory), Time: limits.Time})
		ld := newLoading(lib)
		body(ld)
		in = instance{ld.callbacks, a.Mem}
		a.Reopen(limits)
		if lib.frozen && in.bytes <= maxInstanceBytes {
			kept.add(lib, in)
		}
	}
	callback, ok := in.callbacks[f.key]
	if !ok {
		// What a body registers must not depend on anything, and nothing is there
		// that it could depend on but the address in the text of a table.
		return callback, &Failure{Uncaught, fmt.Sprintf("ERR library %s does not register %s any more", lib.Name, f.Name)}
	}
	return callback, nil
}

func (kept *instances) add(lib *Library, in instance) {
	if len(kept.of) == maxInstances || kept.bytes+in.bytes > maxInstanceBytes {
		kept.of, kept.bytes = nil, 0
	}
	if kept.of == nil {
		kept.of = map[*Library]instance{}
	}
	kept.of[lib] = in
	kept.bytes += in.bytes
}
