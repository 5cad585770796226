package command_test

import (
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// usage is what a command has counted, by the name it has in the table.
func usage(h *harness, name string) *command.Usage {
	return h.engine.Table.Lookup([]byte(name)).Usage()
}

// Commands that share a look at the clock are counted as if each had its own.
func TestRunsAreCounted(t *testing.T) {
	for _, slow := range []time.Duration{-1, 0, time.Hour} {
		h := newHarness(t, store.Options{})
		told := 0
		h.engine.SlowAfter.Store(int64(slow))
		h.engine.Slow = func(*command.Call, int64) { told++ }
		began := time.Now()
		h.s.BeginBatch()
		for range 40 {
			h.do("SETNX k v")
		}
		h.do("LPUSH l v")
		h.do("GET l") // an error
		for range 3 {
			h.do("GET k")
		}
		h.do("SET k " + strings.Repeat("x", 4000))
		h.do("GET k")
		h.s.FlushStats()
		most := int64(time.Since(began))
		sum := int64(0)
		for name, want := range map[string][2]int64{"setnx": {40, 0}, "lpush": {1, 0}, "get": {5, 1}, "set": {1, 0}} {
			u := usage(h, name)
			sum += u.Nanos.Load()
			if u.Calls.Load() != want[0] || u.Failed.Load() != want[1] {
				t.Errorf("slow after %v: %s has %d calls, %d of them failed, want %d", slow, name, u.Calls.Load(), u.Failed.Load(), want)
			}
		}
		if sum <= 0 || sum > most {
			t.Errorf("slow after %v: the commands took %d ns of %d", slow, sum, most)
		}
		want := 0
		if slow == 0 {
			want = 47 // who wants to hear of all hears of each
		}
		if told != want {
			t.Errorf("slow after %v: told of %d commands, want %d", slow, told, want)
		}
	}
}
