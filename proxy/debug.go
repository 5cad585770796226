package proxy

import (
	"strconv"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// debugCommands are the Specs of this family, made anew for each server.
func debugCommands() []*command.Spec {
	return []*command.Spec{{
		Name: "debug", Arity: -2, Flags: adminFlags | command.Loading | command.Stale | command.Protected,
		Access: command.Free, Outside: true, Handler: debugCommand,
		Group: "server", Since: "1.0.0", Complexity: "Depends on subcommand.",
		Summary: "What tests of clients and servers need. Only for whom enable-debug-command allows it.",
		Syntax:  "subcommand [argument [argument ...]]",
		Differs: "Has CHANGE-REPL-ID, DIGEST, DIGEST-VALUE, ERROR, LOG, OBJECT, POPULATE, PROTOCOL, SET-ACTIVE-EXPIRE, SLEEP and, without effect, QUICKLIST-PACKED-THRESHOLD, REPLYBUFFER and SET-DISABLE-DENY-SCRIPTS. SLEEP holds up its own client only.",
		Help: []string{
			"CHANGE-REPL-ID",
			"    Change the replication IDs of the instance.",
			"    Dangerous: should be used only for testing the replication subsystem.",
			"DIGEST",
			"    Output a hex signature representing the current DB content.",
			"DIGEST-VALUE <key> [<key> ...]",
			"    Output a hex signature of the values of all the specified keys.",
			"ERROR <string>",
			"    Return a Redis protocol error with <string> as message. Useful for clients",
			"    unit tests to simulate Redis errors.",
			"LOG <message>",
			"    Write <message> to the server log.",
			"OBJECT <key>",
			"    Show low level info about `key` and associated value.",
			"POPULATE <count> [<prefix>] [<size>]",
			"    Create <count> string keys named key:<num>. If <prefix> is specified then",
			"    it is used instead of the 'key' prefix. These are not propagated to",
			"    replicas. Cluster slots are not respected so keys not belonging to the",
			"    current node can be created in cluster mode.",
			"PROTOCOL <type>",
			"    Reply with a test value of the specified type. <type> can be: string,",
			"    integer, double, bignum, null, array, set, map, attrib, push, verbatim,",
			"    true, false.",
			"SET-ACTIVE-EXPIRE <0|1>",
			"    Setting it to 0 disables expiring keys in background when they are not",
			"    accessed (otherwise the Redis behavior). Setting it to 1 reenables back the",
			"    default.",
			"SLEEP <seconds>",
			"    Stop the client for <seconds>. Decimals allowed.",
		},
	}}
}

// errProtected is the refusal of a command that a directive switches on.
func errProtected(name, directive string) string {
	return "ERR " + name + " command not allowed. If the " + directive +
		` option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.`
}

func debugCommand(c *command.Call) {
	s := asServer(c)
	if !s.cfg.Allowed("enable-debug-command", IsLocal(c)) {
		c.Err(errProtected("DEBUG", "enable-debug-command"))
		return
	}
	sub, n := c.Args[1], len(c.Args)
	switch {
	case c.Is(1, "help") && n == 2:
		debugHelp(c)
	case c.Is(1, "sleep") && n == 3:
		debugSleep(c)
	case c.Is(1, "set-active-expire") && n == 3:
		off, _ := command.ParseInt(c.Args[2])
		s.expiryOff.Store(off == 0)
		c.OK()
	case c.Is(1, "set-disable-deny-scripts") && n == 3:
		c.OK()
	case c.Is(1, "change-repl-id") && n == 2:
		s.stats.newReplID()
		c.OK()
	case c.Is(1, "error") && n == 3:
		c.Err(string(c.Args[2]))
	case c.Is(1, "protocol") && n == 3:
		debugProtocol(c)
	case c.Is(1, "object") && n == 3:
		debugObject(c)
	case c.Is(1, "digest") && n == 2:
		debugDigest(c)
	case c.Is(1, "digest-value"):
		debugDigestValue(c)
	case c.Is(1, "log") && n == 3:
		s.log.Warn("debug log", "message", string(c.Args[2]))
		c.OK()
	case c.Is(1, "populate") && n >= 3 && n <= 5:
		debugPopulate(c)
	case c.Is(1, "quicklist-packed-threshold") && n == 3:
		debugPackedThreshold(c)
	case c.Is(1, "replybuffer") && n == 4:
		c.OK()
	default:
		c.Err(command.UnknownSubcommand(c.Spec, sub))
	}
}

// debugHelp is HELP of a command that, as in Redis, has no sub-commands in the
// table.
func debugHelp(c *command.Call) {
	lines := c.Spec.Help
	c.Reply.Array(len(lines) + 3)
	c.Reply.Status("DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, l := range append(lines[:len(lines):len(lines)], "HELP", "    Print this help.") {
		c.Reply.Status(l)
	}
}

// longestSleep bounds DEBUG SLEEP.
const longestSleep = time.Hour

// debugSleep keeps its client waiting, and nobody else: unlike Redis, which
// stands still as a whole. The client's end ends it.
func debugSleep(c *command.Call) {
	// As strtod, which Redis uses, what is no number counts as 0.
	seconds, _ := strconv.ParseFloat(string(c.Args[2]), 64)
	d := longestSleep
	if seconds < longestSleep.Seconds() {
		d = time.Duration(max(0, seconds) * float64(time.Second))
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	cl, ok := c.S.Client.(*client)
	if !ok {
		<-timer.C
		c.OK()
		return
	}
	if c.From == command.FromClient {
		defer cl.rest(c.Args, false)()
	}
	select {
	case <-timer.C:
	case <-cl.done:
	}
	c.OK()
}

// debugObject tells what can be told of an entry, in Redis's form.
func debugObject(c *command.Call) {
	debugTx(c, c.Args[2:], false, func(*store.Tx) {
		k := c.Key(2)
		if !k.Exists() {
			c.Err(command.ErrNoSuchKey)
			return
		}
		idle := k.IdleSeconds()
		clock := (asServer(c).seconds() - idle) & (1<<24 - 1)
		c.Reply.Status("Value at:0x0 refcount:1 encoding:" + command.Encoding(k) +
			" serializedlength:" + strconv.Itoa(len(k.Str())+1) +
			" lru:" + strconv.FormatInt(clock, 10) + " lru_seconds_idle:" + strconv.FormatInt(idle, 10))
	})
}

// debugProtocol answers a value of each type of the protocol, for the tests of
// clients.
func debugProtocol(c *command.Call) {
	r := c.Reply
	numbers := func(n int) {
		for i := range n {
			r.Int(int64(i))
		}
	}
	switch {
	case c.Is(2, "string"):
		r.BulkString("Hello World")
	case c.Is(2, "integer"):
		r.Int(12345)
	case c.Is(2, "double"):
		r.Double(3.141)
	case c.Is(2, "bignum"):
		r.BigNumber("1234567999999999999999999999999999999")
	case c.Is(2, "null"):
		r.Null()
	case c.Is(2, "array"):
		r.Array(3)
		numbers(3)
	case c.Is(2, "set"):
		r.Set(3)
		numbers(3)
	case c.Is(2, "map"):
		r.Map(3)
		for i := range 3 {
			r.Int(int64(i))
			r.Bool(i == 1)
		}
	case c.Is(2, "attrib"):
		// An attribute precedes a reply and is none: only bytes can hold it.
		if w, ok := r.(interface{ Raw(frames []byte) }); ok && c.Resp3() {
			w.Raw([]byte("|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n"))
		}
		r.BulkString("Some real reply following the attribute")
	case c.Is(2, "push"):
		if !c.Resp3() {
			c.Err("ERR RESP2 is not supported by this command")
			return
		}
		r.Push(2)
		r.BulkString("server-cpu-usage")
		r.Int(42)
		// A push is no reply either.
		r.BulkString("Some real reply following the push reply")
	case c.Is(2, "true"):
		r.Bool(true)
	case c.Is(2, "false"):
		r.Bool(false)
	case c.Is(2, "verbatim"):
		r.Verbatim("txt", "This is a verbatim\nstring")
	default:
		c.Err("ERR Wrong protocol type name. Please use one of the following: string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false")
	}
}
