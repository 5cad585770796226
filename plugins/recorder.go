package plugins

import (
	"fmt"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// replyKind is the type of a recorded reply; the numbers are those of call_type.
type replyKind uint8

// The kinds of reply, as guests know them.
const (
	kindNull replyKind = iota
	kindInt
	kindBulk
	kindSimple
	kindError
	kindArray
	kindMap
	kindSet
	kindDouble
	kindBool
	kindBigNumber
	kindVerbatim
)

// node is one recorded reply. The elements of an aggregate follow it.
type node struct {
	kind   replyKind
	format [3]byte // of a verbatim string
	n      int64   // of an integer, 0 or 1 of a boolean; elements or pairs of an aggregate
	f      float64
	begin  int // of its bytes in recorder.bytes
	end    int
	after  int // index of the node behind it and its elements; 0 while it is open
}

// elements is how many nodes an aggregate has directly below it.
func (n *node) elements() int {
	switch n.kind {
	case kindArray, kindSet:
		return int(n.n)
	case kindMap:
		return 2 * int(n.n)
	}
	return 0
}

// text tells whether a node has bytes.
func (n *node) text() bool {
	switch n.kind {
	case kindBulk, kindSimple, kindError, kindBigNumber, kindVerbatim:
		return true
	}
	return false
}

// recorder is a Reply that remembers what is described: what a called command
// answers, and aggregates whose length is not known when they are opened.
type recorder struct {
	nodes []node
	bytes []byte
	open  []openNode
	limit int // of bytes and nodes together; beyond it a trap

	// Where element found something last: guests read aggregates in order.
	lastOf, lastIndex, lastAt int
}

// openNode is an aggregate whose elements are still to come.
type openNode struct{ at, left int }

// errorSlack is how far an error may go beyond the limit, in bytes.
const errorSlack = 8 << 10

// nodeSize is what a node counts for, in bytes.
const nodeSize = 64

// reset empties the recorder; what was once large is let go.
func (r *recorder) reset() {
	if cap(r.nodes) > 1024 {
		r.nodes = nil
	}
	if cap(r.bytes) > 64<<10 {
		r.bytes = nil
	}
	r.nodes, r.bytes, r.open = r.nodes[:0], r.bytes[:0], r.open[:0]
	r.lastAt = 0
}

// element is the node of an element of the aggregate at, and how many nodes it
// took to find it.
func (r *recorder) element(at, index int) (node, steps int) {
	i, found := 0, at+1
	if r.lastAt != 0 && r.lastOf == at && r.lastIndex <= index {
		i, found = r.lastIndex, r.lastAt
	}
	for ; i < index; i++ {
		found = r.nodes[found].after
		steps++
	}
	r.lastOf, r.lastIndex, r.lastAt = at, index, found
	return found, steps
}

// size is what the recorder holds, in bytes.
func (r *recorder) size() int { return len(r.nodes)*nodeSize + len(r.bytes) }

// recorded is thrown by a recorder that is full. Engine.Exec answers it as it
// answers every reply that has grown too large.
type recorded struct{}

// ReplyTooLarge is the error that the command is answered with.
func (recorded) ReplyTooLarge() string {
	return fmt.Sprintf("ERR the replies are larger than the %d MiB that a plugin may hold", maxCallBytes>>20)
}

func (r *recorder) add(n node, text string) {
	limit := r.limit
	if n.kind == kindError {
		limit += errorSlack // for the error that says that it is full
	}
	if r.size()+len(text)+nodeSize > limit {
		panic(recorded{})
	}
	n.begin = len(r.bytes)
	r.bytes = append(r.bytes, text...)
	n.end = len(r.bytes)
	r.place(n)
}

// place appends a node and closes the aggregates that it completes.
func (r *recorder) place(n node) {
	at := len(r.nodes)
	n.after = 0
	r.nodes = append(r.nodes, n)
	if n.elements() > 0 {
		r.open = append(r.open, openNode{at, n.elements()})
		return
	}
	r.nodes[at].after = at + 1
	for len(r.open) > 0 {
		o := &r.open[len(r.open)-1]
		if o.left--; o.left > 0 {
			return
		}
		r.nodes[o.at].after = len(r.nodes)
		r.open = r.open[:len(r.open)-1]
	}
}

// The methods of command.Reply.

// Status records a status.
func (r *recorder) Status(s string) { r.add(node{kind: kindSimple}, s) }

// Error records an error.
func (r *recorder) Error(msg string) { r.add(node{kind: kindError}, msg) }

// Int records an integer.
func (r *recorder) Int(n int64) { r.add(node{kind: kindInt, n: n}, "") }

// Bulk records a string.
func (r *recorder) Bulk(b []byte) { r.add(node{kind: kindBulk}, string(b)) }

// BulkString records a string.
func (r *recorder) BulkString(s string) { r.add(node{kind: kindBulk}, s) }

// Null records a null.
func (r *recorder) Null() { r.add(node{kind: kindNull}, "") }

// NullArray records a null.
func (r *recorder) NullArray() { r.add(node{kind: kindNull}, "") }

// Array records an array.
func (r *recorder) Array(n int) { r.add(node{kind: kindArray, n: int64(n)}, "") }

// Map records a map of n pairs.
func (r *recorder) Map(n int) { r.add(node{kind: kindMap, n: int64(n)}, "") }

// Set records a set.
func (r *recorder) Set(n int) { r.add(node{kind: kindSet, n: int64(n)}, "") }

// Push records an array: a push is no reply that a guest could be given.
func (r *recorder) Push(n int) { r.Array(n) }

// Double records a double.
func (r *recorder) Double(f float64) { r.add(node{kind: kindDouble, f: f}, "") }

// Bool records a boolean.
func (r *recorder) Bool(b bool) {
	n := node{kind: kindBool}
	if b {
		n.n = 1
	}
	r.add(n, "")
}

// BigNumber records a big number.
func (r *recorder) BigNumber(digits string) { r.add(node{kind: kindBigNumber}, digits) }

// Verbatim records a text with its format.
func (r *recorder) Verbatim(format, text string) {
	n := node{kind: kindVerbatim}
	copy(n.format[:], format)
	r.add(n, text)
}

// Mark is the number of nodes so far.
func (r *recorder) Mark() int { return len(r.nodes) }

// Rewind drops the nodes since mark, and opens again the aggregates that miss
// them.
func (r *recorder) Rewind(mark int) {
	if mark >= len(r.nodes) {
		return
	}
	r.bytes = r.bytes[:r.nodes[mark].begin]
	kept := r.nodes[:mark]
	r.nodes, r.open = r.nodes[:0], r.open[:0]
	for _, n := range kept { // written over itself, no further than it was read
		r.place(n)
	}
}

// play describes the nodes from i up to end to out.
func (r *recorder) play(i, end int, out command.Reply) {
	for ; i < end; i++ {
		n := &r.nodes[i]
		b := r.bytes[n.begin:n.end]
		switch n.kind {
		case kindNull:
			out.Null()
		case kindInt:
			out.Int(n.n)
		case kindBulk:
			out.Bulk(b)
		case kindSimple:
			out.Status(string(b))
		case kindError:
			out.Error(string(b))
		case kindArray:
			out.Array(int(n.n))
		case kindMap:
			out.Map(int(n.n))
		case kindSet:
			out.Set(int(n.n))
		case kindDouble:
			out.Double(n.f)
		case kindBool:
			out.Bool(n.n != 0)
		case kindBigNumber:
			out.BigNumber(string(b))
		case kindVerbatim:
			out.Verbatim(string(n.format[:]), string(b))
		}
	}
}
