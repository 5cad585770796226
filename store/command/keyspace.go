package command

import "github.com/latchkey-proxy/latchkey/store"

func keyCommands() []*Spec {
	return []*Spec{
		{
			Name: "del", Arity: -2, Flags: Write, Categories: CatKeyspace,
			Keys: AllKeys(KeyRM | KeyDelete), Handler: del,
			Summary: "Deletes keys and returns how many of them were there.", Since: "1.0.0", Group: "generic",
			Complexity: "O(N) where N is the number of keys.", Syntax: "key [key ...]",
		},
		{
			Name: "unlink", Arity: -2, Flags: Write | Fast, Categories: CatKeyspace,
			Keys: AllKeys(KeyRM | KeyDelete), Handler: del,
			Summary: "Deletes keys; their memory is reclaimed in the background.", Since: "4.0.0", Group: "generic",
			Complexity: "O(1) for each key.", Syntax: "key [key ...]",
		},
		{
			Name: "exists", Arity: -2, Flags: ReadOnly | Fast, Categories: CatKeyspace,
			Keys: AllKeys(KeyRO), Handler: exists,
			Summary: "Returns how many of the keys are there; one named twice counts twice.", Since: "1.0.0", Group: "generic",
			Complexity: "O(N) where N is the number of keys.", Syntax: "key [key ...]",
		},
		{
			Name: "touch", Arity: -2, Flags: ReadOnly | Fast, Categories: CatKeyspace,
			Keys: AllKeys(KeyRO), Handler: touch,
			Summary: "Marks keys as used just now and returns how many of them are there.", Since: "3.2.1", Group: "generic",
			Complexity: "O(N) where N is the number of keys.", Syntax: "key [key ...]",
		},
		{
			Name: "type", Arity: 2, Flags: ReadOnly | Fast, Categories: CatKeyspace, Brief: true,
			Keys: OneKey(KeyRO), Handler: typeOf,
			Summary: "Returns the type of a key's value, none when it is absent.", Since: "1.0.0", Group: "generic",
			Complexity: "O(1)", Syntax: "key",
		},
	}
}

// del is DEL and UNLINK.
func del(c *Call) {
	n := int64(0)
	for i := 1; i < len(c.Args); i++ {
		if k := c.Key(i); k.Delete() {
			c.Notify(store.NotifyGeneric, "del", k)
			n++
		}
	}
	c.Reply.Int(n)
}

func exists(c *Call) {
	n := int64(0)
	for i := 1; i < len(c.Args); i++ {
		if c.peek(i).Exists() {
			n++
		}
	}
	c.Reply.Int(n)
}

func touch(c *Call) {
	n := int64(0)
	for i := 1; i < len(c.Args); i++ {
		k := c.peek(i)
		if k.Exists() {
			k.Touch() // even for a client that has asked for CLIENT NO-TOUCH
			n++
		}
	}
	c.Reply.Int(n)
}

func typeOf(c *Call) { c.Reply.Status(c.peek(1).TypeName()) }

// peek is the key at argument i for a command that looks at it without using
// it: it counts as a hit or miss only.
func (c *Call) peek(i int) *store.Key {
	k := c.inspect(i)
	if !k.Exists() {
		c.Notify(store.NotifyMiss, "keymiss", k)
	}
	return k
}

// inspect is peek for OBJECT, which does not tell of a miss either.
func (c *Call) inspect(i int) *store.Key {
	k := c.Key(i)
	if k.Exists() {
		c.Tx.Hits++
	} else {
		c.Tx.Misses++
	}
	return k
}
