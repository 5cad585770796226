package scripting

import (
	"errors"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// leavingCaller ends the script with an error of its own.
type leavingCaller struct{ err error }

func (c leavingCaller) Call([][]byte, command.Reply) error { return c.err }

// TestSpoiledStates: what a run leaves on its state after any end but a normal
// one, no other run ever meets: the state goes to the collector. After a normal
// end it is used again.
func TestSpoiledStates(t *testing.T) {
	gone := errors.New("gone")
	killed := &Invocation{}
	killed.Kill(KilledBy("Script killed"))
	for engine, vmOnly := range map[string]bool{"vm": true, "closures": false} {
		t.Run(engine, func(t *testing.T) {
			e := newEngine(t, Options{VMOnly: vmOnly})
			spoiled := map[*budget.Account]string{} // which keeps them from being collected
			run := func(src string, inv *Invocation, out command.Reply) error {
				t.Helper()
				if inv.Caller == nil {
					inv.Caller = newFakeStore()
				}
				s, err := e.Compile([]byte(src))
				if err != nil {
					t.Fatal(err)
				}
				err = e.Run(s, inv, out)
				if how, ok := spoiled[inv.account]; ok {
					t.Errorf("%s\nruns on the state of one that ended so: %s", src, how)
				}
				return err
			}
			// next runs scripts until a state is used for the second time.
			next := func() {
				t.Helper()
				seen := map[*budget.Account]bool{}
				for range 100 {
					inv := &Invocation{}
					if err := run("return 1", inv, &respWriter{}); err != nil {
						t.Fatal(err)
					}
					if seen[inv.account] {
						return
					}
					seen[inv.account] = true
				}
				t.Error("no state is used again after a normal end")
			}
			for _, end := range []struct {
				name, src string
				inv       *Invocation
				out       command.Reply
			}{
				{name: "an error", src: "error('x')"},
				{name: "an error deep down", src: "local function f(n) if n == 0 then error({}) end return f(n - 1) + 1 end return f(50)"},
				{name: "an error of a command", src: "return redis.call('nosuch')"},
				{name: "an error of the language", src: "local t return t.x"},
				{name: "a stack overflow", src: "local function f() return 1 + f() end return f()"},
				{name: "an error reply", src: "return redis.error_reply('x')"},
				{name: "no instructions left", src: "while true do end", inv: &Invocation{Limits: Limits{Instructions: 5000}}},
				{name: "no memory left", src: "return string.rep('x', 1000000)", inv: &Invocation{Limits: Limits{Memory: 100_000}}},
				{name: "no time left", src: "while true do end", inv: &Invocation{Limits: Limits{Time: time.Microsecond}}},
				{name: "a kill", src: "while true do end", inv: killed},
				{name: "a transaction that begins anew", src: "return redis.call('get', 'k')", inv: &Invocation{Caller: leavingCaller{gone}}},
				{name: "a promotion", src: "while true do end", inv: &Invocation{Short: 100, Promote: func() error { return gone }}},
				{name: "a reply too large", src: "return 'x'", out: &bounded{}},
			} {
				inv, out := end.inv, end.out
				if inv == nil {
					inv = &Invocation{}
				}
				if out == nil {
					out = &respWriter{}
				}
				next()
				err := run(end.src, inv, out)
				var f *Failure
				if errors.As(err, &f) && f.Kind == Returned {
					// It is no abnormal end; an engine may keep the state.
					continue
				}
				if err == nil {
					t.Errorf("%s: the script ended well", end.name)
				}
				spoiled[inv.account] = end.name
				for range 4 {
					next()
				}
			}
			// A library's body, and a function.
			bounds := LibraryBounds{}
			bounds.setDefaults()
			inv := &Invocation{}
			if _, err := e.NewLibrary([]byte(libSource("l", "redis.register_function('f', function() end) error()")), inv, bounds); err == nil {
				t.Error("the body of the library ended well")
			}
			spoiled[inv.account] = "a library's body that fails"
			next()
			lib, err := e.NewLibrary([]byte(libSource("l", "redis.register_function('f', function() error('x') end)")), &Invocation{}, bounds)
			if err != nil {
				t.Fatal(err)
			}
			inv = &Invocation{}
			if err := e.Call(lib.Functions[0], inv, &respWriter{}); err == nil {
				t.Error("the function ended well")
			}
			spoiled[inv.account] = "a function that fails"
			next()
		})
	}
}
