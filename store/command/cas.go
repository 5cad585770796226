package command

import (
	"bytes"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/zeebo/xxh3"
)

// Compare-and-set and compare-and-delete in the dialects of the servers that
// have them. They give the owner of a lock a way to release and to extend it
// without a script.
func compareCommands() []*Spec {
	return []*Spec{
		{
			Name: "delifeq", Arity: 3, Flags: Write, Categories: CatString, Brief: true,
			Keys: OneKey(KeyRM | KeyAccess | KeyDelete), Handler: delIfEq,
			Summary: "Deletes a key if its value is the given one.", Since: "valkey 9.0.0", Group: "string",
			Complexity: "O(1)", Syntax: "key value",
		},
		{
			Name: "delex", Arity: -2, Flags: Write | Fast, Categories: CatString,
			Keys: OneKey(KeyRW | KeyDelete), Handler: delEX,
			Summary: "Deletes a key if its value, or the digest of it, compares as asked.", Since: "8.4.0", Group: "string",
			Complexity: "O(1), O(N) for IFDEQ and IFDNE where N is the length of the value.",
			Syntax:     "key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest]",
			Differs:    "A digest that is not hexadecimal is an error; Redis looks at its length only.",
		},
		{
			Name: "digest", Arity: 2, Flags: ReadOnly | Fast, Categories: CatString,
			Keys: OneKey(KeyRO | KeyAccess), Handler: digest,
			Summary: "Returns the XXH3 digest of a string as 16 hexadecimal digits.", Since: "8.4.0", Group: "string",
			Complexity: "O(N) where N is the length of the value.", Syntax: "key",
		},
		{
			Name: "msetex", Arity: -4, Flags: Write | DenyOOM, Categories: CatString,
			Keys:    []KeySpec{{Begin: 1, Count: true, FirstAt: 1, Step: 2, Flags: KeyOW | KeyUpdate}},
			Handler: mSetEX,
			Summary: "Sets several strings with one expiry, all of them or none.", Since: "8.4.0", Group: "string",
			Complexity: "O(N) where N is the number of keys.",
			Syntax: "numkeys key value [key value ...] [NX | XX] " +
				"[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
		},
		{
			Name: "cas", Arity: -4, Flags: Write | DenyOOM | Fast, Categories: CatString, Brief: true,
			Keys: OneKey(KeyRW | KeyAccess | KeyUpdate), Handler: cas,
			Summary: "Sets a string to a new value if it has the old one.", Since: "tair 1.2.3", Group: "string",
			Complexity: "O(1)",
			Syntax: "key oldvalue newvalue " +
				"[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
		},
		{
			Name: "cad", Arity: 3, Flags: Write | Fast, Categories: CatString, Brief: true,
			Keys: OneKey(KeyRW | KeyAccess | KeyDelete), Handler: cad,
			Summary: "Deletes a key if its value is the given one.", Since: "tair 1.2.3", Group: "string",
			Complexity: "O(1)", Syntax: "key value",
		},
	}
}

// comparison is the condition that an option's name stands for, always if none.
func comparison(word []byte) condition {
	switch {
	case equalFold(word, "ifeq"):
		return ifEqual
	case equalFold(word, "ifne"):
		return ifNotEqual
	case equalFold(word, "ifdeq"):
		return ifDigest
	case equalFold(word, "ifdne"):
		return ifNotDigest
	}
	return always
}

// digestLen is the length of a digest in hexadecimal digits.
const digestLen = 16

func isDigest(b []byte) bool {
	if len(b) != digestLen {
		return false
	}
	for _, c := range b {
		if !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f') {
			return false
		}
	}
	return true
}

// hash is the XXH3 of value, which is charged to who calls.
func (c *Call) hash(value []byte) uint64 {
	if len(value) <= digestAtOnce {
		c.payBytes(len(value))
		return xxh3.Hash(value)
	}
	h := xxh3.New()
	for len(value) > 0 && c.payBytes(digestAtOnce) {
		n := min(len(value), digestAtOnce)
		h.Write(value[:n])
		value = value[n:]
	}
	return h.Sum64()
}

// digestAtOnce is how many bytes are hashed before who calls is asked whether to go
// on.
const digestAtOnce = 1 << 20

// digestOf is the XXH3 of value, 64 bits, most significant digit first.
func (c *Call) digestOf(value []byte) (hex [digestLen]byte) {
	const digits = "0123456789abcdef"
	h := c.hash(value)
	for i := digestLen - 1; i >= 0; i-- {
		hex[i] = digits[h&15]
		h >>= 4
	}
	return hex
}

// digestEqual compares the digest of value with one from outside, whose letters
// may have either case.
func (c *Call) digestEqual(value, want []byte) bool {
	d := c.digestOf(value)
	return bytes.EqualFold(d[:], want)
}

func digest(c *Call) {
	k := c.ReadKey(1)
	if !c.IsString(k) {
		return
	}
	if !k.Exists() {
		c.Reply.Null()
		return
	}
	d := c.digestOf(k.Str())
	c.Reply.Bulk(d[:])
}

// remove deletes a key that is there.
func (c *Call) remove(k *store.Key) {
	k.Delete()
	c.Notify(store.NotifyGeneric, "del", k)
}

// delIfEq answers 1 or 0, as Valkey 9.0.
func delIfEq(c *Call) {
	k := c.Key(1)
	if !c.IsString(k) {
		return
	}
	if !k.Exists() || !bytes.Equal(k.Str(), c.Args[2]) {
		c.Reply.Int(0)
		return
	}
	c.remove(k)
	c.Reply.Int(1)
}

// delEX answers 0 for an absent key whatever the condition, as Redis 8.4.
func delEX(c *Call) {
	if len(c.Args) != 2 && len(c.Args) != 4 {
		c.Err(WrongArity(c.Spec))
		return
	}
	k := c.Key(1)
	if !k.Exists() {
		c.Reply.Int(0)
		return
	}
	if len(c.Args) == 4 {
		if k.Kind() != store.String {
			c.Err(errDelexType)
			return
		}
		cond := comparison(c.Args[2])
		switch {
		case cond == always:
			c.Err(errDelexCondition)
			return
		case (cond == ifDigest || cond == ifNotDigest) && !isDigest(c.Args[3]):
			c.Err(errDigestLength)
			return
		case !c.compares(k, cond, c.Args[3]):
			c.Reply.Int(0)
			return
		}
	}
	c.remove(k)
	c.Reply.Int(1)
}

// cas answers 1, 0 when the value is another, -1 when there is none, as Tair.
// Without an option the key loses its expiry.
func cas(c *Call) {
	var o setOptions
	if !o.parse(c, 4, knowsKeepTTL) {
		return
	}
	ttl := store.NoTTL
	switch {
	case o.timed():
		n, ok := ParseInt(o.time)
		if ok {
			ttl, ok = o.ttlOf(c, n)
		}
		if !ok {
			c.Err(ErrSyntax)
			return
		}
	case o.expiry == keepTTL:
		ttl = store.KeepTTL
	}
	if k, ok := c.expected(); ok {
		c.put(k, c.Args[3], ttl, &o)
		c.Reply.Int(1)
	}
}

// expected is the key, if it has the value that is expected. Otherwise it has
// answered 0, or -1 when there is none, as Tair.
func (c *Call) expected() (*store.Key, bool) {
	k := c.Key(1)
	switch {
	case !c.IsString(k):
	case !k.Exists():
		c.Reply.Int(-1)
	case !bytes.Equal(k.Str(), c.Args[2]):
		c.Reply.Int(0)
	default:
		return k, true
	}
	return nil, false
}

// cad answers 1, 0 when the value is another, -1 when there is none, as Tair.
func cad(c *Call) {
	if k, ok := c.expected(); ok {
		c.remove(k)
		c.Reply.Int(1)
	}
}
