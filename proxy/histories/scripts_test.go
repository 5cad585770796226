package histories

import (
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/scripting"
	"github.com/latchkey-proxy/latchkey/store/command"
	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// luaCommands are the commands of the scripting room: EVAL and its family.
func luaCommands(t testing.TB) []*command.Spec {
	t.Helper()
	e, err := scripting.New(scripting.Options{})
	if err != nil {
		t.Fatalf("scripting.New: %v", err)
	}
	return scripting.NewRunner(e, scripting.Settings{}, runtime.NumCPU(), slog.New(slog.NewTextHandler(io.Discard, nil))).Specs()
}

// The scripts of a lock. They dawdle between looking and writing, within what a
// script may take under the latches of its keys; slow makes them exceed it, so that
// they run under key locks.
const (
	luaAcquire = dawdle + `
local held = redis.call('get', KEYS[1])
if held then return held end
dawdle()
redis.call('set', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
return 1`
	luaRelease = dawdle + `
local held = redis.call('get', KEYS[1])
if held ~= ARGV[1] then return held end
dawdle()
return redis.call('del', KEYS[1])`
	luaPoison = dawdle + `
redis.call('set', KEYS[1], ARGV[1])
dawdle()
error('poison')`
	luaIncr = dawdle + `
local n = tonumber(redis.call('get', KEYS[1]) or '0') + 1
dawdle()
redis.call('set', KEYS[1], n, 'KEEPTTL')
return n`
	dawdle = `local function dawdle() for i = 1, 300 do end end`
)

// isPoison tells the error of a script that fails on purpose from others.
func isPoison(text string) bool { return strings.Contains(text, "poison") }

// language is one way to run the scripts of a lock.
type language struct {
	name                           string
	acquire, release, poison, incr []string // the command up to its key
}

// languages are Go under the key lock, EVAL, EVALSHA with scripts that were loaded
// before, and EVALSHA of slow ones.
func (s *server) languages() []language {
	s.t.Helper()
	c := s.dial()
	load := func(src string) []string {
		r := s.must(c, "SCRIPT", "LOAD", src)
		if r.Kind != transcript.Bulk {
			s.t.Fatalf("SCRIPT LOAD answered %q", r.Text)
		}
		return []string{"EVALSHA", r.Text, "1"}
	}
	slow := func(src string) string { return strings.Replace(src, "300", "200000", 1) }
	eval := func(src string) []string { return []string{"EVAL", src, "1"} }
	return []language{
		{"go", []string{"TEST.ACQUIRE"}, []string{"TEST.RELEASE"}, []string{"TEST.POISON"}, []string{"TEST.INCR"}},
		{"eval", eval(luaAcquire), eval(luaRelease), eval(luaPoison), eval(luaIncr)},
		{"evalsha", load(luaAcquire), load(luaRelease), load(luaPoison), load(luaIncr)},
		{"slow", load(slow(luaAcquire)), load(slow(luaRelease)), load(slow(luaPoison)), load(slow(luaIncr))},
	}
}
