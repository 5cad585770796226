package proxy

import (
	"bytes"
	"slices"
	"sync/atomic"

	"github.com/latchkey-proxy/latchkey/proxy/resp"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// tracking is what CLIENT TRACKING has made of a connection.
//
// No table of keys is kept. Redis remembers who has read a key and tells them
// when it changes; here the client is told at once, right after the reply, that
// what it has read may have changed. A client that takes replies and messages in
// the order in which they come, as RESP3 wants, holds nothing that could be
// stale, and asks again the next time.
//
// It belongs to the client's goroutine, but for on.
type tracking struct {
	on            atomic.Bool
	optIn, optOut bool
	noLoop        bool // shown by TRACKINGINFO: nobody's writes cause messages
	// caching: CLIENT CACHING was given for the next command or transaction.
	caching bool

	// What the running command has read and the client may keep: keys, as views of
	// the command's arguments, or, when it cannot be told from these, everything.
	read       [][]byte
	everything bool
}

// off ends tracking.
func (t *tracking) off() {
	t.on.Store(false)
	t.optIn, t.optOut, t.noLoop, t.caching = false, false, false, false
	t.forget()
}

// forget drops what has been read.
func (t *tracking) forget() {
	clear(t.read)
	t.read, t.everything = t.read[:0], false
}

// remember notes what a command reads. EXEC calls it between the commands that it
// runs, so that CLIENT CACHING among them holds for those behind it, as in Redis.
func (t *tracking) remember(c *command.Call) {
	if t.optIn && !t.caching || t.optOut && t.caching {
		return
	}
	switch {
	case c.Spec.Flags&command.SkipMonitor != 0 || c.Spec.ModuleName() != "":
		// Which keys a script or a module reads, its arguments do not say.
		t.everything = true
	case c.Spec.Flags&command.ReadOnly != 0:
		c.EachKey(func(_ int, name []byte) { t.read = append(t.read, name) })
	}
}

// invalidate takes back what the command that was just answered has read. On
// RESP2 nothing can be said, in Redis neither.
func (t *tracking) invalidate(w *resp.Writer, proto int) {
	if proto == 3 {
		switch {
		case t.everything:
			w.Push(2)
			w.BulkString("invalidate")
			w.Null()
		case len(t.read) != 0:
			slices.SortFunc(t.read, bytes.Compare)
			keys := slices.CompactFunc(t.read, bytes.Equal)
			w.Push(2)
			w.BulkString("invalidate")
			w.Array(len(keys))
			for _, key := range keys {
				w.Bulk(key)
			}
		}
	}
	t.forget()
}

// tracked ends a command of a client that tracks. silent says that its reply
// was not sent, so that there is nothing to take back.
func (c *client) tracked(args [][]byte, silent bool) {
	t := &c.tracking
	if silent {
		t.forget()
	}
	t.invalidate(&c.w, c.sess.Proto)
	if t.caching && c.multi == nil && !c.isClientCommand(args) {
		t.caching = false
	}
}

// isClientCommand tells whether args are a sub-command of CLIENT, right or
// wrong: these do not use up CLIENT CACHING.
func (c *client) isClientCommand(args [][]byte) bool {
	spec := c.s.engine.Table.Lookup(args[0])
	return spec != nil && spec.Name == "client" && len(args) > 1 && spec.SubByName(args[1]) != nil
}

// redirection is the client that invalidations go to: none but itself, 0, or -1
// without tracking.
func (t *tracking) redirection() int64 {
	if t.on.Load() {
		return 0
	}
	return -1
}

func clientGetRedir(c *command.Call) { c.Reply.Int(asClient(c).tracking.redirection()) }

func clientTrackingInfo(c *command.Call) {
	t := &asClient(c).tracking
	flags := make([]string, 0, 4)
	flag := func(on bool, name string) {
		if on {
			flags = append(flags, name)
		}
	}
	flag(!t.on.Load(), "off")
	flag(t.on.Load(), "on")
	flag(t.optIn, "optin")
	flag(t.optIn && t.caching, "caching-yes")
	flag(t.optOut, "optout")
	flag(t.optOut && t.caching, "caching-no")
	flag(t.noLoop, "noloop")
	r := c.Reply
	r.Map(3)
	r.BulkString("flags")
	r.Set(len(flags))
	for _, name := range flags {
		r.BulkString(name)
	}
	r.BulkString("redirect")
	r.Int(t.redirection())
	r.BulkString("prefixes")
	r.Array(0)
}

func clientCaching(c *command.Call) {
	t := &asClient(c).tracking
	switch {
	case !t.on.Load():
		c.Err("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	case c.Is(2, "yes") && !t.optIn:
		c.Err("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
	case c.Is(2, "no") && !t.optOut:
		c.Err("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	case c.Is(2, "yes"), c.Is(2, "no"):
		t.caching = true
		c.OK()
	default:
		c.Err(command.ErrSyntax)
	}
}

// clientTracking judges its arguments as Redis does, so that a client's mistake
// is told as such, before it refuses what there is no tracking for.
func clientTracking(c *command.Call) {
	cl := asClient(c)
	var redirect, bcast, optIn, optOut, noLoop, prefix bool
	for i := 3; i < len(c.Args); i++ {
		more := i+1 < len(c.Args)
		switch {
		case c.Is(i, "redirect") && more:
			i++
			if redirect {
				c.Err("ERR A client can only redirect to a single other client")
				return
			}
			id, ok := c.Int(i)
			if !ok {
				return
			}
			if cl.s.clients.get(id) == nil {
				c.Err("ERR The client ID you want redirect to does not exist")
				return
			}
			redirect = true
		case c.Is(i, "bcast"):
			bcast = true
		case c.Is(i, "optin"):
			optIn = true
		case c.Is(i, "optout"):
			optOut = true
		case c.Is(i, "noloop"):
			noLoop = true
		case c.Is(i, "prefix") && more:
			i++
			prefix = true
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	on, ok := onOff(c)
	t := &cl.tracking
	const reenable = " before disabling tracking for this client, and then re-enabling it with a different mode."
	switch {
	case !ok:
	case !on:
		t.off()
		c.OK()
	case prefix && !bcast:
		c.Err("ERR PREFIX option requires BCAST mode to be enabled")
	case bcast && t.on.Load():
		c.Err("ERR You can't switch BCAST mode on/off" + reenable)
	case bcast && (optIn || optOut):
		c.Err("ERR OPTIN and OPTOUT are not compatible with BCAST")
	case optIn && optOut:
		c.Err("ERR You can't specify both OPTIN mode and OPTOUT mode")
	case optIn && t.optOut, optOut && t.optIn:
		c.Err("ERR You can't switch OPTIN/OPTOUT mode" + reenable)
	case bcast:
		c.Err("ERR CLIENT TRACKING with BCAST is not supported; without it the keys that are read are tracked")
	case redirect:
		c.Err("ERR CLIENT TRACKING with REDIRECT is not supported; without it RESP3 clients (HELLO 3) are told themselves")
	case c.S.Proto < 3:
		// Redis says OK and then nothing.
		c.Err("ERR CLIENT TRACKING needs RESP3: begin the connection with HELLO 3")
	default:
		t.optIn, t.optOut, t.noLoop = optIn, optOut, noLoop
		t.on.Store(true)
		c.OK()
	}
}
