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
			Complexity: "O(N) where N is the size of the value.", Syntax: "key",
			Differs: "the payload is that of Redis 7.0, never compressed, and of a list or a set in its oldest form, which every Redis reads.",
		},
		{
			Name: "restore", Arity: -4, Flags: Write | DenyOOM, Categories: CatKeyspace | CatDangerous,
			Keys: OneKey(KeyOW | KeyUpdate), Access: Locked, Handler: restore,
			Summary: "Creates a key from what DUMP has returned.", Since: "2.6.0", Group: "generic",
			Complexity: "O(N) where N is the size of the value.",
			Syntax:     "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
			Differs:    "strings of Redis up to 7.2, and lists, sets and values of modules as DUMP makes them here; FREQ is checked and forgotten.",
		},
		{
			Name: "latchkey.overwrite", Arity: 4, Flags: Write | DenyOOM | Admin | NoScript, Categories: CatKeyspace | CatDangerous,
			Keys: OneKey(KeyRW | KeyUpdate), Handler: overwrite,
			Summary: "Overwrites a part of a module's value, as the append-only file has it.", Since: "7.2.0", Group: "generic",
			Complexity: "O(N) where N is the size of the part.", Syntax: "key offset part",
			Differs: "Redis has no such command.",
		},
	}
}

func dump(c *Call) {
	k := c.ReadKey(1)
	if !k.Exists() {
		c.Reply.Null()
		return
	}
	// The payload takes about what the value does.
	if n := int(k.Size()); !c.alloc(n) || !c.pay(n/sealedPerUnit) {
		return
	}
	var payload []byte
	switch k.Kind() {
	case store.List:
		elements := make([]string, k.Len())
		for i := range elements {
			elements[i] = k.Element(i)
		}
		payload = rdb.AppendElements([]byte{rdb.TypeList}, elements)
	case store.Opaque:
		m := rdb.Module{Value: k.Opaque()}
		m.Name, m.Version = k.ModuleType()
		payload = rdb.AppendModule([]byte{rdb.TypeModule}, &m)
	case store.Set:
		payload = rdb.AppendElements([]byte{rdb.TypeSet}, k.Members())
	default:
		s := k.Str()
		payload = rdb.AppendString(append(make([]byte, 0, len(s)+24), rdb.TypeString), s)
	}
	c.Reply.Bulk(rdb.Seal(payload))
}

// overwrite is the effect of a module that has changed a part of a value: it is
// for the log, which RESTORE would have to be told the whole value.
func overwrite(c *Call) {
	offset, ok := c.Int(2)
	if !ok {
		return
	}
	k, part := c.Key(1), c.Args[3]
	switch module, _ := k.ModuleType(); {
	case module == "":
		c.Err(ErrWrongType)
	case offset < 0 || offset > int64(len(k.Opaque())-len(part)):
		c.Err(ErrOffsetRange)
	case len(part) > 0:
		k.OverwriteOpaque(int(offset), part)
		c.OK()
	default:
		c.OK()
	}
}

// sealedPerUnit is how many bytes of a payload are written or read, and summed up, in
// one unit of work for a Meter.
const sealedPerUnit = 8

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
	if n := len(c.Args[3]); !c.alloc(n) || !c.pay(n/sealedPerUnit) {
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
	value.put(k, expiry)
	if o.idle >= 0 {
		k.SetIdle(o.idle)
	}
	c.Notify(store.NotifyNew, "new", k)
	c.Notify(store.NotifyGeneric, "restore", k)
	c.OK()
}

// dumped is the value of a payload.
type dumped struct {
	kind     store.Kind
	str      []byte
	elements [][]byte
	module   rdb.Module
}

// put makes the value that of k, whatever it was before.
func (d *dumped) put(k *store.Key, expiry store.TTL) {
	switch d.kind {
	case store.String:
		k.SetStringOwned(d.str, expiry)
		return
	case store.Opaque:
		k.SetOpaque(d.module.Name, d.module.Version, d.module.Value, expiry)
		return
	}
	k.Delete()
	if d.kind == store.List {
		k.Push(store.Tail, d.elements...)
	} else {
		k.AddMembers(d.elements...)
	}
	if expiry != store.NoTTL {
		k.SetExpiry(expiry)
	}
}

// openPayload returns the value of a payload, a copy.
func (c *Call) openPayload(payload []byte) (d dumped, err error) {
	b, err := rdb.Open(payload)
	if err != nil {
		return d, err
	}
	if len(b) == 0 {
		return d, rdb.ErrFormat
	}
	limit := c.E.MaxValue.Load()
	if limit <= 0 {
		limit = math.MaxInt64
	}
	switch b[0] {
	case rdb.TypeString:
		d.kind = store.String
		d.str, _, err = rdb.ReadString(b[1:], limit)
	case rdb.TypeList:
		d.kind = store.List
		d.elements, err = rdb.ReadElements(b[1:], limit)
	case rdb.TypeSet:
		d.kind = store.Set
		if d.elements, err = rdb.ReadElements(b[1:], limit); err == nil && !different(d.elements) {
			err = rdb.ErrFormat
		}
	case rdb.TypeModule:
		d.kind = store.Opaque
		d.module, err = rdb.ReadModule(b[1:], limit)
	default:
		err = rdb.ErrFormat
	}
	return d, err
}

func different(members [][]byte) bool {
	seen := make(map[string]struct{}, len(members))
	for _, m := range members {
		seen[string(m)] = struct{}{}
	}
	return len(seen) == len(members)
}
