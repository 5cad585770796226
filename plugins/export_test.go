package plugins

import (
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// HostFunction is a function of the ABI as its tests see it.
type HostFunction struct {
	Name    string
	Params  []string // wasm types
	Names   []string // of the parameters
	Results []string
}

// HostFunctions are all functions of the ABI.
func HostFunctions() []HostFunction {
	var out []HostFunction
	for _, subject := range abiFunctions() {
		for _, f := range subject {
			h := HostFunction{Name: f.name, Params: typeNames(f.params), Results: typeNames(f.results)}
			if list := f.usage[strings.IndexByte(f.usage, '(')+1 : strings.IndexByte(f.usage, ')')]; list != "" {
				h.Names = strings.Split(list, ", ")
			}
			out = append(out, h)
		}
	}
	return out
}

// CountCalls counts the calls of a function of the ABI that reach the host, until done.
func CountCalls(name string) (count func() int, done func()) {
	f, n := abiByName(name), 0
	was := f.call
	f.call = func(in *instance, stack []uint64) {
		n++
		was(in, stack)
	}
	return func() int { return n }, func() { f.call = was }
}

// WASIFunctions are all functions of WASI.
func WASIFunctions() []HostFunction {
	var out []HostFunction
	for name, f := range wasiFunctions {
		out = append(out, HostFunction{Name: name, Params: typeNames(f.params), Results: typeNames(f.results)})
	}
	return out
}

func typeNames(ts []api.ValueType) (out []string) {
	for _, t := range ts {
		out = append(out, api.ValueTypeName(t))
	}
	return out
}
