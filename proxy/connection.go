package proxy

import (
	"strings"

	"github.com/latchkey-proxy/latchkey/store/command"
)

const connectionFlags = command.NoScript | command.Loading | command.Stale | command.Fast

// connectionCommands are the Specs of this family, made anew for each server.
func connectionCommands() []*command.Spec {
	return []*command.Spec{
		{
			Name: "ping", Arity: -1, Flags: command.Fast, Categories: command.CatConnection, Access: command.Free, Instant: true, Handler: ping,
			Group: "connection", Since: "1.0.0", Complexity: "O(1)", Summary: "Answers PONG, or its argument.", Syntax: "[message]",
		},
		{
			Name: "echo", Arity: 2, Flags: command.Loading | command.Stale | command.Fast, Categories: command.CatConnection, Access: command.Free, Instant: true, Handler: echo,
			Group: "connection", Since: "1.0.0", Complexity: "O(1)", Summary: "Answers its argument.", Syntax: "message",
		},
		{
			Name: "auth", Arity: -2, Flags: connectionFlags | command.NoAuth | command.AllowBusy,
			Categories: command.CatConnection, Access: command.Free, Handler: auth,
			Group: "connection", Since: "1.0.0", Complexity: "O(N) where N is the number of passwords defined for the user",
			Summary: "Authenticates the connection.", Syntax: "[username] password",
		},
		{
			Name: "hello", Arity: -1, Flags: connectionFlags | command.NoAuth | command.AllowBusy,
			Categories: command.CatConnection, Access: command.Free, Handler: hello,
			Group: "connection", Since: "6.0.0", Complexity: "O(1)",
			Summary: "Chooses the protocol version, authenticates and names the connection.", Syntax: "[protover [AUTH username password] [SETNAME clientname]]",
		},
		{
			Name: "quit", Arity: -1, Flags: connectionFlags | command.NoAuth | command.AllowBusy,
			Categories: command.CatConnection, Access: command.Free, Handler: quit,
			Group: "connection", Since: "1.0.0", Complexity: "O(1)", Summary: "Closes the connection.",
		},
		{
			Name: "reset", Arity: 1, Flags: connectionFlags | command.NoAuth | command.AllowBusy,
			Categories: command.CatConnection, Access: command.Free, Handler: reset,
			Group: "connection", Since: "6.2.0", Complexity: "O(1)", Summary: "Puts the connection back into its first state.",
		},
	}
}

func ping(c *command.Call) {
	if len(c.Args) > 2 {
		c.Err(command.WrongArity(c.Spec))
		return
	}
	if cl, ok := c.S.Client.(*client); ok && c.S.Proto == 2 && cl.subs.any.Load() {
		// As Redis: a RESP2 subscriber gets something that looks like a message.
		c.Reply.Array(2)
		c.Reply.BulkString("pong")
		if len(c.Args) == 2 {
			c.Reply.Bulk(c.Args[1])
		} else {
			c.Reply.BulkString("")
		}
		return
	}
	if len(c.Args) == 2 {
		c.Reply.Bulk(c.Args[1])
		return
	}
	c.Reply.Status("PONG")
}

func echo(c *command.Call) { c.Reply.Bulk(c.Args[1]) }

func auth(c *command.Call) {
	cl := asClient(c)
	if len(c.Args) > 3 {
		c.Err(command.ErrSyntax)
		return
	}
	user, given := "default", c.Args[1]
	if len(c.Args) == 3 {
		user, given = string(c.Args[1]), c.Args[2]
	} else if cl.s.auth.Load() == nil {
		c.Err("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
		return
	}
	if msg, ok := cl.authenticate(user, given); !ok {
		c.Err(msg)
		return
	}
	c.OK()
}

func hello(c *command.Call) {
	cl := asClient(c)
	version := 0
	next := 1
	if len(c.Args) > 1 {
		n, ok := command.ParseInt(c.Args[1])
		if !ok {
			c.Err("ERR Protocol version is not an integer or out of range")
			return
		}
		if n < 2 || n > 3 {
			c.Err("NOPROTO unsupported protocol version")
			return
		}
		version, next = int(n), 2
	}
	var user, given, name []byte
	withAuth, withName := false, false
	for ; next < len(c.Args); next++ {
		more := len(c.Args) - 1 - next
		switch {
		case c.Is(next, "auth") && more >= 2:
			user, given, withAuth = c.Args[next+1], c.Args[next+2], true
			next += 2
		case c.Is(next, "setname") && more >= 1:
			name, withName = c.Args[next+1], true
			if !validName(name) {
				c.Err(errClientName)
				return
			}
			next++
		default:
			c.Err("ERR Syntax error in HELLO option '" + string(c.Args[next]) + "'")
			return
		}
	}
	if withAuth {
		if msg, ok := cl.authenticate(string(user), given); !ok {
			c.Err(msg)
			return
		}
	}
	if !cl.authed && cl.mustAuth() {
		c.Err("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	if withName {
		cl.setName(string(name))
	}
	if version != 0 {
		cl.setProto(version)
	}
	r := c.Reply
	r.Map(7)
	r.BulkString("server")
	r.BulkString("redis")
	r.BulkString("version")
	r.BulkString(RedisVersion)
	r.BulkString("proto")
	r.Int(int64(cl.sess.Proto))
	r.BulkString("id")
	r.Int(cl.id)
	r.BulkString("mode")
	r.BulkString("standalone")
	r.BulkString("role")
	r.BulkString("master")
	r.BulkString("modules")
	cl.s.replyModules(c)
}

func quit(c *command.Call) {
	asClient(c).quitting = true
	c.OK()
}

func reset(c *command.Call) {
	cl := asClient(c)
	cl.dropMulti()
	cl.unwatch()
	cl.s.hub.leave(cl)
	cl.s.monitor.leave(cl)
	cl.tracking.off()
	cl.reply = replyOn
	cl.sess.DB = 0
	cl.sess.NoTouch = false
	cl.setName("")
	cl.setProto(2)
	cl.mu.Lock()
	cl.user, cl.noEvict = "default", false
	cl.mu.Unlock()
	cl.authed = cl.s.auth.Load() == nil
	c.Reply.Status("RESET")
}

const errClientName = "ERR Client names cannot contain spaces, newlines or special characters."

// validName tells whether a client's name fits into a line of CLIENT LIST.
func validName(name []byte) bool {
	for _, ch := range name {
		if ch < '!' || ch > '~' {
			return false
		}
	}
	return true
}

func (c *client) setName(name string) {
	c.mu.Lock()
	c.name = strings.Clone(name)
	c.mu.Unlock()
}
