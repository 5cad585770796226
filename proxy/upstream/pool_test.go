package upstream

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRepliesGoToWhoAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &fakeUpstream{script: greeting(func(_ int, c *fakeConn) { c.echo() }), delay: time.Millisecond}
		p := up.open(t, Options{Conns: 2})
		defer p.Close()
		var clients sync.WaitGroup
		for id := range 20 {
			clients.Go(func() {
				var calls []*Call
				for i := range 50 {
					calls = append(calls, p.Do(Request{DB: id % 3, Proto: 2 + id%2, Sticky: uint64(id/6 + 1), Raw: cmd("ECHO", fmt.Sprint(id, "/", i))}))
				}
				for i, c := range calls {
					if i%7 == 3 {
						c.Release() // went away
						continue
					}
					got, err := result(c)
					wantReply(t, fmt.Sprintf("client %d, command %d", id, i), got, err, bulk(fmt.Sprint(id, "/", i)))
				}
			})
		}
		clients.Wait()
		synctest.Wait()
		s := p.Snapshot()
		if s.InFlight != 0 || s.Sent != 1000 || s.Errors != 0 || s.Connected != 12 || s.Connects != 12 || s.Reconnects != 0 {
			t.Errorf("after 1000 answered commands on 3 databases x 2 protocols x 2 connections: %+v", s)
		}
		if most := up.most.Load(); most != 1 {
			t.Errorf("%d dials at the same time, want 1", most)
		}
	})
}

func TestManyCommandsInOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read, queued := make(chan int, 1), make(chan struct{})
		up := &fakeUpstream{script: func(_ int, c *fakeConn) {
			<-queued
			c.greet()
			b := make([]byte, 64<<10)
			n, _ := c.Read(b) // the pipe gives what one write held
			read <- n
			c.say("%s", strings.Repeat("+OK\r\n", 100))
			io.Copy(io.Discard, c)
		}}
		p := up.open(t, Options{})
		defer p.Close()
		var calls []*Call
		for range 100 {
			calls = append(calls, p.Do(request("SET", "k", "v")))
		}
		close(queued)
		for _, c := range calls {
			got, err := result(c)
			wantReply(t, "SET", got, err, "+OK\r\n")
		}
		if n, want := <-read, 100*len(cmd("SET", "k", "v")); n != want {
			t.Errorf("the first write held %d bytes, want all %d of the 100 commands queued while dialing", n, want)
		}
	})
}

// What happens to a command whose connection fails, and to the connection beside it.
func TestFailuresAfterTheCommandWasSent(t *testing.T) {
	for _, tc := range []struct {
		name   string
		script func(c *fakeConn)
		text   string
	}{
		{"closed", func(c *fakeConn) {}, "it closed the connection)"},
		{"half a reply", func(c *fakeConn) { c.say("$5\r\nhe") }, "in the middle of a reply"},
		{"garbage", func(c *fakeConn) { c.say("HTTP/1.1 400 Bad Request\r\n\r\n") }, "what is no reply"},
		{"a reply too many", func(c *fakeConn) { c.say("+A\r\n+B\r\n+C\r\n"); io.Copy(io.Discard, c) }, "no command asked for"},
		{"a reply too large", func(c *fakeConn) { c.say("$2000\r\n"); io.Copy(io.Discard, c) }, "longer than the limit"},
		{"a claim too large", func(c *fakeConn) { c.say("*2147483647\r\n$9223372036854775807\r\n"); io.Copy(io.Discard, c) }, ""},
		{"a push to RESP2", func(c *fakeConn) { c.say(">1\r\n+x\r\n"); io.Copy(io.Discard, c) }, "no command asked for"},
		{"silent", func(c *fakeConn) { io.Copy(io.Discard, c) }, "no byte from it for 10s"},
		{"stalled in a reply", func(c *fakeConn) { c.say("$5\r\nhe"); io.Copy(io.Discard, c) }, "no byte from it for 10s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := &fakeUpstream{script: greeting(func(n int, c *fakeConn) {
					if n != 1 {
						c.echo()
						return
					}
					c.command()
					c.command()
					tc.script(c)
				})}
				p := up.open(t, Options{Conns: 2, MaxReply: 1000})
				defer p.Close()
				well := Request{Proto: 2, Sticky: 2, Raw: cmd("ECHO", "well")}
				got, err := ask(p, well)
				wantReply(t, "before", got, err, bulk("well"))

				begin := time.Now()
				first, second := p.Do(request("INCR", "a")), p.Do(request("INCR", "b"))
				synctest.Wait()
				beside, err := ask(p, well)
				wantReply(t, "the connection beside it", beside, err, bulk("well"))
				if tc.name == "a reply too many" {
					// Both replies may be theirs; the third gives it away.
					result(first)
					result(second)
				} else {
					_, err = result(first)
					wantError(t, "first command", err, ErrUnknownOutcome, tc.text)
					_, err = result(second)
					wantError(t, "second command", err, ErrUnknownOutcome, "UPSTREAMLOST")
				}
				if d := time.Since(begin); d > 12500*time.Millisecond {
					t.Errorf("the failure took %v, want at most ReplyTimeout and a quarter", d)
				}
				time.Sleep(time.Second) // of the bubble: until the prober has found it well
				got, err = ask(p, request("ECHO", "again"))
				wantReply(t, "after", got, err, bulk("again"))
				if s := p.Snapshot(); s.Reconnects != 1 || s.InFlight != 0 {
					t.Errorf("after one loss and one more command: %+v", s)
				}
			})
		})
	}
}

// The bytes that the network took tell what cannot have been executed.
func TestSentAndNotSent(t *testing.T) {
	a, b := cmd("INCR", "a"), cmd("INCR", "b")
	multi, exec := cmd("multi"), cmd("Exec")
	for _, tc := range []struct {
		name  string
		taken int
		block [][]byte // else a and b alone
		want  []error
	}{
		{"nothing", 0, nil, []error{ErrUnavailable, ErrUnavailable}},
		{"half the first", len(a) - 1, nil, []error{ErrUnavailable, ErrUnavailable}},
		{"the first", len(a), nil, []error{ErrUnknownOutcome, ErrUnavailable}},
		{"but for a byte", len(a) + len(b) - 1, nil, []error{ErrUnknownOutcome, ErrUnavailable}},
		{"all", len(a) + len(b), nil, []error{ErrUnknownOutcome, ErrUnknownOutcome}},
		{"half a transaction", len(multi) + len(a), [][]byte{multi, a, exec}, []error{ErrUnavailable}},
		{"a transaction", len(multi) + len(a) + len(exec), [][]byte{multi, a, exec}, []error{ErrUnknownOutcome}},
		{"half a block without MULTI", len(a), [][]byte{a, b}, []error{ErrUnknownOutcome}},
		{"less than a block's first", len(a) - 1, [][]byte{a, b}, []error{ErrUnavailable}},
		{"half of two transactions", len(multi) + len(exec), [][]byte{multi, exec, multi, exec}, []error{ErrUnknownOutcome}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := &fakeUpstream{script: greeting(func(n int, c *fakeConn) {
					if n == 0 {
						io.ReadFull(c, make([]byte, tc.taken))
						return
					}
					c.echo()
				})}
				p := up.open(t, Options{})
				defer p.Close()
				var calls []*Call
				if tc.block != nil {
					calls = append(calls, p.DoBlock(Request{Proto: 2, Sticky: 1}, tc.block...))
				} else {
					calls = append(calls, p.Do(Request{Proto: 2, Sticky: 1, Raw: a}), p.Do(Request{Proto: 2, Sticky: 1, Raw: b}))
				}
				for i, c := range calls {
					_, err := result(c)
					wantError(t, fmt.Sprint("command ", i+1), err, tc.want[i], "fake:1")
				}
			})
		})
	}
}

// A command behind a write that hangs fails with the connection; it is not sent on the next one.
func TestQueuedCommandsEndWithTheirConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := make(chan struct{})
		up := &fakeUpstream{script: greeting(func(n int, c *fakeConn) {
			if n == 0 {
				<-fail
				return
			}
			c.echo()
		})}
		p := up.open(t, Options{})
		defer p.Close()
		writing := p.Do(request("INCR", "a"))
		synctest.Wait()
		queued := p.Do(request("INCR", "b"))
		time.Sleep(2 * time.Second) // of the bubble: so that the loss is not a young one
		close(fail)
		for _, c := range []*Call{writing, queued} {
			_, err := result(c)
			wantError(t, "command of which no byte was taken", err, ErrUnavailable, "lost before the command was sent")
		}
		got, err := ask(p, request("ECHO", "next"))
		wantReply(t, "the next command", got, err, bulk("next"))
	})
}

func TestBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &fakeUpstream{script: greeting(func(_ int, c *fakeConn) { c.echo() })}
		p := up.open(t, Options{})
		defer p.Close()
		before := p.Do(request("ECHO", "before"))
		block := p.DoBlock(request(), cmd("MULTI"), cmd("SET", "k", "v"), cmd("EXEC"))
		after := p.Do(request("ECHO", "after"))
		got, err := result(after)
		wantReply(t, "after", got, err, bulk("after"))
		last, err := block.Wait(nil)
		wantReply(t, "block", string(last), err, bulk("EXEC"))
		var all []string
		for i := range block.Frames() {
			all = append(all, string(block.Frame(i)))
		}
		if want := []string{bulk("MULTI"), bulk("v"), bulk("EXEC")}; !slices.Equal(all, want) {
			t.Errorf("frames of the block: %q, want %q", all, want)
		}
		block.Release()
		got, err = result(before)
		wantReply(t, "before", got, err, bulk("before"))
	})
}

func TestCanceledWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		up := &fakeUpstream{script: greeting(func(_ int, c *fakeConn) {
			<-goOn
			c.echo()
		})}
		p := up.open(t, Options{})
		defer p.Close()
		gone, stays := p.Do(request("ECHO", "gone")), p.Do(request("ECHO", "stays"))
		cancel := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(cancel) })
		for _, c := range []*Call{gone, stays} {
			if _, err := c.Wait(cancel); err != ErrCanceled {
				t.Errorf("canceled Wait: error %v, want ErrCanceled", err)
			}
		}
		gone.Release()
		close(goOn)
		got, err := result(stays)
		wantReply(t, "second Wait of the one not released", got, err, bulk("stays"))
		got, err = ask(p, request("ECHO", "next"))
		wantReply(t, "the next command", got, err, bulk("next"))
	})
}

func TestReleasedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &fakeUpstream{script: greeting(func(_ int, c *fakeConn) { c.echo() })}
		p := up.open(t, Options{})
		defer p.Close()
		c := p.Do(request("ECHO", "x"))
		result(c)
		defer func() {
			if recover() == nil {
				t.Error("the second Release did not panic: two owners could get one Call")
			}
		}()
		c.Release()
	})
}

func TestPushIsDroppedOnRESP3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &fakeUpstream{script: greeting(func(_ int, c *fakeConn) {
			c.command()
			c.say(">2\r\n+invalidate\r\n*1\r\n+k\r\n|1\r\n+ttl\r\n:3\r\n+reply\r\n")
			c.echo()
		})}
		p := up.open(t, Options{})
		defer p.Close()
		got, err := ask(p, Request{Proto: 3, Raw: cmd("GET", "k")})
		wantReply(t, "GET", got, err, "|1\r\n+ttl\r\n:3\r\n+reply\r\n")
		got, err = ask(p, Request{Proto: 3, Raw: cmd("ECHO", "next")})
		wantReply(t, "the next command", got, err, bulk("next"))
	})
}

func TestQueueBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := []chan struct{}{make(chan struct{}), make(chan struct{})}
		up := &fakeUpstream{script: greeting(func(n int, c *fakeConn) {
			<-goOn[n]
			c.echo()
		})}
		p := up.open(t, Options{QueueCommands: 10, QueueBytes: 1000})
		defer p.Close()
		big := strings.Repeat("x", 2000)
		calls := []*Call{p.Do(request("ECHO", big))} // alone it may be larger than the bound
		synctest.Wait()
		_, err := ask(p, request("ECHO", "y"))
		wantError(t, "beside 2000 bytes being written", err, ErrBusy, "UPSTREAMBUSY 20")
		close(goOn[0])
		got, err := result(calls[0])
		wantReply(t, "the large one", got, err, bulk(big))

		calls = nil
		for range 10 {
			calls = append(calls, p.Do(Request{DB: 1, Proto: 2, Raw: cmd("ECHO", "z")}))
		}
		_, err = ask(p, Request{DB: 1, Proto: 2, Raw: cmd("ECHO", "z")})
		wantError(t, "the eleventh", err, ErrBusy, "10 commands already wait")
		close(goOn[1])
		for _, c := range calls {
			got, err := result(c)
			wantReply(t, "one of ten", got, err, bulk("z"))
		}
		got, err = ask(p, Request{DB: 1, Proto: 2, Raw: cmd("ECHO", "z")})
		wantReply(t, "when the ten are answered", got, err, bulk("z"))
	})
}

func TestUnreadRepliesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &fakeUpstream{script: greeting(func(_ int, c *fakeConn) { c.echo() })}
		p := up.open(t, Options{ReplyBytes: 5000})
		defer p.Close()
		big := strings.Repeat("x", 2000)
		one, two, three := p.Do(request("ECHO", big)), p.Do(request("ECHO", big)), p.Do(request("ECHO", big))
		_, err := result(three)
		wantError(t, "the third reply of 2000 bytes", err, ErrUnknownOutcome, "executed, but its reply was dropped")
		for _, c := range []*Call{one, two} {
			got, err := result(c)
			wantReply(t, "a reply within the bound", got, err, bulk(big))
		}
		if held := p.Snapshot().ReplyBytes; held != 0 {
			t.Errorf("%d bytes are counted as held with every Call released", held)
		}
		got, err := ask(p, request("ECHO", big))
		wantReply(t, "with all released", got, err, bulk(big))
	})
}

func TestRequestsThatAreNotOneCommand(t *testing.T) {
	p := (&fakeUpstream{}).open(t, Options{Databases: 4})
	defer p.Close()
	for _, raw := range []string{
		"", "PING\r\n", "*0\r\n", "*1\r\n", "*1\r\n$4\r\nPING", "*1\r\n$4\r\nPING\r", "*1\r\n$4\r\nPINGxx",
		"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n", "*2\r\n$4\r\nPING\r\n", "*1\r\n$-1\r\n", "*-1\r\n",
		"*1\r\n$4294967300\r\nPING\r\n", "*99999999999999999999\r\n$4\r\nPING\r\n", "*1\r\n*1\r\n$4\r\nPING\r\n", "*1\r\n$\r\n\r\n", "*1\n$4\nPING\n",
	} {
		_, err := ask(p, Request{Proto: 2, Raw: []byte(raw)})
		wantError(t, fmt.Sprintf("%q", raw), err, ErrRequest, "not exactly one command")
		_, err = result(p.DoBlock(Request{Proto: 2}, cmd("PING"), []byte(raw)))
		wantError(t, fmt.Sprintf("%q in a block", raw), err, ErrRequest, "command 2 of the block")
	}
	_, err := result(p.DoBlock(Request{Proto: 2}))
	wantError(t, "no commands", err, ErrRequest, "block is empty")
	for _, req := range []Request{{DB: -1, Proto: 2}, {DB: 4, Proto: 2}} {
		_, err := ask(p, req)
		wantError(t, fmt.Sprint("database ", req.DB), err, ErrRequest, "ERR DB index is out of range")
	}
	_, err = ask(p, Request{Proto: 4, Raw: cmd("PING")})
	wantError(t, "RESP4", err, ErrRequest, "protocol version 4")
}

func TestDownUpstreamIsProbedByOneWithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		up := &fakeUpstream{
			refuse: func(n int) error {
				if n < 8 {
					return errors.New("connection refused")
				}
				return nil
			},
			script: greeting(func(_ int, c *fakeConn) { c.echo() }),
		}
		p := up.open(t, Options{Conns: 3, BackoffMin: 50 * time.Millisecond, BackoffMax: 2 * time.Second})
		defer p.Close()
		failed := 0
		for p.Snapshot().Unreachable != "" || failed == 0 {
			for db := range 16 {
				at := time.Now()
				_, err := ask(p, Request{DB: db, Proto: 2 + db%2, Sticky: uint64(db), Raw: cmd("PING")})
				wantError(t, "while down", err, ErrUnavailable, "UPSTREAMDOWN upstream fake:1 is unreachable: connection refused")
				if d := time.Since(at); d != 0 {
					t.Fatalf("a command waited %v for an upstream that is down", d)
				}
				failed++
			}
			time.Sleep(7 * time.Millisecond)
			synctest.Wait()
		}
		var pauses []time.Duration
		for i, at := range up.times[:9] {
			if i > 0 {
				begin = up.times[i-1]
			}
			pauses = append(pauses, at.Sub(begin).Round(time.Millisecond))
		}
		ms := time.Millisecond
		if want := []time.Duration{0, 50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 2000 * ms, 2000 * ms}; !slices.Equal(pauses, want) {
			t.Errorf("pauses before the dials with %d commands meanwhile: %v, want %v", failed, pauses, want)
		}
		got, err := ask(p, request("ECHO", "back"))
		wantReply(t, "when it is back", got, err, bulk("back"))
		if s := p.Snapshot(); s.Errors != uint64(failed) {
			t.Errorf("Errors is %d, want %d", s.Errors, failed)
		}
	})
}

// One failed dial speaks for all who wait for theirs, and nobody waits for the prober's.
func TestSlowDialsOfADownUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		up := &fakeUpstream{
			refuse: func(n int) error { return errors.New("no route to host") },
			delay:  time.Second,
		}
		p := up.open(t, Options{Conns: 2})
		defer p.Close()
		send := func() (calls []*Call) {
			for i := range 64 {
				calls = append(calls, p.Do(Request{DB: i % 16, Proto: 2 + i/16%2, Sticky: uint64(1 + i/32), Raw: cmd("PING")}))
			}
			return calls
		}
		for _, c := range send() {
			_, err := result(c)
			wantError(t, "one of those that waited", err, ErrUnavailable, "no route to host")
		}
		if n, d := up.dials.Load(), time.Since(begin); n != 1 || d != time.Second {
			t.Errorf("64 commands on 64 connections took %d dials and %v to fail, want 1 dial of 1s", n, d)
		}
		time.Sleep(500 * time.Millisecond) // of the bubble: into the prober's first dial
		if n := up.dialing.Load(); n != 1 {
			t.Fatalf("%d dials are going on half a second after the first failed, want the prober's", n)
		}
		begin = time.Now()
		for _, c := range send() {
			_, err := result(c)
			wantError(t, "one while the prober dials", err, ErrUnavailable, "no route to host")
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("commands waited %v for the prober", d)
		}
	})
}

// An upstream that shakes hands and then fails at once must not be dialed as fast as commands come.
func TestConnectionsThatDieYoungAreBackedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &fakeUpstream{script: greeting(func(_ int, c *fakeConn) { c.command() })}
		p := up.open(t, Options{BackoffMax: time.Second})
		defer p.Close()
		for range 10000 {
			ask(p, request("PING"))
			time.Sleep(time.Millisecond)
		}
		if n := up.dials.Load(); n > 40 {
			t.Errorf("%d dials in 10 s to an upstream that drops every connection after a command", n)
		}
	})
}

func TestHandshake(t *testing.T) {
	loading := "-LOADING Redis is loading the dataset in memory\r\n"
	for _, tc := range []struct {
		name, url string
		proto     int
		replies   []string // to each command; "" says nothing
		asked     string
		text      string // of the error; empty: none
		only      bool   // the other protocol and database go on
	}{
		{"plain", "redis://h", 2, []string{"+OK\r\n", "+OK\r\n", "+PONG\r\n"}, "SELECT 5|CLIENT SETNAME latchkey|PING", "", false},
		{"RESP3", "redis://h", 3, []string{"%1\r\n+proto\r\n:3\r\n", "+OK\r\n", "-NOPERM no\r\n", "-NOPERM no\r\n"}, "HELLO 3|SELECT 5|CLIENT SETNAME latchkey|PING", "", false},
		{"password", "redis://:s%40cret@h", 2, []string{"+OK\r\n", "+OK\r\n", "-ERR unknown command\r\n", "+PONG\r\n"}, "AUTH s@cret|SELECT 5|CLIENT SETNAME latchkey|PING", "", false},
		{"user", "redis://joe:s%40cret@h", 2, []string{"+OK\r\n", "+OK\r\n", "+OK\r\n", "+PONG\r\n"}, "AUTH joe s@cret|SELECT 5|CLIENT SETNAME latchkey|PING", "", false},
		{"password, RESP3", "redis://:s%40cret@h", 3, []string{"%0\r\n", "+OK\r\n", "+OK\r\n", "+PONG\r\n"}, "HELLO 3 AUTH default s@cret|SELECT 5|CLIENT SETNAME latchkey|PING", "", false},
		{"wrong password", "redis://:s%40cret@h", 2, []string{"-WRONGPASS invalid username-password pair\r\n"}, "", "it answered AUTH with WRONGPASS invalid username-password pair (check the user and password in the upstream URL)", false},
		{"no password", "redis://h", 2, []string{"-NOAUTH Authentication required.\r\n"}, "", "it answered SELECT with NOAUTH Authentication required. (check", false},
		{"loading", "redis://h", 2, []string{"+OK\r\n", "+OK\r\n", loading}, "", "it answered PING with LOADING Redis is loading", false},
		{"full", "redis://h", 2, []string{"-ERR max number of clients reached\r\n"}, "", "max number of clients reached", true},
		{"no such database", "redis://h", 2, []string{"-ERR DB index is out of range\r\n"}, "", "it answered SELECT with ERR DB index is out of range", true},
		{"too old for RESP3", "redis://h", 3, []string{"-ERR unknown command `HELLO`\r\n"}, "", "it answered HELLO with ERR unknown command", true},
		{"silent", "redis://h", 2, []string{""}, "", "no connection within 2s", false},
		{"closes", "redis://h", 2, nil, "", "it closed the connection", false},
		{"web server", "redis://h", 2, []string{"HTTP/1.1 400 Bad Request\r\n"}, "", "it sent what is no reply", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked []string
				up := &fakeUpstream{script: func(n int, c *fakeConn) {
					if n > 0 {
						if c.greet() == nil {
							c.echo()
						}
						return
					}
					c.r.Peek(1)
					go func() { // the pipe has no buffer
						for range tc.replies {
							if args, err := c.command(); err == nil {
								asked = append(asked, strings.Join(args, " "))
							}
						}
						if tc.text == "" {
							c.echo()
						} else {
							io.Copy(io.Discard, c)
						}
					}()
					for _, r := range tc.replies {
						if r == "" {
							c.hang()
						}
						c.say("%s", r)
					}
					if tc.text == "" {
						c.hang()
					}
				}}
				p := up.open(t, Options{URL: tc.url})
				defer p.Close()
				got, err := ask(p, Request{DB: 5, Proto: tc.proto, Raw: cmd("ECHO", "x")})
				if tc.text == "" {
					wantReply(t, "the first command", got, err, bulk("x"))
					if s := strings.Join(asked, "|"); s != tc.asked {
						t.Errorf("handshake was %q, want %q", s, tc.asked)
					}
					return
				}
				wantError(t, "the first command", err, ErrUnavailable, tc.text)
				if err != nil && strings.Contains(err.Error(), "s@cret") {
					t.Errorf("the error %q holds the password", err)
				}
				_, err = ask(p, Request{DB: 5, Proto: tc.proto, Raw: cmd("ECHO", "x")})
				wantError(t, "the second command", err, ErrUnavailable, "")
				got, err = ask(p, Request{DB: 6, Proto: 2, Raw: cmd("ECHO", "y")})
				if tc.only {
					wantReply(t, "another database", got, err, bulk("y"))
				} else {
					wantError(t, "another database", err, ErrUnavailable, "")
				}
				time.Sleep(6 * time.Second) // of the bubble: longer than any pause so far
				got, err = ask(p, Request{DB: 5, Proto: tc.proto, Raw: cmd("ECHO", "z")})
				wantReply(t, "when it is mended", got, err, bulk("z"))
			})
		})
	}
}

func TestCloseFailsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &fakeUpstream{script: func(n int, c *fakeConn) {
			if n == 0 {
				c.greet()
				c.command()
			}
			c.hang()
		}}
		p := up.open(t, Options{})
		sent := p.Do(request("INCR", "a"))
		synctest.Wait()
		queued := p.Do(request("INCR", "b"))
		synctest.Wait()
		dialing := p.Do(Request{DB: 1, Proto: 2, Raw: cmd("PING")})
		p.Close()
		_, err := result(sent)
		wantError(t, "the one sent", err, ErrUnknownOutcome, "latchkey closed it")
		_, err = result(queued)
		wantError(t, "the one not written", err, ErrUnavailable, "before the command was sent")
		_, err = result(dialing)
		wantError(t, "the one that waited for a connection", err, ErrClosed, "UPSTREAMDOWN upstream connections are closed")
		_, err = ask(p, request("PING"))
		wantError(t, "a later one", err, ErrClosed, "")
		_, err = ask(p, Request{DB: 9, Proto: 2, Raw: cmd("PING")})
		wantError(t, "a later one to another database", err, ErrClosed, "")
		if s := p.Snapshot(); s.Connected != 0 || s.InFlight != 0 {
			t.Errorf("after Close: %+v", s)
		}
		p.Close()
	})
}

// Whatever an upstream does at random moments, a reply that arrives is the one that was asked for.
func TestNoReplyReachesAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &fakeUpstream{script: greeting(func(n int, c *fakeConn) {
			rnd := rand.New(rand.NewPCG(1, uint64(n)))
			for {
				args, err := c.command()
				if err != nil {
					return
				}
				reply := bulk(args[1])
				switch rnd.IntN(60) {
				case 0:
					return
				case 1:
					c.say("%s", reply[:rnd.IntN(len(reply))])
					return
				case 2:
					c.say("?%s", reply)
				case 3:
					c.hang()
					return
				case 4:
					time.Sleep(5 * time.Second)
					fallthrough
				default:
					c.say("%s", reply)
				}
			}
		})}
		p := up.open(t, Options{Conns: 3, BackoffMax: 100 * time.Millisecond})
		defer time.Sleep(10 * time.Second) // of the bubble: until the fakes are awake and gone
		defer p.Close()
		var clients sync.WaitGroup
		var mu sync.Mutex
		answered, lost := 0, 0
		for id := range 30 {
			clients.Go(func() {
				rnd := rand.New(rand.NewPCG(2, uint64(id)))
				for i := range 200 {
					want := fmt.Sprint(id, ".", i)
					c := p.Do(Request{Proto: 2, Sticky: uint64(id), Raw: cmd("ECHO", want)})
					if rnd.IntN(4) == 0 {
						c.Release()
						continue
					}
					got, err := result(c)
					mu.Lock()
					switch {
					case err != nil:
						lost++
					case got == bulk(want):
						answered++
					default:
						t.Errorf("client %d got %q, want %q", id, got, bulk(want))
					}
					mu.Unlock()
					time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
				}
			})
		}
		clients.Wait()
		if answered < 500 || lost < 50 {
			t.Errorf("%d answered and %d lost: the test no longer tries both", answered, lost)
		}
	})
}

func TestOptions(t *testing.T) {
	for _, tc := range []struct {
		opt  Options
		text string
	}{
		{Options{}, "has no scheme"},
		{Options{URL: "redis://h", Conns: -1}, "Conns is -1"},
		{Options{URL: "redis://h", ReplyTimeout: -1}, "ReplyTimeout is -1ns"},
		{Options{URL: "redis://h", ReplyBytes: -1}, "ReplyBytes is -1"},
		{Options{URL: "redis://h", BackoffMin: 2, BackoffMax: 1}, "BackoffMax 1ns is below BackoffMin 2ns"},
		{Options{URL: "redis://h/16"}, "database 16, but Databases is 16"},
	} {
		p, err := Open(tc.opt)
		if err == nil {
			p.Close()
			t.Errorf("Open(%+v) succeeded, want an error with %q", tc.opt, tc.text)
		} else if !strings.Contains(err.Error(), tc.text) {
			t.Errorf("Open(%+v): %q does not say %q", tc.opt, err, tc.text)
		}
	}
	opt := Options{URL: "rediss://h", TLS: &tls.Config{MinVersion: tls.VersionTLS10}}
	if _, err := opt.check(); err != nil || opt.TLS.MinVersion != tls.VersionTLS12 || opt.TLS.ServerName != "h" {
		t.Errorf("rediss: error %v, TLS minimum %#x and server name %q, want 0x303 and h", err, opt.TLS.MinVersion, opt.TLS.ServerName)
	}
}
