package plugins

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// Flags of the host function set.
const (
	setNX      = 1 // only if the key does not exist
	setXX      = 2 // only if it does
	setKeepTTL = 4
	setAt      = 8 // px is a Unix time in ms
)

// What the host function type answers.
const (
	typeNone   = 0
	typeString = 1
	typeList   = 2
	typeSet    = 3
	typeHash   = 4
	typeZset   = 5
	typeStream = 6
	typeOwn    = 7
	typeOther  = 8
)

// keyFunctions read and write the keys that a command declares.
var keyFunctions = []*hostFunc{
	{
		name: "get", params: types(i32, i32, i32, i32), results: types(i32),
		usage: "get(key, key_len, buf, cap) -> i32",
		doc:   "Copies the string at key into the guest. The result is its length: up to cap, so many bytes stand at buf; above cap, nothing was copied, and the guest may call again with more room. `-1`: there is no such key. `-100`: it is no string.",
		memory: `
key         buf              buf+cap
| key_len   | value |         |
  read        written, result bytes of it
`,
		call: func(in *instance, stack []uint64) {
			in.inMemory(stack[2], stack[3])
			k, code := in.key(stack[0], stack[1], false)
			if code == 0 {
				in.call.Looked(k)
				code = in.copyOut(k, stack[2], stack[3])
			}
			result(stack, code)
		},
	},
	{
		name: "set", params: types(i32, i32, i32, i32, i32, i64), results: types(i32),
		usage: "set(key, key_len, value, value_len, flags, px) -> i32",
		doc:   "Writes a string, whatever was there: `1` written, `0` not written because of a flag. Flags are added up: `1` only if the key is missing, `2` only if it is there, `4` keep its time to live, `8` px is a Unix time in milliseconds; one that has passed deletes the key. px above 0: the key expires px milliseconds after commit; 0: never, unless flag 4 says otherwise. `-102`: no memory. `-103`: flags 1 and 2 together, px with flag 4, flag 8 without px, a negative px, one that ends beyond 63 bits of milliseconds since 1970, an unknown flag, or a value longer than proto-max-bulk-len.",
		memory: `
key         value
| key_len   | value_len |
  read        read
`,
		call: func(in *instance, stack []uint64) {
			value, flags, px := in.bytes(stack[2], stack[3]), uint32(stack[4]), int64(stack[5])
			k, code := in.key(stack[0], stack[1], true)
			switch {
			case code != 0:
			case !in.validSet(flags, px):
				code = codeInvalid
			case flags&setNX != 0 && k.Exists() || flags&setXX != 0 && !k.Exists():
			default:
				code = in.setString(k, value, ttl(px, flags))
			}
			result(stack, code)
		},
	},
	{
		name: "del", params: types(i32, i32), results: types(i32),
		usage: "del(key, key_len) -> i32",
		doc:   "Deletes a key of any type: `1` deleted, `0` there was none.",
		memory: `
key
| key_len |
  read
`,
		call: func(in *instance, stack []uint64) {
			k, code := in.key(stack[0], stack[1], true)
			if code == 0 && k.Delete() {
				in.call.Notify(store.NotifyGeneric, "del", k)
				code = 1
			}
			result(stack, code)
		},
	},
	{
		name: "exists", params: types(i32, i32), results: types(i32),
		usage: "exists(key, key_len) -> i32",
		doc:   "`1` if the key exists, `0` if not.",
		memory: `
key
| key_len |
  read
`,
		call: func(in *instance, stack []uint64) {
			k, code := in.key(stack[0], stack[1], false)
			if code == 0 && k.Exists() {
				code = 1
			}
			result(stack, code)
		},
	},
	{
		name: "type", params: types(i32, i32), results: types(i32),
		usage: "type(key, key_len) -> i32",
		doc:   "The type of the value: `0` no such key, `1` string, `2` list, `3` set, `4` hash, `5` sorted set, `6` stream, `7` the state of a key that this module keeps, `8` that of another module.",
		memory: `
key
| key_len |
  read
`,
		call: func(in *instance, stack []uint64) {
			k, code := in.key(stack[0], stack[1], false)
			if code == 0 {
				code = in.typeOf(k)
			}
			result(stack, code)
		},
	},
	{
		name: "incrby", params: types(i32, i32, i64, i32), results: types(i32),
		usage: "incrby(key, key_len, delta, out) -> i32",
		doc:   "Adds delta to the integer at key, 0 if there is no such key, and keeps its time to live: `1`, and the sum is written to out. out may have any alignment. `-100`: it is no string. `-104`: it is no integer of 64 bits, or the sum would be none. `-102`: no memory.",
		memory: `
key         out
| key_len   | i64 |
  read        written
`,
		call: func(in *instance, stack []uint64) {
			out := in.bytes(stack[3], 8)
			k, code := in.stringKey(stack[0], stack[1])
			if code == 0 || code == codeNil {
				code = in.increment(k, int64(stack[2]), out)
			}
			result(stack, code)
		},
	},
	{
		name: "cas", params: types(i32, i32, i32, i32, i32, i32, i64), results: types(i32),
		usage: "cas(key, key_len, old, old_len, new, new_len, px) -> i32",
		doc:   "Compares and sets: `1` the string was equal to old and is new now, `0` it differs, `-1` there is no such key. px 0 keeps the time to live; px above 0: the key expires px milliseconds after commit. Needs write access to the key. `-100`: it is no string. `-102`: no memory. `-103`: px is negative or ends as late as with set, or new is longer than proto-max-bulk-len.",
		memory: `
key         old         new
| key_len   | old_len   | new_len |
  read        read        read
`,
		call: func(in *instance, stack []uint64) {
			old, value, px := in.bytes(stack[2], stack[3]), in.bytes(stack[4], stack[5]), int64(stack[6])
			k, code := in.stringKey(stack[0], stack[1])
			switch {
			case !in.lasts(px):
				code = codeInvalid
			case code != 0:
			case bytes.Equal(k.Str(), old):
				flags := uint32(0)
				if px == 0 {
					flags = setKeepTTL
				}
				code = in.setString(k, value, ttl(px, flags))
			}
			result(stack, code)
		},
	},
	{
		name: "cad", params: types(i32, i32, i32, i32), results: types(i32),
		usage: "cad(key, key_len, value, value_len) -> i32",
		doc:   "Compares and deletes: `1` the string was equal to value and is gone, `0` it differs, `-1` there is no such key. Needs write access to the key. `-100`: it is no string.",
		memory: `
key         value
| key_len   | value_len |
  read        read
`,
		call: func(in *instance, stack []uint64) {
			value := in.bytes(stack[2], stack[3])
			k, code := in.key(stack[0], stack[1], true)
			if code == 0 {
				code = in.deleteEqual(k, value)
			}
			result(stack, code)
		},
	},
	{
		name: "cad_args", params: types(i32, i32), results: types(i32),
		usage: "cad_args(key_index, value_index) -> i32",
		doc:   "`cad` of two arguments of the command by their indexes, 0 being its name, as the client has sent them: whatever the guest has done to the frame. What a command asks first of all it is mostly answered without leaving the guest, if it asked the same when it ran last. An index that no argument has traps.",
		call: func(in *instance, stack []uint64) {
			in.remember(stack[0], stack[1])
			key, value := in.argumentAt(stack[0]), in.argumentAt(stack[1])
			k, code := in.keyNamed(key, true)
			if code == 0 {
				code = in.deleteEqual(k, value)
			}
			result(stack, code)
		},
	},
	{
		name: "pttl", params: types(i32, i32), results: types(i64),
		usage: "pttl(key, key_len) -> i64",
		doc:   "The time to live in milliseconds; `-1` the key never expires, `-2` there is no such key.",
		memory: `
key
| key_len |
  read
`,
		call: func(in *instance, stack []uint64) {
			k, code := in.key(stack[0], stack[1], false)
			left := int64(code)
			switch {
			case code != 0:
			case !k.Exists():
				left = -2
			case k.Expiry() == 0:
				left = -1
			default:
				left = max(0, k.Expiry()-in.call.Tx.Now())
			}
			stack[0] = uint64(left)
		},
	},
	{
		name: "pexpire", params: types(i32, i32, i64), results: types(i32),
		usage: "pexpire(key, key_len, ms) -> i32",
		doc:   "The key expires ms milliseconds after commit: `1`, or `0` if there is no such key. ms 0: it never expires. `-103`: ms is negative, or ends as late as with set.",
		memory: `
key
| key_len |
  read
`,
		call: func(in *instance, stack []uint64) {
			ms := int64(stack[2])
			k, code := in.key(stack[0], stack[1], true)
			switch {
			case code != 0:
			case !in.lasts(ms):
				code = codeInvalid
			case k.Exists():
				if ms == 0 {
					k.SetExpiry(store.NoTTL)
					in.call.Notify(store.NotifyGeneric, "persist", k)
				} else {
					k.SetExpiry(store.ExpireIn(ms))
					in.call.Notify(store.NotifyGeneric, "expire", k)
				}
				code = 1
			}
			result(stack, code)
		},
	},
}

// stringKey is key for what compares and writes a string: -1 when it is absent.
func (in *instance) stringKey(ptr, length uint64) (*store.Key, int32) {
	k, code := in.key(ptr, length, true)
	if code != 0 {
		return nil, code
	}
	return k, noString(k)
}

// noString is what is answered of a key that holds no string: -1 when it is absent; 0 if it holds one.
func noString(k *store.Key) int32 {
	switch k.Kind() {
	case store.String:
		return 0
	case store.None:
		return codeNil
	}
	return codeWrongType
}

// increment adds to the integer at k, a string or absent.
func (in *instance) increment(k *store.Key, delta int64, out []byte) int32 {
	var n int64
	if k.Exists() {
		var ok bool
		if n, ok = command.ParseInt(k.Str()); !ok {
			return codeNotInt
		}
	}
	sum := n + delta
	if (sum > n) != (delta > 0) && delta != 0 {
		return codeNotInt
	}
	code := in.setString(k, command.FormatInt(sum), store.KeepTTL)
	if code == 1 {
		binary.LittleEndian.PutUint64(out, uint64(sum))
	}
	return code
}

// validSet tells whether flags and a time to live go together.
func (in *instance) validSet(flags uint32, px int64) bool {
	switch {
	case flags > setNX|setXX|setKeepTTL|setAt, flags&(setNX|setXX) == setNX|setXX, px < 0,
		px > 0 && flags&setKeepTTL != 0, px == 0 && flags&setAt != 0:
		return false
	}
	return flags&setAt != 0 || in.lasts(px)
}

// lasts tells whether a key can expire that many milliseconds after now: Redis refuses a time that it
// cannot write down, too. Nobody looks at the clock for one that ends before it overflows, whatever time it is.
func (in *instance) lasts(ms int64) bool {
	return ms >= 0 && (ms <= math.MaxInt64/2 || ms <= math.MaxInt64-in.call.Tx.Now())
}

// typeOf is the answer of the host function type.
func (in *instance) typeOf(k *store.Key) int32 {
	switch k.Kind() {
	case store.None:
		return typeNone
	case store.String:
		return typeString
	case store.List:
		return typeList
	case store.Set:
		return typeSet
	}
	if name, _ := k.ModuleType(); name == in.m.man.Name {
		return typeOwn
	}
	return typeOther
}

func (in *instance) copyOut(k *store.Key, buf, limit uint64) int32 {
	if code := noString(k); code != 0 {
		return code
	}
	return give(in, buf, limit, k.Str())
}

// setString writes a value if there is memory for it.
func (in *instance) setString(k *store.Key, value []byte, ttl store.TTL) int32 {
	if code := in.room(len(value)); code != 0 {
		return code
	}
	in.wrote(len(value))
	k.SetString(value, ttl)
	in.call.Notify(store.NotifyString, "set", k)
	return 1
}

// room tells whether a value of that many bytes may be written, and why not.
func (in *instance) room(bytes int) int32 {
	limit := in.call.E.MaxValue.Load()
	switch {
	case in.call.E.Store.OverLimit():
		return codeOOM
	case limit > 0 && int64(bytes) > limit:
		return codeInvalid
	}
	return 0
}

func ttl(px int64, flags uint32) store.TTL {
	switch {
	case flags&setKeepTTL != 0:
		return store.KeepTTL
	case flags&setAt != 0:
		return store.ExpireAt(px)
	case px > 0:
		return store.ExpireIn(px)
	}
	return store.NoTTL
}
