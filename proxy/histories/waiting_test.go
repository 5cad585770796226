package histories

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store/command"
	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// shut makes a client hold keys until the door is opened, and returns when they
// are held.
func (s *server) shut(door string, keys ...string) *client {
	s.t.Helper()
	c := s.dial()
	if err := c.send(append([]string{"TEST.DOOR", door}, keys...)...); err != nil {
		s.t.Fatal(err)
	}
	s.eventually("the keys of door "+door+" are held", func() bool { return s.doors.entered(door) })
	return c
}

// queue makes a new client wait for keys, and returns when it stands in the
// queue.
func (s *server) queue(args ...string) *client {
	s.t.Helper()
	c := s.dial()
	before := s.waiting()
	if err := c.send(args...); err != nil {
		s.t.Fatal(err)
	}
	s.eventually(fmt.Sprintf("%q waits", args), func() bool { return s.waiting() == before+1 })
	return c
}

// reply reads what a client was answered.
func (s *server) reply(c *client) transcript.Reply {
	s.t.Helper()
	r, err := c.read()
	if err != nil {
		s.t.Fatalf("read a reply: %v", err)
	}
	return r
}

// gone fails the test unless the server has ended the connection.
func (s *server) gone(c *client) {
	s.t.Helper()
	if r, err := c.read(); err == nil {
		s.t.Fatalf("a client that was ended was answered %q", r.Text)
	} else if !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
		s.t.Fatalf("a client that was ended: %v, want the end of the connection", err)
	}
}

// TestFirstComeFirstServed lets clients of all kinds wait for one key: short
// commands, scripts, and transactions of many keys. They are served as they came.
func TestFirstComeFirstServed(t *testing.T) {
	s := start(t)
	const waiters = 60
	s.shut("d", "k")
	var clients []*client
	var want strings.Builder
	for i := range waiters {
		word := strconv.Itoa(i) + " "
		want.WriteString(word)
		var c *client
		switch i % 3 {
		case 0:
			c = s.queue("APPEND", "k", word)
		case 1:
			c = s.queue("EVAL", "return redis.call('append', KEYS[1], ARGV[1])", "1", "k", word)
		default:
			c = s.dial()
			s.want(c, "OK", "MULTI")
			s.want(c, "QUEUED", "APPEND", "k", word)
			for j := range 10 {
				s.want(c, "QUEUED", "SET", fmt.Sprintf("other:%d:%d", i, j), "x")
			}
			before := s.waiting()
			if err := c.send("EXEC"); err != nil {
				t.Fatal(err)
			}
			s.eventually("EXEC waits", func() bool { return s.waiting() == before+1 })
		}
		clients = append(clients, c)
	}
	s.doors.open("d")
	for i, c := range clients {
		r := s.reply(c)
		if r.Kind == transcript.Error {
			t.Errorf("waiter %d was answered -%s", i, r.Text)
		}
	}
	s.want(s.dial(), want.String(), "GET", "k")
}

// TestNobodyOvertakes sends a short command for a key that is free for an
// instant only, between its holder and those who wait.
func TestNobodyOvertakes(t *testing.T) {
	s := start(t)
	for i := range 20 {
		key, door := fmt.Sprintf("k:%d", i), fmt.Sprintf("d:%d", i)
		s.shut(door, key)
		first := s.queue("TEST.DOOR", door+"'", key)
		late := s.queue("SET", key, "late")
		s.doors.open(door)
		s.eventually("the first who waited holds the key", func() bool { return s.doors.entered(door + "'") })
		if n := s.waiting(); n != 1 {
			t.Fatalf("%d wait while the second holds the key, want 1", n)
		}
		s.doors.open(door + "'")
		s.reply(first)
		s.reply(late)
	}
}

// TestOthersGoOn holds one key and uses thousands of others, on all shards, by
// short commands, by scripts and by commands that visit the whole keyspace.
func TestOthersGoOn(t *testing.T) {
	s := start(t)
	s.shut("d", "held")
	c := s.dial()
	for i := range 4096 {
		s.want(c, "OK", "SET", fmt.Sprintf("k:%d", i), "v")
	}
	s.want(c, "v", "EVAL", "return redis.call('get', KEYS[1])", "1", "k:1")
	s.want(c, "4096", "DBSIZE")
	if r := s.must(c, "KEYS", "*"); len(r.Elems) != 4096 {
		t.Errorf("KEYS shows %d keys while one is held, want 4096", len(r.Elems))
	}
	s.doors.open("d")
}

// TestKillOneWhoWaits ends some of those who wait, by CLIENT KILL and by closing
// their sockets: they leave no trace, and the others keep their places.
func TestKillOneWhoWaits(t *testing.T) {
	s := start(t)
	s.shut("d", "k")
	admin := s.dial()
	var stay []*client
	var want strings.Builder
	for i := range 10 {
		keep := strconv.Itoa(i) + " "
		want.WriteString(keep)
		stay = append(stay, s.queue("APPEND", "k", keep))

		killed := s.dial()
		id := s.must(killed, "CLIENT", "ID").Text
		before := s.waiting()
		if err := killed.send("APPEND", "k", "killed"); err != nil {
			t.Fatal(err)
		}
		s.eventually("the one to be killed waits", func() bool { return s.waiting() == before+1 })
		s.want(admin, "1", "CLIENT", "KILL", "ID", id)
		s.gone(killed)
		s.eventually("the killed one has left the queue", func() bool { return s.waiting() == before })

		closed := s.queue("EVAL", "redis.call('append', KEYS[1], 'closed')", "1", "k")
		closed.conn.Close()
		s.eventually("the one who hung up has left the queue", func() bool { return s.waiting() == before })
	}
	s.doors.open("d")
	for _, c := range stay {
		s.reply(c)
	}
	s.want(admin, want.String(), "GET", "k")
	if n := s.waiting(); n != 0 {
		t.Errorf("%d still wait, want none", n)
	}
}

// TestKillWhileServed kills those who wait in the moment in which the key is
// handed over: it must be passed on, never lost.
func TestKillWhileServed(t *testing.T) {
	s := start(t)
	admin := s.dial()
	for i := range 50 {
		key, door := fmt.Sprintf("k:%d", i), fmt.Sprintf("d:%d", i)
		s.shut(door, key)
		victim := s.dial()
		id := s.must(victim, "CLIENT", "ID").Text
		before := s.waiting()
		if err := victim.send("APPEND", key, "v"); err != nil {
			t.Fatal(err)
		}
		s.eventually("the victim waits", func() bool { return s.waiting() == before+1 })
		last := s.queue("EXISTS", key)
		var both sync.WaitGroup
		both.Go(func() { s.doors.open(door) })
		both.Go(func() { admin.do("CLIENT", "KILL", "ID", id) })
		both.Wait()
		s.reply(last)
	}
	if n := s.waiting(); n != 0 {
		t.Errorf("%d still wait, want none", n)
	}
}

// TestCloseWhileWaiting shuts the server down while a key is held and clients
// wait for it.
func TestCloseWhileWaiting(t *testing.T) {
	s := start(t)
	holder := s.shut("d", "k")
	var waiters []*client
	for i := range 10 {
		if i%2 == 0 {
			waiters = append(waiters, s.queue("SET", "k", "v"))
		} else {
			waiters = append(waiters, s.queue("EVAL", "return redis.call('set', KEYS[1], 'v')", "1", "k"))
		}
	}
	if err := s.Close(0); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if n := s.waiting(); n != 0 {
		t.Errorf("%d wait after Close, want none", n)
	}
	for _, c := range append(waiters, holder) {
		s.endsUnserved(c)
	}
}

// endsUnserved fails the test unless the connection ends with no reply or with
// an error.
func (s *server) endsUnserved(c *client) {
	s.t.Helper()
	if r, err := c.read(); err == nil {
		if r.Kind != transcript.Error {
			s.t.Errorf("a client that waited for a key was answered %q by a server that closed", r.Text)
		}
		s.gone(c)
	}
}

// TestBusy answers -BUSY to those who want a key that was held for longer than
// busy-reply-threshold; those who want others go on, and a queue of quick ones
// is not slow.
func TestBusy(t *testing.T) {
	s := start(t)
	admin := s.dial()
	const threshold = 400 * time.Millisecond
	s.want(admin, "OK", "CONFIG", "SET", "busy-reply-threshold", "400")
	s.shut("d", "k")
	for i, args := range [][]string{
		{"GET", "k"}, {"SET", "k", "v"}, {"EVAL", "return redis.call('get', KEYS[1])", "1", "k"}, {"MSET", "a", "1", "k", "2"},
	} {
		begin := time.Now()
		r := s.must(s.dial(), args...)
		if r.Kind != transcript.Error || r.Text != command.ErrBusyScript {
			t.Errorf("%q of a key that a slow script holds: got %q, want -BUSY", args, r.Text)
		}
		// It is the script's time that counts, not that of the one who waits.
		if took := time.Since(begin); i > 0 && took > threshold*3/4 {
			t.Errorf("%q: -BUSY came after %v although the script had been slow for long, want it at once", args, took)
		}
	}
	s.want(admin, "OK", "CONFIG", "SET", "busy-reply-threshold", "3600000")
	patient := s.queue("GET", "k")
	s.want(admin, "OK", "SET", "other", "v")
	s.want(admin, "v", "GET", "other")
	if n := s.waiting(); n != 1 {
		t.Errorf("%d wait, want 1", n)
	}
	s.doors.open("d")
	if r := s.reply(patient); r.Kind == transcript.Error {
		t.Errorf("one who waits for an hour was answered -%s", r.Text)
	}
}

// TestBusyIsTheOwner: one who itself still waits for another key is not what
// makes its keys slow, however long it has been there.
func TestBusyIsTheOwner(t *testing.T) {
	s := start(t)
	admin := s.dial()
	s.want(admin, "OK", "CONFIG", "SET", "busy-reply-threshold", "0")
	// A client that has run something before, and now holds one of two keys
	// while it waits for the other. Which one depends on the hash, so both are
	// tried.
	waited := 0
	for i := range 12 {
		a, b := fmt.Sprintf("a:%d", i), fmt.Sprintf("b:%d", i)
		door := fmt.Sprintf("d:%d", i)
		s.shut(door, b)
		both := s.dial()
		s.must(both, "TEST.INCR", a)
		before := s.waiting()
		if err := both.send("EVAL", "return 1", "2", a, b); err != nil {
			t.Fatal(err)
		}
		s.eventually("the one with two keys waits", func() bool { return s.waiting() == before+1 })
		s.want(admin, "OK", "CONFIG", "SET", "busy-reply-threshold", "10")
		third := s.dial()
		if err := third.send("GET", a); err != nil {
			t.Fatal(err)
		}
		s.want(admin, "OK", "CONFIG", "SET", "busy-reply-threshold", "0")
		third.conn.SetReadDeadline(time.Now().Add(60 * time.Millisecond))
		if _, err := third.r.Peek(1); err != nil {
			waited++
		}
		s.doors.open(door)
		if r := s.reply(third); r.Kind == transcript.Error {
			t.Fatalf("a key whose holder waits for another: got -%s", r.Text)
		}
		s.reply(both)
	}
	if waited == 0 {
		t.Error("nobody had to wait for a key whose holder waits, so this test has shown nothing")
	}
}

// TestClockSteps moves the clock in all ways: a lock is free when its time has
// passed on the store's clock, and at no other time.
func TestClockSteps(t *testing.T) {
	s := start(t)
	c := s.dial()
	held := func(when string) {
		t.Helper()
		if r := s.must(c, "SET", "lock", "thief", "NX", "PX", "1000"); textOf(r) != none {
			t.Fatalf("%s: the lock was free early", when)
		}
	}
	s.want(c, "OK", "SET", "lock", "a", "NX", "PX", "30000")
	held("at once")
	s.clock.Advance(-time.Hour)
	held("after a step back")
	s.Store().ExpireCycle(time.Second)
	s.clock.Advance(time.Hour + 29_999*time.Millisecond)
	s.Store().ExpireCycle(time.Second)
	held("a millisecond before its time")
	s.want(c, "1", "PTTL", "lock")
	s.clock.Advance(time.Millisecond)
	s.want(c, none, "GET", "lock")
	s.want(c, "OK", "SET", "lock", "b", "NX", "PX", "30000")
	s.want(c, "0", "DELIFEQ", "lock", "a")
	s.want(c, "b", "GET", "lock")
}

// TestSlowScriptKeepsItsTTL: a TTL begins to run when the script commits, and the
// time that a waiter judges by is that of its turn, not that of its arrival.
func TestSlowScriptKeepsItsTTL(t *testing.T) {
	s := start(t)
	c := s.dial()
	s.want(c, "OK", "SET", "lock", "old", "PX", "1000")
	s.shut("d", "lock")
	// It arrives while the old lock is alive, and is served when it is not.
	taker := s.queue("SET", "lock", "new", "NX", "PX", "1000")
	late := s.queue("SET", "lock", "late", "NX", "PX", "1000")
	s.clock.Advance(2 * time.Second)
	s.doors.open("d")
	if got := textOf(s.reply(taker)); got != "OK" {
		t.Errorf("one whose turn comes after the lock's time: got %q, want OK", got)
	}
	if got := textOf(s.reply(late)); got != none {
		t.Errorf("the next one: got %q, want nil", got)
	}
	s.want(c, "1000", "PTTL", "lock")

	// Both the SET and the door are in one transaction; time passes within it.
	slow := s.dial()
	s.want(slow, "OK", "MULTI")
	s.want(slow, "QUEUED", "SET", "slow", "v", "PX", "500")
	s.want(slow, "QUEUED", "TEST.DOOR", "within", "slow")
	if err := slow.send("EXEC"); err != nil {
		t.Fatal(err)
	}
	s.eventually("the transaction is within", func() bool { return s.doors.entered("within") })
	s.clock.Advance(400 * time.Millisecond)
	s.doors.open("within")
	s.reply(slow)
	s.want(c, "500", "PTTL", "slow")
}
