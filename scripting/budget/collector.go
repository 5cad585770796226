package budget

// Collector answers collectgarbage in one run: it tells of steps and settings as
// Lua's own collector would, but leaves collecting to Go, so that a script cannot
// make the server stop for it. The zero value is ready.
type Collector struct {
	walked  int64 // bytes since the last cycle has ended
	set     bool
	pause   int
	stepMul int
}

// emptyHeap is about what Redis's Lua has when no script runs.
const emptyHeap = 64 << 10

// Collects says whether collectgarbage has the option.
func Collects(option string) bool {
	switch option {
	case "count", "step", "collect", "stop", "restart", "setpause", "setstepmul":
		return true
	}
	return false
}

// Do is collectgarbage(option, n) while the script's values take so many bytes.
// The answer to "step" is a boolean, 1 for true.
func (c *Collector) Do(option string, n int, taken int64) (answer float64, boolean bool) {
	switch option {
	case "count":
		return float64(1024+taken) / 1024, false
	case "step": // a cycle ends when as much was walked over as there is
		c.walked += int64(max(n, 1)) << 10
		if n < 0 || c.walked >= emptyHeap+taken {
			c.walked = 0
			return 1, true
		}
		return 0, true
	case "collect":
		c.walked = 0
	case "setpause":
		return c.setting(&c.pause, n), false
	case "setstepmul":
		return c.setting(&c.stepMul, n), false
	}
	return 0, false
}

// setting sets one of the two and returns what it was.
func (c *Collector) setting(setting *int, n int) float64 {
	if !c.set {
		c.set, c.pause, c.stepMul = true, 200, 200
	}
	before := *setting
	*setting = n
	return float64(before)
}
