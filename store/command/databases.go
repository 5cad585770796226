package command

import (
	"errors"
	"math"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
)

func databaseCommands() []*Spec {
	const flushType = "[ASYNC | SYNC]"
	return []*Spec{
		{
			Name: "select", Arity: 2, Flags: Loading | Stale | Fast, Categories: CatConnection,
			Access: Free, Handler: selectDB,
			Summary: "Changes the database that the connection works on.", Since: "1.0.0", Group: "connection",
			Complexity: "O(1)", Syntax: "index",
		},
		{
			Name: "swapdb", Arity: 3, Flags: Write | Fast, Categories: CatKeyspace | CatDangerous,
			Access: Alone, Handler: swapDB,
			Summary: "Exchanges two databases for all connections at once.", Since: "4.0.0", Group: "server",
			Complexity: "O(N) where N is the number of keys watched.", Syntax: "index1 index2",
		},
		{
			Name: "flushdb", Arity: -1, Flags: Write, Categories: CatKeyspace | CatDangerous,
			Access: Alone, Handler: flushDB,
			Summary: "Empties the selected database.", Since: "1.0.0", Group: "server",
			Complexity: "O(N) where N is the number of keys in the database.", Syntax: flushType,
			Differs: "ASYNC and SYNC do the same: memory is reclaimed in the background.",
		},
		{
			Name: "flushall", Arity: -1, Flags: Write, Categories: CatKeyspace | CatDangerous,
			Access: Alone, Handler: flushAll,
			Summary: "Empties all databases.", Since: "1.0.0", Group: "server",
			Complexity: "O(N) where N is the number of keys in all databases.", Syntax: flushType,
			Differs: "ASYNC and SYNC do the same: memory is reclaimed in the background.",
		},
		{
			Name: "dbsize", Arity: 1, Flags: ReadOnly | Fast, Categories: CatKeyspace,
			Access: Visits, Handler: dbSize,
			Summary: "Returns the number of keys in the selected database.", Since: "1.0.0", Group: "server",
			Complexity: "O(1)",
		},
	}
}

func selectDB(c *Call) {
	db, msg := c.parseDB(1)
	if msg != "" {
		c.Err(msg)
		return
	}
	c.S.DB = db
	c.OK()
}

func swapDB(c *Call) {
	a, aOK := ParseInt(c.Args[1])
	b, bOK := ParseInt(c.Args[2])
	n := int64(c.E.Store.Databases())
	switch {
	case !aOK || a != int64(int32(a)):
		c.Err(errFirstDB)
	case !bOK || b != int64(int32(b)):
		c.Err(errSecondDB)
	case a < 0 || a >= n || b < 0 || b >= n:
		c.Err(ErrDBIndex)
	default:
		c.Tx.SwapDB(int(a), int(b))
		c.OK()
	}
}

// flushes checks the options of FLUSHDB and FLUSHALL.
func (c *Call) flushes() bool {
	if len(c.Args) > 2 || len(c.Args) == 2 && !c.Is(1, "async") && !c.Is(1, "sync") {
		c.Err(ErrSyntax)
		return false
	}
	return true
}

func flushDB(c *Call) {
	if c.flushes() {
		c.Tx.FlushDB(c.S.DB)
		c.OK()
	}
}

func flushAll(c *Call) {
	if c.flushes() {
		c.Tx.FlushAll()
		c.OK()
	}
}

func dbSize(c *Call) { c.Reply.Int(c.Tx.Size(c.S.DB)) }

func waitCommands() []*Spec {
	return []*Spec{
		{
			Name: "wait", Arity: 3, Categories: CatConnection, Access: Free, Handler: wait,
			Summary: "Returns how many replicas have the connection's writes.", Since: "3.0.0", Group: "generic",
			Complexity: "O(1)", Syntax: "numreplicas timeout",
			Differs: "There are no replicas: a client that asks for some waits for its whole timeout, and the answer is 0.",
		},
		{
			Name: "waitaof", Arity: 4, Flags: NoScript, Categories: CatConnection, Access: Free, Handler: waitAOF,
			Summary: "Returns whether the connection's writes are in the append-only file, here and on replicas.", Since: "7.2.0", Group: "generic",
			Complexity: "O(1)", Syntax: "numlocal numreplicas timeout",
			Differs: "There are no replicas and no append-only file: a client that asks for replicas waits for its whole timeout, and the answer is 0 and 0.",
		},
	}
}

func wait(c *Call) {
	replicas, ok := c.Int(1)
	if !ok {
		return
	}
	if timeout, ok := c.waitTimeout(2); ok && c.waitReplicas(replicas, timeout) {
		c.Reply.Int(0)
	}
}

// waitReplicas lets the time pass in which replicas could tell of the writes,
// though there are none: whoever asks for some counts on that time. As in Redis,
// 0 ms is for ever and transactions and scripts do not wait.
func (c *Call) waitReplicas(n int64, timeout time.Duration) bool {
	if n <= 0 || c.From != FromClient || c.S.Wait == nil {
		return true
	}
	w := *c.S.Wait
	w.Timeout = timeout
	if err := w.Pass(); !errors.Is(err, store.ErrTimeout) {
		c.Err(WaitError(err))
		return false
	}
	return true
}

func waitAOF(c *Call) {
	local, ok := c.Int(1)
	if !ok {
		return
	}
	if local != 0 && local != 1 {
		c.Err(errBoolRange)
		return
	}
	replicas, ok := ParseInt(c.Args[2])
	if !ok || replicas < 0 {
		c.Err(errPositive)
		return
	}
	timeout, ok := c.waitTimeout(3)
	if !ok {
		return
	}
	if local != 0 {
		c.Err(errAppendOnlyOff)
		return
	}
	if !c.waitReplicas(replicas, timeout) {
		return
	}
	c.Reply.Array(2)
	c.Reply.Int(0)
	c.Reply.Int(0)
}

// waitTimeout checks argument i, a time in milliseconds.
func (c *Call) waitTimeout(i int) (time.Duration, bool) {
	ms, ok := ParseInt(c.Args[i])
	switch {
	case !ok:
		c.Err(errTimeoutInteger)
	case ms < 0:
		c.Err(ErrNegativeTimeout)
	case ms > math.MaxInt64-c.E.Store.Clock().NowMilli():
		c.Err(errTimeoutRange)
	default:
		return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond, true
	}
	return 0, false
}
