package histories

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// processors is what the machine's processors have done so far, in time of one.
type processors struct {
	all, idle, ours time.Duration
}

// readProcessors reads what there is to know; on systems without /proc/stat that
// is nothing.
func readProcessors() (p processors) {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal ...
	if len(fields) < 9 || fields[0] != "cpu" {
		return processors{}
	}
	for i, f := range fields[1:9] {
		n, _ := strconv.ParseInt(f, 10, 64)
		ticks := time.Duration(n) * time.Second / 100
		p.all += ticks
		if i == 3 || i == 4 {
			p.idle += ticks
		}
	}
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var used unix.Rusage
		if unix.Getrusage(who, &used) != nil {
			return processors{}
		}
		p.ours += time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	return p
}

// leastShare is that of a machine so busy that nothing can be said of bounds.
const leastShare = 0.1

// stretch makes a bound as much longer as the processors had less time for this
// process since then: twice as long if half of their time went to others. On a
// machine that does nothing else the bound is as it is.
func (p processors) stretch(bound time.Duration) time.Duration {
	return stretched(p, readProcessors(), bound)
}

func stretched(from, to processors, bound time.Duration) time.Duration {
	all := to.all - from.all
	if all <= 0 {
		return bound
	}
	others := max(0, all-(to.idle-from.idle)-(to.ours-from.ours))
	share := max(leastShare, 1-float64(others)/float64(all))
	return time.Duration(float64(bound) / share)
}

func TestStretch(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		to   processors
		want time.Duration
	}{
		{processors{}, s},                     // unknown
		{processors{10 * s, 10 * s, 0}, s},    // idle
		{processors{10 * s, 4 * s, 6 * s}, s}, // ours alone
		{processors{10 * s, 2 * s, 3 * s}, 2 * s},
		{processors{10 * s, 0, 0}, 10 * s},
		{processors{10 * s, 5 * s, 7 * s}, s}, // ticks are coarse
	} {
		if got := stretched(processors{}, tt.to, s); got.Round(time.Millisecond) != tt.want {
			t.Errorf("after %+v a second is stretched to %v, want %v", tt.to, got, tt.want)
		}
	}
	before := readProcessors()
	for begun := time.Now(); time.Since(begun) < 100*time.Millisecond; {
	}
	if after := readProcessors(); before.all != 0 && (after.all <= before.all || after.ours-before.ours <= 0) {
		t.Errorf("a tenth of a second of work took the processors from %+v to %+v", before, after)
	}
}
