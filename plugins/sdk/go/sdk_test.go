package latchkey

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestParseInt(t *testing.T) {
	for _, n := range []int64{0, 1, -1, 10, math.MaxInt64, math.MinInt64, math.MinInt64 + 1, 999_999_999_999_999_999} {
		if got, ok := ParseInt(strconv.AppendInt(nil, n, 10)); got != n || !ok {
			t.Errorf("ParseInt of %d: %d, %v", n, got, ok)
		}
	}
	for _, text := range []string{
		"", "-", "+1", " 1", "1 ", "01", "-0", "00", "--1", "1-", "0x1", "1.0", "1e3", "\x00",
		"9223372036854775808", "-9223372036854775809", "18446744073709551617", "99999999999999999999",
	} {
		if got, ok := ParseInt([]byte(text)); ok {
			t.Errorf("ParseInt of %q: %d", text, got)
		}
	}
}

// Every number that a host function may return, and every error that it may be.
func TestFailed(t *testing.T) {
	for _, code := range []int32{0, 1, -1, -2, -99, math.MaxInt32} {
		if err := failed(code); err != nil {
			t.Errorf("%d is %v, and no error", code, err)
		}
	}
	texts := make(map[string]Code)
	for code := ErrWrongType; code >= ErrContext; code-- {
		err := failed(int32(code))
		if err != code {
			t.Errorf("%d is %v", code, err)
		}
		if other, twice := texts[err.Error()]; twice {
			t.Errorf("%d and %d are both %q", other, code, err)
		}
		texts[err.Error()] = code
	}
	for _, code := range []int32{-107, -108, -115, -116, -1000, math.MinInt32} {
		if err := failed(code); err == nil || !strings.Contains(err.Error(), "does not know") {
			t.Errorf("%d is %v", code, err)
		}
	}
}

func TestSetOptions(t *testing.T) {
	for _, tt := range []struct {
		o     SetOptions
		flags uint32
		px    int64
	}{
		{SetOptions{}, 0, 0},
		{SetOptions{NX: true, PX: 5}, 1, 5},
		{SetOptions{XX: true}, 2, 0},
		{SetOptions{KeepTTL: true}, 4, 0},
		{SetOptions{PXAT: 7}, 8, 7},
		{SetOptions{NX: true, XX: true, KeepTTL: true, PXAT: -1}, 15, -1},
	} {
		if flags, px := tt.o.pack(); flags != tt.flags || px != tt.px {
			t.Errorf("%+v is %d and %d, want %d and %d", tt.o, flags, px, tt.flags, tt.px)
		}
	}
}

// registered has m be the module that was registered, until the test ends.
func registered(t *testing.T, m Module) {
	t.Cleanup(func() { module, runs = Module{}, [maxCommands]func(*Call) error{} })
	Register(m)
}

func TestManifest(t *testing.T) {
	run := func(*Call) error { return nil }
	registered(t, Module{
		Name: "all", Version: "1.2.3", WakeVersion: 4,
		Commands: []Command{
			{Name: "ALL.A", Arity: -2, Flags: []string{"write"}, Keys: OneKey, ACL: []string{"fast"}, Summary: "A.", Since: "1.0.0", Group: "g", State: "read", Run: run},
			{Name: "ALL.B", Arity: 1, Summary: "B.", Run: run},
		},
		Capabilities: Capabilities{Read: []string{""}, Commands: []string{"GET"}, State: "write", Block: true},
		Limits:       Limits{Fuel: 1, MemoryPages: 2, Instances: 3},
		Config: []Param{
			{Name: "n", Type: "int", Default: 1, Min: 0, Max: 5, Summary: "N."},
			{Name: "any", Type: "int", Default: 1},
			{Name: "e", Type: "enum", Default: "x", Values: []string{"x"}, Immutable: true},
			{Name: "no", Type: "bool", Default: false},
		},
	})
	var b bytes.Buffer
	if err := writeManifest(&b); err != nil {
		t.Fatal(err)
	}
	const want = `{"abi":{"max":1,"min":1},"capabilities":{"block":true,"commands":["GET"],"read":[""],"state":"write"},` +
		`"commands":[{"acl":["fast"],"arity":-2,"flags":["write"],"group":"g","id":1,"keys":{"first":1,"last":1,"step":1},"name":"ALL.A","since":"1.0.0","state":"read","summary":"A."},` +
		`{"arity":1,"id":2,"name":"ALL.B","summary":"B."}],` +
		`"config":[{"default":1,"max":5,"min":0,"name":"n","summary":"N.","type":"int"},{"default":1,"name":"any","type":"int"},` +
		`{"default":"x","immutable":true,"name":"e","type":"enum","values":["x"]},{"default":false,"name":"no","type":"bool"}],` +
		`"limits":{"fuel":1,"instances":3,"memory_pages":2},"name":"all","version":"1.2.3","wake_version":4}`
	var got []byte
	for _, line := range bytes.Split(b.Bytes(), []byte("\n")) {
		got = append(got, bytes.Replace(bytes.TrimSpace(line), []byte(`": `), []byte(`":`), 1)...)
	}
	if string(got) != want {
		t.Errorf("the manifest is\n%s\nwant\n%s", got, want)
	}
}

// A module without commands has an empty list of them: null is no list.
func TestManifestWithoutCommands(t *testing.T) {
	registered(t, Module{
		Name: "hears", Version: "1.0.0", Capabilities: Capabilities{Events: []string{"expired"}},
		Event: func(*Call, EventClass, string, []byte) error { return nil },
	})
	var b bytes.Buffer
	if err := writeManifest(&b); err != nil || !strings.Contains(b.String(), `"commands": [],`) {
		t.Errorf("%v, and the manifest is\n%s", err, b.Bytes())
	}
}

func TestManifestRefuses(t *testing.T) {
	run := func(*Call) error { return nil }
	for want, m := range map[string]Module{
		"no module was registered":                  {},
		"the command X.B has no function Run":       {Name: "x", Commands: []Command{{Name: "X.A", Run: run}, {Name: "X.B"}}},
		"capability Timers and has no function":     {Name: "x", Capabilities: Capabilities{Timers: true}},
		"capability Events and has no function":     {Name: "x", Capabilities: Capabilities{Events: []string{"new"}}},
		"capability Clients and has no function Cl": {Name: "x", Capabilities: Capabilities{Clients: true}},
	} {
		t.Run(want, func(t *testing.T) {
			registered(t, m)
			if err := writeManifest(new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	registered(t, Module{Name: "x"})
	defer func() {
		if recover() == nil {
			t.Error("two modules were registered")
		}
	}()
	Register(Module{Name: "y"})
}

// What asks the host says where it works, and what does not works here.
func TestOutside(t *testing.T) {
	c := new(Call)
	for name, ask := range map[string]func(){
		"Get":   func() { c.Get([]byte("k")) },
		"Do":    func() { c.DoStrings("PING") },
		"Arg":   func() { c.Arg(0) },
		"Reply": func() { c.ReplyNull() },
		"Log":   func() { Log(LogInfo, "x") },
		"NowMS": func() { c.NowMS() },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); text != outside {
					t.Errorf("%s: %q", name, text)
				}
			}()
			ask()
		}()
	}
	if !errors.Is(ErrAgain, ErrAgain) || Error("ERR x").Error() != "ERR x" {
		t.Error("errors are not what they are made of")
	}
}
