package scripting

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/closure"
)

// TestSameNames: scripts find the same names on both engines, but for those that
// the second one leaves to the virtual machine.
func TestSameNames(t *testing.T) {
	e := newEngine(t, Options{})
	st := newState(e, 100)
	st.enter(scriptRealm)
	ours := e.second.world.Globals()
	want := map[string][]string{}
	st.globals.ForEach(func(k, v lua.LValue) {
		name := k.String()
		if slices.Contains(closure.Elsewhere, name) || name == "KEYS" || name == "ARGV" {
			return
		}
		var fields []string
		if table, ok := v.(*lua.LTable); ok {
			st.facing(table).ForEach(func(k, _ lua.LValue) { fields = append(fields, k.String()) })
		}
		want[name] = fields
	})
	for name, fields := range want {
		got, ok := ours[name]
		slices.Sort(got)
		slices.Sort(fields)
		if !ok || !slices.Equal(got, fields) {
			t.Errorf("%s: the second engine has %v (%v), the virtual machine %v", name, got, ok, fields)
		}
	}
	for name := range ours {
		if _, ok := want[name]; !ok {
			t.Errorf("the virtual machine has no %s", name)
		}
	}
}

// TestEngineStats: who runs where, and why, is counted; switching acts at once.
func TestEngineStats(t *testing.T) {
	e := newEngine(t, Options{})
	for _, src := range []string{"return 1", "return coroutine.running()", "return loadstring('return 1')()", "return _G.x", "local coroutine = 5 return coroutine"} {
		if got := eval(e, newFakeStore(), src, Limits{}); strings.Contains(got, "internal") {
			t.Errorf("%s: %s", src, got)
		}
	}
	s := e.EngineStats().Scripts
	if s.Closures != 2 || s.VM != 3 || s.Fallbacks["coroutine"] != 1 || s.Fallbacks["loadstring"] != 1 || s.Fallbacks["_G"] != 1 {
		t.Errorf("counts are %+v", s)
	}
	src := "local t = {1, nil, 3, nil} return #t" // whose answer tells the engines apart
	script, err := e.Compile([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	run := func() string {
		w := &respWriter{}
		if err := e.Run(script, &Invocation{Caller: newFakeStore()}, w); err != nil {
			t.Fatal(err)
		}
		return string(w.b)
	}
	if got := run(); got != ":1\r\n" {
		t.Errorf("the second engine answers %q", got)
	}
	e.SetSecondEngine(false)
	if got := run(); got != ":1\r\n" {
		t.Errorf("without code for the virtual machine a run answers %q: it should not have compiled", got)
	}
	e.Ready(script)
	if got := run(); got != ":3\r\n" {
		t.Errorf("a script compiled for the second engine answers %q once that is off", got)
	}
	eval(e, newFakeStore(), "return 2", Limits{})
	if got := e.EngineStats().Scripts.Fallbacks["switched off"]; got != 1 {
		t.Errorf("%d sources count as compiled while it was off, want 1", got)
	}
	e.SetSecondEngine(true)
	if got := run(); got != ":1\r\n" {
		t.Errorf("switched on again, the second engine answers %q", got)
	}
}

// TestClosureStack: what nests on the Go stack is bounded in bytes, however a
// script nests it.
func TestClosureStack(t *testing.T) {
	e := newEngine(t, Options{})
	nested := func(n int, open, mid, shut string) string {
		return strings.Repeat(open, n) + mid + strings.Repeat(shut, n)
	}
	for name, src := range map[string]string{
		"plain":       "local function f() return 1 + f() end f()",
		"parentheses": "local function f() return " + nested(90, "(1 + ", "f()", ")") + " end f()",
		"chain":       "local function f() return f()" + strings.Repeat("+1", 4000) + " end f()",
		"blocks":      "local function f() " + nested(90, "do ", "local x = f()", " end") + " end f()",
		"loops":       "local function f() " + nested(40, "for i = 1, 1 do ", "local x = f()", " end") + " end f()",
		"calls":       "local function id(x) return x end local function f() return 1 + " + nested(150, "id(", "f()", ")") + " end f()",
		"tables":      "local function f() return " + nested(150, "{", "f()", "}") + " end f()",
		"concat":      "local function f() return " + nested(60, "('x' .. ", "f()", ")") + " end f()",
		"if":          "local function f() " + nested(90, "if 1 then ", "local x = f()", " end") + " end f()",
		"locals":      "local function f() local " + strings.TrimSuffix(strings.Repeat("a,", 190), ",") + " a = f() return a end f()",
		"index":       "local t t = setmetatable({}, {__index = function(_, k) return t[k + 1] end}) return t[1]",
		"pcall":       "local function f() return pcall(f) end return f()",
		"sort":        "local function f() table.sort({1, 2, 3}, f) end return f()",
		"gsub":        "local function f() return (string.gsub('x', 'x', f)) end return f()",
		"tostring":    "local t t = setmetatable({}, {__tostring = function() return tostring(t) end}) return tostring(t)",
		"concat meta": "local t t = setmetatable({}, {__concat = function(a, b) return a .. b end}) return t .. 'x'",
		"call meta":   "local t t = setmetatable({}, {__call = function(t) return 1 + t() end}) return t()",
		"eq":          "local mt = {} mt.__eq = function(a, b) return a == b end return setmetatable({}, mt) == setmetatable({}, mt)",
		"varargs":     "local function f(...) return 1 + f(1, ...) end return f()",
	} {
		t.Run(name, func(t *testing.T) {
			most := int64(0)
			done := make(chan string)
			go func() { done <- eval(e, newFakeStore(), src, Limits{CallDepth: 1 << 20, Time: 5 * time.Second}) }()
			for {
				select {
				case got := <-done:
					if !strings.Contains(got, "stack overflow") && got != ":1\r\n" {
						t.Errorf("the reply is %q, want an overflow", clipText(got))
					}
					if most > 256<<20 {
						t.Errorf("the stack took %d MB", most>>20)
					}
					t.Logf("%d MB: %s", most>>20, clipText(got))
					return
				default:
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					most = max(most, int64(m.StackInuse))
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
}

// TestKeysAreNotShared: what a run was given is not what the next one sees.
func TestKeysAreNotShared(t *testing.T) {
	e := newEngine(t, Options{})
	src := "return table.concat({#KEYS, tostring(KEYS[1]), tostring(KEYS[3]), #ARGV, tostring(ARGV[1])}, ' ')"
	for i, n := range []int{3, 1, 0, 5, 2, 9, 4, 4, 1} {
		inv := &Invocation{Caller: newFakeStore()}
		for k := range n {
			inv.Keys = append(inv.Keys, fmt.Appendf(nil, "k%d%d", i, k))
			inv.Args = append(inv.Args, fmt.Appendf(nil, "a%d%d", i, k))
		}
		at := func(words [][]byte, i int) string {
			if i < len(words) {
				return string(words[i])
			}
			return "nil"
		}
		want := fmt.Sprintf("%d %s %s %d %s", n, at(inv.Keys, 0), at(inv.Keys, 2), n, at(inv.Args, 0))
		if got := evalWith(e, inv, src); got != fmt.Sprintf("$%d\r\n%s\r\n", len(want), want) {
			t.Errorf("with %d words: %q, want %s", n, got, want)
		}
	}
}

// TestManyKeys: words that take more than a run may are refused as what a script
// makes is, and those of a short run end it.
func TestManyKeys(t *testing.T) {
	e := newEngine(t, Options{})
	s, err := e.Compile([]byte("return #KEYS"))
	if err != nil {
		t.Fatal(err)
	}
	keys := make([][]byte, 100_000)
	for i := range keys {
		keys[i] = []byte("key")
	}
	promoted := errors.New("run me as a longer one")
	for _, tc := range []struct {
		inv  *Invocation
		want string
	}{
		{&Invocation{}, ":100000\r\n"},
		{&Invocation{Limits: Limits{Memory: 1 << 20}}, "-ERR Script exceeded its memory limit script: " + s.SHA.String() + ".\r\n"},
		{&Invocation{Short: 1000, Promote: func() error { return promoted }}, "-" + promoted.Error() + "\r\n"},
	} {
		tc.inv.Keys, tc.inv.Caller = keys, newFakeStore()
		w := &respWriter{}
		if err := e.Run(s, tc.inv, w); err != nil {
			w.f("-%s\r\n", err)
		}
		if got := string(w.b); got != tc.want {
			t.Errorf("100,000 keys under %+v: %q, want %q", tc.inv.Limits, got, tc.want)
		}
	}
}

// TestWorldIsShared: machines that run at once share the libraries, and nothing else.
func TestWorldIsShared(t *testing.T) {
	e := newEngine(t, Options{})
	src := `
		local t = setmetatable({}, {__index = string, __tostring = function() return 'shared' end})
		for i = 1, 50 do
			t[i] = ('%d'):format(i) .. t.upper('x') .. tostring(t)
			pcall(function() string.len = nil end)
			pcall(rawset, math, 'pi', 3)
			cjson.encode_max_depth(i)
		end
		local mt = getmetatable('')
		return {#t, cjson.encode({mt.__index == string, KEYS[1], ARGV[1]}), tostring(getmetatable(string))}`
	done := make(chan string)
	const workers = 8
	for w := range workers {
		go func() {
			bad := ""
			for range 50 {
				word := fmt.Sprint("word", w)
				inv := &Invocation{Caller: newFakeStore(), Keys: [][]byte{[]byte(word)}, Args: [][]byte{[]byte(word)}}
				want := fmt.Sprintf("*3\r\n:50\r\n$%d\r\n[true,\"%s\",\"%s\"]\r\n$3\r\nnil\r\n", 12+2*len(word), word, word)
				if got := evalWith(e, inv, src); got != want {
					bad = fmt.Sprintf("%q, want %q", got, want)
				}
			}
			done <- bad
		}()
	}
	for range workers {
		if bad := <-done; bad != "" {
			t.Error(bad)
		}
	}
}

// TestOperandNames has what redis-server 7.0.15 calls the operands of and and or.
func TestOperandNames(t *testing.T) {
	e := newEngine(t, Options{})
	for expr, want := range map[string]string{
		"(KEYS[9] or r) + 1":              "a table value",
		"((r and KEYS[9]) or r) + 1":      "local 'r' (a table value)",
		"('10' and r) + 1":                "local 'r' (a table value)",
		"(-1 and r) + 1":                  "local 'r' (a table value)",
		"((100 or false) and r) + 1":      "local 'r' (a table value)",
		"(nil or r) + 1":                  "local 'r' (a table value)",
		"(r and KEYS[9]).x":               "a nil value",
		"(function() return r + 1 end)()": "upvalue 'r' (a table value)",
		"(r or 1) .. 'x'":                 "a table value",
		"(KEYS[1] and r)()":               "a table value",
	} {
		got := eval(e, newFakeStore(), "local r = {} return "+expr, Limits{})
		if _, text, _ := strings.Cut(got, " on "); !strings.HasPrefix(text, want+" script:") && !strings.Contains(got, " "+want+" script:") {
			t.Errorf("%s: %q, want it to blame %s", expr, got, want)
		}
	}
}
