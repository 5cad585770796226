package scripting

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/latchkey-proxy/latchkey/store"
)

// libSource is the source of a library.
func libSource(name, body string) string { return "#!lua name=" + name + "\n" + body }

// onBothEngines runs a test of functions on each engine.
func onBothEngines(t *testing.T, test func(t *testing.T, o Options)) {
	for engine, vmOnly := range map[string]bool{"vm": true, "closures": false} {
		t.Run(engine, func(t *testing.T) { test(t, Options{Version: "7.0.15", VMOnly: vmOnly}) })
	}
}

func (c *client) load(name, body string) {
	c.r.t.Helper()
	c.expect("$"+strconv.Itoa(len(name))+" "+name, "FUNCTION", "LOAD", "REPLACE", libSource(name, body))
}

// TestFunctionsSameAsRedis asks redis-server and a store of ours the same.
// proxy/testdata/functions.transcript has the family over the wire.
func TestFunctionsSameAsRedis(t *testing.T) { onBothEngines(t, testFunctionsSameAsRedis) }

func testFunctionsSameAsRedis(t *testing.T, o Options) {
	redis := startRedis(t)
	c := newRoomOn(t, Settings{}, store.Options{}, o).client()
	const fn = "function() return 1 end"
	var ask [][]string
	load := func(sources ...string) {
		for _, src := range sources {
			ask = append(ask, []string{"FUNCTION", "LOAD", "REPLACE", src})
		}
	}
	register := func(bodies ...string) {
		for _, b := range bodies {
			load(libSource("lib", "redis.register_function"+b))
		}
	}
	load("", "x", "#!", "#!lua", "#!lua\n", "#!\n", "#! name=x\n", "#!python name=x\n", "#!LUA name=x\n", "#!lua name=\"x\n",
		"#!lua name='x'y\n", "#!lua name=\n", "#!lua name=x-y\n", "#!lua NAME=x\n", "#!lua name=x NaMe=y\n", "#!lua \tname=x a\n",
		"#!lua name=x a=b\n", "\n#!lua name=x\n", "\xef\xbb\xbf#!lua name=x\n", "#!lua name=\"a\\x62\\n\"\n", "#!lua name='a\\'b'\n",
		"#!lua name=x\r\nredis.register_function('x', "+fn+")", "#!lua name=\"qu\\x6fted\"\nredis.register_function('q', "+fn+")")
	load(libSource("lib", "bad script"), libSource("lib", ""), libSource("lib", "return 1"), libSource("lib", "\n\nx.y()"), libSource("lib", "x = 1"), libSource("lib", "redis.x = 1"),
		libSource("lib", "return redis.call('ping')"), libSource("lib", "return redis.pcall"), libSource("lib", "return redis.setresp(3)"), libSource("lib", "return redis.set_repl(0)"),
		libSource("lib", "return redis.acl_check_cmd('get')"), libSource("lib", "return math.random()"), libSource("lib", "local t = {} for k in pairs(t) do end"),
		libSource("lib", "return _G"), libSource("lib", "return KEYS"), libSource("lib", "mt = getmetatable(_G)"), libSource("lib", "redis.log(1)"), libSource("lib", "redis.log('x', 'y')"),
		libSource("lib", "redis.log(9, 'y')"), libSource("lib", "redis.math.random()"), libSource("lib", "redis.redis.call('ping')"), libSource("lib", "local x x.y = 1"),
		libSource("lib", "return 1 + {}"), libSource("lib", "return (1)()"), libSource("lib", "return ('x'):rep(3)"), libSource("lib", "return redis.REDIS_VERSION .. redis.LOG_WARNING"),
		libSource("lib", "local function g() return x end g()"), libSource("lib", "return {err = 'x'}"))
	register("()", "('f')", "(true)", "(nil,"+fn+")", "('f',1)", "(1,"+fn+")", "('a-b',"+fn+")", "('',"+fn+")", "('a\\0b',"+fn+")",
		"(('x'):rep(300),"+fn+")", "('f',"+fn+",{})", "('f',"+fn+",{},'d','e')", "{}", "{function_name='f'}", "{callback="+fn+"}",
		"{function_name=1,callback="+fn+"}", "{function_name={},callback="+fn+"}", "{function_name='f',callback=1}",
		"{function_name='f',callback="+fn+",description=1}", "{function_name='f',callback="+fn+",description={}}",
		"{function_name='f',callback="+fn+",flags=1}", "{function_name='f',callback="+fn+",flags={'x'}}", "{function_name='f',callback="+fn+",flags={1}}",
		"{function_name='f',callback="+fn+",flags={{}}}", "{function_name='f',callback="+fn+",flags={x='y'}}",
		"{function_name='f',callback="+fn+",x=1}", "{[true]=1}", "{1}", "{FUNCTION_NAME='f',CallBack="+fn+"}", "('f',redis.log)",
		"('f',"+fn+") redis.register_function('f',"+fn+")", "('f',"+fn+") error_x()")
	register("{function_name='f',callback=" + fn + ",flags={'NO-WRITES','allow-oom','allow-stale','no-cluster','allow-cross-slot-keys','no-writes'},description='what it does'}")
	ask = append(ask, []string{"FUNCTION", "LIST", "LIBRARYNAME", "LIB"}, []string{"FUNCTION", "FLUSH"}, []string{"FUNCTION", "LIST"}, []string{"FUNCTION", "DUMP"})

	load(libSource("calls", `local function shared(n) return n + 1 end
		redis.register_function('keys', function(keys, args) return {keys, args, #keys, #args} end)
		redis.register_function('shared', function() return shared(1) end)
		redis.register_function('write', function(keys, args) return redis.call('set', keys[1], args[1]) end)
		redis.register_function{function_name = 'read', callback = function(keys) return redis.call('get', keys[1]) end, flags = {'no-writes'}}
		redis.register_function{function_name = 'lies', callback = function(keys) return redis.call('set', keys[1], 1) end, flags = {'no-writes'}}
		redis.register_function('raise', function() error('boo') end)
		redis.register_function('raise_table', function() error({err = 'MY own'}) end)
		redis.register_function('unknown', function() return redis.call('nosuch') end)
		redis.register_function('returned', function() return {err = 'MY returned'} end)
		redis.register_function('global', function() return KEYS end)
		redis.register_function('assign', function() x = 1 end)
		redis.register_function('register', function() return redis.register_function('a', 1) end)
		local lib = redis
		redis.register_function('later', function() lib.register_function('a', function() end) end)
		redis.register_function('poison', function() lib.redis = redis end)
		redis.register_function('call_of_load', function() return lib.call('ping') end)
		redis.register_function('types', function() return {type(redis.breakpoint), type(redis.debug), type(redis.replicate_commands), type(redis.set_repl), type(redis.sha1hex), type(redis.nosuch)} end)
		redis.register_function('nested', function() return redis.call('fcall', 'keys', 0) end)
		redis.register_function('version', function() return redis.REDIS_VERSION end)
		redis.register_function('resp', function() redis.setresp(3) return redis.call('get', 'none') == nil end)
		redis.register_function('held', function() return {type(lib), type(lib.log), lib.LOG_WARNING, type(getmetatable(lib)), pcall(lib.log)} end)
		redis.register_function('held_walk', function() local n = {} for k, v in pairs(lib) do n[#n + 1] = k .. type(v) end table.sort(n) return n end)
		redis.register_function('held_raw', function() return rawget(lib, 'call') or rawset(lib, 'x', 1) end)
		redis.register_function('held_meta', function() return setmetatable(lib, {}) end)
		redis.register_function('nil_field', function() return lib.nosuch end)
		redis.register_function('odd_field', function() return lib[{}] end)
		redis.register_function('trace', function() local function g() error('deep', 2) end g() end)
		redis.register_function('vararg', function(...) return {select('#', ...), type((...))} end)
		redis.register_function('tail', function(keys, args) return tostring(#keys) end)
		redis.register_function('index_nil', function(keys) return keys.x.y end)
		redis.register_function('host', redis.log)`),
		libSource("machine", `redis.register_function('globals', function() local mt = getmetatable(_G) mt.__index.redis = 1 end)
		redis.register_function('loaded', function() return loadstring('return redis.sha1hex("hi")')() end)
		redis.register_function('bad_load', function() return loadstring('return keys')() end)`),
		libSource("own", `local n, made = 0, {}
		local function add(x) n = n + x made[#made + 1] = x return n end
		add(1) add(2)
		local function factory(k) local c = 0 return function() c = c + k return c end end
		local by2, by3 = factory(2), factory(3)
		by2()
		redis.register_function('own', function() return {n, #made, by2(), by3(), by2()} end)
		local function name(s) return 'own' .. s end
		for i = 1, 3 do redis.register_function(name(i), function() i = i + 1 return i end) end
		local o = {x = 1} function o:get() return self.x end
		redis.register_function{callback = function() return o:get() + o.get(o) end, function_name = ('own' .. o:get()):rep(2)}`),
		libSource("bad1", "local function f() return redis.call('ping') end f()"),
		libSource("bad2", "local function f() return KEYS end f()"),
		libSource("bad3", "local function f() return type(1) end f()"),
		libSource("bad4", "local function f() x = 1 end f()"),
		libSource("bad5", "local t = {} t.x.y = 1"),
		libSource("bad6", "local function f(n) if n == 0 then return redis.nosuch end return f(n - 1) end f(3)"),
		libSource("bad7", "local f = function() redis.register_function('bad', function() end) end f() f()"),
		libSource("bad8", "redis.register_function('bad', function() end, nil)"),
		libSource("bad9", "return redis[1]"),
		libSource("bad10", "return redis[{}]"))
	for _, name := range []string{
		"shared", "SHARED", "raise", "raise_table", "unknown", "returned", "global", "assign", "register", "later", "poison", "call_of_load",
		"types", "nested", "version", "resp", "host", "none", "held", "held_walk", "held_raw", "held_meta", "nil_field", "odd_field",
		"trace", "vararg", "tail", "index_nil", "globals", "loaded", "bad_load", "own", "own1", "own2", "own3", "own1own1",
	} {
		ask = append(ask, []string{"FCALL", name, "0"}, []string{"FCALL_RO", name, "0"})
	}
	ask = append(ask, [][]string{
		{"FCALL", "keys", "2", "k1", "k2", "a1"},
		{"FCALL", "keys", "1", "k", "\x00\xff"},
		{"FCALL", "keys", "0"},
		{"FCALL", "keys"},
		{"FCALL"},
		{"FCALL", "keys", "x"},
		{"FCALL", "keys", "-1"},
		{"FCALL", "keys", "3", "a"},
		{"FCALL", "none", "x"},
		{"FCALL", "write", "1", "k", "v"},
		{"FCALL_RO", "write", "1", "k", "v"},
		{"FCALL", "read", "1", "k"},
		{"FCALL_RO", "read", "1", "k"},
		{"FCALL", "lies", "1", "k"},
		{"FCALL_RO", "lies", "1", "k"},
		{"GET", "k"},
		{"EVAL", "return redis.call('fcall', 'keys', 0)", "0"},
		{"EVAL", "return redis.call('function', 'list')", "0"},
		{"EVAL", "return redis.call('function', 'flush')", "0"},
		{"FUNCTION"},
		{"FUNCTION", "NOSUCH"},
		{"FUNCTION", "HELP"},
		{"FUNCTION", "HELP", "x"},
		{"FUNCTION", "LOAD"},
		{"FUNCTION", "LOAD", "x", "y"},
		{"FUNCTION", "LOAD", "REPLACE"},
		{"FUNCTION", "LOAD", libSource("calls", "bad script")},
		{"FUNCTION", "LOAD", libSource("other", "redis.register_function('KEYS', "+fn+")")},
		{"FUNCTION", "LOAD", libSource("other", "redis.register_function('other', "+fn+")")},
		{"FUNCTION", "DELETE"},
		{"FUNCTION", "DELETE", "none"},
		{"FUNCTION", "DELETE", "OTHER"},
		{"FUNCTION", "STATS"},
		{"FUNCTION", "STATS", "x"},
		{"FUNCTION", "DELETE", "other"},
		{"FUNCTION", "STATS"},
		{"FUNCTION", "LIST", "x"},
		{"FUNCTION", "LIST", "libraryname"},
		{"FUNCTION", "LIST", "withcode", "withcode"},
		{"FUNCTION", "LIST", "withcode", "libraryname", "a", "libraryname", "b"},
		{"FUNCTION", "LIST", "libraryname", "none*"},
		{"FUNCTION", "KILL"},
		{"FUNCTION", "KILL", "x"},
		{"FUNCTION", "RESTORE"},
		{"FUNCTION", "RESTORE", "x"},
		{"FUNCTION", "RESTORE", "x", "y"},
		{"FUNCTION", "RESTORE", "x", "y", "z"},
		{"FUNCTION", "DUMP", "x"},
		{"FUNCTION", "FLUSH", "x"},
		{"FUNCTION", "FLUSH", "sync", "x"},
		{"FUNCTION", "FLUSH", "ASYNC"},
		{"FUNCTION", "FLUSH", "Sync"},
		{"FUNCTION", "STATS"},
		{"FCALL", "keys", "0"},
		{"EVAL", "#!lua 'x\nreturn 1", "0"},
		{"EVAL", "#!lua \"flags=no-writes\"\nreturn 1", "0"},
		{"EVAL", "#!lua flags=,\nreturn 1", "0"},
		{"EVAL", "#!lua flags=\nreturn 1", "0"},
		{"EVAL", "#!lua flags=no-writes,\nreturn 1", "0"},
		{"EVAL", "#!lua FLAGS=no-writes\nreturn 1", "0"},
		{"EVAL", "#!lua flags=NO-WRITES\nreturn 1", "0"},
		{"EVAL", "#!lua flags=no-writes flags=allow-oom\nreturn 1", "0"},
		{"EVAL", "#!Lua\nreturn 1", "0"},
		{"EVAL", "#! lua\nreturn 1", "0"},
		{"EVAL_RO", "#!lua\nreturn 1", "0"},
		{"EVAL_RO", "#!lua flags=allow-oom\nreturn 1", "0"},
		{"EVAL_RO", "#!lua flags=no-writes\nreturn 1", "0"},
		{"EVAL_RO", "return 1", "0"},
		{"SCRIPT", "LOAD", "#!lua\nreturn 9"},
		{"EVALSHA_RO", SumSHA1([]byte("#!lua\nreturn 9")).String(), "0"},
		{"EVALSHA", SumSHA1([]byte("#!lua\nreturn 9")).String(), "0"},
	}...)
	for _, args := range ask {
		want, err := redis.do(args...)
		if err != nil {
			t.Fatalf("%q: redis-server went away: %v", args, err)
		}
		want = strings.Replace(want, "Prints this help.", "Print this help.", 1) // as Redis 7.2 has it
		if got := c.do(args...); got != want {
			t.Errorf("%q\n got %q\nwant %q, as redis-server answers", args, clipText(got), clipText(want))
		}
	}
}

// TestFunctionsLeaveNothing: whatever a call does to its library, the next sees
// the library as it was loaded, whichever state it meets and whether the library
// is kept or made anew.
func TestFunctionsLeaveNothing(t *testing.T) { onBothEngines(t, testFunctionsLeaveNothing) }

func testFunctionsLeaveNothing(t *testing.T, o Options) {
	r := newRoomOn(t, Settings{}, store.Options{}, o)
	c := r.client()
	c.load("counter", `local n, t, u = 0, {}, {v = {}}
		local function bump() n = n + 1 return n end
		redis.register_function('count', function() return bump() end)
		redis.register_function('push', function() t[#t + 1] = 1 return #t end)
		redis.register_function('deep', function() table.insert(u.v, 1) return #u.v end)
		redis.register_function('meta', function() local had = getmetatable(t) setmetatable(t, {}) return had == nil and 1 or 0 end)`)
	c.load("pure", `local base = 41
		redis.register_function('one', function(keys, args)
			local before = #keys + #args
			keys[#keys + 1] = 'x' args[#args + 1] = 'y'
			return before + base
		end)`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			c := r.client()
			for range 50 {
				for _, name := range []string{"count", "push", "deep", "meta"} {
					if got := c.do("FCALL", name, "0"); got != ":1\r\n" {
						t.Errorf("%s answered %q, want 1 each time", name, got)
						return
					}
				}
				if got := c.do("FCALL", "one", "1", "k"); got != ":42\r\n" {
					t.Errorf("one answered %q, want 42 each time", got)
					return
				}
				if got := c.do("EVAL", "return {type(KEYS), #KEYS}", "1", "k"); got != "*2\r\n$5\r\ntable\r\n:1\r\n" {
					t.Errorf("a script among functions answered %q", got)
					return
				}
			}
		})
	}
	wg.Wait()
	set := r.runner.libraries.committed.Load()
	if set.libraries["counter"].frozen || !set.libraries["pure"].frozen {
		t.Error("pure should be kept between calls, counter must not be")
	}
}

// TestReplacedLibrariesAreSeen: a state that has kept a library does not call the
// old one.
func TestReplacedLibrariesAreSeen(t *testing.T) { onBothEngines(t, testReplacedLibrariesAreSeen) }

func testReplacedLibrariesAreSeen(t *testing.T, o Options) {
	r := newRoomOn(t, Settings{}, store.Options{}, o)
	c := r.client()
	for i := range 20 {
		c.load("l", fmt.Sprintf("redis.register_function('f', function() return %d end)", i))
		for range 3 {
			c.expect(":"+strconv.Itoa(i), "FCALL", "f", "0")
		}
	}
	c.expect("+OK", "FUNCTION", "DELETE", "l")
	c.expect("-ERR Function not found", "FCALL", "f", "0")
}

// TestBodyIsOnTheHouse: what a call may use does not depend on whether its state
// has the library already.
func TestBodyIsOnTheHouse(t *testing.T) { onBothEngines(t, testBodyIsOnTheHouse) }

func testBodyIsOnTheHouse(t *testing.T, o Options) {
	r := newRoomOn(t, Settings{}, store.Options{}, o)
	c := r.client()
	c.load("l", "local n = 0 for i = 1, 20000 do n = n + 1 end redis.register_function('f', function() n = n + 1 return n end)")
	r.runner.Set(Settings{Limits: Limits{Instructions: 10_000}})
	for range 3 {
		c.expect(":20001", "FCALL", "f", "0")
	}
}

func TestFunctionErrorsRollBack(t *testing.T) { onBothEngines(t, testFunctionErrorsRollBack) }

func testFunctionErrorsRollBack(t *testing.T, o Options) {
	r := newRoomOn(t, Settings{}, store.Options{}, o)
	c := r.client()
	c.load("l", "redis.register_function('f', function(keys) redis.call('set', keys[1], '1') error('stop') end)")
	c.expect("-ERR user_function:2: stop script: f, on @user_function:2.", "FCALL", "f", "1", "k")
	c.expect(":0", "EXISTS", "k")
	if got := r.counts("f"); got.Rollbacks != 1 {
		t.Errorf("counted %+v, want one rollback", got)
	}
}

func TestFunctionKillAndStats(t *testing.T) { onBothEngines(t, testFunctionKillAndStats) }

func testFunctionKillAndStats(t *testing.T, o Options) {
	r := newRoomOn(t, Settings{}, store.Options{}, o)
	c := r.client()
	c.load("l", "redis.register_function('slow', function(keys) redis.call('set', keys[1], '1') while true do end end)")
	done := make(chan string)
	go func() { done <- r.client().do("FCALL", "SLOW", "1", "k", "arg") }()
	for r.runner.Long() == 0 {
		runtime.Gosched() // until the function itself says that it runs long
	}
	got := c.do("FUNCTION", "STATS")
	for _, want := range []string{"$4\r\nslow\r\n", "*5\r\n$5\r\nFCALL\r\n$4\r\nSLOW\r\n$1\r\n1\r\n$1\r\nk\r\n$3\r\narg\r\n", "$11\r\nduration_ms\r\n:"} {
		if !strings.Contains(got, want) {
			t.Errorf("FUNCTION STATS answered %q, without %q", got, want)
		}
	}
	c.expect("-BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.", "SCRIPT", "KILL")
	c.expect("+OK", "FUNCTION", "KILL")
	if got := <-done; !strings.HasPrefix(got, "-ERR Script killed by user with SCRIPT KILL... script: slow, on @user_function:2.") {
		t.Errorf("the killed function answered %q", got)
	}
	c.expect(":0", "EXISTS", "k")

	reply, _ := r.spin("k")
	c.expect("-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", "FUNCTION", "KILL")
	if got := c.do("FUNCTION", "STATS"); !strings.HasPrefix(got, "*4\r\n$14\r\nrunning_script\r\n$-1\r\n") {
		t.Errorf("FUNCTION STATS beside a script of EVAL answered %q", got)
	}
	c.expect("+OK", "SCRIPT", "KILL")
	<-reply
}

// TestFunctionEffects: what a log replays makes the same libraries.
func TestFunctionEffects(t *testing.T) { onBothEngines(t, testFunctionEffects) }

func testFunctionEffects(t *testing.T, o Options) {
	log := &store.MemoryLog{Keep: true}
	r := newRoomOn(t, Settings{}, store.Options{Log: log}, o)
	c := r.client()
	c.load("a", "redis.register_function('f', function() return 'a' end)")
	c.load("b", "redis.register_function('g', function() return 'b' end)")
	payload := bulk(c.do("FUNCTION", "DUMP"))
	c.expect("+OK", "FUNCTION", "DELETE", "a")
	c.load("b", "redis.register_function('h', function() return 'b2' end)")
	c.expect("+OK", "FUNCTION", "RESTORE", payload, "REPLACE")
	if got := c.do("FUNCTION", "RESTORE", payload); got != "-ERR Library a already exists\r\n" {
		t.Errorf("a second RESTORE answered %q", got)
	}
	var names []string
	replica := newRoomOn(t, Settings{}, store.Options{}, o).client()
	for _, record := range log.Records() {
		for _, args := range respCommands(t, record) {
			names = append(names, strings.Join(args[:2], " "))
			if got := replica.do(args...); strings.HasPrefix(got, "-") {
				t.Errorf("%q replayed answered %q", args, got)
			}
		}
	}
	want := "FUNCTION LOAD,FUNCTION LOAD,FUNCTION DELETE,FUNCTION LOAD,FUNCTION DELETE,FUNCTION LOAD,FUNCTION LOAD"
	if got := strings.Join(names, ","); got != want {
		t.Errorf("the log has %s\nwant %s", got, want)
	}
	if here, there := c.do("FUNCTION", "LIST", "WITHCODE"), replica.do("FUNCTION", "LIST", "WITHCODE"); here != there {
		t.Errorf("a replay made %q, want %q", there, here)
	}
	if got := r.runner.libraries.committed.Load().lsn; got != log.LSN() {
		t.Errorf("the libraries are of LSN %d, the log is at %d", got, log.LSN())
	}
}

// bulk is the text of a bulk reply.
func bulk(reply string) string {
	_, rest, _ := strings.Cut(reply, "\r\n")
	return strings.TrimSuffix(rest, "\r\n")
}

// respCommands reads the commands of a record, whose values have no line ends
// but those of Lua.
func respCommands(t *testing.T, record string) (cmds [][]string) {
	t.Helper()
	for record != "" {
		head, rest, _ := strings.Cut(record, "\r\n")
		n, err := strconv.Atoi(head[1:])
		if err != nil {
			t.Fatalf("no command: %q", record)
		}
		var args []string
		for range n {
			head, text, _ := strings.Cut(rest, "\r\n")
			size, err := strconv.Atoi(head[1:])
			if err != nil {
				t.Fatalf("no argument: %q", rest)
			}
			args, rest = append(args, text[:size]), text[size+2:]
		}
		cmds, record = append(cmds, args), rest
	}
	return cmds
}

// failingLog refuses what it is told to.
type failingLog struct {
	store.MemoryLog
	fail bool
}

func (l *failingLog) Append(effects []store.Effect) (uint64, error) {
	if l.fail {
		return 0, fmt.Errorf("disk full")
	}
	return l.MemoryLog.Append(effects)
}

// TestFunctionsAreUndone: what the log did not take has not happened.
func TestFunctionsAreUndone(t *testing.T) { onBothEngines(t, testFunctionsAreUndone) }

func testFunctionsAreUndone(t *testing.T, o Options) {
	log := &failingLog{}
	r := newRoomOn(t, Settings{}, store.Options{Log: log}, o)
	c := r.client()
	c.load("a", "redis.register_function('f', function() return 'a' end)")
	payload := bulk(c.do("FUNCTION", "DUMP"))
	before := c.do("FUNCTION", "LIST", "WITHCODE")
	log.fail = true
	for _, args := range [][]string{
		{"FUNCTION", "LOAD", "REPLACE", libSource("a", "redis.register_function('f', function() return 'b' end)")},
		{"FUNCTION", "LOAD", libSource("b", "redis.register_function('g', function() return 'b' end)")},
		{"FUNCTION", "DELETE", "a"},
		{"FUNCTION", "FLUSH"},
		{"FUNCTION", "RESTORE", payload, "REPLACE"},
	} {
		if got := c.do(args...); !strings.HasPrefix(got, "-MISCONF") {
			t.Errorf("%q answered %q", args, got)
		}
		if got := c.do("FUNCTION", "LIST", "WITHCODE"); got != before {
			t.Errorf("after %q the libraries are %q", args, got)
		}
		c.expect("$1 a", "FCALL", "f", "0")
	}
}
