package plugins

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/latchkey-proxy/latchkey/plugins/fuel"
	"github.com/latchkey-proxy/latchkey/plugins/manifest"
)

// BenchmarkFloor is what a call of the cad example costs below latchkey: wazero, the
// guest, and its two host calls, which do nothing. With fuel and without, and with the
// first of the two foreseen; empty is lk_abi, which returns a constant. least-ns/op is that of the quickest window.
func BenchmarkFloor(b *testing.B) {
	const window = 512
	for _, lang := range []string{"c", "assemblyscript", "rust", "go"} {
		code, err := os.ReadFile("../examples/plugins/cad/" + lang + "/cad.wasm")
		if err != nil {
			b.Fatal(err)
		}
		metered, err := fuel.Instrument(code, rewriting(0))
		if err != nil {
			b.Fatal(err)
		}
		for _, bm := range []struct {
			name, export string
			code         []byte
			params       []uint64
		}{
			{"plain", "lk_command", code, []uint64{1, 3, 0}},
			{"fuel", fuel.EntryName, metered, []uint64{1, 3, 0, 1 << 40, fuel.ForeseenNone, 0, 0}},
			{"foreseen", fuel.EntryName, metered, []uint64{1, 3, 0, 1 << 40, fuel.ForeseenAwait, comparison(1, 2), 0}},
			{"empty", "lk_abi", metered, []uint64{0}},
		} {
			b.Run(lang+"/"+bm.name, func(b *testing.B) {
				in := floorInstance(b, bm.code)
				if err := in.writeFrame([][]byte{[]byte("CAD.WASM"), []byte("lock:orders:42"), []byte("theirs")}); err != nil {
					b.Fatal(err)
				}
				fn := in.guest.ExportedFunction(bm.export)
				n, least, began := 0, time.Duration(1<<62), time.Now()
				for b.Loop() {
					copy(in.stack, bm.params)
					if len(bm.params) >= 3 {
						in.stack[2] = uint64(in.arena)
					}
					if err := fn.CallWithStack(in, in.stack); err != nil {
						b.Fatal(err)
					}
					if n++; n%window == 0 {
						now := time.Now()
						least, began = min(least, now.Sub(began)), now
					}
				}
				if n >= window {
					b.ReportMetric(float64(least)/window, "least-ns/op")
				}
			})
		}
	}
}

// noGlobal stands for the fuel of a module that has none.
type noGlobal struct{ api.MutableGlobal }

func (noGlobal) Get() uint64 { return 0 }
func (noGlobal) Set(uint64)  {}

// floorInstance is an instance in a runtime whose host functions answer 0.
func floorInstance(b *testing.B, code []byte) *instance {
	m := &module{host: &Host{opt: Options{Seed: randomSeed, MaxPages: 256}}, man: &manifest.Manifest{}}
	m.host.SetMaxTime(time.Minute)
	in := &instance{m: m, stack: make([]uint64, 8)}
	in.Context = experimental.WithMemoryAllocator(context.Background(), in)
	rt := wazero.NewRuntimeWithConfig(in, runtimeConfig(256))
	b.Cleanup(func() { rt.Close(context.Background()) })
	instantiate := func(h wazero.HostModuleBuilder) {
		if _, err := h.Instantiate(in); err != nil {
			b.Fatal(err)
		}
	}
	host := rt.NewHostModuleBuilder(abiModule)
	for _, subject := range abiFunctions() {
		for _, f := range subject {
			host.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) {
				if len(stack) > 0 {
					stack[0] = 0
				}
			}), f.params, f.results).Export(f.name)
		}
	}
	instantiate(host)
	wasi := rt.NewHostModuleBuilder(wasiModule)
	for name, f := range wasiFunctions {
		wasi.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) { f.call(in, stack) }), f.params, f.results).Export(name)
	}
	instantiate(wasi)
	instantiate(rt.NewHostModuleBuilder(fuel.HostModule).NewFunctionBuilder().
		WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) { stack[0] = 1 << 40 }), types(i64), types(i64)).Export(fuel.RefillName))
	compiled, err := rt.CompileModule(in, code)
	if err != nil {
		b.Fatal(err)
	}
	guest, err := rt.InstantiateModule(in, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		b.Fatal(err)
	}
	in.guest, in.arenaFn = guest, guest.ExportedFunction("lk_arena")
	if in.fuel, _ = guest.ExportedGlobal(fuel.GlobalName).(api.MutableGlobal); in.fuel == nil {
		in.fuel = noGlobal{}
	}
	for _, name := range []string{"_initialize", "lk_init"} {
		if start := guest.ExportedFunction(name); start != nil {
			if _, err := start.Call(in); err != nil {
				b.Fatal(err)
			}
		}
	}
	return in
}
