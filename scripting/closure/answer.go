package closure

import (
	"strings"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/scripting/numeral"
	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/scripting/value"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// answer describes a script's result, unless it is an error reply. Tables are
// read raw: a metatable has no say.
func (m *Machine) answer(v Value, out command.Reply) error {
	switch v.Kind() {
	case value.KindNumber:
		out.Int(numeral.Truncate(v.AsNumber()))
		return nil
	case value.KindTable:
		t := v.AsTable()
		if s := t.GetStr("err"); s.IsString() {
			return &Error{Returned: true, Text: text.ErrorLine(s.AsString()), Told: t.GetStr(toldField).Truthy()}
		}
	}
	a := answerer{m: m, out: out}
	a.value(v, 0)
	return nil
}

// answerer describes values; it ends the script by a panic when the account is exhausted.
type answerer struct {
	m    *Machine
	out  command.Reply
	size int
}

// tooDeep stands for a table that nests deeper than it may, where Redis runs out of
// Lua stack.
const tooDeep = "ERR reached lua stack limit"

// grow accounts for the reply, whose elements a table that contains itself
// multiplies. Each element pays as an instruction does, so that a deadline and a
// kill reach the reply too.
func (a *answerer) grow(n int) {
	if a.size += n; int64(a.size) > a.m.MemoryLimit() {
		a.m.Stop = budget.ErrMemory
		a.m.Ended()
	}
	a.m.pay(1)
}

func (a *answerer) value(v Value, depth int) {
	if depth >= a.m.nesting {
		a.out.Error(tooDeep)
		a.grow(len(tooDeep))
		return
	}
	switch v.Kind() {
	case value.KindString:
		a.out.BulkString(v.AsString())
		a.grow(16 + len(v.AsString()))
		return
	case value.KindNumber:
		a.out.Int(numeral.Truncate(v.AsNumber()))
	case value.KindBool:
		switch { // true and false are 1 and null unless the script asked for RESP3
		case a.m.resp == 3:
			a.out.Bool(v.AsBool())
		case v.AsBool():
			a.out.Int(1)
		default:
			a.out.Null()
		}
	case value.KindTable:
		a.table(v.AsTable(), depth)
		return
	default:
		a.out.Null()
	}
	a.grow(16)
}

func (a *answerer) table(t *Table, depth int) {
	if s := t.GetStr("err"); s.IsString() {
		a.out.Error(text.ErrorLine(s.AsString()))
		a.grow(len(s.AsString()))
		return
	}
	if s := t.GetStr("ok"); s.IsString() {
		a.out.Status(text.StatusLine(s.AsString()))
		a.grow(len(s.AsString()))
		return
	}
	if f := t.GetStr("double"); f.IsNumber() {
		a.out.Double(f.AsNumber())
		a.grow(16)
		return
	}
	if s := t.GetStr("big_number"); s.IsString() {
		a.out.BigNumber(text.OneLine(s.AsString()))
		a.grow(len(s.AsString()))
		return
	}
	if v := t.GetStr("verbatim_string"); v.IsTable() {
		format, text := v.AsTable().GetStr("format"), v.AsTable().GetStr("string")
		if format.IsString() && text.IsString() {
			three, _, _ := strings.Cut(format.AsString(), "\x00")
			a.out.Verbatim((three + "   ")[:3], text.AsString())
			a.grow(len(text.AsString()))
			return
		}
	}
	if v := t.GetStr("map"); v.IsTable() {
		a.entries(v.AsTable(), a.out.Map, true, depth)
		return
	}
	if v := t.GetStr("set"); v.IsTable() {
		a.entries(v.AsTable(), a.out.Set, false, depth)
		return
	}
	n := 0
	for !t.GetInt(n + 1).IsNil() {
		n++
	}
	a.out.Array(n)
	for i := 1; i <= n; i++ {
		a.value(t.GetInt(i), depth+1)
	}
	a.grow(16)
}

// entries describes the keys of a table, and their values when they are wanted too.
func (a *answerer) entries(t *Table, open func(int), values bool, depth int) {
	n := 0
	for at, k, _ := t.NextAt(0); !k.IsNil(); at, k, _ = t.NextAt(at) {
		n++
	}
	open(n)
	for at, k, v := t.NextAt(0); !k.IsNil(); at, k, v = t.NextAt(at) {
		a.value(k, depth+1)
		if values {
			a.value(v, depth+1)
		}
	}
	a.grow(16)
}
