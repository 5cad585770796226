package proxy

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

// TestLoopsFollowLoad: a loop joins when those there are have no pause, and
// leaves when it is not needed; the clients follow without noticing.
func TestLoopsFollowLoad(t *testing.T) {
	s := startServerWith(t, Options{}, "--event-loops", "3")
	l := &s.loops
	if len(l.all) == 0 {
		if runtime.GOOS == "linux" && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64") {
			t.Fatal("there are no event loops, and there should be")
		}
		t.Skip("there are no event loops on this system")
	}
	const clients = 30
	stop := make(chan struct{}) // stays open if the test fails: then the server ends them
	var asking sync.WaitGroup
	for i := range clients {
		c := s.dial(t)
		c.want("PING", "+PONG")
		asking.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				for range 3 {
					c.send("INCR", fmt.Sprint("n", i))
				}
				for k := range 3 {
					got, want := c.read(), fmt.Sprintf(":%d", 3*(n-1)+k+1)
					if got != want && got != "(closed)" {
						t.Errorf("got %s, want %s", got, want)
					}
					if got != want {
						return
					}
				}
			}
		})
	}
	count := func(i int) int { return l.all[i].Len() }
	if count(0) != clients {
		t.Fatalf("%d clients are on the first loop, want all %d", count(0), clients)
	}
	now := time.Now()
	look := func(elapsed time.Duration) {
		now = now.Add(elapsed)
		l.balance(now)
	}
	look(0)
	for range fullLooks - 1 {
		look(time.Hour) // of which the loop has hardly waited
	}
	if got := l.active.Load(); got != 1 {
		t.Fatalf("%d loops are active after %d looks, want 1", got, fullLooks-1)
	}
	for range 3 * fullLooks {
		look(time.Hour)
	}
	if got := l.active.Load(); got != 3 {
		t.Fatalf("%d loops are active under load, want all 3", got)
	}
	eventually(t, "the clients are spread", func() bool {
		look(time.Hour)
		most := clients/3 + evenedAfter
		return count(0)+count(1)+count(2) == clients && max(count(0), count(1), count(2)) <= most
	})
	eventually(t, "the clients are together", func() bool {
		l.spread(1)
		return count(0) == clients
	})
	close(stop)
	asking.Wait()
	for range 2*slackLooks + 2 {
		time.Sleep(50 * time.Microsecond)
		look(time.Nanosecond) // all the time, and more, the loops have waited
	}
	if got := l.active.Load(); got != 1 {
		t.Fatalf("%d loops are active without load, want 1", got)
	}
}
