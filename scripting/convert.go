package scripting

import (
	"math"
	"strings"
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// toldField marks, as in Redis, the error table of a command's reply: INFO
// errorstats has counted it.
const toldField = "ignore_error_stats_update"

// answer describes a script's result, unless it is an error reply. Tables are read raw: a metatable has no say.
func (st *state) answer(v lua.LValue, out command.Reply) error {
	if t, ok := v.(*lua.LTable); ok {
		t = st.facing(t)
		if s, ok := t.RawGetString("err").(lua.LString); ok {
			st.run.inv.Told = lua.LVAsBool(t.RawGetString(toldField))
			return &Failure{Returned, text.ErrorLine(string(s))}
		}
	}
	mark := out.Mark()
	a := answerer{st: st, out: out, depth: st.run.inv.Limits.Tables()}
	if err := a.value(v, 0); err != nil {
		out.Rewind(mark)
		return err
	}
	return nil
}

type answerer struct {
	st    *state
	out   command.Reply
	size  int
	depth int // how deep tables may nest
}

// grow accounts for the reply, whose elements a table that contains itself multiplies.
func (a *answerer) grow(n int) error {
	r := &a.st.run
	if a.size += n; int64(a.size) > r.MemoryLimit() {
		r.Stop = budget.ErrMemory
		return a.st.failure(nil)
	}
	// Each element pays as an instruction does, so that a deadline and a kill
	// reach the reply too.
	if r.Done() != nil {
		return a.st.failure(nil)
	}
	return nil
}

func (a *answerer) value(v lua.LValue, depth int) error {
	if depth >= a.depth { // where Redis runs out of Lua stack
		const tooDeep = "ERR reached lua stack limit"
		a.out.Error(tooDeep)
		return a.grow(len(tooDeep))
	}
	switch v := v.(type) {
	case lua.LString:
		a.out.BulkString(string(v))
		return a.grow(16 + len(v))
	case lua.LNumber:
		a.out.Int(truncate(float64(v)))
	case lua.LBool:
		switch { // true and false are 1 and null unless the script asked for RESP3
		case a.st.run.resp == 3:
			a.out.Bool(bool(v))
		case bool(v):
			a.out.Int(1)
		default:
			a.out.Null()
		}
	case *lua.LTable:
		return a.table(v, depth)
	default:
		a.out.Null()
	}
	return a.grow(16)
}

func (a *answerer) table(t *lua.LTable, depth int) error {
	t = a.st.facing(t)
	if s, ok := t.RawGetString("err").(lua.LString); ok {
		a.out.Error(text.ErrorLine(string(s)))
		return a.grow(len(s))
	}
	if s, ok := t.RawGetString("ok").(lua.LString); ok {
		a.out.Status(text.StatusLine(string(s)))
		return a.grow(len(s))
	}
	if f, ok := t.RawGetString("double").(lua.LNumber); ok {
		a.out.Double(float64(f))
		return a.grow(16)
	}
	if s, ok := t.RawGetString("big_number").(lua.LString); ok {
		a.out.BigNumber(text.OneLine(string(s)))
		return a.grow(len(s))
	}
	if v, ok := t.RawGetString("verbatim_string").(*lua.LTable); ok {
		format, ok1 := v.RawGetString("format").(lua.LString)
		text, ok2 := v.RawGetString("string").(lua.LString)
		if ok1 && ok2 {
			a.out.Verbatim(verbatimFormat(string(format)), string(text))
			return a.grow(len(text))
		}
	}
	if m, ok := t.RawGetString("map").(*lua.LTable); ok {
		keys, values := a.entries(m)
		a.out.Map(len(keys))
		for i, k := range keys {
			if err := a.value(k, depth+1); err != nil {
				return err
			}
			if err := a.value(values[i], depth+1); err != nil {
				return err
			}
		}
		return a.grow(16)
	}
	if s, ok := t.RawGetString("set").(*lua.LTable); ok {
		keys, _ := a.entries(s)
		a.out.Set(len(keys))
		for _, k := range keys {
			if err := a.value(k, depth+1); err != nil {
				return err
			}
		}
		return a.grow(16)
	}
	n := 0
	for t.RawGetInt(n+1) != lua.LNil {
		n++
	}
	a.out.Array(n)
	for i := 1; i <= n; i++ {
		if err := a.value(t.RawGetInt(i), depth+1); err != nil {
			return err
		}
	}
	return a.grow(16)
}

func (a *answerer) entries(t *lua.LTable) (keys, values []lua.LValue) {
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		keys, values = append(keys, k), append(values, v)
	}
	return keys, values
}

// verbatimFormat is the three letters that the protocol has room for.
func verbatimFormat(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return (s + "   ")[:3]
}

// facing is the table behind a read-only one, for a script that returns a library.
func (st *state) facing(t *lua.LTable) *lua.LTable {
	if t.Metatable != lua.LNil {
		if real, ok := st.real[t]; ok {
			return real
		}
	}
	return t
}

// luaReply builds Lua values from a command's reply: what redis.call returns.
// Replies are noted flat, so that Mark and Rewind cost nothing, and made into
// tables at the end.
type luaReply struct {
	run   *run
	L     *lua.LState
	nodes []node
}

type nodeKind uint8

const (
	nodeValue nodeKind = iota
	nodeArray
	nodeMap
	nodeSet
	nodeError
)

type node struct {
	kind  nodeKind
	n     int
	value lua.LValue
}

var _ command.Reply = (*luaReply)(nil)

func (lr *luaReply) reset() {
	clear(lr.nodes)
	lr.nodes = lr.nodes[:0]
	lr.L = nil
	if cap(lr.nodes) > 1024 {
		lr.nodes = nil
	}
}

// add notes one reply and charges for it. Its callers are handlers in the middle
// of their work, which must not be unwound: an empty account is only noted here.
func (lr *luaReply) add(kind nodeKind, n, bytes int, v lua.LValue) {
	lr.hold(bytes)
	lr.nodes = append(lr.nodes, node{kind, n, v})
}

// nodeBytes is what a node takes in a list that doubles when it is full, and the
// interface that a number or string in it needs.
const nodeBytes = int(2*unsafe.Sizeof(node{})) + 16

// hold charges for a node with so many bytes. It returns false when there is no
// room for these: then the reply is for nobody, and they need not be taken.
func (lr *luaReply) hold(bytes int) bool {
	r := lr.run
	r.Left--
	if bytes += nodeBytes; bytes >= 1<<16 || r.Full() || len(lr.nodes) == cap(lr.nodes) {
		return r.Hold(bytes, lr.held)
	}
	r.Mem += int64(bytes)
	return true
}

// held is what the reply holds so far.
func (lr *luaReply) held() int {
	n := nodeBytes * len(lr.nodes)
	for i := range lr.nodes {
		if s, ok := lr.nodes[i].value.(lua.LString); ok {
			n += len(s)
		}
	}
	return n
}

func (lr *luaReply) bulk(s string) { lr.add(nodeValue, 0, 32+len(s), lua.LString(s)) }

func (lr *luaReply) field(key string, v lua.LValue) {
	t := lr.L.CreateTable(0, 1)
	t.RawSetString(key, v)
	lr.add(nodeValue, 0, 256, t)
}

// Status becomes {ok=s}.
func (lr *luaReply) Status(s string) { lr.field("ok", lua.LString(s)) }

// Error becomes {err=msg}, which redis.call raises.
func (lr *luaReply) Error(msg string) { lr.add(nodeError, 0, 256, lua.LString(text.OneLine(msg))) }

// Int becomes a number.
func (lr *luaReply) Int(n int64) { lr.add(nodeValue, 0, 8, number(float64(n))) }

// The first of ARGV that a reply is compared with, and how long it may be: a lock's
// token comes back as the script's own argument.
const (
	wordsCompared = 4
	maxCompared   = 256
)

// Bulk becomes a string.
func (lr *luaReply) Bulk(b []byte) {
	if r := lr.run; len(b) <= maxCompared && r.script != nil && r.script.globals.argv && !r.script.argsEscape {
		for i, w := range r.inv.Args[:min(len(r.inv.Args), wordsCompared)] {
			if string(w) == string(b) {
				lr.add(nodeValue, 0, 0, r.state.argv.RawGetInt(i+1))
				return
			}
		}
	}
	if lr.hold(16 + len(b)) {
		lr.nodes = append(lr.nodes, node{nodeValue, 0, lua.LString(b)})
	}
}

// BulkString becomes a string.
func (lr *luaReply) BulkString(s string) { lr.bulk(s) }

// Null becomes false, after redis.setresp(3) nil.
func (lr *luaReply) Null() {
	if lr.run.resp == 3 {
		lr.add(nodeValue, 0, 0, lua.LNil)
		return
	}
	lr.add(nodeValue, 0, 0, lua.LFalse)
}

// NullArray is as Null.
func (lr *luaReply) NullArray() { lr.Null() }

// Array becomes a table.
func (lr *luaReply) Array(n int) { lr.add(nodeArray, n, 64+16*min(n, 1024), nil) }

// Map becomes {map={...}}, or under RESP2 an array of keys and values.
func (lr *luaReply) Map(n int) {
	if lr.run.resp == 3 {
		lr.add(nodeMap, n, 512, nil)
		return
	}
	lr.Array(2 * n)
}

// Set becomes {set={member=true}}, or under RESP2 an array.
func (lr *luaReply) Set(n int) {
	if lr.run.resp == 3 {
		lr.add(nodeSet, n, 512, nil)
		return
	}
	lr.Array(n)
}

// Push becomes a table.
func (lr *luaReply) Push(n int) { lr.Array(n) }

// Double becomes {double=f}, or under RESP2 its text.
func (lr *luaReply) Double(f float64) {
	if lr.run.resp == 3 {
		lr.field("double", lua.LNumber(f))
		return
	}
	lr.bulk(doubleText(f))
}

// Bool becomes a boolean, or under RESP2 1 or 0.
func (lr *luaReply) Bool(b bool) {
	if lr.run.resp == 3 {
		lr.add(nodeValue, 0, 0, lua.LBool(b))
		return
	}
	lr.Int(int64(b2i(b)))
}

// BigNumber becomes {big_number=digits}, or under RESP2 its text.
func (lr *luaReply) BigNumber(digits string) {
	if lr.run.resp == 3 {
		lr.field("big_number", lua.LString(digits))
		return
	}
	lr.bulk(digits)
}

// Verbatim becomes {verbatim_string={string=, format=}}, or under RESP2 its text.
func (lr *luaReply) Verbatim(format, text string) {
	if lr.run.resp != 3 {
		lr.bulk(text)
		return
	}
	t := lr.L.CreateTable(0, 2)
	t.RawSetString("format", lua.LString(format))
	t.RawSetString("string", lua.LString(text))
	lr.run.Mem += int64(len(text))
	lr.field("verbatim_string", t)
}

// Mark returns the present end of the reply.
func (lr *luaReply) Mark() int { return len(lr.nodes) }

// Rewind drops what was described since mark.
func (lr *luaReply) Rewind(mark int) {
	clear(lr.nodes[mark:])
	lr.nodes = lr.nodes[:mark]
}

// take makes the Lua value of the whole reply; failed says that it is an error.
func (lr *luaReply) take() (v lua.LValue, failed bool) {
	if len(lr.nodes) == 0 {
		return lua.LFalse, false
	}
	failed = lr.nodes[0].kind == nodeError
	if len(lr.nodes) == 1 {
		v = lr.leaf(&lr.nodes[0])
	} else {
		v, _ = lr.build(0, 0)
	}
	clear(lr.nodes)
	lr.nodes = lr.nodes[:0]
	return v, failed
}

func (lr *luaReply) leaf(n *node) lua.LValue {
	switch n.kind {
	case nodeError:
		t := lr.L.CreateTable(0, 2)
		t.RawSetString("err", n.value)
		t.RawSetString(toldField, lua.LTrue)
		return t
	case nodeArray:
		return lr.L.NewTable()
	case nodeMap, nodeSet:
		v, _ := lr.build(0, 0)
		return v
	}
	return n.value
}

// build makes the value of node i and returns the index after it.
func (lr *luaReply) build(i, depth int) (lua.LValue, int) {
	nd := &lr.nodes[i]
	i++
	if nd.kind == nodeValue || nd.kind == nodeError || depth > lr.run.inv.Limits.Tables() {
		return lr.leaf(nd), i
	}
	t := lr.L.CreateTable(0, 0)
	if nd.kind == nodeArray {
		t = lr.L.CreateTable(min(nd.n, len(lr.nodes)-i), 0)
	}
	var v lua.LValue
	for k := 1; k <= nd.n && i < len(lr.nodes); k++ {
		v, i = lr.build(i, depth+1)
		switch nd.kind {
		case nodeArray:
			if v != lua.LNil {
				t.RawSetInt(k, v)
			}
		case nodeSet:
			setKey(t, v, lua.LTrue)
		case nodeMap:
			key := v
			if i >= len(lr.nodes) {
				break
			}
			v, i = lr.build(i, depth+1)
			setKey(t, key, v)
		}
	}
	switch nd.kind {
	case nodeMap, nodeSet:
		outer := lr.L.CreateTable(0, 1)
		outer.RawSetString(map[nodeKind]string{nodeMap: "map", nodeSet: "set"}[nd.kind], t)
		return outer, i
	}
	return t, i
}

// setKey stores under a key that a reply gave, where nil and NaN are none and a
// large integer must not become an array.
func setKey(t *lua.LTable, key, v lua.LValue) {
	if key == lua.LNil {
		return
	}
	if f, ok := key.(lua.LNumber); ok {
		if math.IsNaN(float64(f)) {
			return
		}
		if n, ok := arrayIndex(f); ok && n > plainKey && n > t.Len()+1 {
			t.RawSetString(numberText(float64(f)), v)
			return
		}
	}
	t.RawSet(key, v)
}

// doubleText is a double as RESP2 clients see it: 17 significant digits.
func doubleText(f float64) string { return string(appendG(nil, f, 17, false)) }
