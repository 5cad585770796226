package plugins_test

import (
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/plugins"
)

// Where no command declares keys, a guest reaches for any that it was granted; one
// that lives upstream must not be made here.
func TestTimerAndKeysOfTheUpstream(t *testing.T) {
	g := guest{
		caps: map[string]any{"timers": true}, commands: []string{"H.SET"},
		// It writes x to other, if it may, and to k that it could not.
		exports: `(func (export "lk_timer") (param $token i64) (result i32)
			(if (i32.eq (call $set (i32.const 8) (i32.const 5) (i32.const 33) (i32.const 1) (i32.const 0) (i64.const 0)) (i32.const -101))
				(then ` + write + `)) (i32.const 0))`,
		body: `(drop (call $timer_set (i64.const 1) (i64.const 1))) (call $reply_null)`,
	}
	for _, upstream := range []bool{false, true} {
		b := newBench(t, plugins.Options{})
		if upstream {
			b.eng.Owns = func(_ int, name []byte) bool { return strings.HasPrefix(string(name), "k") }
		}
		b.want("+OK", "MODULE", "LOAD", g.build(t))
		b.want("$-1", "H.SET", "k")
		for b.host.List()[0].Delivered == 0 {
			b.want("$-1", "GET", "nothing")
		}
		k, other := "$-1", "$1\r\nx"
		if upstream {
			k, other = other, k
		}
		b.want(k, "GET", "k")
		b.want(other, "GET", "other")
	}
}
