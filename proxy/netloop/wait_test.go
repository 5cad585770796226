//go:build linux && (amd64 || arm64)

package netloop

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// The collector stops a loop whose waits are brisk, again and again, and nothing
// is lost. (With a wait that could not be stopped, this ends at the test's
// time-out.)
func TestBriskWaitsLetOthersRun(t *testing.T) {
	s := serve(t, "tcp", echo)
	var asking sync.WaitGroup
	var done atomic.Bool
	for i := range 4 {
		c := s.dial()
		asking.Go(func() {
			for n := 0; !done.Load(); n++ {
				line := fmt.Sprint(i, n)
				if got := ask(t, c, line); got != line {
					t.Errorf("asked %q and heard %q", line, got)
					return
				}
			}
		})
	}
	for range 30 {
		runtime.GC()
		runtime.Gosched()
	}
	done.Store(true)
	asking.Wait()
}

// A loop that may keep its processor hears what comes after it has waited in vain.
func TestKeptWaitEnds(t *testing.T) {
	for _, keep := range []bool{true, false} {
		l, err := open(keep)
		if err != nil {
			t.Fatal(err)
		}
		l.brisk = keep
		if n, errno := l.fetch(keptFor); n != 0 || errno != 0 {
			t.Errorf("keep %v: nothing was sent, and %d events came (%v)", keep, n, errno)
		}
		woken := make(chan struct{})
		go func() {
			defer close(woken)
			l.wake()
		}()
		if n, errno := l.wait(); n != 1 || errno != 0 {
			t.Errorf("keep %v: after a wake-up %d events came (%v)", keep, n, errno)
		}
		<-woken
		l.release()
	}
}
