package underload

import (
	"testing"
	"time"
)

func TestStretch(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		to   Processors
		want time.Duration
	}{
		{Processors{}, s},                     // unknown
		{Processors{10 * s, 10 * s, 0}, s},    // idle
		{Processors{10 * s, 4 * s, 6 * s}, s}, // ours alone
		{Processors{10 * s, 2 * s, 3 * s}, 2 * s},
		{Processors{10 * s, 0, 0}, 10 * s},
		{Processors{10 * s, 5 * s, 7 * s}, s}, // ticks are coarse
	} {
		if got := stretched(Processors{}, tt.to, s); got.Round(time.Millisecond) != tt.want {
			t.Errorf("after %+v a second is stretched to %v, want %v", tt.to, got, tt.want)
		}
	}
	before := Now()
	for begun := time.Now(); time.Since(begun) < 100*time.Millisecond; {
	}
	if after := Now(); before.all != 0 && (after.all <= before.all || after.ours-before.ours <= 0) {
		t.Errorf("a tenth of a second of work took the processors from %+v to %+v", before, after)
	}
}
