package scripting

import (
	"testing"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// An invocation keeps the machine of a run for its next one, unless the run ended
// otherwise than by returning, and has none once it has given it back.
func TestKeptMachine(t *testing.T) {
	for engine, vmOnly := range map[string]bool{"vm": true, "closures": false} {
		t.Run(engine, func(t *testing.T) {
			e := newEngine(t, Options{VMOnly: vmOnly})
			inv := &Invocation{Caller: newFakeStore(), keeps: true}
			run := func(src string) error {
				s, err := e.Compile([]byte(src))
				if err != nil {
					t.Fatal(err)
				}
				return e.Run(s, inv, &respWriter{})
			}
			for range 3 {
				if err := run("return 1"); err != nil {
					t.Fatal(err)
				}
				first := inv.account
				if err := run("return 2"); err != nil || inv.account != first {
					t.Errorf("the machine was not kept, err %v", err)
				}
				if err := run("error('x')"); err == nil || inv.account != first {
					t.Errorf("err %v, want one, on the machine that was kept", err)
				}
				if inv.worker != nil || inv.state != nil {
					t.Error("the machine of a script that has failed is kept")
				}
				if err := run("return 1"); err != nil || inv.account == first {
					t.Errorf("the machine of a script that has failed was used again, err %v", err)
				}
				inv.release()
				if inv.worker != nil || inv.state != nil {
					t.Error("a machine is kept that was given back")
				}
			}
		})
	}
}

// What a session keeps for its next script it gives back at the end of the batch, and
// before it waits.
func TestKeptUntilRest(t *testing.T) {
	for engine, vmOnly := range map[string]bool{"vm": true, "closures": false} {
		t.Run(engine, func(t *testing.T) {
			r := newRoomOn(t, Settings{}, store.Options{}, Options{VMOnly: vmOnly})
			for name, rest := range map[string]func(*client){
				"the end of a batch": func(c *client) { c.r.engine.EndRun(&command.Call{S: c.sess}) },
				"a wait":             func(c *client) { c.sess.Waits() },
				"its end":            func(c *client) { c.sess.FlushStats() },
			} {
				c := r.client()
				for range 2 {
					c.expect("$1 v", "EVAL", "return ARGV[1]", "1", "k", "v")
					sc := memoOf(c.sess).call
					if sc.worker == nil && sc.state == nil {
						t.Fatal("nothing is kept within a batch")
					}
					rest(c)
					if sc.worker != nil || sc.state != nil || sc.outer != nil || sc.script != nil || sc.Keys != nil || sc.Args != nil || c.sess.Rest != nil {
						t.Errorf("%s: something is kept", name)
					}
				}
			}
		})
	}
}

// Scripts of one batch, on the machine that is kept, see as little of each other as
// those on different ones.
func TestKeptMachineIsClean(t *testing.T) {
	leave := [][]string{
		{"EVAL", "cjson.encode_keep_buffer(false) cjson.encode_max_depth(2) cjson.decode_max_depth(2) return cjson.encode({1})", "0"},
		{"EVAL", "redis.setresp(3) return redis.call('get', KEYS[1])", "2", "k", "other", "a", "b", "c"},
		{"EVAL", "math.randomseed(7) return math.random(100)", "0"},
		{"EVAL", "KEYS[2] = 'x' ARGV[3] = 'y' KEYS.n = 1 return #KEYS", "1", "k", "v"},
		{"EVAL", "local t = {} for i = 1, 100 do t[i] = KEYS[1] end return {unpack(t)}", "1", "k"},
		{"EVAL", "return {KEYS[1], KEYS[2], ARGV[1], ARGV[2]}", "2", "k", "l", "first", "second"},
		{"EVAL", "return redis.call('set', KEYS[1], ARGV[1])", "1", "k", "v"},
		{"EVAL", "return redis.pcall('lpush', KEYS[1], 'x').err", "1", "k"},
		{"EVAL", "error('x')", "0"},
		{"EVAL", "local k = KEYS k[1] = 'x' ARGV[2] = 'y' return {KEYS[1], ARGV[2]}", "1", "k"},
		{"EVAL", "local function f() return KEYS[2] end return {f(), KEYS[1], (ARGV or KEYS)[1], KEYS.n or 'no'}", "2", "k", "l", "v"},
		{"EVAL", "return string.find('abc', 'b(.)')", "0"},
	}
	look := [][]string{
		{"EVAL", "return {KEYS[1] or 'no', KEYS[2] or 'no', ARGV[1] or 'no', ARGV[2] or 'no', ARGV[3] or 'no', #KEYS, #ARGV}", "0"},
		{"EVAL", "return ARGV[1] or 'no'", "1", "k"},
		{"EVAL", "return {KEYS[1], (function() return KEYS[1] end)(), ARGV[-1] or 'no', (ARGV[1] and KEYS or ARGV)[1]}", "1", "key", "v"},
		{"EVAL", "return KEYS[2] or 'no'", "1", "k"},
		{"EVAL", "return {#KEYS, #ARGV, KEYS.n or 'no'}", "1", "k", "w"},
		{"EVAL", "return cjson.encode({{{{1}}}})", "0"},
		{"EVAL", "return {redis.call('get', KEYS[1]), redis.call('exists', 'none')}", "1", "k"},
		{"EVAL", "return type(redis.call('get', KEYS[1]))", "1", "none"},
	}
	for engine, vmOnly := range map[string]bool{"vm": true, "closures": false} {
		t.Run(engine, func(t *testing.T) {
			alone := newRoomOn(t, Settings{}, store.Options{}, Options{VMOnly: vmOnly})
			same := newRoomOn(t, Settings{}, store.Options{}, Options{VMOnly: vmOnly}).client()
			for _, before := range leave {
				for _, after := range look {
					for _, args := range [][]string{before, after} {
						got, want := same.do(args...), alone.client().do(args...)
						if got != want {
							t.Errorf("%q after %q\nin one batch %q\n      alone %q", after, before, got, want)
						}
					}
				}
			}
			if sc := memoOf(same.sess).call; sc.worker == nil && sc.state == nil {
				t.Error("nothing was kept")
			}
		})
	}
}
