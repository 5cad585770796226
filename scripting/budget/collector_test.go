package budget

import "testing"

// TestCollectorSteps: a loop that steps until a cycle has ended comes to its end,
// whatever the script has taken.
func TestCollectorSteps(t *testing.T) {
	for _, taken := range []int64{0, 1 << 20, 1 << 28} {
		var c Collector
		steps := 1
		for ; steps < 1<<20; steps++ {
			if done, _ := c.Do("step", 0, taken); done == 1 {
				break
			}
		}
		if want := int(taken>>10) + emptyHeap>>10; steps != want {
			t.Errorf("with %d bytes a cycle took %d steps, want %d", taken, steps, want)
		}
		if done, _ := c.Do("step", 0, taken); done == 1 {
			t.Errorf("with %d bytes the next cycle ended at its first step", taken)
		}
		for _, n := range []int{1 << 20, -1} {
			if done, boolean := c.Do("step", n, taken); done != 1 || !boolean {
				t.Errorf("with %d bytes a step of %d did not end the cycle", taken, n)
			}
		}
	}
}
