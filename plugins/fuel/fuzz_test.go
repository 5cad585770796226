package fuel

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// judge runs modules as built and instrumented and compares them.
type judge struct {
	rt   wazero.Runtime
	host *host
}

const judgePages = 16

func newJudge(t testing.TB) *judge {
	j := &judge{rt: newRuntime(t, judgePages)}
	ctx := context.Background()
	i64 := []api.ValueType{api.ValueTypeI64}
	_, err := j.rt.NewHostModuleBuilder(HostModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
			j.host.refill(ctx, m, stack)
		}), i64, i64).Export(RefillName).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	provideGuest(t, j.rt)
	return j
}

// check fails the test unless a module that is accepted is valid exactly if
// the original is, and computes the same. It reports whether anything ran. Functions
// are called with the given arguments, for those that are missing 2, 3 and so on.
func (j *judge) check(t *testing.T, original []byte, given ...uint64) bool {
	opt := Options{MemoryPages: judgePages, Depth: 60, Limits: Limits{TableEntries: 1000}}.withDefaults()
	_, err := Instrument(original, opt)
	if (err == nil) != (Check(original, opt.Limits) == nil) {
		m, perr := parse(original, opt.Limits)
		if perr != nil || m.memory == nil || m.memory.min <= judgePages {
			t.Fatalf("Instrument says %v, Check %v", err, Check(original, opt.Limits))
		}
	}
	if err != nil {
		return false
	}
	// The first of the functions keeps its notes, too.
	keeping := keepsNotes("a")
	keeping.MemoryPages, keeping.Depth, keeping.Limits = opt.MemoryPages, opt.Depth, opt.Limits
	out, err := Instrument(original, keeping)
	if err != nil {
		return false // for the checks that it adds
	}
	ctx := context.Background()
	plain, perr := j.rt.CompileModule(ctx, original)
	if perr == nil {
		defer plain.Close(ctx)
	}
	changed, cerr := j.rt.CompileModule(ctx, out)
	if cerr == nil {
		defer changed.Close(ctx)
	}
	m, _ := parse(original, opt.Limits)
	switch {
	case perr == nil && cerr != nil:
		t.Fatalf("valid as built, but instrumented: %v", cerr)
	case perr != nil && cerr == nil:
		// Limits are lowered and custom sections dropped; nothing else may heal a module.
		if !hasCustom(original) && (m.memory == nil || m.memory.max <= judgePages) {
			t.Fatalf("valid instrumented, but as built: %v", perr)
		}
		return false
	case perr != nil:
		return false
	}
	for _, table := range m.tables {
		if !table.hasMax || table.max > 1000 {
			return false // it may grow further as built
		}
	}

	// The instrumented one runs first: it ends, and then so will the other.
	j.host = &host{budget: 200_000, slice: 1000}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	b, berr := j.rt.InstantiateModule(ctx, changed, config)
	if errors.Is(berr, errFuel) || errors.Is(berr, errDepth) {
		return true
	}
	a, aerr := j.rt.InstantiateModule(ctx, plain, config)
	if trap(aerr) != trap(berr) {
		t.Fatalf("instantiating: %v as built, %v instrumented", aerr, berr)
	}
	if aerr != nil {
		return true
	}
	defer a.Close(ctx)
	defer b.Close(ctx)
	var names []string
	for name := range plain.ExportedFunctions() {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fa, fb := a.ExportedFunction(name), b.ExportedFunction(name)
		args := make([]uint64, len(fa.Definition().ParamTypes()))
		for i := range args {
			args[i] = uint64(i + 2)
		}
		copy(args, given)
		if slices.ContainsFunc(fa.Definition().ParamTypes(), func(t api.ValueType) bool {
			return t != api.ValueTypeI32 && t != api.ValueTypeI64
		}) {
			continue // references and vectors cannot be passed as numbers
		}
		var na, nb []int64
		rb, berr := []uint64(nil), error(nil)
		if entry := b.ExportedFunction(EntryName); entry != nil && name == "a" {
			rb, nb, _, _, berr = enter(b, int64(b.ExportedGlobal(GlobalName).Get()), args...)
		} else {
			rb, berr = fb.Call(context.WithValue(ctx, notes{}, &nb), args...)
		}
		if errors.Is(berr, errFuel) || errors.Is(berr, errDepth) {
			return true
		}
		ra, aerr := fa.Call(context.WithValue(ctx, notes{}, &na), args...)
		if trap(aerr) != trap(berr) {
			t.Fatalf("%s%v: %v as built, %v instrumented", name, args, aerr, berr)
		}
		if aerr == nil && !slices.Equal(na, nb) {
			t.Fatalf("%s%v: notes %v as built, %v instrumented", name, args, na, nb)
		}
		for i, typ := range fa.Definition().ResultTypes() {
			number := typ == api.ValueTypeI32 || typ == api.ValueTypeI64
			if aerr == nil && number && ra[i] != rb[i] {
				t.Fatalf("%s%v: %v as built, %v instrumented", name, args, ra, rb)
			}
		}
		if m.memory != nil {
			ma, _ := a.Memory().Read(0, a.Memory().Size())
			mb, _ := b.Memory().Read(0, b.Memory().Size())
			if !bytes.Equal(ma, mb) {
				t.Fatalf("%s%v: memories differ", name, args)
			}
		}
		if aerr != nil {
			break
		}
	}
	return true
}

// hasCustom reports whether a module that parse accepts has a custom section.
func hasCustom(module []byte) bool {
	r := reader{b: module, at: 8}
	for r.more() {
		if r.byte() == secCustom {
			return true
		}
		r.until(r.u32())
	}
	return false
}

// FuzzInstrument changes modules byte by byte.
func FuzzInstrument(f *testing.F) {
	f.Add(wasm())
	f.Add(assemble(f, everything))
	f.Add(assemble(f, `(module (memory (export "m") 1 2) (func (export "f") (param i32 i32) (result i32) (local i64)
	  (loop $l (block $b (br_table $l $b $l (local.get 0))) (local.set 0 (i32.div_s (local.get 0) (local.get 1))) (br_if $l (local.get 0)))
	  (memory.fill (local.get 0) (local.get 1) (i32.const 9)) (i32.load8_s (local.get 1))))`))
	f.Add(assemble(f, `(module (func (export "f") (global.set 0 (i64.const 5))))`))
	for seed := range uint64(8) {
		f.Add(generate(rand.New(rand.NewPCG(seed, 1))))
	}
	j := newJudge(f)
	f.Fuzz(func(t *testing.T, module []byte) { j.check(t, module) })
}

// FuzzInstrumentGenerated makes valid modules with deep control flow.
func FuzzInstrumentGenerated(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	j := newJudge(f)
	f.Fuzz(func(t *testing.T, seed uint64) {
		module := generate(rand.New(rand.NewPCG(seed, 0)))
		if !j.check(t, module) {
			_, err := Instrument(module, Options{})
			t.Errorf("a generated module was refused, or is not valid: %v", err)
		}
	})
}
