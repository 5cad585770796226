package plugins_test

import (
	"testing"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/proxy/resp"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// full is a reply that has no room for an integer, and says so as replies do.
type full struct{ *resp.Writer }

func (full) Int(int64) { panic(noRoom{}) }

type noRoom struct{}

func (noRoom) ReplyTooLarge() string { return "ERR there is no room" }

// A reply that was kept in the guest is given when the call has ended. Where it cannot
// be, the command is undone as any other, and nothing is left of it: the module has one
// instance, and it is there for the next.
func TestKeptReplyThatCannotBeGiven(t *testing.T) {
	b := newBench(t, plugins.Options{})
	g := guest{body: write + `(call $reply_int (i64.const 7)) (return (i32.const 0))`, limits: map[string]int{"instances": 1}, caps: map[string]any{"write": []string{""}}}
	b.want("+OK", "MODULE", "LOAD", g.build(t))
	for range 2 {
		w := resp.NewWriter()
		c := *b.call("H.RUN", "k")
		c.Reply = full{w}
		b.eng.Run(&c)
		if got := string(w.Bytes()); got != "-ERR there is no room\r\n" {
			t.Errorf("replied %q", got)
		}
		b.want("$-1", "GET", "k")
	}
	b.want(":7", "H.RUN", "k")
	b.want("$1\r\nx", "GET", "k")
	if l := b.host.List()[0]; l.Running != 0 || l.Instances != 1 || l.Traps != 0 {
		t.Errorf("%d calls are running, %d instances, %d traps; want 0, 1, 0", l.Running, l.Instances, l.Traps)
	}
}

// What is not a lone integer is the host's to judge, as soon as it comes.
func TestOnlyALoneIntegerIsKept(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{`(call $reply_int (i64.const 7))`, ":7"},
		{`(call $reply_int (i64.const -9223372036854775808))`, ":-9223372036854775808"},
		{`(call $reply_array (i32.const 2)) (call $reply_int (i64.const 7)) (call $reply_int (i64.const 8))`, "*2\r\n:7\r\n:8"},
		{`(call $reply_array (i32.const -1)) (call $reply_int (i64.const 7)) (call $reply_len (i32.const 1))`, "*1\r\n:7"},
		{`(call $reply_null) (call $reply_int (i64.const 7))`, "-PLUGINERR h: more replies than one, or than the aggregate has elements"},
		{`(call $reply_int (i64.const 7)) (call $reply_null)`, "-PLUGINERR h: more replies than one, or than the aggregate has elements"},
		{`(call $reply_int (i64.const 7)) (call $reply_array (i32.const 0))`, "-PLUGINERR h: more replies than one, or than the aggregate has elements"},
		{`(call $reply_int (i64.const 7)) (return (i32.const -103))`, "-ERR invalid argument"},
		{`(call $reply_int (i64.const 7)) unreachable`, "-PLUGINERR h: wasm error: unreachable"},
	} {
		b := newBench(t, plugins.Options{})
		b.want("+OK", "MODULE", "LOAD", guest{body: tt.body + `(return (i32.const 0))`}.build(t))
		for range 2 { // the next begins anew
			b.want(tt.want, "H.RUN", "k")
		}
	}
}

var _ command.Reply = full{}
