package lib

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// newCall is a call with an account of its own.
func newCall(lim budget.Limits, args ...value.Value) *Call {
	a := &budget.Account{}
	a.Begin(&budget.Terms{Limits: lim, Now: time.Now, Heap: budget.ReadHeap})
	return &Call{Account: a, Args: args}
}

// run calls fn; ended says that the account was exhausted.
func run(fn Func, c *Call) (results []value.Value, ended bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			if _, ended = p.(budget.Ended); !ended {
				panic(p)
			}
		}
	}()
	c.Results = nil
	err = fn(c)
	return c.Results, false, err
}

// same compares by content. Tables that are keys have none.
func same(a, b value.Value) bool {
	if !a.IsTable() || !b.IsTable() {
		return value.Equal(a, b) || a.IsNumber() && b.IsNumber() && math.IsNaN(a.AsNumber()) && math.IsNaN(b.AsNumber())
	}
	x, y := a.AsTable(), b.AsTable()
	n := 0
	for at, k, v := x.NextAt(0); !k.IsNil(); at, k, v = x.NextAt(at) {
		if n++; !same(v, y.Get(k)) {
			return false
		}
	}
	for at, k, _ := y.NextAt(0); !k.IsNil(); at, k, _ = y.NextAt(at) {
		n--
	}
	return n == 0
}

// shape is how deeply v nests, and whether a table is a key in it.
func shape(v value.Value) (depth int, tableKeys bool) {
	if !v.IsTable() {
		return 0, false
	}
	t := v.AsTable()
	for at, k, v := t.NextAt(0); !k.IsNil(); at, k, v = t.NextAt(at) {
		d, keys := shape(v)
		depth, tableKeys = max(depth, d), tableKeys || keys || k.IsTable()
	}
	return depth + 1, tableKeys
}

var fuzzLimits = budget.Limits{Instructions: 1 << 20, Memory: 32 << 20}

// FuzzJSON decodes anything. What JSON allows is taken, and what was decoded is
// encoded and decoded to the same again.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `[]`, `[1,2.5,-3e-7,"x",true,false,null]`, `{"a":{"b":[{}]},"":0}`, `"\u0041\ud834\udd1e\n\/"`, `"\ud834"`,
		`[inf,-nan,0x1p-4,+1,007]`, "1\x00x", `[1,]`, `{"a":1,}`, strings.Repeat("[", 1001), `{"1":1,"2":[[[]]]}`, ` [ 1 , "\x" ]`,
		`[1e999,-0,123456789012345678901234567890]`, "\"\xff\x00\"",
	} {
		f.Add(s)
	}
	settings := Defaults()
	cjson := CJSON(&settings)
	f.Fuzz(func(t *testing.T, text string) {
		got, ended, err := run(cjson.Funcs["decode"], newCall(fuzzLimits, value.String(text)))
		if ended {
			return
		}
		if err != nil {
			// Go takes halves of surrogate pairs, and knows no limit of 1000.
			if json.Valid([]byte(text)) && !strings.Contains(text, `\u`) && strings.Count(text, "[")+strings.Count(text, "{") < 1000 {
				t.Errorf("decode(%q): %v", text, err)
			}
			return
		}
		coded, ended, err := run(cjson.Funcs["encode"], newCall(fuzzLimits, got[0]))
		if ended || err != nil {
			return // a number that JSON has not
		}
		again, ended, err := run(cjson.Funcs["decode"], newCall(fuzzLimits, coded[0]))
		if ended {
			return
		}
		if err != nil {
			t.Fatalf("decode(%q) of what was encoded: %v", coded[0].AsString(), err)
		}
		if !json.Valid([]byte(coded[0].AsString())) {
			t.Errorf("encode gives %q, which is no JSON", coded[0].AsString())
		}
		// Fourteen digits may lose something the first time, not the second.
		twice, ended, err := run(cjson.Funcs["encode"], newCall(fuzzLimits, again[0]))
		if ended {
			return
		}
		if err != nil {
			t.Fatalf("encode a second time: %v", err)
		}
		final, ended, err := run(cjson.Funcs["decode"], newCall(fuzzLimits, twice[0]))
		if !ended && (err != nil || !same(again[0], final[0])) {
			t.Errorf("%q becomes %q: %v", coded[0].AsString(), twice[0].AsString(), err)
		}
	})
}

// FuzzMessagePack unpacks anything; what came out is packed and unpacked to the same.
func FuzzMessagePack(f *testing.F) {
	for _, s := range []string{
		"", "\x00\x7f\xe0\xff", "\xcc\xff\xcd\xff\xff\xce\xff\xff\xff\xff", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
		"\xd0\x80\xd1\x80\x00\xd2\x80\x00\x00\x00\xd3\x80\x00\x00\x00\x00\x00\x00\x00", "\xca\x3f\x80\x00\x00", "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",
		"\xa3abc\xd9\x03abc\xda\x00\x03abc\xdb\x00\x00\x00\x03abc", "\x93\x01\xc0\xc3", "\xdd\xff\xff\xff\xff\x01", "\xdf\xff\xff\xff\xff\x01",
		"\x82\xa1a\x01\xa1b\x90", "\x81\xc0\x01", "\x81\x90\x01", strings.Repeat("\x91", 30), strings.Repeat("\x91", 9000), "\xc1",
	} {
		f.Add(s, int16(1), int16(0))
	}
	f.Add("\x01\x02\x03", int16(2), int16(1))
	f.Add("\x01\x02\x03", int16(-2), int16(-1))
	fns := msgpackLibrary.Funcs
	f.Fuzz(func(t *testing.T, text string, limit, offset int16) {
		run(fns["unpack_limit"], newCall(fuzzLimits, value.String(text), value.Int(int(limit)), value.Int(int(offset))))
		values, ended, err := run(fns["unpack"], newCall(fuzzLimits, value.String(text)))
		if ended || err != nil || len(values) == 0 {
			return
		}
		for _, v := range values {
			if depth, keys := shape(v); depth > maxPackDepth || keys {
				return
			}
		}
		packed, ended, err := run(fns["pack"], newCall(fuzzLimits, values...))
		if ended {
			return
		}
		if err != nil {
			t.Fatalf("pack what %q holds: %v", text, err)
		}
		again, ended, err := run(fns["unpack"], newCall(fuzzLimits, packed[0]))
		if ended {
			return
		}
		if err != nil || len(again) != len(values) {
			t.Fatalf("unpack(%q): %d values, want %d: %v", packed[0].AsString(), len(again), len(values), err)
		}
		for i := range again {
			if !same(values[i], again[i]) {
				t.Errorf("value %d of %q is another one in %q", i+1, text, packed[0].AsString())
			}
		}
	})
}

// FuzzStruct unpacks anything by any format; what came out is packed and unpacked
// to the same, where the format has no sizes.
func FuzzStruct(f *testing.F) {
	for _, s := range []string{"bBhHlLTiIfdsxc", ">i3 <I7 !4 d", "!8bd", "bc0", "i32I9", "i0", "c99999999999", "s s", "!3", "z", "c0"} {
		f.Add(s, strings.Repeat("\x01\x02\xff\x00", 20), int64(1))
	}
	fns := structLibrary.Funcs
	f.Fuzz(func(t *testing.T, format, data string, pos int64) {
		run(fns["size"], newCall(fuzzLimits, value.String(format)))
		run(fns["unpack"], newCall(fuzzLimits, value.String(format), value.String(data), value.Number(float64(pos))))
		got, ended, err := run(fns["unpack"], newCall(fuzzLimits, value.String(format), value.String(data)))
		if ended || err != nil || strings.ContainsAny(format, "0123456789\x00") {
			return
		}
		got = got[:len(got)-1]
		for _, v := range got {
			if v.IsNumber() && math.Abs(v.AsNumber()) >= 1<<53 {
				return // not exact
			}
		}
		packed, ended, err := run(fns["pack"], newCall(fuzzLimits, append([]value.Value{value.String(format)}, got...)...))
		if ended {
			return
		}
		if err != nil {
			t.Fatalf("pack(%q) of what was unpacked: %v", format, err)
		}
		again, ended, err := run(fns["unpack"], newCall(fuzzLimits, value.String(format), packed[0]))
		if ended {
			return
		}
		if err != nil || len(again) != len(got)+1 {
			t.Fatalf("unpack(%q, %q): %d results, want %d: %v", format, packed[0].AsString(), len(again), len(got)+1, err)
		}
		for i := range got {
			if !same(got[i], again[i]) {
				t.Errorf("result %d of %q is another one the second time", i+1, format)
			}
		}
	})
}
