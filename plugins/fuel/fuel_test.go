package fuel

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

var (
	errFuel  = errors.New("out of fuel")
	errDepth = errors.New("calls nested too deep")
)

// need returns the path of an external program, or skips the test.
func need(t testing.TB, program, debian string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if os.Getenv("LATCHKEY_CI") == "1" {
		t.Fatalf("%s not found: install the Debian package %s", program, debian)
	}
	// It may: the assembler is for the tests' own modules, and the README promises that Go is all that is needed.
	t.Skipf("%s not found: install the Debian package %s", program, debian)
	return ""
}

// assemble turns text into a module. It is not validated on the way, so that
// invalid modules can be written down too.
func assemble(t testing.TB, text string) []byte {
	t.Helper()
	tool := need(t, "wat2wasm", "wabt")
	dir := t.TempDir()
	in, out := filepath.Join(dir, "m.wat"), filepath.Join(dir, "m.wasm")
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.Command(tool, "--no-check", "--debug-names", in, "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("wat2wasm: %v\n%s", err, msg)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// host grants fuel from a budget in slices.
type host struct {
	budget  int64 // not granted yet
	slice   int64 // granted at once, beyond the debt
	spent   int64 // by the debts seen: exact with slice 0
	asked   int
	dearest int64 // largest debt
}

func (h *host) refill(_ context.Context, _ api.Module, stack []uint64) {
	fuel := int64(stack[0])
	if fuel == DepthExceeded {
		panic(errDepth)
	}
	if fuel >= 0 {
		panic("refill called with fuel left")
	}
	h.asked++
	h.spent -= fuel
	h.dearest = max(h.dearest, -fuel)
	if -fuel > h.budget {
		panic(errFuel)
	}
	grant := min(h.budget, h.slice-fuel)
	h.budget -= grant
	stack[0] = uint64(fuel + grant)
}

func newRuntime(t testing.TB, pages uint32) wazero.Runtime {
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().
		WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(pages))
	t.Cleanup(func() { rt.Close(ctx) })
	return rt
}

// provide instantiates the host's modules.
func provide(t testing.TB, rt wazero.Runtime, h *host) {
	t.Helper()
	ctx := context.Background()
	i64 := []api.ValueType{api.ValueTypeI64}
	_, err := rt.NewHostModuleBuilder(HostModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(h.refill), i64, i64).Export(RefillName).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	provideGuest(t, rt)
}

// provideGuest instantiates what guests of these tests may import.
func provideGuest(t testing.TB, rt wazero.Runtime) {
	t.Helper()
	ctx := context.Background()
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	i32 := []api.ValueType{api.ValueTypeI32}
	_, err := rt.NewHostModuleBuilder("env").NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
			stack[0] = uint64(uint32(stack[0]) * 3)
		}), i32, i32).Export("triple").NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
			if to, ok := ctx.Value(notes{}).(*[]int64); ok {
				*to = append(*to, int64(stack[0]))
			}
		}), []api.ValueType{api.ValueTypeI64}, nil).Export("note").Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
}

// notes is the key of a *[]int64 in the context of a call: what the guest has told
// the host function note.
type notes struct{}

// keepsNotes are the options for an export whose first call of note is kept.
func keepsNotes(export string) Options { return Options{Entry: export, Kept: Import{"env", "note"}} }

// enter calls the entry of a module with so much fuel, and returns what it has
// noted, the fuel that is left, and whether a note was kept.
func enter(m api.Module, budget int64, args ...uint64) (results []uint64, noted []int64, left int64, kept uint32, err error) {
	ctx := context.WithValue(context.Background(), notes{}, &noted)
	results, err = m.ExportedFunction(EntryName).Call(ctx, append(slices.Clone(args), uint64(budget), ForeseenNone, 0, 0)...)
	if err != nil {
		return nil, noted, 0, 0, err
	}
	n := len(results) - 4
	if kept = uint32(results[n+1]); kept == KeptFilled {
		noted = append([]int64{int64(results[n+2])}, noted...)
	}
	return results[:n], noted, int64(results[n]), kept, nil
}

// guest is an instance of a module.
type guest struct {
	api.Module
	host *host
}

// start instruments a module and instantiates it.
func start(t testing.TB, wasm []byte, opt Options, h *host) (guest, error) {
	t.Helper()
	out, err := Instrument(wasm, opt)
	if err != nil {
		t.Fatalf("instrument: %v", err)
	}
	rt := newRuntime(t, opt.withDefaults().MemoryPages)
	provide(t, rt, h)
	mod, err := rt.InstantiateWithConfig(context.Background(), out, wazero.NewModuleConfig().WithStartFunctions())
	return guest{mod, h}, err
}

func mustStart(t testing.TB, wasm []byte, opt Options, h *host) guest {
	t.Helper()
	g, err := start(t, wasm, opt, h)
	if err != nil {
		t.Fatalf("instantiate: %v", err)
	}
	return g
}

func (g guest) call(name string, args ...uint64) ([]uint64, error) {
	return g.ExportedFunction(name).Call(context.Background(), args...)
}

func (g guest) fuel() int64 { return int64(g.ExportedGlobal(GlobalName).Get()) }

// goGuest builds testdata/goguest.
func goGuest(t testing.TB) []byte {
	t.Helper()
	tool := need(t, "go", "golang-go")
	out := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.Command(tool, "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, "./testdata/goguest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, msg)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func TestGoGuest(t *testing.T) {
	wasm := goGuest(t)
	if err := Check(wasm, Limits{}); err != nil {
		t.Fatalf("a module built by Go is refused: %v", err)
	}
	h := &host{budget: 1 << 40, slice: 1 << 20}
	g := mustStart(t, wasm, Options{MemoryPages: 512}, h)
	if _, err := g.call("_initialize"); err != nil {
		t.Fatalf("_initialize: %v", err)
	}

	rt := newRuntime(t, 512)
	provideGuest(t, rt)
	plain, err := rt.InstantiateWithConfig(context.Background(), wasm, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint64{0, 1, 100, 3000} {
		want, err := plain.ExportedFunction("work").Call(context.Background(), n)
		if err != nil {
			t.Fatal(err)
		}
		got, err := g.call("work", n)
		if err != nil {
			t.Fatalf("work(%d): %v", n, err)
		}
		if got[0] != want[0] {
			t.Errorf("work(%d) = %d instrumented, %d as built", n, got[0], want[0])
		}
	}
	if h.asked == 0 {
		t.Error("no fuel was asked for")
	}
	if got, err := g.call("descend", 200); err != nil || got[0] != 200 {
		t.Errorf("descend(200) = %v, %v; want 200", got, err)
	}
	if _, err := g.call("descend", 100_000); !errors.Is(err, errDepth) {
		t.Errorf("descend(100000): %v, want %v", err, errDepth)
	}

	h2 := &host{budget: 1 << 28, slice: 1 << 20}
	g = mustStart(t, wasm, Options{MemoryPages: 512}, h2)
	if _, err := g.call("_initialize"); err != nil {
		t.Fatalf("_initialize: %v", err)
	}
	_, err = g.call("spin")
	var exit *sys.ExitError
	if !errors.Is(err, errFuel) && !errors.As(err, &exit) {
		t.Errorf("spin: %v, want %v", err, errFuel)
	}
}

func contains(err error, text string) bool {
	return err != nil && strings.Contains(err.Error(), text)
}
