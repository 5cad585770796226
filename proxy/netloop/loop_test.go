//go:build linux && (amd64 || arm64)

package netloop

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const soon = 20 * time.Second

// server has a loop serve what a function says, for each connection accepted.
type server struct {
	t     *testing.T
	loop  *Loop
	l     net.Listener
	alive sync.WaitGroup
	mu    sync.Mutex
	conns []*Conn
}

// lines is a Handler that answers lines. do is what a line asks for.
type lines struct {
	s       *server
	c       *Conn
	in, out []byte
	ending  bool
	turns   atomic.Int64
	ended   atomic.Int64
	acting  atomic.Int64
	do      func(h *lines, line string)
}

func (h *lines) enter() {
	if h.acting.Add(1) != 1 {
		h.s.t.Error("two goroutines act for one connection")
	}
}

func (h *lines) Turn() Verdict {
	h.enter()
	defer h.acting.Add(-1)
	h.turns.Add(1)
	var buf [4096]byte
	n, err := h.c.TryRead(buf[:])
	h.in = append(h.in, buf[:n]...)
	for {
		line, rest, found := bytes.Cut(h.in, []byte("\n"))
		if !found {
			break
		}
		text := string(line)
		h.in = append(h.in[:0], rest...)
		h.do(h, text)
	}
	switch {
	case h.ending || err != nil && err != ErrAgain:
		return Ended
	case len(h.out) > 0:
		return Answered
	}
	return Idle
}

func (h *lines) Answer() Verdict {
	h.enter()
	defer h.acting.Add(-1)
	n, err := h.c.TryWrite(h.out)
	if err == nil && n < len(h.out) {
		h.c.Leave()
		_, err = h.c.Write(h.out[n:])
	}
	h.out = h.out[:0]
	if err != nil {
		return Ended
	}
	return Idle
}

func (h *lines) End() {
	h.enter()
	defer h.acting.Add(-1)
	if h.ended.Add(1) != 1 {
		h.s.t.Error("End was called twice")
	}
	h.s.alive.Done()
}

func echo(h *lines, line string) { h.out = append(append(h.out, line...), '\n') }

func serve(t *testing.T, network string, do func(h *lines, line string)) *server {
	t.Helper()
	loop, err := New(true)
	if err != nil {
		t.Fatal(err)
	}
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, loop: loop, l: l}
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c, err := loop.Take(conn)
			if err != nil {
				t.Error(err)
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			s.alive.Add(1)
			c.Start(&lines{s: s, c: c, do: do})
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-accepting
		s.mu.Lock()
		for _, c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
		s.alive.Wait()
		loop.Close()
		for _, c := range s.conns {
			if c.FD() != -1 {
				t.Error("a socket was left open")
			}
		}
	})
	return s
}

func (s *server) dial() net.Conn {
	s.t.Helper()
	c, err := net.Dial(s.l.Addr().Network(), s.l.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(soon))
	return c
}

func ask(t *testing.T, c net.Conn, line string) string {
	t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		t.Fatal(err)
	}
	return hear(t, c)
}

// hear reads one line.
func hear(t *testing.T, c net.Conn) string {
	t.Helper()
	var b []byte
	one := make([]byte, 1)
	for {
		if _, err := io.ReadFull(c, one); err != nil {
			t.Fatalf("after %q: %v", b, err)
		}
		if one[0] == '\n' {
			return string(b)
		}
		b = append(b, one[0])
	}
}

func TestEcho(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			s := serve(t, network, echo)
			var wg sync.WaitGroup
			for i := range 20 {
				c := s.dial()
				wg.Go(func() {
					for j := range 200 {
						want := fmt.Sprint(i, " ", j)
						if got := ask(t, c, want); got != want {
							t.Errorf("got %q, want %q", got, want)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestHalves: what a turn leaves unread, or finds half sent, is not forgotten.
func TestHalves(t *testing.T) {
	s := serve(t, "tcp", echo)
	c := s.dial()
	big := bytes.Repeat([]byte("x"), 10*4096+17) // several reads, each of which fills the buffer
	if got := ask(t, c, string(big)); got != string(big) {
		t.Errorf("%d bytes came back of %d", len(got), len(big))
	}
	for _, part := range []string{"a", "b", "c\nd", "\n"} {
		io.WriteString(c, part)
		time.Sleep(2 * time.Millisecond)
	}
	if got := hear(t, c) + hear(t, c); got != "abcd" {
		t.Errorf("got %q", got)
	}
}

// TestHalfClosed: what was sent before the end is answered.
func TestHalfClosed(t *testing.T) {
	s := serve(t, "tcp", echo)
	for range 50 {
		c := s.dial()
		io.WriteString(c, "one\ntwo\n")
		c.(*net.TCPConn).CloseWrite()
		all, err := io.ReadAll(c)
		if err != nil {
			t.Fatal(err)
		}
		if string(all) != "one\ntwo\n" {
			t.Errorf("got %q", all)
		}
	}
}

// TestStuck: a Handler that does not return loses the loop, and has it again when
// it has returned.
func TestStuck(t *testing.T) {
	stuck := make(chan struct{})
	s := serve(t, "tcp", func(h *lines, line string) {
		if line == "wait" {
			<-stuck
		}
		echo(h, line)
	})
	var waiting []net.Conn
	for range 5 {
		c := s.dial()
		io.WriteString(c, "wait\nmore\n")
		waiting = append(waiting, c)
	}
	other := s.dial()
	began := time.Now()
	for range 100 {
		ask(t, other, "x")
	}
	t.Logf("100 requests beside 5 stuck ones took %v", time.Since(began))
	io.WriteString(waiting[0], "behind\n")
	close(stuck)
	for i, c := range waiting {
		if got := hear(t, c) + " " + hear(t, c); got != "wait more" {
			t.Errorf("got %q", got)
		}
		if i == 0 {
			if got := hear(t, c); got != "behind" {
				t.Errorf("got %q, want what came while its connection was away", got)
			}
		}
		if got := ask(t, c, "again"); got != "again" {
			t.Errorf("got %q", got)
		}
	}
}

// TestLeave: a Handler that says so before it waits keeps nobody, not even for
// as long as the watch needs.
func TestLeave(t *testing.T) {
	other := make(chan string)
	s := serve(t, "tcp", func(h *lines, line string) {
		switch line {
		case "wait":
			h.c.Leave()
			h.c.Leave() // once is enough
			line = <-other
		case "tell":
			h.c.Leave()
			other <- "told"
		}
		echo(h, line)
	})
	a, b := s.dial(), s.dial()
	for range 300 {
		io.WriteString(a, "wait\n")
		if got := ask(t, b, "tell"); got != "tell" {
			t.Fatalf("got %q", got)
		}
		if got := hear(t, a); got != "told" {
			t.Fatalf("got %q", got)
		}
	}
}

// TestSlowReader: one who does not read is waited for beside the loop, and gets
// everything.
func TestSlowReader(t *testing.T) {
	const size = 20 << 20
	s := serve(t, "tcp", func(h *lines, line string) {
		if line == "big" {
			h.out = append(h.out, bytes.Repeat([]byte("y"), size)...)
			return
		}
		echo(h, line)
	})
	slow, other := s.dial(), s.dial()
	io.WriteString(slow, "big\n")
	for range 100 {
		ask(t, other, "x")
	}
	if n, err := io.CopyN(io.Discard, slow, size); err != nil {
		t.Fatalf("%d bytes came: %v", n, err)
	}
	if got := ask(t, slow, "and on"); got != "and on" {
		t.Errorf("got %q", got)
	}
}

// TestFair: one who never stops sending does not keep the others.
func TestFair(t *testing.T) {
	s := serve(t, "tcp", echo)
	greedy, other := s.dial(), s.dial()
	var wg sync.WaitGroup
	wg.Go(func() {
		batch := bytes.Repeat([]byte("0123456789\n"), 10000)
		for {
			if _, err := greedy.Write(batch); err != nil {
				return
			}
		}
	})
	wg.Go(func() { io.Copy(io.Discard, greedy) })
	for range 200 {
		ask(t, other, "x")
	}
	greedy.Close()
	wg.Wait()
}

// TestClose: any goroutine may end a connection: one that is idle, that is stuck,
// that is blocked in writing.
func TestClose(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, "tcp", func(h *lines, line string) {
		switch line {
		case "stuck":
			<-release
		case "big":
			h.out = append(h.out, bytes.Repeat([]byte("y"), 50<<20)...)
		}
		echo(h, line)
	})
	idle, stuck, writing := s.dial(), s.dial(), s.dial()
	ask(t, idle, "x")
	io.WriteString(stuck, "stuck\n")
	io.WriteString(writing, "big\n")
	time.Sleep(20 * time.Millisecond)
	s.mu.Lock()
	for _, c := range s.conns {
		c.Close()
		c.Close()
	}
	s.mu.Unlock()
	for _, c := range []net.Conn{idle, stuck, writing} {
		if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Log(err) // a reset is an end, too
		}
	}
	close(release)
}

// TestBeside: while its Handler is away, a connection is an ordinary net.Conn.
func TestBeside(t *testing.T) {
	verdict := make(chan error)
	s := serve(t, "tcp", func(h *lines, line string) {
		if line != "read" {
			echo(h, line)
			return
		}
		h.c.Leave()
		var buf [100]byte
		n, err := h.c.Read(buf[:]) // blocks
		h.out = append(h.out, buf[:n]...)
		if err == nil {
			h.c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			_, err = h.c.Read(buf[:])
		}
		verdict <- err
		h.c.SetReadDeadline(time.Time{})
		go func() {
			time.Sleep(5 * time.Millisecond)
			h.c.SetReadDeadline(time.Unix(1, 0)) // ends the Read under way
		}()
		_, err = h.c.Read(buf[:])
		verdict <- err
		h.c.SetReadDeadline(time.Time{})
	})
	c := s.dial()
	io.WriteString(c, "read\n")
	time.Sleep(5 * time.Millisecond)
	io.WriteString(c, "direct\n")
	for range 2 {
		if err := <-verdict; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	}
	if got := hear(t, c); got != "direct" {
		t.Errorf("got %q", got)
	}
	if got := ask(t, c, "back on the loop"); got != "back on the loop" {
		t.Errorf("got %q", got)
	}
}

// TestPoke: a turn can be asked for, also of one who is away.
func TestPoke(t *testing.T) {
	hold := make(chan struct{})
	var h1 atomic.Pointer[lines]
	s := serve(t, "tcp", func(h *lines, line string) {
		h1.Store(h)
		if line == "away" {
			h.c.Leave()
			<-hold
		}
		echo(h, line)
	})
	c := s.dial()
	ask(t, c, "x")
	h := h1.Load()
	before := h.turns.Load()
	h.c.Poke()
	for deadline := time.Now().Add(soon); h.turns.Load() == before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no turn came")
		}
	}
	io.WriteString(c, "away\n")
	time.Sleep(5 * time.Millisecond)
	h.c.Poke()
	close(hold)
	if got := hear(t, c); got != "away" {
		t.Errorf("got %q", got)
	}
}

// TestGive: connections move between loops while they are used, poked, stuck and
// closed, and lose nothing.
func TestGive(t *testing.T) {
	s := serve(t, "tcp", func(h *lines, line string) {
		if line[0] == 's' {
			h.c.Leave()
			time.Sleep(time.Millisecond)
		}
		echo(h, line)
	})
	other, err := New(false)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var moving, asking sync.WaitGroup
	moving.Go(func() {
		for from, to := s.loop, other; ; from, to = to, from {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Microsecond):
			}
			from.Give(7, to)
			s.mu.Lock()
			for _, c := range s.conns {
				c.Poke()
			}
			s.mu.Unlock()
		}
	})
	var clients []net.Conn
	for i := range 10 {
		c := s.dial()
		clients = append(clients, c)
		asking.Go(func() {
			for j := range 300 {
				want := fmt.Sprint("e", i, " ", j)
				if j%50 == 0 {
					want = "s" + want
				}
				if got := ask(t, c, want); got != want {
					t.Errorf("got %q, want %q", got, want)
					return
				}
			}
		})
	}
	asking.Wait()
	close(stop)
	moving.Wait()
	// The second answer is of a turn after the letters that were left until now,
	// so that none of them moves a connection later.
	for _, c := range clients {
		ask(t, c, "e1")
		ask(t, c, "e2")
	}
	eventually(t, "nobody is on the way", func() bool { return s.loop.Len()+other.Len() == 10 })
	eventually(t, "all are on one loop", func() bool {
		other.Give(10, s.loop) // again and again: one that is still on its way back stays
		return s.loop.Len() == 10 && other.Len() == 0
	})
	other.Close()
	if s.loop.Waited() == 0 {
		t.Error("a loop has never waited")
	}
}

func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	for deadline := time.Now().Add(soon); !yes(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("did not come true within %v: %s", soon, what)
		}
	}
}

// TestMayhem mixes all of it, so that connections come, go, leave, are stuck and
// are closed while the role changes hands.
func TestMayhem(t *testing.T) {
	s := serve(t, "tcp", func(h *lines, line string) {
		switch line[0] {
		case 's':
			time.Sleep(7 * time.Millisecond) // long enough to lose the loop
		case 'l':
			h.c.Leave()
			time.Sleep(time.Millisecond)
		case 'q':
			h.ending = true
		}
		echo(h, line)
	})
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			for j := range 12 {
				c := s.dial()
				for k := range 12 {
					line := fmt.Sprint(string("eelese"[(i+j+k)%6]), i, " ", j, " ", k)
					if got := ask(t, c, line+"\n"+line); got != line {
						t.Errorf("got %q, want %q", got, line)
						return
					}
					if got := hear(t, c); got != line {
						t.Errorf("got %q, want %q", got, line)
						return
					}
				}
				switch j % 3 {
				case 0:
					c.Close()
				case 1:
					io.WriteString(c, "q\n")
					io.Copy(io.Discard, c)
				}
			}
		})
	}
	wg.Wait()
}
