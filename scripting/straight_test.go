package scripting

import (
	"strings"
	"testing"
)

// TestStraightCode: what the virtual machine runs without counting its instructions
// has no way back, and calls nobody who could have one.
func TestStraightCode(t *testing.T) {
	e := newEngine(t, Options{VMOnly: true})
	for src, want := range map[string]bool{
		unlockScript: true,
		"local a = redis.call('get', KEYS[1]) if not a then return 0 elseif a == ARGV[1] then return 1 end return redis.pcall('del', KEYS[1]) .. 'x'":    true,
		"if redis.call('exists', KEYS[1]) == 0 or redis.call('get', KEYS[1]) == ARGV[1] then return {ok = 'free'} end return redis.error_reply('TAKEN')": true,
		"return #ARGV + 1":                                    true,
		"while redis.call('get', KEYS[1]) do end":             false,
		"repeat local a = redis.call('get', KEYS[1]) until a": false,
		"for i = 1, 3 do end":                                 false,
		"for k, v in pairs(KEYS) do end":                      false,
		"local function f() return 1 end return 0":            false,
		"return loadstring('while true do end')()":            false,
		"return _G": false,
		"return (function() while true do end end)()":                   false,
		"return KEYS[1]:rep(3)":                                         false,
		"return pcall(redis.call, 'get')":                               false,
		"return setmetatable({}, {__index = KEYS}).x":                   false,
		"return coroutine.wrap(redis.call)":                             false,
		"return table.sort(KEYS, redis.call)":                           false,
		"return getmetatable('').__index.gsub('a', 'a', redis.sha1hex)": false,
	} {
		s, err := e.Compile([]byte(src))
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		if s.straight != want {
			t.Errorf("%s: taken for straight: %v, want %v", src, s.straight, want)
		}
	}
}

// TestStraightCodePays: the budget holds for straight code too, and for what the
// state runs after it, or after an error in it.
func TestStraightCodePays(t *testing.T) {
	e, store := newEngine(t, Options{VMOnly: true}), newFakeStore()
	lim := Limits{Instructions: 200}
	long := "local a = 1 " + strings.Repeat("a = a + #ARGV ", 100) + "return a"
	for _, tc := range []struct{ src, want string }{
		{"return #ARGV", ":2\r\n"},
		{"while true do end", "-ERR Script exceeded its instruction budget"},
		{"return redis.call('nosuch') + nothing", "-ERR"},
		{"while true do end", "-ERR Script exceeded its instruction budget"},
		{"return nothing", "-ERR user_script:1: Script attempted to access nonexistent global variable 'nothing'"},
		{"return KEYS .. 1", "-ERR user_script:1: attempt to concatenate global 'KEYS' (a table value)"},
		{long, "-ERR Script exceeded its instruction budget"},
		{"return ARGV[2]", "$2\r\na2\r\n"},
	} {
		if got := eval(e, store, tc.src, lim); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s\nanswers %q, want %q", tc.src, got, tc.want)
		}
	}
	if s, err := e.Compile([]byte(long)); err != nil || !s.straight {
		t.Errorf("the long script is not straight: %v", err)
	}
	inv := &Invocation{Caller: store, Args: [][]byte{[]byte("a")}}
	if got := evalWith(e, inv, long); got != ":101\r\n" {
		t.Errorf("the long script answers %q", got)
	}
	if inv.Used < 300 {
		t.Errorf("the long script has paid for %d instructions", inv.Used)
	}
}
