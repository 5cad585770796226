package value

import (
	"errors"
	"math"
	"math/bits"
	"unsafe"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
)

// Bounds and sizes of a table.
const (
	maxBits = 26 // arrays have at most 2^26 slots

	valueBytes = 16
	nodeBytes  = int(unsafe.Sizeof(node{}))
	tableBytes = int(unsafe.Sizeof(Table{}))

	// freeSteps is how long a chain may be before walking it is charged for.
	freeSteps = 8

	// unknown as Table.filled says that an array may have holes.
	unknown = math.MaxInt
)

// Errors of Set and Next, in Lua's words.
var (
	ErrNilIndex   = errors.New("table index is nil")
	ErrNaNIndex   = errors.New("table index is NaN")
	ErrUnknownKey = errors.New("invalid key to 'next'")
)

// Table is a Lua table. The zero Table is an empty one without an account.
// It belongs to one goroutine. Its growth may panic with budget.Ended when its
// account is exhausted.
type Table struct {
	array []Value
	nodes []node // a power of two, or none
	free  int    // nodes from here on are taken, or were
	mask  uint32 // len(nodes)-1
	// filled slots of the array hold values, and those after them hold none; or it
	// is unknown. So the length of a list needs no search.
	filled int

	absent uint32 // bits of events that this table, as a metatable, has not

	// Meta is the metatable, nil for none.
	Meta *Table
	// Account pays for growth; nil for none.
	Account *budget.Account
	// ReadOnly is for engines, which refuse to let scripts change such a table;
	// the methods here do not look at it.
	ReadOnly bool
}

type node struct {
	key, val Value
	hash     uint32 // of a key that is a string
	next     int32  // index of the next node of the chain plus one
}

// NewTable makes a table with room for narr elements and nhash other keys, without an account.
func NewTable(narr, nhash int) *Table { return New(nil, narr, nhash) }

// New makes a table that charges what it takes to a, which may be nil.
func New(a *budget.Account, narr, nhash int) *Table {
	t := &Table{Account: a}
	t.charge(tableBytes)
	if narr > 0 {
		t.charge(narr * valueBytes)
		t.array = make([]Value, narr)
	}
	if nhash > 0 {
		t.setNodes(nhash)
	}
	return t
}

// Array makes the table that storing values one by one under 1, 2, 3 would make.
// It copies values.
func Array(a *budget.Account, values []Value) *Table {
	t := New(a, pow2(len(values)), 0)
	copy(t.array, values)
	t.survey()
	return t
}

// pow2 is the next power of two.
func pow2(n int) int {
	if n <= 1 {
		return n
	}
	return 1 << bits.Len(uint(n-1))
}

func (t *Table) charge(n int) {
	if t.Account != nil {
		t.Account.MustAlloc(n)
	}
}

// steps pays for a walk that an unlucky or hostile choice of keys made long.
func (t *Table) steps(n int) {
	if n > freeSteps && t.Account != nil {
		t.Account.Left -= n
	}
}

// HashString is Lua's hash of a string.
func HashString(s string) uint32 {
	h := uint32(len(s))
	for i := len(s) - 1; i >= 0; i-- {
		h ^= h<<5 + h>>2 + uint32(s[i])
	}
	return h
}

// odd is the modulus for keys whose low bits say little.
func (t *Table) odd() uint32 { return t.mask | 1 }

func (t *Table) numberPosition(f float64) uint32 {
	if f == 0 {
		return 0
	}
	b := math.Float64bits(f)
	return (uint32(b) + uint32(b>>32)) % t.odd()
}

// position is where the chain of k begins; hash is that of k when it is a string.
func (t *Table) position(k Value, hash uint32) uint32 {
	switch k.Kind() {
	case KindNumber:
		return t.numberPosition(k.AsNumber())
	case KindString:
		return hash & t.mask
	case KindBool:
		return uint32(k.n&1) & t.mask
	case KindLight:
		return uint32(k.n) % t.odd()
	}
	// Objects are at least sixteen bytes apart.
	return uint32(uintptr(k.p)>>4) % t.odd()
}

// Get is t[k] without metamethods.
func (t *Table) Get(k Value) Value {
	switch k.Kind() {
	case KindNumber:
		f := k.AsNumber()
		if i := int(f); float64(i) == f {
			return t.GetInt(i)
		}
		if n := t.findNumber(f); n != nil {
			return n.val
		}
		return Nil
	case KindString:
		if t.nodes == nil {
			return Nil
		}
		s := k.AsString()
		return t.GetHashed(s, t.hash(s))
	case KindNil:
		return Nil
	}
	if n := t.find(k, 0); n != nil {
		return n.val
	}
	return Nil
}

// hash hashes a string, which for a long one costs as much as many instructions.
func (t *Table) hash(s string) uint32 {
	if len(s) > 64 && t.Account != nil {
		t.Account.Left -= len(s) >> 4
	}
	return HashString(s)
}

// GetInt is t[i].
func (t *Table) GetInt(i int) Value {
	if uint(i-1) < uint(len(t.array)) {
		return t.array[i-1]
	}
	if n := t.findNumber(float64(i)); n != nil {
		return n.val
	}
	return Nil
}

// GetStr is t[s].
func (t *Table) GetStr(s string) Value {
	if t.nodes == nil {
		return Nil
	}
	return t.GetHashed(s, t.hash(s))
}

// GetHashed is GetStr with the string's hash.
func (t *Table) GetHashed(s string, hash uint32) Value {
	if n := t.findString(s, hash); n != nil {
		return n.val
	}
	return Nil
}

func (t *Table) findString(s string, hash uint32) *node {
	if t.nodes == nil {
		return nil
	}
	steps := 0
	for i := hash & t.mask; ; {
		n := &t.nodes[i]
		if n.hash == hash && n.key.IsString() && n.key.AsString() == s {
			return n
		}
		if n.next == 0 {
			t.steps(steps)
			return nil
		}
		i = uint32(n.next - 1)
		steps++
	}
}

func (t *Table) findNumber(f float64) *node {
	if t.nodes == nil {
		return nil
	}
	steps := 0
	for i := t.numberPosition(f); ; {
		n := &t.nodes[i]
		if n.key.IsNumber() && n.key.AsNumber() == f {
			t.steps(steps)
			return n
		}
		if n.next == 0 {
			t.steps(steps)
			return nil
		}
		i = uint32(n.next - 1)
		steps++
	}
}

func (t *Table) find(k Value, hash uint32) *node {
	if t.nodes == nil {
		return nil
	}
	steps := 0
	for i := t.position(k, hash); ; {
		n := &t.nodes[i]
		if Equal(n.key, k) {
			t.steps(steps)
			return n
		}
		if n.next == 0 {
			t.steps(steps)
			return nil
		}
		i = uint32(n.next - 1)
		steps++
	}
}

// KeyError says why nothing can be stored under k: ErrNilIndex or ErrNaNIndex.
func KeyError(k Value) error {
	switch k.Kind() {
	case KindNil:
		return ErrNilIndex
	case KindNumber:
		if f := k.AsNumber(); f != f {
			return ErrNaNIndex
		}
	}
	return nil
}

// Set is t[k] = v without metamethods. The error is ErrNilIndex or ErrNaNIndex.
func (t *Table) Set(k, v Value) error {
	switch k.Kind() {
	case KindNumber:
		f := k.AsNumber()
		if i := int(f); float64(i) == f && uint(i-1) < uint(len(t.array)) {
			t.put(i-1, v)
			return nil
		}
		if n := t.findNumber(f); n != nil {
			n.val = v
			return nil
		}
		if f != f {
			return ErrNaNIndex
		}
		t.insert(k, 0, v)
		return nil
	case KindString:
		s := k.AsString()
		t.setString(k, t.hash(s), v)
		return nil
	case KindNil:
		return ErrNilIndex
	}
	if n := t.find(k, 0); n != nil {
		n.val = v
		return nil
	}
	t.insert(k, 0, v)
	return nil
}

// put stores into slot i of the array, which is there.
func (t *Table) put(i int, v Value) {
	t.array[i] = v
	if i >= t.filled || v.IsNil() {
		t.refill(i, v)
	}
}

// refill keeps filled right after a store behind what is filled, or of nil.
func (t *Table) refill(i int, v Value) {
	switch {
	case !v.IsNil():
		if i == t.filled {
			t.filled++
		} else {
			t.filled = unknown
		}
	case i == t.filled-1:
		t.filled = i
	case i < t.filled:
		t.filled = unknown
	}
}

// survey finds out how much of the array is filled.
func (t *Table) survey() {
	n := 0
	for n < len(t.array) && !t.array[n].IsNil() {
		n++
	}
	t.filled = n
	for _, v := range t.array[n:] {
		if !v.IsNil() {
			t.filled = unknown
			return
		}
	}
}

// SetInt is t[i] = v.
func (t *Table) SetInt(i int, v Value) {
	if uint(i-1) < uint(len(t.array)) {
		t.put(i-1, v)
		return
	}
	if n := t.findNumber(float64(i)); n != nil {
		n.val = v
		return
	}
	t.insert(Int(i), 0, v)
}

// SetStr is t[s] = v.
func (t *Table) SetStr(s string, v Value) { t.setString(String(s), t.hash(s), v) }

// SetHashed is SetStr with the string as a value, and its hash.
func (t *Table) SetHashed(k Value, hash uint32, v Value) { t.setString(k, hash, v) }

func (t *Table) setString(k Value, hash uint32, v Value) {
	t.absent = 0
	if n := t.findString(k.AsString(), hash); n != nil {
		n.val = v
		return
	}
	t.insert(k, hash, v)
}

// insert adds a key that is not there. As in Lua a key takes a slot even when v is nil.
func (t *Table) insert(k Value, hash uint32, v Value) {
	if t.nodes == nil {
		t.rehash(k)
		t.reinsert(k, hash, v)
		return
	}
	at := t.position(k, hash)
	main := &t.nodes[at]
	if !main.val.IsNil() {
		free := t.takeFree()
		if free < 0 {
			t.rehash(k)
			t.reinsert(k, hash, v)
			return
		}
		spare := &t.nodes[free]
		if first := t.position(main.key, main.hash); first != at {
			// What stands there belongs to another chain: it moves.
			before, steps := first, 0
			for t.nodes[before].next != int32(at+1) {
				before = uint32(t.nodes[before].next - 1)
				steps++
			}
			t.steps(steps)
			t.nodes[before].next = int32(free + 1)
			*spare = *main
			main.next = 0
		} else {
			spare.next = main.next
			main.next = int32(free + 1)
			main = spare
		}
	}
	main.key, main.hash, main.val = k, hash, v
}

// reinsert stores under a key after the parts have new sizes.
func (t *Table) reinsert(k Value, hash uint32, v Value) {
	if k.IsNumber() {
		f := k.AsNumber()
		if i := int(f); float64(i) == f && uint(i-1) < uint(len(t.array)) {
			t.put(i-1, v)
			return
		}
	}
	t.insert(k, hash, v)
}

// takeFree is a node that never had a key, from the end; -1 when there is none.
func (t *Table) takeFree() int {
	for t.free > 0 {
		t.free--
		if t.nodes[t.free].key.IsNil() {
			return t.free
		}
	}
	return -1
}

// arrayIndex is the index a key may have in an array part, or 0.
func arrayIndex(k Value) int {
	if !k.IsNumber() {
		return 0
	}
	f := k.AsNumber()
	if i := int(f); float64(i) == f && i >= 1 && i <= 1<<maxBits {
		return i
	}
	return 0
}

// rehash chooses the sizes of both parts anew, for the keys there are and k:
// the array gets the largest power of two of which more than half is used.
func (t *Table) rehash(k Value) {
	var counts [maxBits + 1]int // counts[b] is the number of keys in (2^(b-1), 2^b]
	inArray := t.countArray(&counts)
	total := inArray + 1
	count := func(k Value) {
		if i := arrayIndex(k); i > 0 {
			counts[bits.Len(uint(i-1))]++
			inArray++
		}
	}
	for i := range t.nodes {
		if n := &t.nodes[i]; !n.val.IsNil() {
			count(n.key)
			total++
		}
	}
	count(k)
	size, used, sum := 0, 0, 0
	for b, limit := 0, 1; b <= maxBits && limit/2 < inArray; b, limit = b+1, limit*2 {
		if counts[b] > 0 {
			if sum += counts[b]; sum > limit/2 {
				size, used = limit, sum
			}
		}
		if sum == inArray {
			break
		}
	}
	if t.Account != nil {
		t.Account.Left -= (len(t.array) + len(t.nodes)) >> 3
	}
	t.resize(size, total-used)
}

func (t *Table) countArray(counts *[maxBits + 1]int) (total int) {
	at := 0
	for b, limit := 0, 1; at < len(t.array); b, limit = b+1, limit*2 {
		end := min(limit, len(t.array))
		n := 0
		for ; at < end; at++ {
			if !t.array[at].IsNil() {
				n++
			}
		}
		counts[min(b, maxBits)] += n
		total += n
	}
	return total
}

// Resize gives the array part at least n slots, as a constructor with that many
// elements does. Keys of the hash part that belong there move.
func (t *Table) Resize(n int) {
	switch {
	case n <= len(t.array):
	case t.nodes == nil:
		t.growArray(n)
	default:
		t.resize(n, len(t.nodes))
	}
}

// ArraySize is how large an array part becomes that takes n values one by one.
func ArraySize(n int) int { return pow2(n) }

// Slots is the array part: slot i holds t[i+1]. Who writes to it calls Filled after,
// before the table is used otherwise.
func (t *Table) Slots() []Value { return t.array }

// Filled says that the first n slots hold values, and the others nothing.
func (t *Table) Filled(n int) { t.filled = n }

// Shrink drops the slots of the array part from n on, and what they hold.
func (t *Table) Shrink(n int) {
	clear(t.array[n:])
	t.array = t.array[:n]
	if t.filled != unknown {
		t.filled = min(t.filled, n)
	}
}

func (t *Table) growArray(n int) {
	if n <= cap(t.array) { // Shrink left room
		t.array = t.array[:n]
		return
	}
	t.charge(n * valueBytes)
	a := make([]Value, n)
	copy(a, t.array)
	t.array = a
}

func (t *Table) setNodes(n int) {
	if n == 0 {
		t.nodes, t.free, t.mask = nil, 0, 0
		return
	}
	n = pow2(n)
	t.charge(n * nodeBytes)
	t.nodes = make([]node, n)
	t.free = n
	t.mask = uint32(n - 1)
}

func (t *Table) resize(narr, nhash int) {
	old, oldArray := t.nodes, t.array
	if narr > len(oldArray) {
		t.growArray(narr)
	}
	t.setNodes(nhash)
	if narr < len(oldArray) {
		t.array = make([]Value, narr)
		copy(t.array, oldArray)
		if t.filled != unknown {
			t.filled = min(t.filled, narr)
		}
		for i := narr; i < len(oldArray); i++ {
			if v := oldArray[i]; !v.IsNil() {
				t.SetInt(i+1, v)
			}
		}
	}
	for i := len(old) - 1; i >= 0; i-- {
		if n := &old[i]; !n.val.IsNil() {
			t.reinsert(n.key, n.hash, n.val)
		}
	}
	if t.filled == unknown {
		t.survey()
	}
}

// Len is the length operator: Lua's choice among the borders, when there are holes.
func (t *Table) Len() int {
	j := len(t.array)
	if t.filled < j {
		return t.filled
	}
	if j > 0 && t.array[j-1].IsNil() {
		i := 0
		for j-i > 1 {
			if m := int(uint(i+j) >> 1); t.array[m-1].IsNil() {
				j = m
			} else {
				i = m
			}
		}
		return i
	}
	if t.nodes == nil {
		return j
	}
	i := j
	for j++; !t.GetInt(j).IsNil(); j *= 2 {
		i = j
		if j > math.MaxInt32/2 { // keys chosen to mislead
			for i = 1; !t.GetInt(i).IsNil(); i++ {
				if t.Account != nil {
					t.Account.MustPay(1)
				}
			}
			return i - 1
		}
	}
	for j-i > 1 {
		if m := int(uint(i+j) >> 1); t.GetInt(m).IsNil() {
			j = m
		} else {
			i = m
		}
	}
	return i
}

// Next is the entry after the key k, the first for nil. After the last one the key
// is nil. The error is ErrUnknownKey. Values may be changed to nil on the way.
func (t *Table) Next(k Value) (key, v Value, err error) {
	at := t.cursor(k)
	if at < 0 {
		return Nil, Nil, ErrUnknownKey
	}
	_, key, v = t.NextAt(at)
	return key, v, nil
}

// cursor is the place after k, or -1.
func (t *Table) cursor(k Value) int {
	if k.IsNil() {
		return 0
	}
	if i := arrayIndex(k); i > 0 && i <= len(t.array) {
		return i
	}
	if t.nodes != nil {
		var hash uint32
		if k.IsString() {
			hash = t.hash(k.AsString())
		}
		if n := t.find(k, hash); n != nil {
			at := (uintptr(unsafe.Pointer(n)) - uintptr(unsafe.Pointer(&t.nodes[0]))) / uintptr(nodeBytes)
			return len(t.array) + int(at) + 1
		}
	}
	return -1
}

// NextAt is the first entry at or after a place, 0 being the first, and the place
// behind it. The key is nil when there is none. Adding keys makes places meaningless.
func (t *Table) NextAt(at int) (after int, key, v Value) {
	begin := at
	for ; at < len(t.array); at++ {
		if v := t.array[at]; !v.IsNil() {
			t.steps(at - begin)
			return at + 1, Int(at + 1), v
		}
	}
	for i := at - len(t.array); i < len(t.nodes); i++ {
		if n := &t.nodes[i]; !n.val.IsNil() {
			t.steps(len(t.array) + i - begin)
			return len(t.array) + i + 1, n.key, n.val
		}
	}
	t.steps(len(t.array) + len(t.nodes) - begin)
	return len(t.array) + len(t.nodes), Nil, Nil
}

// After is the entry after the key k, as Next, when at is the place that NextAt gave
// together with k: it costs no search unless the table has changed.
func (t *Table) After(at int, k Value) (after int, key, v Value, err error) {
	if !k.IsNil() && !t.standsAt(at, k) {
		if at = t.cursor(k); at < 0 {
			return 0, Nil, Nil, ErrUnknownKey
		}
	}
	after, key, v = t.NextAt(at)
	return after, key, v, nil
}

func (t *Table) standsAt(at int, k Value) bool {
	if at <= 0 {
		return false
	}
	if at <= len(t.array) {
		return k.IsNumber() && k.AsNumber() == float64(at)
	}
	i := at - len(t.array) - 1
	return i < len(t.nodes) && t.nodes[i].key == k
}
