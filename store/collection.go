package store

// collection is the value of a List or a Set. It is changed in place, also by a
// locked transaction: to copy it for every write would cost its whole length.
// Each change leaves a record in the transaction's journal, which undoes it.
// Nobody but the holder of its key looks into a collection; who only visits a
// shard sees the entry around it, which is as committed.
type collection interface {
	reverter
	// size is what the collection takes in memory, in bytes. It follows from
	// the contents alone, so that what was undone counts as before.
	size() int64
	// len is the number of its elements.
	len() int
	// clone is a copy, which tx pays for; it is not whole when the Meter says no.
	clone(tx *Tx) collection
}

// reverter undoes changes of a collection.
type reverter interface{ revert(c *change) }

// change is how one change of a collection is undone. Key records and changes
// are undone apart from each other: the ones restore which collection a key
// has, the others what is in it.
type change struct {
	of  reverter
	was string // the element that was there
	at  int    // where, or how many
	op  changeOp
	enc Encoding // before the change
}

// changeOp says what was done, to be undone.
type changeOp uint8

const (
	pushedFront changeOp = iota + 1 // at elements
	pushedBack                      // at elements
	poppedFront
	poppedBack
	inserted
	removed
	exchanged
)

// note adds a record to the journal.
func (tx *Tx) note(c change) { tx.journal = append(tx.journal, c) }

// Encoding is how Redis 7.2 would keep a collection, with its settings as they
// are by default. Here it is a name only.
type Encoding uint8

// The encodings.
const (
	Packed    Encoding = iota // listpack
	Quicklist                 // long lists
	IntSet                    // sets of integers
	HashTable                 // large sets
	Plain                     // values of modules
)

// String is the name that OBJECT ENCODING answers.
func (e Encoding) String() string {
	return [...]string{"listpack", "quicklist", "intset", "hashtable", "raw"}[e]
}

// Encoding is the encoding of any value but a String.
func (k *Key) Encoding() Encoding {
	switch v := k.see().coll.(type) {
	case *list:
		return v.enc
	case *set:
		return v.enc
	case *opaque:
		return Plain
	}
	return Packed
}

// createOf makes an empty collection of an absent key.
func (k *Key) createOf(kind Kind, c collection) {
	e := k.create()
	e.kind, e.coll = kind, c
}

// record adds the effect of a command to the key: name, key, args.
func (k *Key) record(nameAndArgs ...string) {
	k.tx.effects = append(k.tx.effects, Effect{Op: OpCommand, DB: k.logical, Key: k.name, Args: nameAndArgs})
}

// setCollection makes a collection the key's value, whatever it was before.
func (k *Key) setCollection(kind Kind, c collection, ttl TTL) {
	k.Delete()
	k.createOf(kind, c)
	// What the effect tells is the whole of it.
	if n := c.len(); !k.tx.Alloc(n*elementSlot) || !k.tx.Pay(n/elementsPerUnit) {
		return
	}
	switch c := c.(type) {
	case *list:
		args := append(make([]string, 0, c.n+1), "RPUSH")
		for i := range c.n {
			args = append(args, c.at(i))
		}
		k.record(args...)
	case *opaque:
		k.recordOpaque(c)
	case *set:
		k.record(append(append(make([]string, 0, len(c.items)+1), "SADD"), c.items...)...)
	}
	k.Signal()
	if ttl != NoTTL {
		k.SetExpiry(ttl)
	}
}
