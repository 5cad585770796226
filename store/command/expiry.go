package command

import (
	"math"

	"github.com/latchkey-proxy/latchkey/store"
)

const expireCondition = " [NX | XX | GT | LT]"

func expiryCommands() []*Spec {
	return []*Spec{
		{
			Name: "expire", Arity: -3, Flags: Write | Fast, Categories: CatKeyspace, Brief: true,
			Keys: OneKey(KeyRW | KeyUpdate), Handler: expire,
			Summary: "Makes a key expire in so many seconds.", Since: "1.0.0", Group: "generic",
			Complexity: "O(1)", Syntax: "key seconds" + expireCondition,
		},
		{
			Name: "pexpire", Arity: -3, Flags: Write | Fast, Categories: CatKeyspace, Brief: true,
			Keys: OneKey(KeyRW | KeyUpdate), Handler: pexpire,
			Summary: "Makes a key expire in so many milliseconds.", Since: "2.6.0", Group: "generic",
			Complexity: "O(1)", Syntax: "key milliseconds" + expireCondition,
		},
		{
			Name: "expireat", Arity: -3, Flags: Write | Fast, Categories: CatKeyspace, Brief: true,
			Keys: OneKey(KeyRW | KeyUpdate), Handler: expireAt,
			Summary: "Makes a key expire at a Unix time in seconds.", Since: "1.2.0", Group: "generic",
			Complexity: "O(1)", Syntax: "key unix-time-seconds" + expireCondition,
		},
		{
			Name: "pexpireat", Arity: -3, Flags: Write | Fast, Categories: CatKeyspace, Brief: true,
			Keys: OneKey(KeyRW | KeyUpdate), Handler: pexpireAt,
			Summary: "Makes a key expire at a Unix time in milliseconds.", Since: "2.6.0", Group: "generic",
			Complexity: "O(1)", Syntax: "key unix-time-milliseconds" + expireCondition,
		},
		{
			Name: "expiretime", Arity: 2, Flags: ReadOnly | Fast, Categories: CatKeyspace, Brief: true,
			Keys: OneKey(KeyRO | KeyAccess), Handler: expireTime,
			Summary: "Returns the Unix time in seconds at which a key expires.", Since: "7.0.0", Group: "generic",
			Complexity: "O(1)", Syntax: "key",
		},
		{
			Name: "pexpiretime", Arity: 2, Flags: ReadOnly | Fast, Categories: CatKeyspace, Brief: true,
			Keys: OneKey(KeyRO | KeyAccess), Handler: pexpireTime,
			Summary: "Returns the Unix time in milliseconds at which a key expires.", Since: "7.0.0", Group: "generic",
			Complexity: "O(1)", Syntax: "key",
		},
		{
			Name: "ttl", Arity: 2, Flags: ReadOnly | Fast, Categories: CatKeyspace, Brief: true,
			Keys: OneKey(KeyRO | KeyAccess), Handler: ttl,
			Summary: "Returns the seconds until a key expires.", Since: "1.0.0", Group: "generic",
			Complexity: "O(1)", Syntax: "key",
		},
		{
			Name: "pttl", Arity: 2, Flags: ReadOnly | Fast, Categories: CatKeyspace, Brief: true,
			Keys: OneKey(KeyRO | KeyAccess), Handler: pttl,
			Summary: "Returns the milliseconds until a key expires.", Since: "2.6.0", Group: "generic",
			Complexity: "O(1)", Syntax: "key",
		},
		{
			Name: "persist", Arity: 2, Flags: Write | Fast, Categories: CatKeyspace, Brief: true,
			Keys: OneKey(KeyRW | KeyUpdate), Handler: persistKey,
			Summary: "Removes the expiry of a key.", Since: "2.2.0", Group: "generic",
			Complexity: "O(1)", Syntax: "key",
		},
	}
}

func expire(c *Call)    { setExpiry(c, 1000, true) }
func pexpire(c *Call)   { setExpiry(c, 1, true) }
func expireAt(c *Call)  { setExpiry(c, 1000, false) }
func pexpireAt(c *Call) { setExpiry(c, 1, false) }

// conditions are the options of EXPIRE and its kin.
type conditions struct{ nx, xx, gt, lt bool }

func (c *Call) expireConditions() (o conditions, ok bool) {
	for i := 3; i < len(c.Args); i++ {
		switch {
		case c.Is(i, "nx"):
			o.nx = true
		case c.Is(i, "xx"):
			o.xx = true
		case c.Is(i, "gt"):
			o.gt = true
		case c.Is(i, "lt"):
			o.lt = true
		default:
			c.Err(unsupportedOption(c.Args[i]))
			return o, false
		}
	}
	switch {
	case o.nx && (o.xx || o.gt || o.lt):
		c.Err(errExpireNX)
		return o, false
	case o.gt && o.lt:
		c.Err(errExpireGTLT)
		return o, false
	}
	return o, true
}

// hold tells whether an expiry may become at when it is was (0: none, which is
// later than any).
func (o conditions) hold(was, at int64) bool {
	switch {
	case o.nx && was != 0, o.xx && was == 0:
		return false
	case o.gt && (was == 0 || at <= was), o.lt && was != 0 && at >= was:
		return false
	}
	return true
}

// setExpiry is EXPIRE and its kin: the time is given in units of so many
// milliseconds, from now or from 1970 on.
func setExpiry(c *Call, unit int64, relative bool) {
	o, ok := c.expireConditions()
	if !ok {
		return
	}
	n, ok := c.Int(2)
	if !ok {
		return
	}
	if n > math.MaxInt64/unit || n < math.MinInt64/unit {
		c.Err(invalidExpire(c.Spec))
		return
	}
	n *= unit
	at, now := n, c.Tx.Now()
	if relative {
		if n > math.MaxInt64-now {
			c.Err(invalidExpire(c.Spec))
			return
		}
		at += now
	}
	k := c.Key(1)
	if !k.Exists() || !o.hold(k.Expiry(), at) {
		c.Reply.Int(0)
		return
	}
	switch {
	case at <= now:
		k.Delete()
		c.Notify(store.NotifyGeneric, "del", k)
	case relative:
		k.SetExpiry(store.ExpireIn(n))
		c.Notify(store.NotifyGeneric, "expire", k)
	default:
		k.SetExpiry(store.ExpireAt(at))
		c.Notify(store.NotifyGeneric, "expire", k)
	}
	c.Reply.Int(1)
}

func ttl(c *Call)         { replyExpiry(c, 1000, true) }
func pttl(c *Call)        { replyExpiry(c, 1, true) }
func expireTime(c *Call)  { replyExpiry(c, 1000, false) }
func pexpireTime(c *Call) { replyExpiry(c, 1, false) }

// replyExpiry answers a key's expiry in units of so many milliseconds, rounded;
// -1 when it has none and -2 when it is absent.
func replyExpiry(c *Call, unit int64, relative bool) {
	k := c.peek(1)
	if !k.Exists() {
		c.Reply.Int(-2)
		return
	}
	at := k.Expiry()
	if at == 0 {
		c.Reply.Int(-1)
		return
	}
	if relative {
		at = max(0, at-c.Tx.Now())
	}
	c.Reply.Int(at/unit + (at%unit+unit/2)/unit)
}

func persistKey(c *Call) {
	k := c.Key(1)
	if !k.Exists() || k.Expiry() == 0 {
		c.Reply.Int(0)
		return
	}
	k.SetExpiry(store.NoTTL)
	c.Notify(store.NotifyGeneric, "persist", k)
	c.Reply.Int(1)
}
