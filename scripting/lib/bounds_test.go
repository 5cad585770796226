package lib

import (
	"runtime"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// TestClaimedLengths: what a header says costs nothing until it is there.
func TestClaimedLengths(t *testing.T) {
	settings := Defaults()
	for name, c := range map[string]struct {
		fn   Func
		args []value.Value
	}{
		"array32":  {msgpackUnpack, []value.Value{value.String("\xdd\xff\xff\xff\xff\x01")}},
		"map32":    {msgpackUnpack, []value.Value{value.String("\xdf\xff\xff\xff\xff\x01")}},
		"string32": {msgpackUnpack, []value.Value{value.String("\xdb\xff\xff\xff\xff\x01")}},
		"nested":   {msgpackUnpack, []value.Value{value.String(strings.Repeat("\xdd\xff\xff\xff\xff", 3000))}},
		"struct":   {structUnpack, []value.Value{value.String("c2147483647"), value.String("x")}},
		"pack":     {structPack, []value.Value{value.String("c2147483647"), value.String("x")}},
		"json":     {CJSON(&settings).Funcs["decode"], []value.Value{value.String(strings.Repeat("[", 900) + `"`)}},
	} {
		call := newCall(budget.Limits{}, c.args...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, _, err := run(c.fn, call); err == nil {
			t.Errorf("%s: no error", name)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 2<<20 {
			t.Errorf("%s: took %d bytes", name, took)
		}
	}
}

// TestWorkIsPaid: each of these would take seconds, or gigabytes.
func TestWorkIsPaid(t *testing.T) {
	sparse := Defaults()
	sparse.sparseRatio = 0
	far := value.NewTable(0, 1)
	far.SetInt(1<<30, value.True)

	// a table of itself, sixteen deep and ten wide
	wide := value.NewTable(10, 0)
	for i := 1; i <= 10; i++ {
		wide.SetInt(i, value.FromTable(wide))
	}
	plain := Defaults()
	long := value.String(strings.Repeat(" ", 8<<20) + "1")
	for name, c := range map[string]struct {
		fn  Func
		arg value.Value
	}{
		"sparse array": {CJSON(&sparse).Funcs["encode"], value.FromTable(far)},
		"cycle, pack":  {msgpackPack, value.FromTable(wide)},
		"white space":  {CJSON(&plain).Funcs["decode"], long},
		"escapes":      {CJSON(&plain).Funcs["decode"], value.String(`"` + strings.Repeat(`\n`, 4<<20) + `"`)},
	} {
		for kind, lim := range map[string]budget.Limits{
			"instructions": {Instructions: 50_000, Memory: 1 << 40},
			"memory":       {Memory: 1 << 20},
		} {
			if name == "white space" && kind == "memory" {
				continue // it takes none
			}
			if _, ended, err := run(c.fn, newCall(lim, c.arg)); !ended {
				t.Errorf("%s: not ended by its %s: %v", name, kind, err)
			}
		}
	}
}

// TestKeptCalls: a call that is used again holds on to nothing.
func TestKeptCalls(t *testing.T) {
	settings := Defaults()
	c := newCall(budget.Limits{}, value.String(strings.Repeat("x", 1<<20)))
	if _, _, err := run(CJSON(&settings).Funcs["encode"], c); err != nil {
		t.Fatal(err)
	}
	if cap(c.scratch) > maxScratch {
		t.Errorf("a buffer of %d bytes is kept", cap(c.scratch))
	}
	c.Args = make([]value.Value, 10_000)
	c.Forget()
	if cap(c.Args) > maxKept {
		t.Errorf("room for %d arguments is kept", cap(c.Args))
	}
}

func BenchmarkJSON(b *testing.B) {
	settings := Defaults()
	cjson := CJSON(&settings)
	const text = `{"id":12345,"name":"a name","tags":["x","y","z"],"nested":{"a":1.5,"b":null,"c":true}}`
	c := newCall(budget.Limits{}, value.String(text))
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Results = c.Results[:0]
			c.Account.Mem = 0
			if err := cjson.Funcs["decode"](c); err != nil {
				b.Fatal(err)
			}
		}
	})
	c.Results = c.Results[:0]
	cjson.Funcs["decode"](c)
	c.Args[0] = c.Results[0]
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Results = c.Results[:0]
			c.Account.Mem = 0
			if err := cjson.Funcs["encode"](c); err != nil {
				b.Fatal(err)
			}
		}
	})
}
