package scripting

import (
	"strconv"
	"strings"
	"testing"
	"time"

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
		c.fill(20_000)
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
			{Limits{Memory: 1 << 20}, "redis.pcall('APPEND', 'wide', 'x') return 1", memory},
			{Limits{Memory: 1 << 20}, "redis.pcall('COPY', 'wide', KEYS[1]) return 1", memory},
			{Limits{Memory: 1 << 20}, "redis.pcall('COPY', 'set', KEYS[1]) return 1", memory},
			{Limits{Memory: 1 << 20}, "redis.pcall('DUMP', 'wide') return 1", memory},
			{Limits{Memory: 1 << 20}, "redis.pcall('SRANDMEMBER', 'set', -10000000) return 1", memory},
			{Limits{Memory: 1 << 20}, "redis.pcall('MGET', 'wide', 'wide') return 1", memory},
			{Limits{Memory: 1 << 20}, "redis.pcall('LRANGE', 'list', 0, -1) return 1", memory},
			{Limits{Memory: 1 << 20}, "redis.pcall('KEYS', '*') return 1", memory},
			{Limits{Memory: 1 << 20}, "redis.pcall('SMEMBERS', 'set') return 1", memory},
			{Limits{Memory: 1 << 20}, "return #redis.call('LRANGE', 'list', 0, 4000)", ":4001"},
			{Limits{Instructions: 10_000}, "redis.pcall('KEYS', 'none') return 1", instructions},
			{Limits{Instructions: 10_000}, "redis.pcall('SCAN', 0, 'COUNT', 100000, 'MATCH', 'none') return 1", instructions},
			{Limits{Instructions: 10_000}, "redis.pcall('SINTERSTORE', KEYS[1], 'set', 'set') return 1", instructions},
			{Limits{Instructions: 10_000}, "redis.pcall('LPOS', 'list', 'none') return 1", instructions},
			{Limits{Instructions: 10_000}, "redis.pcall('LREM', 'list', 0, 'none') return 1", instructions},
			{Limits{Instructions: 10_000}, "redis.pcall('SPOP', 'set', 15000) return 1", instructions},
			{Limits{Instructions: 10_000}, "redis.pcall('BITCOUNT', 'wide') return 1", instructions},
			{Limits{Instructions: 10_000}, "redis.pcall('RENAME', 'set', KEYS[1]) redis.pcall('RENAME', KEYS[1], 'set') redis.pcall('RENAME', 'set', KEYS[1]) redis.pcall('RENAME', KEYS[1], 'set') return 1", instructions},
			{Limits{Instructions: 10_000_000}, "redis.call('SUNIONSTORE', KEYS[1], 'set') return redis.call('SCARD', KEYS[1])", ":20000"},
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

// fill stores n keys, a list and a set of n.
func (c *client) fill(n int) {
	for i := range n {
		c.do("SET", "key:"+strconv.Itoa(i), "v")
	}
	const all = "for i = 0, ARGV[1] - 1 do redis.call('RPUSH', 'list', 'element:' .. i) redis.call('SADD', 'set', 'member:' .. i) end redis.call('SADD', 'list2', 'x') return 'OK'"
	c.expect("$2 OK", "EVAL", all, "0", strconv.Itoa(n))
}

// TestLoopsOfCommandsEnd: a script that does nothing but call a command that goes
// through much is ended by its deadline, and what it did is undone.
func TestLoopsOfCommandsEnd(t *testing.T) {
	for engine, vmOnly := range map[string]bool{"vm": true, "closures": false} {
		r := newRoomOn(t, Settings{}, store.Options{}, Options{VMOnly: vmOnly})
		c := r.client()
		c.expect(":4000001", "SETRANGE", "wide", "4000000", "x")
		c.fill(5000)
		r.runner.Set(Settings{Limits: Limits{Time: 20 * time.Millisecond}})
		for _, call := range []string{
			"'KEYS', 'none'", "'KEYS', '*o*n*e*'", "'SCAN', 0, 'COUNT', 100000", "'RANDOMKEY'", "'BITCOUNT', 'wide'", "'BITPOS', 'wide', 1",
			"'BITOP', 'NOT', 'k', 'wide'", "'DIGEST', 'wide'", "'COPY', 'wide', 'k', 'REPLACE'", "'COPY', 'list', 'k', 'REPLACE'",
			"'COPY', 'set', 'k', 'REPLACE'", "'DUMP', 'wide'", "'DUMP', 'list'", "'LRANGE', 'list', 0, -1", "'LPOS', 'list', 'none'",
			"'LINSERT', 'list', 'BEFORE', 'element:2500', 'x'", "'LREM', 'list', 0, 'none'", "'LREM', 'list', 1, 'element:2500'",
			"'LTRIM', 'list', 1, -2", "'LPOP', 'list', 10", "'SINTERSTORE', 'k', 'set', 'set'", "'SUNIONSTORE', 'k', 'set'",
			"'SDIFF', 'set', 'list2'", "'SINTERCARD', 2, 'set', 'set'", "'SMEMBERS', 'set'", "'SRANDMEMBER', 'set', 4000",
			"'SRANDMEMBER', 'set', -4000", "'SSCAN', 'set', 0, 'COUNT', 5000, 'MATCH', 'none'", "'RENAME', 'set', 'set2') redis.call('RENAME', 'set2', 'set'",
			"'MGET', 'wide', 'wide', 'wide', 'wide'", "'GETRANGE', 'wide', 0, -1", "'APPEND', 'wide', 'x'", "'SETRANGE', 'wide', 1, 'x'",
			"'DBSIZE'", "'EXISTS', unpack(KEYS)",
		} {
			got := c.do("EVAL", "while true do redis.call("+call+") end", "3", "a", "b", "c")
			if !strings.HasPrefix(got, "-ERR Script exceeded its time limit") && !strings.HasPrefix(got, "-ERR Script exceeded its memory limit") {
				t.Errorf("%s: a loop of %s answers %q", engine, call, clipText(got))
			}
			c.expect(":0", "EXISTS", "k", "set2")
			c.expect(":5000", "LLEN", "list")
		}
	}
}
