package store

import (
	"strconv"
	"unsafe"
)

// set is the value of a Set: its members in a slice, so that one can be drawn by
// its place, and for more than a few a map from member to place.
type set struct {
	items  []string
	places map[string]int32 // nil: the set is small
	peak   int              // members the map has had at most
	allocs int64            // of all members, as allocated
	enc    Encoding
}

const (
	setOverhead = 80
	memberSlot  = elementSlot
	placeSlot   = 28 // of a map, at its usual load
	// fewMembers is the number up to which a walk is as quick as a map.
	fewMembers = 16
)

// The thresholds of Redis 7.2's encodings of sets.
const (
	intSetEntries   = 512
	packedSetItems  = 128
	packedSetMember = 64
)

// newSet makes an empty set that is about to get hint members, of which first is
// one.
func newSet(first string, hint int) *set {
	s := &set{enc: HashTable}
	if _, integer := canonicalInt(first); integer && hint <= intSetEntries {
		s.enc = IntSet
	} else if hint <= packedSetItems {
		s.enc = Packed
	}
	return s
}

func (s *set) size() int64 {
	n := setOverhead + int64(len(s.items))*memberSlot + s.allocs
	if len(s.items) > fewMembers {
		n += int64(len(s.items)) * placeSlot
	}
	return n
}

func (s *set) len() int { return len(s.items) }

func (s *set) clone(tx *Tx) collection {
	c := &set{items: append([]string(nil), s.items...), allocs: s.allocs, enc: s.enc}
	c.remap(tx)
	return c
}

// remap makes the map anew, or none. tx, if it is not nil, pays for it and may give
// it up.
func (s *set) remap(tx *Tx) {
	s.places, s.peak = nil, 0
	if len(s.items) <= fewMembers {
		return
	}
	s.peak = len(s.items)
	s.places = make(map[string]int32, len(s.items))
	for i, m := range s.items {
		s.places[m] = int32(i)
		if tx != nil && !tx.Step(i, addWork) {
			return
		}
	}
}

// addWork is what a member costs that is added to a set, in units of a Meter.
const addWork = 15

// find returns the place of a member, -1 if it is none.
func (s *set) find(m []byte) int {
	return s.findString(unsafe.String(unsafe.SliceData(m), len(m))) // which keeps nothing of it
}

func (s *set) findString(m string) int {
	if s.places != nil {
		if i, ok := s.places[m]; ok {
			return int(i)
		}
		return -1
	}
	for i := range s.items {
		if s.items[i] == m {
			return i
		}
	}
	return -1
}

// add adds a member that is not there yet.
func (s *set) add(m string) {
	s.items = append(s.items, m)
	s.allocs += allocSize(len(m))
	switch {
	case s.places != nil:
		s.places[m] = int32(len(s.items) - 1)
		s.peak = max(s.peak, len(s.items))
	case len(s.items) > fewMembers:
		s.remap(nil)
	}
}

// remove takes out the member at place i; the last one takes its place.
func (s *set) remove(i int) string {
	m, last := s.items[i], len(s.items)-1
	if i != last {
		s.items[i] = s.items[last]
		if s.places != nil {
			s.places[s.items[i]] = int32(i)
		}
	}
	s.items[last] = ""
	s.items = s.items[:last]
	s.allocs -= allocSize(len(m))
	if s.places != nil {
		delete(s.places, m)
		// A map never gives room back by itself.
		if last <= fewMembers/2 || s.peak > 1024 && last < s.peak/8 {
			s.items = append(make([]string, 0, last+last/4), s.items...)
			s.remap(nil)
		}
	}
	return m
}

// restore puts a member back to the place that remove took it from.
func (s *set) restore(i int, m string) {
	s.add(m)
	last := len(s.items) - 1
	if i == last {
		return
	}
	s.items[i], s.items[last] = m, s.items[i]
	if s.places != nil {
		s.places[m], s.places[s.items[last]] = int32(i), int32(last)
	}
}

// settle names the encoding after m was added.
func (s *set) settle(m string) {
	switch s.enc {
	case IntSet:
		if _, integer := canonicalInt(m); integer {
			if len(s.items) > intSetEntries {
				s.enc = HashTable
			}
			return
		}
		s.enc = Packed // integers are short
		fallthrough
	case Packed:
		if len(s.items) > packedSetItems || len(m) > packedSetMember {
			s.enc = HashTable
		}
	}
}

// expect names the encoding before more members are added, as Redis does for a
// command with many of them.
func (s *set) expect(more int) {
	if s.enc == Packed && more > packedSetItems || s.enc == IntSet && more > intSetEntries {
		s.enc = HashTable
	}
}

// canonicalInt parses an integer that is written in the one way that Redis keeps
// as a number.
func canonicalInt(m string) (int64, bool) {
	if len(m) == 0 || len(m) > 20 || m[0] != '-' && (m[0] < '0' || m[0] > '9') {
		return 0, false
	}
	n, err := strconv.ParseInt(m, 10, 64)
	if err != nil || len(m) > 1 && m[0] == '0' || m[0] == '-' && (n == 0 || m[1] == '0') {
		return 0, false
	}
	return n, true
}

func (s *set) revert(c *change) {
	switch c.op {
	case inserted:
		s.remove(len(s.items) - 1)
	case removed:
		s.restore(c.at, c.was)
	}
	s.enc = c.enc
}

func (k *Key) set() *set {
	e := k.see()
	if e == nil {
		return nil
	}
	return e.coll.(*set)
}

func (k *Key) ownSet() *set { return k.own().coll.(*set) }

// Card is the number of members of a Set, 0 when the key is absent.
func (k *Key) Card() int {
	if s := k.set(); s != nil {
		return len(s.items)
	}
	return 0
}

// Members are the members of a Set in no order that means anything, a view that
// must not be written; the members themselves never change and may be kept.
func (k *Key) Members() []string {
	if s := k.set(); s != nil {
		return s.items
	}
	return nil
}

// HasMember tells whether m is a member of a Set; an absent key has none.
func (k *Key) HasMember(m []byte) bool {
	s := k.set()
	return s != nil && s.find(m) >= 0
}

// HasMemberString is HasMember of what is a member of another Set.
func (k *Key) HasMemberString(m string) bool {
	s := k.set()
	return s != nil && s.findString(m) >= 0
}

// AddMembers adds copies of members to a Set and returns how many were new. An
// absent key is created.
func (k *Key) AddMembers(members ...[]byte) int {
	s := k.set()
	var args []string
	for _, m := range members {
		if s != nil && s.find(m) >= 0 {
			continue
		}
		text := string(m)
		if args == nil {
			if s == nil {
				k.createOf(Set, newSet(text, len(members)))
			}
			s = k.ownSet()
			args = append(make([]string, 0, 2), "SADD")
		}
		k.tx.note(change{of: s, op: inserted, enc: s.enc})
		if len(args) == 1 {
			s.expect(len(members))
		}
		s.add(text)
		s.settle(text)
		args = append(args, text)
	}
	if args == nil {
		return 0
	}
	k.record(args...)
	return len(args) - 1
}

// RemoveMembers removes members from a Set, which must exist, and returns how
// many were there. A Set that is empty then is deleted.
func (k *Key) RemoveMembers(members ...[]byte) int {
	s := k.set()
	var args []string
	for _, m := range members {
		i := s.find(m)
		if i < 0 {
			continue
		}
		if args == nil {
			s = k.ownSet()
			args = append(make([]string, 0, 2), "SREM")
		}
		args = append(args, k.removeAt(s, i))
		if len(s.items) == 0 {
			k.Delete()
			return len(args) - 1
		}
	}
	if args == nil {
		return 0
	}
	k.record(args...)
	return len(args) - 1
}

func (k *Key) removeAt(s *set, i int) string {
	m := s.remove(i)
	k.tx.note(change{of: s, op: removed, at: i, was: m, enc: s.enc})
	return m
}

// PopMembers takes n members out of a Set, which must exist, each from the place
// that draw chooses below the number of those left, and gives each to got. A Set
// that is empty then is deleted. Like all that goes through a whole collection, it stops
// where it is when the transaction's Meter says no.
func (k *Key) PopMembers(n int, draw func(n int) int, got func(m string)) {
	s := k.set()
	if n >= len(s.items) {
		for i, m := range s.items {
			if got(m); !k.tx.Step(i, 2) {
				return
			}
		}
		k.Delete()
		return
	}
	s = k.ownSet()
	args := append(make([]string, 0, 2), "SREM")
	for i := range n {
		m := k.removeAt(s, draw(len(s.items)))
		got(m)
		args = append(args, m)
		if !k.tx.Step(i, addWork) {
			return
		}
	}
	k.record(args...)
}

// StoreMembers makes the key a Set of members, which must be different, whatever
// it was before, without an expiry. Without members it is deleted.
func (k *Key) StoreMembers(members []string) {
	if len(members) == 0 {
		k.Delete()
		return
	}
	s := newSet(members[0], 0)
	for i, m := range members {
		s.add(m)
		s.settle(m)
		if !k.tx.Step(i, addWork) {
			return
		}
	}
	k.setCollection(Set, s, NoTTL)
}
