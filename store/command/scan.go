package command

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/latchkey-proxy/latchkey/store/glob"
)

func scanCommands() []*Spec {
	return []*Spec{
		{
			Name: "keys", Arity: 2, Flags: ReadOnly, Categories: CatKeyspace | CatDangerous,
			Access: Visits, Handler: keys,
			Summary: "Returns all keys whose names match a pattern.", Since: "1.0.0", Group: "generic",
			Complexity: "O(N) where N is the number of keys in the database.", Syntax: "pattern",
			Differs: "other clients go on meanwhile, so a key that is renamed while KEYS runs may appear twice or not at all.",
		},
		{
			Name: "scan", Arity: -2, Flags: ReadOnly, Categories: CatKeyspace,
			Access: Visits, Handler: scan,
			Summary: "Returns some keys, and the cursor with which the next call goes on.", Since: "2.8.0", Group: "generic",
			Complexity: "O(1) for a call, O(N) for all calls until the cursor is 0 again.",
			Syntax:     "cursor [MATCH pattern] [COUNT count] [TYPE type]",
			Differs:    "a call may return more than COUNT keys: it visits whole parts of the keyspace, each of about 1/256 of it. No key is returned twice.",
		},
		{
			Name: "randomkey", Arity: 1, Flags: ReadOnly, Categories: CatKeyspace,
			Access: Visits, Handler: randomKey,
			Summary: "Returns the name of some key.", Since: "1.0.0", Group: "generic",
			Complexity: "O(N/256) where N is the number of keys in the database.",
		},
	}
}

// nameFilter is a glob pattern, of which "*" alone also matches the empty name.
type nameFilter struct {
	pattern []byte
	all     bool
}

func newNameFilter(pattern []byte) nameFilter {
	return nameFilter{pattern, len(pattern) == 1 && pattern[0] == '*'}
}

func (f nameFilter) match(name string) bool { return f.all || glob.Match(f.pattern, name, false) }

func keys(c *Call) {
	filter := newNameFilter(c.Args[1])
	var names []string
	// Part by part, so that a client that is gone does not make us go on.
	for cursor := uint64(0); ; {
		cursor = c.Tx.Scan(c.S.DB, cursor, 1, func(name, _ string) {
			if filter.match(name) {
				names = append(names, name)
			}
		})
		if cursor == 0 || c.cancelled() {
			break
		}
	}
	c.Reply.Array(len(names))
	for _, name := range names {
		c.Reply.BulkString(name)
	}
}

// scanWork is what a part of the keyspace costs at least, in units of a Meter.
const scanWork = 16

// cancelled tells whether whoever waits for the reply is gone, or the budget of the
// script that calls is.
func (c *Call) cancelled() bool {
	if c.Meter != nil && !c.Meter.Pay(scanWork) {
		return true
	}
	if c.S.Wait == nil {
		return false
	}
	select {
	case <-c.S.Wait.Done:
		return true
	default:
		return false
	}
}

func scan(c *Call) {
	cursor, ok := parseCursor(c.Args[1])
	if !ok {
		c.Err(ErrInvalidCursor)
		return
	}
	o, ok := c.scanOptions(2)
	if !ok {
		return
	}
	var names []string
	next := c.Tx.Scan(c.S.DB, cursor, int(min(o.count, math.MaxInt)), func(name, typ string) {
		if (o.kind == nil || equalFold(o.kind, strings.ToLower(typ))) && o.filter.match(name) {
			names = append(names, name)
		}
	})
	c.scanned(next, names)
}

// scanOptions are those of SCAN and SSCAN.
type scanOptions struct {
	count  int64
	filter nameFilter
	kind   []byte // of SCAN; nil: every type
}

// scanOptions reads the options from argument i on, or answers what is wrong.
func (c *Call) scanOptions(i int) (o scanOptions, ok bool) {
	o = scanOptions{count: 10, filter: nameFilter{all: true}}
	keyspace := i == 2 // SCAN names no key
	for ; i < len(c.Args); i += 2 {
		more := i+1 < len(c.Args)
		switch {
		case more && c.Is(i, "count"):
			if o.count, ok = c.Int(i + 1); !ok {
				return o, false
			}
			if o.count < 1 {
				c.Err(ErrSyntax)
				return o, false
			}
		case more && c.Is(i, "match"):
			o.filter = newNameFilter(c.Args[i+1])
		case more && keyspace && c.Is(i, "type"):
			o.kind = c.Args[i+1]
		default:
			c.Err(ErrSyntax)
			return o, false
		}
	}
	return o, true
}

// scanned is the reply of a call that scans.
func (c *Call) scanned(next uint64, found []string) {
	c.Reply.Array(2)
	c.Reply.BulkString(strconv.FormatUint(next, 10))
	c.Reply.Array(len(found))
	for _, s := range found {
		c.Reply.BulkString(s)
	}
}

// parseCursor reads a cursor as strtoul does, which Redis uses: a sign may stand
// before it, the empty text is 0, and what follows a NUL is not seen.
func parseCursor(b []byte) (uint64, bool) {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	if len(b) == 0 {
		return 0, true
	}
	negative := b[0] == '-'
	if negative || b[0] == '+' {
		b = b[1:]
	}
	if len(b) == 0 {
		return 0, false
	}
	var n uint64
	for _, d := range b {
		if d < '0' || d > '9' || n > math.MaxUint64/10 {
			return 0, false
		}
		sum := n*10 + uint64(d-'0')
		if sum < n*10 {
			return 0, false
		}
		n = sum
	}
	if negative {
		n = -n
	}
	return n, true
}

func randomKey(c *Call) {
	if name, ok := c.Tx.RandomKey(c.S.DB); ok {
		c.Reply.BulkString(name)
		return
	}
	c.Reply.Null()
}
