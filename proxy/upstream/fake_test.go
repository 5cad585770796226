package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeConn is the upstream's end of a connection.
type fakeConn struct {
	net.Conn
	r    *bufio.Reader
	gone chan struct{} // closed when latchkey closes its end
}

// hang neither reads nor writes until latchkey closes its end.
func (c *fakeConn) hang() { <-c.gone }

// clientEnd tells the fake that it is closed.
type clientEnd struct {
	net.Conn
	once sync.Once
	gone chan struct{}
}

func (c *clientEnd) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.Conn.Close()
}

// command reads one command.
func (c *fakeConn) command() ([]string, error) {
	n, err := c.number('*')
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := c.number('$')
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(c.r, b); err != nil {
			return nil, err
		}
		args[i] = string(b[:size])
	}
	return args, nil
}

func (c *fakeConn) number(sign byte) (int, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != sign {
		return 0, fmt.Errorf("fake upstream: got %q, want %q", line, sign)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

func (c *fakeConn) say(format string, args ...any) {
	fmt.Fprintf(c.Conn, format, args...)
}

// greet answers a handshake with OKs.
func (c *fakeConn) greet() error {
	var replies strings.Builder
	for {
		args, err := c.command()
		if err != nil {
			return err
		}
		if args[0] == "PING" {
			replies.WriteString("+PONG\r\n")
			c.say("%s", replies.String())
			return nil
		}
		replies.WriteString("+OK\r\n")
	}
}

// echo answers every command with its last argument until the connection ends.
func (c *fakeConn) echo() {
	for {
		args, err := c.command()
		if err != nil {
			return
		}
		last := args[len(args)-1]
		c.say("$%d\r\n%s\r\n", len(last), last)
	}
}

// fakeUpstream runs a script for each connection; the n-th connection is given n, from 0.
type fakeUpstream struct {
	script  func(n int, c *fakeConn)
	refuse  func(n int) error // of the n-th dial; may be nil
	delay   time.Duration     // of each dial
	dials   atomic.Int32
	dialing atomic.Int32
	most    atomic.Int32 // dials at the same time
	times   []time.Time
	conns   atomic.Int32
}

func (f *fakeUpstream) dial(ctx context.Context, network, address string) (net.Conn, error) {
	defer f.dialing.Add(-1)
	if now := f.dialing.Add(1); now > f.most.Load() {
		f.most.Store(now)
	}
	n := int(f.dials.Add(1)) - 1
	f.times = append(f.times, time.Now())
	time.Sleep(f.delay)
	if f.refuse != nil {
		if err := f.refuse(n); err != nil {
			return nil, err
		}
	}
	ours, theirs := net.Pipe()
	gone := make(chan struct{})
	nth := int(f.conns.Add(1)) - 1
	go func() {
		defer theirs.Close()
		f.script(nth, &fakeConn{theirs, bufio.NewReader(theirs), gone})
	}()
	return &clientEnd{Conn: ours, gone: gone}, nil
}

// greeting makes a script of what follows the handshake.
func greeting(script func(n int, c *fakeConn)) func(int, *fakeConn) {
	return func(n int, c *fakeConn) {
		if c.greet() == nil {
			script(n, c)
		}
	}
}

func (f *fakeUpstream) open(t testing.TB, opt Options) *Pool {
	t.Helper()
	if opt.URL == "" {
		opt.URL = "redis://fake:1"
	}
	if opt.Conns == 0 {
		opt.Conns = 1
	}
	opt.Dial = f.dial
	if opt.Jitter == nil {
		opt.Jitter = func() float64 { return 1 }
	}
	p, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func cmd(args ...string) []byte { return AppendCommand(nil, args...) }

func request(args ...string) Request { return Request{Proto: 2, Raw: cmd(args...), Sticky: 1} }

// ask does one command and waits.
func ask(p *Pool, req Request) (string, error) {
	return result(p.Do(req))
}

// result waits for a Call and releases it.
func result(c *Call) (string, error) {
	defer c.Release()
	frame, err := c.Wait(nil)
	return string(frame), err
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// wantReply fails the test unless the call was answered so.
func wantReply(t *testing.T, what, got string, err error, want string) {
	t.Helper()
	if err != nil || got != want {
		t.Errorf("%s: reply %q, error %v; want reply %q", what, got, err, want)
	}
}

// wantError fails the test unless err is of that sort, fit for a client and tells text.
func wantError(t *testing.T, what string, err, kind error, text string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: error %v; want one that is %q", what, err, kind)
		return
	}
	if !strings.Contains(err.Error(), text) {
		t.Errorf("%s: error %q does not say %q", what, err, text)
	}
	if strings.ContainsAny(err.Error(), "\r\n") {
		t.Errorf("%s: error %q has a line end", what, err)
	}
}
