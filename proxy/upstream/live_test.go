package upstream

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

func openLive(t testing.TB, opt Options) *Pool {
	t.Helper()
	p, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestLiveOrder(t *testing.T) {
	p := openLive(t, Options{URL: "unix://" + transcript.StartJudge(t).Socket})
	const clients, each = 40, 250
	var running sync.WaitGroup
	for id := range clients {
		running.Go(func() {
			var calls []*Call
			list := fmt.Sprint("list", id)
			for i := range each {
				calls = append(calls, p.Do(Request{DB: id % 2, Proto: 2 + id/2%2, Sticky: uint64(id + 1), Raw: cmd("RPUSH", list, fmt.Sprint(i))}))
			}
			for i, c := range calls {
				got, err := result(c)
				wantReply(t, fmt.Sprintf("client %d, RPUSH %d", id, i), got, err, fmt.Sprintf(":%d\r\n", i+1))
			}
			var want strings.Builder
			fmt.Fprintf(&want, "*%d\r\n", each)
			for i := range each {
				want.WriteString(bulk(fmt.Sprint(i)))
			}
			got, err := ask(p, Request{DB: id % 2, Proto: 2, Sticky: uint64(id + 1), Raw: cmd("LRANGE", list, "0", "-1")})
			wantReply(t, fmt.Sprintf("client %d: order of the pushes", id), got, err, want.String())
		})
	}
	running.Wait()
	for db := range 3 {
		got, err := ask(p, Request{DB: db, Proto: 2, Raw: cmd("DBSIZE")})
		wantReply(t, fmt.Sprint("DBSIZE of database ", db), got, err, fmt.Sprintf(":%d\r\n", []int{20, 20, 0}[db]))
	}
}

func TestLiveReplies(t *testing.T) {
	p := openLive(t, Options{URL: "unix://:secret@" + transcript.StartJudge(t, "--requirepass", "secret", "--databases", "4").Socket})
	big := strings.Repeat("x", 5<<20)
	for _, tc := range []struct {
		proto int
		args  []string
		want  string
	}{
		{2, []string{"SET", "big", big}, "+OK\r\n"},
		{2, []string{"GET", "big"}, bulk(big)},
		{2, []string{"GET", "none"}, "$-1\r\n"},
		{3, []string{"GET", "none"}, "_\r\n"},
		{2, []string{"HSET", "h", "f", "v"}, ":1\r\n"},
		{2, []string{"HGETALL", "h"}, "*2\r\n$1\r\nf\r\n$1\r\nv\r\n"},
		{3, []string{"HGETALL", "h"}, "%1\r\n$1\r\nf\r\n$1\r\nv\r\n"},
		{2, []string{"LPOP", "h"}, "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
		{2, []string{"EVAL", "return {1,{2,{}}}", "0"}, "*2\r\n:1\r\n*2\r\n:2\r\n*0\r\n"},
		{3, []string{"DEBUG", "PROTOCOL", "attrib"}, "|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n$39\r\nSome real reply following the attribute\r\n"},
	} {
		got, err := ask(p, Request{Proto: tc.proto, Sticky: 1, Raw: cmd(tc.args...)})
		if err != nil || got != tc.want {
			t.Errorf("RESP%d %.60q: reply %.100q, error %v; want %.100q", tc.proto, tc.args, got, err, tc.want)
		}
	}
	c := p.DoBlock(Request{Proto: 2, Sticky: 1}, cmd("MULTI"), cmd("INCR", "n"), cmd("INCR", "n"), cmd("EXEC"))
	got, err := result(c)
	wantReply(t, "MULTI block", got, err, "*2\r\n:1\r\n:2\r\n")
	_, err = ask(p, Request{DB: 9, Proto: 2, Raw: cmd("PING")})
	wantError(t, "database 9 of an upstream with 4", err, ErrUnavailable, "it answered SELECT with ERR DB index is out of range")
}

func TestLiveWrongPassword(t *testing.T) {
	socket := transcript.StartJudge(t, "--requirepass", "secret").Socket
	for url, text := range map[string]string{
		"unix://:guess@" + socket: "with WRONGPASS invalid username-password pair",
		"unix://" + socket:        "with NOAUTH Authentication required.",
	} {
		p := openLive(t, Options{URL: url})
		for proto := 2; proto <= 3; proto++ {
			_, err := ask(p, Request{Proto: proto, Raw: cmd("PING")})
			wantError(t, url, err, ErrUnavailable, text)
		}
	}
}

// While an administrator kills connections, each reply that arrives is the right one.
func TestLiveKilledConnections(t *testing.T) {
	p := openLive(t, Options{URL: "unix://" + transcript.StartJudge(t).Socket, BackoffMax: time.Millisecond, BackoffMin: time.Millisecond})
	admin := openLive(t, Options{URL: p.opt.URL, Conns: 1})
	var running sync.WaitGroup
	var mu sync.Mutex
	answered, lost := 0, 0
	for id := range 8 {
		running.Go(func() {
			rnd := rand.New(rand.NewPCG(3, uint64(id)))
			for i := range 300 {
				if i%50 == 49 {
					ask(admin, Request{Proto: 2, Raw: cmd("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")})
				}
				<-p.gate.whenUp()
				want := fmt.Sprint(id, ".", i)
				got, err := ask(p, Request{Proto: 2, Sticky: rnd.Uint64(), Raw: cmd("ECHO", want)})
				mu.Lock()
				if err != nil {
					lost++
				} else if answered++; got != bulk(want) {
					t.Errorf("client %d got %q, want %q", id, got, bulk(want))
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	if answered == 0 || lost == 0 {
		t.Errorf("%d answered and %d lost: the test no longer tries both", answered, lost)
	}
	t.Logf("%d answered, %d lost", answered, lost)
}

func TestLiveSubscriber(t *testing.T) {
	p := openLive(t, Options{URL: "unix://" + transcript.StartJudge(t).Socket})
	heard := make(chan string, 10)
	s, err := p.NewSubscriber(func(channel, pattern, payload []byte) {
		heard <- fmt.Sprintf("%s %q %s", channel, pattern, payload)
	})
	if err != nil {
		t.Fatal(err)
	}
	publish := func(receivers int, want ...string) {
		t.Helper()
		got, err := ask(p, Request{Proto: 2, Raw: cmd("PUBLISH", "news", "hello")})
		wantReply(t, "PUBLISH", got, err, fmt.Sprintf(":%d\r\n", receivers))
		for _, w := range want {
			if got := <-heard; got != w {
				t.Errorf("heard %q, want %q", got, w)
			}
		}
	}
	if err := s.Subscribe(nil, "news"); err != nil {
		t.Fatal(err)
	}
	publish(1, `news "" hello`)
	if err := s.Psubscribe(nil, "n*"); err != nil {
		t.Fatal(err)
	}
	publish(2, `news "" hello`, `news "n*" hello`)
	got, err := ask(p, Request{Proto: 2, Raw: cmd("CLIENT", "KILL", "TYPE", "pubsub")})
	wantReply(t, "CLIENT KILL", got, err, ":1\r\n")
	// A confirmation over the new connection comes after all that is subscribed again. The
	// first tries may still meet the old one.
	for s.Subscribe(nil, "other") != nil {
		<-p.gate.whenUp()
	}
	publish(2, `news "" hello`, `news "n*" hello`)
	s.Unsubscribe("news", "other")
	s.Punsubscribe("n*")
	if err := s.Subscribe(nil, "last"); err != nil { // upstream answers it after the two before
		t.Fatal(err)
	}
	publish(0)
	s.Close()
	if n := len(heard); n != 0 {
		t.Errorf("%d messages more than expected", n)
	}
}
