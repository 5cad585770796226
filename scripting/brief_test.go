package scripting

import "testing"

// TestBriefScriptsAreCounted: scripts that share a look at the clock are all counted,
// and so is the long one among them.
func TestBriefScriptsAreCounted(t *testing.T) {
	r := newRoom(t, Settings{})
	c := r.client()
	c.sess.BeginBatch()
	for range 20 {
		c.do("EVAL", `return redis.call("get", KEYS[1])`, "1", "k")
	}
	c.do("EVAL", `local n = 0 for i = 1, 5000 do n = n + i end return n`, "1", "k")
	c.sess.Measure()
	c.sess.FlushStats()
	eval, get := r.engine.Table.Lookup([]byte("eval")).Usage(), r.engine.Table.Lookup([]byte("get")).Usage()
	if n := eval.Calls.Load(); n != 21 {
		t.Errorf("EVAL was counted %d times, want 21", n)
	}
	if n := get.Calls.Load(); n != 20 {
		t.Errorf("GET was counted %d times, want 20", n)
	}
	if eval.Nanos.Load() <= 0 {
		t.Error("EVAL took no time")
	}
}
