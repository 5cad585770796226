// Bloom has filters that say of an item "perhaps" or "certainly not". A filter is the private
// state of its key; only the bytes that a command needs are read and written.
//
//	BF.RESERVE key error_rate capacity   OK
//	BF.ADD key item                      1 if the item is new, 0 if it may have been there
//	BF.EXISTS key item                   1 if the item may be there, 0 if it is not
package main

import (
	"encoding/binary"
	"math"

	latchkey "github.com/latchkey-proxy/latchkey/plugins/sdk/go"
)

func init() {
	latchkey.Register(latchkey.Module{
		Name: "bloom", Version: "1.0.0",
		Commands: []latchkey.Command{
			{
				Name: "BF.RESERVE", Arity: 4, Flags: []string{"write", "denyoom"}, Keys: latchkey.OneKey, ACL: []string{"write"},
				Summary: "Makes an empty filter.", Since: "1.0.0", Group: "bloom", Run: reserve,
			},
			{
				Name: "BF.ADD", Arity: 3, Flags: []string{"write", "denyoom", "fast"}, Keys: latchkey.OneKey, ACL: []string{"write", "fast"},
				Summary: "Adds an item to a filter, which is made if it is not there.", Since: "1.0.0", Group: "bloom", Run: add,
			},
			{
				Name: "BF.EXISTS", Arity: 3, Flags: []string{"readonly", "fast"}, Keys: latchkey.OneKey, ACL: []string{"read", "fast"},
				Summary: "Tells whether an item may be in a filter.", Since: "1.0.0", Group: "bloom", Run: exists,
			},
		},
		Capabilities: latchkey.Capabilities{Read: []string{""}, Write: []string{""}},
		Limits:       latchkey.Limits{Fuel: 1_000_000_000, MemoryPages: 256, Instances: 4},
	})
}

func main() { latchkey.Main() }

// The state begins with the header: bits, hashes, capacity and items, eight bytes each, little endian.
// The bits follow.
const (
	encoding   = 1
	headerSize = 32
	maxBits    = 8 << 20 // a filter takes 1 MiB at most
	maxHashes  = 64

	defaultRate     = 0.01
	defaultCapacity = 100
)

const errDamaged = latchkey.Error("ERR the state of the filter is damaged")

type header struct{ bits, hashes, capacity, items uint64 }

func (h *header) put(b []byte) {
	binary.LittleEndian.PutUint64(b, h.bits)
	binary.LittleEndian.PutUint64(b[8:], h.hashes)
	binary.LittleEndian.PutUint64(b[16:], h.capacity)
	binary.LittleEndian.PutUint64(b[24:], h.items)
}

// plan sizes a filter: as many hashes as the rate can be halved, and the bits that these need.
func plan(rate float64, capacity int64) (header, error) {
	hashes := uint64(0)
	for p := 1.0; p > rate && hashes < maxHashes; p /= 2 {
		hashes++
	}
	bits := math.Ceil(float64(capacity) * float64(hashes) / math.Ln2)
	if bits > maxBits {
		return header{}, latchkey.Error("ERR the filter would take more than 1 MiB")
	}
	return header{bits: (uint64(bits) + 7) / 8 * 8, hashes: hashes, capacity: uint64(capacity)}, nil
}

// read is the filter at key; ok is false if there is none.
func read(c *latchkey.Call, key []byte) (h header, ok bool, err error) {
	var b [headerSize]byte
	n, ok, err := c.ReadKeyState(key, 0, b[:])
	if err != nil || !ok {
		return h, false, err
	}
	h = header{
		binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:]),
		binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:]),
	}
	if n != headerSize || h.bits == 0 || h.bits > maxBits || h.hashes > maxHashes {
		return h, false, errDamaged
	}
	return h, true, nil
}

// room is where filters are made. Only its capacity outlives a call, and of a large one not that.
var room []byte

func create(c *latchkey.Call, key []byte, h header) error {
	size := int(headerSize + h.bits/8)
	if cap(room) < size {
		room = make([]byte, size)
	}
	state := room[:size]
	if size > 64<<10 {
		room = nil
	}
	clear(state)
	h.put(state)
	_, err := c.SetKeyState(key, state, encoding, latchkey.SetOptions{})
	return err
}

// parseRate reads a decimal number such as 0.01, .5, +1e-3 or -0. The first 15 digits count, without zeros in
// front; the others only say where the point is. What is too large for a float64, or too near to zero, is none.
func parseRate(b []byte) (rate float64, ok bool) {
	sign := func() (negative bool) {
		if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
			negative, b = b[0] == '-', b[1:]
		}
		return negative
	}
	digits, scale := uint64(0), int64(0) // rate is digits / 10^scale
	read, point := false, false
	negative := sign()
	for ; len(b) > 0 && (b[0] == '.' && !point || b[0] >= '0' && b[0] <= '9'); b = b[1:] {
		switch {
		case b[0] == '.':
			point = true
			continue
		case digits < 1e14:
			digits = digits*10 + uint64(b[0]-'0')
			if point {
				scale++
			}
		case !point:
			scale--
		}
		read = true
	}
	if !read {
		return 0, false
	}
	if len(b) > 0 {
		if b[0] != 'e' && b[0] != 'E' {
			return 0, false
		}
		b = b[1:]
		exponent, down := int64(0), sign()
		if len(b) == 0 {
			return 0, false
		}
		for _, ch := range b {
			if ch < '0' || ch > '9' {
				return 0, false
			}
			if exponent < 1e12 {
				exponent = exponent*10 + int64(ch-'0')
			}
		}
		if down {
			exponent = -exponent
		}
		scale -= exponent
	}
	switch {
	case digits == 0:
		return 0, true
	case scale < -400 || scale > 400:
		return 0, false
	}
	rate = float64(digits)
	for ; scale > 0; scale-- {
		rate /= 10
	}
	for ; scale < 0; scale++ {
		rate *= 10
	}
	if rate == 0 || rate > math.MaxFloat64 {
		return 0, false
	}
	if negative {
		rate = -rate
	}
	return rate, true
}

func reserve(c *latchkey.Call) error {
	rate, ok := parseRate(c.Arg(2))
	if !ok {
		return latchkey.Error("ERR bad error rate")
	}
	if !(rate > 0 && rate < 1) {
		return latchkey.Error("ERR (0 < error rate range < 1)")
	}
	capacity, ok := latchkey.ParseInt(c.Arg(3))
	if !ok {
		return latchkey.Error("ERR bad capacity")
	}
	if capacity <= 0 {
		return latchkey.Error("ERR (capacity should be larger than 0)")
	}
	key := c.Arg(1)
	kind, err := c.Type(key)
	switch {
	case err != nil:
		return err
	case kind == latchkey.TypeOwn:
		return latchkey.Error("ERR item exists")
	case kind != latchkey.TypeNone:
		return latchkey.ErrWrongType
	}
	h, err := plan(rate, capacity)
	if err != nil {
		return err
	}
	if err := create(c, key, h); err != nil {
		return err
	}
	c.ReplySimple("OK")
	return nil
}

func add(c *latchkey.Call) error {
	key := c.Arg(1)
	h, ok, err := read(c, key)
	if err != nil {
		return err
	}
	if !ok {
		if h, err = plan(defaultRate, defaultCapacity); err != nil {
			return err
		}
		if err := create(c, key, h); err != nil {
			return err
		}
	}
	fresh := false
	err = h.each(c, key, func(at uint32, held, bit byte) (more bool, err error) {
		if held&bit != 0 {
			return true, nil
		}
		if !fresh && h.items >= h.capacity {
			return false, latchkey.Error("ERR the filter is full")
		}
		fresh = true
		_, err = c.WriteKeyState(key, at, []byte{held | bit})
		return true, err
	})
	if err != nil {
		return err
	}
	if fresh {
		h.items++
		var b [headerSize]byte
		h.put(b[:])
		if _, err := c.WriteKeyState(key, 0, b[:]); err != nil {
			return err
		}
	}
	c.ReplyBool(fresh)
	return nil
}

func exists(c *latchkey.Call) error {
	key := c.Arg(1)
	h, ok, err := read(c, key)
	if err != nil {
		return err
	}
	if ok {
		err = h.each(c, key, func(_ uint32, held, bit byte) (more bool, err error) {
			ok = held&bit != 0
			return ok, nil
		})
		if err != nil {
			return err
		}
	}
	c.ReplyBool(ok)
	return nil
}

// each visits the bits of the command's item, as long as it is told to: where in the state the byte is, what it
// holds, and which of its bits.
func (h *header) each(c *latchkey.Call, key []byte, visit func(at uint32, held, bit byte) (more bool, err error)) error {
	a := uint64(14695981039346656037) // FNV-1a
	for _, ch := range c.Arg(2) {
		a = (a ^ uint64(ch)) * 1099511628211
	}
	b := a // splitmix64's finalizer makes a second hash of the first
	b = (b ^ b>>30) * 0xbf58476d1ce4e5b9
	b = (b ^ b>>27) * 0x94d049bb133111eb
	b = b ^ b>>31 | 1
	for i := uint64(0); i < h.hashes; i++ {
		n := (a + i*b) % h.bits
		at := uint32(headerSize + n/8)
		var held [1]byte
		switch read, _, err := c.ReadKeyState(key, at, held[:]); {
		case err != nil:
			return err
		case read != 1:
			return errDamaged
		}
		if more, err := visit(at, held[0], 1<<(n%8)); !more || err != nil {
			return err
		}
	}
	return nil
}
