package scripting

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/latchkey-proxy/latchkey/store"
)

// world is a room whose every trace is kept.
type world struct {
	*client
	name   string
	clock  *store.ManualClock
	log    effectLog
	lines  bytes.Buffer // of redis.log
	events []string
	errors map[string]int

	replayed int // of log.effects
}

// effectLog keeps every effect as RESP, behind its database.
type effectLog struct {
	lsn     uint64
	effects []string
}

func (l *effectLog) Append(effects []store.Effect) (uint64, error) {
	for i := range effects {
		l.effects = append(l.effects, strconv.Itoa(effects[i].DB)+string(effects[i].AppendRESP(nil)))
	}
	l.lsn++
	return l.lsn, nil
}

func (l *effectLog) Wait(uint64) error { return nil }

func (w *world) Deliver(ev *store.Event) {
	w.events = append(w.events, fmt.Sprintf("%d %s %s", ev.Kind, ev.Channel, ev.Payload))
}

const worldBegins = 1_700_000_000_000

func newWorld(t testing.TB, name string, vm bool, allowance func() int64) *world {
	w := &world{name: name, clock: store.NewManualClock(worldBegins), errors: map[string]int{}}
	lines := slog.New(slog.NewTextHandler(&w.lines, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	r := newRoomOn(t, Settings{}, store.Options{Clock: w.clock, Log: &w.log, Sink: w, Allowance: allowance}, Options{Logger: lines, VMOnly: vm})
	r.engine.Store.SetNotify(^uint32(0))
	r.engine.OnError = func(msg string) { w.errors[msg]++ }
	w.client = r.client()
	return w
}

// counted are the calls of all commands that were called, or refused.
func (w *world) counted() string {
	w.sess.FlushStats()
	out := ""
	for _, s := range w.r.engine.Table.All() {
		u := s.Usage()
		measured := int64(0)
		for i := range u.Histogram {
			measured += u.Histogram[i].Load()
		}
		if n := u.Calls.Load(); n+u.Rejected.Load() > 0 {
			out += fmt.Sprintf("%s calls %d measured %d failed %d rejected %d; ", s.FullName(), n, measured, u.Failed.Load(), u.Rejected.Load())
		}
	}
	for _, msg := range slices.Sorted(maps.Keys(w.errors)) {
		out += fmt.Sprintf("%q %d; ", msg, w.errors[msg])
	}
	c := &w.r.engine.Store.Counter
	return out + fmt.Sprintf("expired %d hits %d misses %d", c.Expired.Load(), c.Hits.Load(), c.Misses.Load())
}

var worldKeys = []string{"a", "b", "c", "u", "v"}

// contents are all keys with their values, of two databases.
func (w *world) contents() string {
	out := ""
	c := w.r.client()
	for _, db := range []string{"0", "1"} {
		c.do("SELECT", db)
		for _, k := range worldKeys {
			kind := c.do("TYPE", k)
			out += db + " " + k + " " + kind + c.do("PTTL", k)
			switch {
			case strings.Contains(kind, "string"):
				out += c.do("GET", k)
			case strings.Contains(kind, "list"):
				out += c.do("LRANGE", k, "0", "-1")
			case strings.Contains(kind, "set"):
				out += c.do("SMEMBERS", k)
			}
		}
	}
	return out
}

// encodings are not in the log.
func (w *world) encodings() string {
	out := ""
	for _, k := range worldKeys {
		out += w.do("OBJECT", "ENCODING", k)
	}
	return out
}

// replay runs what w has logged since the last replay on another world.
func (w *world) replay(on *world) {
	effects := w.log.effects[w.replayed:]
	w.replayed = len(w.log.effects)
	for _, e := range effects {
		args := wordsOf(e[1:])
		on.do("SELECT", e[:1])
		on.do(args...)
	}
}

// wordsOf takes a command in RESP apart.
func wordsOf(cmd string) []string {
	var n int
	fmt.Sscanf(cmd, "*%d\r\n", &n)
	_, cmd, _ = strings.Cut(cmd, "\r\n")
	args := make([]string, n)
	for i := range args {
		var size int
		fmt.Sscanf(cmd, "$%d\r\n", &size)
		_, cmd, _ = strings.Cut(cmd, "\r\n")
		args[i], cmd = cmd[:size], cmd[size+2:]
	}
	return args
}

// program draws a script.
type program struct {
	*rapid.T
	lines []string
}

func (p *program) draw(n int, label string) int { return rapid.IntRange(0, n-1).Draw(p.T, label) }

func (p *program) key() string {
	if p.draw(12, "undeclared") == 0 {
		return []string{"'u'", "'v'"}[p.draw(2, "key")]
	}
	return fmt.Sprintf("KEYS[%d]", 1+p.draw(3, "key"))
}

func (p *program) value() string {
	return []string{"'x'", "'longer value'", "10", "'7'", "ARGV[1]", "i", "string.rep('z', 40)"}[p.draw(7, "value")]
}

func (p *program) statement(depth int) {
	k, v := p.key(), p.value()
	call := []string{"redis.call", "redis.pcall", "redis.pcall"}[p.draw(3, "call")]
	note := func(format string, args ...any) {
		p.lines = append(p.lines, "note("+call+"("+fmt.Sprintf(format, args...)+"))")
	}
	plain := func(format string, args ...any) { p.lines = append(p.lines, fmt.Sprintf(format, args...)) }
	switch p.draw(36, "statement") {
	case 0, 1:
		note("'set', %s, %s", k, v)
	case 2:
		note("'set', %s, %s, 'px', %d", k, v, 1+p.draw(50, "ms"))
	case 3:
		note("'set', %s, %s, 'nx', 'get'", k, v)
	case 4, 5:
		note("'get', %s", k)
	case 6:
		note("'getset', %s, %s", k, v)
	case 7, 8:
		note("'append', %s, %s", k, v)
	case 9:
		note("'setrange', %s, %d, %s", k, p.draw(20, "offset"), v)
	case 10:
		note("'incr', %s", k)
	case 11, 12:
		note("'del', %s, %s", k, p.key())
	case 13:
		note("'pexpire', %s, %d", k, p.draw(60, "ms"))
	case 14:
		note("'persist', %s", k)
	case 15:
		note("'rename', %s, %s", k, p.key())
	case 16:
		note("'rpush', %s, %s, %s", k, v, p.value())
	case 17:
		note("'lpop', %s", k)
	case 18:
		note("'sadd', %s, %s", k, v)
	case 19:
		note("'srem', %s, %s", k, v)
	case 20:
		note("'mget', %s, %s", k, p.key())
	case 21:
		note("'lrange', %s, 0, -1", k) // not quick: promotes
	case 22:
		note("'pttl', %s", k)
	case 23:
		plain("redis.log(redis.LOG_WARNING, 'line', #r)")
	case 24:
		plain("math.randomseed(#r)")
		plain("note(math.random(1000))")
	case 25:
		if p.draw(4, "rare") == 0 {
			note("'dbsize'")
		}
	case 26:
		if p.draw(8, "rare") == 0 {
			plain("error('raised')")
		}
	case 27:
		if p.draw(8, "rare") == 0 {
			note("'flushdb'") // promotes, and runs alone
		}
	case 28:
		note("'select', %d", p.draw(2, "db"))
	case 29:
		note("'nosuch', %s", k)
	case 30:
		note("'get'")
	case 31:
		plain("redis.setresp(%d)", 2+p.draw(2, "resp"))
	case 32:
		plain("for i = 1, %d do", 1+p.draw(20, "times"))
		p.block(depth)
		plain("end")
	case 33:
		plain("if %s('exists', %s) == 1 then", call, k)
		p.block(depth)
		plain("end")
	case 34:
		plain("pcall(function()")
		p.block(depth)
		plain("end)")
	case 35:
		note("'copy', %s, %s", k, p.key())
	}
}

func (p *program) block(depth int) {
	if depth > 0 {
		for range 1 + p.draw(4, "statements") {
			p.statement(depth - 1)
		}
	}
}

func drawProgram(t *rapid.T) string {
	p := &program{T: t, lines: []string{
		"local r, i = {}, 3",
		"local function note(v) if type(v) == 'table' and v.err then v = v.err elseif type(v) == 'table' and v.ok then v = v.ok end r[#r + 1] = v end",
	}}
	for range 1 + p.draw(8, "statements") {
		p.statement(2)
	}
	switch p.draw(6, "end") {
	case 0:
		p.lines = append(p.lines, "return redis.error_reply('MINE refused')")
	case 1:
		p.lines = append(p.lines, "return #r")
	default:
		p.lines = append(p.lines, "return r")
	}
	return strings.Join(p.lines, "\n")
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("in line %d\n%s\n%s", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d lines, and %d", len(x), len(y))
}

// TestShortAsLocked runs random scripts in several worlds, on both engines: under
// latches for as long as it goes, with locked keys, and promoted anywhere. All
// that can be seen must be the same, but for time.
func TestShortAsLocked(t *testing.T) {
	promoted := int64(0)
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		random := rand.New(rand.NewPCG(seed, 1))
		worlds := []*world{
			newWorld(t, "short", false, func() int64 { return 1 << 40 }),
			newWorld(t, "locked", false, func() int64 { return 0 }),
			newWorld(t, "mixed", false, func() int64 { return random.Int64N(200) * random.Int64N(200) }),
			newWorld(t, "short on the machine", true, func() int64 { return 1 << 40 }),
			newWorld(t, "mixed on the machine", true, func() int64 { return random.Int64N(200) * random.Int64N(200) }),
		}
		var replicas []*world
		for range worlds {
			replicas = append(replicas, newWorld(t, "replica", false, nil))
		}
		steps := rapid.IntRange(1, 12).Draw(rt, "steps")
		for range steps {
			script := drawProgram(rt)
			pass := time.Duration(rapid.IntRange(0, 30).Draw(rt, "ms")) * time.Millisecond
			way := rapid.IntRange(0, 3).Draw(rt, "way")
			var want string
			for i, w := range worlds {
				var got string
				switch args := []string{script, "3", "a", "b", "c", "arg"}; way {
				case 0:
					got = w.do("SCRIPT", "LOAD", script) + w.do(append([]string{"EVALSHA", SumSHA1([]byte(script)).String()}, args[1:]...)...)
				case 1:
					got = w.do(append([]string{"EVAL_RO"}, args...)...)
				default:
					got = w.do(append([]string{"EVAL"}, args...)...)
				}
				got += w.contents() + w.encodings() + w.do("DBSIZE") + strings.Join(w.events, "\n") + w.lines.String() + w.counted()
				w.events = nil
				w.lines.Reset()
				if i == 0 {
					want = got
				} else if got != want {
					rt.Fatalf("%s\n%s and %s differ: %s", script, worlds[0].name, w.name, firstDifference(want, got))
				}
			}
			for i, w := range worlds {
				w.replay(replicas[i])
				if got, want := replicas[i].contents(), w.contents(); got != want {
					rt.Fatalf("%s\n%s and its log, replayed, differ: %s\n%q", script, w.name, firstDifference(want, got), w.log.effects)
				}
			}
			for _, w := range slices.Concat(worlds, replicas) {
				w.clock.Advance(pass)
			}
		}
		for _, w := range worlds {
			w.do("FLUSHALL")
			if n := w.r.engine.Store.UsedMemory(); n != 0 {
				rt.Fatalf("%s: %d bytes are used by an empty store", w.name, n)
			}
		}
		promoted += worlds[2].r.engine.Store.Counter.Promotions.Load()
	})
	if promoted == 0 {
		t.Error("no script was promoted")
	}
}
