package scripting

import (
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/store"
)

// TestCommandsChargeTheScript: what a command takes beyond its arguments is on the
// account of the script that calls it, in both engines, and no pcall keeps it.
func TestCommandsChargeTheScript(t *testing.T) {
	const memory, instructions = "-ERR Script exceeded its memory limit", "-ERR Script exceeded its instruction budget"
	for engine, vmOnly := range map[string]bool{"vm": true, "closures": false} {
		r := newRoomOn(t, Settings{}, store.Options{}, Options{VMOnly: vmOnly})
		c := r.client()
		c.expect("+OK", "SET", "long", strings.Repeat("ab", 2000))
		c.expect(":4000001", "SETRANGE", "wide", "4000000", "x")
		for _, tt := range []struct {
			limits    Limits
			src, want string
		}{
			{Limits{Memory: 1 << 20}, "redis.pcall('SETRANGE', KEYS[1], 5000000, 'x') return 1", memory},
			{Limits{Memory: 1 << 20}, "redis.pcall('SETBIT', KEYS[1], 50000000, 1) return 1", memory},
			{Limits{Memory: 1 << 20}, "redis.pcall('BITFIELD', KEYS[1], 'SET', 'u8', 50000000, 1) return 1", memory},
			{Limits{Memory: 1 << 20}, "redis.pcall('BITOP', 'NOT', KEYS[1], 'wide') return 1", memory},
			{Limits{Memory: 1 << 20}, "redis.pcall('LCS', 'long', 'long') return 1", memory},
			{Limits{Memory: 1 << 20}, "redis.call('SETRANGE', 'wide', 3000000, 'x') return redis.call('SETRANGE', KEYS[1], 9000, 'x')", ":9001"},
			{Limits{Instructions: 100_000}, "redis.pcall('LCS', 'long', 'long', 'LEN') return 1", instructions},
			{Limits{Instructions: 100_000_000}, "return redis.call('LCS', 'long', 'long', 'LEN')", ":4000"},
		} {
			r.runner.Set(Settings{Limits: tt.limits})
			if got := c.do("EVAL", tt.src, "1", "k"); !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s: %s answers %q, want %q", engine, tt.src, clipText(got), tt.want)
			}
			if got := c.do("EXISTS", "k"); strings.HasPrefix(tt.want, "-") && got != ":0\r\n" {
				t.Errorf("%s: %s left its key", engine, tt.src)
			}
			c.do("DEL", "k")
		}
	}
}
