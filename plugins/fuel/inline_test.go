package fuel

import (
	"fmt"
	"testing"
)

// TestInline: calls of small functions that only call the host are replaced, others
// are not, and what calls them does what it did.
func TestInline(t *testing.T) {
	const caller = `(func (export "f") (param i32) (result i32) (local i64 i32)
	  (local.set 2 (i32.const 70))
	  (i32.add (i32.mul (call $w (local.get 0) (i32.const 4)) (i32.const 1000))
	    (i32.add (local.get 2) (call $w (i32.const 5) (local.get 0)))))`
	for _, tt := range []struct {
		name, fn string
		sites    int
	}{
		{"hands over", `(call $triple (i32.sub (local.get 0) (local.get 1)))`, 2},
		{"returns", `(return (call $triple (i32.sub (local.get 0) (local.get 1)))) unreachable`, 2},
		{"leaves more than it returns", `(i32.const 1) (i64.const 2) (call $triple (local.get 0)) return`, 2},
		{"sets its parameters and locals", `(local i32 f64) (local.set 2 (i32.const 3)) (local.set 0 (local.get 1)) (call $triple (i32.add (local.tee 2 (local.get 0)) (local.get 2)))`, 2},
		{"through memory", `(i32.store offset=8 (local.get 0) (i32.const 77)) (i32.store (i32.const 16) (call $triple (i32.load offset=8 (local.get 0)))) (i32.load (i32.const 16))`, 2},
		{"traps", `(call $triple (i32.load offset=65535 (local.get 0)))`, 2},
		{"a global", `(global.set $g (call $triple (i32.add (global.get $g) (local.get 0)))) (global.get $g)`, 2},
		{"constants", `(drop (f32.const 1.5)) (drop (f64.const -2.5)) (drop (i64.const -9223372036854775808)) (call $triple (i32.const -5))`, 2},
		{"no result of the host's", `(call $note (i64.extend_i32_u (local.get 0))) (local.get 1)`, 2},
		{"reads a local that it has not set", `(local i32) (call $triple (local.get 2))`, 0},
		{"calls nobody", `(i32.sub (local.get 0) (local.get 1))`, 0},
		{"calls twice", `(call $triple (call $triple (local.get 0)))`, 0},
		{"calls another function", `(call $other (call $triple (local.get 0)))`, 0},
		{"a block", `(block (result i32) (call $triple (local.get 0)))`, 0},
		{"a branch", `(br_if 0 (i32.const 1) (local.get 1)) drop (call $triple (local.get 0))`, 0},
		{"a trap of its own", `(drop (call $triple (local.get 0))) unreachable`, 0},
		{"grows memory", `(drop (memory.grow (local.get 0))) (call $triple (local.get 0))`, 0},
		{"is long", "", 0},
	} {
		fn := tt.fn
		if tt.name == "is long" {
			fn = ""
			for range 40 {
				fn += "(drop (i32.const 1)) "
			}
			fn += "(call $triple (local.get 0))"
		}
		m := assemble(t, `(module
		  (import "env" "triple" (func $triple (param i32) (result i32)))
		  (import "env" "note" (func $note (param i64)))
		  (memory (export "m") 1) (global $g (mut i32) (i32.const 7))
		  (func $w (param i32 i32) (result i32) `+fn+`)
		  (func $other (param i32) (result i32) (local.get 0))
		  `+caller+`)`)
		sites := 0
		eachFunction(t, m, func(w *walk) { sites += len(w.inlining.sites) })
		if sites != tt.sites {
			t.Errorf("%s: %d calls are replaced, want %d", tt.name, sites, tt.sites)
		}
		compare(t, m, Options{})
	}
}

// What inlined functions call may be kept or foreseen as well.
func TestInlineKeeps(t *testing.T) {
	m := assemble(t, `(module
	  (import "env" "triple" (func $triple (param i32) (result i32)))
	  (import "env" "note" (func $note (param i64)))
	  (func $w (param i32) (call $note (i64.extend_i32_u (local.get 0))))
	  (func (export "f") (param i32) (result i32) (call $w (local.get 0)) (call $w (i32.const 9)) (call $triple (local.get 0))))`)
	g := mustStart(t, m, keepsNotes("f"), &host{budget: 1 << 20, slice: 1})
	out, noted, _, kept, err := enter(g, 1000, 4)
	if err != nil || out[0] != 12 || kept != KeptFilled || fmt.Sprint(noted) != "[4 9]" {
		t.Errorf("%v, noted %v, kept %d, %v; want 12, [4 9], %d", out, noted, kept, err, KeptFilled)
	}
}

// A module cannot have its code multiplied.
func TestInlineIsBounded(t *testing.T) {
	calls := ""
	for range 200 {
		calls += "(drop (call $w (i32.const 1) (i32.const 2)))"
	}
	module := `(module (import "env" "triple" (func $triple (param i32) (result i32)))
	  (func $w (param i32 i32) (result i32) (drop (i64.const 1)) (drop (i64.const 1)) (drop (i64.const 1)) (call $triple (local.get 0)))`
	for range 500 {
		module += "(func " + calls + ")"
	}
	m := assemble(t, module+")")
	most, all := 0, 0
	eachFunction(t, m, func(w *walk) {
		most = max(most, len(w.inlining.sites))
		all = w.inlining.bytes
	})
	if most != maxInlineSites || all > maxInlined+maxInlineBytes || all < maxInlined/2 {
		t.Errorf("%d calls in one function, %d bytes in all; want %d and about %d", most, all, maxInlineSites, maxInlined)
	}
	out, err := Instrument(m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) > 4*len(m) {
		t.Errorf("%d bytes became %d", len(m), len(out))
	}
}
