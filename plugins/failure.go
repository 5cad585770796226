package plugins

import (
	"fmt"
	"time"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// rerunReason is the trap of a guest whose transaction must begin anew.
const rerunReason = "the transaction is run again"

// cause is a module that has caused what happens in a session, and the one
// around it.
type cause struct {
	m      *module
	parent *cause
	depth  int

	// Of a guest that has called a command, while that runs.
	began time.Time // when it was entered
	kills int64     // of its module then
}

// caller is the cause of the guest within whose call a guest runs, nil if there is
// none. What has caused a delivery does not wait for it.
func (c *cause) caller() *cause {
	if c.depth == 1 {
		return nil
	}
	return c.parent
}

// causeOf is the cause of what m does in a session: nested in what goes on
// there, or on its own for a delivery, which may have been caused by others.
func (m *module) causeOf(outer any, delivery bool) *cause {
	o, _ := outer.(*cause)
	switch {
	case o == nil:
		return m.alone
	case delivery:
		return &cause{m: m, parent: o, depth: 1}
	}
	return &cause{m: m, parent: o, depth: o.depth + 1}
}

// depthOf is how many plugin commands stand within each other.
func depthOf(s *command.Session) int {
	if c, ok := s.Cause.(*cause); ok {
		return c.depth
	}
	return 0
}

// has tells whether a module of that name is among the causes.
func (c *cause) has(name string) bool {
	for ; c != nil; c = c.parent {
		if c.m.man.Name == name {
			return true
		}
	}
	return false
}

// trapped counts and logs a guest that had to be ended.
func (m *module) trapped(in string, err error) {
	m.host.opt.Log.Warn("a plugin command was undone and its instance replaced", "module", m.man.Name, "command", in, "reason", err.Error())
	m.failed(err)
}

// failed counts a guest that had to be ended, or could not begin. Too many in a while
// disable the module.
func (m *module) failed(err error) {
	m.traps.Add(1)
	most := m.host.maxFailures.Load()
	if most <= 0 {
		return
	}
	window := time.Duration(m.host.failureWindow.Load())
	now := time.Now()
	m.mu.Lock()
	for len(m.failures) > 0 && now.Sub(m.failures[0]) > window {
		m.failures = m.failures[1:]
	}
	m.failures = append(m.failures, now)
	over := int64(len(m.failures)) >= most
	if over {
		m.failures = nil
	}
	m.mu.Unlock()
	if over {
		m.disable(fmt.Sprintf("it has failed %d times within %v, at last with: %s", most, window, err.Error()))
	}
}

// disable has every call answered with an error from now on.
func (m *module) disable(why string) {
	if m.disabled.CompareAndSwap(nil, &why) {
		m.host.opt.Log.Error("a module was disabled", "module", m.man.Name, "reason", why)
	}
}

// enable takes back disable.
func (m *module) enable() {
	if m.disabled.Swap(nil) != nil {
		m.host.opt.Log.Info("a module was enabled again", "module", m.man.Name)
		m.queue.poke()
	}
}

// Disable has every call of a module answered with -PLUGINDISABLED and the
// reason, until Enable. Its timers and events meanwhile are dropped.
func (h *Host) Disable(name, reason string) error {
	m := h.module(name)
	if m == nil {
		return ErrNoSuchModule
	}
	m.disable(reason)
	return nil
}

// Enable takes back Disable, and what too many failures have done.
func (h *Host) Enable(name string) error {
	m := h.module(name)
	if m == nil {
		return ErrNoSuchModule
	}
	m.enable()
	return nil
}

// SetMaxFailures has a module disabled whose guest has to be ended n times
// within that time; n 0: never.
func (h *Host) SetMaxFailures(n int, within time.Duration) {
	h.maxFailures.Store(int64(n))
	h.failureWindow.Store(int64(within))
}
