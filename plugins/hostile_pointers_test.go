package plugins_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/plugins"
)

func TestHostilePointers(t *testing.T) { attackAll(t, pointers()) }

// pointers are, for each host function that takes one, a module that gives it
// every pointer and length outside of memory, one per command.
func pointers() []attack {
	var out []attack
	for _, f := range plugins.HostFunctions() {
		var bad []string
		for i, name := range f.Names {
			pairs := badPairs(f.Names, i)
			for _, pair := range pairs {
				call := "(call $" + f.Name
				for j, typ := range f.Params {
					value := 0
					switch {
					case j == i:
						value = pair[0]
					case j == i+1 && !isOut(name):
						value = pair[1]
					case strings.HasSuffix(f.Names[j], "len"), f.Names[j] == "nkeys", f.Names[j] == "argc":
						value = 1
					case isOut(f.Names[j]):
						value = 64
					}
					call += fmt.Sprintf(" (%s.const %d)", typ, value)
				}
				bad = append(bad, dropped(call+")", len(f.Results)))
			}
		}
		if f.Name == "call" || f.Name == "block" {
			for _, pair := range badPointers {
				rest := strings.Repeat(" (i64.const 0)", len(f.Params)-2)
				bad = append(bad, fmt.Sprintf("(i32.store (i32.const 40) (i32.const %d)) (i32.store (i32.const 44) (i32.const %d)) (drop (call $%s (i32.const 40) (i32.const 1)%s))",
					pair[0], pair[1], f.Name, rest))
			}
		}
		if len(bad) > 0 {
			out = append(out, pointerAttack("pointers of "+f.Name, guest{caps: map[string]any{"state": "write"}}, bad))
		}
	}
	for _, f := range []struct {
		name string
		bad  []string // what it is called with
	}{
		{"args_sizes_get", []string{"i32 -1 i32 0", "i32 0 i32 65533"}},
		{"environ_sizes_get", []string{"i32 65533 i32 0", "i32 0 i32 -4"}},
		{"clock_time_get", []string{"i32 0 i64 0 i32 65529", "i32 1 i64 0 i32 -1"}},
		{"clock_res_get", []string{"i32 0 i32 65529", "i32 1 i32 -8"}},
		{"fd_fdstat_get", []string{"i32 1 i32 65520", "i32 2 i32 -1"}},
		{"fd_read", []string{"i32 0 i32 0 i32 0 i32 65533"}},
		{"fd_write", []string{"i32 1 i32 -8 i32 1 i32 0", "i32 1 i32 65532 i32 1 i32 0", "i32 2 i32 0 i32 1 i32 65533", "i32 1 i32 65520 i32 1024 i32 0", "i32 1 i32 0 i32 3 i32 64"}},
		{"poll_oneoff", []string{"i32 -1 i32 0 i32 1 i32 0", "i32 65500 i32 0 i32 1 i32 0", "i32 0 i32 65520 i32 1 i32 0", "i32 0 i32 64 i32 1 i32 65533"}},
		{"random_get", []string{"i32 0 i32 65537", "i32 65535 i32 2", "i32 -1 i32 1", "i32 0 i32 -1"}},
	} {
		var params string
		for _, w := range plugins.WASIFunctions() {
			if w.Name == f.name {
				params = strings.Join(w.Params, " ")
			}
		}
		g := guest{imports: fmt.Sprintf(`(import "wasi_snapshot_preview1" %q (func $wasi (param %s) (result i32)))`, f.name, params)}
		var bad []string
		for _, args := range f.bad {
			call := "(call $wasi"
			words := strings.Fields(args)
			for i := 0; i < len(words); i += 2 {
				call += fmt.Sprintf(" (%s.const %s)", words[i], words[i+1])
			}
			bad = append(bad, dropped(call+")", 1))
		}
		out = append(out, pointerAttack("pointers of WASI's "+f.name, g, bad))
	}
	return out
}

// badPointers are pointers and lengths that lie outside of a page of memory, or
// begin in it and end outside.
var badPointers = [][2]int{{65535, 2}, {65537, 0}, {-1, 1}, {0, -1}, {-1, -1}, {8, 65536}}

// badPairs are what to give for parameter i and the one behind it.
func badPairs(names []string, i int) [][2]int {
	last := i+1 == len(names)
	switch {
	case names[i] == "frame":
		return [][2]int{{65532, 1}, {-8, 1}, {65536, 1}, {65528, 2}, {2, 1}}
	case isOut(names[i]):
		return [][2]int{{65533, 0}, {65536, 0}, {-1, 0}}
	case !last && (strings.HasSuffix(names[i+1], "len") || names[i+1] == "cap"):
		return badPointers
	}
	return nil
}

// isOut tells whether a parameter points to where a result goes.
func isOut(name string) bool { return name == "out" || strings.HasSuffix(name, "_out") }

func dropped(call string, results int) string {
	if results > 0 {
		return "(drop " + call + ")"
	}
	return call
}

// pointerAttack is a module with a command for each of the calls.
func pointerAttack(name string, g guest, bad []string) attack {
	a := attack{name: name, guest: g, want: pluginE + "pointer "}
	for i, call := range bad {
		command := fmt.Sprintf("H.BAD%d", i)
		a.commands = append(a.commands, command+" k")
		a.guest.commands = append(a.guest.commands, command)
		a.guest.body += fmt.Sprintf("(if (i32.eq (local.get $id) (i32.const %d)) (then %s))\n", i+1, call)
	}
	return a
}
