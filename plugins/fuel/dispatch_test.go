package fuel

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// pieces is a function around a table of its pieces, as Go's compiler makes it: each is
// what is given, and notes that it ran.
func pieces(head, table string, code ...string) string {
	var b strings.Builder
	b.WriteString(`(module (import "env" "note" (func $note (param i64)))
	  (func (export "a") (param $x i32) (param $y i32) (result i32) (local $turns i32)
	  (block $out ` + head)
	for i := len(code) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "(block $%d ", i)
	}
	fmt.Fprintf(&b, "(br_table %s (local.get $x))", table)
	for i, c := range code {
		fmt.Fprintf(&b, ")\n(call $note (i64.const %d)) "+
			"(br_if $out (i32.gt_u (local.tee $turns (i32.add (local.get $turns) (i32.const 1))) (i32.const 20)))\n%s\n", i, c)
	}
	b.WriteString(")) (local.get $x)))")
	return b.String()
}

// to jumps to a piece.
func to(piece int) string { return fmt.Sprintf("(local.set $x (i32.const %d)) (br $head)", piece) }

func maybe(code string) string {
	return "(if (i32.and (local.tee $y (i32.mul (local.get $y) (i32.const 1103515245))) (i32.const 65536)) (then " + code + "))"
}

// TestJumpsForward: jumps that go forward through a table branch at once, others are
// left alone, and the function does what it did.
func TestJumpsForward(t *testing.T) {
	const head, all = "(loop $head", "$0 $1 $2 $3"
	for _, tt := range []struct {
		name    string
		module  string
		tables  int // that are dispatched by
		forward int // jumps that were changed
	}{
		{"straight", pieces(head, all, "", "", "", ""), 1, 0},
		{"forward", pieces(head, all, to(3), "", to(3), ""), 1, 2},
		{"forward if", pieces(head, all, maybe(to(2))+maybe(to(3)), maybe(to(3)), maybe(to(3)), ""), 1, 4},
		{"to the next", pieces(head, all, maybe(to(1)), maybe(to(2)), to(3), ""), 1, 3},
		{"backward", pieces(head, all, "", maybe(to(0)), maybe(to(1)), to(0)), 1, 0},
		{"to itself", pieces(head, all, maybe(to(0)), to(1), "", ""), 1, 0},
		{"to the last by any number above", pieces(head, all, to(77), "", maybe(to(-1)), ""), 1, 2},
		{"out of the loop", pieces(head, "$0 $1 $out $2 $out", maybe(to(2)), to(4), ""), 1, 2},
		{"to the head", pieces(head, "$0 $1 $head $2", maybe(to(2)), "", maybe(to(3))), 1, 0},
		{"pieces with several numbers", pieces(head, "$0 $0 $2 $2 $1 $3", to(2), to(4), to(5), ""), 1, 2},
		{"another local", pieces(head, all, "(local.set $y (i32.const 3)) (br $head)", "", "", ""), 1, 0},
		{"something between", pieces(head, all, "(local.set $x (i32.const 3)) nop (br $head)", "", "(i32.const 3) nop (local.set $x) (br $head)", ""), 1, 0},
		{"not a constant", pieces(head, all, "(local.set $x (i32.add (i32.const 1) (i32.const 2))) (br $head)", "", "", ""), 1, 0},
		{"by local.tee", pieces(head, all, "(drop (local.tee $x (i32.const 3))) (br $head)", "", "", ""), 1, 0},
		{"from within blocks", pieces(head, all, "(block (block "+to(3)+"))", "(loop (block "+to(2)+"))", "", ""), 1, 2},
		{"a block where one was closed", pieces(head, all, "", "(block "+to(0)+")", "(block (block (block "+to(1)+")))", ""), 1, 0},
		{"work before the table", pieces("(loop $head nop", all, to(3), "", "", ""), 0, 0},
		{"a block that the table is behind", pieces("(loop $head (block)", all, to(3), "", "", ""), 0, 0},
		{"a loop with a result", strings.Replace(pieces("(loop $head (result i32)", all, to(3), "", "", ""), ")) (local.get $x)))", "(i32.const 0)) (drop)) (local.get $x)))", 1), 0, 0},
		{"two, one in the other", pieces(head, all,
			"(loop $inner (block $b (block $a (br_table $a $b $2 (local.get $y))) (local.set $y (i32.const 1)) (br $inner)) (local.set $y (i32.const 9)) (br $inner))",
			"(loop $inner (block $b (block $a (br_table $a $b (local.get $x))) "+to(3)+") "+to(3)+")", to(3), ""), 3, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wasm := assemble(t, tt.module)
			tables, forward := edited(t, wasm)
			if tables != tt.tables || forward != tt.forward {
				t.Errorf("%d tables and %d jumps were changed, want %d and %d", tables, forward, tt.tables, tt.forward)
			}
			j := newJudge(t)
			for _, x := range []uint64{0, 1, 2, 3, 4, 1 << 31} {
				for y := range uint64(6) {
					if !j.check(t, wasm, x, y) {
						t.Fatal("it was refused, or is not valid")
					}
				}
			}
		})
	}
}

// edited counts the tables and the jumps that are changed in a module.
func edited(t *testing.T, wasm []byte) (tables, forward int) {
	t.Helper()
	eachFunction(t, wasm, func(w *walk) {
		for _, e := range w.edits {
			switch e.kind {
			case editUnless:
				tables++
			case editLabel:
				forward++
			}
		}
	})
	return tables, forward
}

// The generated modules that the fuzzer compares have such jumps, and most of a Go
// guest's are made to go forward.
func TestJumpsAreFound(t *testing.T) {
	tables, forward := 0, 0
	for seed := range uint64(100) {
		n, f := edited(t, generate(rand.New(rand.NewPCG(seed, 0))))
		tables, forward = tables+n, forward+f
	}
	if tables < 50 || forward < 50 {
		t.Errorf("in 100 generated modules %d tables and %d jumps were changed, want 50 of each at least", tables, forward)
	}
	if tables, forward := edited(t, goGuest(t)); tables < 500 || forward < 2*tables {
		t.Errorf("of a Go guest %d tables and %d jumps were changed, want 500 and twice as many", tables, forward)
	}
}
