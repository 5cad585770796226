package upstream

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pubsub is a fake upstream that knows subscriptions and remembers what it was asked.
type pubsub struct {
	fakeUpstream
	mu    sync.Mutex
	conns map[int]*fakeConn
	asked []string
	mute  func(n int) bool // the n-th connection answers no PING after the handshake
}

func newPubsub() *pubsub {
	f := &pubsub{conns: map[int]*fakeConn{}}
	f.script = greeting(func(n int, c *fakeConn) {
		f.mu.Lock()
		f.conns[n] = c
		f.mu.Unlock()
		subscribed := false
		for {
			args, err := c.command()
			if err != nil {
				return
			}
			if args[0] == "PING" {
				switch {
				case f.mute != nil && f.mute(n):
				case subscribed:
					c.say("*2\r\n$4\r\npong\r\n$0\r\n\r\n")
				default:
					c.say("+PONG\r\n")
				}
				continue
			}
			f.mu.Lock()
			f.asked = append(f.asked, strings.Join(args, " "))
			f.mu.Unlock()
			for _, name := range args[1:] {
				if strings.HasPrefix(name, "secret") {
					c.say("-NOPERM this user has no permissions to access the channel\r\n")
					break
				}
				subscribed = true
				c.say("*3\r\n%s%s:1\r\n", bulk(strings.ToLower(args[0])), bulk(name))
			}
		}
	})
	return f
}

// commands returns what was asked since the last call, sorted.
func (f *pubsub) commands() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.Sort(f.asked)
	s := strings.Join(f.asked, "|")
	f.asked = nil
	return s
}

func (f *pubsub) conn(n int) *fakeConn {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conns[n]
}

func TestSubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := newPubsub()
		p := up.open(t, Options{})
		defer p.Close()
		var heard []string
		s, err := p.NewSubscriber(func(channel, pattern, payload []byte) {
			heard = append(heard, fmt.Sprintf("%s %q %s", channel, pattern, payload))
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		want := func(what, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		synctest.Wait()
		if n := up.dials.Load(); n != 0 {
			t.Errorf("%d dials before the first channel, want 0", n)
		}
		if err := s.Subscribe(nil, "a", "b"); err != nil {
			t.Fatal(err)
		}
		if err := s.Psubscribe(nil, "p*"); err != nil {
			t.Fatal(err)
		}
		want("asked by the time they returned", up.commands(), "PSUBSCRIBE p*|SUBSCRIBE a|SUBSCRIBE b")
		up.conn(0).say("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$5\r\nhello\r\n*4\r\n$8\r\npmessage\r\n$2\r\np*\r\n$2\r\npq\r\n$0\r\n\r\n")
		synctest.Wait()
		want("heard", strings.Join(heard, "|"), `a "" hello|pq "p*" `)

		err = s.Subscribe(nil, "secret", "c")
		if err == nil || err.Error() != "NOPERM this user has no permissions to access the channel" {
			t.Errorf("Subscribe to a channel without the right: %v, want the upstream's NOPERM", err)
		}
		s.Unsubscribe("b", "unknown")
		synctest.Wait()
		want("asked after a refusal and Unsubscribe", up.commands(), "SUBSCRIBE secret c|UNSUBSCRIBE b|UNSUBSCRIBE secret c")

		// Lost: the rest is subscribed again.
		time.Sleep(2 * time.Second)
		up.conn(0).Close()
		synctest.Wait()
		want("asked again after the loss", up.commands(), "PSUBSCRIBE p*|SUBSCRIBE a")
		if n := p.Snapshot(); n.Reconnects != 1 || n.Connected != 1 {
			t.Errorf("after one reconnect: %+v", n)
		}

		// Garbage is a loss as well.
		time.Sleep(2 * time.Second)
		up.conn(1).say("*3\r\n$7\r\nmessage\r\n*0\r\n$1\r\nx\r\n")
		synctest.Wait()
		want("asked again after garbage", up.commands(), "PSUBSCRIBE p*|SUBSCRIBE a")
		up.conn(2).say("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nok\r\n")
		synctest.Wait()
		want("heard after it", heard[len(heard)-1], `a "" ok`)
	})
}

func TestSubscriberOfASilentUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := newPubsub()
		var silent atomic.Bool
		up.mute = func(n int) bool { return n == 0 && silent.Load() }
		p := up.open(t, Options{ReplyTimeout: 10 * time.Second})
		defer p.Close()
		s, err := p.NewSubscriber(func(channel, pattern, payload []byte) {})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Subscribe(nil, "a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if n := up.dials.Load(); n != 1 {
			t.Fatalf("%d dials in 10 quiet minutes with an upstream that answers PING, want 1", n)
		}
		silent.Store(true)
		begin := time.Now()
		err = s.Subscribe(nil, "b")
		wantError(t, "Subscribe at an upstream that went silent", err, ErrUnavailable, "no answer to PING within 5s")
		if d := time.Since(begin); d > 15*time.Second {
			t.Errorf("it took %v, want at most 1.5 times ReplyTimeout", d)
		}
		if err := s.Subscribe(nil, "c"); err != nil {
			t.Errorf("Subscribe over the next connection: %v", err)
		}
		up.commands()
		s.Close()
		s.Close()
		if err := s.Subscribe(nil, "d"); err == nil {
			t.Error("Subscribe after Close succeeded")
		}
	})
}

func TestSubscriberOfAnUpstreamThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := newPubsub()
		up.refuse = func(n int) error {
			if n < 3 {
				return fmt.Errorf("connection refused")
			}
			return nil
		}
		p := up.open(t, Options{})
		defer p.Close()
		s, err := p.NewSubscriber(func(channel, pattern, payload []byte) {})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			wantError(t, "Subscribe", s.Subscribe(nil, name), ErrUnavailable, "connection refused")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := up.commands(); got != "SUBSCRIBE a|SUBSCRIBE b" {
			t.Errorf("asked when it was back: %q, want both channels", got)
		}
		p.Close()
		if err := s.Subscribe(nil, "c"); err == nil {
			t.Error("Subscribe after the pool's Close succeeded")
		}
		if _, err := p.NewSubscriber(nil); err == nil {
			t.Error("NewSubscriber after Close succeeded")
		}
	})
}

func TestCanceledSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := newPubsub()
		up.mute = func(n int) bool { return true }
		p := up.open(t, Options{ReplyTimeout: time.Hour})
		defer p.Close()
		s, err := p.NewSubscriber(func(channel, pattern, payload []byte) {})
		if err != nil {
			t.Fatal(err)
		}
		cancel := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(cancel) })
		if err := s.Subscribe(cancel, "a"); err != ErrCanceled {
			t.Errorf("canceled Subscribe: %v, want ErrCanceled", err)
		}
	})
}
