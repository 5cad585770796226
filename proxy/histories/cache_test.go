package histories

import (
	"fmt"
	"testing"

	"github.com/latchkey-proxy/latchkey/scripting"
	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// flood evicts every script of EVAL that may be evicted.
func (s *server) flood(c *client, round int) {
	s.t.Helper()
	const cached = 4096 // the default of the engine
	for i := range cached + 1 {
		if err := c.send("EVAL", fmt.Sprintf("return %d", round*(cached+1)+i), "0"); err != nil {
			s.t.Fatal(err)
		}
		if i%256 == 255 || i == cached {
			for range i%256 + 1 {
				s.reply(c)
			}
		}
	}
}

// TestQueuedScriptStays: the script that a queued EVALSHA names is there for EXEC,
// whatever others run meanwhile, and no longer than that.
func TestQueuedScriptStays(t *testing.T) {
	s := start(t)
	c, others := s.dial(), s.dial()
	const src = "return 'mine'"
	sha := scripting.SumSHA1([]byte(src)).String()
	noScript := "NOSCRIPT No matching script. Please use EVAL."
	queue := func() {
		s.want(c, "mine", "EVAL", src, "0")
		s.want(c, "OK", "MULTI")
		s.want(c, "QUEUED", "EVALSHA", sha, "0")
	}
	queue()
	s.flood(others, 1)
	if r := s.must(c, "EXEC"); len(r.Elems) != 1 || r.Elems[0].Text != "mine" {
		t.Errorf("EXEC of a queued EVALSHA answered %v", r)
	}
	s.flood(others, 2)
	s.want(c, noScript, "EVALSHA", sha, "0")
	queue()
	s.want(c, "OK", "DISCARD")
	s.flood(others, 3)
	s.want(c, noScript, "EVALSHA", sha, "0")
	queue()
	c.conn.Close()
	c = s.dial()
	s.eventually("the one who left has let go of the script", func() bool {
		s.flood(others, 4)
		r := s.must(c, "SCRIPT", "EXISTS", sha)
		return len(r.Elems) == 1 && r.Elems[0].Text == "0"
	})
}

// TestLoadInsideMulti: a script that a MULTI loads is there for a later EVALSHA in
// it, and stays; one that it flushes is not.
func TestLoadInsideMulti(t *testing.T) {
	s := start(t)
	c := s.dial()
	const src = "return redis.call('INCR', KEYS[1])"
	sha := scripting.SumSHA1([]byte(src)).String()
	s.want(c, "OK", "MULTI")
	s.want(c, "QUEUED", "EVALSHA", sha, "1", "n")
	s.want(c, "QUEUED", "SCRIPT", "LOAD", src)
	s.want(c, "QUEUED", "EVALSHA", sha, "1", "n")
	r := s.must(c, "EXEC")
	if len(r.Elems) != 3 || r.Elems[0].Kind != transcript.Error || r.Elems[1].Text != sha || r.Elems[2].Text != "1" {
		t.Errorf("EXEC answered %v, want NOSCRIPT, the name and 1", r)
	}
	s.want(c, "2", "EVALSHA", sha, "1", "n")
	s.want(c, "OK", "MULTI")
	s.want(c, "QUEUED", "SCRIPT", "FLUSH")
	s.want(c, "QUEUED", "EVALSHA", sha, "1", "n")
	if r := s.must(c, "EXEC"); len(r.Elems) != 2 || r.Elems[1].Kind != transcript.Error {
		t.Errorf("EXEC of SCRIPT FLUSH and EVALSHA answered %v, want NOSCRIPT for the second", r)
	}
}
