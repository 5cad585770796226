package command

import (
	"math/rand/v2"

	"github.com/latchkey-proxy/latchkey/store"
)

func sPop(c *Call) {
	if len(c.Args) > 3 {
		c.Err(ErrSyntax)
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
		c.Reply.Set(0)
	case !k.Exists():
		c.Reply.Null()
	case !c.is(store.Set, k):
	case n == 0:
		c.Reply.Set(0)
	default:
		if counted {
			c.Reply.Set(min(n, k.Card()))
		}
		k.PopMembers(n, rand.IntN, c.Reply.BulkString)
		c.notifyPopped(store.NotifySet, "spop", k)
	}
}

func sRandMember(c *Call) {
	if len(c.Args) > 3 {
		c.Err(ErrSyntax)
		return
	}
	if len(c.Args) == 2 {
		k := c.ReadKey(1)
		if !k.Exists() {
			c.Reply.Null()
		} else if c.is(store.Set, k) {
			members := k.Members()
			c.Reply.BulkString(members[rand.IntN(len(members))])
		}
		return
	}
	count, ok := c.long(2)
	if !ok {
		return
	}
	k := c.ReadKey(1)
	if !c.is(store.Set, k) {
		return
	}
	members := k.Members()
	switch {
	case count == 0 || len(members) == 0:
		c.Reply.Array(0)
	case count < 0:
		c.drawAgain(members, -count)
	default:
		c.draw(members, int(min(count, int64(len(members)))))
	}
}

// drawnOverhead is what a member takes in a reply beside its bytes, at least.
const drawnOverhead = 5

// drawAgain answers n random members, of which each may be drawn several times.
// A few bytes of a client must not ask for more than the longest string.
func (c *Call) drawAgain(members []string, n int64) {
	limit := c.maxValue()
	if n > limit/drawnOverhead {
		c.Err(ErrOutOfRange)
		return
	}
	mark, size := c.Reply.Mark(), int64(0)
	c.Reply.Array(int(n))
	for i := range int(n) {
		if !c.Tx.Step(i, 3) {
			return
		}
		m := members[rand.IntN(len(members))]
		if size += int64(len(m)) + drawnOverhead; size > limit {
			c.Reply.Rewind(mark)
			c.Err(ErrOutOfRange)
			return
		}
		c.Reply.BulkString(m)
	}
}

// draw answers n different members: the beginning of a shuffle, of which only
// the places that differ are kept.
func (c *Call) draw(members []string, n int) {
	c.Reply.Array(n)
	if n == len(members) {
		c.strings(members)
		return
	}
	if !c.alloc(n * seenSlot) {
		return
	}
	moved := make(map[int]int, n)
	at := func(i int) int {
		if j, ok := moved[i]; ok {
			return j
		}
		return i
	}
	for i := range n {
		j := i + rand.IntN(len(members)-i)
		c.Reply.BulkString(members[at(j)])
		moved[j] = at(i)
		if !c.Tx.Step(i, rememberWork) {
			return
		}
	}
}
