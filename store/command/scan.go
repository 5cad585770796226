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
			Complexity: "O(1)",
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

// among gathers the names that match; what there is when it need not go on is for nobody.
func (f nameFilter) among(c *Call, out, names []string) []string {
	work := 0
	for _, name := range names {
		if work += 1 + min(len(f.pattern)*len(name), shortMatch)/(8*stepsPerUnit); work >= matchWork {
			if !c.GoOn(work) {
				return out
			}
			work = 0
		}
		if f.all || c.Match(f.pattern, name) {
			out = append(out, name)
		}
	}
	c.GoOn(work)
	return out
}

// matchWork is how much of it is charged at once.
const matchWork = 256

const (
	// stepsPerUnit is how many steps of a match are one unit of work.
	stepsPerUnit = 4
	// shortMatch is how many steps nobody need be asked for.
	shortMatch = 4096
)

// Match matches a name with a glob pattern, both as long as a client likes. It charges
// for it and ends as GoOn says.
func (c *Call) Match(pattern []byte, name string) bool {
	if len(pattern)*len(name) <= shortMatch {
		return glob.Match(pattern, name, false)
	}
	return glob.MatchWhile(pattern, name, false, c.GoesOn)
}

// GoesOn is GoOn in the steps of package glob.
func (c *Call) GoesOn(steps int) bool { return c.GoOn(steps / stepsPerUnit) }

// GoOn charges n units of work to whose budget the command is on (see store.Meter)
// and tells whether to go on. If not, the handler returns: the budget is used up, or
// the client that waits for the reply has gone or was killed.
func (c *Call) GoOn(n int) bool {
	if c.Tx != nil && c.Tx.Metered() {
		return c.Tx.Pay(n) && !c.Tx.Spent()
	}
	if c.cancelled() && c.failed == "" {
		c.Err(ErrCancelled)
	}
	return c.failed == ""
}

func keys(c *Call) {
	filter := newNameFilter(c.Args[1])
	var names, part []string
	// Part by part, so that a client that is gone does not make us go on.
	for cursor := uint64(0); ; {
		part = part[:0]
		cursor = c.Tx.Scan(c.S.DB, cursor, 1, func(name, _ string) { part = append(part, name) })
		had := len(names)
		names = filter.among(c, names, part)
		if !c.alloc(nameSlot*(len(names)-had)) || !c.GoOn(0) {
			return
		}
		if cursor == 0 {
			break
		}
	}
	c.Reply.Array(len(names))
	c.strings(names)
}

// nameSlot is what a name takes in a list of names, beside its bytes.
const nameSlot = 16

// cancelled tells whether whoever waits for the reply is gone.
func (c *Call) cancelled() bool {
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
	var names, part []string
	next := cursor
	for left := o.count; ; { // part by part, so that each is charged
		part = part[:0]
		next = c.Tx.Scan(c.S.DB, next, 1, func(name, typ string) {
			left--
			if o.kind == nil || equalFold(o.kind, strings.ToLower(typ)) {
				part = append(part, name)
			}
		})
		had := len(names)
		names = o.filter.among(c, names, part)
		if !c.alloc(nameSlot*(len(names)-had)) || !c.GoOn(0) {
			return
		}
		if next == 0 || left <= 0 {
			break
		}
	}
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
	c.strings(found)
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
