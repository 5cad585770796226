package fuel

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// TestPace measures the time that a slice of fuel takes
// in loops of the dearest instructions there are: while it lasts Go can neither
// schedule nor collect. Of many slices it is the tenth percentile that counts,
// which a machine that does other things hardly changes.
func TestPace(t *testing.T) {
	const (
		slices = 200
		most   = 10 * time.Millisecond
	)
	rep := strings.Repeat
	for _, c := range []struct{ name, body string }{
		{"empty loop", `(loop $l (br $l))`},
		{"divisions", `(loop $l ` + rep(`(local.set 0 (i64.div_s (i64.const 0x7ffffffffffffff1) (i64.or (local.get 0) (i64.const 3))))`, 100) + `(br $l))`},
		{"remainders", `(loop $l ` + rep(`(local.set 0 (i64.rem_u (i64.const 0x7ffffffffffffff1) (i64.or (local.get 0) (i64.const 3))))`, 100) + `(br $l))`},
		{"roots", `(local.set 1 (f64.const 1e300)) (loop $l ` + rep(`(local.set 1 (f64.sqrt (local.get 1)))`, 100) + `(br $l))`},
		{"vector roots", `(loop $l ` + rep(`(local.set 2 (f64x2.sqrt (f64x2.div (v128.const i64x2 0x4008000000000000 0x4008000000000000) (local.get 2))))`, 100) + `(br $l))`},
		{"denormals", `(local.set 1 (f64.const 1e-310)) (loop $l ` + rep(`(local.set 1 (f64.div (f64.mul (local.get 1) (f64.const 1.1)) (f64.const 1.1)))`, 100) + `(br $l))`},
		// Each load waits for the one before it, and finds nothing in the caches.
		{"loads all over memory", `(loop $l ` + rep(`(local.set 3 (i32.load (local.get 3)))`, 500) + `(br $l))`},
		{"stores all over memory", `(loop $l ` + rep(`(i32.store8 offset=3 (local.tee 3 (i32.load (local.get 3))) (i32.const 0))`, 500) + `(br $l))`},
		{"fills of memory", `(loop $l (memory.fill (i32.const 0x1000000) (i32.const 1) (i32.const 0x1000000)) (br $l))`},
		{"copies of memory", `(loop $l (memory.copy (i32.const 0x1000000) (i32.const 0) (i32.const 0x0ffffff)) (br $l))`},
		{"fills of nothing", `(loop $l ` + rep(`(memory.fill (i32.const 0) (i32.const 1) (i32.const 0))`, 100) + ` (br $l))`},
		{"fills of a table", `(loop $l (table.fill 0 (i32.const 0) (ref.null func) (i32.const 131072)) (br $l))`},
		{"copies of a table", `(loop $l (table.copy 0 0 (i32.const 1) (i32.const 0) (i32.const 131071)) (br $l))`},
		{"copies of little", `(loop $l ` + rep(`(memory.copy (i32.const 5) (i32.const 0) (i32.const 300))`, 100) + ` (br $l))`},
		{"growth by nothing", `(loop $l ` + rep(`(drop (memory.grow (i32.const 0)))`, 100) + ` (br $l))`},
		{"growth that fails", `(loop $l ` + rep(`(drop (memory.grow (i32.const -1)))`, 100) + ` (br $l))`},
		{"calls", `(loop $l ` + rep(`(call $nop)`, 100) + `(br $l))`},
		{"calls through a table", `(loop $l ` + rep(`(call_indirect (type $v) (i32.const 0))`, 100) + `(br $l))`},
		{"references", `(loop $l ` + rep(`(table.set 0 (i32.const 5) (ref.func $nop))`, 100) + `(br $l))`},
	} {
		m := assemble(t, `(module (type $v (func)) (memory (export "memory") 512) (table 131072 funcref) (elem (i32.const 0) $nop)
			(func $nop)
			(func (export "f") (local i64 f64 v128 i32) `+c.body+`))`)
		p := &pace{}
		g := startPaced(t, m, p, slices)
		// A ring through the first 16 MiB, in steps that no cache foresees.
		if strings.Contains(c.name, "all over") {
			const words, step = 1 << 22, 2654435761
			for i := range uint32(words) {
				g.Memory().WriteUint32Le(i*4, (i*step+12345)%words*4)
			}
		}
		if _, err := g.ExportedFunction("f").Call(context.Background()); !errors.Is(err, errFuel) {
			t.Fatalf("%s: %v", c.name, err)
		}
		tenth := p.percentile(10)
		t.Logf("%-24s %v, median %v", c.name, tenth, p.percentile(50))
		if tenth > most {
			t.Errorf("%s: %d units of fuel take %v, want %v at most", c.name, Slice, tenth, most)
		}
	}
}

// pace keeps how long slices of fuel took.
type pace struct{ took []time.Duration }

func (p *pace) percentile(n int) time.Duration {
	slices.Sort(p.took)
	return p.took[len(p.took)*n/100]
}

func startPaced(t testing.TB, wasm []byte, p *pace, most int) api.Module {
	t.Helper()
	out, err := Instrument(wasm, Options{MemoryPages: 512})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	rt := newRuntime(t, 512)
	i64 := []api.ValueType{api.ValueTypeI64}
	began := time.Time{}
	_, err = rt.NewHostModuleBuilder(HostModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
			if !began.IsZero() {
				p.took = append(p.took, time.Since(began))
			}
			if len(p.took) == most {
				panic(errFuel)
			}
			stack[0] = Slice
			began = time.Now()
		}), i64, i64).Export(RefillName).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m, err := rt.InstantiateWithConfig(ctx, out, wazero.NewModuleConfig())
	if err != nil {
		t.Fatal(err)
	}
	return m
}
