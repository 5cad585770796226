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
		Limits:       latchkey.Limits{Fuel: 50_000_000, MemoryPages: 256, Instances: 4},
	})
}

func main() { latchkey.Main() }

// The state begins with the header: bits, hashes, capacity and items, eight bytes each, little endian.
// The bits follow.
const (
	encoding   = 1
	headerSize = 32
	maxBits    = 8 << 20 // a filter takes 1 MiB at most

	defaultRate     = 0.01
	defaultCapacity = 100
)

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
	for p := 1.0; p > rate && hashes < 64; p /= 2 {
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
	if n != headerSize || h.bits == 0 || h.bits > maxBits {
		return h, false, latchkey.Error("ERR the state of the filter is damaged")
	}
	return h, true, nil
}

func create(c *latchkey.Call, key []byte, h header) error {
	state := make([]byte, headerSize+h.bits/8)
	h.put(state)
	_, err := c.SetKeyState(key, state, encoding, latchkey.SetOptions{})
	return err
}

// parseRate reads decimal digits with a point among them or not, and an exponent
// or not: 0.01, .5, 1e-3. It has 17 digits at most.
func parseRate(b []byte) (rate float64, ok bool) {
	digits, scale, i := uint64(0), int64(0), 0
	read, point := 0, false
	for ; i < len(b); i++ {
		ch := b[i]
		if ch == '.' && !point {
			point = true
			continue
		}
		if ch < '0' || ch > '9' || read == 17 {
			break
		}
		digits = digits*10 + uint64(ch-'0')
		read++
		if point {
			scale++
		}
	}
	if read == 0 {
		return 0, false
	}
	if i < len(b) {
		if b[i] != 'e' && b[i] != 'E' {
			return 0, false
		}
		exponent, ok := latchkey.ParseInt(b[i+1:])
		if !ok || exponent < -400 || exponent > 400 {
			return 0, false
		}
		scale -= exponent
	}
	rate = float64(digits)
	for ; scale > 0; scale-- {
		rate /= 10
	}
	for ; scale < 0; scale++ {
		rate *= 10
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
	err = h.each(c.Arg(2), func(at uint32, bit byte) error {
		var b [1]byte
		if _, _, err := c.ReadKeyState(key, at, b[:]); err != nil {
			return err
		}
		if b[0]&bit != 0 {
			return nil
		}
		if !fresh && h.items >= h.capacity {
			return latchkey.Error("ERR the filter is full")
		}
		fresh = true
		b[0] |= bit
		_, err := c.WriteKeyState(key, at, b[:])
		return err
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
		err = h.each(c.Arg(2), func(at uint32, bit byte) error {
			var b [1]byte
			_, _, err := c.ReadKeyState(key, at, b[:])
			ok = ok && b[0]&bit != 0
			return err
		})
		if err != nil {
			return err
		}
	}
	c.ReplyBool(ok)
	return nil
}

// each visits the bits of an item: where in the state the byte is, and which of its bits.
func (h *header) each(item []byte, visit func(at uint32, bit byte) error) error {
	a := uint64(14695981039346656037) // FNV-1a
	for _, ch := range item {
		a = (a ^ uint64(ch)) * 1099511628211
	}
	b := a // splitmix64's finalizer makes a second hash of the first
	b = (b ^ b>>30) * 0xbf58476d1ce4e5b9
	b = (b ^ b>>27) * 0x94d049bb133111eb
	b = b ^ b>>31 | 1
	for i := uint64(0); i < h.hashes; i++ {
		n := (a + i*b) % h.bits
		if err := visit(uint32(headerSize+n/8), 1<<(n%8)); err != nil {
			return err
		}
	}
	return nil
}
