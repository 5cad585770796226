package plugins

import (
	"sync"
	"sync/atomic"
	"time"
)

// timers are those that a module has set and that are not due yet.
type timers struct {
	next atomic.Int64 // number of the newest

	mu      sync.Mutex
	pending map[int64]*time.Timer // nil once the module is closed
}

func newTimers() *timers { return &timers{pending: make(map[int64]*time.Timer)} }

func (t *timers) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.pending)
}

func (t *timers) has(id int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pending[id] != nil
}

// set has due called after d, unless the timer is cancelled before.
func (t *timers) set(id int64, d time.Duration, due func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending == nil {
		return
	}
	t.pending[id] = time.AfterFunc(d, func() {
		if t.cancel(id) {
			due()
		}
	})
}

// cancel takes a timer back and tells whether it was still there.
func (t *timers) cancel(id int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	timer := t.pending[id]
	if timer == nil {
		return false
	}
	timer.Stop()
	delete(t.pending, id)
	return true
}

// close ends all timers.
func (t *timers) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, timer := range t.pending {
		timer.Stop()
	}
	t.pending = nil
}
