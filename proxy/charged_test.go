package proxy

import (
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/scripting"
)

// TestServerCommandsChargeTheScript: what the server tells costs the script that asks.
func TestServerCommandsChargeTheScript(t *testing.T) {
	e, err := scripting.New(scripting.Options{})
	if err != nil {
		t.Fatal(err)
	}
	limited := scripting.Settings{Limits: scripting.Limits{Instructions: 20_000}}
	runner := scripting.NewRunner(e, limited, 1, slog.New(slog.NewTextHandler(io.Discard, nil)))
	s := startServer(t, runner.Specs())
	c, listener := s.dial(t), s.dial(t)
	for i := range 100 {
		listener.do("SUBSCRIBE channel:" + strconv.Itoa(i))
		listener.do("PSUBSCRIBE pattern:" + strconv.Itoa(i) + ":*")
	}
	for _, call := range []string{
		"'COMMAND'", "'COMMAND', 'DOCS'", "'COMMAND', 'LIST'", "'COMMAND', 'LIST', 'FILTERBY', 'PATTERN', 'none'", "'COMMAND', 'INFO'",
		"'INFO'", "'INFO', 'everything'", "'MEMORY', 'STATS'", "'PUBSUB', 'CHANNELS'", "'PUBSUB', 'CHANNELS', 'none'", "'PUBLISH', 'none', 'x'",
	} {
		c.send("EVAL", "for i = 1, 50 do redis.pcall("+call+") end return 'end'", "0")
		if got := c.read(); !strings.HasPrefix(got, "-ERR Script exceeded its instruction budget") {
			t.Errorf("50 times %s answer %.100s", call, got)
		}
	}
	c.send("EVAL", "for i = 1, 50 do redis.call('PING') end return 'end'", "0")
	if got := c.read(); got != `"end"` {
		t.Errorf("50 times PING answer %s", got)
	}
}
