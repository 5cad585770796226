package plugins

import (
	"context"
	"log/slog"
)

// What a guest may write to the log.
const (
	maxLogLine  = 1024 // bytes of a line
	maxLogLines = 100  // lines of a call
)

// callFunctions tell a guest about the call it is in.
var callFunctions = []*hostFunc{
	{
		name: "now_ms", results: types(i64), doc: "now_ms() -> Unix milliseconds; the same throughout a call.",
		call: func(in *instance, stack []uint64) { stack[0] = uint64(in.call.Tx.Now()) },
	},
	{
		name: "fence", results: types(i64), doc: "fence() -> a fencing number, greater than every one before.",
		call: func(in *instance, stack []uint64) { stack[0] = uint64(in.call.Tx.Fence()) },
	},
	{
		name: "log", params: types(i32, i32, i32), doc: "log(level, text, len). Writes a line to the server's log: 0 debug, 1 info, 2 warning.",
		call: func(in *instance, stack []uint64) {
			level := slog.LevelDebug
			switch uint32(stack[0]) {
			case 0:
			case 1:
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
