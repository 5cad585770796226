package plugins_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

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

// thinking looks at the key k, computes for long, and then counts there; it traps
// if anybody else has counted meanwhile. H.SOLE replies how many calls its instance
// has had before it wrote.
var thinking = guest{
	commands: []string{"H.COUNT", "H.SOLE"},
	body: `
	(i64.store (i32.const 2048) (i64.const 0))
	(drop (call $incrby_of (i32.const 2056)))
	(loop $l (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100000))))
	(if (i32.eq (local.get $id) (i32.const 2)) (then ` + calls + `))
	(drop (call $incrby (i32.const 0) (i32.const 1) (i64.const 1) (i32.const 2048)))
	(if (i64.ne (i64.load (i32.const 2048)) (i64.add (i64.const 1) (i64.load (i32.const 2056)))) (then unreachable))
	(call $reply_int (i64.load (i32.const 2048)))`,
	// The number at k, of up to eight digits, into memory.
	funcs: `(func $incrby_of (param $out i32) (result i32)
		(local $n i32) (local $j i32) (local $v i64)
		(local.set $n (call $get (i32.const 0) (i32.const 1) (i32.const 2064) (i32.const 8)))
		(block $done (loop $digit
			(br_if $done (i32.ge_s (local.get $j) (local.get $n)))
			(local.set $v (i64.add (i64.mul (local.get $v) (i64.const 10)) (i64.sub (i64.load8_u (i32.add (i32.const 2064) (local.get $j))) (i64.const 48))))
			(local.set $j (i32.add (local.get $j) (i32.const 1)))
			(br $digit)))
		(i64.store (local.get $out) (local.get $v))
		(local.get $n))`,
	limits: map[string]int{"instances": 2},
}

// TestLengthened: a call that turns out to be long before it has written anything
// goes on where it stands, with its instance, and nobody comes between.
func TestLengthened(t *testing.T) {
	b := newBench(t, plugins.Options{MaxTime: time.Minute})
	b.want("+OK", "MODULE", "LOAD", thinking.build(t))
	for n := 1; n <= 5; n++ {
		b.want(fmt.Sprintf(":%d", n), "H.SOLE", "k")
	}
	c := &b.eng.Store.Counter
	if c.Lengthened.Load() == 0 || c.Promotions.Load() != 0 {
		t.Errorf("%d calls were lengthened and %d promoted, want some and 0", c.Lengthened.Load(), c.Promotions.Load())
	}
	const callers, rounds = 4, 100
	var all sync.WaitGroup
	for range callers {
		o := b.another(t)
		all.Go(func() {
			for range rounds {
				if got := o.do("H.COUNT", "k"); !strings.HasPrefix(got, ":") {
					t.Errorf("H.COUNT replied %q", got)
				}
				o.do("H.CALLS") // which has the next try be one under latches
			}
		})
	}
	all.Wait()
	b.want(fmt.Sprintf("$3\r\n%d", callers*rounds), "GET", "k")
	if m := b.host.List()[0]; m.Traps != 0 {
		t.Errorf("%d traps, want none", m.Traps)
	}
	// In EXEC and in a script, which may count on the latches, it is promoted.
	addEval(t, b)
	promoted := c.Promotions.Load()
	for range 3 {
		b.want(fmt.Sprintf(":%d", callers*rounds+1), "EVAL", "local n = redis.call('h.count', KEYS[1]) redis.call('set', KEYS[1], '400') return n", "1", "k")
	}
	if c.Promotions.Load() == promoted {
		t.Error("no script was promoted that calls what is long")
	}
}

// A command that is always too long is not tried for ever.
func TestLengthyIsNotTried(t *testing.T) {
	b := newBenchOn(t, plugins.Options{}, store.Options{Allowance: func() int64 { return 1 }})
	b.want("+OK", "MODULE", "LOAD", busy.build(t))
	for range 130 {
		b.want(":1", "H.RUN", "k")
	}
	c := &b.eng.Store.Counter
	if n := c.Promotions.Load() + c.Lengthened.Load(); n < 2 || n > 5 {
		t.Errorf("of 130 calls %d were promoted or lengthened, want 2 at first, and one in 64 after", n)
	}
}

// A guest that is promoted, having written already, is left in the middle of what it did, its stack and its
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
		c := &b.eng.Store.Counter
		if n := c.Promotions.Load() + c.Lengthened.Load(); n > most {
			t.Errorf("%s: %d of %d calls were promoted or lengthened, want %d at most", tt.path, n, calls, most)
		}
	}
}
