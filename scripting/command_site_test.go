package scripting

import (
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/store"
)

// TestCommandWords: what a command is called with is the same, wherever its words
// come from.
func TestCommandWords(t *testing.T) {
	for _, bb := range []struct {
		name string
		opts Options
	}{{"closures", Options{}}, {"vm", Options{VMOnly: true}}} {
		t.Run(bb.name, func(t *testing.T) {
			c := newRoomOn(t, Settings{}, store.Options{}, bb.opts).client()
			for _, tt := range []struct{ source, want string }{
				{`redis.call("rpush", KEYS[1], ARGV[1], 1, -2, 1e20, 0.5, "x", ARGV[2]) return redis.call("lrange", KEYS[1], 0, -1)`, "a 1 -2 1e+20 0.5 x "},
				{`local k, n = KEYS[1], 7 redis.call("rpush", k, n, n + 1, tostring(n)) return redis.call("lrange", k, 0, -1)`, "7 8 7"},
				{`redis.call("rpush", KEYS[1], unpack(ARGV)) return redis.call("lrange", KEYS[1], 0, -1)`, "a  c"},
				{`return redis.call("rpush", unpack({KEYS[1], "b"}))`, ":1"},
				{`local f = redis.call f("set", KEYS[1], "v") return f("get", KEYS[1])`, "v"},
				{`redis.call("set", KEYS[1], redis.call("incr", KEYS[1]) + redis.call("incr", KEYS[1])) return redis.call("get", KEYS[1])`, "3"},
				{`KEYS[1] = "other" redis.call("set", KEYS[1], ARGV[3]) return {redis.call("exists", "k"), redis.call("get", "other")}`, ":0 c"},
				{`local function change() KEYS[1] = "p" return "v" end redis.call("set", KEYS[1], change()) return redis.call("exists", "k")`, ":1"},
				{`local a = ARGV a[1] = "z" return redis.call("set", "z", ARGV[1]) and redis.call("get", "z")`, "z"},
				{`local ARGV = {"mine"} return redis.call("set", "z", ARGV[1]) and redis.call("get", "z")`, "mine"},
				{`local redis = {call = function() return "mine" end} return redis.call("get", ARGV[1])`, "mine"},
				{`redis.call("set", KEYS[1], ARGV[1]) return redis.call("get", KEYS[1]) == ARGV[1]`, ":1"},
				{`redis.call("set", KEYS[1], ARGV[2]) return redis.call("get", KEYS[1]) == ARGV[1]`, ""},
				{`return redis.pcall("get", KEYS[2])`, "-ERR Lua redis lib command arguments must be strings or integers"},
				{`return redis.pcall("get", ARGV[9])`, "-ERR Lua redis lib command arguments must be strings or integers"},
				{`return redis.pcall("get", nil)`, "-ERR Lua redis lib command arguments must be strings or integers"},
				{`return redis.pcall(unpack({}))`, "-ERR Please specify at least one argument for this redis lib call"},
				{`return #KEYS + #ARGV`, ":4"},
				{`return {KEYS[1], KEYS[2] or "none", ARGV[3], ARGV[4] or "none", ARGV[5] or "none", ARGV[0] or "none"}`, "k none c none none none"},
			} {
				c.do("DEL", "k", "other", "p", "z", "mine", "a")
				if got := bare(c.do("EVAL", tt.source, "1", "k", "a", "", "c")); got != tt.want {
					t.Errorf("%s\n got %v\nwant %v", tt.source, got, tt.want)
				}
			}
			// The words of one run are gone in the next.
			c.do("EVAL", `return {KEYS[1], ARGV[1], ARGV[2]}`, "1", "k", "secret", "more")
			if got := bare(c.do("EVAL", `return {KEYS[1] or "no", ARGV[1] or "no", ARGV[2] or "no", #ARGV}`, "0")); got != "no no no :0" {
				t.Errorf("a later run sees %v", got)
			}
		})
	}
}

// bare is a reply without its lengths.
func bare(reply string) string {
	var words []string
	for line := range strings.SplitSeq(strings.TrimSuffix(reply, "\r\n"), "\r\n") {
		if line == "" || line[0] != '$' && line[0] != '*' {
			words = append(words, line)
		}
	}
	return strings.Join(words, " ")
}
