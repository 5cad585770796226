// Package underload is for tests of how long something takes, which run on machines
// that do other things too: a bound is made longer by the share of the processors
// that other processes had meanwhile. On a machine that does nothing else it is as it is.
package underload

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Processors is what the machine's processors have done so far, in time of one.
type Processors struct {
	all, idle, ours time.Duration
}

// Now reads what there is to know; on systems without /proc/stat that is nothing, and
// bounds stay as they are.
func Now() (p Processors) {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal ...
	if len(fields) < 9 || fields[0] != "cpu" {
		return Processors{}
	}
	for i, f := range fields[1:9] {
		n, _ := strconv.ParseInt(f, 10, 64)
		ticks := time.Duration(n) * time.Second / 100
		p.all += ticks
		if i == 3 || i == 4 {
			p.idle += ticks
		}
	}
	ours, ok := used()
	if !ok {
		return Processors{}
	}
	p.ours = ours
	return p
}

// leastShare is that of a machine so busy that nothing can be said of bounds.
const leastShare = 0.1

// Stretch makes a bound as much longer as the processors had less time for this
// process since then: twice as long if half of their time went to others.
func (p Processors) Stretch(bound time.Duration) time.Duration {
	return stretched(p, Now(), bound)
}

func stretched(from, to Processors, bound time.Duration) time.Duration {
	all := to.all - from.all
	if all <= 0 {
		return bound
	}
	others := max(0, all-(to.idle-from.idle)-(to.ours-from.ours))
	share := max(leastShare, 1-float64(others)/float64(all))
	return time.Duration(float64(bound) / share)
}
