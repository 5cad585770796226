package value

// Event is something that a metatable can answer for.
type Event uint8

// The events of Lua 5.1.
const (
	EventIndex Event = iota
	EventNewIndex
	EventEq
	EventAdd
	EventSub
	EventMul
	EventDiv
	EventMod
	EventPow
	EventUnm
	EventLt
	EventLe
	EventConcat
	EventCall
	EventLen
	EventToString
	EventMetatable
	events
)

var eventNames = [events]string{
	"__index", "__newindex", "__eq", "__add", "__sub", "__mul", "__div", "__mod", "__pow", "__unm",
	"__lt", "__le", "__concat", "__call", "__len", "__tostring", "__metatable",
}

var eventHashes = func() (h [events]uint32) {
	for i, name := range eventNames {
		h[i] = HashString(name)
	}
	return h
}()

// String is the event's field in a metatable.
func (e Event) String() string { return eventNames[e] }

// Metamethod is what t's metatable has for an event, nil for none.
func (t *Table) Metamethod(e Event) Value {
	if t.Meta == nil {
		return Nil
	}
	return t.Meta.Handler(e)
}

// Handler is what t, as a metatable, has for an event. That it has none is remembered.
func (t *Table) Handler(e Event) Value {
	if t.absent&(1<<e) != 0 {
		return Nil
	}
	v := t.GetHashed(eventNames[e], eventHashes[e])
	if v.IsNil() && !t.ReadOnly { // several machines share what no one may change
		t.absent |= 1 << e
	}
	return v
}
