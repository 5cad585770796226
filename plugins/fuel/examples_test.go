package fuel

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// TestExamples instruments the plugins of examples/, of each language's
// toolchain, one of the two megabytes of Go among them: they validate, and what they do
// when they are loaded is what they do as built. Host functions answer 0.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/plugins/*/*/*.wasm")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d modules found, want those of the examples: %v", len(files), err)
	}
	large := 0
	for _, file := range files {
		wasm, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		const pages = 512
		out, err := Instrument(wasm, Options{MemoryPages: pages})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if len(wasm) > 1<<20 {
			if large++; large > 1 {
				continue // a few seconds each to compile, and they have most of their code in common
			}
		}
		h := &host{budget: 1 << 40, slice: Slice}
		built, changed := loadExample(t, wasm, pages, h), loadExample(t, out, pages, h)
		for _, call := range []struct {
			name string
			args []uint64
		}{{"_initialize", nil}, {"lk_abi", nil}, {"lk_init", nil}, {"lk_arena", []uint64{4096}}, {"lk_arena", []uint64{100_000}}} {
			if built.ExportedFunction(call.name) == nil {
				if call.name != "_initialize" {
					t.Errorf("%s does not export %s", file, call.name)
				}
				continue
			}
			want, werr := built.ExportedFunction(call.name).Call(context.Background(), call.args...)
			got, gerr := changed.ExportedFunction(call.name).Call(context.Background(), call.args...)
			if !slices.Equal(got, want) || trap(gerr) != trap(werr) {
				t.Errorf("%s: %s%v = %v, %v instrumented; %v, %v as built", file, call.name, call.args, got, gerr, want, werr)
			}
			if werr != nil {
				t.Errorf("%s: %s%v: %v", file, call.name, call.args, werr)
			}
		}
		a, _ := built.Memory().Read(0, built.Memory().Size())
		b, _ := changed.Memory().Read(0, changed.Memory().Size())
		if !bytes.Equal(a, b) {
			t.Errorf("%s: memories differ", file)
		}
		if h.spent == 0 && h.asked > 0 {
			t.Errorf("%s: %d slices of fuel were granted, and nothing was spent", file, h.asked)
		}
	}
	if large == 0 {
		t.Error("none of the examples is larger than a megabyte: where are those of Go?")
	}
}

// loadExample instantiates a module whose imports, but for WASI's, do nothing and
// return 0. It starts nothing.
func loadExample(t *testing.T, wasm []byte, pages uint32, h *host) api.Module {
	t.Helper()
	ctx := context.Background()
	rt := newRuntime(t, pages)
	compiled, err := rt.CompileModule(ctx, wasm)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	builders := map[string]wazero.HostModuleBuilder{}
	// Its clock and its random bytes are the same each time.
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	for _, def := range compiled.ImportedFunctions() {
		from, name, _ := def.Import()
		if from == wasi_snapshot_preview1.ModuleName {
			continue
		}
		if builders[from] == nil {
			builders[from] = rt.NewHostModuleBuilder(from)
		}
		call := func(_ context.Context, _ api.Module, stack []uint64) {
			if len(stack) > 0 {
				stack[0] = 0
			}
		}
		if from == HostModule {
			call = h.refill
		}
		builders[from].NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(call), def.ParamTypes(), def.ResultTypes()).Export(name)
	}
	for _, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			t.Fatal(err)
		}
	}
	m, err := rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		t.Fatalf("instantiate: %v", err)
	}
	return m
}
