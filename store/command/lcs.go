package command

import (
	"math"
	"math/bits"
)

// lcsOptions are the options of LCS.
type lcsOptions struct {
	idx, length, withLen bool
	minLen               int64
}

func (o *lcsOptions) parse(c *Call) bool {
	for i := 3; i < len(c.Args); i++ {
		switch {
		case c.Is(i, "idx"):
			o.idx = true
		case c.Is(i, "len"):
			o.length = true
		case c.Is(i, "withmatchlen"):
			o.withLen = true
		case c.Is(i, "minmatchlen") && i+1 < len(c.Args):
			i++
			n, ok := c.Int(i)
			if !ok {
				return false
			}
			o.minLen = max(n, 0)
		default:
			c.Err(ErrSyntax)
			return false
		}
	}
	if o.length && o.idx {
		c.Err(errLCSLenAndIdx)
		return false
	}
	return true
}

const (
	// lcsCell is what a cell of the table costs in Redis, in bytes. Its limit of
	// the table, proto-max-bulk-len, is kept, though ours is a 32nd of it.
	lcsCell = 4
	// lcsMax bounds our table to 512 MiB whatever the limit is.
	lcsMax = 16 << 30
	// lcsPerUnit is how many cells are one unit of work for a Meter.
	lcsPerUnit = 4
)

func lcs(c *Call) {
	ka, kb := c.ReadKey(1), c.ReadKey(2)
	if kind := ka.Kind(); !isStringOrNone(kind) || !isStringOrNone(kb.Kind()) {
		c.Err(errLCSType)
		return
	}
	var o lcsOptions
	if !o.parse(c) {
		return
	}
	a, b := ka.Str(), kb.Str()
	if int64(len(a)) >= math.MaxUint32-1 || int64(len(b)) >= math.MaxUint32-1 {
		c.Err(errLCSTooLong)
		return
	}
	over, cells := bits.Mul64(uint64(len(a)+1), uint64(len(b)+1))
	if over != 0 || cells > uint64(min(c.maxValue(), lcsMax))/lcsCell {
		c.Err(errLCSMemory)
		return
	}
	t, ok := newLCSTable(c, a, b, !o.length)
	if !ok {
		return
	}
	switch {
	case o.length:
		c.Reply.Int(int64(t.length))
	case o.idx:
		t.replyMatches(c, &o)
	default:
		c.Reply.Bulk(t.common())
	}
}

// lcsTable is the outcome of the dynamic programme for the longest common
// subsequence: its length and, for every cell where the last bytes differ, the
// way back, one bit each.
type lcsTable struct {
	a, b   []byte
	length uint32
	up     []uint64 // bit i*len(b)+j: from (i+1, j+1) the way leads to (i, j+1)
}

// newLCSTable runs the programme with two rows in memory, and keeps the ways
// back if they are asked for. It gives up when the waiting of c's session is
// ended, which happens when the client goes, or when the budget of the script that
// calls is; then the error is answered.
func newLCSTable(c *Call, a, b []byte, ways bool) (*lcsTable, bool) {
	t := &lcsTable{a: a, b: b}
	if len(a) == 0 || len(b) == 0 {
		return t, true
	}
	if ways && !c.alloc(len(a)*len(b)/8) || !c.alloc(8*len(b)) {
		return nil, false
	}
	if ways {
		t.up = make([]uint64, (len(a)*len(b)+63)/64)
	}
	var done <-chan struct{}
	if c.S.Wait != nil {
		done = c.S.Wait.Done
	}
	const lookEvery = 1 << 20 // cells
	cells := 0
	above, row := make([]uint32, len(b)+1), make([]uint32, len(b)+1)
	for i, x := range a {
		if !c.pay(1 + len(b)/lcsPerUnit) {
			return nil, false
		}
		if cells += len(b); cells >= lookEvery {
			cells = 0
			select {
			case <-done:
				c.Err(ErrCancelled)
				return nil, false
			default:
			}
		}
		at := i * len(b)
		for j, y := range b {
			switch {
			case x == y:
				row[j+1] = above[j] + 1
			case above[j+1] > row[j]:
				row[j+1] = above[j+1]
				if ways {
					t.up[(at+j)/64] |= 1 << ((at + j) % 64)
				}
			default:
				row[j+1] = row[j]
			}
		}
		above, row = row, above
	}
	t.length = above[len(b)]
	return t, true
}

// step goes one step back from (i, j) and tells whether it was over equal bytes.
func (t *lcsTable) step(i, j int) (int, int, bool) {
	if t.a[i-1] == t.b[j-1] {
		return i - 1, j - 1, true
	}
	at := (i-1)*len(t.b) + j - 1
	if t.up[at/64]&(1<<(at%64)) != 0 {
		return i - 1, j, false
	}
	return i, j - 1, false
}

// common is the subsequence itself.
func (t *lcsTable) common() []byte {
	out := make([]byte, t.length)
	n := len(out)
	for i, j := len(t.a), len(t.b); i > 0 && j > 0; {
		var equal bool
		if i, j, equal = t.step(i, j); equal {
			n--
			out[n] = t.a[i]
		}
	}
	return out
}

// lcsMatch is a run of bytes that both strings have in common.
type lcsMatch struct{ a, b, n uint32 }

// matches are the runs of at least minLen bytes, the last first.
func (t *lcsTable) matches(minLen int64) []lcsMatch {
	var out []lcsMatch
	run := 0
	end := func(i, j int) {
		if run > 0 && int64(run) >= minLen {
			out = append(out, lcsMatch{uint32(i), uint32(j), uint32(run)})
		}
		run = 0
	}
	i, j := len(t.a), len(t.b)
	for i > 0 && j > 0 {
		ni, nj, equal := t.step(i, j)
		if equal {
			run++
		} else {
			end(i, j)
		}
		i, j = ni, nj
	}
	end(i, j)
	return out
}

func (t *lcsTable) replyMatches(c *Call, o *lcsOptions) {
	r := c.Reply
	found := t.matches(o.minLen)
	r.Map(2)
	r.BulkString("matches")
	r.Array(len(found))
	for _, m := range found {
		if o.withLen {
			r.Array(3)
		} else {
			r.Array(2)
		}
		for _, from := range [2]uint32{m.a, m.b} {
			r.Array(2)
			r.Int(int64(from))
			r.Int(int64(from) + int64(m.n) - 1)
		}
		if o.withLen {
			r.Int(int64(m.n))
		}
	}
	r.BulkString("len")
	r.Int(int64(t.length))
}
