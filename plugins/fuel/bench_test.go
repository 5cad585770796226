package fuel

import (
	"context"
	"os"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

const cadModule = "../../examples/plugins/cad/c/cad.wasm"

// BenchmarkInstrument measures what a load costs before the compiler.
func BenchmarkInstrument(b *testing.B) {
	cad, err := os.ReadFile(cadModule)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		module []byte
	}{{"cad", cad}, {"go", goGuest(b)}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.module)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Instrument(c.module, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOverhead runs the same loops and calls as built and instrumented. An
// operation is 1,000 turns or calls.
func BenchmarkOverhead(b *testing.B) {
	m := assemble(b, `(module (memory 1)
	  (func (export "count") (param i32) (result i32)
	    (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))) (local.get 0))
	  (func (export "bytes") (param i32) (result i32) (local i32)
	    (loop
	      (local.set 1 (i32.xor (i32.mul (local.get 1) (i32.const 16777619)) (i32.load8_u (local.get 0))))
	      (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
	    (local.get 1))
	  (func $fib (export "fib") (param i32) (result i32)
	    (if (i32.lt_s (local.get 0) (i32.const 2)) (then (return (local.get 0))))
	    (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1))) (call $fib (i32.sub (local.get 0) (i32.const 2)))))
	  (func (export "copies") (param i32) (result i32)
	    (loop
	      (memory.copy (i32.const 8) (i32.const 512) (i32.const 40))
	      (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
	    (local.get 0)))`)
	rt := newRuntime(b, 256)
	plain, err := rt.InstantiateWithConfig(context.Background(), m, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		b.Fatal(err)
	}
	changed := mustStart(b, m, Options{}, &host{budget: 1 << 62, slice: 1 << 20})
	for _, c := range []struct {
		fn  string
		arg uint64
	}{{"count", 1000}, {"bytes", 1000}, {"fib", 14} /* 1,219 calls */, {"copies", 1000}} {
		for _, v := range []struct {
			name string
			mod  api.Module
		}{{"plain", plain}, {"fuel", changed}} {
			b.Run(c.fn+"/"+v.name, func(b *testing.B) {
				fn := v.mod.ExportedFunction(c.fn)
				var stack [1]uint64
				for b.Loop() {
					stack[0] = c.arg
					if err := fn.CallWithStack(context.Background(), stack[:]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
