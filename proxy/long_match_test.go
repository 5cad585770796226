package proxy

import (
	"strings"
	"testing"
	"time"
)

// A match of a name and a pattern that a client has chosen may take days. Whoever
// kills the client, or the script that has called, ends it.
func TestLongMatchIsKilled(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	hostile := "*" + long[:1<<19] + "b"
	for name, command := range map[string][]string{
		"KEYS":                {"KEYS", hostile},
		"SCAN":                {"SCAN", "0", "MATCH", hostile, "COUNT", "1000"},
		"SSCAN":               {"SSCAN", "set", "0", "MATCH", hostile, "COUNT", "1000"},
		"PUBSUB CHANNELS":     {"PUBSUB", "CHANNELS", hostile},
		"KEYS in EXEC":        {"EXEC"},
		"KEYS in a script":    {"EVAL", "return redis.call('KEYS', ARGV[1])", "0", hostile},
		"pcall in a script":   {"EVAL", "while true do redis.pcall('PUBSUB', 'CHANNELS', ARGV[1]) end", "0", hostile},
		"SSCAN in a function": {"FCALL", "f", "0", hostile},
	} {
		t.Run(name, func(t *testing.T) {
			s := startScripts(t)
			c, killer, listener := s.dial(t), s.dial(t), s.dial(t)
			for _, fill := range [][]string{
				{"SET", long, "1"},
				{"SADD", "set", long},
				{"SADD", "set", "other"},
				{"FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function(_, a) return redis.call('SSCAN', 'set', 0, 'MATCH', a[1], 'COUNT', 1000) end)"},
			} {
				killer.send(fill...)
				killer.read()
			}
			listener.send("SUBSCRIBE", long)
			listener.read()
			c.send("CLIENT", "ID")
			id := strings.TrimPrefix(c.read(), ":")
			if command[0] == "EXEC" {
				for _, queue := range [][]string{{"MULTI"}, {"KEYS", hostile}} {
					c.send(queue...)
					c.read()
				}
			}
			c.send(command...)
			time.Sleep(100 * time.Millisecond) // it is under way, or is never begun
			killer.want("CLIENT KILL ID "+id, ":1")
			eventually(t, "the client has gone", func() bool {
				killer.send("CLIENT", "LIST", "ID", id)
				return killer.read() == `""`
			})
		})
	}
}
