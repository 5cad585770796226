package command

import (
	"errors"
	"math"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/rdb"
)

func dumpCommands() []*Spec {
	return []*Spec{
		{
			Name: "dump", Arity: 2, Flags: ReadOnly, Categories: CatKeyspace,
			Keys: OneKey(KeyRO | KeyAccess), Access: Locked, Handler: dump,
			Summary: "Returns the value of a key in Redis's own format, for RESTORE.", Since: "2.6.0", Group: "generic",
			Complexity: "O(N) where N is the length of the string.", Syntax: "key",
			Differs: "strings only; the payload is that of Redis 7.0, and never compressed.",
		},
		{
			Name: "restore", Arity: -4, Flags: Write | DenyOOM, Categories: CatKeyspace | CatDangerous,
			Keys: OneKey(KeyOW | KeyUpdate), Access: Locked, Handler: restore,
			Summary: "Creates a key from what DUMP has returned.", Since: "2.6.0", Group: "generic",
			Complexity: "O(N) where N is the length of the string.",
			Syntax:     "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
			Differs:    "strings only, of Redis up to 7.2; FREQ is checked and forgotten.",
		},
	}
}

func dump(c *Call) {
	k := c.ReadKey(1)
	if !k.Exists() {
		c.Reply.Null()
		return
	}
	if k.Kind() != store.String {
		c.Err(errDumpKind)
		return
	}
	s := k.Str()
	payload := append(make([]byte, 0, len(s)+24), rdb.TypeString)
	c.Reply.Bulk(rdb.Seal(rdb.AppendString(payload, s)))
}

type restoreOptions struct {
	replace, absolute bool
	idle, freq        int64 // -1: not given
}

func (c *Call) restoreOptions() (o restoreOptions, ok bool) {
	o.idle, o.freq = -1, -1
	for i := 4; i < len(c.Args); i++ {
		more := i+1 < len(c.Args)
		switch {
		case c.Is(i, "replace"):
			o.replace = true
		case c.Is(i, "absttl"):
			o.absolute = true
		case more && o.freq < 0 && c.Is(i, "idletime"):
			i++
			if o.idle, ok = c.Int(i); !ok {
				return o, false
			}
			if o.idle < 0 {
				c.Err(errRestoreIdletime)
				return o, false
			}
		case more && o.idle < 0 && c.Is(i, "freq"):
			i++
			if o.freq, ok = c.Int(i); !ok {
				return o, false
			}
			if o.freq < 0 || o.freq > 255 {
				c.Err(errRestoreFreq)
				return o, false
			}
		default:
			c.Err(ErrSyntax)
			return o, false
		}
	}
	return o, true
}

func restore(c *Call) {
	o, ok := c.restoreOptions()
	if !ok {
		return
	}
	k := c.Key(1)
	there := k.Exists()
	if there && !o.replace {
		c.Err(ErrBusyKey)
		return
	}
	ttl, ok := c.Int(2)
	if !ok {
		return
	}
	if ttl < 0 {
		c.Err(errRestoreTTL)
		return
	}
	value, err := c.openPayload(c.Args[3])
	switch {
	case errors.Is(err, rdb.ErrFooter):
		c.Err(errPayload)
		return
	case err != nil:
		c.Err(errPayloadFormat)
		return
	}
	expiry := store.NoTTL
	switch {
	case ttl == 0:
	case !o.absolute:
		expiry = store.ExpireIn(ttl)
	case ttl <= c.Tx.Now():
		if there {
			k.Delete()
			c.Notify(store.NotifyGeneric, "del", k)
		}
		c.OK()
		return
	default:
		expiry = store.ExpireAt(ttl)
	}
	k.SetStringOwned(value, expiry)
	if o.idle >= 0 {
		k.SetIdle(o.idle)
	}
	c.Notify(store.NotifyNew, "new", k)
	c.Notify(store.NotifyGeneric, "restore", k)
	c.OK()
}

// openPayload returns the string of a payload, a copy.
func (c *Call) openPayload(payload []byte) ([]byte, error) {
	b, err := rdb.Open(payload)
	if err != nil {
		return nil, err
	}
	if len(b) == 0 || b[0] != rdb.TypeString {
		return nil, rdb.ErrFormat
	}
	limit := c.E.MaxValue.Load()
	if limit <= 0 {
		limit = math.MaxInt64
	}
	value, _, err := rdb.ReadString(b[1:], limit)
	return value, err
}
