package proxy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// Within EXEC the commands that act beyond the keyspace leave the client and its
// replies in order, as redis-server does.
func TestExecOfCommandsBeyondTheKeyspace(t *testing.T) {
	s := startServer(t)
	judge := startRedis(t)
	long := make([]string, 0, 202)
	long = append(long, "MULTI")
	for range 200 {
		long = append(long, "INCR n")
	}
	long = append(long, "EXEC")
	for name, lines := range map[string][]string{
		"select, then an error":      {"MULTI", "SELECT 5", "SET k 5", "INCR k k", "SELECT 99", "GET k", "EXEC", "GET k"},
		"select fails, keys go on":   {"MULTI", "SELECT 99", "SET k 0", "SELECT 3", "SET k 3", "EXEC", "GET k", "SELECT 0", "GET k"},
		"reply skip":                 {"MULTI", "CLIENT REPLY SKIP", "SET k 2", "EXEC", "GET k", "GET k"},
		"quit":                       {"MULTI", "SET k 1", "QUIT"},
		"reset":                      {"SELECT 3", "MULTI", "SET k 1", "RESET", "GET k", "EXEC"},
		"config":                     {"MULTI", "CONFIG SET maxmemory 100mb", "SET k 1", "CONFIG GET maxmemory", "EXEC", "CONFIG SET maxmemory 0"},
		"flushall":                   {"SET k 1", "MULTI", "FLUSHALL", "SET k 2", "DBSIZE", "EXEC", "GET k"},
		"swapdb":                     {"SET k 0", "MULTI", "SWAPDB 0 1", "GET k", "SET k 1", "SELECT 1", "GET k", "EXEC", "GET k"},
		"watch and swapdb":           {"SET k 0", "WATCH k", "SWAPDB 0 1", "MULTI", "GET k", "EXEC"},
		"watch and flushall":         {"SET k 0", "WATCH k", "FLUSHALL", "MULTI", "GET k", "EXEC"},
		"watch, flushall of nothing": {"WATCH k", "FLUSHALL", "MULTI", "GET k", "EXEC"},
		"watch in multi":             {"MULTI", "WATCH k", "EXEC"},
		"nested multi":               {"MULTI", "MULTI", "SET k 1", "EXEC"},
		"unknown command":            {"MULTI", "NOSUCH k", "SET k 1", "EXEC", "GET k"},
		"wrong arity":                {"MULTI", "GET", "EXEC", "EXEC"},
		"not allowed":                {"MULTI", "SHUTDOWN x", "EXEC"},
		"subscribe":                  {"MULTI", "SUBSCRIBE a b", "GET k", "EXEC", "PING", "UNSUBSCRIBE a", "UNSUBSCRIBE b", "GET k"},
		"subscribe twice":            {"MULTI", "PSUBSCRIBE a*", "PUNSUBSCRIBE a*", "GET k", "EXEC", "GET k"},
		"monitor":                    {"MULTI", "SET k 1", "UNWATCH", "EXEC", "GET k"},
		"wait":                       {"MULTI", "WAIT 1 0", "SET k 1", "EXEC"},
		"hello":                      {"MULTI", "HELLO 4", "SET k 1", "EXEC"},
		"discard":                    {"WATCH k", "MULTI", "SET k 1", "DISCARD", "DISCARD", "MULTI", "SET k 2", "EXEC"},
		"long":                       long,
		"blocking":                   {"MULTI", "OBJECT HELP x", "EXEC", "MULTI", "PING a b", "EXEC"},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := s.dial(t), dial(t, judge)
			ours.want("FLUSHALL", "+OK")
			theirs.want("FLUSHALL", "+OK")
			ours.inline(append(lines, "ECHO the-end")...)
			theirs.inline(append(lines, "ECHO the-end")...)
			for {
				got, want := ours.read(), theirs.read()
				if got != want {
					t.Fatalf("\n have %s\n want %s", got, want)
				}
				if got == "(closed)" || strings.Contains(got, "the-end") {
					return
				}
			}
		})
	}
}

// A transaction that must begin anew, here because a command within touches a key
// that it did not declare and that is held, answers once and does all of it once.
func TestExecBegunAnew(t *testing.T) {
	h := newHolding()
	undeclared := &command.Spec{
		Name: "reachout", Arity: -2, Access: command.Locked, Flags: command.Write,
		Keys: []command.KeySpec{{Begin: 2, Last: -1, Flags: command.KeyRW | command.KeyAccess | command.KeyUpdate}},
		Handler: func(c *command.Call) {
			inner := command.Call{S: c.S, Spec: c.E.Table.Lookup([]byte("incr")), Args: [][]byte{[]byte("incr"), c.Args[1]}, Tx: c.Tx, Reply: c.Reply, From: command.FromScript}
			c.E.Exec(&inner)
		},
		Group: "generic", Since: "7.0.0", Complexity: "O(1)", Summary: "For tests.", Syntax: "word [key [key ...]]",
	}
	s := startServer(t, h.family(), []*command.Spec{undeclared})
	holder, c := s.dial(t), s.dial(t)
	for round := 1; round <= 3; round++ {
		holder.send("HOLD", "far")
		<-h.has
		c.inline("PING", "SELECT 0", "MULTI", "INCR near", "PUBLISH ch m", "SELECT 0", "CLIENT SETNAME me", "REACHOUT far", "GET near", "EXEC", "PING")
		s.blocked(t, 1)
		h.release <- struct{}{}
		holder.read()
		want := []string{
			"+PONG", "+OK", "+OK", "+QUEUED", "+QUEUED", "+QUEUED", "+QUEUED", "+QUEUED", "+QUEUED",
			fmt.Sprintf(`*[:%d :0 +OK +OK :%d "%d"]`, round, round, round), "+PONG",
		}
		for i, w := range want {
			if got := c.read(); got != w {
				t.Fatalf("round %d, reply %d: %s, want %s", round, i, got, w)
			}
		}
	}
	// A killed client that waits in its rerun leaves nothing behind.
	holder.send("HOLD", "far")
	<-h.has
	c.inline("MULTI", "INCR near", "REACHOUT far", "EXEC")
	s.blocked(t, 1)
	holder2 := s.dial(t)
	holder2.want("CLIENT KILL TYPE normal SKIPME yes", ":2")
	s.blocked(t, 0)
	holder2.want("GET near", `"3"`)
	h.release <- struct{}{}
	holder2.want("SET near 1", "+OK")
	holder2.want("SET far 1", "+OK")
}
