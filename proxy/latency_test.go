package proxy

import (
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
)

func TestLatencyEvents(t *testing.T) {
	clock := store.NewManualClock(1_000_000)
	s := startServerWith(t, Options{Clock: clock}, "--latency-monitor-threshold", "10")
	c := s.dial(t)
	get, debug := s.engine.Table.Lookup([]byte("get")), s.engine.Table.Lookup([]byte("debug"))
	s.latency.command(s, get, 9) // below the threshold
	c.want("LATENCY LATEST", "*[]")
	s.latency.command(s, get, 10)
	s.latency.command(s, get, 30) // the same second: the longest stays
	s.latency.command(s, get, 20)
	clock.Advance(2 * time.Second)
	s.latency.command(s, get, 15)
	s.latency.command(s, debug, 40)
	c.want("LATENCY LATEST", `*[*["command" :1002 :40 :40] *["fast-command" :1002 :15 :30]]`)
	c.want("LATENCY HISTORY fast-command", "*[*[:1000 :30] *[:1002 :15]]")
	graph := c.text("LATENCY", "GRAPH", "fast-command")
	want := "fast-command - high 30 ms, low 15 ms (all time high 30 ms)\n" + strings.Repeat("-", 80) + "\n#\n|\n|\n|_\n\n20\nss\n"
	if strings.ReplaceAll(graph, " \n", "\n") != want {
		t.Errorf("LATENCY GRAPH\n got %q\nwant %q", graph, want)
	}
	if got := c.text("LATENCY", "DOCTOR"); !strings.Contains(got, "2. fast-command: 2 latency spikes (average 22ms, mean deviation 7ms, period 1.00 sec). Worst all time event 30ms.") {
		t.Errorf("LATENCY DOCTOR: %s", got)
	}
	for range 2 * latencySamples {
		clock.Advance(time.Second)
		s.latency.sample(s, eventExpireCycle, 12)
	}
	if _, events := s.latency.snapshot(); len(events[eventExpireCycle].samples) != latencySamples {
		t.Errorf("an event keeps %d samples, want %d", len(events[eventExpireCycle].samples), latencySamples)
	}
	if got := c.text("LATENCY", "GRAPH", "expire-cycle"); len(got) > 4000 {
		t.Errorf("LATENCY GRAPH of a full event has %d bytes", len(got))
	}
	c.want("LATENCY RESET COMMAND none", ":1")
	c.want("LATENCY RESET", ":2")
	c.want("LATENCY LATEST", "*[]")
}

// Both thresholds choose what the engine tells of.
func TestWatchSlow(t *testing.T) {
	s := startServerWith(t, Options{})
	c := s.dial(t)
	for _, tt := range []struct {
		slowlog, latency string
		want             int64
	}{
		{"10000", "0", 10_000_000},
		{"-1", "0", -1},
		{"0", "0", 0},
		{"-1", "5", 5_000_000},
		{"10000", "5", 5_000_000},
		{"1000", "5", 1_000_000},
		{"9223372036854775807", "0", 3_600_000_000_000_000},
		{"-1", "9223372036854775807", 3_600_000_000_000_000_000},
	} {
		c.want("CONFIG SET slowlog-log-slower-than "+tt.slowlog+" latency-monitor-threshold "+tt.latency, "+OK")
		if got := s.engine.SlowAfter.Load(); got != tt.want {
			t.Errorf("slowlog-log-slower-than %s, latency-monitor-threshold %s: told from %d ns on, want %d", tt.slowlog, tt.latency, got, tt.want)
		}
	}
}

func TestHistogram(t *testing.T) {
	s := startServerWith(t, Options{})
	c := s.dial(t)
	s.resetStats()
	u := s.engine.Table.Lookup([]byte("getrange")).Usage()
	u.Histogram[0].Store(90) // below 1.024 µs
	u.Histogram[5].Store(9)  // to 32.768 µs
	u.Histogram[20].Store(1) // to 1.07 s
	defer u.Reset()
	c.want("LATENCY HISTOGRAM GETRANGE none", `*["getrange" *["calls" :100 "histogram_usec" *[:1 :90 :33 :99 :1082130 :100]]]`)
	c.do("HELLO 3")
	c.want("LATENCY HISTOGRAM getrange", `%["getrange" %["calls" :100 "histogram_usec" %[:1 :90 :33 :99 :1082130 :100]]]`)
	h := histogramOf(s.engine.Table.Lookup([]byte("getrange")))
	for _, tt := range []struct{ percent, low, high float64 }{{0, 0, 0.1}, {50, 0.5, 0.6}, {90, 1, 1.03}, {99, 32, 33}, {99.9, 524288, 1073742}, {100, 1073741, 1073742}} {
		if got := h.percentile(tt.percent); got < tt.low || got > tt.high {
			t.Errorf("percentile %v is %v µs, want %v to %v", tt.percent, got, tt.low, tt.high)
		}
	}
	c.want("CONFIG SET latency-tracking no", "+OK")
	c.want("LATENCY HISTOGRAM getrange", "%[]")
}

func TestExpireCycleIsTimed(t *testing.T) {
	s := startServerWith(t, Options{})
	before := s.stats.expireMicros.Load()
	eventually(t, "rounds of active expiry take time", func() bool {
		s.expireCycle()
		return s.stats.expireMicros.Load() > before
	})
}
