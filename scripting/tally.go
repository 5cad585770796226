package scripting

import (
	"slices"
	"strings"
	"sync"
)

// maxTallied bounds the scripts that are counted one by one.
const maxTallied = 512

// Counts are what happened to the runs of one script that its author may want to
// know. What runs as its author meant it to is not counted here.
type Counts struct {
	// Name is the SHA1 of a script or the name of a function.
	Name string
	// Undeclared counts keys that were reached without having been declared, and
	// Reruns the runs begun anew because such a key was held.
	Undeclared, Reruns int64
	// Rollbacks counts the runs undone after an uncaught error that had written,
	// where Redis would have kept what they wrote; Kills the runs ended from
	// outside or by a limit.
	Rollbacks, Kills int64
}

func (c *Counts) add(d Counts) {
	c.Undeclared += d.Undeclared
	c.Reruns += d.Reruns
	c.Rollbacks += d.Rollbacks
	c.Kills += d.Kills
}

// tally counts by script. It is bounded: when it is full, the script that nothing
// was counted of for longest goes, and its counts are added to those of others.
type tally struct {
	mu      sync.Mutex
	scripts map[string]*tallied
	others  Counts
	now     int64 // grows with each count
}

type tallied struct {
	Counts
	last int64
}

func (t *tally) add(name string, d Counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.scripts[name]
	if e == nil {
		if t.scripts == nil {
			t.scripts = map[string]*tallied{}
		}
		if len(t.scripts) >= maxTallied {
			t.dropOldest()
		}
		e = &tallied{Counts: Counts{Name: name}}
		t.scripts[name] = e
	}
	t.now++
	e.last = t.now
	e.add(d)
}

func (t *tally) dropOldest() {
	var oldest *tallied
	for _, e := range t.scripts {
		if oldest == nil || e.last < oldest.last {
			oldest = e
		}
	}
	delete(t.scripts, oldest.Name)
	t.others.add(oldest.Counts)
}

// list returns what was counted, by name, and that of the scripts which had no
// place, if there are any, under the name "others".
func (t *tally) list() []Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Counts, 0, len(t.scripts)+1)
	for _, e := range t.scripts {
		out = append(out, e.Counts)
	}
	slices.SortFunc(out, func(a, b Counts) int { return strings.Compare(a.Name, b.Name) })
	if t.others != (Counts{}) {
		others := t.others
		others.Name = "others"
		out = append(out, others)
	}
	return out
}

func (t *tally) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.scripts)
	t.others = Counts{}
}

// Tally returns what was counted by script since the start or ResetTally, in the
// order of the names.
func (r *Runner) Tally() []Counts { return r.tally.list() }

// ResetTally begins to count anew (CONFIG RESETSTAT).
func (r *Runner) ResetTally() {
	r.tally.reset()
	r.Rollbacks.Store(0)
	r.Killed.Store(0)
	r.Reruns.Store(0)
	r.Undeclared.Store(0)
}
