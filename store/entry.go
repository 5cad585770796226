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
type entry struct {
	value
	key string
	vol int32 // place in the shard's volatile list, -1: not in it
	db  int32 // physical database

	short [shortKey]byte // the bytes of key, when they fit
}

// value is what a transaction changes of an entry, and undoes.
type value struct {
	str    []byte     // of a String; its bytes up to len are views of handlers
	coll   collection // of any other kind, changed in place
	expire int64      // Unix ms, 0: none
	access uint32     // coarse clock of the last access, in seconds
	kind   Kind
	raw    bool // was changed in place: OBJECT ENCODING answers raw
	text   bool // was made as text: OBJECT ENCODING does not answer int
}

// shortKey is the length up to which a key stands within its entry, so that
// comparing it costs no further cache miss.
const shortKey = 32

// newEntry returns an entry for a copy of name, not yet in any database.
func newEntry(name []byte) *entry {
	e := &entry{vol: -1}
	if len(name) > 0 && len(name) <= shortKey {
		copy(e.short[:], name)
		e.key = unsafe.String(&e.short[0], len(name))
	} else {
		e.key = string(name)
	}
	return e
}

// What an entry costs beside its bytes: the struct, its slots in the index and
// the headers of its allocations.
const (
	entryOverhead = 112 + 24
	volSlot       = 8
)

// size is what the entry counts for maxmemory, in bytes.
func (e *entry) size() int64 {
	n := int64(entryOverhead) + allocSize(cap(e.str))
	if len(e.key) > shortKey {
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
	c := &entry{value: e.value, key: e.key, vol: -1, db: e.db, short: e.short}
	if len(c.key) > 0 && len(c.key) <= shortKey {
		c.key = unsafe.String(&c.short[0], len(c.key))
	}
	return c
}
