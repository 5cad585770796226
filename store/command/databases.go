package command

import "math"

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
			Differs: "there are no replicas: the answer is 0, at once.",
		},
		{
			Name: "waitaof", Arity: 4, Flags: NoScript, Categories: CatConnection, Access: Free, Handler: waitAOF,
			Summary: "Returns whether the connection's writes are in the append-only file, here and on replicas.", Since: "7.2.0", Group: "generic",
			Complexity: "O(1)", Syntax: "numlocal numreplicas timeout",
			Differs: "there are no replicas and no append-only file: the answer is 0 and 0, at once.",
		},
	}
}

func wait(c *Call) {
	if _, ok := c.Int(1); ok && c.waitTimeout(2) {
		c.Reply.Int(0)
	}
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
	replicas, ok := c.Int(2)
	if !ok {
		return
	}
	if replicas < 0 {
		c.Err(errPositive)
		return
	}
	if !c.waitTimeout(3) {
		return
	}
	if local != 0 {
		c.Err(errAppendOnlyOff)
		return
	}
	c.Reply.Array(2)
	c.Reply.Int(0)
	c.Reply.Int(0)
}

// waitTimeout checks argument i, a time in milliseconds.
func (c *Call) waitTimeout(i int) bool {
	ms, ok := ParseInt(c.Args[i])
	switch {
	case !ok:
		c.Err(errTimeoutInteger)
	case ms < 0:
		c.Err(ErrNegativeTimeout)
	case ms > math.MaxInt64-c.E.Store.Clock().NowMilli():
		c.Err(errTimeoutRange)
	default:
		return true
	}
	return false
}
