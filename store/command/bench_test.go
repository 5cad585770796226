package command_test

import (
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/store"
)

// hotCommands set values that fit into their entries, and allocate nothing.
func hotCommands() []hotCommand {
	return []hotCommand{
		{"get", "SET k v", "GET k", 0},
		{"getMissing", "", "GET k", 0},
		{"set", "SET k v", "SET k w", 0},
		{"setPX", "SET k v", "SET k w PX 100000", 0},
		{"setNXHeld", "SET k v", "SETNX k w", 0},
		{"setNXPXHeld", "SET k v", "SET k w NX PX 100000", 0},
		{"getset", "SET k v", "GETSET k w", 0},
		{"incr", "SET k 1", "INCR k", 0},
		{"cadOther", "SET k v", "CAD k w", 0},
		{"delifeqOther", "SET k v", "DELIFEQ k w", 0},
	}
}

type hotCommand struct {
	name   string
	before string
	line   string
	allocs float64 // at most, for each run of line
}

func TestHotCommandsAllocate(t *testing.T) {
	for _, tt := range hotCommands() {
		h := newHarness(t, store.Options{Log: &store.MemoryLog{}})
		if tt.before != "" {
			h.do(tt.before)
		}
		args := words(tt.line)
		h.run(args...)
		if got := testing.AllocsPerRun(200, func() { h.run(args...) }); got > tt.allocs {
			t.Errorf("%s: %v allocations, want at most %v", tt.line, got, tt.allocs)
		}
	}
}

func BenchmarkHotCommands(b *testing.B) {
	for _, tt := range hotCommands() {
		b.Run(tt.name, func(b *testing.B) {
			h := newHarness(b, store.Options{Log: &store.MemoryLog{}})
			if tt.before != "" {
				h.do(tt.before)
			}
			args := words(tt.line)
			b.ReportAllocs()
			for b.Loop() {
				h.run(args...)
			}
		})
	}
}

// A lock that is taken and released: the entry, and what the index needs for it.
func BenchmarkLockUnlock(b *testing.B) {
	for _, unlock := range []string{"CAD k token", "DELIFEQ k token"} {
		b.Run(strings.ToLower(strings.Fields(unlock)[0]), func(b *testing.B) {
			h := newHarness(b, store.Options{Log: &store.MemoryLog{}})
			set, del := words("SET k token NX PX 100000"), words(unlock)
			b.ReportAllocs()
			for b.Loop() {
				if got := h.run(set...); string(got) != "+OK\r\n" {
					b.Fatalf("the lock is held: %q", got)
				}
				h.run(del...)
			}
		})
	}
}
