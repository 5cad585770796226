package fuel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// chains are pieces of code that a compiler makes blocks of, one after the other.
// Of 10,000 of each in one function it would take minutes to order the blocks.
var chains = map[string]struct{ before, piece, after string }{
	"ifs":                     {"", "(if (i32.const 0) (then))", ""},
	"ifs in ifs":              {"", "(if (i32.const 0) (then (if (i32.const 0) (then))) (else (if (i32.const 0) (then))))", ""},
	"ifs that return":         {"", "(if (i32.const 0) (then return) (else))", ""},
	"blocks left early":       {"", "(block (br_if 0 (i32.const 0)))", ""},
	"blocks left":             {"", "(block (br 0))", ""},
	"ways out of one block":   {"(block", "(br_if 0 (i32.const 0))", ")"},
	"loops":                   {"", "(loop (br_if 0 (i32.const 0)))", ""},
	"loops that do not":       {"", "(loop)", ""},
	"branch tables of one":    {"", "(block (br_table 0 0 (i32.const 0)))", ""},
	"branch tables of ten":    {"", "(block (br_table 0 0 0 0 0 0 0 0 0 0 0 (i32.const 0)))", ""},
	"checks between branches": {"", "(if (i32.const 0) (then))" + strings.Repeat("nop ", 70), ""},
}

// TestFlowSteps: code that takes a compiler the square of its length is refused
// before it takes seconds, and what compilers of other languages make is far from that.
func TestFlowSteps(t *testing.T) {
	const refused = "a compiler takes"
	of := func(name string, n int) []byte {
		c := chains[name]
		return assemble(t, `(module (func `+c.before+strings.Repeat(c.piece, n)+c.after+`))`)
	}
	for name := range chains {
		if err := Check(of(name, 500), Limits{}); err != nil {
			t.Errorf("500 %s: %v", name, err)
		}
		many := 6000
		if strings.HasPrefix(name, "branch tables of ten") || strings.HasPrefix(name, "checks") {
			many = 3000 // more of them are refused for their size
		}
		if err := Check(of(name, many), Limits{}); err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("%d %s: %v, want an error with %q", many, name, err, refused)
		}
		// Functions add up.
		c := chains[name]
		one := `(func ` + c.before + strings.Repeat(c.piece, 100) + c.after + `)`
		if one, three := steps(t, `(module `+one+`)`), steps(t, `(module `+one+one+one+`)`); one < 100*100/4 || three != 3*one {
			t.Errorf("100 %s are %d steps, three times as many %d", name, one, three)
		}
	}
	const eighth = 1 << 23
	if err := Check(goGuest(t), Limits{FlowSteps: eighth}); err != nil {
		t.Errorf("a guest of Go: %v, want an eighth of the limit at most", err)
	}
	built, err := filepath.Glob("../../examples/plugins/*/*/*.wasm")
	if err != nil || len(built) < 16 {
		t.Fatalf("%d example plugins were found: %v", len(built), err)
	}
	for _, path := range built {
		wasm, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(wasm, Limits{FlowSteps: eighth}); err != nil {
			t.Errorf("%s: %v, want an eighth of the limit at most", path, err)
		}
	}
}

// steps are those of a module.
func steps(t *testing.T, text string) int {
	steps := 0
	eachFunction(t, assemble(t, text), func(w *walk) { steps = w.flow.steps })
	return steps
}

// eachFunction looks at the walk behind each function of a module.
func eachFunction(t *testing.T, wasm []byte, look func(w *walk)) {
	t.Helper()
	m, err := parse(wasm, Limits{}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	w := walk{m: m, helpers: newHelpers(m)}
	for _, b := range m.bodies {
		if err := w.function(b); err != nil {
			t.Fatal(err)
		}
		look(&w)
	}
}

// Branch tables are bounded in one function and in all.
func TestTableTargets(t *testing.T) {
	table := func(n int) string {
		return `(func (block (br_table ` + strings.Repeat("0 ", n) + `0 (i32.const 0))))`
	}
	for _, tt := range []struct {
		functions, targets int
		lim                Limits
		want               string
	}{
		{1, 30_000, Limits{}, ""},
		{1, 33_000, Limits{}, "br_table targets in one function"},
		{3, 1000, Limits{TableTargets: 3000}, ""},
		{3, 1001, Limits{TableTargets: 3000}, "3003 br_table targets in all functions, at most 3000 are allowed"},
	} {
		err := Check(assemble(t, `(module `+strings.Repeat(table(tt.targets), tt.functions)+`)`), tt.lim)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%d functions with %d targets: %v, want %q", tt.functions, tt.targets, err, tt.want)
		}
	}
}
