package plugins_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/store"
)

// busy writes x to the key k, looks at it twenty times for each argument, frees
// it if it is x still, and replies what that gave.
var busy = guest{body: write + `
	(local.set $i (i32.mul (local.get $argc) (i32.const 20)))
	(loop $l
		(drop (call $exists (i32.const 0) (i32.const 1)))
		(local.set $i (i32.sub (local.get $i) (i32.const 1)))
		(br_if $l (local.get $i)))
	(call $reply_int (i64.extend_i32_s (call $cad (i32.const 0) (i32.const 1) (i32.const 33) (i32.const 1))))`}

// What a command does under latches, with locked keys, and promoted anywhere is
// the same, but for time.
func TestShortAsLocked(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var benches []*bench
	for _, allowance := range []func() int64{
		nil,
		func() int64 { return 0 },
		func() int64 { return random.Int64N(40_000) },
	} {
		b := newBenchOn(t, plugins.Options{}, store.Options{Allowance: allowance})
		b.want("+OK", "MODULE", "LOAD", busy.build(t))
		benches = append(benches, b)
	}
	for n := range 200 {
		args := append([]string{"H.RUN", "k"}, strings.Split(strings.Repeat("x", n%12), "")...)
		if n%7 == 0 {
			args = []string{"H.RUN", "other"} // it may not write k then
		}
		want := benches[0].do(args...) + strings.Join(benches[0].log.Records(), "")
		for _, b := range benches[1:] {
			if got := b.do(args...) + strings.Join(b.log.Records(), ""); got != want {
				t.Fatalf("%q gave %q and left\n%s\nwant %q", args, b.do("GET", "k"), got, want)
			}
		}
	}
	for i, b := range benches {
		promoted := b.eng.Store.Counter.Promotions.Load()
		if promoted == 0 || promoted == 200 {
			t.Errorf("in world %d %d calls were promoted", i, promoted)
		}
		if m := b.host.List()[0]; m.Calls != 200 || m.Traps != 0 {
			t.Errorf("in world %d the module counts %d calls and %d traps, want 200 and 0", i, m.Calls, m.Traps)
		}
	}
}

// A command that is always too long is not tried for ever.
func TestLengthyIsNotTried(t *testing.T) {
	b := newBenchOn(t, plugins.Options{}, store.Options{Allowance: func() int64 { return 1 }})
	b.want("+OK", "MODULE", "LOAD", busy.build(t))
	for range 130 {
		b.want(":1", "H.RUN", "k")
	}
	if n := b.eng.Store.Counter.Promotions.Load(); n < 2 || n > 5 {
		t.Errorf("of 130 calls %d were promoted, want 2 at first, and one in 64 after", n)
	}
}

// A guest that is promoted is left in the middle of what it did, its stack and its
// allocator as they were, so its instance goes, which costs a Go guest some
// milliseconds. That is cheap because it is rare: the allowance is counted in fuel, and
// neither what the examples do nor what their collectors do comes to it in one call of
// hundreds.
func TestPromotionsAreRare(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles two guests of Go")
	}
	const calls, most = 4000, 8
	for _, tt := range []struct {
		path string
		args []string
	}{
		{"cad/go/cad.wasm", []string{"CAD.WASM", "k", "v"}},
		{"ratelimit/go/ratelimit.wasm", []string{"CL.THROTTLE", "k", "15", "30", "60"}},
		{"ratelimit/assemblyscript/ratelimit.wasm", []string{"CL.THROTTLE", "k", "15", "30", "60"}},
	} {
		b := newBench(t, plugins.Options{})
		b.want("+OK", "MODULE", "LOAD", "../examples/plugins/"+tt.path)
		for range calls {
			b.do(tt.args...)
		}
		if n := b.eng.Store.Counter.Promotions.Load(); n > most {
			t.Errorf("%s: %d of %d calls were promoted, want %d at most", tt.path, n, calls, most)
		}
	}
}
