package scripting

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/store/underload"
	"github.com/latchkey-proxy/latchkey/store/underrace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onBoth runs a test on each engine.
func onBoth(t *testing.T, test func(*testing.T, *Engine)) {
	t.Run("closures", func(t *testing.T) { test(t, newEngine(t, Options{})) })
	t.Run("vm", func(t *testing.T) { test(t, newEngine(t, Options{VMOnly: true})) })
}

// hostile scripts must end, by themselves or by the budget, soon after the deadline.
var hostile = map[string]string{
	"loop":                      `while true do end`,
	"loop in pcall":             `while true do pcall(function() while true do end end) end`,
	"loop in xpcall handler":    `xpcall(function() error('x') end, function() while true do end end)`,
	"loop in coroutine":         `coroutine.wrap(function() while true do end end)()`,
	"loop of coroutines":        `while true do coroutine.wrap(function() coroutine.yield() end)() end`,
	"coroutine in pcall":        `while true do pcall(coroutine.wrap(function() while true do end end)) end`,
	"repeat":                    `repeat until false`,
	"goto-free recursion":       `local function f() return f() end return f()`,
	"deep recursion":            `local function f() return 1 + f() end return f()`,
	"deep recursion in pcall":   `local function f() pcall(f) end while true do f() end`,
	"recursion of metamethods":  `local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k .. 'x'] end return t.x`,
	"mutual __index":            `local a, b = {}, {} setmetatable(a, {__index = b}) setmetatable(b, {__index = a}) return a.x`,
	"error storm in depth":      `local function f(n) if n == 0 then while true do pcall(error, 'x') end end return 1 + f(n - 1) end return f(4000)`,
	"string doubling":           `local s = 'x' while true do s = s .. s end`,
	"string.rep":                `return string.rep('x', 1e9)`,
	"string.rep of long":        `return string.rep(string.rep('x', 1e6), 1e6)`,
	"rep overflow":              `return string.rep('xx', 2^62)`,
	"sparse store":              `local t = {} t[67108863] = 1 return 1`,
	"sparse constructor":        `local k = 67108863 local t = {[k] = 1} return 1`,
	"sparse rawset":             `rawset({}, 67108863, 1) return 1`,
	"sparse insert":             `table.insert({}, 67108863, 1) return 1`,
	"sparse multiple":           `local t, u = {}, {} t[67108863], u.x = 1, 2 return 1`,
	"sparse through metatable":  `local u = {} local t = setmetatable({}, {__newindex = u}) t[67108863] = 1 return 1`,
	"pattern":                   `return string.find(string.rep('a', 100000), '.-b')`,
	"pattern with options":      `return string.find(string.rep('a', 28), string.rep('a?', 28) .. string.rep('a', 28))`,
	"pattern nested":            `return string.find(string.rep('a', 1000), string.rep('(.-)', 30) .. 'b')`,
	"gmatch for ever":           `while true do for x in string.gmatch('aaa', 'a*') do end end`,
	"gsub growth":               `local s = 'x' while true do s = s:gsub('.', '%0%0%0%0') end`,
	"gsub callback":             `string.gsub('x', '.', function() while true do end end)`,
	"sort comparator":           `local t = {} for i = 1, 100 do t[i] = i end table.sort(t, function() while true do end end)`,
	"sort of liars":             `local t = {} for i = 1, 5000 do t[i] = i end while true do pcall(table.sort, t, function() return true end) end`,
	"tostring metamethod":       `tostring(setmetatable({}, {__tostring = function() while true do end end}))`,
	"concat metamethod":         `return setmetatable({}, {__concat = function() while true do end end}) .. 'x'`,
	"length of a nilled tail":   `local t = {} for i = 1, 300000 do t[i] = i end for i = 300000, 2, -1 do t[i] = nil end while true do local n = #t end`,
	"insert at the front":       `local t = {} while true do table.insert(t, 1, 1) end`,
	"remove at the front":       `local t = {} for i = 1, 300000 do t[i] = i end while true do table.remove(t, 1) table.insert(t, 1, 1) end`,
	"table.concat":              `local t = {} for i = 1, 100000 do t[i] = 'xxxxxxxxxx' end while true do local s = table.concat(t) end`,
	"unpack":                    `local t = {} for i = 1, 7900 do t[i] = i end while true do select('#', unpack(t)) end`,
	"string keys":               `local t = {} local i = 0 while true do i = i + 1 t['k' .. i] = i end`,
	"string keys set and unset": `local t = {} local i = 0 while true do i = i + 1 t['k' .. i] = 1 t['k' .. i] = nil end`,
	"next over removed keys":    `local t = {} for i = 1, 200000 do t['k' .. i] = 1 end for k in pairs(t) do t[k] = nil end while true do next(t) end`,
	"tables of tables":          `local t = {} while true do t = {t, {}, {}} end`,
	"closures":                  `local t = {} while true do t[#t + 1] = function() return t end end`,
	"compare long strings":      `local a, b = string.rep('x', 2^24), string.rep('x', 2^24 - 1) .. 'x' local n = 0 while a == b do n = n + 1 end`,
	"order long strings":        `local a, b = string.rep('x', 2^24), string.rep('x', 2^24 - 1) .. 'y' while a < b do end`,
	"upper of long":             `local a = string.rep('x', 2^24) while true do a:upper() end`,
	"format of long":            `local a = string.rep('x', 2^24) while true do string.format('%s', a) end`,
	"format width":              `while true do string.format('%99d%99d%99d', 1, 2, 3) end`,
	"loadstring storm":          `while true do loadstring('return ' .. string.rep('1 + ', 4000) .. '1') end`,
	"load without end":          `load(function() return 'x = 1 ' end)`,
	"coroutines kept":           `local t = {} while true do t[#t + 1] = coroutine.create(function() end) end`,
	"coroutine recursion":       `local function f() return coroutine.wrap(f)() end return f()`,
	"tables that reply wide":    `local t = {} for i = 1, 100 do t = {t, t, t, t, t, t, t, t} end return t`,
	"foreach":                   `while true do table.foreach({1, 2, 3}, function() end) end`,
	"calls without end":         `while true do redis.call('PING') end`,
	"huge error":                `error(string.rep('x', 2^24))`,
	"arithmetic on long text":   `local s = string.rep('1', 2^22) while true do local x = s + 1 end`,
}

func TestHostileScriptsEnd(t *testing.T) { onBoth(t, hostileScriptsEnd) }

func hostileScriptsEnd(t *testing.T, e *Engine) {
	const deadline = 150 * time.Millisecond
	clean := eval(e, newFakeStore(), `return {type(string.len), #KEYS, 'x' .. 1}`, Limits{})
	for _, name := range underrace.Sample(slices.Sorted(maps.Keys(hostile)), 3) {
		src := hostile[name]
		t.Run(name, func(t *testing.T) {
			before, begin := underload.Now(), time.Now()
			got := eval(e, newFakeStore(), src, Limits{Time: deadline, Memory: 64 << 20})
			took := time.Since(begin)
			// The deadline is the script's; a loaded machine and -race take their own.
			if took > before.Stretch(underrace.Slow*(5*deadline+time.Second)) {
				t.Errorf("took %v with a deadline of %v; reply %q", took, deadline, clipText(got))
			}
			if after := eval(e, newFakeStore(), `return {type(string.len), #KEYS, 'x' .. 1}`, Limits{}); after != clean {
				t.Errorf("the next script sees %q, want %q", after, clean)
			}
		})
	}
	runtime.GC()
}

// TestHostileMemory looks at what the process holds while bombs go off.
func TestHostileMemory(t *testing.T) {
	e := newEngine(t, Options{})
	for _, src := range []string{
		hostile["string doubling"], hostile["string.rep"], hostile["sparse store"], hostile["sparse constructor"],
		hostile["gsub growth"], hostile["closures"], hostile["tables of tables"], hostile["string keys"],
		hostile["coroutines kept"],
	} {
		runtime.GC()
		before := budget.ReadHeap().Objects
		got := eval(e, newFakeStore(), src, Limits{Time: 2 * time.Second, Memory: 32 << 20})
		grown := budget.ReadHeap().Objects - before
		if grown > 5*32<<20 {
			t.Errorf("%s\nheap grew by %d MB with a limit of 32; reply %q", src, grown>>20, got)
		}
	}
}

func TestSourceBombs(t *testing.T) {
	e := newEngine(t, Options{})
	bombs := map[string]string{
		"sum":              "return " + strings.Repeat("a+", 200000) + "a",
		"sums":             strings.Repeat("x = "+strings.Repeat("a+", 4000)+"a ", 100),
		"blocks":           strings.Repeat("do ", 100000) + strings.Repeat("end ", 100000),
		"elseif":           "if x then " + strings.Repeat("elseif x then ", 20000) + "end",
		"elseifs":          strings.Repeat("if x then "+strings.Repeat("elseif x then ", 4000)+"end ", 15),
		"functions":        strings.Repeat("return function() ", 50000) + strings.Repeat("end ", 50000),
		"parentheses":      "return " + strings.Repeat("(", 400000) + "1" + strings.Repeat(")", 400000),
		"braces":           "return " + strings.Repeat("{", 400000) + strings.Repeat("}", 400000),
		"not":              "return " + strings.Repeat("not ", 200000) + "1",
		"chains of fields": strings.Repeat("x = a"+strings.Repeat(".b", 4000)+" ", 16),
		"chains of or":     strings.Repeat("x = (a"+strings.Repeat(" or b", 4000)+").c ", 16),
		"minus":            strings.Repeat("x = "+strings.Repeat("- ", 190)+"y ", 2500),
		"calls":            "f" + strings.Repeat("()", 400000),
		"fields":           "return a" + strings.Repeat(".b", 400000),
		"concat":           "return " + strings.Repeat("a..", 300000) + "a",
		"power":            "return " + strings.Repeat("1^", 300000) + "1",
		"different names":  manyNames("x", " = 1 ", 80000),
		"different values": "return {" + manyNames("", ",", 150000) + "}",
		"locals seen deep": strings.Repeat("do local a,b,c,d,e,f,g ", 28) + strings.Repeat("z = z ", 100000) + strings.Repeat("end ", 28),
		"long comment":     "--[[" + strings.Repeat("x", 1<<20-10),
		"long name":        strings.Repeat("x", 1<<20),
		"long string":      "return '" + strings.Repeat("x", 1<<20-20) + "'",
		"levels of string": strings.Repeat("[=", 300000),
		"digits":           "return " + strings.Repeat("9", 1<<20-10),
		"too long":         strings.Repeat(" ", 1<<20+1),
	}
	for name, src := range bombs {
		t.Run(name, func(t *testing.T) {
			before, begin := underload.Now(), time.Now()
			_, err := e.Compile([]byte(src))
			if took := time.Since(begin); took > before.Stretch(underrace.Slow*5*time.Second) {
				t.Errorf("compiling %d bytes took %v; error %v", len(src), took, err)
			}
		})
	}
}

func manyNames(prefix, suffix string, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(prefix)
		for v := i; ; v /= 10 {
			b.WriteByte('0' + byte(v%10))
			if v < 10 {
				break
			}
		}
		b.WriteString(suffix)
	}
	return b.String()
}

func TestBudgetCannotBeCaught(t *testing.T) { onBoth(t, budgetCannotBeCaught) }

func budgetCannotBeCaught(t *testing.T, e *Engine) {
	for _, src := range []string{
		`while true do pcall(function() while true do end end) end`,
		`return pcall(coroutine.wrap(function() while true do end end))`,
		`return {xpcall(function() while true do end end, function() return 'caught' end)}`,
		`for i = 1, 1e9 do pcall(string.rep, 'x', 1) end return 'end'`,
		`return {pcall(string.find, string.rep('a', 1e5), '.-.-.-.-b')}`,
	} {
		got := eval(e, newFakeStore(), src, Limits{Instructions: 200000})
		if !strings.HasPrefix(got, "-ERR Script exceeded its instruction budget") {
			t.Errorf("%s\n got %q, want the end of the budget", src, got)
		}
	}
}

// TestInstructionsAreExact: a script that may run n instructions ends within the same one each time.
func TestInstructionsAreExact(t *testing.T) { onBoth(t, instructionsAreExact) }

func instructionsAreExact(t *testing.T, e *Engine) {
	const src = `local n = 0 while true do n = n + 1 redis.call('SET', 'n', n) end`
	want := ""
	for range 5 {
		store := newFakeStore()
		eval(e, store, src, Limits{Instructions: 50000})
		if got := store.strings["n"]; want == "" {
			want = got
		} else if got != want {
			t.Errorf("one run made %s rounds, another %s, with the same budget", want, got)
		}
	}
}

func TestKill(t *testing.T) { onBoth(t, kill) }

func kill(t *testing.T, e *Engine) {
	s, err := e.Compile([]byte(`while true do pcall(redis.call, 'PING') end`))
	if err != nil {
		t.Fatal(err)
	}
	released := false
	inv := &Invocation{Caller: newFakeStore()}
	inv.LongRunning = func() (func(), error) {
		// It runs long: now it can be killed, from any goroutine.
		go inv.Kill(KilledBy("Script killed by user with SCRIPT KILL..."))
		return func() { released = true }, nil
	}
	err = e.Run(s, inv, &respWriter{})
	var f *Failure
	if !errors.As(err, &f) || f.Kind != Killed || !strings.HasPrefix(f.Reply, "ERR Script killed by user") {
		t.Errorf("Run returned %v, want a Failure of kind Killed", err)
	}
	if !released {
		t.Error("the permit was not given back")
	}
}

func TestCallerEndsScript(t *testing.T) { onBoth(t, callerEndsScript) }

func callerEndsScript(t *testing.T, e *Engine) {
	conflict := errors.New("run me again")
	for _, src := range []string{
		`redis.call('GET', 'x')`,
		`return redis.pcall('GET', 'x')`,
		`while true do pcall(redis.call, 'GET', 'x') end`,
		`return coroutine.wrap(function() return redis.call('GET', 'x') end)()`,
		`table.sort({1, 2, 3}, function() redis.call('GET', 'x') end)`,
	} {
		store := newFakeStore()
		store.fail = conflict
		s, err := e.Compile([]byte(src))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Run(s, &Invocation{Caller: store}, &respWriter{}); err != conflict {
			t.Errorf("%s\nRun returned %v, want the caller's error", src, err)
		}
		if store.calls != 1 {
			t.Errorf("%s\nthe script went on: %d calls, want 1", src, store.calls)
		}
	}
}

// TestNothingIsLeft runs each script, then looks at the same state for traces.
func TestNothingIsLeft(t *testing.T) { onBoth(t, nothingIsLeft) }

func nothingIsLeft(t *testing.T, e *Engine) {
	const look = `
		local seen = {}
		local function note(name, v) seen[#seen + 1] = name .. '=' .. tostring(v) end
		note('rawget', rawget(_G, 'poison'))
		note('len', type(string.len) .. ('abc'):len())
		note('upper', ('abc'):upper())
		note('mt', type(getmetatable('').__index))
		note('redis', type(redis.call))
		note('keys', #KEYS .. tostring(KEYS.poison) .. tostring(getmetatable(KEYS)))
		note('argv', #ARGV .. tostring(ARGV.poison) .. table.concat(ARGV, ','))
		note('math', math.pi)
		local n = 0 for k in pairs(_G) do n = n + 1 end note('globals', n)
		n = 0 for k in pairs(string) do n = n + 1 end note('string', n)
		n = 0 for k in pairs(KEYS) do n = n + 1 end note('in keys', n)
		note('resp', tostring(redis.pcall('GET', 'nothing')))
		note('g', _G == _G._G)
		return seen`
	poisons := []string{
		`rawset(_G, 'poison', 1)`, `setmetatable(_G, nil)`, `setmetatable(_G, {})`, `poison = 1`, `_G.poison = 1`, `_G._G.poison = 1`,
		`string.len = nil`, `rawset(string, 'len', nil)`, `rawset(string, 'upper', function() return 'poison' end)`,
		`getmetatable('').__index.len = nil`, `getmetatable('').__index = nil`, `rawset(getmetatable(''), '__index', nil)`,
		`rawset(getmetatable('').__index, 'len', 1)`, `setmetatable(string, nil)`, `setmetatable(getmetatable(''), {})`,
		`getmetatable(_G).__index = function() return 1 end`, `rawset(getmetatable(_G), '__index', nil)`, `getmetatable(_G).__newindex = nil`,
		`table.insert(string, 'x')`, `table.insert(_G, 'x')`, `table.remove(_G)`, `table.sort(_G)`, `table.sort(string, function() return true end)`,
		`redis.call = nil`, `redis.poison = 1`, `rawset(redis, 'call', nil)`, `setmetatable(redis, {__index = function() return 'poison' end})`,
		`KEYS.poison = 1`, `KEYS[3] = 'x'`, `KEYS[1] = nil`, `table.insert(KEYS, 'x')`, `table.remove(KEYS)`, `setmetatable(KEYS, {__index = {poison = 1}})`,
		`local k = KEYS k.poison = 1`, `rawset(KEYS, 'poison', 1)`, `local t = {KEYS} t[1].poison = 1`, `(KEYS or 1).poison = 1`,
		`ARGV[1], ARGV[2] = 'x', 'y'`, `for i = 1, 10 do ARGV[i] = i end`, `local function f(t) t.poison = 1 end f(ARGV)`, `_G.ARGV.poison = 1`,
		`rawget(_G, 'ARGV').poison = 1`, `for k, v in pairs(_G) do if k == 'ARGV' then v.poison = 1 end end`,
		`local _, v = next(_G) if type(v) == 'table' then rawset(v, 'poison', 1) end`,
		`loadstring("KEYS.poison = 1")()`, `loadstring("KEYS[1] = 'x' return 1")()`, `select(1, KEYS).poison = 1`,
		`math.pi = 3`, `math.randomseed(1)`, `redis.setresp(3)`, `bit.band = nil`, `coroutine.wrap(function() KEYS.poison = 1 end)()`,
		`pcall(function() rawset(_G, 'poison', 1) end)`, `pcall(rawset, string, 'len', nil)`, `local f = setmetatable f(_G, nil)`,
		`local t = setmetatable({}, {__newindex = _G}) t.poison = 1`, `local t = setmetatable({}, {__newindex = string}) t.len = 1`,
		`local t = setmetatable({}, {__index = _G}) t.string.len = 1`, `table.foreach(_G, function(k, v) if k == 'string' then v.len = 1 end end)`,
		`newproxy(true)`, `getfenv(0).q = 1`, `setfenv(0, {})`, `setfenv(1, {}) x = 1`, `debug.getregistry()`, `require('os')`, `module('x')`,
		`string.gsub('x', '.', _G)`, `error(KEYS)`, `error(string)`, `return _G`, `return string`, `return KEYS`, `coroutine.yield(_G)`,
		`local c = coroutine.create(function() coroutine.yield() end) coroutine.resume(c)`, `xpcall(rawset, function(e) return e end)`,
	}
	want := eval(e, newFakeStore(), look, Limits{})
	if strings.HasPrefix(want, "-") || strings.Contains(want, "poison") {
		t.Fatalf("a fresh state shows %q", want)
	}
	for _, src := range poisons {
		for _, wrapped := range []string{src, "pcall(function() " + src + " end)"} {
			eval(e, newFakeStore(), wrapped, Limits{})
			// once for states that look, once for one that only reads its words
			if got := eval(e, newFakeStore(), look, Limits{}); got != want {
				t.Errorf("after %s\n got %q\nwant %q", wrapped, got, want)
			}
			if got := eval(e, newFakeStore(), `return {KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3], KEYS.poison}`, Limits{}); got != "*2\r\n$2\r\nk1\r\n$2\r\nk2\r\n" {
				t.Errorf("after %s\nwords are %q", wrapped, got)
			}
		}
	}
}

// TestHostFunctionsAreBounded: operations that are host functions in the virtual
// machine's code share one where their operands have the same names; of the others
// the compiler compares each with all.
func TestHostFunctionsAreBounded(t *testing.T) {
	e := newEngine(t, Options{VMOnly: true})
	const stores, table = "local function f(t, x) %s end", "return {%s}"
	for _, tt := range []struct {
		around, one string
		n           int
		refused     bool
	}{
		{stores, "t[x]=1 ", 20_000, false},
		{table, "[{}]={},", 15_000, false},
		{stores, "t[x],x=x,1 ", 5000, false},
		{stores, "t[x],x=x,1 ", 50_000, true},
		{stores, "x=x..x..x ", 5000, false},
		{stores, "x=x..x..x ", 50_000, true},
		{"%s", "x=function() end ", 10_000, false},
		{"%s", "x=function() end ", 40_000, true},
	} {
		src := strings.Replace(tt.around, "%s", strings.Repeat(tt.one, tt.n), 1)
		_, err := e.Compile([]byte(src))
		if refused := err != nil && strings.Contains(err.Error(), tooComplex); refused != tt.refused || err != nil && !refused {
			t.Errorf("%d times %q: %v, want refused: %v", tt.n, tt.one, err, tt.refused)
		}
	}
}

// TestConstants: a function has as many constants as in Lua. The virtual machine's compiler,
// which compares each with all, takes fewer.
func TestConstants(t *testing.T) {
	list := func(n int) string {
		src := []byte("local t = {")
		for i := range n {
			src = append(strconv.AppendInt(src, int64(i), 10), ',')
		}
		return string(append(src, "} return #t"...))
	}
	const most = 1<<18 - 1
	for _, tt := range []struct {
		vm   bool
		n    int
		want string
	}{
		{false, 20_000, ":20000\r\n"},
		{false, most, fmt.Sprintf(":%d\r\n", most)},
		{false, most + 1, "-ERR Error compiling script (new function): constant table overflow\r\n"},
		{true, 15_000, ":15000\r\n"},
		{true, 20_000, "-ERR Error compiling script (new function): user_script:1: " + tooComplex + "\r\n"},
	} {
		e := newEngine(t, Options{MaxScriptBytes: 4 << 20, VMOnly: tt.vm})
		if got := eval(e, newFakeStore(), list(tt.n), Limits{}); got != tt.want {
			t.Errorf("%d constants, virtual machine %v: %q, want %q", tt.n, tt.vm, got, tt.want)
		}
	}
}
