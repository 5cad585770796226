package plugins

import (
	"fmt"
	"math"
	"strings"

	"github.com/latchkey-proxy/latchkey/plugins/fuel"
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

// openReply is an aggregate of the reply that is not complete.
type openReply struct {
	left int // how many replies are still to come in it
	// Of one whose length comes at its end: how many have come, how many there
	// are to an element, and its place among those that wait for it.
	deferred bool
	given    int
	per      int
	at       int
}

// reply counts a reply of that many bytes, and says where to write it.
func (in *instance) reply(bytes int) command.Reply {
	if in.keeping {
		in.keepNone()
	}
	for len(in.open) > 0 {
		if top := &in.open[len(in.open)-1]; top.deferred || top.left > 0 {
			break
		}
		in.open = in.open[:len(in.open)-1]
	}
	if len(in.open) == 0 {
		panic(&trap{in.noReply()})
	}
	top := &in.open[len(in.open)-1]
	top.left--
	if top.given++; top.deferred && top.given > top.per*maxReplies {
		panic(&trap{errElements})
	}
	if in.replied += int64(bytes) + replyHead; in.replied > maxReplied {
		panic(&trap{fmt.Sprintf("the reply is larger than %d MiB", maxReplied>>20)})
	}
	if in.deferred > 0 {
		return &in.late
	}
	return in.call.Reply
}

// keepNone has the guest keep no reply any more. One that it has kept was its only
// one: whatever comes now is one too many.
func (in *instance) keepNone() {
	in.keeping = false
	if in.kept.Get() == fuel.KeptFilled {
		panic(&trap{in.noReply()})
	}
	in.kept.Set(fuel.KeptNone)
}

// noReply says why no reply can be given now.
func (in *instance) noReply() string {
	if in.replies {
		return "more replies than one, or than the aggregate has elements"
	}
	return "a reply where nobody waits for one"
}

// openAggregate gives an aggregate of n times per replies, or one of unknown
// length.
func (in *instance) openAggregate(n uint64, per int, give func(r command.Reply, n int)) {
	count := int(int32(n))
	if count < -1 || count > maxReplies {
		panic(&trap{errElements})
	}
	r := in.reply(0)
	if count == 0 {
		give(r, 0)
		return
	}
	if len(in.open) > maxNesting {
		panic(&trap{fmt.Sprintf("aggregate replies nest deeper than %d", maxNesting)})
	}
	if count > 0 {
		give(r, count)
		in.open = append(in.open, openReply{left: count * per})
		return
	}
	if in.deferred == 0 {
		r = &in.late
		in.late.reset()
		in.late.limit = 2 * maxReplied // what it may hold is counted by reply
	}
	in.deferred++
	in.open = append(in.open, openReply{deferred: true, per: per, at: in.late.Mark()})
	give(r, 0)
}

const errElements = "an aggregate reply has a negative or too large number of elements"

// closeAggregate gives the innermost aggregate without a length its length.
func (in *instance) closeAggregate(n uint64) {
	for len(in.open) > 0 {
		top := &in.open[len(in.open)-1]
		switch {
		case top.deferred && top.given == int(int32(n))*top.per:
			in.late.nodes[top.at].n = int64(int32(n))
			in.open = in.open[:len(in.open)-1]
			if in.deferred--; in.deferred == 0 {
				in.late.play(0, len(in.late.nodes), in.call.Reply)
				in.late.reset()
			}
			return
		case top.deferred:
			panic(&trap{fmt.Sprintf("reply_len of %d for an aggregate of %d replies", int32(n), top.given)})
		case top.left > 0:
			panic(&trap{"reply_len within an aggregate that is not complete"})
		}
		in.open = in.open[:len(in.open)-1]
	}
	panic(&trap{"reply_len without an aggregate of length -1"})
}

// complete tells whether every reply that was opened has all its elements.
func (in *instance) complete() bool {
	for i := range in.open {
		if in.open[i].left > 0 || in.open[i].deferred {
			return false
		}
	}
	return true
}

// replyFunctions describe the reply. A command gives exactly one; an aggregate
// is followed by its elements.
var replyFunctions = []*hostFunc{
	{
		name:  "reply_null",
		usage: "reply_null()",
		doc:   "Null.",
		call:  func(in *instance, _ []uint64) { in.reply(0).Null() },
	},
	{
		name: "reply_int", params: types(i64),
		usage: "reply_int(n)",
		doc:   "An integer.",
		call:  func(in *instance, stack []uint64) { in.reply(0).Int(int64(stack[0])) },
	},
	{
		name: "reply_double", params: types(f64),
		usage: "reply_double(f)",
		doc:   "A double; a bulk string in RESP2.",
		call:  func(in *instance, stack []uint64) { in.reply(0).Double(math.Float64frombits(stack[0])) },
	},
	{
		name: "reply_bool", params: types(i32),
		usage: "reply_bool(b)",
		doc:   "False for 0, else true; 0 or 1 in RESP2.",
		call:  func(in *instance, stack []uint64) { in.reply(0).Bool(uint32(stack[0]) != 0) },
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
			in.reply(len(text)).Status(text)
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
			in.reply(len(b)).Bulk(b)
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
			in.reply(0)
			in.failed = text[:min(len(text), maxErrorText)]
			if text == "" {
				in.failed = "ERR"
			}
		},
	},
	{
		name: "reply_bignum", params: types(i32, i32),
		usage: "reply_bignum(digits, len)",
		doc:   "A big number: decimal digits, maybe after a minus sign; anything else traps. A bulk string in RESP2.",
		memory: `
digits
| len |
  read
`,
		call: func(in *instance, stack []uint64) {
			digits := string(in.bytes(stack[0], stack[1]))
			if !isDecimal(digits) {
				panic(&trap{"a big number that is not written in decimal digits"})
			}
			in.reply(len(digits)).BigNumber(digits)
		},
	},
	{
		name: "reply_verbatim", params: types(i32, i32, i32),
		usage: "reply_verbatim(format, text, len)",
		doc:   "A text with a format of three bytes, such as `txt` or `mkd`; one with a colon or a line break in it traps. A bulk string in RESP2.",
		memory: `
format       text
| 3 bytes    | len |
  read         read
`,
		call: func(in *instance, stack []uint64) {
			format, text := string(in.bytes(stack[0], 3)), string(in.bytes(stack[1], stack[2]))
			if strings.ContainsAny(format, ":\r\n") {
				panic(&trap{"the format of a verbatim string has a colon or a line break in it"})
			}
			in.reply(len(text)).Verbatim(format, text)
		},
	},
	{
		name: "reply_array", params: types(i32),
		usage: "reply_array(n)",
		doc:   "Opens an array: n replies follow. With n -1 any number follows, and reply_len ends it.",
		call: func(in *instance, stack []uint64) {
			in.openAggregate(stack[0], 1, command.Reply.Array)
		},
	},
	{
		name: "reply_map", params: types(i32),
		usage: "reply_map(n)",
		doc:   "Opens a map: n keys and n values follow, 2n replies by turns; with n -1 any number, and reply_len ends it. A flat array in RESP2.",
		call: func(in *instance, stack []uint64) {
			in.openAggregate(stack[0], 2, command.Reply.Map)
		},
	},
	{
		name: "reply_set", params: types(i32),
		usage: "reply_set(n)",
		doc:   "Opens a set: n replies follow; with n -1 any number, and reply_len ends it. An array in RESP2.",
		call: func(in *instance, stack []uint64) {
			in.openAggregate(stack[0], 1, command.Reply.Set)
		},
	},
	{
		name: "reply_len", params: types(i32),
		usage: "reply_len(n)",
		doc:   "Ends the innermost aggregate that was opened with -1: it has n elements, or pairs if it is a map. Any other number than have come since traps.",
		call:  func(in *instance, stack []uint64) { in.closeAggregate(stack[0]) },
	},
}

// isDecimal tells whether s is an integer in decimal digits.
func isDecimal(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" {
		return false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}
