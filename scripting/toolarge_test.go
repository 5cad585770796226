package scripting

import (
	"errors"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// bounded is a Reply that ends who describes more than it has room for.
type bounded struct {
	respWriter
	room int
}

type overfull struct{}

func (overfull) ReplyTooLarge() string { return "ERR the reply is too large" }

func (b *bounded) BulkString(s string) {
	if len(b.b)+len(s) > b.room {
		panic(overfull{})
	}
	b.respWriter.BulkString(s)
}

func (b *bounded) Bulk(s []byte) { b.BulkString(string(s)) }

// A reply that is too large ends a script as an error does: what the script was
// allowed and denied, where it was and what it held ends with it.
func TestReplyTooLargeEndsTheScript(t *testing.T) {
	const twice = "local s = string.rep('x', 60) return {s, s}"
	for _, engine := range []struct {
		name string
		opts Options
	}{{"closures", Options{}}, {"vm", Options{VMOnly: true}}} {
		t.Run(engine.name, func(t *testing.T) {
			c := newRoomOn(t, Settings{}, store.Options{}, engine.opts).client()
			send := func(args ...string) string {
				call := c.call(args...)
				w := &bounded{room: 100}
				call.Reply = w
				c.r.engine.Run(call)
				return string(w.b)
			}
			for _, args := range [][]string{
				{"EVAL_RO", twice, "0"},
				{"EVAL", "redis.call('set', KEYS[1], 'half') redis.call('select', 3) " + twice, "1", "k"},
				{"EVAL", "local n = 0 for i = 1, 1000000 do n = n + i end " + twice, "0"},
				{"FUNCTION", "LOAD", "#!lua name=l\nredis.register_function{function_name='f', flags={'no-writes'}, callback=function() " + twice + " end}"},
				{"FCALL", "f", "0"},
			} {
				want := "-ERR the reply is too large\r\n"
				if args[0] == "FUNCTION" {
					want = "$1\r\nl\r\n"
				}
				if got := send(args...); got != want {
					t.Errorf("%.60q replied %q, want %q", args, got, want)
				}
			}
			if s := c.sess; s.DB != 0 || s.Denied != "" || s.AllowOOM {
				t.Errorf("the session is left in database %d, denied %q, with AllowOOM %v", s.DB, s.Denied, s.AllowOOM)
			}
			if n := c.r.runner.Long(); n != 0 || len(c.r.runner.permits) != 0 {
				t.Errorf("%d scripts count as running, and hold %d permits", n, len(c.r.runner.permits))
			}
			c.expect("$-1", "GET", "k")
			c.expect("+OK", "SET", "k", "v")
			line := " $60 " + strings.Repeat("x", 60)
			c.expect("*2"+line+line, "EVAL", twice, "0")
			if n := c.r.runner.Rollbacks.Load(); n != 1 {
				t.Errorf("%d rollbacks were counted, want that of the script that wrote", n)
			}
		})
	}
}

var _ command.Reply = (*bounded)(nil)

// What is too deep in a reply pays for the error that stands in its place: a table of
// itself would otherwise answer far more than its script may take.
func TestTooDeepPays(t *testing.T) {
	for engine, vmOnly := range map[string]bool{"vm": true, "closures": false} {
		e := newEngine(t, Options{VMOnly: vmOnly})
		s, err := e.Compile([]byte("local t = {} for i = 1, 1000 do t[i] = t end return t"))
		if err != nil {
			t.Fatal(err)
		}
		for what, limits := range map[string]Limits{
			"instructions": {Instructions: 100_000, TableDepth: 2},
			"memory":       {Memory: 1 << 20, TableDepth: 2},
		} {
			w := &respWriter{}
			err := e.Run(s, &Invocation{Limits: limits}, w)
			var f *Failure
			if !errors.As(err, &f) || f.Kind != Exhausted {
				t.Errorf("%s: %v with %d bytes of a reply, want it out of %s", engine, err, len(w.b), what)
			}
		}
	}
}
