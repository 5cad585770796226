package proxy

import "github.com/latchkey-proxy/latchkey/store/command"

// killFilter is what CLIENT KILL chooses by; a zero field chooses all.
type killFilter struct {
	id          int64
	kind        clientKind
	user        string
	addr, laddr *string
	maxAge      int64 // seconds
	skipMe      bool
}

func clientKill(c *command.Call) {
	me := asClient(c)
	var f killFilter
	if len(c.Args) == 3 {
		addr := string(c.Args[2])
		f.addr = &addr // the old form, which may kill the asker
	} else if !f.parse(c) {
		return
	}
	killed := 0
	me.s.clients.each(func(cl *client) {
		if cl == me && f.skipMe || cl.ended() || !f.matches(cl) {
			return
		}
		killed++
		if cl == me {
			me.quitting = true // when the reply has been sent
			return
		}
		cl.kill()
	})
	switch {
	case len(c.Args) != 3:
		c.Reply.Int(int64(killed))
	case killed == 0:
		c.Err("ERR No such client")
	default:
		c.OK()
	}
}

// parse reads the filters of the new form, or answers what is wrong.
func (f *killFilter) parse(c *command.Call) bool {
	f.skipMe = true
	for i := 2; i < len(c.Args); i += 2 {
		if i+1 == len(c.Args) {
			c.Err(command.ErrSyntax)
			return false
		}
		value := c.Args[i+1]
		switch {
		case c.Is(i, "id"):
			n, ok := command.ParseInt(value)
			if !ok || n < 1 {
				c.Err("ERR client-id should be greater than 0")
				return false
			}
			f.id = n
		case c.Is(i, "type"):
			kind, ok := clientKindByName(c, i+1)
			if !ok {
				return false
			}
			f.kind = kind
		case c.Is(i, "addr"):
			addr := string(value)
			f.addr = &addr
		case c.Is(i, "laddr"):
			laddr := string(value)
			f.laddr = &laddr
		case c.Is(i, "user"):
			if string(value) != "default" {
				c.Err("ERR No such user '" + string(value) + "'")
				return false
			}
			f.user = string(value)
		case c.Is(i, "maxage"): // since Redis 7.4
			n, ok := command.ParseInt(value)
			switch {
			case !ok:
				c.Err("ERR maxage is not an integer or out of range")
				return false
			case n <= 0:
				c.Err("ERR maxage should be greater than 0")
				return false
			}
			f.maxAge = n
		case c.Is(i, "skipme") && c.Is(i+1, "yes"):
			f.skipMe = true
		case c.Is(i, "skipme") && c.Is(i+1, "no"):
			f.skipMe = false
		default:
			c.Err(command.ErrSyntax)
			return false
		}
	}
	return true
}

func (f *killFilter) matches(cl *client) bool {
	switch {
	case f.id != 0 && cl.id != f.id,
		f.kind != kindAny && cl.kind() != f.kind,
		f.addr != nil && cl.Addr() != *f.addr,
		f.laddr != nil && showAddr(cl.conn.LocalAddr(), cl.conn.LocalAddr()) != *f.laddr,
		f.user != "" && cl.User() != f.user,
		f.maxAge != 0 && cl.s.seconds()-cl.created < f.maxAge:
		return false
	}
	return true
}
