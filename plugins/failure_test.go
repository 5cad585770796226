package plugins_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/latchkey-proxy/latchkey/plugins"
)

// TestInstanceThatCannotBegin: a module that loads, and whose next instances fail in lk_init,
// is disabled as one is that traps in its commands.
func TestInstanceThatCannotBegin(t *testing.T) {
	good, bad := [32]byte{1}, [32]byte{2}
	var turned atomic.Bool
	seed := func() [32]byte {
		if turned.Load() {
			return bad
		}
		return good
	}
	var drawn [8]byte
	rand.NewChaCha8(bad).Read(drawn[:])
	path := guest{
		imports: `(import "wasi_snapshot_preview1" "random_get" (func $draw (param i32 i32) (result i32)))`,
		init: fmt.Sprintf(`(drop (call $draw (i32.const 4096) (i32.const 8)))
			(if (i64.eq (i64.load (i32.const 4096)) (i64.const %d)) (then unreachable)) (i32.const 0)`, int64(binary.LittleEndian.Uint64(drawn[:]))),
		body: `(if (i32.eq (local.get $argc) (i32.const 3)) (then unreachable)) (call $reply_null)`,
	}.build(t)
	b := newBench(t, plugins.Options{Seed: seed, MaxFailures: 4})
	b.want("+OK", "MODULE", "LOAD", path)
	b.want("$-1", "H.RUN", "k")
	turned.Store(true)
	b.want("-PLUGINERR h: wasm error: unreachable", "H.RUN", "k", "trap")
	b.want("-PLUGINERR h: lk_init failed: wasm error: unreachable", "H.RUN", "k")
	for range 4 {
		b.do("H.RUN", "k")
	}
	if got := b.do("H.RUN", "k"); !strings.HasPrefix(got, "-PLUGINDISABLED h: it has failed 4 times") {
		t.Errorf("a module whose instances cannot begin replied %q", got)
	}
	if got := b.do("MODULE", "RELOAD", "h"); !strings.Contains(got, "lk_init failed: wasm error: unreachable") {
		t.Errorf("its reload replied %q", got)
	}
	turned.Store(false)
	b.want("+OK", "MODULE", "RELOAD", "h")
	b.want("$-1", "H.RUN", "k")
}

// Whoever sends what a guest has no room for is told, and cannot have the module disabled:
// its instance is kept.
func TestNoRoomForArguments(t *testing.T) {
	b := newBench(t, plugins.Options{MaxFailures: 2})
	path := guest{
		arena: `(if (i32.gt_u (local.get $size) (i32.const 8192)) (then (return (i32.const 0)))) (i32.const 1024)`,
		body:  `(call $reply_int (i64.const 1))`, limits: map[string]int{"instances": 1, "memory_pages": 1},
	}.build(t)
	b.want("+OK", "MODULE", "LOAD", path)
	for range 5 {
		b.want(":1", "H.RUN", "k")
		b.want("-PLUGINERR h: lk_arena(10037) returned 0: no room for the arguments", "H.RUN", "k", strings.Repeat("x", 9991))
		b.want("-PLUGINERR h: the arguments take 70046 bytes, the module's memory may have 65536", "H.RUN", "k", strings.Repeat("x", 70_000))
	}
	b.want(":6", "H.CALLS")
	if m := b.host.List()[0]; m.Traps != 0 || m.Errors != 10 || m.Disabled != "" {
		t.Errorf("the module counts %d traps and %d errors, disabled %q; want 0, 10 and not", m.Traps, m.Errors, m.Disabled)
	}
}
