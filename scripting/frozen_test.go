package scripting

import "testing"

func TestFrozen(t *testing.T) {
	for _, tt := range []struct {
		name, src string
		want      bool
	}{
		{"a callback of its own", "redis.register_function('f', function(keys, args) local t = {} t.x = keys t[1] = args return t end)", true},
		{"shared functions and constants", "local n, s = 10, 'x' local function add(a) return a + n end local lib = redis\nlib.register_function('f', function() return add(1) .. s .. lib.REDIS_VERSION end)", true},
		{"a function by another name", "local reg = redis.register_function local f = function() return 1 end reg('f', f) reg{function_name = 'g', callback = f}", true},
		{"a table that is read", "local t = {a = 1, 2, f = function() end}\nredis.register_function('f', function() for k, v in pairs(t) do t.f(k, v) end return #t + t[1] + t.a + select('#', unpack(t)) end)", true},
		{"a module", "local M = {} function M.add(a) return a + 1 end M.one = 1\nredis.register_function('f', function() return M.add(M.one) end)", true},
		{"recursion", "local function fact(n) if n == 0 then return 1 end return n * fact(n - 1) end redis.register_function('f', function() return fact(5) end)", true},
		{"closures of a call", "redis.register_function('f', function() local n = 0 local function inc() n = n + 1 end inc() return n end)", true},
		{"loops of the main chunk", "for i = 1, 3 do redis.register_function('f' .. i, function() return i end) end", true},
		{"a shadowed name", "local t = {} redis.register_function('f', function(t) t.x = 1 local t = {} t.y = 2 end)", true},

		{"a counter", "local n = 0 redis.register_function('f', function() n = n + 1 return n end)", false},
		{"a table that is written", "local t = {} redis.register_function('f', function() t.x = 1 end)", false},
		{"a table that is indexed and written", "local t = {} redis.register_function('f', function(k) t[k] = 1 end)", false},
		{"a table handed on", "local t = {} redis.register_function('f', function() table.insert(t, 1) return #t end)", false},
		{"a table under another name", "local t = {} local u = t redis.register_function('f', function() u.x = 1 return t.x end)", false},
		{"a table under a name of the call", "local t = {} redis.register_function('f', function() local u = t u.x = 1 return t.x end)", false},
		{"a table returned", "local t = {} local function get() return t end redis.register_function('f', function() get().x = 1 end)", false},
		{"a table in a table", "local t = {u = {}} redis.register_function('f', function() t.u.x = 1 end)", false},
		{"a table in a table, later", "local t = {} t.u = {} redis.register_function('f', function() t.u.x = 1 end)", false},
		{"a table in a table, by a loop", "local x local t = {} for i = 1, 2 do t[1] = x x = {} end redis.register_function('f', function() t[1].y = 1 end)", false},
		{"a table in a table, by way of a third", "local t = {} local m = {sub = t} local x = m.sub x.k = {} redis.register_function('f', function() t.k.y = 1 end)", false},
		{"a method", "local t = {n = 0} function t:inc() self.n = self.n + 1 return self.n end redis.register_function('f', function() return t:inc() end)", false},
		{"one of two", "local t = {} local u = redis.x or t redis.register_function('f', function() u.x = 1 end)", false},
		{"a variable of a factory", "local function counter() local n = 0 return function() n = n + 1 return n end end\nlocal c = counter() redis.register_function('f', function() return c() end)", false},
		{"a factory called by a loop", "local reg = redis.register_function local function mk(a, f) local n = 0 redis.register_function('f', function() n = n + 1 return n end) end\nfor i = 1, 2 do reg('a' .. i, function() end) reg = mk end", false},
		{"a factory as an iterator", "local function it(s, i) if i == 0 then local n = 0 redis.register_function('f', function() n = n + 1 return n end) return 1 end end for i in it, nil, 0 do end", false},
		{"a callback of a string function", "local g = ('').gsub g('x', 'x', function() local n = 0 redis.register_function('f', function() n = n + 1 return n end) end)", false},
		{"pairs by another name", "local t = {} redis.register_function('f', function() local pairs = function(x) x.y = 1 return next, x end for k in pairs(t) do end end)", false},
		{"pairs whose state is kept", "local t = {} redis.register_function('f', function() local _, s = pairs(t) s.x = 1 end)", false},
		{"a call in a registered table", "local function mk() local n = 0 redis.register_function('f', function() n = n + 1 return n end) return 'x' end redis.register_function{function_name = 'g', [mk()] = function() end, callback = function() end}", false},
		{"a metatable", "local t = {} redis.register_function('f', function() setmetatable(t, {__index = {a = 1}}) end)", false},
		{"a main chunk's loop variable", "for i = 1, 2 do redis.register_function('f' .. i, function() i = i + 1 return i end) end", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, _ := analyse(tt.src); got != tt.want {
				t.Errorf("frozen is %v, want %v:\n%s", got, tt.want, tt.src)
			}
		})
	}
}

func TestPlainArgs(t *testing.T) {
	for _, tt := range []struct {
		name, src string
		want      bool
	}{
		{"read", "redis.register_function('f', function(keys, args) for i, k in ipairs(keys) do redis.call('get', k) end return redis.call('set', keys[1], args[1], unpack(args)) end)", true},
		{"none", "redis.register_function('f', function() return 1 end)", true},
		{"named", "redis.register_function{function_name = 'f', flags = {'no-writes'}, callback = function(keys) return #keys end}", true},
		{"read by a closure", "redis.register_function('f', function(keys) local function first() return keys[1] end return first() end)", true},
		{"a helper", "local function get(k) return redis.call('get', k) end redis.register_function('f', function(keys) return get(keys[1]) end)", true},
		{"shadowed", "redis.register_function('f', function(keys) do local keys = {} keys[1] = 2 end return keys[1] end)", true},
		{"a third parameter", "redis.register_function('f', function(keys, args, x) x = 1 return keys[1] end)", true},

		{"returned", "redis.register_function('f', function(keys) return keys end)", false},
		{"returned within", "redis.register_function('f', function(keys, args) return {args} end)", false},
		{"written", "redis.register_function('f', function(keys) keys[1] = 2 end)", false},
		{"handed on", "local function g(t) t[1] = 2 end redis.register_function('f', function(keys) g(keys) end)", false},
		{"inserted into", "redis.register_function('f', function(_, args) table.insert(args, 1) end)", false},
		{"under another name", "redis.register_function('f', function(keys) local k = keys k[1] = 2 end)", false},
		{"assigned", "redis.register_function('f', function(keys) keys = {} keys[1] = 2 end)", false},
		{"varargs", "redis.register_function('f', function(...) local keys = ... keys[1] = 2 end)", false},
		{"one of two", "redis.register_function('g', function(keys) return keys[1] end) redis.register_function('f', function(keys) return keys end)", false},
		{"a callback by name", "local function f(keys) keys[1] = 2 end redis.register_function('f', f)", false},
		{"a callback by name in a table", "local function f(keys) keys[1] = 2 end redis.register_function{function_name = 'f', callback = f}", false},
		{"a callback under a computed key", "local function f(keys) keys[1] = 2 end local c = 'callback' redis.register_function{function_name = 'f', [c] = f}", false},
		{"a table by name", "local t = {function_name = 'f', callback = function(keys) keys[1] = 2 end} redis.register_function(t)", false},
		{"not frozen", "local n = 0 redis.register_function('f', function(keys) n = n + 1 return keys[1] end)", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, got := analyse(tt.src); got != tt.want {
				t.Errorf("plainArgs is %v, want %v:\n%s", got, tt.want, tt.src)
			}
		})
	}
}
