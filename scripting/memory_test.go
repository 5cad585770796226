package scripting

import (
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// TestScriptsAndMaxMemory: what redis-server 7.0.15 answers when used memory is
// above maxmemory, and when a script carries it there.
func TestScriptsAndMaxMemory(t *testing.T) {
	r := newRoom(t, Settings{})
	c := r.client()
	const (
		oom  = "-" + command.ErrOOM
		set  = "return redis.call('set',KEYS[1],'v')"
		grow = "redis.call('set',KEYS[1],string.rep('x',400000)) redis.call('set',KEYS[2],string.rep('x',400000)) return redis.call('append',KEYS[1],'z')"
	)
	r.engine.Store.SetMaxMemory(1)
	for _, tc := range []struct{ src, want string }{
		{set, oom + " script: " + SumSHA1([]byte(set)).String() + ", on @user_script:1."},
		{"return redis.pcall('set',KEYS[1],'v')", oom},
		{"return 1", ":1"},
		{"return redis.call('get',KEYS[1])", "$-1"},
		{"#!lua\nreturn 1", oom},
		{"#!lua flags=no-writes\nreturn redis.call('get',KEYS[1])", "$-1"},
		{"#!lua flags=allow-oom\n" + set, "+OK"},
		{"redis.call('del','a') redis.call('set','a','b') return 1", ":1"},
	} {
		c.expect(tc.want, "EVAL", tc.src, "1", "k")
	}
	if c.sess.AllowOOM {
		t.Error("a script's leave to take memory outlives it")
	}
	c.expect(oom, "SET", "k", "v")

	r.engine.Store.SetMaxMemory(r.engine.Store.UsedMemory() + 16<<20)
	for i := 0; !r.engine.Store.OverLimit(); i++ {
		if i == 1000 {
			t.Fatal("the scripts do not reach maxmemory")
		}
		n := strings.Repeat("k", i+1)
		c.expect(":400001", "EVAL", grow, "2", n, n+"2")
	}
	c.expect(oom, "SET", "k", "v")
}
