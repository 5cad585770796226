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
	c.send("EVAL", "return redis.call('set', 'lock:b', 'undeclared')", "1", "lock:a")
	if got := c.read(); got != "+OK" {
		t.Errorf("a script on an undeclared key of latchkey's: %s, want +OK", got)
	}
}
