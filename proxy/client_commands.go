package proxy

import (
	"strings"

	"github.com/latchkey-proxy/latchkey/store/command"
)

const (
	clientFlags      = command.NoScript | command.Loading | command.Stale
	clientAdminFlags = clientFlags | command.Admin
)

// clientCommands are the Specs of this family, made anew for each server.
func clientCommands() []*command.Spec {
	return []*command.Spec{
		{
			Name: "client", Arity: -2, Access: command.Free, Group: "connection", Since: "2.4.0", Complexity: "Depends on subcommand.",
			Summary: "A container for commands about connections.",
			Help: []string{
				"CACHING (YES|NO)",
				"    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.",
				"GETREDIR",
				"    Return the client ID we are redirecting to when tracking is enabled.",
				"GETNAME",
				"    Return the name of the current connection.",
				"ID",
				"    Return the ID of the current connection.",
				"INFO",
				"    Return information about the current client connection.",
				"KILL <ip:port>",
				"    Kill connection made from <ip:port>.",
				"KILL <option> <value> [<option> <value> [...]]",
				"    Kill connections. Options are:",
				"    * ADDR (<ip:port>|<unixsocket>:0)",
				"      Kill connections made from the specified address",
				"    * LADDR (<ip:port>|<unixsocket>:0)",
				"      Kill connections made to specified local address",
				"    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
				"      Kill connections by type.",
				"    * USER <username>",
				"      Kill connections authenticated by <username>.",
				"    * SKIPME (YES|NO)",
				"      Skip killing current connection (default: yes).",
				"LIST [options ...]",
				"    Return information about client connections. Options:",
				"    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
				"      Return clients of specified type.",
				"UNPAUSE",
				"    Stop the current client pause, resuming traffic.",
				"PAUSE <timeout> [WRITE|ALL]",
				"    Suspend all, or just write, clients for <timeout> milliseconds.",
				"REPLY (ON|OFF|SKIP)",
				"    Control the replies sent to the current connection.",
				"SETNAME <name>",
				"    Assign the name <name> to the current connection.",
				"SETINFO <option> <value>",
				"    Set client meta attr. Options are:",
				"    * LIB-NAME: the client lib name.",
				"    * LIB-VER: the client lib version.",
				"UNBLOCK <clientid> [TIMEOUT|ERROR]",
				"    Unblock the specified blocked client.",
				"TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
				"         [OPTIN] [OPTOUT] [NOLOOP]",
				"    Control server assisted client side caching.",
				"TRACKINGINFO",
				"    Report tracking status for the current connection.",
				"NO-EVICT (ON|OFF)",
				"    Protect current client connection from eviction.",
				"NO-TOUCH (ON|OFF)",
				"    Will not touch LRU/LFU stats when this mode is on.",
			},
			Sub: []*command.Spec{
				{
					Name: "caching", Arity: 3, Flags: clientFlags, Categories: command.CatConnection, Access: command.Free, Handler: clientCaching,
					Group: "connection", Since: "6.0.0", Complexity: "O(1)",
					Summary: "Tells whether the keys of the next command are tracked.", Syntax: "YES | NO",
				},
				{
					Name: "getname", Arity: 2, Flags: clientFlags, Categories: command.CatConnection, Access: command.Free, Handler: clientGetName,
					Group: "connection", Since: "2.6.9", Complexity: "O(1)", Summary: "Returns the connection's name.",
				},
				{
					Name: "getredir", Arity: 2, Flags: clientFlags, Categories: command.CatConnection, Access: command.Free, Handler: clientGetRedir,
					Group: "connection", Since: "6.0.0", Complexity: "O(1)", Summary: "Returns the client that tracking notifications go to, -1 without tracking.",
				},
				{
					Name: "id", Arity: 2, Flags: clientFlags, Categories: command.CatConnection, Access: command.Free, Handler: clientID,
					Group: "connection", Since: "5.0.0", Complexity: "O(1)", Summary: "Returns the connection's number.",
				},
				{
					Name: "info", Arity: 2, Flags: clientFlags, Categories: command.CatConnection, Access: command.Free, Handler: clientInfo,
					Group: "connection", Since: "6.2.0", Complexity: "O(1)", Summary: "Describes this connection as CLIENT LIST does.",
				},
				{
					Name: "kill", Arity: -3, Flags: clientAdminFlags, Categories: command.CatConnection, Access: command.Free, Handler: clientKill,
					Group: "connection", Since: "2.4.0", Complexity: "O(N) where N is the number of client connections", Summary: "Closes connections.",
					Syntax: "ip:port | [ID client-id] [TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB>] [USER username] [ADDR ip:port] [LADDR ip:port] [SKIPME <YES | NO>] [MAXAGE maxage]",
				},
				{
					Name: "list", Arity: -2, Flags: clientAdminFlags, Categories: command.CatConnection, Access: command.Free, Handler: clientList,
					Group: "connection", Since: "2.4.0", Complexity: "O(N) where N is the number of client connections", Summary: "Lists the connections, a line for each.",
					Syntax: "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]",
				},
				{
					Name: "no-evict", Arity: 3, Flags: clientAdminFlags, Categories: command.CatConnection, Access: command.Free, Handler: clientNoEvict,
					Group: "connection", Since: "7.0.0", Complexity: "O(1)", Summary: "Exempts the connection from eviction of clients.", Syntax: "ON | OFF",
					Differs: "Clients are never evicted; the flag is shown by CLIENT LIST.",
				},
				{
					Name: "no-touch", Arity: 3, Flags: clientFlags, Categories: command.CatConnection, Access: command.Free, Handler: clientNoTouch,
					Group: "connection", Since: "7.2.0", Complexity: "O(1)", Summary: "Chooses whether reading counts as use of a key.", Syntax: "ON | OFF",
				},
				{
					Name: "pause", Arity: -3, Flags: clientAdminFlags, Categories: command.CatConnection, Access: command.Free, Outside: true, Handler: clientPause,
					Group: "connection", Since: "3.0.0", Complexity: "O(1)", Summary: "Holds back commands for a time.", Syntax: "timeout [WRITE | ALL]",
				},
				{
					Name: "reply", Arity: 3, Flags: clientFlags, Categories: command.CatConnection, Access: command.Free, Handler: clientReply,
					Group: "connection", Since: "3.2.0", Complexity: "O(1)", Summary: "Chooses whether commands are answered.", Syntax: "ON | OFF | SKIP",
				},
				{
					Name: "setinfo", Arity: 4, Flags: clientFlags, Categories: command.CatConnection, Access: command.Free, Handler: clientSetInfo,
					Group: "connection", Since: "7.2.0", Complexity: "O(1)", Summary: "Names the client library for CLIENT LIST.", Syntax: "LIB-NAME libname | LIB-VER libver",
				},
				{
					Name: "setname", Arity: 3, Flags: clientFlags, Categories: command.CatConnection, Access: command.Free, Handler: clientSetName,
					Group: "connection", Since: "2.6.9", Complexity: "O(1)", Summary: "Names the connection.", Syntax: "connection-name",
				},
				{
					Name: "tracking", Arity: -3, Flags: clientFlags, Categories: command.CatConnection, Access: command.Free, Handler: clientTracking,
					Group: "connection", Since: "6.0.0", Complexity: "O(1). Some options may introduce additional complexity.",
					Summary: "Chooses whether the server tracks the keys that the client caches.",
					Syntax:  "<ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
					Differs: "A message that invalidates the keys follows the reply to each tracked read at once, so that a client that takes replies and messages in their order has nothing cached and nothing stale; after a script it invalidates all. ON needs RESP3, and is refused with REDIRECT, BCAST and PREFIX.",
				},
				{
					Name: "trackinginfo", Arity: 2, Flags: clientFlags, Categories: command.CatConnection, Access: command.Free, Handler: clientTrackingInfo,
					Group: "connection", Since: "6.2.0", Complexity: "O(1)", Summary: "Describes the connection's tracking.",
				},
				{
					Name: "unblock", Arity: -3, Flags: clientAdminFlags, Categories: command.CatConnection, Access: command.Free, Handler: clientUnblock,
					Group: "connection", Since: "5.0.0", Complexity: "O(log N) where N is the number of client connections",
					Summary: "Ends the blocked command of another client.", Syntax: "client-id [TIMEOUT | ERROR]",
				},
				{
					Name: "unpause", Arity: 2, Flags: clientAdminFlags, Categories: command.CatConnection, Access: command.Free, Handler: clientUnpause,
					Group: "connection", Since: "6.2.0", Complexity: "O(N) Where N is the number of paused clients", Summary: "Ends CLIENT PAUSE.",
				},
				connectionHelp("client", "5.0.0"),
			},
		},
	}
}

// connectionHelp is the HELP of a container whose sub-commands are in the ACL
// category connection.
func connectionHelp(container, since string) *command.Spec {
	s := command.HelpSpec(container, since)
	s.Categories, s.Group = command.CatConnection, "connection"
	return s
}

func clientID(c *command.Call) { c.Reply.Int(asClient(c).id) }

func clientGetName(c *command.Call) {
	if name := asClient(c).Name(); name != "" {
		c.Reply.BulkString(name)
		return
	}
	c.Reply.Null()
}

func clientSetName(c *command.Call) {
	if !validName(c.Args[2]) {
		c.Err(errClientName)
		return
	}
	asClient(c).setName(string(c.Args[2]))
	c.OK()
}

func clientSetInfo(c *command.Call) {
	cl := asClient(c)
	var field *string
	switch {
	case c.Is(2, "lib-name"):
		field = &cl.libName
	case c.Is(2, "lib-ver"):
		field = &cl.libVer
	default:
		c.Err("ERR Unrecognized option '" + string(c.Args[2]) + "'")
		return
	}
	if !validName(c.Args[3]) {
		c.Err("ERR " + string(c.Args[2]) + " cannot contain spaces, newlines or special characters.")
		return
	}
	cl.mu.Lock()
	*field = strings.Clone(string(c.Args[3]))
	cl.mu.Unlock()
	c.OK()
}

func clientReply(c *command.Call) {
	cl := asClient(c)
	switch {
	case c.Is(2, "on"):
		cl.reply = replyOn
		c.OK()
	case c.Is(2, "off"):
		cl.reply = replyOff
	case c.Is(2, "skip"):
		if cl.reply != replyOff {
			cl.reply = replySkipNext
		}
	default:
		c.Err(command.ErrSyntax)
	}
}

// onOff reads argument 2 as ON or OFF.
func onOff(c *command.Call) (on, ok bool) {
	switch {
	case c.Is(2, "on"):
		return true, true
	case c.Is(2, "off"):
		return false, true
	}
	c.Err(command.ErrSyntax)
	return false, false
}

func clientNoEvict(c *command.Call) {
	if on, ok := onOff(c); ok {
		cl := asClient(c)
		cl.mu.Lock()
		cl.noEvict = on
		cl.mu.Unlock()
		c.OK()
	}
}

func clientNoTouch(c *command.Call) {
	if on, ok := onOff(c); ok {
		asClient(c).sess.NoTouch = on
		c.OK()
	}
}

func clientUnblock(c *command.Call) {
	failing := false
	switch {
	case len(c.Args) > 4:
		c.Err(command.UnknownSubcommand(c.Spec, c.Args[1]))
		return
	case len(c.Args) == 3 || c.Is(3, "timeout"):
	case c.Is(3, "error"):
		failing = true
	default:
		c.Err("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
		return
	}
	id, ok := c.Int(2)
	if !ok {
		return
	}
	if cl := asServer(c).clients.get(id); cl != nil && cl.unblock(failing) {
		c.Reply.Int(1)
		return
	}
	c.Reply.Int(0)
}
