package plugins

import (
	"bytes"
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/latchkey-proxy/latchkey/plugins/fuel"
	"github.com/latchkey-proxy/latchkey/store"
)

// abiModule is the name that guests import host functions from.
const abiModule = "latchkey_v1"

// What host functions return beside their results. Errors are -100 and below
// in all of them, so that none is taken for a length or a TTL.
const (
	codeNil       = -1
	codeWrongType = -100
	codeDenied    = -101
	codeOOM       = -102
	codeInvalid   = -103
	codeNotInt    = -104
	codeLimit     = -105
	codeContext   = -106
)

// hostCall is what a call of a host function costs in units of fuel; beside it,
// byteCost bytes that are moved cost a unit.
const (
	hostCall = 100
	byteCost = 4
)

// What one call may have the host keep until it commits.
const (
	maxWritten = 256 << 20 // bytes of values
	maxReplied = 256 << 20 // bytes of the reply
)

// hostFunc is one function of the ABI. Its parameters stand in stack as wazero
// passes them; its result, if it has one, goes to stack[0].
type hostFunc struct {
	name            string
	params, results []api.ValueType
	usage           string // as a guest's author would write the call
	doc             string // what it does and returns, in Markdown
	memory          string // where bytes move, if they do
	call            func(in *instance, stack []uint64)
}

// Call is api.GoFunction's.
func (f *hostFunc) Call(ctx context.Context, stack []uint64) {
	in := ctx.(*instance)
	if in.call == nil {
		// A goroutine that outlived its command, or lk_init: there is no transaction
		// to act in.
		panic(&trap{"a host function was called outside of a command"})
	}
	in.charge(hostCall)
	if in.foreseen.state != fuel.ForeseenNone && !mutantNoSettle {
		in.settle()
	}
	f.call(in, stack)
}

// wasiFunc is a function that may be called outside of a command, too.
type wasiFunc hostFunc

// Call is api.GoFunction's.
func (f *wasiFunc) Call(ctx context.Context, stack []uint64) {
	in := ctx.(*instance)
	in.charge(hostCall)
	f.call(in, stack)
}

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
	f64 = api.ValueTypeF64
)

func types(t ...api.ValueType) []api.ValueType { return t }

// abiFunctions are all functions of the ABI, by subject.
func abiFunctions() [][]*hostFunc {
	return [][]*hostFunc{
		keyFunctions, keyStateFunctions, stateFunctions, callFunctions, replyFunctions,
		waitFunctions, eventFunctions, contextFunctions,
	}
}

func abiByName(name string) *hostFunc {
	for _, subject := range abiFunctions() {
		for _, f := range subject {
			if f.name == name {
				return f
			}
		}
	}
	return nil
}

// exportABI makes the host functions importable in rt.
func (h *Host) exportABI(ctx context.Context, rt wazero.Runtime) error {
	b := rt.NewHostModuleBuilder(abiModule)
	for _, subject := range abiFunctions() {
		for _, f := range subject {
			b.NewFunctionBuilder().WithGoFunction(f, f.params, f.results).Export(f.name)
		}
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return fmt.Errorf("host module %s: %w", abiModule, err)
	}
	w := rt.NewHostModuleBuilder(wasiModule)
	for name, f := range wasiFunctions {
		w.NewFunctionBuilder().WithGoFunction((*wasiFunc)(f), f.params, f.results).Export(name)
	}
	if _, err := w.Instantiate(ctx); err != nil {
		return fmt.Errorf("host module %s: %w", wasiModule, err)
	}
	_, err := rt.NewHostModuleBuilder(fuel.HostModule).
		NewFunctionBuilder().
		WithGoFunction(api.GoFunc(func(ctx context.Context, stack []uint64) {
			stack[0] = uint64(ctx.(*instance).refill(int64(stack[0])))
		}), types(i64), types(i64)).
		Export(fuel.RefillName).
		Instantiate(ctx)
	if err != nil {
		return fmt.Errorf("host module %s: %w", fuel.HostModule, err)
	}
	return nil
}

// bytes is a view of guest memory; it ends when the guest runs again. A range
// outside of memory traps.
func (in *instance) bytes(ptr, length uint64) []byte {
	b, ok := in.memory.at(uint32(ptr), uint32(length))
	if !ok {
		in.outside(ptr, length)
	}
	in.charge(int64(uint(len(b)) / byteCost))
	return b
}

// argumentAt is an argument of the call. One that there is not traps.
func (in *instance) argumentAt(index uint64) []byte {
	args, i := in.call.Args, uint32(index)
	if uint64(i) >= uint64(len(args)) {
		panic(&trap{fmt.Sprintf("argument %d is asked for, but there are %d", i, len(args))})
	}
	in.charge(int64(uint(len(args[i])) / byteCost))
	return args[i]
}

// inMemory traps if a range is outside of guest memory.
func (in *instance) inMemory(ptr, length uint64) {
	if end := uint64(uint32(ptr)) + uint64(uint32(length)); end > uint64(len(in.memory)) {
		in.outside(ptr, length)
	}
}

func (in *instance) outside(ptr, length uint64) {
	panic(&trap{fmt.Sprintf("pointer %d with length %d is outside of memory (%d bytes)", uint32(ptr), uint32(length), len(in.memory))})
}

// aligned traps if a pointer to words is not a multiple of their size.
func aligned(ptr uint64, size uint32) {
	if uint32(ptr)%size != 0 {
		panic(&trap{fmt.Sprintf("pointer %d is not a multiple of %d", uint32(ptr), size)})
	}
}

// key finds a key that the call holds and that the module may read, or write.
func (in *instance) key(ptr, length uint64, write bool) (*store.Key, int32) {
	return in.keyNamed(in.bytes(ptr, length), write)
}

// keyNamed is key by its name.
func (in *instance) keyNamed(name []byte, write bool) (*store.Key, int32) {
	in.charge(int64(len(in.declared)))
	if in.reaches {
		if !in.may(name, write) {
			return nil, codeDenied
		}
		if owns := in.call.E.Owns; owns != nil && !owns(in.db, name) {
			return nil, codeDenied // it would be a phantom of what lives upstream
		}
		in.hold(in.db, name)
		return in.call.Tx.Key(in.db, name), 0
	}
	declared, ok := in.declaredAs(name)
	if !ok || !in.granted(name, write) {
		return nil, codeDenied
	}
	// The argument itself is found without a look at its bytes, if it is the only key.
	return in.call.Tx.Key(in.db, declared), 0
}

// may tells whether the call has declared a key of its database, or may reach
// for any, and the module may read or write it.
func (in *instance) may(name []byte, write bool) bool {
	if !in.reaches {
		if _, ok := in.declaredAs(name); !ok {
			return false
		}
	}
	return in.granted(name, write)
}

// granted tells whether the module may read or write a key.
func (in *instance) granted(name []byte, write bool) bool {
	prefixes := in.m.granted.Read
	if write {
		prefixes = in.m.granted.Write
		if in.readOnly {
			return false
		}
	}
	return len(prefixes) == 1 && prefixes[0] == "" || granted(prefixes, name)
}

// granted tells whether a key has one of the prefixes.
func granted(prefixes []string, name []byte) bool {
	for _, p := range prefixes {
		if len(name) >= len(p) && string(name[:len(p)]) == p {
			return true
		}
	}
	return false
}

// declaredAs returns the argument that declares a key.
func (in *instance) declaredAs(name []byte) (arg []byte, ok bool) {
	args := in.call.Args
	for i := range in.declared {
		if arg = args[in.declared[i].Index]; bytes.Equal(arg, name) {
			return arg, true
		}
	}
	return nil, false
}

// hold makes sure that the transaction has a key that it need not have declared.
// When another holds it everything is undone and run again.
func (in *instance) hold(db int, name []byte) {
	if in.reaches && in.call.Tx.Reach(db, name) != nil {
		panic(&trap{reason: rerunReason})
	}
}

func result(stack []uint64, code int32) { stack[0] = uint64(uint32(code)) }
