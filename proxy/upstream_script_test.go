package proxy

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/scripting"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// TestUpstreamKeysInScripts: a script on a key of latchkey's that touches one of
// the upstream's, undeclared, must neither see nor make a phantom of it here.
func TestUpstreamKeysInScripts(t *testing.T) {
	redis := startRedis(t)
	engine, err := scripting.New(scripting.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	scripts := scripting.NewRunner(engine, scripting.Settings{}, 1, log)
	c := startServerWith(t, Options{Families: [][]*command.Spec{scripts.Specs()}},
		"--upstream", "redis://"+redis, "--own", "lock:*").dial(t)
	c.each("the upstream's key", "SET user:1 theirs", "+OK")
	for _, script := range []string{
		"redis.call('set', KEYS[1], 'x') return redis.call('get', 'user:1')",
		"redis.call('set', KEYS[1], 'x') return redis.call('set', 'user:1', 'phantom')",
		"redis.call('set', KEYS[1], 'x') return redis.call('mset', KEYS[1], 'y', 'user:1', 'phantom')",
	} {
		c.send("EVAL", script, "1", "lock:a")
		if got := c.read(); len(got) < 11 || got[:11] != "-CROSSOWNER" {
			t.Errorf("%s\n got  %s\n want -CROSSOWNER", script, got)
		}
		c.each("after it", "GET user:1", `"theirs"`, "EXISTS lock:a", ":0")
	}
	// A script that was loaded runs on either side.
	c.send("SCRIPT", "LOAD", "return {KEYS[1], redis.call('get', KEYS[1])}")
	sha := strings.Trim(c.read(), `"`)
	c.each("EVALSHA on both sides", "SET lock:c mine", "+OK",
		"EVALSHA "+sha+" 1 user:1", `*["user:1" "theirs"]`, "EVALSHA "+sha+" 1 lock:c", `*["lock:c" "mine"]`)
	c.each("after SCRIPT FLUSH", "SCRIPT FLUSH", "+OK", "EVALSHA "+sha+" 1 lock:c", "-"+command.ErrNoScript,
		"EVALSHA "+sha+" 1 user:1", "-"+command.ErrNoScript)
	// So does a function, and what becomes of its library it does on both sides.
	load := func(reply string) {
		t.Helper()
		c.send("FUNCTION", "LOAD", "REPLACE", "#!lua name=both\nredis.register_function('where', function(keys) return redis.call('get', keys[1]) .. '"+reply+"' end)")
		if got := c.read(); got != `"both"` {
			t.Errorf("FUNCTION LOAD: %s", got)
		}
		c.each("FCALL on both sides", "FCALL where 1 user:1", `"theirs`+reply+`"`, "FCALL where 1 lock:c", `"mine`+reply+`"`)
	}
	load("!")
	payload := c.text("FUNCTION", "DUMP")
	load("?")
	c.send("FUNCTION", "RESTORE", payload, "REPLACE")
	if got := c.read(); got != "+OK" {
		t.Errorf("FUNCTION RESTORE: %s", got)
	}
	c.each("after FUNCTION RESTORE", "FCALL where 1 user:1", `"theirs!"`, "FCALL where 1 lock:c", `"mine!"`,
		"FCALL where 2 lock:c user:1", "-"+command.ErrCrossOwner)
	c.each("after FUNCTION DELETE", "FUNCTION DELETE both", "+OK", "FCALL where 1 lock:c", "-ERR Function not found",
		"FCALL where 1 user:1", "-ERR Function not found")
	c.send("EVAL", "return redis.call('set', 'lock:b', 'undeclared')", "1", "lock:a")
	if got := c.read(); got != "+OK" {
		t.Errorf("a script on an undeclared key of latchkey's: %s, want +OK", got)
	}
}
