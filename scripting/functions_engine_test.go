package scripting

import (
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/store"
)

// TestLibraryEngines: a library runs on closures when they cover all of it, and
// INFO's numbers say how many do and why the others do not.
func TestLibraryEngines(t *testing.T) {
	r := newRoom(t, Settings{})
	c := r.client()
	c.load("plain", "redis.register_function('f', function() return 1 end)")
	c.load("threads", "redis.register_function('g', function() return coroutine.wrap(function() return 2 end)() end)")
	c.load("loads", "redis.register_function('h', function() return loadstring('return 3')() end)")
	if got := c.do("FUNCTION", "LOAD", libSource("bad", "x =")); !strings.HasPrefix(got, "-ERR Error compiling function") {
		t.Errorf("a source that is none answered %q", got)
	}
	set := r.runner.libraries.committed.Load()
	for name, closures := range map[string]bool{"plain": true, "threads": false, "loads": false} {
		if got := r.runner.Engine().onSecond(set.libraries[name].Body); got != closures {
			t.Errorf("library %s on closures: %v, want %v", name, got, closures)
		}
	}
	s := r.runner.Engine().EngineStats()
	if l := s.Libraries; l.Closures != 1 || l.VM != 2 || l.Fallbacks["coroutine"] != 1 || l.Fallbacks["loadstring"] != 1 || len(l.Fallbacks) != 2 {
		t.Errorf("libraries are counted as %+v", l)
	}
	if s.Scripts.Closures+s.Scripts.VM != 0 {
		t.Errorf("scripts are counted as %+v, there are none", s.Scripts)
	}
	for f, want := range map[string]string{"f": ":1", "g": ":2", "h": ":3"} {
		c.expect(want, "FCALL", f, "0")
	}
}

// TestSwitchingEnginesCompilesOutside: with the second engine switched off, a call
// compiles what the virtual machine needs before its transaction, and within one
// nothing is compiled: the engine that has the code goes on.
func TestSwitchingEnginesCompilesOutside(t *testing.T) {
	const tell = "local t = {1, nil, 3, nil} return #t" // whose answer tells the engines apart
	const closures, vm = ":1", ":3"
	r := newRoom(t, Settings{})
	c := r.client()
	c.load("l", "redis.register_function('f', function() "+tell+" end)")
	sha := bulk(c.do("SCRIPT", "LOAD", tell))
	calls := [][]string{{"FCALL", "f", "0"}, {"FCALL_RO", "g", "0"}, {"EVALSHA", sha, "0"}, {"EVALSHA_RO", sha, "0"}, {"EVAL", tell, "0"}}
	c.load("m", "redis.register_function{function_name = 'g', flags = {'no-writes'}, callback = function() "+tell+" end}")
	all := func(want string) {
		t.Helper()
		for _, args := range calls {
			c.expect(want, args...)
		}
	}
	all(closures)
	e := r.runner.Engine()
	e.SetSecondEngine(false)
	body := r.runner.libraries.committed.Load().libraries["l"].Body
	script := e.Cache().Get(SumSHA1([]byte(tell)))
	for _, s := range []*Script{body, script} {
		if s.proto != nil || !e.onSecond(s) {
			t.Error("switching has compiled a source, or would have its next run do so under locks")
		}
	}
	all(vm)
	e.SetSecondEngine(true)
	all(closures)
	e.SetSecondEngine(false)
	all(vm)
	// What is compiled for the machine while the other is off follows, too.
	const later = "local n = 0 " + tell
	c.load("l", "local n = 0 redis.register_function('f', function() "+tell+" end)")
	c.load("m", "local n = 0 redis.register_function{function_name = 'g', flags = {'no-writes'}, callback = function() "+tell+" end}")
	sha = bulk(c.do("SCRIPT", "LOAD", later))
	c.do("SCRIPT", "LOAD", "return coroutine.wrap(function() return 'machine' end)()")
	calls = [][]string{{"FCALL", "f", "0"}, {"FCALL_RO", "g", "0"}, {"EVALSHA", sha, "0"}, {"EVALSHA_RO", sha, "0"}, {"EVAL", later, "0"}}
	all(vm)
	e.SetSecondEngine(true)
	if e.onSecond(r.runner.libraries.committed.Load().libraries["l"].Body) {
		t.Error("switching has compiled a source")
	}
	all(closures)
	c.expect("$7 machine", "EVAL", "return coroutine.wrap(function() return 'machine' end)()", "0")
	e.SetSecondEngine(false)
	all(vm)
}

// TestRefusedByTheMachine: a source that only closures take stays with them.
func TestRefusedByTheMachine(t *testing.T) {
	src := "local n=0 " + strings.Repeat("n=n+1 ", 140_000) + "return n"
	if _, err := newEngine(t, Options{VMOnly: true}).Compile([]byte(src)); err == nil {
		t.Fatal("the virtual machine takes the source, the test needs another one")
	}
	r := newRoom(t, Settings{})
	c := r.client()
	for _, on := range []bool{true, false} {
		r.runner.Engine().SetSecondEngine(on)
		if got := c.do("EVAL", src, "0"); got != ":140000\r\n" {
			t.Errorf("with the second engine on (%v) it answers %q", on, clipText(got))
		}
	}
}

// TestLibraryWorlds: a function that the body of its library calls sees what the
// body sees, and later what functions see, on the same state and on a new one.
func TestLibraryWorlds(t *testing.T) { onBothEngines(t, testLibraryWorlds) }

func testLibraryWorlds(t *testing.T, o Options) {
	c := newRoomOn(t, Settings{}, store.Options{}, o).client()
	c.load("l", `local seen
		local function look(deep)
			if deep then return (function() return redis.sha1hex, redis.register_function end)() end
			return redis.LOG_DEBUG, redis.register_function
		end
		local _, register = look()
		local function nest() return function() return function() return redis.register_function, redis.call end end end
		local early = nest()()
		register('now', function() local a, b = look(true) return {type(a), type(b), type(register)} end)
		register('made', function() local a, b = early() local c, d = nest()()() return {type(a), type(b), type(c), type(d)} end)`)
	for range 3 {
		c.expect("*3 $8 function $3 nil $8 function", "FCALL", "now", "0")
		c.expect("*4 $3 nil $8 function $3 nil $8 function", "FCALL", "made", "0")
	}
}
