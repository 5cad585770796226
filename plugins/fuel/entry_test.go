package fuel

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero/api"
)

const noting = `(module
  (import "env" "triple" (func $triple (param i32) (result i32)))
  (import "env" "note" (func $note (param i64)))
  (import "env" "note" (func $again (param i64)))
  (table 1 funcref)
  (elem (i32.const 0) $note)
  (func $deep (param i32 i64) (if (local.get 0) (then (call $deep (i32.sub (local.get 0) (i32.const 1)) (local.get 1))) (else (call $note (local.get 1)))))
  (func (export "f") (param i32 i32) (result i32)
    (block (block (block (block (block (block
      (br_table 0 1 2 3 4 5 (local.get 0)))
      (return (call $triple (i32.const 2))))
      (call $deep (local.get 1) (i64.const -5))
      (return (call $triple (local.get 1))))
      (call $note (i64.const 1)) (call $again (i64.const 2)) (call $note (i64.const 3))
      (return (i32.const 4)))
      (call_indirect (param i64) (i64.const 7) (i32.const 0)) (call $again (i64.const 8))
      (return (i32.const 5)))
      (call $note (i64.const 9)) (unreachable) (call $note))
    (call $deep (i32.const 100000) (i64.const 1))
    (i32.const 6)))`

func TestEntryKeepsOneArgument(t *testing.T) {
	const budget = 1 << 20
	h := &host{budget: budget, slice: 1}
	g := mustStart(t, assemble(t, noting), keepsNotes("f"), h)
	for _, c := range []struct {
		name   string
		which  uint64
		result uint64
		noted  []int64
		kept   uint32
	}{
		{"none", 0, 6, nil, KeptAwait},
		{"in a function that it calls", 1, 30, []int64{-5}, KeptFilled},
		{"the first of three", 2, 4, []int64{1, 2, 3}, KeptFilled},
	} {
		for _, again := range []bool{false, true} { // nothing is left of the call before
			out, noted, left, kept, err := enter(g, budget, c.which, 10)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if out[0] != c.result || kept != c.kept || !slices.Equal(noted, c.noted) {
				t.Errorf("%s (again: %t): %d, noted %d, kept %d; want %d, %d, %d", c.name, again, out[0], noted, kept, c.result, c.noted, c.kept)
			}
			if left >= budget-100 || left < budget-2000 || left != g.fuel() {
				t.Errorf("%s: %d of %d units are left, the global says %d", c.name, left, budget, g.fuel())
			}
		}
	}
	// What comes through a table comes to the host, and then what follows is kept.
	if _, noted, _, kept, err := enter(g, budget, 3, 0); err != nil || kept != KeptFilled || !slices.Equal(noted, []int64{8, 7}) {
		t.Errorf("through a table: noted %d, kept %d, %v", noted, kept, err)
	}
	// Outside of the entry each is the host's.
	var noted []int64
	ctx := context.WithValue(context.Background(), notes{}, &noted)
	if _, err := g.ExportedFunction("f").Call(ctx, 2, 0); err != nil || !slices.Equal(noted, []int64{1, 2, 3}) {
		t.Errorf("not by the entry: noted %d, %v", noted, err)
	}
	if got := g.ExportedGlobal(KeptName).Get(); got != KeptNone {
		t.Errorf("after the calls: %d, want %d", got, KeptNone)
	}
	// It can run out of fuel, and trap, as any other function.
	h.budget = 0
	if _, _, _, _, err := enter(g, 50, 1, 10); err == nil {
		t.Error("50 units were enough")
	}
}

// The host may call it off before the guest has called.
func TestEntryKeepsNothingWhenToldSo(t *testing.T) {
	m := assemble(t, `(module
	  (import "env" "triple" (func $triple (param i32) (result i32)))
	  (import "env" "note" (func $note (param i64)))
	  (func (export "f") (drop (call $triple (i32.const 1))) (call $note (i64.const 3))))`)
	out, err := Instrument(m, keepsNotes("f"))
	if err != nil {
		t.Fatal(err)
	}
	rt := newRuntime(t, 16)
	var noted []int64
	_, err = rt.NewHostModuleBuilder("env").NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, _ []uint64) {
			kept := m.ExportedGlobal(KeptName).(api.MutableGlobal)
			if kept.Get() != KeptAwait {
				t.Errorf("within the call: %d, want %d", kept.Get(), KeptAwait)
			}
			kept.Set(KeptNone)
		}), []api.ValueType{api.ValueTypeI32}, []api.ValueType{api.ValueTypeI32}).Export("triple").
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
		noted = append(noted, int64(stack[0]))
	}), []api.ValueType{api.ValueTypeI64}, nil).Export("note").Instantiate(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	provideRefill(t, rt)
	g, err := rt.Instantiate(context.Background(), out)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, kept, err := enter(g, 1000); err != nil || kept != KeptNone || !slices.Equal(noted, []int64{3}) {
		t.Errorf("kept %d, the host got %d, %v; want %d, [3], nil", kept, noted, err, KeptNone)
	}
}

func TestEntryOfOtherModules(t *testing.T) {
	for _, c := range []struct {
		name, module string
		entry        bool
	}{
		{"no such export", `(module (func (export "g")))`, false},
		{"no exports", `(module (func))`, false},
		{"a memory of that name", `(module (memory (export "f") 1))`, false},
		{"9 parameters", `(module (func (export "f") (param i32 i32 i32 i32 i32 i32 i32 i32 i32)))`, false},
		{"9 results", `(module (func (export "f") (result i32 i32 i32 i32 i32 i32 i32 i32 i32) unreachable))`, false},
		{"8 of each", `(module (func (export "f") (param i32 i64 f32 f64 v128 funcref externref i32) (result i32 i32 i32 i32 i32 i32 i32 i64) unreachable))`, true},
		{"an import", `(module (import "env" "note" (func (param i64))) (export "f" (func 0)))`, true},
		{"the kept import of another type", `(module (import "env" "triple" (func $t (param i32) (result i32))) (func (export "f") (drop (call $t (i32.const 1)))))`, true},
	} {
		opt := keepsNotes("f")
		opt.Kept = Import{"env", "triple"}
		m := assemble(t, c.module)
		out, err := Instrument(m, opt)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if _, err := newRuntime(t, 16).CompileModule(context.Background(), out); err != nil {
			t.Errorf("%s: what it became is not valid: %v", c.name, err)
		}
		if got := bytes.Contains(out, []byte(EntryName)); got != c.entry {
			t.Errorf("%s: an entry is added: %t, want %t", c.name, got, c.entry)
		}
		if plain, _ := Instrument(m, Options{}); !c.entry && !bytes.Equal(out, plain) {
			t.Errorf("%s: something was added though there is no entry", c.name)
		}
	}
}
