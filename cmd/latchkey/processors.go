package main

import (
	"runtime"
	"sync"
	"time"
)

// processors gives the network processors of its own while scripts run for
// long. A goroutine that computes keeps its P for a time slice of the scheduler,
// ten milliseconds, so on as many Ps as there are cores two such scripts make
// everybody wait; with a P more for each of them the operating system shares the
// cores instead. More Ps than cores cost every request some work, so they are
// there only when they are needed, and for a while after.
type processors struct {
	cores, extra int

	mu      sync.Mutex
	running int
	raised  bool
	lower   *time.Timer
}

// keepProcessors is how long the extra Ps stay after the last long script: a
// change of their number stops the world for some microseconds.
const keepProcessors = 5 * time.Second

func newProcessors(cores, extra int) *processors {
	return &processors{cores: cores, extra: extra}
}

// long is told when a script begins to run for long, and when it has ended.
func (p *processors) long(running bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !running {
		p.running--
		if p.running == 0 {
			p.lower = time.AfterFunc(keepProcessors, p.rest)
		}
		return
	}
	p.running++
	if p.lower != nil {
		p.lower.Stop()
		p.lower = nil
	}
	if !p.raised {
		p.raised = true
		runtime.GOMAXPROCS(p.cores + p.extra)
	}
}

func (p *processors) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == 0 && p.raised {
		p.raised = false
		runtime.GOMAXPROCS(p.cores)
	}
}

// close stops the timer; no script runs any more.
func (p *processors) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lower != nil {
		p.lower.Stop()
	}
}
