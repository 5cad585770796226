package scripting

import (
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store/underload"
	"github.com/latchkey-proxy/latchkey/store/underrace"
)

// TestJSONSettingsEndWithTheRun: in Redis they stay for every later script.
func TestJSONSettingsEndWithTheRun(t *testing.T) {
	const look = `return {cjson.encode_max_depth(), cjson.decode_max_depth(), cjson.encode_number_precision(),
		tostring(cjson.encode_invalid_numbers()), tostring(cjson.decode_invalid_numbers()), tostring(cjson.encode_keep_buffer()),
		cjson.encode_sparse_array()}`
	e := newEngine(t, Options{})
	want := eval(e, newFakeStore(), look, Limits{})
	for _, src := range []string{
		"cjson.encode_max_depth(5)", "cjson.decode_max_depth(5)", "cjson.encode_number_precision(5)", "cjson.encode_invalid_numbers('null')",
		"cjson.decode_invalid_numbers(false)", "cjson.encode_keep_buffer(false)", "cjson.encode_sparse_array(true, 5, 5)",
	} {
		for _, end := range []string{"", " error('x')", " while true do end"} {
			if got := eval(e, newFakeStore(), src+end, Limits{Instructions: 10_000}); strings.HasPrefix(got, "-ERR Attempt") {
				t.Fatalf("%s: %q", src, got)
			}
			if got := eval(e, newFakeStore(), look, Limits{}); got != want {
				t.Errorf("after %s%s: %q, want %q", src, end, got, want)
			}
		}
	}
}

// TestLibrariesCannotBeChanged: neither the tables nor what they hold.
func TestLibrariesCannotBeChanged(t *testing.T) {
	const look = `return {cjson.encode({1}), cmsgpack.pack(1), struct.pack('b', 1), bit.band(3, 2), tostring(cjson.null), tostring(cjson.poison)}`
	e := newEngine(t, Options{})
	want := eval(e, newFakeStore(), look, Limits{})
	for _, lib := range []string{"cjson", "cmsgpack", "struct", "bit"} {
		for _, src := range []string{
			"LIB.poison = 1", "rawset(LIB, 'poison', 1)", "for k in pairs(LIB) do LIB[k] = nil end", "for k in pairs(LIB) do rawset(LIB, k, nil) end",
			"setmetatable(LIB, {__index = function() return 'poison' end})", "table.insert(LIB, 'poison')", "table.sort(LIB)", "LIB = nil", "_G.LIB = nil",
			"getmetatable(LIB).__index = nil", "local t = setmetatable({}, {__newindex = LIB}) t.poison = 1", "return LIB",
		} {
			eval(e, newFakeStore(), "pcall(function() "+strings.ReplaceAll(src, "LIB", lib)+" end)", Limits{})
			if got := eval(e, newFakeStore(), look, Limits{}); got != want {
				t.Fatalf("after %s: %q, want %q", strings.ReplaceAll(src, "LIB", lib), got, want)
			}
		}
	}
	if got := eval(e, newFakeStore(), "local c = cjson.new() c.poison = 1 c.encode = nil return tostring(cjson.poison) .. type(cjson.encode)", Limits{}); got != "$11\r\nnilfunction\r\n" {
		t.Errorf("a table of cjson.new changes cjson: %q", got)
	}
}

// TestLibraryBombs: each would take gigabytes, or minutes, or the Go stack.
func TestLibraryBombs(t *testing.T) {
	e := newEngine(t, Options{})
	for _, src := range []string{
		"local t = {} for i = 1, 1e9 do t = {t} end return cjson.encode(t)",
		"local t = {} for i = 1, 200000 do t = {t} end return #tostring(pcall(cjson.encode, t))",
		"local t = {} for i = 1, 200000 do t = {t} end return #cmsgpack.pack(t)",
		"local t = {} for i = 1, 10 do t[i] = t end return #cmsgpack.pack(t)",
		"local t = {} t.t = t for i = 1, 10 do t[i] = t end cjson.encode_max_depth(2^31-1) return cjson.encode(t)",
		"local t = {} for i = 1, 10 do t[i] = t end cjson.encode_max_depth(30) return cjson.encode(t)",
		"local a = {} for i = 1, 30 do a = {a, a} end return #cjson.encode(a)",
		"local a = {} for i = 1, 16 do a = {a, a, a, a, a} end return #cmsgpack.pack(a)",
		"cjson.encode_sparse_array(false, 0) return #cjson.encode({[2^31-1] = 1})",
		"cjson.encode_sparse_array(false, 0) while true do pcall(cjson.encode, {[2^30] = 1}) end",
		"return #cjson.decode(('['):rep(1e8))",
		"cjson.decode_max_depth(2^31-1) return cjson.decode(('['):rep(1e7))",
		"local s = '[' .. ('{},'):rep(1e7) .. '{}]' return #cjson.decode(s)",
		"local s = '[' .. ('1,'):rep(3e7) .. '1]' return #cjson.decode(s)",
		"while true do cjson.decode('[' .. (' '):rep(1e7) .. ']') end",
		"while true do pcall(cjson.decode, '\"' .. ('\\\\u0041'):rep(1e6)) end",
		"return cmsgpack.unpack(('\\221\\255\\255\\255\\255'):rep(1e6))",
		"return #cmsgpack.unpack('\\221\\255\\255\\255\\255' .. ('\\144'):rep(1e8))",
		"return cmsgpack.unpack('\\223\\255\\255\\255\\255' .. ('\\1'):rep(1e8))",
		"while true do pcall(cmsgpack.unpack, '\\129\\206\\3\\255\\255\\255\\1') end",
		"return cmsgpack.unpack('\\129\\206\\3\\255\\255\\255\\1')[67108863]",
		"while true do struct.pack(('x'):rep(1e6)) end",
		"while true do struct.unpack(('s'):rep(7000), ('\\0'):rep(1e6)) end",
		"while true do pcall(struct.size, ('b'):rep(1e6)) end",
		"local t = {} for i = 1, 7000 do t[i] = 1 end while true do bit.band(unpack(t)) end",
		"while true do cjson.new() end",
		"local t = {} while true do t[#t + 1] = cjson.new() end",
		"local t = setmetatable({}, {__index = function() while true do end end, __len = function() while true do end end}) return cjson.encode(t) .. cmsgpack.pack(t)",
		"while true do pcall(cjson.encode, {tostring}) end",
		"local t = {} for i = 1, 1e6 do t['k' .. i] = i end for i = 1, 1e6 - 1 do t['k' .. i] = nil end while true do cjson.encode(t) end",
	} {
		lim := Limits{Instructions: 20_000_000, Memory: 64 << 20, Time: 300 * time.Millisecond}
		before, begin := underload.Now(), time.Now()
		got := eval(e, newFakeStore(), src, lim)
		if took := time.Since(begin); took > before.Stretch(underrace.Slow*2*time.Second) {
			t.Errorf("%s\nended after %v", src, took)
		}
		if strings.Contains(got, "internal error") {
			t.Errorf("%s\n%q", src, clipText(got))
		}
		if got := eval(e, newFakeStore(), "return cjson.encode({cjson.decode('[1]')})", lim); got != "$5\r\n[[1]]\r\n" {
			t.Errorf("%s\nthe next script sees %q", src, got)
		}
	}
}
