package proxy

import (
	"slices"
	"strconv"

	"github.com/latchkey-proxy/latchkey/store/command"
)

const adminFlags = command.Admin | command.NoScript

// serverCommands are the Specs about the server itself, made anew for each server.
func serverCommands() []*command.Spec {
	return slices.Concat(
		infoCommands(), slowlogCommands(), latencyCommands(), memoryCommands(), aclCommands(), debugCommands(),
		[]*command.Spec{
			{
				Name: "time", Arity: 1, Flags: command.Loading | command.Stale | command.Fast, Access: command.Free, Instant: true, Handler: timeCommand,
				Group: "server", Since: "2.6.0", Complexity: "O(1)", Summary: "Returns the server's time: Unix seconds and microseconds.",
				Differs: "The store's clock, which steps of the machine's do not move.",
			},
			{
				Name: "lolwut", Arity: -1, Flags: command.ReadOnly | command.Fast, Access: command.Free, Handler: lolwut,
				Group: "server", Since: "5.0.0", Complexity: "O(1)", Summary: "Draws a key, and tells the version.",
				Syntax: "[VERSION version [teeth]]",
			},
			{
				Name: "role", Arity: 1, Flags: command.NoScript | command.Loading | command.Stale | command.Fast,
				Categories: command.CatAdmin | command.CatDangerous, Access: command.Free, Handler: role,
				Group: "server", Since: "2.8.12", Complexity: "O(1)", Summary: "Answers that this is a master without replicas.",
			},
			{
				Name: "replicaof", Arity: 3, Flags: adminFlags | command.Stale | command.NoAsyncLoading, Access: command.Free, Outside: true, Handler: replicaOf,
				Group: "server", Since: "5.0.0", Complexity: "O(1)", Summary: "NO ONE is answered OK; anything else is refused.",
				Syntax: "<host port | NO ONE>", Differs: "latchkey is nobody's replica.",
			},
			{
				Name: "slaveof", Arity: 3, Flags: adminFlags | command.Stale | command.NoAsyncLoading, Access: command.Free, Outside: true, Handler: replicaOf,
				Group: "server", Since: "1.0.0", Complexity: "O(1)", Summary: "The old name of REPLICAOF.",
				Syntax: "<host port | NO ONE>", Differs: "latchkey is nobody's replica.",
			},
			{
				Name: "shutdown", Arity: -1, Access: command.Free, Outside: true, Handler: shutdown,
				Flags: adminFlags | command.Loading | command.Stale | command.NoMulti | command.AllowBusy,
				Group: "server", Since: "1.0.0", Complexity: "O(1)",
				Summary: "Lets clients finish what they are in, and ends the server.", Syntax: "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
				Differs: "There is no snapshot to save: SAVE, NOSAVE, NOW and FORCE change nothing. A shutdown cannot be aborted.",
			},
			{
				Name: "save", Arity: 1, Flags: adminFlags | command.NoAsyncLoading | command.NoMulti, Access: command.Free, Handler: noSnapshot,
				Group: "server", Since: "1.0.0", Complexity: "O(1)", Summary: "Answers that there are no snapshots.",
				Differs: "Not supported.",
			},
			{
				Name: "bgsave", Arity: -1, Flags: adminFlags | command.NoAsyncLoading, Access: command.Free, Handler: backgroundSave,
				Group: "server", Since: "1.0.0", Complexity: "O(1)", Summary: "Answers that there are no snapshots.", Syntax: "[SCHEDULE]",
				Differs: "Not supported.",
			},
			{
				Name: "lastsave", Arity: 1, Flags: command.Loading | command.Stale | command.Fast,
				Categories: command.CatAdmin | command.CatDangerous, Access: command.Free, Handler: lastSave,
				Group: "server", Since: "1.0.0", Complexity: "O(1)",
				Summary: "Returns when the server started: as in Redis, the time of the last save if nothing was ever saved.",
			},
			{
				Name: "bgrewriteaof", Arity: 1, Flags: adminFlags | command.NoAsyncLoading, Access: command.Free, Handler: rewriteAOF,
				Group: "server", Since: "1.0.0", Complexity: "O(1)", Summary: "Answers that there is no append-only file.",
				Differs: "Not supported yet.",
			},
		},
	)
}

func timeCommand(c *command.Call) {
	now := asServer(c).clock.NowMicro()
	c.Reply.Array(2)
	c.Reply.BulkString(strconv.FormatInt(now/1e6, 10))
	c.Reply.BulkString(strconv.FormatInt(now%1e6, 10))
}

func role(c *command.Call) {
	c.Reply.Array(3)
	c.Reply.BulkString("master")
	c.Reply.Int(0)
	c.Reply.Array(0)
}

func replicaOf(c *command.Call) {
	if c.Is(1, "no") && c.Is(2, "one") {
		c.OK()
		return
	}
	if port, ok := command.ParseInt(c.Args[2]); !ok || port < 0 || port > 65535 {
		c.Err("ERR Invalid master port")
		return
	}
	c.Err("ERR latchkey does not replicate: it cannot become a replica. To stand in front of a server, start it with upstream redis://host:port")
}

func shutdown(c *command.Call) {
	var save, noSave, others, abort bool
	for i := 1; i < len(c.Args); i++ {
		switch {
		case c.Is(i, "nosave"):
			noSave = true
		case c.Is(i, "save"):
			save = true
		case c.Is(i, "now"), c.Is(i, "force"):
			others = true
		case c.Is(i, "abort"):
			abort = true
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	switch {
	case save && noSave, abort && (save || noSave || others):
		c.Err(command.ErrSyntax)
		return
	case abort:
		c.Err("ERR No shutdown in progress.")
		return
	}
	s := asServer(c)
	if s.opt.Shutdown == nil {
		c.Err("ERR SHUTDOWN is not possible: the program around this server does not provide for it")
		return
	}
	s.opt.Shutdown()
	// No reply: the connection's end is the answer.
	if cl, ok := c.S.Client.(*client); ok {
		cl.quitting = true
	}
}

const errNoSnapshot = "ERR latchkey writes no RDB snapshots"

func noSnapshot(c *command.Call) { c.Err(errNoSnapshot) }

func backgroundSave(c *command.Call) {
	if len(c.Args) > 2 || len(c.Args) == 2 && !c.Is(1, "schedule") {
		c.Err(command.ErrSyntax)
		return
	}
	c.Err(errNoSnapshot)
}

func lastSave(c *command.Call) { c.Reply.Int(asServer(c).started.Unix()) }

func rewriteAOF(c *command.Call) {
	c.Err("ERR latchkey keeps no append-only file: there is nothing to rewrite")
}
