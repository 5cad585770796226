package scripting

import (
	"runtime"
	"testing"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/store"
)

// TestNothingLargeStays: what a script has taken is free when it has ended, though its
// machine is used again.
func TestNothingLargeStays(t *testing.T) {
	onBothEngines(t, func(t *testing.T, o Options) {
		c := newRoomOn(t, Settings{}, store.Options{}, o).client()
		c.expect(":1", "EVAL", "return 1", "0")
		runtime.GC()
		before := budget.ReadHeap().Live
		for _, src := range []string{
			"local t = {} for i = 1, 32 do t[i] = string.rep('x', 2^20) .. i end return #t",
			"local a = string.rep('x', 2^24) local b = a .. 1 return 32",
			"local s = string.rep('x', 2^24) return (function(...) return #{...} end)(s .. 1, s .. 2) + 30",
		} {
			c.expect(":32", "EVAL", src, "0")
			if rest := c.sess.Rest; rest != nil {
				rest()
			}
			runtime.GC()
			if kept := budget.ReadHeap().Live - before; kept > 8<<20 {
				t.Errorf("%d MiB are held after %s", kept>>20, src)
			}
		}
	})
}
