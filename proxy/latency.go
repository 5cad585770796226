package proxy

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/latchkey-proxy/latchkey/store/command"
)

const latencyFlags = command.Admin | command.NoScript | command.Loading | command.Stale

// latencyCommands are the Specs of this family, made anew for each server.
func latencyCommands() []*command.Spec {
	return []*command.Spec{{
		Name: "latency", Arity: -2, Access: command.Free, Group: "server", Since: "2.8.13", Complexity: "Depends on subcommand.",
		Summary: "A container for commands about latency.",
		Help: []string{
			"DOCTOR",
			"    Return a human readable latency analysis report.",
			"GRAPH <event>",
			"    Return an ASCII latency graph for the <event> class.",
			"HISTORY <event>",
			"    Return time-latency samples for the <event> class.",
			"LATEST",
			"    Return the latest latency samples for all events.",
			"RESET [<event> ...]",
			"    Reset latency data of one or more <event> classes.",
			"    (default: reset all data for all event classes)",
			"HISTOGRAM [COMMAND ...]",
			"    Return a cumulative distribution of latencies in the format of a histogram for the specified command names.",
			"    If no commands are specified then all histograms are replied.",
		},
		Sub: []*command.Spec{
			{
				Name: "doctor", Arity: 2, Flags: latencyFlags, Access: command.Free, Handler: latencyDoctor,
				Group: "server", Since: "2.8.13", Complexity: "O(1)", Summary: "Says what the latency events point to.",
			},
			{
				Name: "graph", Arity: 3, Flags: latencyFlags, Access: command.Free, Handler: latencyGraph,
				Group: "server", Since: "2.8.13", Complexity: "O(1)", Summary: "Draws the samples of a latency event.", Syntax: "event",
			},
			{
				Name: "histogram", Arity: -2, Flags: latencyFlags, Access: command.Free, Handler: latencyHistogram,
				Group: "server", Since: "7.0.0", Complexity: "O(N) where N is the number of commands with latency information being retrieved.",
				Summary: "Returns how the durations of commands are distributed.", Syntax: "[command [command ...]]",
			},
			{
				Name: "history", Arity: 3, Flags: latencyFlags, Access: command.Free, Handler: latencyHistory,
				Group: "server", Since: "2.8.13", Complexity: "O(1)", Summary: "Returns the samples of a latency event.", Syntax: "event",
			},
			{
				Name: "latest", Arity: 2, Flags: latencyFlags, Access: command.Free, Handler: latencyLatest,
				Group: "server", Since: "2.8.13", Complexity: "O(1)", Summary: "Returns the newest sample of each latency event.",
			},
			{
				Name: "reset", Arity: -2, Flags: latencyFlags, Access: command.Free, Outside: true, Handler: latencyReset,
				Group: "server", Since: "2.8.13", Complexity: "O(1)", Summary: "Forgets the samples of latency events.", Syntax: "[event [event ...]]",
			},
			command.HelpSpec("latency", "2.8.13"),
		},
	}}
}

// The latency events that there are.
const (
	eventCommand     = "command"
	eventFastCommand = "fast-command"
	eventExpireCycle = "expire-cycle"
)

// latencySamples is how many samples an event keeps, as in Redis.
const latencySamples = 160

// latency is the latency monitor: what took longer than
// latency-monitor-threshold.
type latency struct {
	mu     sync.Mutex
	events map[string]*latencyEvent
}

// latencyEvent are the samples of one sort of event, oldest first; at most one
// per second, the longest.
type latencyEvent struct {
	samples []latencySample
	worst   int64 // ms, since the last RESET
}

type latencySample struct{ at, millis int64 }

// command samples a command that took so many milliseconds.
func (l *latency) command(s *Server, spec *command.Spec, millis int64) {
	event := eventCommand
	if spec.Flags&command.Fast != 0 {
		event = eventFastCommand
	}
	l.sample(s, event, millis)
}

// sample takes an event into account if it took long enough.
func (l *latency) sample(s *Server, event string, millis int64) {
	if limit := s.cfg.Int("latency-monitor-threshold"); limit == 0 || millis < limit {
		return
	}
	now := s.seconds()
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.events[event]
	if e == nil {
		if l.events == nil {
			l.events = make(map[string]*latencyEvent)
		}
		e = &latencyEvent{}
		l.events[event] = e
	}
	e.add(now, millis)
}

func (e *latencyEvent) add(at, millis int64) {
	e.worst = max(e.worst, millis)
	if n := len(e.samples); n > 0 && e.samples[n-1].at == at {
		e.samples[n-1].millis = max(e.samples[n-1].millis, millis)
		return
	}
	if len(e.samples) == latencySamples {
		e.samples = slices.Delete(e.samples, 0, 1)
	}
	e.samples = append(e.samples, latencySample{at, millis})
}

// snapshot copies the events, so that no reply is made under the mutex.
func (l *latency) snapshot() (names []string, events map[string]latencyEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events = make(map[string]latencyEvent, len(l.events))
	for name, e := range l.events {
		events[name] = latencyEvent{samples: slices.Clone(e.samples), worst: e.worst}
	}
	return slices.Sorted(maps.Keys(events)), events
}

// watchSlow sets from which duration on the engine tells of a command: the
// lower of what the slow log and the latency monitor want to know.
func (s *Server) watchSlow() {
	after := s.cfg.Int("slowlog-log-slower-than") // µs, negative: never
	if after > int64(time.Hour) {                 // so that it can be given in ns
		after = int64(time.Hour)
	}
	if limit := s.cfg.Int("latency-monitor-threshold"); limit > 0 {
		if micros := min(limit, int64(time.Hour)) * 1000; after < 0 || micros < after {
			after = micros
		}
	}
	if after >= 0 {
		after *= 1000
	}
	s.engine.SlowAfter.Store(after)
}

// expireBudget is how long one round of active expiry may take for each step of
// active-expire-effort.
const expireBudget = 5 * time.Millisecond

// expireCycle is one round of active expiry, with its time taken.
func (s *Server) expireCycle() {
	start := time.Now()
	budget := time.Duration(s.cfg.Int("active-expire-effort")) * expireBudget
	s.store.ExpireCycle(budget)
	took := time.Since(start)
	s.stats.expireMicros.Add(took.Microseconds())
	if took > budget {
		s.stats.expireCapped.Add(1)
	}
	s.latency.sample(s, eventExpireCycle, took.Milliseconds())
}

func latencyHistory(c *command.Call) {
	_, events := asServer(c).latency.snapshot()
	samples := events[string(c.Args[2])].samples
	c.Reply.Array(len(samples))
	for _, sm := range samples {
		c.Reply.Array(2)
		c.Reply.Int(sm.at)
		c.Reply.Int(sm.millis)
	}
}

func latencyLatest(c *command.Call) {
	names, events := asServer(c).latency.snapshot()
	c.Reply.Array(len(names))
	for _, name := range names {
		e := events[name]
		last := e.samples[len(e.samples)-1]
		c.Reply.Array(4)
		c.Reply.BulkString(name)
		c.Reply.Int(last.at)
		c.Reply.Int(last.millis)
		c.Reply.Int(e.worst)
	}
}

func latencyReset(c *command.Call) {
	l := &asServer(c).latency
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.events)
	if len(c.Args) == 2 {
		clear(l.events)
	}
	for _, name := range c.Args[2:] {
		maps.DeleteFunc(l.events, func(event string, _ *latencyEvent) bool { return strings.EqualFold(event, string(name)) })
	}
	c.Reply.Int(int64(n - len(l.events)))
}

func latencyHistogram(c *command.Call) {
	s := asServer(c)
	c.S.FlushStats()
	var specs []*command.Spec
	if s.cfg.Bool("latency-tracking") {
		if len(c.Args) == 2 {
			specs = s.stats.allCommands()
		}
		for _, name := range c.Args[2:] {
			specs = append(specs, s.commandsNamed(name)...)
		}
	}
	var shown []*command.Spec
	var counts []histogram
	for _, spec := range specs {
		if h := histogramOf(spec); h.total != 0 {
			shown, counts = append(shown, spec), append(counts, h)
		}
	}
	r := c.Reply
	r.Map(len(shown))
	for i, spec := range shown {
		r.BulkString(spec.FullName())
		h := &counts[i]
		r.Map(2)
		r.BulkString("calls")
		r.Int(h.total)
		r.BulkString("histogram_usec")
		r.Map(h.used)
		sum := int64(0)
		for b, n := range h.buckets {
			if n != 0 {
				sum += n
				r.Int(bucketMicros(b))
				r.Int(sum)
			}
		}
	}
}

// commandsNamed are the command of a name such as "get" or "config|get", and,
// of a container, its sub-commands.
func (s *Server) commandsNamed(name []byte) []*command.Spec {
	spec := commandNamed(s.engine.Table, name)
	if spec == nil {
		return nil
	}
	return append([]*command.Spec{spec}, spec.Sub...)
}

// histogram is a copy of a command's durations: bucket 0 counts those below
// 1024 ns, each further one those below twice the one before.
type histogram struct {
	buckets [len(command.Usage{}.Histogram)]int64
	total   int64
	used    int // buckets that are not empty
}

func histogramOf(spec *command.Spec) histogram {
	var h histogram
	u := spec.Usage()
	for i := range u.Histogram {
		n := u.Histogram[i].Load()
		h.buckets[i] = n
		h.total += n
		if n != 0 {
			h.used++
		}
	}
	return h
}

// bucketMicros is the upper bound of a bucket as Redis prints it: its histogram
// keeps two significant digits and so reaches a 128th further.
func bucketMicros(bucket int) int64 {
	bound := int64(1024) << bucket
	return (bound + bound/128 - 1) / 1000
}

// percentile is the duration in microseconds below which so many percent of the
// calls were, taken to be spread evenly within a bucket.
func (h *histogram) percentile(percent float64) float64 {
	rank := max(1, percent/100*float64(h.total))
	below := 0.0
	for i, n := range h.buckets {
		if n == 0 {
			continue
		}
		if below+float64(n) >= rank {
			low, high := 0.0, 1.024
			if i > 0 {
				high = 1.024 * float64(int64(1)<<i)
				low = high / 2
			}
			return low + (high-low)*(rank-below)/float64(n)
		}
		below += float64(n)
	}
	return 0
}
