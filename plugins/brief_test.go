package plugins_test

import (
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// Commands that share a look at the clock are all counted, and so are those among
// them that do not: because of what they compute or write to the log.
func TestBriefCommandsAreCounted(t *testing.T) {
	run := guest{body: `
	(if (i32.eq (local.get $argc) (i32.const 3)) (then
		(local.set $i (i32.const 20000))
		(loop $l
			(local.set $i (i32.sub (local.get $i) (i32.const 1)))
			(br_if $l (local.get $i)))))
	(if (i32.eq (local.get $argc) (i32.const 4)) (then
		(call $log (i32.const 2) (i32.const 0) (i32.const 1))))
	(call $reply_int (i64.const 1))`}.build(t)
	b := newBench(t, plugins.Options{})
	b.want("+OK", "MODULE", "LOAD", run)
	plain := b.call("H.RUN", "k")
	usage := plain.Spec.Usage()
	var c command.Call
	b.sess.BeginBatch()
	b.w.Reset()
	n := int64(0)
	for _, others := range [][]string{nil, {"x"}, {"x", "x"}} {
		for range 20 {
			c = *plain
			c.Reply = &b.w
			b.eng.Run(&c)
			n++
		}
		c = *b.call(append([]string{"H.RUN", "k"}, others...)...)
		c.Reply = &b.w
		b.eng.Run(&c)
		n++
		if got := string(b.w.Bytes()); got != strings.Repeat(":1\r\n", int(n)) {
			t.Fatalf("%d calls answered %q", n, got)
		}
	}
	b.sess.FlushStats()
	if got := usage.Calls.Load(); got != n {
		t.Errorf("H.RUN was counted %d times, want %d", got, n)
	}
	if usage.Nanos.Load() <= 0 || usage.Failed.Load() != 0 {
		t.Errorf("H.RUN took %d ns, and %d of its calls failed", usage.Nanos.Load(), usage.Failed.Load())
	}
}
