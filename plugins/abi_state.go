package plugins

import (
	"encoding/binary"

	"github.com/latchkey-proxy/latchkey/plugins/manifest"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// The keys that hold the states of modules.
const (
	stateDB     = command.StateDB
	statePrefix = command.StatePrefix
)

// isStateKey tells whether a key holds the state of the named module.
func isStateKey(module string, db int, name []byte) bool {
	return module != "" && db == stateDB && len(name) == len(statePrefix)+len(module) &&
		string(name[:len(statePrefix)]) == statePrefix && string(name[len(statePrefix):]) == module
}

// stateFunctions keep what a module must remember across calls and instances.
var stateFunctions = []*hostFunc{
	{
		name: "state_get", params: types(i32, i32, i32), results: types(i32),
		usage: "state_get(buf, cap, version_out) -> i32",
		doc:   "Copies the state of the module. The result is its length, as with get, and the number of its encoding is written to version_out, an i32 of any alignment. `-1`: it was never written. `-101`: the manifest does not ask for `state`, or the administrator withholds it.",
		memory: `
buf              buf+cap         version_out
| state |         |              | i32 |
  written, result bytes of it      written
`,
		call: func(in *instance, stack []uint64) {
			in.inMemory(stack[0], stack[1])
			version := in.bytes(stack[2], 4)
			k, code := in.state(false)
			if code == 0 {
				code = in.copyState(k, stack[0], stack[1], version)
			}
			result(stack, code)
		},
	},
	{
		name: "state_set", params: types(i32, i32, i32), results: types(i32),
		usage: "state_set(state, len, version) -> i32",
		doc:   "Replaces the state of the module: `1`. version is any number by which a later release of the module knows the encoding. An empty state is one, too. `-101`: the manifest does not ask for `state: write`, or the administrator withholds it. `-102`: no memory. `-103`: longer than proto-max-bulk-len.",
		memory: `
state
| len |
  read
`,
		call: func(in *instance, stack []uint64) {
			value := in.bytes(stack[0], stack[1])
			k, code := in.state(true)
			if code == 0 {
				code = in.setState(k, value, uint32(stack[2]), store.KeepTTL)
			}
			result(stack, code)
		},
	},
}

// keyStateFunctions keep a value of the module's own under a key.
var keyStateFunctions = []*hostFunc{
	{
		name: "key_state_get", params: types(i32, i32, i32, i32, i32), results: types(i32),
		usage: "key_state_get(key, key_len, buf, cap, version_out) -> i32",
		doc:   "Copies the state at key. The result is its length, as with get, and the number of its encoding is written to version_out, an i32 of any alignment. `-1`: there is no such key. `-100`: it is no state of this module.",
		memory: `
key         buf              buf+cap         version_out
| key_len   | state |         |              | i32 |
  read        written, result bytes of it      written
`,
		call: func(in *instance, stack []uint64) {
			in.inMemory(stack[2], stack[3])
			version := in.bytes(stack[4], 4)
			k, code := in.key(stack[0], stack[1], false)
			if code == 0 {
				in.call.Looked(k)
				code = in.copyState(k, stack[2], stack[3], version)
			}
			result(stack, code)
		},
	},
	{
		name: "key_state_set", params: types(i32, i32, i32, i32, i32, i32, i64), results: types(i32),
		usage: "key_state_set(key, key_len, state, state_len, version, flags, px) -> i32",
		doc:   "Writes the state at key, whatever was there: `1` written, `0` not written because of a flag. version is any number by which a later release of the module knows the encoding. flags and px are those of set, and so are the errors. Clients see a key of the type that is called as the module: TYPE, TTL, DEL, RENAME, COPY, DUMP and the like work, all else is -WRONGTYPE.",
		memory: `
key         state
| key_len   | state_len |
  read        read
`,
		call: func(in *instance, stack []uint64) {
			value, version, flags, px := in.bytes(stack[2], stack[3]), uint32(stack[4]), uint32(stack[5]), int64(stack[6])
			k, code := in.key(stack[0], stack[1], true)
			switch {
			case code != 0:
			case !in.validSet(flags, px):
				code = codeInvalid
			case flags&setNX != 0 && k.Exists() || flags&setXX != 0 && !k.Exists():
			default:
				if code = in.setState(k, value, version, ttl(px, flags)); code == 1 {
					in.call.Notify(store.NotifyModule, in.m.man.Name+".set", k)
				}
			}
			result(stack, code)
		},
	},
	{
		name: "key_state_read", params: types(i32, i32, i32, i32, i32), results: types(i32),
		usage: "key_state_read(key, key_len, offset, buf, cap) -> i32",
		doc:   "Copies a part of the state at key, from offset on, cap bytes or as many as there are: the result is their number. `-1`: there is no such key. `-100`: it is no state of this module. `-103`: offset is beyond its end.",
		memory: `
key         state                       buf
| key_len   | offset | part |           | part | at most cap
  read                                    written
`,
		call: func(in *instance, stack []uint64) {
			in.inMemory(stack[3], stack[4])
			k, code := in.key(stack[0], stack[1], false)
			if code == 0 {
				in.call.Looked(k)
				code = in.readState(k, uint32(stack[2]), stack[3], uint32(stack[4]))
			}
			result(stack, code)
		},
	},
	{
		name: "key_state_write", params: types(i32, i32, i32, i32, i32), results: types(i32),
		usage: "key_state_write(key, key_len, offset, part, part_len) -> i32",
		doc:   "Overwrites a part of the state at key, in place, from offset on: `1`. Its length, version and time to live stay. `-1`: there is no such key. `-100`: it is no state of this module. `-103`: the part reaches beyond its end.",
		memory: `
key         part                        state
| key_len   | part_len |                | offset | part |
  read        read                                 written
`,
		call: func(in *instance, stack []uint64) {
			part := in.bytes(stack[3], stack[4])
			k, code := in.key(stack[0], stack[1], true)
			if code == 0 {
				code = in.writeState(k, uint32(stack[2]), part)
			}
			result(stack, code)
		},
	},
}

// state is the key that holds the module's state, if the call has it.
func (in *instance) state(write bool) (*store.Key, int32) {
	granted := in.stateful
	if granted == manifest.StateNone || write && (granted != manifest.StateWrite || in.readOnly) {
		return nil, codeDenied
	}
	in.hold(stateDB, in.m.stateKey)
	return in.call.Tx.Key(stateDB, in.m.stateKey), 0
}

// ours tells whether the value at k is of this module, and why not.
func (in *instance) ours(k *store.Key) int32 {
	if !k.Exists() {
		return codeNil
	}
	if name, _ := k.ModuleType(); name != in.m.man.Name {
		return codeWrongType
	}
	return 0
}

func (in *instance) copyState(k *store.Key, buf, room uint64, version []byte) int32 {
	if code := in.ours(k); code != 0 {
		return code
	}
	_, v := k.ModuleType()
	binary.LittleEndian.PutUint32(version, v)
	return give(in, buf, room, k.Opaque())
}

// setState writes a state if there is memory for it.
func (in *instance) setState(k *store.Key, value []byte, version uint32, ttl store.TTL) int32 {
	if code := in.room(len(value)); code != 0 {
		return code
	}
	in.wrote(len(value))
	k.SetOpaque(in.m.man.Name, version, value, ttl)
	return 1
}

func (in *instance) readState(k *store.Key, offset uint32, buf uint64, room uint32) int32 {
	if code := in.ours(k); code != 0 {
		return code
	}
	v := k.Opaque()
	if uint64(offset) > uint64(len(v)) {
		return codeInvalid
	}
	part := v[offset:]
	part = part[:min(uint64(len(part)), uint64(room))]
	copy(in.bytes(buf, uint64(len(part))), part)
	return int32(len(part))
}

func (in *instance) writeState(k *store.Key, offset uint32, part []byte) int32 {
	if code := in.ours(k); code != 0 {
		return code
	}
	if uint64(offset)+uint64(len(part)) > uint64(len(k.Opaque())) {
		return codeInvalid
	}
	if len(part) > 0 {
		in.wrote(len(part))
		k.OverwriteOpaque(int(offset), part)
		in.call.Notify(store.NotifyModule, in.m.man.Name+".set", k)
	}
	return 1
}
