package command

import (
	"math"
	"slices"

	"github.com/latchkey-proxy/latchkey/store"
)

// combination makes one set of several, of which absent ones are empty. It stops
// when it has limit members, or when the budget of who calls is spent.
type combination func(c *Call, sets []*store.Key, limit int) []string

// What one member costs that is looked for in a set, or remembered, in units of a
// Meter, and the bytes that it takes in a list of members and in a map.
const (
	findWork     = 5
	rememberWork = 15
	seenSlot     = 64
)

// sources are the sets at the arguments from first to end. When one is of
// another kind, the error is answered.
func (c *Call) sources(first, end int) ([]*store.Key, bool) {
	sets := make([]*store.Key, 0, end-first)
	for i := first; i < end; i++ {
		k := c.ReadKey(i)
		if !c.is(store.Set, k) {
			return nil, false
		}
		sets = append(sets, k)
	}
	return sets, true
}

func inter(c *Call, sets []*store.Key, limit int) []string {
	sets = slices.Clone(sets)
	slices.SortFunc(sets, func(a, b *store.Key) int { return a.Card() - b.Card() })
	var out []string
	for i, m := range sets[0].Members() {
		if len(out) == limit || !c.searched(i, len(sets), len(out)) {
			break
		}
		if !slices.ContainsFunc(sets[1:], func(k *store.Key) bool { return !k.HasMemberString(m) }) {
			out = append(out, m)
		}
	}
	return out
}

// searched charges for the member i of a set, which was looked for in others, and
// for the list that came of them all so far.
func (c *Call) searched(i, sets, found int) bool {
	return c.Tx.Step(i, sets*findWork) && (found == 0 || found&(found-1) != 0 || c.alloc(found*nameSlot))
}

func union(c *Call, sets []*store.Key, _ int) []string {
	if len(sets) == 1 {
		return sets[0].Members()
	}
	seen := make(map[string]struct{})
	var out []string
	met := 0
	for _, k := range sets {
		for _, m := range k.Members() {
			if _, has := seen[m]; !has {
				seen[m] = struct{}{}
				out = append(out, m)
				if n := len(out); n&(n-1) == 0 && !c.alloc(n*seenSlot) {
					return nil
				}
			}
			if !c.Tx.Step(met, rememberWork) {
				return nil
			}
			met++
		}
	}
	return out
}

func difference(c *Call, sets []*store.Key, _ int) []string {
	var out []string
	for i, m := range sets[0].Members() {
		if !c.searched(i, len(sets), len(out)) {
			break
		}
		if !slices.ContainsFunc(sets[1:], func(k *store.Key) bool { return k.HasMemberString(m) }) {
			out = append(out, m)
		}
	}
	return out
}

// combineReply is SINTER, SUNION and SDIFF.
func combineReply(c *Call, combine combination) {
	sets, ok := c.sources(1, len(c.Args))
	if !ok {
		return
	}
	members := combine(c, sets, math.MaxInt)
	if c.Tx.Spent() {
		return
	}
	c.Reply.Set(len(members))
	c.strings(members)
}

// combineStore is SINTERSTORE, SUNIONSTORE and SDIFFSTORE.
func combineStore(c *Call, combine combination, event string) {
	sets, ok := c.sources(2, len(c.Args))
	if !ok {
		return
	}
	members := combine(c, sets, math.MaxInt)
	if c.Tx.Spent() {
		return
	}
	dst := c.Key(1)
	there := dst.Exists()
	dst.StoreMembers(members)
	switch {
	case len(members) > 0:
		if !there {
			c.Notify(store.NotifyNew, "new", dst)
		}
		c.Notify(store.NotifySet, event, dst)
	case there:
		c.Notify(store.NotifyGeneric, "del", dst)
	}
	c.Reply.Int(int64(len(members)))
}

func sInterCard(c *Call) {
	n, ok := ParseInt(c.Args[1])
	switch {
	case !ok || n < 1:
		c.Err(errNumKeysZero)
		return
	case n > int64(len(c.Args)-2):
		c.Err(errNumKeysArguments)
		return
	}
	end, limit := 2+int(n), 0
	for i := end; i < len(c.Args); i += 2 {
		if !c.Is(i, "limit") || i+1 == len(c.Args) {
			c.Err(ErrSyntax)
			return
		}
		if limit, ok = c.positive(i+1, errLimitNegative); !ok {
			return
		}
	}
	if limit == 0 {
		limit = math.MaxInt
	}
	if sets, ok := c.sources(2, end); ok {
		c.Reply.Int(int64(len(inter(c, sets, limit))))
	}
}

func sScan(c *Call) {
	cursor, ok := parseCursor(c.Args[2])
	if !ok {
		c.Err(ErrInvalidCursor)
		return
	}
	k := c.ReadKey(1)
	if !k.Exists() {
		c.scanned(0, nil)
		return
	}
	if !c.is(store.Set, k) {
		return
	}
	o, ok := c.scanOptions(3)
	if !ok {
		return
	}
	// From the last place to the first, the cursor being the number of those
	// left: a member that is removed gives its place to the last one, so none
	// that is there all the time moves from those left to those seen.
	members := k.Members()
	left := len(members)
	if cursor != 0 && cursor < uint64(left) {
		left = int(cursor)
	}
	next := 0
	if k.Encoding() == store.HashTable {
		next = int(max(0, int64(left)-min(o.count, int64(left))))
	}
	found := o.filter.among(c, nil, members[next:left])
	if !c.alloc(nameSlot*len(found)) || !c.GoOn(0) {
		return
	}
	c.scanned(uint64(next), found)
}
