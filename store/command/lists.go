package command

import (
	"math"

	"github.com/latchkey-proxy/latchkey/store"
)

func listCommands() []*Spec {
	const perElement = "O(1) for each element."
	pushing, popping := OneKey(KeyRW|KeyInsert), OneKey(KeyRW|KeyAccess|KeyDelete)
	moving := []KeySpec{
		{Begin: 1, Flags: KeyRW | KeyAccess | KeyDelete},
		{Begin: 2, Flags: KeyRW | KeyInsert},
	}
	return []*Spec{
		{
			Name: "lpush", Arity: -3, Flags: Write | DenyOOM | Fast, Categories: CatList, Keys: pushing,
			Handler: func(c *Call) { push(c, store.Head, false) },
			Summary: "Adds elements to the head of a list, one after the other; the list is created when absent.",
			Since:   "1.0.0", Group: "list", Complexity: perElement, Syntax: "key element [element ...]",
		},
		{
			Name: "rpush", Arity: -3, Flags: Write | DenyOOM | Fast, Categories: CatList, Keys: pushing,
			Handler: func(c *Call) { push(c, store.Tail, false) },
			Summary: "Adds elements to the tail of a list, which is created when absent.",
			Since:   "1.0.0", Group: "list", Complexity: perElement, Syntax: "key element [element ...]",
		},
		{
			Name: "lpushx", Arity: -3, Flags: Write | DenyOOM | Fast, Categories: CatList, Keys: pushing,
			Handler: func(c *Call) { push(c, store.Head, true) },
			Summary: "Adds elements to the head of a list, if there is one.",
			Since:   "2.2.0", Group: "list", Complexity: perElement, Syntax: "key element [element ...]",
		},
		{
			Name: "rpushx", Arity: -3, Flags: Write | DenyOOM | Fast, Categories: CatList, Keys: pushing,
			Handler: func(c *Call) { push(c, store.Tail, true) },
			Summary: "Adds elements to the tail of a list, if there is one.",
			Since:   "2.2.0", Group: "list", Complexity: perElement, Syntax: "key element [element ...]",
		},
		{
			Name: "lpop", Arity: -2, Flags: Write | Fast, Categories: CatList, Keys: popping,
			Handler: func(c *Call) { pop(c, store.Head) },
			Summary: "Removes elements from the head of a list and returns them; a list without elements is deleted.",
			Since:   "1.0.0", Group: "list", Complexity: "O(N) where N is the number of elements returned.", Syntax: "key [count]",
		},
		{
			Name: "rpop", Arity: -2, Flags: Write | Fast, Categories: CatList, Keys: popping,
			Handler: func(c *Call) { pop(c, store.Tail) },
			Summary: "Removes elements from the tail of a list and returns them; a list without elements is deleted.",
			Since:   "1.0.0", Group: "list", Complexity: "O(N) where N is the number of elements returned.", Syntax: "key [count]",
		},
		{
			Name: "lmpop", Arity: -4, Flags: Write | MovableKeys, Categories: CatList,
			Keys:    []KeySpec{{Begin: 1, Count: true, FirstAt: 1, Flags: KeyRW | KeyAccess | KeyDelete}},
			Handler: lMPop,
			Summary: "Removes elements from an end of the first list that has any, and returns them with its key.",
			Since:   "7.0.0", Group: "list", Complexity: "O(N+M) where N is the number of keys and M the number of elements returned.",
			Syntax: "numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
		},
		{
			Name: "lmove", Arity: 5, Flags: Write | DenyOOM, Categories: CatList, Keys: moving, Handler: lMove,
			Summary: "Moves an element from an end of a list to an end of another, or of the same, and returns it.",
			Since:   "6.2.0", Group: "list", Complexity: "O(1)", Syntax: "source destination <LEFT | RIGHT> <LEFT | RIGHT>",
		},
		{
			Name: "rpoplpush", Arity: 3, Flags: Write | DenyOOM, Categories: CatList, Keys: moving,
			Handler: func(c *Call) { moveElement(c, store.Tail, store.Head) },
			Summary: "Moves the last element of a list to the head of another, or of the same, and returns it.",
			Since:   "1.2.0", Group: "list", Complexity: "O(1)", Syntax: "source destination",
		},
		{
			Name: "llen", Arity: 2, Flags: ReadOnly | Fast, Categories: CatList, Keys: OneKey(KeyRO), Handler: lLen,
			Summary: "Returns the number of elements of a list.",
			Since:   "1.0.0", Group: "list", Complexity: "O(1)", Syntax: "key",
		},
		{
			Name: "lindex", Arity: 3, Flags: ReadOnly, Categories: CatList, Keys: OneKey(KeyRO | KeyAccess), Handler: lIndex,
			Summary: "Returns an element of a list by its index.",
			Since:   "1.0.0", Group: "list", Complexity: "O(1)", Syntax: "key index",
		},
		{
			Name: "lrange", Arity: 4, Flags: ReadOnly, Categories: CatList, Keys: OneKey(KeyRO | KeyAccess),
			Access: Locked, Handler: lRange,
			Summary: "Returns a part of a list.",
			Since:   "1.0.0", Group: "list", Complexity: "O(N) where N is the number of elements returned.", Syntax: "key start stop",
		},
		{
			Name: "lpos", Arity: -3, Flags: ReadOnly, Categories: CatList, Keys: OneKey(KeyRO | KeyAccess),
			Access: Locked, Handler: lPos,
			Summary: "Returns the indexes of the elements of a list that equal a value.",
			Since:   "6.0.6", Group: "list", Complexity: "O(N) where N is the number of elements compared.",
			Syntax: "key element [RANK rank] [COUNT num-matches] [MAXLEN len]",
		},
		{
			Name: "lset", Arity: 4, Flags: Write | DenyOOM, Categories: CatList, Keys: OneKey(KeyRW | KeyUpdate), Handler: lSet,
			Summary: "Replaces an element of a list.",
			Since:   "1.0.0", Group: "list", Complexity: "O(1)", Syntax: "key index element",
		},
		{
			Name: "linsert", Arity: 5, Flags: Write | DenyOOM, Categories: CatList, Keys: pushing, Access: Locked, Handler: lInsert,
			Summary: "Inserts an element before or after the first that equals a pivot.",
			Since:   "2.2.0", Group: "list", Complexity: "O(N) where N is the length of the list.",
			Syntax: "key <BEFORE | AFTER> pivot element",
		},
		{
			Name: "lrem", Arity: 4, Flags: Write, Categories: CatList, Keys: OneKey(KeyRW | KeyDelete), Access: Locked, Handler: lRem,
			Summary: "Removes elements that equal a value: the first ones, the last ones (negative count) or all (0).",
			Since:   "1.0.0", Group: "list", Complexity: "O(N) where N is the length of the list.", Syntax: "key count element",
		},
		{
			Name: "ltrim", Arity: 4, Flags: Write, Categories: CatList, Keys: OneKey(KeyRW | KeyDelete), Access: Locked, Handler: lTrim,
			Summary: "Removes all but a part of a list.",
			Since:   "1.0.0", Group: "list", Complexity: "O(N) where N is the number of elements removed.", Syntax: "key start stop",
		},
	}
}

// is tells whether k can be used as a value of a kind: it is one or is absent.
// Otherwise the error is answered.
func (c *Call) is(kind store.Kind, k *store.Key) bool {
	if is := k.Kind(); is != kind && is != store.None {
		c.Err(ErrWrongType)
		return false
	}
	return true
}

// notifyPopped tells of elements that were taken from k, and of its end if they
// were the last.
func (c *Call) notifyPopped(class uint32, event string, k *store.Key) {
	c.Notify(class, event, k)
	if !k.Exists() {
		c.Notify(store.NotifyGeneric, "del", k)
	}
}

func pushEvent(end store.End) string {
	if end == store.Head {
		return "lpush"
	}
	return "rpush"
}

func popEvent(end store.End) string {
	if end == store.Head {
		return "lpop"
	}
	return "rpop"
}

// push is LPUSH and RPUSH, and LPUSHX and RPUSHX, which need the list.
func push(c *Call, end store.End, exists bool) {
	k := c.Key(1)
	if !c.is(store.List, k) {
		return
	}
	if !k.Exists() {
		if exists {
			c.Reply.Int(0)
			return
		}
		c.Notify(store.NotifyNew, "new", k)
	}
	n := k.Push(end, c.Args[2:]...)
	c.Notify(store.NotifyList, pushEvent(end), k)
	c.Reply.Int(int64(n))
}

// positive parses argument i as a count that may be 0.
func (c *Call) positive(i int, msg string) (int, bool) {
	n, ok := ParseInt(c.Args[i])
	if !ok || n < 0 {
		c.Err(msg)
		return 0, false
	}
	return int(n), true
}

// long parses argument i as an integer whose negation is one too.
func (c *Call) long(i int) (int64, bool) {
	n, ok := c.Int(i)
	if n == math.MinInt64 {
		c.Err(errLongRange)
		return 0, false
	}
	return n, ok
}

// pop is LPOP and RPOP.
func pop(c *Call, end store.End) {
	if len(c.Args) > 3 {
		c.Err(WrongArity(c.Spec))
		return
	}
	n, counted := 1, len(c.Args) == 3
	if counted {
		var ok bool
		if n, ok = c.positive(2, errPositive); !ok {
			return
		}
	}
	k := c.Key(1)
	switch {
	case !k.Exists() && counted:
		c.Reply.NullArray()
	case !k.Exists():
		c.Reply.Null()
	case !c.is(store.List, k):
	case n == 0:
		c.Reply.Array(0)
	default:
		if counted {
			c.Reply.Array(min(n, k.Len()))
		}
		k.Pop(end, n, c.Reply.BulkString)
		c.notifyPopped(store.NotifyList, popEvent(end), k)
	}
}

// end parses argument i as an end of a list.
func (c *Call) end(i int) (store.End, bool) {
	switch {
	case c.Is(i, "left"):
		return store.Head, true
	case c.Is(i, "right"):
		return store.Tail, true
	}
	c.Err(ErrSyntax)
	return 0, false
}

func lMPop(c *Call) {
	keys, ok := ParseInt(c.Args[1])
	if !ok || keys < 1 {
		c.Err(errNumKeysZero)
		return
	}
	if keys > int64(len(c.Args)-3) {
		c.Err(ErrSyntax)
		return
	}
	at := 2 + int(keys)
	end, ok := c.end(at)
	if !ok {
		return
	}
	count := int64(-1)
	for i := at + 1; i < len(c.Args); i++ {
		if count != -1 || !c.Is(i, "count") || i+1 == len(c.Args) {
			c.Err(ErrSyntax)
			return
		}
		i++
		if count, ok = ParseInt(c.Args[i]); !ok || count < 1 {
			c.Err(errCountZero)
			return
		}
	}
	for i := 2; i < at; i++ {
		k := c.Key(i)
		if !c.is(store.List, k) {
			return
		}
		if !k.Exists() {
			continue
		}
		n := int(min(max(count, 1), int64(k.Len())))
		c.Reply.Array(2)
		c.Reply.Bulk(c.Args[i])
		c.Reply.Array(n)
		k.Pop(end, n, c.Reply.BulkString)
		c.notifyPopped(store.NotifyList, popEvent(end), k)
		return
	}
	c.Reply.NullArray()
}

func lMove(c *Call) {
	from, ok := c.end(3)
	if !ok {
		return
	}
	if to, ok := c.end(4); ok {
		moveElement(c, from, to)
	}
}

// moveElement is LMOVE and RPOPLPUSH.
func moveElement(c *Call, from, to store.End) {
	src, dst := c.Key(1), c.Key(2)
	if !src.Exists() {
		c.Reply.Null()
		return
	}
	if !c.is(store.List, src) || !c.is(store.List, dst) {
		return
	}
	if src == dst {
		c.Reply.BulkString(src.Rotate(from, to))
		c.Notify(store.NotifyList, pushEvent(to), dst)
		c.Notify(store.NotifyList, popEvent(from), src)
		return
	}
	var s string
	src.Pop(from, 1, func(e string) { s = e })
	if !dst.Exists() {
		c.Notify(store.NotifyNew, "new", dst)
	}
	dst.PushElement(to, s)
	c.Notify(store.NotifyList, pushEvent(to), dst)
	c.notifyPopped(store.NotifyList, popEvent(from), src)
	c.Reply.BulkString(s)
}

func lLen(c *Call) {
	if k := c.ReadKey(1); c.is(store.List, k) {
		c.Reply.Int(int64(k.Len()))
	}
}

// index parses argument i as an index into k, of which a negative one counts
// from the end; it may lie outside.
func (c *Call) index(i int, k *store.Key) (int64, bool) {
	n, ok := c.Int(i)
	if n < 0 {
		n += int64(k.Len())
	}
	return n, ok
}

func lIndex(c *Call) {
	k := c.ReadKey(1)
	if !k.Exists() {
		c.Reply.Null()
		return
	}
	if !c.is(store.List, k) {
		return
	}
	i, ok := c.index(2, k)
	switch {
	case !ok:
	case i < 0 || i >= int64(k.Len()):
		c.Reply.Null()
	default:
		c.Reply.BulkString(k.Element(int(i)))
	}
}

// span is the part of a list of n elements from start to stop, as LRANGE and
// LTRIM count; it is empty when stop comes out below start.
func span(start, stop int64, n int) (from, to int) {
	length := int64(n)
	if start < 0 {
		start = max(0, start+length)
	}
	if stop < 0 {
		stop += length
	}
	if start > stop || start >= length {
		return 0, -1
	}
	return int(start), int(min(stop, length-1))
}

func lRange(c *Call) {
	start, stop, ok := c.bounds()
	if !ok {
		return
	}
	k := c.ReadKey(1)
	if !c.is(store.List, k) {
		return
	}
	from, to := span(start, stop, k.Len())
	c.Reply.Array(to - from + 1)
	for i := from; i <= to; i++ {
		if c.Reply.BulkString(k.Element(i)); !c.Tx.Step(i-from, 2) {
			return
		}
	}
}

func lPos(c *Call) {
	rank, count, limit := int64(1), -1, 0
	for i := 3; i < len(c.Args); i += 2 {
		more, ok := i+1 < len(c.Args), false
		switch {
		case more && c.Is(i, "rank"):
			if rank, ok = c.long(i + 1); ok && rank == 0 {
				c.Err(errRankZero)
				return
			}
		case more && c.Is(i, "count"):
			count, ok = c.positive(i+1, errCountNegative)
		case more && c.Is(i, "maxlen"):
			limit, ok = c.positive(i+1, errMaxLenNegative)
		default:
			c.Err(ErrSyntax)
		}
		if !ok {
			return
		}
	}
	k := c.ReadKey(1)
	if !c.is(store.List, k) {
		return
	}
	n := k.Len()
	if limit == 0 || limit > n {
		limit = n
	}
	back := rank < 0
	if back {
		rank = -rank
	}
	var found []int
	for i, seen := 0, int64(0); i < limit; i++ {
		if !c.Tx.Step(i, 1) {
			return
		}
		at := i
		if back {
			at = n - 1 - i
		}
		if k.Element(at) != string(c.Args[2]) {
			continue
		}
		if seen++; seen < rank {
			continue
		}
		found = append(found, at)
		if n := len(found); n&(n-1) == 0 && !c.alloc(n*8) {
			return
		}
		if count == -1 || len(found) == count {
			break
		}
	}
	switch {
	case count != -1:
		c.Reply.Array(len(found))
		for i, at := range found {
			if c.Reply.Int(int64(at)); !c.Tx.Step(i, 2) {
				return
			}
		}
	case len(found) == 0:
		c.Reply.Null()
	default:
		c.Reply.Int(int64(found[0]))
	}
}

func lSet(c *Call) {
	k := c.Key(1)
	if !k.Exists() {
		c.Err(ErrNoSuchKey)
		return
	}
	if !c.is(store.List, k) {
		return
	}
	i, ok := c.index(2, k)
	switch {
	case !ok:
	case i < 0 || i >= int64(k.Len()):
		c.Err(ErrOutOfRange)
	default:
		k.SetElement(int(i), c.Args[3])
		c.Notify(store.NotifyList, "lset", k)
		c.OK()
	}
}

func lInsert(c *Call) {
	after := c.Is(2, "after")
	if !after && !c.Is(2, "before") {
		c.Err(ErrSyntax)
		return
	}
	k := c.Key(1)
	if !k.Exists() {
		c.Reply.Int(0)
		return
	}
	if !c.is(store.List, k) {
		return
	}
	n := k.InsertBeside(c.Args[3], after, c.Args[4])
	if n >= 0 {
		c.Notify(store.NotifyList, "linsert", k)
	}
	c.Reply.Int(int64(n))
}

func lRem(c *Call) {
	count, ok := c.Int(2)
	if !ok {
		return
	}
	k := c.Key(1)
	if !k.Exists() {
		c.Reply.Int(0)
		return
	}
	if !c.is(store.List, k) {
		return
	}
	n := k.RemoveElements(c.Args[3], int(count))
	if n > 0 {
		c.notifyPopped(store.NotifyList, "lrem", k)
	}
	c.Reply.Int(int64(n))
}

func lTrim(c *Call) {
	start, stop, ok := c.bounds()
	if !ok {
		return
	}
	k := c.Key(1)
	if !c.is(store.List, k) {
		return
	}
	if k.Exists() {
		from, to := span(start, stop, k.Len())
		k.Trim(from, to)
		c.notifyPopped(store.NotifyList, "ltrim", k)
	}
	c.OK()
}
