package command

import "github.com/latchkey-proxy/latchkey/store"

func setCommands() []*Spec {
	reading := AllKeys(KeyRO | KeyAccess)
	storing := func(dst KeyFlags) []KeySpec {
		return []KeySpec{
			{Begin: 1, Flags: dst | KeyUpdate},
			{Begin: 2, Last: -1, Flags: KeyRO | KeyAccess},
		}
	}
	const (
		interCost = "O(N*M) where N is the number of members of the smallest set and M the number of sets."
		unionCost = "O(N) where N is the number of members of all the sets."
	)
	return []*Spec{
		{
			Name: "sadd", Arity: -3, Flags: Write | DenyOOM | Fast, Categories: CatSet,
			Keys: OneKey(KeyRW | KeyInsert), Handler: sAdd,
			Summary: "Adds members to a set, which is created when absent, and returns how many are new.",
			Since:   "1.0.0", Group: "set", Complexity: "O(1) for each member.", Syntax: "key member [member ...]",
		},
		{
			Name: "srem", Arity: -3, Flags: Write | Fast, Categories: CatSet,
			Keys: OneKey(KeyRW | KeyDelete), Handler: sRem,
			Summary: "Removes members from a set and returns how many there were; a set without members is deleted.",
			Since:   "1.0.0", Group: "set", Complexity: "O(N) where N is the number of members to remove.", Syntax: "key member [member ...]",
		},
		{
			Name: "smove", Arity: 4, Flags: Write | Fast, Categories: CatSet,
			Keys: []KeySpec{
				{Begin: 1, Flags: KeyRW | KeyAccess | KeyDelete},
				{Begin: 2, Flags: KeyRW | KeyInsert},
			},
			Handler: sMove,
			Summary: "Moves a member from a set to another.",
			Since:   "1.0.0", Group: "set", Complexity: "O(1)", Syntax: "source destination member",
		},
		{
			Name: "sismember", Arity: 3, Flags: ReadOnly | Fast, Categories: CatSet, Keys: OneKey(KeyRO), Handler: sIsMember,
			Summary: "Tells whether a set has a member.",
			Since:   "1.0.0", Group: "set", Complexity: "O(1)", Syntax: "key member",
		},
		{
			Name: "smismember", Arity: -3, Flags: ReadOnly | Fast, Categories: CatSet, Keys: OneKey(KeyRO | KeyAccess), Handler: sMIsMember,
			Summary: "Tells of several members whether a set has them.",
			Since:   "6.2.0", Group: "set", Complexity: "O(N) where N is the number of members.", Syntax: "key member [member ...]",
		},
		{
			Name: "scard", Arity: 2, Flags: ReadOnly | Fast, Categories: CatSet, Keys: OneKey(KeyRO), Handler: sCard,
			Summary: "Returns the number of members of a set.",
			Since:   "1.0.0", Group: "set", Complexity: "O(1)", Syntax: "key",
		},
		{
			Name: "smembers", Arity: 2, Flags: ReadOnly, Categories: CatSet, Keys: OneKey(KeyRO | KeyAccess),
			Access: Locked, Handler: func(c *Call) { combineReply(c, union) },
			Summary: "Returns all members of a set.",
			Since:   "1.0.0", Group: "set", Complexity: "O(N) where N is the number of members.", Syntax: "key",
		},
		{
			Name: "spop", Arity: -2, Flags: Write | Fast, Categories: CatSet, Keys: OneKey(KeyRW | KeyAccess | KeyDelete), Handler: sPop,
			Summary: "Removes random members from a set and returns them; a set without members is deleted.",
			Since:   "1.0.0", Group: "set", Complexity: "O(N) where N is the number of members removed.", Syntax: "key [count]",
		},
		{
			Name: "srandmember", Arity: -2, Flags: ReadOnly, Categories: CatSet, Keys: OneKey(KeyRO | KeyAccess),
			Access: Locked, Handler: sRandMember,
			Summary: "Returns random members of a set; with a negative count the same may come several times.",
			Since:   "1.0.0", Group: "set", Complexity: "O(N) where N is the number of members returned.", Syntax: "key [count]",
			Differs: "a negative count that would make a reply of more than proto-max-bulk-len bytes is refused.",
		},
		{
			Name: "sinter", Arity: -2, Flags: ReadOnly, Categories: CatSet, Keys: reading,
			Access: Locked, Handler: func(c *Call) { combineReply(c, inter) },
			Summary: "Returns the members that all of the sets have.",
			Since:   "1.0.0", Group: "set", Complexity: interCost, Syntax: "key [key ...]",
		},
		{
			Name: "sunion", Arity: -2, Flags: ReadOnly, Categories: CatSet, Keys: reading,
			Access: Locked, Handler: func(c *Call) { combineReply(c, union) },
			Summary: "Returns the members that any of the sets has.",
			Since:   "1.0.0", Group: "set", Complexity: unionCost, Syntax: "key [key ...]",
		},
		{
			Name: "sdiff", Arity: -2, Flags: ReadOnly, Categories: CatSet, Keys: reading,
			Access: Locked, Handler: func(c *Call) { combineReply(c, difference) },
			Summary: "Returns the members of the first set that none of the others has.",
			Since:   "1.0.0", Group: "set", Complexity: unionCost, Syntax: "key [key ...]",
		},
		{
			Name: "sinterstore", Arity: -3, Flags: Write | DenyOOM, Categories: CatSet, Keys: storing(KeyRW),
			Access: Locked, Handler: func(c *Call) { combineStore(c, inter, "sinterstore") },
			Summary: "Stores the members that all of the sets have, and returns how many there are.",
			Since:   "1.0.0", Group: "set", Complexity: interCost, Syntax: "destination key [key ...]",
		},
		{
			Name: "sunionstore", Arity: -3, Flags: Write | DenyOOM, Categories: CatSet, Keys: storing(KeyOW),
			Access: Locked, Handler: func(c *Call) { combineStore(c, union, "sunionstore") },
			Summary: "Stores the members that any of the sets has, and returns how many there are.",
			Since:   "1.0.0", Group: "set", Complexity: unionCost, Syntax: "destination key [key ...]",
		},
		{
			Name: "sdiffstore", Arity: -3, Flags: Write | DenyOOM, Categories: CatSet, Keys: storing(KeyOW),
			Access: Locked, Handler: func(c *Call) { combineStore(c, difference, "sdiffstore") },
			Summary: "Stores the members of the first set that none of the others has, and returns how many there are.",
			Since:   "1.0.0", Group: "set", Complexity: unionCost, Syntax: "destination key [key ...]",
		},
		{
			Name: "sintercard", Arity: -3, Flags: ReadOnly | MovableKeys, Categories: CatSet,
			Keys:   []KeySpec{{Begin: 1, Count: true, FirstAt: 1, Flags: KeyRO | KeyAccess}},
			Access: Locked, Handler: sInterCard,
			Summary: "Returns how many members all of the sets have, counting no further than a limit.",
			Since:   "7.0.0", Group: "set", Complexity: interCost, Syntax: "numkeys key [key ...] [LIMIT limit]",
		},
		{
			Name: "sscan", Arity: -3, Flags: ReadOnly, Categories: CatSet, Keys: OneKey(KeyRO | KeyAccess), Handler: sScan,
			Summary: "Returns some members of a set, and the cursor with which the next call goes on.",
			Since:   "2.8.0", Group: "set", Complexity: "O(1) for a call, O(N) for all calls until the cursor is 0 again.",
			Syntax: "key cursor [MATCH pattern] [COUNT count]",
		},
	}
}

func sAdd(c *Call) {
	k := c.Key(1)
	if !c.is(store.Set, k) {
		return
	}
	if !k.Exists() {
		c.Notify(store.NotifyNew, "new", k)
	}
	n := k.AddMembers(c.Args[2:]...)
	if n > 0 {
		c.Notify(store.NotifySet, "sadd", k)
	}
	c.Reply.Int(int64(n))
}

func sRem(c *Call) {
	k := c.Key(1)
	if !k.Exists() {
		c.Reply.Int(0)
		return
	}
	if !c.is(store.Set, k) {
		return
	}
	n := k.RemoveMembers(c.Args[2:]...)
	if n > 0 {
		c.notifyPopped(store.NotifySet, "srem", k)
	}
	c.Reply.Int(int64(n))
}

func sMove(c *Call) {
	src, dst, member := c.Key(1), c.Key(2), c.Args[3]
	if !src.Exists() {
		c.Reply.Int(0)
		return
	}
	if !c.is(store.Set, src) || !c.is(store.Set, dst) {
		return
	}
	if !src.HasMember(member) {
		c.Reply.Int(0)
		return
	}
	if src != dst {
		src.RemoveMembers(member)
		c.notifyPopped(store.NotifySet, "srem", src)
		if !dst.Exists() {
			c.Notify(store.NotifyNew, "new", dst)
		}
		if dst.AddMembers(member) > 0 {
			c.Notify(store.NotifySet, "sadd", dst)
		}
	}
	c.Reply.Int(1)
}

func (c *Call) member(k *store.Key, i int) {
	if k.HasMember(c.Args[i]) {
		c.Reply.Int(1)
	} else {
		c.Reply.Int(0)
	}
}

func sIsMember(c *Call) {
	if k := c.ReadKey(1); c.is(store.Set, k) {
		c.member(k, 2)
	}
}

func sMIsMember(c *Call) {
	k := c.ReadKey(1)
	if !c.is(store.Set, k) {
		return
	}
	c.Reply.Array(len(c.Args) - 2)
	for i := 2; i < len(c.Args); i++ {
		c.member(k, i)
	}
}

func sCard(c *Call) {
	if k := c.ReadKey(1); c.is(store.Set, k) {
		c.Reply.Int(int64(k.Card()))
	}
}
