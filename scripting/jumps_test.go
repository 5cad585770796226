package scripting

import "testing"

// TestLoopsBeginWithNoJump: a chain of and and or that begins with a literal begins
// with a jump, and gopher-lua spoils the jumps to it where a loop begins.
func TestLoopsBeginWithNoJump(t *testing.T) {
	lim := Limits{Instructions: 10_000}
	second, vm := newEngine(t, Options{}), newEngine(t, Options{VMOnly: true})
	for _, src := range []string{
		"local r = {} for k1, v2 in ipairs({0, 0}) do local v3 = ((0 and 0) and 0) if 0 then break end end return #r",
		"local n = 0 for k in ipairs({5, 5}) do n = (1 and n) + k end return n",
		"local n = 0 for k in ipairs({5, 5}) do local x = 1 and 2 if k == 1 then n = n + x end end return n",
		"local n = 0 for k in ipairs({5, 5}) do local x = nil or 2 if k == 1 then n = n + x else n = n + 1 end end return n",
		"local n = 0 while (1 and n) < 3 do n = n + 1 if n == 7 then n = 9 end end return n",
		"local n = 0 repeat local x = (1 and 2) + n n = n + 1 if n == 7 then n = 9 end until n > 3 return n",
		"local n = 0 while (false or n) ~= 3 do n = n + 1 if n == 2 then n = 3 else n = n end end return n",
		"local n = 0 while 1 and n < 3 do n = n + 1 if n == 2 then n = 3 else n = n end end return n",
		"local n = 0 while n < 3 do n = ('a' and 1) + n if n == 2 then n = 3 else n = n end end return n",
		"local n = 0 for k in ipairs({5, 5}) do if (true and k) == 1 then n = n + 1 else n = n + 2 end end return n",
		"local n = 0 for k in ipairs({5, 5}) do (nil or tostring)(1) if k == 1 then n = n + 1 else n = n + 2 end end return n",
		"local n, a = 0, {} for k in ipairs({5, 5}) do a[1 and k], n = n, k if k == 1 then n = n + 1 else n = n + 2 end end return n",
		"local n = 0 for k in ipairs({5, 5}) do return (1 and 2) + k end return n",
		"local n = 0 for k in ipairs({5, 5}) do local x = -(1 and 2) if k == 1 then n = n + x else n = n + 1 end end return n",
		"local n = 0 for k in ipairs({5, 5}) do local x = (1 and 'a') .. k if k == 1 then n = n + #x else n = n + 1 end end return n",
		"local n = 0 for k in ipairs({5, 5}) do local x = 1 < (1 and 2) if k == 1 then n = n + 1 else n = n + 2 end end return n",
	} {
		a, b := eval(second, newFakeStore(), src, lim), eval(vm, newFakeStore(), src, lim)
		if a != b {
			t.Errorf("%s\nanswers %q on closures, %q on the virtual machine", src, a, b)
		}
	}
}
