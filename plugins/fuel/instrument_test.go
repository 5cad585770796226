package fuel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// everything uses each kind of index and section once.
const everything = `(module $all
  (type $bin (func (param i32 i32) (result i32)))
  (import "env" "triple" (func $triple (param i32) (result i32)))
  (table $t 8 funcref)
  (table $x 2 40 externref)
  (memory (export "memory") 1 4)
  (global $count (mut i32) (i32.const 7))
  (global $ref (mut funcref) (ref.func $add))
  (global f64 (f64.const 1.5))
  (global v128 (v128.const i32x4 1 2 3 4))
  (export "triple" (func $triple))
  (start $begin)
  (elem (table $t) (i32.const 1) func $add $sub $triple)
  (elem $passive funcref (ref.func $sub) (ref.null func) (ref.func $add))
  (elem declare func $pair)
  (data (i32.const 16) "hello")
  (data $later "passive segment")
  (func $begin (global.set $count (i32.add (global.get $count) (i32.const 1))))
  (func $add (type $bin) (return (i32.add (local.get 0) (local.get 1))))
  (func $sub (type $bin) (i32.sub (local.get 0) (local.get 1)))
  (func $pair (export "pair") (param i32) (result i32 i32)
    (if (local.get 0) (then (return (call $add (local.get 0) (i32.const 1)) (i32.const 5))))
    (call $triple (i32.const 4)) (global.get $count))
  (func (export "fib") (param i32) (result i32)
    (if (i32.lt_s (local.get 0) (i32.const 2)) (then (return (local.get 0))))
    (if (i32.gt_s (local.get 0) (i32.const 25)) (then (return (i32.const -1))))
    (i32.add (call 5 (i32.sub (local.get 0) (i32.const 1))) (call 5 (i32.sub (local.get 0) (i32.const 2)))))
  (func (export "indirect") (param i32) (result i32)
    (call_indirect $t (type $bin) (i32.const 40) (i32.const 2) (local.get 0)))
  (func (export "one") (param i32) (result i32)
    (table.init $t $passive (i32.const 4) (i32.const 0) (i32.const 3))
    (table.set $t (i32.const 0) (ref.func $pair))
    (table.copy $t $t (i32.const 5) (i32.const 4) (i32.const 2))
    (table.fill $x (i32.const 0) (ref.null extern) (i32.const 2))
    (i32.add (table.grow $x (ref.null extern) (local.get 0)) (table.size $t)))
  (func (export "bulk") (param i32) (result i32)
    (memory.init $later (i32.const 100) (i32.const 3) (i32.const 5))
    (memory.fill (i32.const 200) (i32.const 9) (local.get 0))
    (memory.copy (i32.const 202) (i32.const 199) (i32.const 50))
    (i32.load (i32.add (i32.const 98) (local.get 0))))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "sum") (param i32) (result i64) (local i64)
    (block (loop
      (br_if 1 (i32.eqz (local.get 0)))
      (local.set 1 (i64.add (local.get 1) (i64.extend_i32_s (local.get 0))))
      (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
      (br 0)))
    (local.get 1))
  (func (export "switch") (param i32) (result i32)
    (block (block (block (block
      (br_table 0 1 2 3 (local.get 0)))
      (return (i32.const 10)))
      (return (i32.const 20)))
      (return (i32.const 30)))
    (loop (result i32) (i32.const 3)))
  (func (export "vectors") (param i32) (result i32)
    (i32x4.extract_lane 2 (i32x4.mul (i32x4.splat (local.get 0)) (v128.const i32x4 1 2 3 4))))
  (func (export "early") (param i32) (result i64 i32 f64)
    (i64.const 1) (i32.const 2) (f64.const 3)
    (br_if 0 (local.get 0))
    (drop) (f64.const 4))
)`

// compare runs each exported function of (i32) under both modules.
func compare(t *testing.T, wasm []byte, opt Options) {
	t.Helper()
	rt := newRuntime(t, opt.withDefaults().MemoryPages)
	provideGuest(t, rt)
	plain, err := rt.InstantiateWithConfig(context.Background(), wasm, wazero.NewModuleConfig())
	if err != nil {
		t.Fatalf("as built: %v", err)
	}
	g := mustStart(t, wasm, opt, &host{budget: 1 << 40, slice: 1000})
	var names []string
	for name := range plain.ExportedFunctionDefinitions() {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, arg := range []uint64{0, 1, 2, 3, 5, 20, 1000} {
			want, werr := plain.ExportedFunction(name).Call(context.Background(), arg)
			got, gerr := g.call(name, arg)
			if !slices.Equal(got, want) || fmt.Sprint(trap(gerr)) != fmt.Sprint(trap(werr)) {
				t.Errorf("%s(%d) = %v, %v instrumented; %v, %v as built", name, arg, got, gerr, want, werr)
			}
		}
	}
	if plain.Memory() != nil {
		a, _ := plain.Memory().Read(0, plain.Memory().Size())
		b, _ := g.Memory().Read(0, g.Memory().Size())
		if !bytes.Equal(a, b) {
			t.Error("memories differ")
		}
	}
}

// trap returns the first line of a trap, without the stack.
func trap(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func TestInstrumentKeepsMeaning(t *testing.T) {
	m := assemble(t, everything)
	compare(t, m, Options{})
	compare(t, m, Options{Depth: 100})
}

func TestInstrumentKeepsNames(t *testing.T) {
	m := assemble(t, `(module
	  (import "env" "triple" (func $triple (param i32) (result i32)))
	  (func $quiet) (func $loud (export "f") (param $amount i32) unreachable))`)
	g := mustStart(t, m, Options{}, &host{budget: 1000})
	if _, err := g.call("f", 1); !contains(err, ".loud(i32)") {
		t.Errorf("trap does not name the function it was in: %v", err)
	}
	if !bytes.Contains(m, []byte("amount")) {
		t.Fatal("no name of a local to look for")
	}
	out, err := Instrument(m, Options{})
	if err != nil || !bytes.Contains(out, []byte("amount")) {
		t.Errorf("names of locals are lost (%v)", err)
	}
	// A malformed name section is dropped.
	broken := append(slices.Clone(m), 0, 6, 4, 'n', 'a', 'm', 'e', 9)
	if _, err := Instrument(broken, Options{}); err != nil {
		t.Errorf("malformed names: %v", err)
	}
}

// With slices of zero every check asks, so the host sees each charge by itself.
func TestChargeIsInstructionCount(t *testing.T) {
	rep := strings.Repeat
	for _, c := range []struct {
		name, body string
		least      int64
		most       int64
		dearest    int64
	}{
		{"straight", rep("(drop (i32.add (i32.const 1) (i32.const 2)))", 50_000/4), 50_000, 50_000, maxRun},
		{"divisions", rep("(drop (i32.div_u (i32.const 1) (i32.const 2)))", 20_000), 20_000 * 19, 20_000 * 19, maxRun},
		{"roots", rep("(drop (f64.sqrt (f64.const 2)))", 10_000), 10_000 * 18, 10_000 * 18, maxRun},
		{"not taken", "(if (i32.const 0) (then " + rep("nop ", 3000) + "))", 2, 2 + maxSkipped, 2 + maxSkipped},
		{"not taken, after", "(if (i32.const 0) (then " + rep("nop ", 3000) + "))" + rep("nop ", 3000), 3002, 3002 + maxSkipped, maxRun},
		{"other arm", "(if (i32.const 0) (then " + rep("(drop (i64.div_u (i64.const 1) (i64.const 2)))", 3) + ") (else " + rep("nop ", 60) + "))", 62, 62 + 2*maxSkipped, 2 + maxSkipped},
		{"returned from", "(br_if 0 (i32.const 1))" + rep("nop ", 3000), 2, 2 + maxSkipped, 2 + maxSkipped},
		{"loop", `(local i32) (loop (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 1000))))`, 8 * 1000, 8*1000 + 1, 8},
		{"empty loops", rep("(loop)", 500), 1000, 1000, 500},
		// Each block skips over the checks in it: what is outside of them adds up.
		{"skipped checks", rep("(block "+rep("nop ", 1000)+" (br_if 0 (i32.const 1)) "+rep("nop ", 200)+")", 40), 40 * 1002, 40*1002 + 40*maxSkipped, maxRun},
	} {
		h := &host{budget: 1 << 40}
		g := mustStart(t, assemble(t, `(module (func (export "f") `+c.body+`))`), Options{}, h)
		if _, err := g.call("f"); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if h.spent < c.least || h.spent > c.most {
			t.Errorf("%s: %d units charged, want %d to %d", c.name, h.spent, c.least, c.most)
		}
		if h.dearest > c.dearest {
			t.Errorf("%s: %d units before a check, want %d at most", c.name, h.dearest, c.dearest)
		}
	}
}

// Whatever way control takes, what runs has been charged, and not much more.
// The truth is the same module with each instruction charged by itself.
func TestChargeCoversWhatRuns(t *testing.T) {
	type charge struct{ spent, asked int64 }
	// run returns what was charged up to the end of each call that ended well.
	run := func(m []byte, opt Options, calls ...string) (charges []charge) {
		h := &host{}
		g := mustStart(t, m, opt, h)
		for _, fn := range calls {
			h.budget = 100_000
			if _, err := g.call(fn, 2, 3); err != nil {
				break
			}
			charges = append(charges, charge{h.spent, int64(h.asked)})
		}
		return charges
	}
	compared, skipped := 0, int64(0)
	for seed := range uint64(400) {
		m := generate(rand.New(rand.NewPCG(seed, 2)))
		calls := []string{"a", "b", "c"}
		got := run(m, Options{Depth: 60}, calls...)
		want := run(m, Options{Depth: 60, exact: true}, calls[:len(got)]...)
		if len(want) < len(got) {
			t.Errorf("seed %d: more ran than was charged: %v, then out of fuel at %v", seed, got, want)
			continue
		}
		for i := range got {
			compared++
			skipped += got[i].spent - want[i].spent
			if got[i].spent < want[i].spent {
				t.Errorf("seed %d: %d units charged for %d that ran", seed, got[i].spent, want[i].spent)
			}
			if most := want[i].spent + got[i].asked*maxSkipped; got[i].spent > most {
				t.Errorf("seed %d: %d units charged for %d that ran in %d checks, want %d at most",
					seed, got[i].spent, want[i].spent, got[i].asked, most)
			}
		}
	}
	if compared < 100 || skipped == 0 {
		t.Errorf("only %d calls compared, %d units skipped: the generator makes too little of use", compared, skipped)
	}
}

// What ran wild on a server that trusted its guests.
func TestAttacks(t *testing.T) {
	rep := strings.Repeat
	for _, c := range []struct {
		name, text string
		want       error
	}{
		{"endless loop", `(module (func (export "f") (loop (br 0))))`, errFuel},
		{"endless loop of a loop's parameters", `(module (func (export "f") (i32.const 1) (loop (param i32) (br 0))))`, errFuel},
		{"endless start function", `(module (start $s) (func $s (loop (br 0))) (func (export "f")))`, errFuel},
		{"mutual recursion", `(module (func $a (export "f") (call $b)) (func $b (call $a)))`, errDepth},
		{"recursion through a table", `(module (table 1 funcref) (elem (i32.const 0) $f) (func $f (export "f") (call_indirect (i32.const 0))))`, errDepth},
		{"recursion with results", `(module (func $f (export "f") (result i32 i64) (call $f)))`, errDepth},
		{"divisions", `(module (func $d ` + rep("(drop (i64.div_u (i64.const 1) (i64.const 2)))", 20_000) + `)
			(func (export "f") (loop (call $d) (br 0))))`, errFuel},
		{"fills", `(module (memory 256) (func (export "f") (loop (memory.fill (i32.const 0) (i32.const 1) (i32.const 16777216)) (br 0))))`, errFuel},
		{"copies", `(module (memory 256) (func (export "f") (loop (memory.copy (i32.const 8) (i32.const 0) (i32.const 16777208)) (br 0))))`, errFuel},
		{"fills of nothing", `(module (memory 1) (func (export "f") (loop (memory.fill (i32.const 0) (i32.const 1) (i32.const 0)) (br 0))))`, errFuel},
		{"fills of a table", `(module (table 131072 funcref) (func (export "f") (loop (table.fill 0 (i32.const 0) (ref.null func) (i32.const 131072)) (br 0))))`, errFuel},
		{"growth of memory", `(module (memory 0) (func (export "f") (loop (drop (memory.grow (i32.const 1))) (br 0))))`, errFuel},
		{"growth of a table", `(module (table 0 funcref) (func (export "f") (loop (drop (table.grow 0 (ref.null func) (i32.const 1))) (br 0))))`, errFuel},
	} {
		const budget = 20_000_000
		h := &host{budget: budget, slice: 1 << 20}
		g, err := start(t, assemble(t, c.text), Options{}, h)
		if err == nil {
			_, err = g.call("f")
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if c.want == errFuel && h.asked < budget>>20 {
			t.Errorf("%s: the host was asked %d times in %d units", c.name, h.asked, budget)
		}
	}
}

// The charge of a fill pays for its time, and it asks between pieces.
func TestBulkMemoryInPieces(t *testing.T) {
	const pages = 4096 // 256 MiB
	for _, c := range []struct{ name, op string }{
		{"fill", `(memory.fill (i32.const 0) (i32.const 1) (i32.const 0x0fffffff))`},
		{"copy to lower", `(memory.copy (i32.const 0) (i32.const 1) (i32.const 0x0fffffff))`},
		{"copy to higher", `(memory.copy (i32.const 1) (i32.const 0) (i32.const 0x0fffffff))`},
	} {
		m := assemble(t, fmt.Sprintf(`(module (memory %d) (func (export "f") %s))`, pages, c.op))
		h := &host{budget: 1 << 40}
		g := mustStart(t, m, Options{MemoryPages: pages}, h)
		if _, err := g.call("f"); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if h.dearest > piece/8 || h.asked < 256 || h.spent < 1<<25 {
			t.Errorf("%s: %d checks, %d units, at most %d at once; want 256 pieces of %d", c.name, h.asked, h.spent, h.dearest, piece/8)
		}
	}
}

// Pieces must add up to what one instruction does, traps included.
func TestBulkMemoryMeaning(t *testing.T) {
	m := assemble(t, `(module (memory (export "memory") 80)
	  (data $d "`+strings.Repeat("0123456789abcdef", 160_000)+`")
	  (func (export "fill") (param i32 i32 i32) (memory.fill (local.get 0) (local.get 1) (local.get 2)))
	  (func (export "copy") (param i32 i32 i32) (memory.copy (local.get 0) (local.get 1) (local.get 2)))
	  (func (export "init") (param i32 i32 i32) (memory.init $d (local.get 0) (local.get 1) (local.get 2)))
	  (func (export "drop") (param i32 i32 i32) (data.drop $d)))`)
	rt := newRuntime(t, 256)
	ctx := context.Background()
	plain, err := rt.Instantiate(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	g := mustStart(t, m, Options{}, &host{budget: 1 << 40, slice: 10})
	const mb = 1 << 20
	for _, c := range []struct {
		fn   string
		args []uint64
	}{
		{"init", []uint64{5, 7, 2_500_000}},
		{"init", []uint64{5, 70, 2_560_000}}, // past the segment
		{"init", []uint64{4 * mb, 0, 2_500_000}},
		{"init", []uint64{0, 0, 0}},
		{"fill", []uint64{3 * mb, 0x1ab, mb + 1}},
		{"fill", []uint64{0, 7, mb}},
		{"fill", []uint64{4 * mb, 7, mb + 1}}, // past the memory
		{"fill", []uint64{0xffffffff, 7, 0xffffffff}},
		{"fill", []uint64{5 * mb, 7, 0}},
		{"fill", []uint64{5*mb + 1, 7, 0}},
		{"copy", []uint64{0, 100, 4 * mb}},
		{"copy", []uint64{12345, 0, 4*mb + 3}},
		{"copy", []uint64{2 * mb, mb, 3 * mb}},
		{"copy", []uint64{mb, 2 * mb, 3 * mb}},
		{"copy", []uint64{77, 77, 3 * mb}},
		{"copy", []uint64{2 * mb, mb, 3*mb + 1}}, // past the memory
		{"copy", []uint64{mb, 2 * mb, 3*mb + 1}},
		{"drop", []uint64{0, 0, 0}},
		{"init", []uint64{0, 0, 2_500_000}}, // nothing is left of it
		{"init", []uint64{0, 0, 0}},
	} {
		_, want := plain.ExportedFunction(c.fn).Call(ctx, c.args...)
		_, got := g.call(c.fn, c.args...)
		if trap(got) != trap(want) {
			t.Errorf("%s%v: %v, want %v", c.fn, c.args, trap(got), trap(want))
		}
		a, _ := plain.Memory().Read(0, plain.Memory().Size())
		b, _ := g.Memory().Read(0, g.Memory().Size())
		if !bytes.Equal(a, b) {
			t.Fatalf("%s%v: memories differ", c.fn, c.args)
		}
	}
}

func TestGrowthIsBounded(t *testing.T) {
	m := assemble(t, `(module (memory 1) (table $t 1 funcref) (table $u 1 5 funcref)
	  (func (export "memory_grow") (param i32) (result i32) (memory.grow (local.get 0)))
	  (func (export "t") (param i32) (result i32) (table.grow $t (ref.null func) (local.get 0)))
	  (func (export "u") (param i32) (result i32) (table.grow $u (ref.null func) (local.get 0))))`)
	h := &host{budget: 1 << 40}
	g := mustStart(t, m, Options{MemoryPages: 10, Limits: Limits{TableEntries: 100}}, h)
	for _, c := range []struct {
		fn   string
		by   uint64
		want int32
	}{
		{"memory_grow", 10, -1},
		{"memory_grow", 9, 1},
		{"memory_grow", 1, -1},
		{"memory_grow", 0, 10},
		{"memory_grow", 0xffffffff, -1},
		{"t", 100, -1},
		{"t", 99, 1},
		{"t", 1, -1},
		{"u", 5, -1},
		{"u", 4, 1},
	} {
		h.spent = 0
		got, err := g.call(c.fn, c.by)
		if err != nil || api.DecodeI32(got[0]) != c.want {
			t.Errorf("%s(%d) = %v, %v; want %d", c.fn, c.by, got, err, c.want)
		}
		if c.fn == "memory_grow" && c.want == 1 && h.spent < 9<<13 {
			t.Errorf("growth by 9 pages cost %d units, want %d at least", h.spent, 9<<13)
		}
	}
}

func TestDepth(t *testing.T) {
	m := assemble(t, `(module
	  (func $down (export "down") (param i32) (result i32)
	    (if (result i32) (local.get 0)
	      (then (i32.add (i32.const 1) (call $down (i32.sub (local.get 0) (i32.const 1)))))
	      (else (i32.const 1))))
	  (func $wide (export "wide") (param i32) (result i32) (local `+strings.Repeat("i64 ", 640)+`)
	    (br_if 0 (local.get 0) (i32.eqz (local.get 0)))
	    drop
	    (call $wide (i32.sub (local.get 0) (i32.const 1))) return)
	  (func (export "both") (param i32) (result i32)
	    (drop (call $down (local.get 0))) (drop (call $wide (i32.const 1))) (call $down (local.get 0))))`)
	for _, c := range []struct {
		fn   string
		arg  uint64
		want error
	}{
		{"down", 999, nil},
		{"down", 1000, errDepth},
		{"wide", 89, nil},
		{"wide", 91, errDepth}, // 641 locals count for eleven
		{"both", 998, nil},     // what was counted up is counted down
	} {
		g := mustStart(t, m, Options{}, &host{budget: 1 << 30, slice: 1 << 20})
		for range 3 {
			if _, err := g.call(c.fn, c.arg); !errors.Is(err, c.want) {
				t.Errorf("%s(%d): got %v, want %v", c.fn, c.arg, err, c.want)
			}
			if c.want != nil {
				break // the depth is not counted down after a trap: such an instance is dropped
			}
		}
	}
}

// Returns from deep calls must not run long without a check.
func TestReturnsAreChecked(t *testing.T) {
	const calls = 200
	var text strings.Builder
	text.WriteString(`(module (func (export "f") (call 1))`)
	for i := range calls {
		fmt.Fprintf(&text, "(func (call %d) %s)", i+2, strings.Repeat("nop ", 3000))
	}
	text.WriteString("(func))")
	h := &host{budget: 1 << 40}
	g := mustStart(t, assemble(t, text.String()), Options{}, h)
	if _, err := g.call("f"); err != nil {
		t.Fatal(err)
	}
	if h.asked < 2*calls {
		t.Errorf("%d checks for %d calls and as many returns", h.asked, calls)
	}
}

func TestHostSeesFuel(t *testing.T) {
	g := mustStart(t, assemble(t, everything), Options{}, &host{budget: 1 << 30, slice: 10_000})
	if _, err := g.call("fib", 10); err != nil {
		t.Fatal(err)
	}
	fuel := g.ExportedGlobal(GlobalName).(api.MutableGlobal)
	fuel.Set(500_000)
	asked := g.host.asked
	if _, err := g.call("fib", 15); err != nil {
		t.Fatal(err)
	}
	if left := g.fuel(); g.host.asked != asked || left <= 0 || left >= 500_000 {
		t.Errorf("%d units left of 500000, refill called %d times; want some left and no calls", left, g.host.asked-asked)
	}
	want := g.fuel()
	fuel.Set(500_000)
	if _, err := g.call("fib", 15); err != nil || g.fuel() != want {
		t.Errorf("the same call left %d, then %d (%v)", want, g.fuel(), err)
	}
}
