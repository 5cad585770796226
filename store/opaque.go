package store

import (
	"strconv"

	"github.com/latchkey-proxy/latchkey/store/rdb"
)

// opaque is the value of an Opaque: bytes that only the module of the type can
// read, with the number of their encoding.
type opaque struct {
	module  string
	version uint32
	b       []byte
}

const opaqueOverhead = 64

func (o *opaque) size() int64 { return opaqueOverhead + allocSize(cap(o.b)) }

func (o *opaque) len() int { return len(o.b) / elementSlot }

func (o *opaque) clone(*Tx) collection {
	c := *o
	c.b = append(make([]byte, 0, len(o.b)), o.b...)
	return &c
}

// revert puts back bytes that were overwritten.
func (o *opaque) revert(c *change) { copy(o.b[c.at:], c.was) }

// typeName is the name of the value's type as TYPE answers it: that of the
// module for an Opaque.
func (v *value) typeName() string {
	if o, ok := v.coll.(*opaque); ok {
		return o.module
	}
	return v.kind.String()
}

// TypeName is the name that TYPE answers for the key.
func (k *Key) TypeName() string {
	e := k.see()
	if e == nil {
		return None.String()
	}
	return e.typeName()
}

func (k *Key) opaque() *opaque {
	e := k.see()
	if e == nil {
		return nil
	}
	o, _ := e.coll.(*opaque)
	return o
}

// ModuleType is the module that an Opaque belongs to, and the number of its
// encoding; "" for any other value.
func (k *Key) ModuleType() (module string, version uint32) {
	if o := k.opaque(); o != nil {
		return o.module, o.version
	}
	return "", 0
}

// Opaque is the value of an Opaque, a view that must not be written; nil when
// the key is absent or of another kind.
func (k *Key) Opaque() []byte {
	if o := k.opaque(); o != nil {
		return o.b
	}
	return nil
}

// SetOpaque sets the key to a copy of v, whatever it was before: bytes that
// belong to a module, with the number of their encoding.
func (k *Key) SetOpaque(module string, version uint32, v []byte, ttl TTL) {
	if ttl.keep {
		ttl = k.ttl()
	}
	k.setCollection(Opaque, &opaque{module, version, append(make([]byte, 0, len(v)), v...)}, ttl)
}

// ttl is the present expiry of the key as a TTL to set.
func (k *Key) ttl() TTL {
	e := k.see()
	switch {
	case e == nil:
		return NoTTL
	case k.rel != 0:
		return ExpireIn(k.rel)
	}
	return ExpireAt(e.expire)
}

// OverwriteOpaque overwrites bytes of an Opaque in place, which must exist and
// reach as far.
func (k *Key) OverwriteOpaque(off int, v []byte) {
	o := k.own().coll.(*opaque)
	was := string(o.b[off : off+len(v)])
	k.tx.weigh(len(was))
	k.tx.note(change{of: o, was: was, at: off})
	copy(o.b[off:], v)
	// RESTORE takes a whole value only, so a part has an effect of our own.
	k.record("LATCHKEY.OVERWRITE", strconv.Itoa(off), string(v))
}

// recordOpaque adds the effect of a value that was set.
func (k *Key) recordOpaque(o *opaque) {
	k.record("RESTORE", "0", string(rdb.Seal(rdb.AppendModule([]byte{rdb.TypeModule}, &rdb.Module{Name: o.module, Version: o.version, Value: o.b}))), "REPLACE")
}
