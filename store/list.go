package store

import "strconv"

// list is the value of a List: a ring of strings. Both ends take and give in
// constant time, an element is found by its index in constant time, and what
// changes in the middle moves the shorter side.
type list struct {
	buf    []string // a power of two of them, or none
	head   int      // of the first element
	n      int
	bytes  int64 // of all elements
	allocs int64 // of all elements, as allocated
	enc    Encoding
}

const (
	listOverhead = 80
	elementSlot  = 16
	smallestRing = 4
)

// What Redis 7.2 packs into one listpack, in bytes; a quicklist is packed again
// when it has shrunk to half of that.
const (
	packedList     = 8 << 10
	packedHeader   = 7
	packedOverhead = 2 // of an element, near enough
)

func (l *list) size() int64 { return listOverhead + int64(l.n)*elementSlot + l.allocs }

func (l *list) len() int { return l.n }

func (l *list) clone(*Tx) collection {
	c := *l
	c.buf = nil
	if l.n > 0 {
		c.resizeFrom(l, len(l.buf))
	}
	return &c
}

func (l *list) slot(i int) *string { return &l.buf[(l.head+i)&(len(l.buf)-1)] }

func (l *list) at(i int) string { return *l.slot(i) }

func (l *list) count(s string, sign int64) {
	l.bytes += sign * int64(len(s))
	l.allocs += sign * allocSize(len(s))
}

// resizeFrom gives l a ring of its own with the elements of from.
func (l *list) resizeFrom(from *list, size int) {
	buf := make([]string, size)
	for i := range from.n {
		buf[i] = from.at(i)
	}
	l.buf, l.head = buf, 0
}

func (l *list) grow() {
	if l.n == len(l.buf) {
		l.resizeFrom(l, max(smallestRing, 2*len(l.buf)))
	}
}

func (l *list) shrink() {
	if len(l.buf) > 16 && l.n <= len(l.buf)/4 {
		l.resizeFrom(l, len(l.buf)/2)
	}
}

func (l *list) push(end End, s string) {
	l.grow()
	if end == Head {
		l.head = (l.head - 1) & (len(l.buf) - 1)
		l.buf[l.head] = s
	} else {
		l.buf[(l.head+l.n)&(len(l.buf)-1)] = s
	}
	l.n++
	l.count(s, 1)
}

func (l *list) pop(end End) string {
	i := 0
	if end == Tail {
		i = l.n - 1
	}
	p := l.slot(i)
	s := *p
	*p = ""
	if end == Head {
		l.head = (l.head + 1) & (len(l.buf) - 1)
	}
	l.n--
	l.count(s, -1)
	l.shrink()
	return s
}

// insert puts s before the element i, or at the end.
func (l *list) insert(i int, s string) {
	if i < l.n-i {
		l.push(Head, s)
		for j := 0; j < i; j++ {
			*l.slot(j) = l.at(j + 1)
		}
	} else {
		l.push(Tail, s)
		for j := l.n - 1; j > i; j-- {
			*l.slot(j) = l.at(j - 1)
		}
	}
	*l.slot(i) = s
}

// remove takes the element i out.
func (l *list) remove(i int) string {
	s := l.at(i)
	if i < l.n-1-i {
		for j := i; j > 0; j-- {
			*l.slot(j) = l.at(j - 1)
		}
		*l.slot(0) = s
		return l.pop(Head)
	}
	for j := i; j < l.n-1; j++ {
		*l.slot(j) = l.at(j + 1)
	}
	*l.slot(l.n - 1) = s
	return l.pop(Tail)
}

func (l *list) exchange(i int, s string) (was string) {
	p := l.slot(i)
	was = *p
	l.count(was, -1)
	l.count(s, 1)
	*p = s
	return was
}

// settle names the encoding after a change.
func (l *list) settle() {
	packed := l.bytes + int64(l.n)*packedOverhead + packedHeader
	switch {
	case packed > packedList:
		l.enc = Quicklist
	case packed <= packedList/2:
		l.enc = Packed
	}
}

func (l *list) revert(c *change) {
	switch c.op {
	case pushedFront, pushedBack:
		end := Head
		if c.op == pushedBack {
			end = Tail
		}
		for range c.at {
			l.pop(end)
		}
	case poppedFront:
		l.push(Head, c.was)
	case poppedBack:
		l.push(Tail, c.was)
	case inserted:
		l.remove(c.at)
	case removed:
		l.insert(c.at, c.was)
	case exchanged:
		l.exchange(c.at, c.was)
	}
	l.enc = c.enc
}

// rebuilt undoes that a list was given another ring: what it was lies in the
// old one, untouched.
type rebuilt struct {
	l   *list
	was list
}

func (r *rebuilt) revert(*change) { *r.l = r.was }

// rebuild gives the list a new ring with the elements that keep chooses.
func (k *Key) rebuild(l *list, room int, from, to int, keep func(s string) bool) {
	k.tx.note(change{of: &rebuilt{l, *l}})
	old := *l
	size := smallestRing
	for size < room {
		size *= 2
	}
	*l = list{buf: make([]string, size), enc: old.enc}
	for i := from; i < to; i++ {
		if s := old.at(i); keep(s) {
			l.push(Tail, s)
		}
		if !k.tx.Step(i, 1) {
			return
		}
	}
}

// End is an end of a List.
type End uint8

// The ends of a List, LEFT and RIGHT in commands.
const (
	Head End = iota
	Tail
)

// Word is what commands call the end.
func (e End) Word() string {
	if e == Head {
		return "LEFT"
	}
	return "RIGHT"
}

func (e End) pushes() (command string, op changeOp) {
	if e == Head {
		return "LPUSH", pushedFront
	}
	return "RPUSH", pushedBack
}

func (e End) pops() (command string, op changeOp) {
	if e == Head {
		return "LPOP", poppedFront
	}
	return "RPOP", poppedBack
}

func (k *Key) list() *list {
	e := k.see()
	if e == nil {
		return nil
	}
	return e.coll.(*list)
}

func (k *Key) ownList() *list { return k.own().coll.(*list) }

// Len is the number of elements of a List, 0 when the key is absent.
func (k *Key) Len() int {
	if l := k.list(); l != nil {
		return l.n
	}
	return 0
}

// Element is the element i of a List, which must have it. Elements never
// change; they may be kept.
func (k *Key) Element(i int) string { return k.list().at(i) }

// Push adds copies of values to an end of a List, one after the other, and
// returns its length. An absent key is created. Blocked commands are woken.
func (k *Key) Push(end End, values ...[]byte) int {
	if k.see() == nil {
		k.createOf(List, &list{})
	}
	l := k.ownList()
	command, op := end.pushes()
	k.tx.note(change{of: l, op: op, at: len(values), enc: l.enc})
	args := make([]string, len(values)+1)
	args[0] = command
	for i, v := range values {
		s := string(v)
		l.push(end, s)
		args[i+1] = s
	}
	l.settle()
	k.record(args...)
	k.Signal()
	return l.n
}

// PushElement is Push of one element that is in a List already and so need not
// be copied.
func (k *Key) PushElement(end End, s string) int {
	if k.see() == nil {
		k.createOf(List, &list{})
	}
	l := k.ownList()
	command, op := end.pushes()
	k.tx.note(change{of: l, op: op, at: 1, enc: l.enc})
	l.push(end, s)
	l.settle()
	k.record(command, s)
	k.Signal()
	return l.n
}

// Pop takes up to n elements, at least one, from an end of a List and gives each
// to got. A List that is empty then is deleted.
func (k *Key) Pop(end End, n int, got func(s string)) {
	l := k.list()
	if n >= l.n {
		for i := range l.n {
			if end == Tail {
				i = l.n - 1 - i
			}
			if got(l.at(i)); !k.tx.Step(i, 2) {
				return
			}
		}
		k.Delete()
		return
	}
	l = k.ownList()
	command, op := end.pops()
	for i := range n {
		if k.popOne(l, end, op, got); !k.tx.Step(i, 4) {
			return
		}
	}
	l.settle()
	if n == 1 {
		k.record(command)
	} else {
		k.record(command, strconv.Itoa(n))
	}
}

func (k *Key) popOne(l *list, end End, op changeOp, got func(s string)) {
	enc := l.enc
	s := l.pop(end)
	k.tx.note(change{of: l, op: op, was: s, enc: enc})
	if got != nil {
		got(s)
	}
}

// Rotate moves the element at one end of a List to the other, or to the same,
// and returns it. The List must not be empty.
func (k *Key) Rotate(from, to End) string {
	l := k.ownList()
	_, popped := from.pops()
	_, pushed := to.pushes()
	var s string
	k.popOne(l, from, popped, func(e string) { s = e })
	k.tx.note(change{of: l, op: pushed, at: 1, enc: l.enc})
	l.push(to, s)
	k.tx.effects = append(k.tx.effects, Effect{
		Op: OpCommand, DB: k.logical, Key: k.name,
		Args: []string{"LMOVE", string(k.name), from.Word(), to.Word()},
	})
	k.Signal()
	return s
}

// SetElement replaces the element i of a List, which must have it.
func (k *Key) SetElement(i int, v []byte) {
	l := k.ownList()
	s := string(v)
	enc := l.enc
	k.tx.note(change{of: l, op: exchanged, at: i, was: l.exchange(i, s), enc: enc})
	l.settle()
	k.record("LSET", strconv.Itoa(i), s)
}

// elementsPerUnit is how many elements of a list move by one place in one unit of
// work for a Meter.
const elementsPerUnit = 8

// InsertBeside inserts a copy of v before or after the first element of a List
// that equals pivot. It returns the new length, -1 when there is no such element.
func (k *Key) InsertBeside(pivot []byte, after bool, v []byte) int {
	l := k.list()
	i := 0
	for ; ; i++ {
		if i == l.n {
			return -1
		}
		if l.at(i) == string(pivot) {
			break
		}
		if !k.tx.Step(i, 1) {
			return -1
		}
	}
	if !k.tx.Pay(min(i, l.n-i) / elementsPerUnit) {
		return -1
	}
	l = k.ownList()
	s, word := string(v), "BEFORE"
	if after {
		i++
		word = "AFTER"
	}
	k.tx.note(change{of: l, op: inserted, at: i, enc: l.enc})
	l.insert(i, s)
	l.settle()
	k.record("LINSERT", word, string(pivot), s)
	k.Signal()
	return l.n
}

// RemoveElements removes the first count elements of a List that equal v, the
// last -count when count is negative, all when it is 0, and returns how many
// there were. A List that is empty then is deleted.
func (k *Key) RemoveElements(v []byte, count int) int {
	l := k.list()
	first, step, limit := 0, 1, count
	if count < 0 {
		first, step = l.n-1, -1
		limit = -count
	}
	if limit <= 0 || limit > l.n { // -count may overflow
		limit = l.n
	}
	found, at, end := 0, 0, 0
	for i := first; i >= 0 && i < l.n && found < limit; i += step {
		if !k.tx.Step(i, 1) {
			return 0
		}
		if l.at(i) == string(v) {
			found++
			if found == 1 {
				at = i
			}
			end = i
		}
	}
	switch {
	case found == 0:
		return 0
	case found == l.n:
		k.Delete()
		return found
	}
	l = k.ownList()
	if found == 1 {
		if !k.tx.Pay(min(at, l.n-at) / elementsPerUnit) {
			return 0
		}
		enc := l.enc
		k.tx.note(change{of: l, op: removed, at: at, was: l.remove(at), enc: enc})
	} else {
		low, high, i := min(at, end), max(at, end), -1
		k.rebuild(l, l.n-found, 0, l.n, func(s string) bool {
			i++
			return i < low || i > high || s != string(v)
		})
	}
	l.settle()
	k.record("LREM", strconv.Itoa(count), string(v))
	return found
}

// Trim keeps the elements of a List from start to stop, ends included, and
// removes the others. Both must be within it; when stop is below start the List
// is deleted.
func (k *Key) Trim(start, stop int) {
	l := k.list()
	if stop < start {
		k.Delete()
		return
	}
	left, right, kept := start, l.n-1-stop, stop-start+1
	l = k.ownList() // even if nothing goes: who watches the key is told, as in Redis
	if left+right == 0 {
		return
	}
	n := l.n
	if left+right <= kept {
		for i := range left + right {
			end, op := Head, poppedFront
			if i >= left {
				end, op = Tail, poppedBack
			}
			if k.popOne(l, end, op, nil); !k.tx.Step(i, 4) {
				return
			}
		}
	} else {
		k.rebuild(l, kept, start, n-right, func(string) bool { return true })
	}
	l.settle()
	k.record("LTRIM", strconv.Itoa(start), strconv.Itoa(stop))
}
