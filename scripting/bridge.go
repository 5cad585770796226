package scripting

import (
	"errors"
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/scripting/lib"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

// The libraries of package lib work on values of our own: a call converts its
// arguments there and its results back. Tables are read raw, and each is
// converted once, however often and wherever it stands.

// openNative opens a library for every script.
func (st *state) openNative(l lib.Library) *lua.LTable {
	t := st.native(l)
	for name := range l.Funcs {
		st.names[t.RawGetString(name)] = name
	}
	return t
}

// native makes a table of a library.
func (st *state) native(l lib.Library) *lua.LTable {
	t := st.L.NewTable()
	for name, fn := range l.Funcs {
		t.RawSetString(name, st.L.NewFunction(func(L *lua.LState) int { return st.callNative(L, fn) }))
	}
	for name, text := range l.Texts {
		t.RawSetString(name, lua.LString(text))
	}
	for name, v := range l.Values {
		t.RawSetString(name, st.fromValue(st.L, v))
	}
	return t
}

// openJSON makes the table cjson, whose settings begin each run as new.
func (st *state) openJSON() *lua.LTable {
	t := st.openNative(lib.CJSON(&st.json))
	f := st.L.NewFunction(newJSON)
	st.names[f] = "new"
	t.RawSetString("new", f)
	return t
}

// newJSON is cjson.new: a table of the script's own, with settings of its own.
func newJSON(L *lua.LState) int {
	r := runOf(L)
	r.alloc(L, 8<<10)
	settings := lib.Defaults()
	t := r.state.native(lib.CJSON(&settings))
	t.RawSetString("new", L.NewFunction(newJSON))
	r.state.reorder(t, lib.Order("cjson"))
	L.Push(t)
	return 1
}

// callNative calls a function of package lib.
func (st *state) callNative(L *lua.LState, fn lib.Func) int {
	c := &st.libCall
	c.Account = &st.run.Account
	c.Args, c.Results = c.Args[:0], c.Results[:0]
	err := st.convertAndCall(L, c, fn)
	if st.run.Stop != nil {
		st.run.abort(L)
	}
	if err != nil {
		raiseNative(L, err)
	}
	n := len(c.Results)
	c.Forget()
	return n
}

// convertAndCall converts the arguments, runs fn and pushes the converted results.
func (st *state) convertAndCall(L *lua.LState, c *lib.Call, fn lib.Func) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(budget.Ended); !ok {
				panic(p)
			}
		}
	}()
	for i := range L.GetTop() {
		c.Args = append(c.Args, st.toValue(L, L.Get(i+1)))
	}
	if err := fn(c); err != nil {
		return err
	}
	L.SetTop(0)
	for _, v := range c.Results {
		L.Push(st.fromValue(L, v))
	}
	return nil
}

// raiseNative raises an error of package lib as Lua raises it.
func raiseNative(L *lua.LState, err error) {
	var e *lib.Error
	switch {
	case !errors.As(err, &e):
		raise(L, 1, err.Error())
	case e.IsArg:
		argError(L, e.Arg, e.Text)
	case e.Bare:
		raise(L, 0, e.Text)
	default:
		raise(L, 1, e.Text)
	}
}

// toValue converts v, and all tables that can be reached from it, without
// recursion: they may nest as deep as memory lets them, and contain themselves.
func (st *state) toValue(L *lua.LState, v lua.LValue) value.Value {
	switch v := v.(type) {
	case *lua.LTable:
		t := conversion{st: st, L: L}
		root := t.table(v)
		for len(t.todo) > 0 {
			next := t.todo[len(t.todo)-1]
			t.todo = t.todo[:len(t.todo)-1]
			t.fill(next.from, next.to)
		}
		return value.FromTable(root)
	default:
		return st.plain(v)
	}
}

// plain converts what is no table. Of functions and threads only the kind counts.
func (st *state) plain(v lua.LValue) value.Value {
	switch v := v.(type) {
	case lua.LString:
		return value.String(string(v))
	case lua.LNumber:
		return value.Number(float64(v))
	case lua.LBool:
		return value.Bool(bool(v))
	case *lua.LUserData:
		return lib.Null // there is no other
	case *lua.LFunction:
		return value.Func(unsafe.Pointer(v))
	case *lua.LState:
		return value.Thread(unsafe.Pointer(v))
	}
	return value.Nil
}

// conversion is that of one argument.
type conversion struct {
	st   *state
	L    *lua.LState
	seen map[*lua.LTable]*value.Table
	todo []struct {
		from *lua.LTable
		to   *value.Table
	}
}

// table is the counterpart of t, which is filled later.
func (c *conversion) table(t *lua.LTable) *value.Table {
	t = c.st.facing(t)
	if to, ok := c.seen[t]; ok {
		return to
	}
	n := t.Len()
	c.st.run.pay(c.L, n>>4)
	to := value.New(&c.st.run.Account, n, 0)
	if c.seen == nil {
		c.seen = map[*lua.LTable]*value.Table{}
	}
	c.st.run.alloc(c.L, 64)
	c.seen[t] = to
	c.todo = append(c.todo, struct {
		from *lua.LTable
		to   *value.Table
	}{t, to})
	return to
}

func (c *conversion) value(v lua.LValue) value.Value {
	if t, ok := v.(*lua.LTable); ok {
		return value.FromTable(c.table(t))
	}
	return c.st.plain(v)
}

func (c *conversion) fill(from *lua.LTable, to *value.Table) {
	n := from.Len()
	for i := 1; i <= n; i++ {
		if i&1023 == 0 {
			c.st.run.pay(c.L, 1024)
		}
		if v := from.RawGetInt(i); v != lua.LNil {
			to.SetInt(i, c.value(v))
		}
	}
	var key lua.LValue = lua.LNil
	if n > 0 {
		key = lua.LNumber(n)
	}
	for {
		var v lua.LValue
		if key, v = nextEntry(c.L, from, key); key == lua.LNil {
			return
		}
		c.st.run.pay(c.L, 1)
		if err := to.Set(c.value(key), c.value(v)); err != nil {
			panic("scripting: a table has the key " + key.String() + ": " + err.Error())
		}
	}
}

// fromValue converts a result, whose depth package lib has bounded.
func (st *state) fromValue(L *lua.LState, v value.Value) lua.LValue {
	switch v.Kind() {
	case value.KindBool:
		return lua.LBool(v.AsBool())
	case value.KindNumber:
		return number(v.AsNumber())
	case value.KindString:
		return lua.LString(v.AsString())
	case value.KindTable:
		return st.fromTable(L, v.AsTable())
	case value.KindLight:
		return st.null
	}
	return lua.LNil
}

func (st *state) fromTable(L *lua.LState, from *value.Table) *lua.LTable {
	r := &st.run
	n := from.Len()
	r.alloc(L, 128+16*n)
	to := L.CreateTable(n, 0)
	for i := 1; i <= n; i++ {
		r.pay(L, 1)
		to.RawSetInt(i, st.fromValue(L, from.GetInt(i)))
	}
	for at, k, v := from.NextAt(0); !k.IsNil(); at, k, v = from.NextAt(at) {
		if k.IsNumber() {
			if f := k.AsNumber(); f >= 1 && f <= float64(n) && f == float64(int(f)) {
				continue
			}
		}
		r.pay(L, 1)
		r.alloc(L, instructionBytes)
		if k.IsString() {
			to.RawSetString(k.AsString(), st.fromValue(L, v))
		} else {
			rawStore(L, to, st.fromValue(L, k), st.fromValue(L, v))
		}
	}
	return to
}
