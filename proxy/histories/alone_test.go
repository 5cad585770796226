package histories

import (
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// wantAlone are the ways to ask for the whole store.
var wantAlone = [][][]string{
	{{"FLUSHALL"}},
	{{"FLUSHDB"}},
	{{"SWAPDB", "2", "3"}},
	{{"MULTI"}, {"SET", "free", "v"}, {"FLUSHALL"}, {"EXEC"}},
	{{"EVAL", "redis.call('set', KEYS[1], 'v') return redis.call('flushall')", "1", "free"}},
	{{"EVAL", "return redis.call('swapdb', 2, 3)", "0"}},
	{{"FUNCTION", "FLUSH"}},
	{{"MULTI"}, {"CONFIG", "SET", "maxmemory-samples", "6"}, {"EXEC"}},
}

// TestNobodyStarvesBesideFlush is TestNobodyStarves with clients that want the
// whole store while somebody's script is slow, again and again, some of whom are
// killed: they are answered -BUSY after the threshold, and nobody else has to wait
// for a script that others wait for.
func TestNobodyStarvesBesideFlush(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 7 seconds at least")
	}
	besideSpinners(t, func(s *server, script []string) time.Duration { return s.besideFlush("OK", script...) })
}

// besideFlush runs the script, which holds the key "slow" for holdFor at least, with
// the senders and with clients that want the whole store beside it, and returns the
// longest time that one of the senders' requests was outstanding.
func (s *server) besideFlush(reply string, script ...string) time.Duration {
	t := s.t
	t.Helper()
	admin := s.dial()
	s.want(admin, "OK", "CONFIG", "SET", "busy-reply-threshold", "500")
	s.want(admin, "OK", "SET", "slow", "")
	endLoad := s.load()
	defer endLoad()
	holder := s.dial()
	begun := time.Now()
	if err := holder.send(script...); err != nil {
		t.Fatal(err)
	}
	waiter := s.behind() // the key is held

	var busy, left atomic.Int64
	var all sync.WaitGroup
	held := func() bool { return time.Since(begun) < holdFor }
	for i, commands := range wantAlone {
		c := s.dial()
		all.Go(func() {
			for ; held(); time.Sleep(5 * time.Millisecond) {
				var r transcript.Reply
				for _, args := range commands {
					r = s.tell(c, args...)
				}
				if !held() {
					return
				}
				if !strings.HasPrefix(r.Text, "BUSY Redis is busy running a script.") {
					t.Errorf("%q beside a slow script was answered %q, want -BUSY", commands, r.Text)
					return
				}
				busy.Add(1)
			}
		})
		if i%2 == 0 {
			continue
		}
		all.Go(func() { // and clients that are gone before they are answered
			for held() {
				c, err := s.connect()
				if err != nil {
					t.Error(err)
					return
				}
				for _, args := range commands {
					if err := c.send(args...); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(20 * time.Millisecond)
				c.conn.Close()
				left.Add(1)
			}
		})
	}
	if r := s.reply(holder); !strings.HasPrefix(r.Text, reply) {
		t.Fatalf("the script was answered %q", r.Text)
	}
	took := endLoad()
	all.Wait()
	if r := s.reply(waiter); !strings.HasPrefix(r.Text, "BUSY ") {
		t.Errorf("who waited for the script's key was answered %q, want -BUSY", r.Text)
	}
	if busy.Load() == 0 || left.Load() == 0 {
		t.Errorf("%d requests for the whole store were answered -BUSY, and %d were given up: want some of both", busy.Load(), left.Load())
	}
	s.want(admin, "OK", "FLUSHALL") // nothing is in the way any more
	s.want(admin, "0", "DBSIZE")
	return s.longest(took)
}

// tell is must for another goroutine than the test's.
func (s *server) tell(c *client, args ...string) transcript.Reply {
	r, err := c.do(args...)
	if err != nil {
		s.t.Errorf("%.60q: %v", args, err)
	}
	return r
}

// TestReleaseByFlush has holders release by a script that compares and then
// flushes everything, which runs alone, beside others that only compare and delete,
// beside what keeps the gate from closing and beside others that close it.
func TestReleaseByFlush(t *testing.T) {
	s := start(t)
	const compareAndFlush = `
local held = redis.call('get', KEYS[1])
if held ~= ARGV[1] then return held end
redis.call('flushall')
return 1`
	for _, lang := range s.languages() {
		t.Run(lang.name, func(t *testing.T) {
			defer s.within(t)()
			defer s.beside([]string{"TEST.SPIN", "30", "spinning"}, []string{"SWAPDB", "2", "3"}, []string{"TEST.SPIN", "1", "spun"})()
			each(t, s, lang, rivalry(4, setNXPX, func(x *fighter, token string) {
				if rand.IntN(8) != 0 {
					releaseByScript(x, token)
					return
				}
				x.op(operation{kind: opReleaseIf, token: token, ms: tellsValue}, "EVAL", compareAndFlush, "1", x.key, token)
			}))
		})
	}
}

// beside sends each of the commands again and again until the function that it
// returns is called.
func (s *server) beside(commands ...[]string) (end func()) {
	var all sync.WaitGroup
	var ended atomic.Bool
	for _, args := range commands {
		c := s.dial()
		all.Go(func() {
			for !ended.Load() {
				if r, err := c.do(args...); err != nil || r.Kind == transcript.Error {
					s.t.Errorf("%q: %q, %v", args, r.Text, err)
					return
				}
			}
		})
	}
	return func() {
		ended.Store(true)
		all.Wait()
	}
}
