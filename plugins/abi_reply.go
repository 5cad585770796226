package plugins

import (
	"fmt"
	"math"
	"strings"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// Bounds of aggregate replies.
const (
	maxReplies = 1 << 20 // elements of one
	maxNesting = 32      // how deep they nest
)

// maxErrorText is how much of an error reply's text is used, in bytes.
const maxErrorText = 4096

// replyHead is what a reply counts for beside its bytes.
const replyHead = 16

// reply counts a reply of that many bytes that opens room for others, and says
// where to write it.
func (in *instance) reply(opens, bytes int) command.Reply {
	for len(in.open) > 0 && in.open[len(in.open)-1] == 0 {
		in.open = in.open[:len(in.open)-1]
	}
	if len(in.open) == 0 {
		panic(&trap{"more replies than one, or than the aggregate has elements"})
	}
	in.open[len(in.open)-1]--
	if opens > 0 {
		if len(in.open) > maxNesting {
			panic(&trap{fmt.Sprintf("aggregate replies nest deeper than %d", maxNesting)})
		}
		in.open = append(in.open, opens)
	}
	if in.replied += int64(bytes) + replyHead; in.replied > maxReplied {
		panic(&trap{fmt.Sprintf("the reply is larger than %d MiB", maxReplied>>20)})
	}
	return in.call.Reply
}

// complete tells whether every reply that was opened has all its elements.
func (in *instance) complete() bool {
	for _, n := range in.open {
		if n != 0 {
			return false
		}
	}
	return true
}

// count checks the number of elements of an aggregate.
func count(n uint64, per int) int {
	c := int(int32(n))
	if c < 0 || c > maxReplies {
		panic(&trap{"an aggregate reply has a negative or too large number of elements"})
	}
	return c * per
}

// replyFunctions describe the reply. A command gives exactly one; an aggregate
// is followed by its elements.
var replyFunctions = []*hostFunc{
	{
		name:  "reply_null",
		usage: "reply_null()",
		doc:   "Null.",
		call:  func(in *instance, _ []uint64) { in.reply(0, 0).Null() },
	},
	{
		name: "reply_int", params: types(i64),
		usage: "reply_int(n)",
		doc:   "An integer.",
		call:  func(in *instance, stack []uint64) { in.reply(0, 0).Int(int64(stack[0])) },
	},
	{
		name: "reply_double", params: types(f64),
		usage: "reply_double(f)",
		doc:   "A double; a bulk string in RESP2.",
		call:  func(in *instance, stack []uint64) { in.reply(0, 0).Double(math.Float64frombits(stack[0])) },
	},
	{
		name: "reply_bool", params: types(i32),
		usage: "reply_bool(b)",
		doc:   "False for 0, else true; 0 or 1 in RESP2.",
		call:  func(in *instance, stack []uint64) { in.reply(0, 0).Bool(uint32(stack[0]) != 0) },
	},
	{
		name: "reply_simple", params: types(i32, i32),
		usage: "reply_simple(text, len)",
		doc:   "A status such as OK. A CR or LF in it traps.",
		memory: `
text
| len |
  read
`,
		call: func(in *instance, stack []uint64) {
			text := string(in.bytes(stack[0], stack[1]))
			if strings.ContainsAny(text, "\r\n") {
				panic(&trap{"a status reply has a line break in it"})
			}
			in.reply(0, len(text)).Status(text)
		},
	},
	{
		name: "reply_bulk", params: types(i32, i32),
		usage: "reply_bulk(bytes, len)",
		doc:   "A string of any bytes.",
		memory: `
bytes
| len |
  read
`,
		call: func(in *instance, stack []uint64) {
			b := in.bytes(stack[0], stack[1])
			in.reply(0, len(b)).Bulk(b)
		},
	},
	{
		name: "reply_error", params: types(i32, i32),
		usage: "reply_error(text, len)",
		doc:   "An error; the first word is its code, such as `ERR`. Everything the command has written is undone, whatever it returns, and earlier parts of the reply are dropped. At most 4096 bytes are used.",
		memory: `
text
| len |
  read
`,
		call: func(in *instance, stack []uint64) {
			text := string(in.bytes(stack[0], stack[1]))
			in.reply(0, 0)
			in.failed = text[:min(len(text), maxErrorText)]
			if text == "" {
				in.failed = "ERR"
			}
		},
	},
	{
		name: "reply_array", params: types(i32),
		usage: "reply_array(n)",
		doc:   "Opens an array: n replies follow.",
		call: func(in *instance, stack []uint64) {
			n := count(stack[0], 1)
			in.reply(n, 0).Array(n)
		},
	},
	{
		name: "reply_map", params: types(i32),
		usage: "reply_map(n)",
		doc:   "Opens a map: n keys and n values follow, 2n replies by turns. A flat array in RESP2.",
		call: func(in *instance, stack []uint64) {
			n := count(stack[0], 2)
			in.reply(n, 0).Map(n / 2)
		},
	},
	{
		name: "reply_set", params: types(i32),
		usage: "reply_set(n)",
		doc:   "Opens a set: n replies follow. An array in RESP2.",
		call: func(in *instance, stack []uint64) {
			n := count(stack[0], 1)
			in.reply(n, 0).Set(n)
		},
	},
}
