package fuel

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

const asking = `(module
  (import "env" "ask" (func $ask (param i32 i32) (result i32)))
  (import "env" "other" (func $other (param i32 i32) (result i32)))
  (table 1 funcref)
  (elem (i32.const 0) $ask)
  (func (export "f") (param i32 i32 i32) (result i32)
    (local i64 i32)
    (local.set 4 (i32.const 1000))
    (if (i32.eqz (local.get 0)) (then (return (call $ask (local.get 1) (local.get 2)))))
    (if (i32.eq (local.get 0) (i32.const 1))
      (then (return (i32.add (i32.mul (call $ask (local.get 1) (local.get 2)) (i32.const 100)) (call $ask (local.get 1) (local.get 2))))))
    (if (i32.eq (local.get 0) (i32.const 2))
      (then (return (call_indirect (param i32 i32) (result i32) (local.get 1) (local.get 2) (i32.const 0)))))
    (if (i32.eq (local.get 0) (i32.const 3))
      (then (return (call $other (local.get 1) (local.get 2)))))
    (i32.add (local.get 4) (call $ask (local.get 1) (local.get 2)))))`

// TestEntryForesees has a call answered in the guest: once, directly, with exactly the
// parameters that were foreseen, and only while the host has not called it off.
func TestEntryForesees(t *testing.T) {
	out, err := Instrument(assemble(t, asking), Options{Entry: "f", Foreseen: Import{"env", "ask"}})
	if err != nil {
		t.Fatal(err)
	}
	rt := newRuntime(t, 16)
	asked, callOff := 0, false
	i32 := api.ValueTypeI32
	host := rt.NewHostModuleBuilder("env")
	for _, name := range []string{"ask", "other"} {
		host.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, stack []uint64) {
			asked++
			if callOff {
				m.ExportedGlobal(ForeseenName).(api.MutableGlobal).Set(ForeseenNone)
			}
			stack[0] = 7
		}), []api.ValueType{i32, i32}, []api.ValueType{i32}).Export(name)
	}
	if _, err := host.Instantiate(context.Background()); err != nil {
		t.Fatal(err)
	}
	provideRefill(t, rt)
	g, err := rt.Instantiate(context.Background(), out)
	if err != nil {
		t.Fatal(err)
	}
	const big = 1<<32 - 1
	foresee := func(a, b uint64) uint64 { return a | b<<32 }
	for _, c := range []struct {
		which, a, b uint64
		state       uint64
		foreseen    uint64
		callOff     bool
		want        int32
		asked       int
		after       uint64
	}{
		{0, 1, 2, ForeseenNone, foresee(1, 2), false, 7, 1, ForeseenNone},
		{0, 1, 2, ForeseenAwait, foresee(1, 2), false, -5, 0, ForeseenAnswered},
		{0, 0, 0, ForeseenAwait, 0, false, -5, 0, ForeseenAnswered},
		{0, big, big, ForeseenAwait, foresee(big, big), false, -5, 0, ForeseenAnswered},
		{0, big, 0, ForeseenAwait, foresee(big, 0), false, -5, 0, ForeseenAnswered},
		{0, 2, 1, ForeseenAwait, foresee(1, 2), false, 7, 1, ForeseenAwait},
		{0, 1, 2, ForeseenAnswered, foresee(1, 2), false, 7, 1, ForeseenAnswered},
		{1, 1, 2, ForeseenAwait, foresee(1, 2), false, -493, 1, ForeseenAnswered},
		{1, 1, 2, ForeseenAwait, foresee(1, 3), false, 707, 2, ForeseenAwait},
		{1, 1, 2, ForeseenAwait, foresee(1, 3), true, 707, 2, ForeseenNone},
		{2, 1, 2, ForeseenAwait, foresee(1, 2), false, 7, 1, ForeseenAwait},
		{3, 1, 2, ForeseenAwait, foresee(1, 2), false, 7, 1, ForeseenAwait},
		{4, 1, 2, ForeseenAwait, foresee(1, 2), false, 995, 0, ForeseenAnswered},
	} {
		asked, callOff = 0, c.callOff
		minus := int32(-5)
		res, err := g.ExportedFunction(EntryName).Call(context.Background(), c.which, c.a, c.b, 1000, c.state, c.foreseen, uint64(uint32(minus)))
		if err != nil {
			t.Fatal(err)
		}
		if int32(res[0]) != c.want || asked != c.asked || res[4] != c.after {
			t.Errorf("f(%d, %d, %d) with %d of %#x foreseen returned %d, asked %d times and left %d; want %d, %d, %d",
				c.which, c.a, c.b, c.state, c.foreseen, int32(res[0]), asked, res[4], c.want, c.asked, c.after)
		}
		if got := g.ExportedGlobal(ForeseenName).Get(); got != ForeseenNone {
			t.Errorf("after the call the state is %d", got)
		}
	}
	// Outside of the entry each is the host's.
	asked = 0
	if res, err := g.ExportedFunction("f").Call(context.Background(), 0, 1, 2); err != nil || res[0] != 7 || asked != 1 {
		t.Errorf("not by the entry: %v, asked %d times, %v", res, asked, err)
	}
}

// What has another type is not answered.
func TestEntryForeseesOneType(t *testing.T) {
	for _, typ := range []string{"(param i32) (result i32)", "(param i32 i32)", "(param i64 i32) (result i32)", "(param i32 i32) (result i64)", "(param i32 i32 i32) (result i32)"} {
		m := assemble(t, `(module (import "env" "ask" (func `+typ+`)) (func (export "f")))`)
		opt := Options{Entry: "f", Foreseen: Import{"env", "ask"}}
		out, err := Instrument(m, opt)
		if err != nil {
			t.Fatal(err)
		}
		opt.Foreseen = Import{}
		if plain, _ := Instrument(m, opt); string(plain) != string(out) {
			t.Errorf("%s: something was added to answer it", typ)
		}
	}
}

// provideRefill instantiates the host function that grants fuel.
func provideRefill(t testing.TB, rt wazero.Runtime) {
	t.Helper()
	i64 := []api.ValueType{api.ValueTypeI64}
	if _, err := rt.NewHostModuleBuilder(HostModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc((&host{budget: 1 << 20}).refill), i64, i64).Export(RefillName).Instantiate(context.Background()); err != nil {
		t.Fatal(err)
	}
}
