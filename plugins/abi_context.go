package plugins

import (
	"context"
	"log/slog"
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

// callFunctions tell a guest about the call it is in.
var callFunctions = []*hostFunc{
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
		name: "log", params: types(i32, i32, i32),
		usage: "log(level, text, len)",
		doc:   "Writes a line to the server's log: `0` debug, `1` info, `2` warning; higher levels are taken for 2. At most 1024 bytes of a line and 100 lines of a call are written, the rest is dropped.",
		memory: `
text
| len |
  read
`,
		call: func(in *instance, stack []uint64) {
			level := slog.LevelDebug
			switch uint32(stack[0]) {
			case logDebug:
			case logInfo:
				level = slog.LevelInfo
			default:
				level = slog.LevelWarn
			}
			text := in.bytes(stack[1], stack[2])
			if in.logged++; in.logged > maxLogLines {
				return
			}
			in.m.host.opt.Log.Log(context.Background(), level, "from a plugin", "module", in.m.man.Name, "text", string(text[:min(len(text), maxLogLine)]))
		},
	},
}
