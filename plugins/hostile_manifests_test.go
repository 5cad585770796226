package plugins_test

import (
	"bytes"
	"strings"
	"testing"
)

func TestHostileManifests(t *testing.T) { attackAll(t, manifests()) }

// manifests are modules that say what is not so, or that ask for what there is
// not.
func manifests() []attack {
	whole := shape{}.bytes()
	text := func(name, refused, text string) attack {
		return attack{name: name, refused: refused, file: func() []byte { return packedText(whole, []byte(text)) }}
	}
	with := func(name, refused string, change func(m, run object)) attack {
		return attack{name: name, refused: refused, file: func() []byte {
			m := description()
			change(m, m["commands"].([]any)[1].(object))
			return packed(whole, m)
		}}
	}
	const wanted = "manifest: "
	lies := []attack{
		{
			name: "a readonly command that writes", guest: guest{readonly: []string{"H.RUN"}, body: `(return (call $set (i32.const 0) (i32.const 1) (i32.const 33) (i32.const 1) (i32.const 0) (i64.const 0)))`},
			want: "NOPERM h: not declared", kept: true,
		},
		{name: "a readonly command that calls a write", guest: func() guest {
			body, data := calling("SET", "k", "v")
			return guest{readonly: []string{"H.RUN"}, caps: map[string]any{"commands": []string{"SET"}}, body: body, data: data}
		}(), want: "NOPERM h: not declared", kept: true},
		{name: "timers that it did not ask for", guest: guest{body: `(return (i32.wrap_i64 (call $timer_set (i64.const 1) (i64.const 1))))`}, want: "NOPERM h: not declared", kept: true},
		{name: "waiting that it did not ask for", guest: guest{body: `(return (call $block (i32.add (local.get $frame) (i32.const 24)) (i32.const 1) (i64.const 0) (i64.const 0)))`}, want: "NOPERM h: not declared", kept: true},
		{name: "state that it did not ask for", guest: guest{body: `(return (call $state_set (i32.const 0) (i32.const 1) (i32.const 1)))`}, want: "NOPERM h: not declared", kept: true},
		{name: "clients that it did not ask for", guest: guest{body: `(return (call $bind_client (i32.const 0) (i32.const 1) (i64.const 1)))`}, want: "NOPERM h: not declared", kept: true},
		{name: "memory beyond what it asked for", guest: guest{limits: map[string]int{"memory_pages": 1}, body: `(return (memory.grow (i32.const 1)))`}, want: "lk_command returned -1", kept: true},
		{name: "more memory than the administrator has", guest: guest{limits: map[string]int{"memory_pages": 65536}, body: `(return (memory.grow (i32.const 256)))`}, want: "lk_command returned -1", kept: true},
		{name: "fewer pages than it begins with", file: func() []byte {
			m := description()
			m["limits"] = object{"memory_pages": 1}
			return packed(shape{memory: []byte{0, 2}}.bytes(), m)
		}, refused: "memory begins with 2 pages, at most 1"},
	}
	return append(lies,
		attack{name: "no manifest", refused: "latchkey.manifest", file: func() []byte { return whole }},
		attack{name: "two manifests", refused: "two custom sections", file: func() []byte { return packed(packed(whole, description()), description()) }},
		text("empty", wanted, ""),
		text("null", wanted, "null"),
		text("a list", wanted, "[]"),
		text("no fields", wanted, "{}"),
		text("not JSON", wanted, "name: h"),
		text("cut off within a string", wanted, `{"name": "h`),
		text("not UTF-8", "bytes that are not UTF-8", "{\"name\": \"\xff\"}"),
		text("a field twice", "it twice", `{"name": "h", "name": "g"}`),
		text("two documents", "more after the end", `{} {}`),
		text("60,000 lists within each other", "more than 8 levels", strings.Repeat("[", 60_000)),
		text("10,000 objects within each other", "more than 8 levels", strings.Repeat(`{"a":`, 10_000)),
		text("a megabyte of spaces", "at most", strings.Repeat(" ", 1<<20)),
		text("a number of 60,000 digits", wanted, `{"name": `+strings.Repeat("9", 60_000)+`}`),
		attack{name: "15 MiB of manifest", refused: "at most", file: func() []byte { return packedText(whole, bytes.Repeat([]byte("x"), 15<<20)) }},
		with("a field of no meaning", "an unknown field", func(m, _ object) { m["native"] = "lib.so" }),
		with("functions", "reserved for a later version", func(m, _ object) { m["functions"] = []any{} }),
		with("a name with a path", wanted+"name", func(m, _ object) { m["name"] = "../h" }),
		with("no name", wanted+"name", func(m, _ object) { m["name"] = "" }),
		with("the name of a module that is loaded", "a module named cad is loaded already", func(m, _ object) { m["name"] = "cad" }),
		with("a later ABI", "the module wants ABI 2 to 9, this latchkey has 1", func(m, _ object) { m["abi"] = object{"min": 2, "max": 9} }),
		with("an ABI range that is upside down", wanted+"abi.max", func(m, _ object) { m["abi"] = object{"min": 3, "max": 1} }),
		with("a version of two parts", wanted+"version", func(m, _ object) { m["version"] = "1.0" }),
		with("no commands", wanted+"commands", func(m, _ object) { m["commands"] = []any{} }),
		with("257 commands", "257 items", func(m, run object) { m["commands"] = manyOf(257, run) }),
		with("a built-in command", `command "get": the name is taken, it is the server's own`, func(_, run object) { run["name"] = "GET" }),
		with("a built-in command in other case", `command "module": the name is taken`, func(_, run object) { run["name"] = "mOdUlE" }),
		with("a command of another module", `command "cad.wasm": the name is taken, it is the module cad's`, func(_, run object) { run["name"] = "CAD.WASM" }),
		with("a command with a line break", wanted+"commands[1].name", func(_, run object) { run["name"] = "H.RUN\r\nSHUTDOWN" }),
		with("a command of 64 KiB", wanted+"commands[1].name", func(_, run object) { run["name"] = strings.Repeat("H", 60_000) }),
		with("a command twice", "commands[0] has it already", func(_, run object) { run["name"] = "h.calls" }),
		with("an id twice", "commands[0] has it already", func(_, run object) { run["id"] = 0 }),
		with("an id below 0", wanted+"commands[1].id", func(_, run object) { run["id"] = -1 }),
		with("an id of 2^31", wanted+"commands[1].id", func(_, run object) { run["id"] = 1 << 31 }),
		with("an id of a half", wanted+"commands[1].id", func(_, run object) { run["id"] = 0.5 }),
		with("an arity of 0", wanted+"commands[1].arity", func(_, run object) { run["arity"] = 0 }),
		with("an arity of -2^31", wanted+"commands[1].arity", func(_, run object) { run["arity"] = -1 << 31 }),
		with("a flag of servers", wanted+"commands[1].flags", func(_, run object) { run["flags"] = []any{"admin"} }),
		with("reading and writing", wanted+"commands[1].flags", func(_, run object) { run["flags"] = []any{"write", "readonly"} }),
		with("keys and neither reading nor writing", wanted+"commands[1].flags", func(_, run object) { run["flags"] = []any{} }),
		with("an ACL category of its own", wanted+"commands[1].acl", func(_, run object) { run["acl"] = []any{"root"} }),
		with("a first key that is the name", wanted+"commands[1].keys.first", func(_, run object) { run["keys"] = object{"first": 0, "last": 1, "step": 1} }),
		with("a first key that need not be there", wanted+"commands[1].keys.first", func(_, run object) { run["keys"] = object{"first": 2, "last": 2, "step": 1} }),
		with("a last key before the first", wanted+"commands[1].keys.last", func(_, run object) { run["keys"] = object{"first": 1, "last": -3, "step": 1} }),
		with("a last key that need not be there", wanted+"commands[1].keys.last", func(_, run object) { run["keys"] = object{"first": 1, "last": 9, "step": 1} }),
		with("a step of 0", wanted+"commands[1].keys.step", func(_, run object) { run["keys"] = object{"first": 1, "last": 1, "step": 0} }),
		with("a step below 0", wanted+"commands[1].keys.step", func(_, run object) { run["keys"] = object{"first": 1, "last": -1, "step": -1} }),
		with("a summary with an escape", wanted+"commands[1].summary", func(_, run object) { run["summary"] = "\x1b[2J" }),
		with("a capability of no meaning", wanted+"capabilities", func(m, _ object) { m["capabilities"] = object{"files": true} }),
		with("a capability that is no list", wanted+"capabilities.read", func(m, _ object) { m["capabilities"] = object{"read": true} }),
		with("1,025 prefixes", "1025 items", func(m, _ object) { m["capabilities"] = object{"read": manyOf(1025, "k")} }),
		with("a prefix of 64 KiB", "at most 256 bytes", func(m, _ object) { m["capabilities"] = object{"read": []any{strings.Repeat("k", 60_000)}} }),
		with("an event of no meaning", wanted+"capabilities.events", func(m, _ object) { m["capabilities"] = object{"events": []any{"passwords"}} }),
		with("state of all", wanted+"capabilities.state", func(m, _ object) { m["capabilities"] = object{"state": "all"} }),
		with("fuel without bound", wanted+"limits.fuel", func(m, _ object) { m["limits"] = object{"fuel": 1 << 41} }),
		with("no fuel", wanted+"limits.fuel", func(m, _ object) { m["limits"] = object{"fuel": 0} }),
		with("2^31 instances", wanted+"limits.instances", func(m, _ object) { m["limits"] = object{"instances": 1 << 31} }),
		with("2^31 pages", wanted+"limits.memory_pages", func(m, _ object) { m["limits"] = object{"memory_pages": 1 << 31} }),
		with("257 parameters", "257 items", func(m, _ object) { m["config"] = manyOf(257, object{}) }),
		with("a parameter outside of its range", wanted+"config[0].default", func(m, _ object) {
			m["config"] = []any{object{"name": "p", "type": "int", "default": 5, "min": 6, "max": 7}}
		}),
		with("a parameter of no known type", wanted+"config[0].type", func(m, _ object) {
			m["config"] = []any{object{"name": "p", "type": "code", "default": "x"}}
		}),
		with("an enum of nothing", wanted+"config[0]", func(m, _ object) {
			m["config"] = []any{object{"name": "p", "type": "enum", "default": "x", "values": []any{}}}
		}),
	)
}

func manyOf(n int, v any) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = v
	}
	return out
}
