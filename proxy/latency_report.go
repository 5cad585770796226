package proxy

import (
	"fmt"
	"strings"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// latencyDoctor says in words what the samples show and what to do about it.
func latencyDoctor(c *command.Call) {
	s := asServer(c)
	names, events := s.latency.snapshot()
	threshold := s.cfg.Int("latency-monitor-threshold")
	var b strings.Builder
	switch {
	case len(names) == 0 && threshold == 0:
		b.WriteString("The latency monitor is off. CONFIG SET latency-monitor-threshold <milliseconds> switches it on.\n")
	case len(names) == 0:
		fmt.Fprintf(&b, "Nothing has taken %d ms or longer since the latency monitor was switched on or reset.\n", threshold)
	default:
		b.WriteString("These events took longer than latency-monitor-threshold:\n\n")
		for i, name := range names {
			describeEvent(&b, i+1, name, events[name], s.seconds())
		}
		b.WriteString("\nWhat may help:\n\n")
		s.adviseOn(&b, events)
	}
	c.Reply.Verbatim("txt", b.String())
}

func describeEvent(b *strings.Builder, number int, name string, e latencyEvent, now int64) {
	n := int64(len(e.samples))
	sum := int64(0)
	for _, sm := range e.samples {
		sum += sm.millis
	}
	mean := sum / n
	deviation := int64(0)
	for _, sm := range e.samples {
		deviation += max(sm.millis-mean, mean-sm.millis)
	}
	period := max(1, now-e.samples[0].at)
	fmt.Fprintf(b, "%d. %s: %d latency spikes (average %dms, mean deviation %dms, period %.2f sec). Worst all time event %dms.\n",
		number, name, n, mean, deviation/n, float64(period)/float64(n), e.worst)
}

func (s *Server) adviseOn(b *strings.Builder, events map[string]latencyEvent) {
	advise := func(format string, args ...any) { fmt.Fprintf(b, "- "+format+"\n", args...) }
	if _, ok := events[eventCommand]; ok {
		micros := s.cfg.Int("latency-monitor-threshold") * 1000
		switch after := s.cfg.Int("slowlog-log-slower-than"); {
		case after < 0:
			advise("The slow log is off: CONFIG SET slowlog-log-slower-than %d logs the commands behind these events.", micros)
		case after > micros && micros > 0:
			advise("The slow log misses some of these commands: CONFIG SET slowlog-log-slower-than %d.", micros)
		default:
			advise("SLOWLOG GET names the commands.")
		}
		advise("A command's time includes its wait for keys that a script or transaction holds: see latchkey_lock_waits in INFO.")
	}
	if _, ok := events[eventFastCommand]; ok {
		advise("Commands that do little took long: the machine has too few processors for what runs on it, is a busy virtual machine, or a key is held for long by scripts.")
	}
	if _, ok := events[eventExpireCycle]; ok {
		advise("Many keys expire in the same moment: spread their times to live.")
	}
}

// The size of LATENCY GRAPH.
const (
	graphColumns = 80
	graphRows    = 4
)

// graphSteps fill the rows of a column from low to high.
const graphSteps = "_o#"

func latencyGraph(c *command.Call) {
	s := asServer(c)
	_, events := s.latency.snapshot()
	name := string(c.Args[2])
	e, ok := events[name]
	if !ok {
		c.Err("ERR No samples available for event '" + name + "'")
		return
	}
	low, high := e.samples[0].millis, e.samples[0].millis
	for _, sm := range e.samples {
		low, high = min(low, sm.millis), max(high, sm.millis)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s - high %d ms, low %d ms (all time high %d ms)\n", name, high, low, e.worst)
	b.WriteString(strings.Repeat("-", graphColumns) + "\n")
	now := s.seconds()
	for at := 0; at < len(e.samples); at += graphColumns {
		if at > 0 {
			b.WriteByte('\n')
		}
		drawSamples(&b, e.samples[at:min(len(e.samples), at+graphColumns)], low, high, now)
	}
	c.Reply.Verbatim("txt", b.String())
}

// drawSamples draws one column per sample, and below it how long ago it was,
// from top to bottom.
func drawSamples(b *strings.Builder, samples []latencySample, low, high, now int64) {
	steps := int64(graphRows * len(graphSteps))
	line := make([]byte, len(samples))
	for row := graphRows - 1; row >= 0; row-- {
		base := int64(row * len(graphSteps))
		for i, sm := range samples {
			step := min(steps-1, (sm.millis-low)*steps/max(1, high-low))
			switch in := step - base; {
			case in < 0:
				line[i] = ' '
			case in < int64(len(graphSteps)):
				line[i] = graphSteps[in]
			default:
				line[i] = '|'
			}
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	labels := make([]string, len(samples))
	longest := 0
	for i, sm := range samples {
		labels[i] = ago(now - sm.at)
		longest = max(longest, len(labels[i]))
	}
	for row := range longest {
		for i, label := range labels {
			line[i] = ' '
			if row < len(label) {
				line[i] = label[row]
			}
		}
		b.Write(line)
		b.WriteByte('\n')
	}
}

// ago is a number of seconds in the largest unit that it fills.
func ago(seconds int64) string {
	switch {
	case seconds < 60:
		return fmt.Sprintf("%ds", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%dm", seconds/60)
	case seconds < 86400:
		return fmt.Sprintf("%dh", seconds/3600)
	}
	return fmt.Sprintf("%dd", seconds/86400)
}
