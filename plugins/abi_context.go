package plugins

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strconv"
)

// Levels of the host function log.
const (
	logDebug   = 0
	logInfo    = 1
	logWarning = 2
)

// What a guest may write to the log.
const (
	maxLogLine  = 1024 // bytes of a line
	maxLogLines = 100  // lines of a call
)

// Fields of the host function client.
const (
	clientID = iota
	clientName
	clientUser
	clientAddr
)

// contextFunctions tell a guest about the call it is in.
var contextFunctions = []*hostFunc{
	{
		name: "now_ms", results: types(i64),
		usage: "now_ms() -> i64",
		doc:   "Unix time in milliseconds, the same throughout a call; the time that expiry is judged by.",
		call:  func(in *instance, stack []uint64) { stack[0] = uint64(in.call.Tx.Now()) },
	},
	{
		name: "fence", results: types(i64),
		usage: "fence() -> i64",
		doc:   "A fencing number, greater than every one given before, for the holder of a lock to show to what the lock protects.",
		call:  func(in *instance, stack []uint64) { stack[0] = uint64(in.call.Tx.Fence()) },
	},
	{
		name: "random", params: types(i32, i32),
		usage: "random(buf, len)",
		doc:   "Fills len bytes with random ones, from a generator that is seeded anew for each call.",
		memory: `
buf
| len |
  written
`,
		call: func(in *instance, stack []uint64) { in.random(in.bytes(stack[0], stack[1])) },
	},
	{
		name: "config_get", params: types(i32, i32, i32, i32), results: types(i32),
		usage: "config_get(name, name_len, buf, cap) -> i32",
		doc:   "Copies the present value of a parameter that the manifest declares: text as it is, a number in decimal, `yes` or `no`. The name is without the module's. The result is its length, as with get. `-1`: the manifest declares no such parameter.",
		memory: `
name         buf              buf+cap
| name_len   | value |         |
  read         written, result bytes of it
`,
		call: func(in *instance, stack []uint64) {
			in.inMemory(stack[2], stack[3])
			value, ok := in.m.param(string(in.bytes(stack[0], stack[1])))
			if !ok {
				result(stack, codeNil)
				return
			}
			result(stack, give(in, stack[2], stack[3], value))
		},
	},
	{
		name: "client", params: types(i32, i32, i32), results: types(i32),
		usage: "client(field, buf, cap) -> i32",
		doc:   "Copies what is known of the client that the call is for: field `0` its id in decimal, as CLIENT ID has it, `1` its name, `2` the user it authenticated as, `3` its address. The result is the length, as with get. `-1`: there is no client, as in a timer. `-103`: no such field.",
		memory: `
buf              buf+cap
| value |         |
  written, result bytes of it
`,
		call: func(in *instance, stack []uint64) {
			in.inMemory(stack[1], stack[2])
			c := in.call.S.Client
			if uint32(stack[0]) > clientAddr {
				result(stack, codeInvalid)
				return
			}
			if c == nil {
				result(stack, codeNil)
				return
			}
			var value string
			switch uint32(stack[0]) {
			case clientID:
				value = strconv.FormatInt(c.ID(), 10)
			case clientName:
				value = c.Name()
			case clientUser:
				value = c.User()
			case clientAddr:
				value = c.Addr()
			}
			result(stack, give(in, stack[1], stack[2], value))
		},
	},
	{
		name: "log", params: types(i32, i32, i32),
		usage: "log(level, text, len)",
		doc:   "Writes a line to the server's log: `0` debug, `1` info, `2` warning; higher levels are taken for 2. At most 1024 bytes of a line and 100 lines of a call are written, the rest is dropped.",
		memory: `
text
| len |
  read
`,
		call: func(in *instance, stack []uint64) {
			level := slog.LevelWarn
			switch uint32(stack[0]) {
			case logDebug:
				level = slog.LevelDebug
			case logInfo:
				level = slog.LevelInfo
			}
			in.log(level, in.bytes(stack[1], stack[2]))
		},
	},
}

// log writes a line of the guest's, if it has not written too many.
func (in *instance) log(level slog.Level, line []byte) {
	if in.logged++; in.logged > maxLogLines {
		return
	}
	if in.short {
		in.mayGoOn() // not under latches: to write may take time
	}
	in.m.host.opt.Log.Log(context.Background(), level, "from a plugin", "module", in.m.man.Name, "text", string(line[:min(len(line), maxLogLine)]))
}

// random fills b from the generator of the call.
func (in *instance) random(b []byte) {
	if !in.seeded {
		seed := in.m.host.opt.Seed()
		if in.rand == nil {
			in.rand = rand.NewChaCha8(seed)
		} else {
			in.rand.Seed(seed)
		}
		in.seeded = true
	}
	in.rand.Read(b)
}

// give copies v into the guest if it has room for all of it, and returns its length.
func give[T []byte | string](in *instance, buf, room uint64, v T) int32 {
	if uint64(len(v)) <= uint64(uint32(room)) {
		copy(in.bytes(buf, uint64(len(v))), v)
	}
	return int32(len(v))
}
