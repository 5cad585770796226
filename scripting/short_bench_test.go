package scripting

import (
	"testing"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// BenchmarkCommand runs whole commands on a store, as a client's pipeline does,
// without the reading and writing of bytes: the lock is taken and freed.
func BenchmarkCommand(b *testing.B) {
	unlock := SumSHA1([]byte(unlockScript)).String()
	for _, bm := range []struct {
		name      string
		allowance func() int64
		args      []string
	}{
		{"evalshaUnlock", nil, []string{"EVALSHA", unlock, "1", "lock:orders:42", "0123456789abcdef"}},
		{"evalshaUnlockLocked", func() int64 { return 0 }, []string{"EVALSHA", unlock, "1", "lock:orders:42", "0123456789abcdef"}},
		{"evalUnlock", nil, []string{"EVAL", unlockScript, "1", "lock:orders:42", "0123456789abcdef"}},
		{"delifeq", nil, []string{"DELIFEQ", "lock:orders:42", "0123456789abcdef"}},
	} {
		for _, held := range []bool{true, false} {
			name := bm.name + "/held"
			if !held {
				name = bm.name + "/free"
			}
			b.Run(name, func(b *testing.B) {
				r := newRoomOn(b, Settings{}, store.Options{Log: &store.MemoryLog{}, Allowance: bm.allowance}, Options{})
				c := r.client()
				c.do("SCRIPT", "LOAD", unlockScript)
				set := c.call("SET", "lock:orders:42", "0123456789abcdef")
				free := c.call(bm.args...)
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					if held {
						c.run(set)
					}
					c.run(free)
					if n++; n%16 == 0 {
						c.sess.FlushStats()
						c.sess.BeginBatch()
					}
				}
			})
		}
	}
}

// call makes a Call that can be run again and again.
func (c *client) call(args ...string) *command.Call {
	words := make([][]byte, len(args))
	for i, a := range args {
		words[i] = []byte(a)
	}
	spec, refusal := c.r.engine.Table.Find(words)
	if spec == nil {
		c.r.t.Fatal(refusal)
	}
	return &command.Call{S: c.sess, Spec: spec, Args: words, Reply: &unheard{}}
}

func (c *client) run(call *command.Call) {
	again := *call
	benchCall = again
	c.r.engine.Run(&benchCall)
}

var benchCall command.Call

// unheard is a Reply that takes nothing.
type unheard struct{ discard }

func (q *unheard) Status(string)     {}
func (q *unheard) Bulk([]byte)       {}
func (q *unheard) BulkString(string) {}
func (q *unheard) Null()             {}
