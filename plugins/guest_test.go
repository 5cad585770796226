package plugins_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/plugins/manifest"
)

// guest describes a module that a test writes in WAT. Its memory is a page,
// 64 KiB; at 0 it holds "k", at 8 "other", at 16 "denied", at 24 "r:1", at 32
// "+x\r\nB". Frames are at 1024.
type guest struct {
	name        string   // of the module, in lower case; default h
	body        string   // of lk_command, whose parameters are $id, $argc and $frame
	funcs       string   // more functions
	arena       string   // body of lk_arena, whose parameter is $size
	init        string   // body of lk_init
	commands    []string // names; the first has id 1, and so on; default H.RUN
	limits      map[string]int
	exports     string         // more of them
	caps        map[string]any // capabilities, beside or instead of those below
	config      []any          // parameters
	readonly    []string       // those of commands that are readonly
	imports     string         // more of them
	wakeVersion int
	data        string // at 256
	many        bool   // all arguments are keys
}

// calls is the body of a command that replies how many commands its instance
// has been given, this one included.
const calls = `(call $reply_int (i64.extend_i32_u (global.get $calls))) (return (i32.const 0))`

// write has the guest write x to the key k.
const write = `(drop (call $set (i32.const 0) (i32.const 1) (i32.const 33) (i32.const 1) (i32.const 0) (i64.const 0)))`

// build assembles a module, whose commands begin with its name. Beside them it has
// CALLS.
func (g guest) build(t testing.TB) string {
	t.Helper()
	or := func(s, otherwise string) string {
		if s == "" {
			return otherwise
		}
		return s
	}
	var imports strings.Builder
	for _, f := range plugins.HostFunctions() {
		fmt.Fprintf(&imports, "(import \"latchkey_v1\" %q (func $%s", f.Name, f.Name)
		if len(f.Params) > 0 {
			fmt.Fprintf(&imports, " (param %s)", strings.Join(f.Params, " "))
		}
		if len(f.Results) > 0 {
			fmt.Fprintf(&imports, " (result %s)", f.Results[0])
		}
		imports.WriteString("))\n")
	}
	text := `(module ` + imports.String() + g.imports + `
(memory (export "memory") 1)
(data (i32.const 0) "k\00\00\00\00\00\00\00other\00\00\00denied\00\00r:1\00\00\00\00\00+x\0d\0aB")
(global $calls (mut i32) (i32.const 0))
(func (export "lk_abi") (result i32) (i32.const 1))
(func (export "lk_init") (result i32) ` + or(g.init, "(i32.const 0)") + `)
(func (export "lk_arena") (param $size i32) (result i32) ` + or(g.arena, "(i32.const 1024)") + `)
` + g.funcs + g.exports + `
(data (i32.const 256) "` + g.data + `")
(func (export "lk_command") (param $id i32) (param $argc i32) (param $frame i32) (result i32)
	(local $i i32)
	(global.set $calls (i32.add (global.get $calls) (i32.const 1)))
	(if (i32.eqz (local.get $id)) (then ` + calls + `))
	` + g.body + `
	(i32.const 0)))`

	type object map[string]any
	name := or(g.name, "h")
	commands := []object{{"name": strings.ToUpper(name) + ".CALLS", "id": 0, "arity": 1, "flags": []string{"readonly"}, "summary": "Counts."}}
	if g.commands == nil {
		g.commands = []string{strings.ToUpper(name) + ".RUN"}
	}
	last := 1
	if g.many {
		last = -1
	}
	for i, command := range g.commands {
		commands = append(commands, object{
			"name": command, "id": i + 1, "arity": -2, "flags": []string{"write"},
			"keys": object{"first": 1, "last": last, "step": 1}, "summary": "Is hostile.",
		})
	}
	for i := range commands {
		if name, _ := commands[i]["name"].(string); slices.Contains(g.readonly, name) {
			commands[i]["flags"] = []string{"readonly"}
		}
	}
	caps := object{"read": []string{"k", "r:", "o"}, "write": []string{"k", "o"}}
	for name, v := range g.caps {
		caps[name] = v
	}
	limits := map[string]int{"instances": 1}
	for name, n := range g.limits {
		limits[name] = n
	}
	man, err := json.Marshal(object{
		"name": name, "version": "1.0.0", "abi": object{"min": 1, "max": 1}, "commands": commands,
		"capabilities": caps, "limits": limits, "config": append([]any{}, g.config...), "wake_version": g.wakeVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := manifest.Pack(assemble(t, text), man)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name+".wasm")
	if err := os.WriteFile(path, wasm, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// assemble turns text into a module.
func assemble(t testing.TB, text string) []byte {
	t.Helper()
	tool, err := exec.LookPath("wat2wasm")
	if err != nil {
		if os.Getenv("LATCHKEY_CI") == "1" {
			t.Fatal("wat2wasm not found: install the Debian package wabt")
		}
		t.Skip("wat2wasm not found: install the Debian package wabt")
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "m.wat"), filepath.Join(dir, "m.wasm")
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.Command(tool, in, "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("wat2wasm: %v\n%s\n%s", err, msg, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}
