package proxy

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// What one entry of the slow log keeps of a command, as in Redis.
const (
	slowMaxArgs  = 32
	slowMaxBytes = 128 // of one argument
)

const slowlogFlags = command.Admin | command.Loading | command.Stale

// slowlogCommands are the Specs of this family, made anew for each server.
func slowlogCommands() []*command.Spec {
	return []*command.Spec{{
		Name: "slowlog", Arity: -2, Access: command.Free, Group: "server", Since: "2.2.12", Complexity: "Depends on subcommand.",
		Summary: "A container for commands about the slow log.",
		Help: []string{
			"GET [<count>]",
			"    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
			"    Entries are made of:",
			"    id, timestamp, time in microseconds, arguments array, client IP and port,",
			"    client name",
			"LEN",
			"    Return the length of the slowlog.",
			"RESET",
			"    Reset the slowlog.",
		},
		Sub: []*command.Spec{
			{
				Name: "get", Arity: -2, Flags: slowlogFlags, Access: command.Free, Handler: slowlogGet,
				Group: "server", Since: "2.2.12", Complexity: "O(N) where N is the number of entries returned",
				Summary: "Returns the newest entries of the slow log.", Syntax: "[count]",
			},
			{
				Name: "len", Arity: 2, Flags: slowlogFlags, Access: command.Free, Handler: slowlogLen,
				Group: "server", Since: "2.2.12", Complexity: "O(1)", Summary: "Counts the entries of the slow log.",
			},
			{
				Name: "reset", Arity: 2, Flags: slowlogFlags, Access: command.Free, Outside: true, Handler: slowlogReset,
				Group: "server", Since: "2.2.12", Complexity: "O(N) where N is the number of entries in the slowlog",
				Summary: "Empties the slow log.",
			},
			command.HelpSpec("slowlog", "6.2.0"),
		},
	}}
}

// slowlog are the commands that took long, oldest first.
type slowlog struct {
	mu      sync.Mutex
	entries []slowEntry
	nextID  int64
}

// slowEntry is one slow command, with bytes of its own.
type slowEntry struct {
	id     int64
	at     int64 // Unix seconds
	micros int64
	args   [][]byte
	addr   string
	name   string
}

// slow is told of each command that took at least Engine.SlowAfter. The
// arguments' bytes are copied for what is logged, and for nothing else.
func (s *Server) slow(c *command.Call, nanos int64) {
	if c.Tx != nil && c.Tx.Clash() {
		return // it did not come to its end and will run again
	}
	micros := nanos / int64(time.Microsecond)
	s.latency.command(s, c.Spec, micros/1000)
	if limit := s.cfg.Int("slowlog-log-slower-than"); limit < 0 || micros < limit {
		return
	}
	e := slowEntry{at: s.seconds(), micros: micros, args: slowArgs(s.forSlowlog(c.Spec, c.Args))}
	if note := scriptNote(c); note != "" {
		e.args = append(e.args, []byte(note))
	}
	if c.S.Client != nil {
		e.addr, e.name = c.S.Client.Addr(), c.S.Client.Name()
	}
	s.slowlog.add(e, s.cfg.Int("slowlog-max-len"))
}

// scriptNote says of a script what may have made it slow and its author can mend.
// It stands behind the arguments, because clients know an entry's other fields by
// their number.
func scriptNote(c *command.Call) string {
	if c.Tx == nil || c.From > command.FromExec || c.Spec.AllCategories()&command.CatScripting == 0 {
		return ""
	}
	late, reruns := c.Tx.Late(), c.Tx.Reruns()
	if late == 0 && reruns == 0 {
		return ""
	}
	return "... (" + strconv.Itoa(late) + " undeclared keys, " + strconv.Itoa(reruns) + " reruns)"
}

// forSlowlog are a command's arguments as SLOWLOG may show them: without
// passwords, the values of directives that are secrets, and what ACL is told of
// users.
func (s *Server) forSlowlog(spec *command.Spec, args [][]byte) [][]byte {
	parent := spec.Parent()
	switch {
	case parent == nil:
		return withoutPasswords(spec, args)
	case parent.Name == "config" && spec.Name == "set":
		args = slices.Clone(args)
		for i := 2; i+1 < len(args); i += 2 {
			if s.cfg.Redacted(string(args[i])) {
				args[i+1] = []byte(redacted)
			}
		}
	case parent.Name == "acl" && (spec.Name == "setuser" || spec.Name == "deluser" || spec.Name == "getuser"):
		args = slices.Clone(args)
		for i := 2; i < len(args); i++ {
			args[i] = []byte(redacted)
		}
	}
	return args
}

// slowArgs copies what is kept of the arguments.
func slowArgs(args [][]byte) [][]byte {
	shown := args
	if len(shown) > slowMaxArgs {
		shown = args[:slowMaxArgs-1]
	}
	out := make([][]byte, 0, min(len(args), slowMaxArgs))
	for _, a := range shown {
		var kept []byte
		if more := len(a) - slowMaxBytes; more > 0 {
			kept = append(kept, a[:slowMaxBytes]...)
			kept = append(kept, "... ("...)
			kept = strconv.AppendInt(kept, int64(more), 10)
			kept = append(kept, " more bytes)"...)
		} else {
			kept = append(kept, a...)
		}
		out = append(out, kept)
	}
	if more := len(args) - len(shown); more > 0 {
		out = append(out, []byte("... ("+strconv.Itoa(more)+" more arguments)"))
	}
	return out
}

func (l *slowlog) add(e slowEntry, maxLen int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.id = l.nextID
	l.nextID++
	l.entries = append(l.entries, e)
	if over := int64(len(l.entries)) - maxLen; over > 0 {
		clear(l.entries[:over]) // the slice's head stays allocated until it grows
		l.entries = l.entries[over:]
	}
}

func slowlogGet(c *command.Call) {
	if len(c.Args) > 3 {
		c.Err(command.UnknownSubcommand(c.Spec, c.Args[1]))
		return
	}
	count := int64(10)
	if len(c.Args) == 3 {
		n, ok := command.ParseInt(c.Args[2])
		if !ok || n < -1 {
			c.Err("ERR count should be greater than or equal to -1")
			return
		}
		count = n
	}
	l := &asServer(c).slowlog
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := int64(len(l.entries)); count < 0 || count > n {
		count = n
	}
	r := c.Reply
	r.Array(int(count))
	for i := range int(count) {
		e := &l.entries[len(l.entries)-1-i]
		r.Array(6)
		r.Int(e.id)
		r.Int(e.at)
		r.Int(e.micros)
		r.Array(len(e.args))
		for _, a := range e.args {
			r.Bulk(a)
		}
		r.BulkString(e.addr)
		r.BulkString(e.name)
	}
}

func slowlogLen(c *command.Call) {
	l := &asServer(c).slowlog
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Reply.Int(int64(len(l.entries)))
}

func slowlogReset(c *command.Call) {
	l := &asServer(c).slowlog
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
	c.OK()
}
