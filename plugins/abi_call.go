package plugins

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// Bounds of what a guest may hold of the replies of commands it called.
const (
	maxCalled    = 256       // replies at a time
	maxCallBytes = 64 << 20  // all of them, in bytes
	maxCallArgs  = 1 << 16   // arguments of one command
	maxHandle    = 1<<31 - 1 // handles are not used again within a call
)

// maxDepth is how deep plugin commands may stand within each other, whatever
// scripts there are between them.
const maxDepth = 8

// called is the reply of a command that a guest called. The handles from first
// on are its nodes.
type called struct {
	first int64
	rec   *recorder
}

// callFunctions call other commands and read what they reply.
var callFunctions = []*hostFunc{
	{
		name: "call", params: types(i32, i32), results: types(i32),
		usage: "call(frame, argc) -> i32",
		doc:   "Runs a command, as a savepoint: when it fails, what it did itself is undone. frame is an array of argc arguments, the first of them the command's name; a frame that is not 4-aligned traps. The result is a handle of the reply, above 0, also when the reply is an error. `-101`: the manifest does not name the command among `capabilities.commands`, or one of its keys is not declared and granted; for a command such as FLUSHALL or KEYS, which names no keys, every key must be granted, by the prefix `\"\"`. `-103`: no argument, or more than 65536. `-105`: 256 replies are open. `-106`: commands stand eight deep within each other.",
		memory: `
frame
| ptr | len | ptr | len | ...    argc times
  read  |
        +-> | bytes |
              read
`,
		call: func(in *instance, stack []uint64) { result(stack, in.callCommand(stack[0], uint32(stack[1]))) },
	},
	{
		name: "call_type", params: types(i32), results: types(i32),
		usage: "call_type(handle) -> i32",
		doc:   "What a reply is: `0` null, `1` integer, `2` bulk string, `3` status, `4` error, `5` array, `6` map, `7` set, `8` double, `9` boolean, `10` big number, `11` verbatim string. A handle that was freed, or never given, traps in every function.",
		call: func(in *instance, stack []uint64) {
			_, n := in.handle(stack[0])
			result(stack, int32(n.kind))
		},
	},
	{
		name: "call_int", params: types(i32), results: types(i64),
		usage: "call_int(handle) -> i64",
		doc:   "The value of an integer, or 0 or 1 of a boolean. Any other reply traps: ask for its type first.",
		call: func(in *instance, stack []uint64) {
			_, n := in.handle(stack[0])
			if n.kind != kindInt && n.kind != kindBool {
				panic(&trap{"call_int of a reply that is no integer"})
			}
			stack[0] = uint64(n.n)
		},
	},
	{
		name: "call_double", params: types(i32), results: types(f64),
		usage: "call_double(handle) -> f64",
		doc:   "The value of a double. Any other reply traps.",
		call: func(in *instance, stack []uint64) {
			_, n := in.handle(stack[0])
			if n.kind != kindDouble {
				panic(&trap{"call_double of a reply that is no double"})
			}
			stack[0] = math.Float64bits(n.f)
		},
	},
	{
		name: "call_len", params: types(i32), results: types(i32),
		usage: "call_len(handle) -> i32",
		doc:   "The bytes of a string, a status, an error, a big number or a verbatim string; the elements of an array or a set; the pairs of a map. `-103`: it has no length.",
		call: func(in *instance, stack []uint64) {
			_, n := in.handle(stack[0])
			switch {
			case n.text():
				result(stack, int32(n.end-n.begin))
			case n.kind == kindArray, n.kind == kindMap, n.kind == kindSet:
				result(stack, int32(n.n))
			default:
				result(stack, codeInvalid)
			}
		},
	},
	{
		name: "call_elem", params: types(i32, i32), results: types(i32),
		usage: "call_elem(handle, index) -> i32",
		doc:   "The handle of an element of an array, a map or a set, counted from 0; of a map, the keys have the even numbers and their values the odd ones. It is valid for as long as the reply it is in. `-1`: the index is beyond the last. `-103`: it is no aggregate.",
		call:  func(in *instance, stack []uint64) { result(stack, in.element(stack[0], uint32(stack[1]))) },
	},
	{
		name: "call_bytes", params: types(i32, i32, i32), results: types(i32),
		usage: "call_bytes(handle, buf, cap) -> i32",
		doc:   "Copies the bytes of a string, a status, an error with its code, a big number, or a verbatim string without its format. The result is their number, as with get. `-103`: it has none.",
		memory: `
buf              buf+cap
| bytes |         |
  written, result of them
`,
		call: func(in *instance, stack []uint64) {
			in.inMemory(stack[1], stack[2])
			rec, n := in.handle(stack[0])
			if !n.text() {
				result(stack, codeInvalid)
				return
			}
			result(stack, give(in, stack[1], stack[2], rec.bytes[n.begin:n.end]))
		},
	},
	{
		name: "call_free", params: types(i32),
		usage: "call_free(handle)",
		doc:   "Frees a reply with all its elements. A handle of an element traps. What is left is freed when the call ends.",
		call:  func(in *instance, stack []uint64) { in.free(stack[0]) },
	},
}

// callCommand runs a command for the guest and returns a handle of its reply.
func (in *instance) callCommand(frame uint64, argc uint32) int32 {
	if argc == 0 || argc > maxCallArgs {
		return codeInvalid
	}
	argv := in.frameArgs(frame, argc)
	if len(in.called) >= maxCalled {
		return codeLimit
	}
	c := in.call
	if depthOf(c.S) >= maxDepth {
		return codeContext
	}
	rec := in.recorder()
	rec.limit = maxCallBytes - in.calledBytes
	spec, problem := in.callee(argv)
	switch {
	case problem != "":
		rec.Error(problem)
	case spec == nil:
		in.spareRec = append(in.spareRec, rec)
		return codeDenied
	default:
		if !in.exec(spec, argv, rec) {
			rec.reset()
			in.spareRec = append(in.spareRec, rec)
			return codeDenied
		}
	}
	if in.nextHandle+int64(len(rec.nodes)) > maxHandle {
		panic(&trap{"more replies were read than there are handles"})
	}
	first := in.nextHandle
	in.nextHandle += int64(len(rec.nodes))
	in.called = append(in.called, called{first, rec})
	in.calledBytes += rec.size()
	in.charge(int64(rec.size()) / byteCost)
	return int32(first)
}

// frameArgs reads an array of pointers and lengths and what they point to:
// views of guest memory.
func (in *instance) frameArgs(frame uint64, argc uint32) [][]byte {
	aligned(frame, 4)
	head := in.bytes(frame, uint64(argc)*8)
	in.argv = in.argv[:0]
	for i := range int(argc) {
		ptr, n := binary.LittleEndian.Uint32(head[8*i:]), binary.LittleEndian.Uint32(head[8*i+4:])
		in.argv = append(in.argv, in.bytes(uint64(ptr), uint64(n)))
	}
	return in.argv
}

// callee finds the command that the guest wants to call. nil without a problem:
// it may not.
func (in *instance) callee(argv [][]byte) (spec *command.Spec, problem string) {
	const unknown = "ERR Unknown Redis command called from a plugin"
	top := in.call.E.Table.Lookup(argv[0])
	if top == nil {
		// Whether a command exists is no secret to keep.
		return nil, unknown
	}
	if len(top.Sub) != 0 && len(argv) > 1 && top.SubByName(argv[1]) == nil {
		return nil, unknown
	}
	spec, wrong := top.Resolve(argv)
	switch {
	case wrong != "":
		if !in.m.mayCall(top) {
			return nil, ""
		}
		return nil, "ERR Wrong number of args calling Redis command from a plugin"
	case !in.m.mayCall(spec):
		return nil, ""
	case spec.Flags&command.NoScript != 0 && !runsScript(spec):
		return nil, "ERR This Redis command is not allowed from a plugin"
	}
	return spec, ""
}

// runsScript tells the commands that run a script from others that a script may
// not call: they are a savepoint as any command is.
func runsScript(s *command.Spec) bool {
	return s.AllCategories()&command.CatScripting != 0 && len(s.Keys) != 0
}

// exec runs a command in the transaction of the call. It returns false if one
// of its keys may not be had.
func (in *instance) exec(spec *command.Spec, argv [][]byte, rec *recorder) bool {
	c, s := in.call, in.call.S
	in.inner = command.Call{E: c.E, S: s, Spec: spec, Args: argv, Tx: c.Tx, Reply: rec, From: command.FromPlugin, Meter: in}
	if !in.mayTouch(&in.inner) {
		in.inner = command.Call{}
		return false
	}
	if spec.Flags&command.Write != 0 {
		size := 0
		for _, a := range argv {
			size += len(a)
		}
		in.wrote(size) // the effects hold it, though the next may undo it
	}
	db, guard, denied, outer := s.DB, s.Guard, s.Denied, s.Cause
	mine := *outer.(*cause)
	mine.began, mine.kills = in.start(), in.kills
	s.DB, s.Guard, s.Cause = in.db, in.guard, &mine
	if in.readOnly && denied == "" {
		s.Denied = errReadOnly
	}
	var began time.Time
	if !in.short {
		began = time.Now()
	}
	meter, written := c.Tx.SetMeter(in), in.written
	c.E.Exec(&in.inner)
	c.Tx.SetMeter(meter)
	if spec.Flags&(command.Write|command.MayReplicate) == 0 {
		in.written = written // what it took has gone with it
	}
	s.DB, s.Guard, s.Denied, s.Cause = db, guard, denied, outer
	in.inner = command.Call{}
	switch {
	case c.Tx.Clash():
		panic(&trap{reason: rerunReason})
	case in.ending != nil:
		panic(in.ending)
	case in.m.kills.Load() != in.kills:
		// What it called may have been ended for it: it does not go on with that error.
		panic(in.killed())
	case !in.short:
		// What it did not charge: under latches all commands are quick.
		in.charge(int64(time.Since(began)) / fuelNanos)
	}
	return true
}

const errReadOnly = "ERR Write commands are not allowed from a plugin command that is declared readonly"

// judge is the session's guard while a called command runs: it judges that
// command and what runs within it, such as the calls of a script.
func (in *instance) judge(c *command.Call) string {
	if c == &in.inner {
		return "" // judged before
	}
	if !in.m.mayCall(c.Spec) {
		return "NOPERM " + in.m.man.Name + ": the module may not call " + c.Spec.FullName()
	}
	if !in.mayTouch(c) {
		return "NOPERM " + in.m.man.Name + ": a key was not declared by the command or is not granted to the module"
	}
	return ""
}

// mayTouch tells whether the guest may have all keys of a command.
func (in *instance) mayTouch(c *command.Call) bool {
	var err error
	if in.touched, err = c.Spec.AppendKeys(in.touched[:0], c.Args); err != nil {
		return true // it will answer that, and touches none
	}
	for _, p := range in.touched {
		if c.S.DB != in.db && c != &in.inner || !in.may(c.Args[p.Index], p.Flags&command.KeyRO == 0) {
			return false
		}
	}
	// What acts on keys that it does not name needs the grant of every key, of
	// every database: no prefix can stand for them.
	switch {
	case c.Spec.Access == command.Alone && !slices.Contains(in.m.granted.Write, ""),
		c.Spec.Access == command.Visits && !slices.Contains(in.m.granted.Read, ""):
		return false
	}
	ok := true
	if c.Spec.Extra != nil {
		c.Spec.Extra(c, func(db int, name []byte) {
			if !isStateKey(c.Spec.ModuleName(), db, name) && (db != in.db || !in.may(name, true)) {
				ok = false
			}
		})
	}
	return ok
}

func (in *instance) recorder() *recorder {
	if n := len(in.spareRec); n > 0 {
		rec := in.spareRec[n-1]
		in.spareRec = in.spareRec[:n-1]
		return rec
	}
	return &recorder{}
}

// find is the index in called of the reply that a handle belongs to. One that
// belongs to none traps.
func (in *instance) find(handle uint64) int {
	h := int64(uint32(handle))
	i := sort.Search(len(in.called), func(i int) bool { return in.called[i].first > h }) - 1
	if i < 0 || h-in.called[i].first >= int64(len(in.called[i].rec.nodes)) {
		panic(&trap{fmt.Sprintf("%d is not a handle of a reply", int32(h))})
	}
	return i
}

// handle is the node of a handle.
func (in *instance) handle(handle uint64) (*recorder, *node) {
	c := &in.called[in.find(handle)]
	return c.rec, &c.rec.nodes[int64(uint32(handle))-c.first]
}

func (in *instance) element(handle uint64, index uint32) int32 {
	c := &in.called[in.find(handle)]
	at := int(int64(uint32(handle)) - c.first)
	n := &c.rec.nodes[at]
	switch n.kind {
	case kindArray, kindMap, kindSet:
	default:
		return codeInvalid
	}
	if uint64(index) >= uint64(n.elements()) {
		return codeNil
	}
	found, steps := c.rec.element(at, int(index))
	in.charge(int64(steps) / byteCost)
	return int32(c.first + int64(found))
}

func (in *instance) free(handle uint64) {
	i := in.find(handle)
	if in.called[i].first != int64(uint32(handle)) {
		panic(&trap{fmt.Sprintf("call_free of %d, which is an element", int32(handle))})
	}
	in.drop(i)
}

func (in *instance) drop(i int) {
	rec := in.called[i].rec
	in.calledBytes -= rec.size()
	rec.reset()
	in.spareRec = append(in.spareRec, rec)
	in.called = append(in.called[:i], in.called[i+1:]...)
}

// freeAll frees what the guest has not freed itself.
func (in *instance) freeAll() {
	for i := len(in.called) - 1; i >= 0; i-- {
		in.drop(i)
	}
	if len(in.spareRec) > 4 {
		in.spareRec = in.spareRec[:4]
	}
	in.nextHandle = 1
}
