package histories

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// written is how many keys a script writes before it loops for ever.
const written = 1000

// dirty is a script that writes its keys, declared or not, and does not end.
const dirty = `
for i = 1, tonumber(ARGV[1]) do redis.call('set', KEYS[1] .. ':' .. i, 'dirty') end
redis.call('append', KEYS[1], 'dirty')
while true do end`

// TestKilledAfterWrites lets one script, or two, write a thousand keys and loop
// for three seconds, beside 50 clients that send at a fixed rate to other keys,
// none of whose requests may be outstanding for longer than 100 ms. Meanwhile who
// wants a key of a script is answered -BUSY after the threshold. Then the scripts
// are killed, by SCRIPT KILL or CLIENT KILL, and nothing of what they wrote
// exists, was logged, or is locked.
func TestKilledAfterWrites(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 12 seconds at least")
	}
	scriptKill := func(s *server, admin *client, _ []*client) {
		s.want(admin, "OK", "SCRIPT", "KILL")
	}
	clientKill := func(s *server, admin *client, holders []*client) {
		for _, c := range holders {
			s.want(admin, "1", "CLIENT", "KILL", "ID", s.idOf(admin, c))
		}
	}
	for _, tt := range []struct {
		name     string
		scripts  int
		declared bool
		kill     func(s *server, admin *client, holders []*client)
		answered bool // the scripts' clients live on
	}{
		{"one by SCRIPT KILL", 1, false, scriptKill, true},
		{"two by SCRIPT KILL", 2, true, scriptKill, true},
		{"one by CLIENT KILL", 1, true, clientKill, false},
		{"two by CLIENT KILL", 2, false, clientKill, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t)
			c := s.dial()
			s.want(c, "OK", "CONFIG", "SET", "busy-reply-threshold", "500")
			for i := range manyKeys {
				s.want(c, "OK", "SET", fmt.Sprintf("k:%d", i), "v")
			}
			s.bestOfThree(func() time.Duration {
				return s.besideKilled(tt.scripts, tt.declared, tt.kill, tt.answered)
			})
		})
	}
}

// TestListShowsWhatRuns: who looks for the client of a slow script finds it in CLIENT LIST by its command.
func TestListShowsWhatRuns(t *testing.T) {
	s := start(t)
	admin, slow := s.dial(), s.dial()
	for _, watched := range []string{"5000", "0"} { // whether its socket is watched, too
		s.want(admin, "OK", "CONFIG", "SET", "busy-reply-threshold", watched)
		s.want(slow, "PONG", "PING") // it is in the list from now on, with another command
		if err := slow.send("EVAL", "while true do end", "1", "k"); err != nil {
			t.Fatal(err)
		}
		s.eventually("CLIENT LIST shows the script", func() bool { return strings.Contains(s.listed(admin, slow), " cmd=eval ") })
		s.want(admin, "OK", "CONFIG", "SET", "busy-reply-threshold", "1")
		s.eventually("the script is killed", func() bool { return s.must(admin, "SCRIPT", "KILL").Text == "OK" })
		if r := s.reply(slow); !strings.HasPrefix(r.Text, "ERR Script killed by user") {
			t.Errorf("the script answered %q", r.Text)
		}
	}
}

func (s *server) besideKilled(scripts int, declared bool, kill func(*server, *client, []*client), answered bool) time.Duration {
	t := s.t
	t.Helper()
	admin := s.dial()
	before := s.must(admin, "DBSIZE").Text
	s.log.mu.Lock()
	s.log.keep, s.log.records = true, nil
	s.log.mu.Unlock()
	endLoad := s.load()
	defer endLoad()

	begun := time.Now()
	var holders, waiters []*client
	for n := range scripts {
		name := "slow" + strconv.Itoa(n)
		args := []string{"EVAL", dirty, "1", name}
		if declared {
			args[2] = strconv.Itoa(1 + written)
			for i := range written {
				args = append(args, name+":"+strconv.Itoa(i+1))
			}
		}
		c := s.dial()
		if err := c.send(append(args, strconv.Itoa(written))...); err != nil {
			t.Fatal(err)
		}
		holders = append(holders, c)
		// The script has got to its last key once somebody has to wait for it.
		waiters = append(waiters, s.waitsFor(name+":"+strconv.Itoa(written)))
	}
	for _, c := range waiters {
		if r := s.reply(c); !strings.HasPrefix(r.Text, "BUSY Redis is busy running a script.") {
			t.Errorf("who wants a key of a slow script was answered %q, want -BUSY", r.Text)
		}
	}
	// A killed script ends at once: without one period more, the requests that are due last might not be sent.
	time.Sleep(time.Until(begun.Add(holdFor + sendEvery)))
	killed := time.Now()
	kill(s, admin, holders)
	for _, c := range holders {
		if !answered {
			s.gone(c)
		} else if r := s.reply(c); !strings.HasPrefix(r.Text, "ERR Script killed by user with SCRIPT KILL...") {
			t.Errorf("a killed script answered %q", r.Text)
		}
	}
	// Nobody holds the keys any more, and none of them is there.
	for n := range scripts {
		name := "slow" + strconv.Itoa(n)
		args := []string{"EXISTS", name}
		for i := range written {
			args = append(args, name+":"+strconv.Itoa(i+1))
		}
		// Who was killed is gone at once; its script ends a moment later.
		s.eventually("the keys of "+name+" are free", func() bool {
			r := s.must(admin, args...)
			if r.Kind == transcript.Error {
				return false
			}
			if r.Text != "0" {
				t.Fatalf("%s of the keys that a killed script wrote exist, want none", r.Text)
			}
			return true
		})
	}
	ended := time.Since(killed)
	all := endLoad()
	s.want(admin, before, "DBSIZE")
	s.log.mu.Lock()
	if slices.ContainsFunc(s.log.records, func(rec []byte) bool { return strings.Contains(string(rec), "dirty") }) {
		t.Error("the log tells of what a killed script wrote")
	}
	s.log.mu.Unlock()
	t.Logf("%v from the kill until nothing was left of %d scripts", ended, scripts)
	return max(s.longest(all), ended)
}

// waitsFor returns a client that wants a key which a script is about to lock.
func (s *server) waitsFor(key string) *client {
	s.t.Helper()
	for begun := time.Now(); ; runtime.Gosched() {
		before := s.waiting()
		c := s.dial()
		if err := c.send("GET", key); err != nil {
			s.t.Fatal(err)
		}
		answered := make(chan struct{})
		go func() {
			c.r.Peek(1)
			close(answered)
		}()
		for early := false; !early; {
			select {
			case <-answered: // the script had not got so far
				early = true
			default:
				if s.waiting() > before {
					c.peeking = answered
					return c
				}
				if took := time.Since(begun); took > 10*holdFor {
					s.t.Fatalf("nobody has to wait for %q %v after the script was sent", key, took)
				}
				runtime.Gosched()
			}
		}
		c.conn.Close()
	}
}
