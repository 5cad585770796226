package scripting

import (
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/numeral"
	"github.com/latchkey-proxy/latchkey/scripting/text"
)

// operand is what an error message calls a value: local 'x', field 'y'.
type operand struct{ kind, name string }

func (o operand) String() string {
	if o.kind == "" {
		return ""
	}
	return o.kind + " '" + text.CString(o.name) + "' "
}

// typeError raises Lua's "attempt to index local 'x' (a nil value)".
func typeError(L *lua.LState, what string, o operand, v lua.LValue) {
	if o.kind == "" {
		raise(L, 1, "attempt to "+what+" a "+typeName(v)+" value")
	}
	raise(L, 1, "attempt to "+what+" "+o.String()+"(a "+typeName(v)+" value)")
}

// concatSite is the function for one place of a..b..c.
func concatSite(ops []operand) lua.LGFunction {
	return func(L *lua.LState) int {
		n := L.GetTop()
		total := 0
		for i := 1; i <= n; i++ {
			switch v := L.Get(i).(type) {
			case lua.LString:
				total += len(v)
			case lua.LNumber:
				total += numeral.MaxText
			default:
				return concatSlow(L, ops, n)
			}
		}
		runOf(L).alloc(L, total)
		var b strings.Builder
		b.Grow(total)
		var scratch [numeral.MaxText]byte
		for i := 1; i <= n; i++ {
			switch v := L.Get(i).(type) {
			case lua.LString:
				b.WriteString(string(v))
			case lua.LNumber:
				b.Write(appendNumber(scratch[:0], float64(v)))
			}
		}
		L.Push(lua.LString(b.String()))
		return 1
	}
}

// concatSlow concatenates from the right, two at a time, with metamethods.
func concatSlow(L *lua.LState, ops []operand, n int) int {
	acc := L.Get(n)
	accOp := ops[n-1]
	for i := n - 1; i >= 1; i-- {
		left := L.Get(i)
		ls, lok := textOf(left)
		rs, rok := textOf(acc)
		if lok && rok {
			runOf(L).alloc(L, len(ls)+len(rs))
			acc = lua.LString(ls + rs)
		} else if fn := binaryMetamethod(L, left, acc, "__concat"); fn != lua.LNil {
			acc = callValue(L, fn, left, acc)
		} else if lok {
			typeError(L, "concatenate", accOp, acc)
		} else {
			typeError(L, "concatenate", ops[i-1], left)
		}
		accOp = operand{}
	}
	L.Push(acc)
	return 1
}

// textOf is the text of a string or number.
func textOf(v lua.LValue) (string, bool) {
	switch v := v.(type) {
	case lua.LString:
		return string(v), true
	case lua.LNumber:
		return numberText(float64(v)), true
	}
	return "", false
}

func metamethod(L *lua.LState, v lua.LValue, event string) lua.LValue {
	switch v := v.(type) {
	case *lua.LTable:
		if mt, ok := v.Metatable.(*lua.LTable); ok {
			return mt.RawGetString(event)
		}
	case lua.LString:
		return lua.LNil // the string metatable has only __index
	}
	return lua.LNil
}

func binaryMetamethod(L *lua.LState, a, b lua.LValue, event string) lua.LValue {
	if fn := metamethod(L, a, event); fn != lua.LNil {
		return fn
	}
	return metamethod(L, b, event)
}

// callable says whether the machine can call v.
func callable(L *lua.LState, v lua.LValue) bool {
	if v.Type() == lua.LTFunction {
		return true
	}
	return metamethod(L, v, "__call").Type() == lua.LTFunction
}

// callValue calls fn for one result, on the Go stack.
func callValue(L *lua.LState, fn lua.LValue, args ...lua.LValue) lua.LValue {
	if !callable(L, fn) {
		level := 0 // a library function of C's has no position
		if f, _ := frameOf(L, 0).fn.(*lua.LFunction); isSite(f) {
			level = 1
		}
		raise(L, level, "attempt to call a "+typeName(fn)+" value")
	}
	L.Push(fn)
	for _, a := range args {
		L.Push(a)
	}
	L.Call(len(args), 1)
	v := L.Get(-1)
	L.Pop(1)
	return v
}

// lengthSite is the function for one place of #x. Lua 5.1 does not ask a
// table's __len.
func lengthSite(op operand) lua.LGFunction {
	return func(L *lua.LState) int {
		switch v := L.Get(1).(type) {
		case lua.LString:
			L.Push(number(float64(len(v))))
		case *lua.LTable:
			L.Push(number(float64(v.Len())))
		default:
			typeError(L, "get length of", op, v)
		}
		return 1
	}
}

// storeSite is the function for one place of t[k] = v.
func storeSite(op operand) lua.LGFunction {
	return func(L *lua.LState) int {
		setIndex(L, op, L.Get(1), L.Get(2), L.Get(3))
		return 0
	}
}

// storeLate is storeSite with its arguments in another order: these are their places.
func storeLate(op operand, object, key, value int) lua.LGFunction {
	return func(L *lua.LState) int {
		setIndex(L, op, L.Get(object), L.Get(key), L.Get(value))
		return 0
	}
}

// appendSite is the function for one place of t[#t+1] = v, with a v whose
// evaluation cannot change t.
func appendSite(op operand) lua.LGFunction {
	return func(L *lua.LState) int {
		obj, v := L.Get(1), L.Get(2)
		t, ok := obj.(*lua.LTable)
		if !ok {
			if s, str := obj.(lua.LString); str {
				setIndex(L, op, s, number(float64(len(s)+1)), v)
			}
			typeError(L, "get length of", op, obj)
		}
		setIndex(L, op, t, lua.LNumber(t.Len()+1), v)
		return 0
	}
}

type storeTarget struct {
	field bool
	op    operand
}

// assignSite is the function for one place of a multiple assignment: its
// arguments are a table and a key for each field, then the values; it returns
// the values for the names.
func assignSite(plan []storeTarget) lua.LGFunction {
	fields := 0
	for _, t := range plan {
		if t.field {
			fields++
		}
	}
	return func(L *lua.LState) int {
		values := 2 * fields
		arg := values - 1
		for i := len(plan) - 1; i >= 0; i-- { // from the right, as Lua does
			if plan[i].field {
				setIndex(L, plan[i].op, L.Get(arg), L.Get(arg+1), L.Get(values+1+i))
				arg -= 2
			}
		}
		names := 0
		for i, t := range plan {
			if !t.field {
				L.Push(L.Get(values + 1 + i))
				names++
			}
		}
		return names
	}
}

func setIndex(L *lua.LState, op operand, obj, key, v lua.LValue) {
	t, ok := obj.(*lua.LTable)
	if !ok {
		typeError(L, "index", op, obj)
	}
	if problem := badKey(key); problem != "" && behind(L, t) == t {
		raise(L, 1, problem) // whatever __newindex would say
	}
	if t.Metatable != lua.LNil && t.RawGet(key) == lua.LNil {
		if mt, ok := t.Metatable.(*lua.LTable); ok && mt.RawGetString("__newindex") != lua.LNil {
			if n, ok := arrayIndex(key); ok {
				payGap(L, t, n)
			}
			L.SetTable(t, key, v)
			return
		}
	}
	rawStore(L, t, key, v)
}

// arrayIndex says whether gopher-lua keeps a key in a table's array part.
func arrayIndex(key lua.LValue) (int, bool) {
	n, ok := key.(lua.LNumber)
	if !ok || !(n >= 1 && n < lua.LNumber(lua.MaxArrayIndex)) || n != lua.LNumber(int(n)) {
		return 0, false
	}
	return int(n), true
}

// gapSlot is what a slot takes, in bytes, that gopher-lua fills up to an index beyond
// the end of a table's array: it appends nil by nil, so that in the end there are an
// array with a quarter to spare and the one before it.
const gapSlot = 16 + 16 + 16/4

// payGap charges for the slots that gopher-lua fills when an index lies beyond
// the array's end, before it does.
func payGap(L *lua.LState, t *lua.LTable, n int) {
	if n <= plainKey || t.RawGetInt(n-1) != lua.LNil {
		return
	}
	if gap := n - t.Len(); gap > 0 {
		r := runOf(L)
		r.alloc(L, gapSlot*gap)
		r.pay(L, gap/8)
	}
}

// badKey says why nothing can be stored under a key; "" when it can.
func badKey(key lua.LValue) string {
	if key == lua.LNil {
		return "table index is nil"
	}
	if n, ok := key.(lua.LNumber); ok && math.IsNaN(float64(n)) {
		return "table index is NaN"
	}
	return ""
}

// rawStore is t[k] = v without metamethods. It keeps the array part free of a
// tail of nils, which the length operator would walk again and again.
func rawStore(L *lua.LState, t *lua.LTable, key, v lua.LValue) {
	switch k := key.(type) {
	case lua.LNumber:
		n, ok := arrayIndex(k)
		if !ok {
			if problem := badKey(k); problem != "" {
				raise(L, 1, problem)
			}
			t.RawSetH(normalKey(k), v)
			return
		}
		if v != lua.LNil {
			payGap(L, t, n)
			t.RawSetInt(n, v)
			return
		}
		if t.RawGetInt(n) == lua.LNil {
			return
		}
		t.RawSetInt(n, v)
		if t.RawGetInt(n+1) != lua.LNil {
			return
		}
		for end := t.Len(); n > end; n-- {
			t.Remove(-1)
		}
	case *lua.LNilType:
		raise(L, 1, badKey(k))
	default:
		t.RawSet(key, v)
	}
}

// normalKey makes one key of 0 and -0.
func normalKey(k lua.LNumber) lua.LNumber {
	if k == 0 {
		return 0
	}
	return k
}

// guardKey is called with a computed key of a table constructor.
func guardKey(L *lua.LState) int {
	key := L.Get(1)
	if n, ok := arrayIndex(key); ok && n > plainKey {
		r := runOf(L)
		r.alloc(L, gapSlot*n)
		r.pay(L, n/8)
	}
	L.Push(key)
	return 1
}
