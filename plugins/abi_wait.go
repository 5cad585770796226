package plugins

import (
	"bytes"
	"math"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// What lk_wake is told, and what it may return beside 0.
const (
	wokenByKey  = 0
	wokenByTime = 1

	wakeAgain = 1
)

// Bounds of waiting.
const (
	maxBlockKeys = 1 << 10
	maxBlockTime = int64(math.MaxInt64 / time.Millisecond)
	maxBound     = 100_000 // keys bound to clients, of one module
)

// waitFunctions let a command wait for keys, and a module learn that a client
// is gone.
var waitFunctions = []*hostFunc{
	{
		name: "block", params: types(i32, i32, i64, i64), results: types(i32),
		usage: "block(frame, nkeys, timeout, token) -> i32",
		doc:   "Has the client wait for nkeys keys, which the command declares: `0`. frame is an array of them; one that is not 4-aligned traps. `lk_command` then returns 0 without a reply; what it has changed is undone. When one of the keys is changed, deleted or expires, the client that has waited for longest gets the key before anybody else can, and `lk_wake` is called for it, or `lk_command` again if the module has no `lk_wake`; to go on waiting keeps its place. timeout is in milliseconds, 0 for ever; when it is over `lk_wake` is called with reason 1, and without it the client gets a null. CLIENT UNBLOCK ends the wait as the timeout does, or with an error. A second block in one call replaces the first. `-101`: a key is not declared and granted, or the manifest does not ask for `block`. `-103`: no keys, more than 1024, or a negative timeout. `-106`: in MULTI, in a script, in a command that another plugin has called, in `lk_wake`, or where there is no client.",
		memory: `
frame
| ptr | len | ptr | len | ...    nkeys times
  read  |
        +-> | key |
              read
`,
		call: func(in *instance, stack []uint64) {
			result(stack, in.block(stack[0], uint32(stack[1]), int64(stack[2]), int64(stack[3])))
		},
	},
	{
		name: "wake", params: types(i32, i32), results: types(i32),
		usage: "wake(key, key_len) -> i32",
		doc:   "Wakes at commit those who wait for the key, as if it had been changed: `0`. Needs write access to the key.",
		memory: `
key
| key_len |
  read
`,
		call: func(in *instance, stack []uint64) {
			k, code := in.key(stack[0], stack[1], true)
			if code == 0 {
				k.Signal()
			}
			result(stack, code)
		},
	},
	{
		name: "bind_client", params: types(i32, i32, i64), results: types(i32),
		usage: "bind_client(key, key_len, token) -> i32",
		doc:   "From this call's commit on, when the connection of the client ends, `lk_closed` is called with the token and the key, which it then has declared: `0`. Of one client and key the last token counts. Needs write access to the key. A client that went while the module was not loaded is told of when it is. `-101`: as everywhere, or the manifest does not ask for `clients`. `-105`: the module has bound 100000 keys. `-106`: there is no client.",
		memory: `
key
| key_len |
  read
`,
		call: func(in *instance, stack []uint64) { result(stack, in.bindClient(stack[0], stack[1], int64(stack[2]))) },
	},
	{
		name: "unbind_client", params: types(i32, i32), results: types(i32),
		usage: "unbind_client(key, key_len) -> i32",
		doc:   "Takes back, at this call's commit, what bind_client has bound to the key, for whatever client: `0`. Needs write access to the key.",
		memory: `
key
| key_len |
  read
`,
		call: func(in *instance, stack []uint64) {
			k, code := in.key(stack[0], stack[1], true)
			if code == 0 {
				m, at := in.m, boundKey{in.db, string(k.Name())}
				in.atCommit(len(at.key), func() { m.host.bound.remove(m.man.Name, at) })
			}
			result(stack, code)
		},
	},
}

// atCommit has do called when the transaction commits, for one that holds that
// many bytes.
func (in *instance) atCommit(bytes int, do func()) {
	in.call.Tx.Emit(store.Event{Kind: store.EventDo, Do: do, Weight: bytes})
}

func (in *instance) block(frame uint64, nkeys uint32, timeout, token int64) int32 {
	if nkeys == 0 || nkeys > maxBlockKeys || timeout < 0 {
		return codeInvalid
	}
	names := in.frameArgs(frame, nkeys)
	switch {
	case !in.m.granted.Block:
		return codeDenied
	case !in.mayBlock || !in.call.MayPark():
		return codeContext
	}
	keys := make([][]byte, 0, len(names))
	for _, name := range names {
		if !in.may(name, false) {
			return codeDenied
		}
		keys = append(keys, in.argument(name))
	}
	in.parked = &parked{keys: keys, timeout: time.Duration(min(timeout, maxBlockTime)) * time.Millisecond, token: token}
	return 0
}

// argument is the argument of the call that equals a declared key, which lives
// longer than the guest's bytes.
func (in *instance) argument(name []byte) []byte {
	for _, p := range in.declared {
		if a := in.call.Args[p.Index]; bytes.Equal(a, name) {
			return a
		}
	}
	return bytes.Clone(name)
}

// parked is what a guest has asked to wait for.
type parked struct {
	keys    [][]byte
	timeout time.Duration
	token   int64
}

// park has the client of c wait as its guest has asked.
func (m *module) park(c *command.Call, p *parked) {
	waiting := m.waiting // of a module that takes m's place, too
	waiting.Add(1)
	old := m
	c.Park(&command.Parking{
		Keys: p.keys, Timeout: p.timeout, Abandoned: m.abandoned, Done: func() { waiting.Add(-1) },
		Retry: func(c *command.Call, why error) {
			again := false
			m := old.now()
			cmd := m.successor(c, old)
			if cmd == nil {
				c.Err(m.problem(errOtherNow))
				return
			}
			switch {
			case m.exports.wake:
				reason := uint64(wokenByKey)
				if why != nil {
					reason = wokenByTime
				}
				again = m.guest(c, func(in *instance) error { return in.wake(c, cmd, p, reason) }) != nil
			case why != nil:
				c.Reply.Null()
			default:
				again = m.guest(c, func(in *instance) error { return in.run(c, cmd) }) != nil
			}
			if again {
				c.Park(&command.Parking{})
			}
		},
	})
}

func (in *instance) bindClient(key, length uint64, token int64) int32 {
	k, code := in.key(key, length, true)
	client := in.call.S.Client
	switch {
	case code != 0:
		return code
	case !in.m.granted.Clients:
		return codeDenied
	case client == nil:
		return codeContext
	case in.m.host.bound.count(in.m.man.Name)+in.m.queue.of(clientGone) >= maxBound:
		return codeLimit
	}
	m, at, id := in.m, boundKey{in.db, string(k.Name())}, client.ID()
	in.atCommit(len(at.key), func() { m.host.bound.add(m.man.Name, at, id, token) })
	return 0
}
