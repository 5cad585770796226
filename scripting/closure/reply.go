package closure

import (
	"unsafe"

	"github.com/latchkey-proxy/latchkey/scripting/numeral"
	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/scripting/value"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// reply builds Lua values from a command's reply: what redis.call returns.
// Replies are noted flat, so that Mark and Rewind cost nothing, and made into
// tables at the end.
type reply struct {
	m     *Machine
	nodes []node
}

type nodeKind uint8

const (
	nodeValue nodeKind = iota
	nodeArray
	nodeMap
	nodeSet
	nodeError
	nodeField // a table of one field: name and value follow
)

type node struct {
	kind  nodeKind
	n     int
	name  string // of a field
	value Value
}

var _ command.Reply = (*reply)(nil)

func (r *reply) reset() {
	clear(r.nodes)
	r.nodes = r.nodes[:0]
	if cap(r.nodes) > 1024 {
		r.nodes = nil
	}
}

// add notes one reply and charges for it. Its callers are handlers in the middle
// of their work, which must not be unwound: an empty account is only noted here.
func (r *reply) add(kind nodeKind, n, bytes int, v Value) {
	r.hold(bytes)
	r.nodes = append(r.nodes, node{kind: kind, n: n, value: v})
}

func (r *reply) field(name string, v Value) {
	r.hold(256)
	r.nodes = append(r.nodes, node{kind: nodeField, name: name, value: v})
}

// nodeBytes is what a node takes in a list that doubles when it is full.
const nodeBytes = int(2 * unsafe.Sizeof(node{}))

// hold charges for a node with so many bytes. It returns false when there is no
// room for these: then the reply is for nobody, and they need not be taken.
func (r *reply) hold(bytes int) bool {
	m := r.m
	m.Left--
	if bytes += nodeBytes; bytes >= 1<<16 || m.Full() || len(r.nodes) == cap(r.nodes) {
		return m.Hold(bytes, r.held)
	}
	m.Mem += int64(bytes)
	return true
}

// held is what the reply holds so far.
func (r *reply) held() int {
	n := nodeBytes * len(r.nodes)
	for i := range r.nodes {
		if v := r.nodes[i].value; v.IsString() {
			n += len(v.AsString())
		}
	}
	return n
}

// wordsCompared is how many of ARGV a reply is compared with, maxCompared how
// long it may be: a lock's token comes back as the script's own argument.
const (
	wordsCompared = lazyWords
	maxCompared   = 256
)

// Status becomes {ok=s}.
func (r *reply) Status(s string) { r.field("ok", value.String(s)) }

// Error becomes {err=msg}, which redis.call raises.
func (r *reply) Error(msg string) { r.add(nodeError, 0, 256, value.String(text.OneLine(msg))) }

// Int becomes a number.
func (r *reply) Int(n int64) { r.add(nodeValue, 0, 0, value.Number(float64(n))) }

// Bulk becomes a string.
func (r *reply) Bulk(b []byte) {
	if len(b) <= maxCompared && !r.m.tables {
		for i, w := range r.m.in.Args[:min(len(r.m.in.Args), wordsCompared)] {
			if string(w) == string(b) {
				r.add(nodeValue, 0, 0, r.m.arg(i))
				return
			}
		}
	} else if len(b) <= maxCompared {
		slots := r.m.argv.Slots()
		for i := range min(len(slots), wordsCompared) {
			if v := slots[i]; v.IsString() && v.AsString() == string(b) {
				r.add(nodeValue, 0, 0, v)
				return
			}
		}
	}
	if r.hold(16 + len(b)) {
		r.nodes = append(r.nodes, node{value: value.String(string(b))})
	}
}

// BulkString becomes a string.
func (r *reply) BulkString(s string) { r.bulk(s) }

func (r *reply) bulk(s string) { r.add(nodeValue, 0, 16+len(s), value.String(s)) }

// Null becomes false, after redis.setresp(3) nil.
func (r *reply) Null() {
	if r.m.resp == 3 {
		r.add(nodeValue, 0, 0, value.Nil)
		return
	}
	r.add(nodeValue, 0, 0, value.False)
}

// NullArray is as Null.
func (r *reply) NullArray() { r.Null() }

// Array becomes a table.
func (r *reply) Array(n int) { r.add(nodeArray, n, 64, value.Nil) }

// Map becomes {map={...}}, or under RESP2 an array of keys and values.
func (r *reply) Map(n int) {
	if r.m.resp == 3 {
		r.add(nodeMap, n, 256, value.Nil)
		return
	}
	r.Array(2 * n)
}

// Set becomes {set={member=true}}, or under RESP2 an array.
func (r *reply) Set(n int) {
	if r.m.resp == 3 {
		r.add(nodeSet, n, 256, value.Nil)
		return
	}
	r.Array(n)
}

// Push becomes a table.
func (r *reply) Push(n int) { r.Array(n) }

// Double becomes {double=f}, or under RESP2 its text.
func (r *reply) Double(f float64) {
	if r.m.resp == 3 {
		r.field("double", value.Number(f))
		return
	}
	r.bulk(string(numeral.AppendG(nil, f, 17, false)))
}

// Bool becomes a boolean, or under RESP2 1 or 0.
func (r *reply) Bool(b bool) {
	if r.m.resp == 3 {
		r.add(nodeValue, 0, 0, value.Bool(b))
		return
	}
	n := int64(0)
	if b {
		n = 1
	}
	r.Int(n)
}

// BigNumber becomes {big_number=digits}, or under RESP2 its text.
func (r *reply) BigNumber(digits string) {
	if r.m.resp == 3 {
		r.field("big_number", value.String(digits))
		return
	}
	r.bulk(digits)
}

// Verbatim becomes {verbatim_string={string=, format=}}, or under RESP2 its text.
func (r *reply) Verbatim(format, text string) {
	if r.m.resp != 3 {
		r.bulk(text)
		return
	}
	t := value.NewTable(0, 2)
	t.SetStr("format", value.String(format))
	t.SetStr("string", value.String(text))
	t.Account = &r.m.Account
	r.m.Mem += int64(len(text)) + 256
	r.field("verbatim_string", value.FromTable(t))
}

// Mark returns the present end of the reply.
func (r *reply) Mark() int { return len(r.nodes) }

// Rewind drops what was described since mark.
func (r *reply) Rewind(mark int) {
	clear(r.nodes[mark:])
	r.nodes = r.nodes[:mark]
}

// take makes the Lua value of the whole reply; failed says that it is an error.
func (r *reply) take() (v Value, failed bool) {
	if len(r.nodes) == 0 {
		return value.False, false
	}
	failed = r.nodes[0].kind == nodeError
	if len(r.nodes) == 1 && r.nodes[0].kind == nodeValue {
		v = r.nodes[0].value
		r.nodes[0].value = value.Nil
	} else {
		v, _ = r.build(0, 0)
		clear(r.nodes)
	}
	r.nodes = r.nodes[:0]
	return v, failed
}

// build makes the value of node i and returns the index after it.
func (r *reply) build(i, depth int) (Value, int) {
	nd := &r.nodes[i]
	i++
	m := r.m
	switch {
	case nd.kind == nodeValue:
		return nd.value, i
	case nd.kind == nodeError:
		return m.errorTable(nd.value.AsString()), i
	case nd.kind == nodeField:
		t := value.New(&m.Account, 0, 1)
		t.SetStr(nd.name, nd.value)
		return value.FromTable(t), i
	case depth > m.nesting:
		return value.Nil, i
	}
	narr := 0
	if nd.kind == nodeArray {
		narr = min(nd.n, len(r.nodes)-i)
	}
	t := value.New(&m.Account, narr, 0)
	var v Value
	for k := 1; k <= nd.n && i < len(r.nodes); k++ {
		v, i = r.build(i, depth+1)
		switch nd.kind {
		case nodeArray:
			t.SetInt(k, v)
		case nodeSet:
			t.Set(v, value.True) // nil and NaN are no keys, and are left out
		case nodeMap:
			key := v
			if i < len(r.nodes) {
				v, i = r.build(i, depth+1)
				t.Set(key, v)
			}
		}
	}
	if nd.kind == nodeArray {
		return value.FromTable(t), i
	}
	outer := value.New(&m.Account, 0, 1)
	name := "map"
	if nd.kind == nodeSet {
		name = "set"
	}
	outer.SetStr(name, value.FromTable(t))
	return value.FromTable(outer), i
}
