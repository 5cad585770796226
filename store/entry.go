package store

import "unsafe"

// Kind is the type of an entry's value.
type Kind uint8

// The kinds of value. None stands for an absent key.
const (
	None Kind = iota
	String
	List
	Set
	Opaque // bytes that belong to a module
)

// String is the name that TYPE answers, but for an Opaque: see Key.TypeName.
func (k Kind) String() string {
	switch k {
	case None:
		return "none"
	case String:
		return "string"
	case List:
		return "list"
	case Set:
		return "set"
	case Opaque:
		return "module"
	}
	return "unknown"
}

// entry is one key with its value. Once installed in a shard it is changed only
// by a transaction that holds the shard's latch; locked transactions change a
// copy and install that. Its key never changes.
//
// It is two cache lines long: what tells whether the key is there lies in the
// first.
type entry struct {
	key    string
	expire int64          // Unix ms, 0: none
	room   [roomSize]byte // the bytes of key, when they fit; behind them those of str, when they fit too
	value
	vol int32 // place in the shard's volatile list, -1: not in it
	db  int32 // physical database
}

// value is what a transaction changes of an entry, and undoes, beside its expiry
// and the bytes that are in the entry.
type value struct {
	str    []byte     // of a String; its bytes up to len are views of handlers
	coll   collection // of any other kind, changed in place
	access uint32     // coarse clock of the last access, in seconds
	kind   Kind
	raw    bool // was changed in place: OBJECT ENCODING answers raw
	text   bool // was made as text: OBJECT ENCODING does not answer int
}

// roomSize is how many bytes of a key and its value an entry has room for, so
// that to compare the one and to read the other costs no further cache miss.
const roomSize = 48

// newEntry returns an entry for a copy of name, not yet in any database.
func newEntry(name []byte) *entry {
	e := &entry{vol: -1}
	if len(name) > 0 && len(name) <= roomSize {
		copy(e.room[:], name)
		e.key = unsafe.String(&e.room[0], len(name))
	} else {
		e.key = string(name)
	}
	return e
}

// spare is the room that the key leaves.
func (e *entry) spare() []byte {
	if len(e.key) > roomSize {
		return e.room[:]
	}
	return e.room[len(e.key):]
}

// hold makes str a copy of v in the entry's room, if it fits.
func (e *entry) hold(v []byte) bool {
	spare := e.spare()
	if len(v) > len(spare) {
		return false
	}
	e.str = spare[:copy(spare, v)]
	return true
}

// settle moves a value that fits into the room there, if it is not yet. Nothing
// may view it any more: neither handlers nor effects.
func (e *entry) settle() {
	if e.kind == String && !e.holds() {
		e.hold(e.str)
	}
}

// holds tells whether the bytes of str are in the entry's room.
func (e *entry) holds() bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(e.str)))-uintptr(unsafe.Pointer(&e.room)) < roomSize
}

// What an entry costs beside its bytes: the struct, its slots in the index and
// the headers of its allocations.
const (
	entryOverhead = 128 + 24
	volSlot       = 8
)

// size is what the entry counts for maxmemory, in bytes.
func (e *entry) size() int64 {
	n := int64(entryOverhead)
	if !e.holds() {
		n += allocSize(cap(e.str))
	}
	if len(e.key) > roomSize {
		n += allocSize(len(e.key))
	}
	if e.expire != 0 {
		n += volSlot
	}
	if e.coll != nil {
		n += e.coll.size()
	}
	return n
}

// allocSize rounds n up as the runtime's small size classes do, near enough.
func allocSize(n int) int64 {
	switch {
	case n == 0:
		return 0
	case n <= 16:
		return int64(n+7) &^ 7
	case n <= 256:
		return int64(n+15) &^ 15
	case n <= 32<<10:
		return int64(n+127) &^ 127
	}
	return int64(n+8191) &^ 8191
}

// clone is a copy of e to be changed by a locked transaction, which may read
// neither without a latch: where e stands in the volatile list changes with
// other keys of its shard.
func (e *entry) clone() *entry {
	c := &entry{key: e.key, expire: e.expire, room: e.room, value: e.value, vol: -1, db: e.db}
	if len(c.key) > 0 && len(c.key) <= roomSize {
		c.key = unsafe.String(&c.room[0], len(c.key))
	}
	if e.holds() {
		c.str = c.spare()[:len(e.str)]
	}
	return c
}
