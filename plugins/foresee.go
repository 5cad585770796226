package plugins

import (
	"bytes"

	"github.com/latchkey-proxy/latchkey/plugins/fuel"
	"github.com/latchkey-proxy/latchkey/store"
)

// What a command asks first is mostly what it asked first when it ran last. If that was
// cad_args, the answer is told along with the call: the key is held, so nobody can change
// it meanwhile, and to leave the guest and enter it again would cost more than the
// comparison does. To delete waits until the guest asks for anything else, or has returned.
//
// It can be told by nothing but the time it takes. What was foreseen wrongly is forgotten.

// foreseen is a comparison that the guest need not leave for.
type foreseen struct {
	state      uint32 // fuel.ForeseenNone or fuel.ForeseenAwait
	answer     int32  // of cad_args
	key, value int    // indexes of arguments
}

// comparison is a call of cad_args as a command remembers it: both indexes, that of the
// value times 2^32. 0 is none, for argument 0 is the command's name and no key.
func comparison(key, value uint64) uint64 { return uint64(uint32(key)) | value<<32 }

// foresee compares what the command compared first when it ran last, and returns it.
func (in *instance) foresee(cmd *guestCommand, args [][]byte) uint64 {
	in.cmd = cmd
	asked := cmd.asked.Load()
	key, value := int(uint32(asked)), int(asked>>32)
	if key == 0 || key >= len(args) || value >= len(args) || !in.declares(key) || !in.granted(args[key], true) {
		return 0
	}
	in.foreseen = foreseen{fuel.ForeseenAwait, equal(in.call.Tx.Key(in.db, args[key]), args[value]), key, value}
	return asked
}

// declares tells whether the call holds an argument as a key.
func (in *instance) declares(index int) bool {
	for i := range in.declared {
		if in.declared[i].Index == index {
			return true
		}
	}
	return false
}

// settle is called before the host does anything else that the guest asks for: what was
// foreseen was answered, or will not be.
func (in *instance) settle() {
	if in.foresees.Get() == fuel.ForeseenAnswered {
		in.answered()
	} else {
		in.cmd.asked.Store(0)
	}
	in.foresees.Set(fuel.ForeseenNone)
	in.foreseen.state = fuel.ForeseenNone
}

// answered does what is left of cad_args when the guest was answered.
func (in *instance) answered() {
	f, args := &in.foreseen, in.call.Args
	in.hosted += hostCall + int64(len(args[f.key])+len(args[f.value]))/byteCost + int64(len(in.declared))
	if f.answer == 1 && !mutantNoAnswered {
		in.deleteEqual(in.call.Tx.Key(in.db, args[f.key]), args[f.value])
	}
}

// remember notes a comparison that the guest has just asked for, if it is the first thing
// that it did.
func (in *instance) remember(key, value uint64) {
	if cmd := in.cmd; cmd != nil && in.hosted == hostCall && in.worked == 0 {
		if asked := comparison(key, value); asked != cmd.asked.Load() {
			cmd.asked.Store(asked)
		}
	}
}

// equal compares a key's string with a value: what cad answers, before it deletes.
func equal(k *store.Key, value []byte) int32 {
	code := noString(k)
	if code == 0 && bytes.Equal(k.Str(), value) {
		code = 1
	}
	return code
}

// deleteEqual is the host function cad of a key.
func (in *instance) deleteEqual(k *store.Key, value []byte) int32 {
	code := equal(k, value)
	if code == 1 {
		k.Delete()
		in.call.Notify(store.NotifyGeneric, "del", k)
	}
	return code
}
