package proxy

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy/quoting"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// monitorCommand is MONITOR.
var monitorCommand = &command.Spec{
	Name: "monitor", Arity: 1, Access: command.Free, Handler: monitor,
	Flags: command.Admin | command.NoScript | command.Loading | command.Stale,
	Group: "server", Since: "1.0.0",
	Summary: "Shows every command that the server runs, as it does.",
	Differs: "The lines of a transaction or script leave together, when it has ended, and only if it was not undone.",
}

// monitors are the clients in MONITOR. Its mutex is taken before an output's.
type monitors struct {
	mu      sync.Mutex
	clients []*client
}

func monitor(c *command.Call) {
	cl := asClient(c)
	switch {
	case c.From != command.FromClient:
		c.Err("ERR MONITOR isn't allowed for DENY BLOCKING client")
		return
	case cl.monitoring.Load():
		return // as Redis: no reply
	}
	cl.beginPushes()
	m := &cl.s.monitor
	m.mu.Lock()
	defer m.mu.Unlock()
	cl.monitoring.Store(true)
	m.clients = append(m.clients, cl)
	cl.s.engine.Monitors.Add(1)
	if cl.reply == replyOn {
		cl.out.push([]byte("+OK\r\n")) // before any line
	}
}

// leave takes a client out that ends, or RESET. Its own goroutine calls it.
func (m *monitors) leave(c *client) {
	if !c.monitoring.Load() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clients = slices.DeleteFunc(m.clients, func(o *client) bool { return o == c })
	c.monitoring.Store(false)
	c.s.engine.Monitors.Add(-1)
}

// feed shows a command that has run. While its transaction is open (inTx) the
// line goes the way of the transaction's other events, so that one that is run
// again is shown once, and in the order of the commits.
func (m *monitors) feed(c *command.Call, inTx bool) {
	line := monitorLine(time.Now(), c)
	self, _ := c.S.Client.(*client)
	if inTx {
		c.Tx.Emit(store.Event{Kind: store.EventDo, Weight: len(line), Do: func() { m.push(line, self) }})
		return
	}
	m.push(line, self)
}

// push sends a line to all in MONITOR; self, whose command it is, reads it behind
// the reply, as in Redis.
func (m *monitors) push(line []byte, self *client) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.clients {
		if c == self {
			c.own.add(line)
			continue
		}
		c.out.push(line)
	}
}

// monitorLine is the line of a command:
//
//	+1700000000.123456 [0 127.0.0.1:40000] "SET" "k" "v"
func monitorLine(at time.Time, c *command.Call) []byte {
	args := withoutPasswords(c.Spec, c.Args)
	b := make([]byte, 0, 64+bytesOf(args)+3*len(args))
	b = fmt.Appendf(b, "+%d.%06d [%d ", at.Unix(), at.Nanosecond()/1000, c.S.DB)
	switch cl, ok := c.S.Client.(*client); {
	case c.From == command.FromScript:
		b = append(b, "lua"...)
	case !ok || c.From != command.FromClient && c.From != command.FromExec:
		b = append(b, "module"...)
	case cl.overUnix():
		b = append(b, "unix:"...)
		b = append(b, cl.conn.LocalAddr().String()...)
	default:
		b = append(b, cl.Addr()...)
	}
	b = append(b, ']')
	for _, a := range args {
		b = append(b, ' ')
		b = quoting.Append(b, a)
	}
	return append(b, '\r', '\n')
}

const redacted = "(redacted)"

// withoutPasswords replaces the arguments of AUTH and of HELLO AUTH, which
// neither MONITOR nor SLOWLOG may show. Redis shows those of a command with an
// error before them; latchkey does not.
func withoutPasswords(spec *command.Spec, args [][]byte) [][]byte {
	if spec.Parent() != nil {
		return args
	}
	switch spec.Name {
	case "auth":
		args = slices.Clone(args)
		redact(args[1:])
	case "hello":
		for i := 2; i < len(args); i++ {
			if bytes.EqualFold(args[i], []byte("auth")) {
				args = slices.Clone(args)
				redact(args[i+1 : min(i+3, len(args))])
				i += 2
			}
		}
	}
	return args
}

func redact(args [][]byte) {
	for i := range args {
		args[i] = []byte(redacted)
	}
}
