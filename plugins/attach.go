package plugins

import (
	"maps"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// Attach has timers, events and the ends of clients delivered on an engine. It
// is called once, before any module is loaded and any client is served; without
// it a module gets none of these.
func (h *Host) Attach(e *command.Engine) {
	h.engine.Store(e)
	e.ClientGone = h.clientGone
	e.Store.SetListener(h.hear)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.publish()
}

// publish has those who deliver see the modules as they are now. Under mu, but
// in New.
func (h *Host) publish() {
	now := maps.Clone(h.modules)
	h.loaded.Store(&now)
	var classes uint32
	for _, m := range now {
		classes |= m.events
	}
	if e := h.engine.Load(); e != nil {
		e.Store.Listen(classes)
	}
}

// module is a loaded module, or nil.
func (h *Host) module(name string) *module { return (*h.loaded.Load())[name] }

// hear is told each keyspace event of a class that some module receives, in the
// order of commits.
func (h *Host) hear(ev *store.Event) {
	by, _ := ev.Cause.(*cause)
	for _, m := range *h.loaded.Load() {
		if m.events&ev.Class == 0 || by.has(m.man.Name) || !m.mayHear(ev.Payload) {
			continue
		}
		m.enqueue(&delivery{
			kind: keyEvent, db: ev.DB, class: classNumber(ev.Class), event: ev.Channel, key: ev.Payload, cause: by,
		})
	}
}

// mayHear tells whether the module may read or write a key, and so hear of it.
func (m *module) mayHear(key []byte) bool {
	return granted(m.granted.Read, key) || granted(m.granted.Write, key)
}

// clientGone has the modules told that the connection of a client has ended.
func (h *Host) clientGone(id int64) {
	for _, name := range h.bound.leave(id) {
		h.tellGone(name)
	}
}

// tellGone has a module told of the clients that are gone, unless it is not loaded or may not
// be told. What is to be told is kept before the module is looked for; who loads one enters it
// before it looks for what is kept. So one of the two finds the other.
func (h *Host) tellGone(name string) {
	for m := h.module(name); m != nil && m.granted.Clients; m = h.module(name) {
		gone := h.bound.kept(name)
		if len(gone) == 0 {
			return
		}
		for _, d := range gone {
			m.enqueue(d) // which keeps it if the module was unloaded meanwhile
		}
	}
}

// inherit takes over what is to be delivered to the module that m takes the place
// of, and the clients that wait in its commands, unless their tokens mean something else
// to m. What is being delivered the old one ends, and m then begins.
func (m *module) inherit(old *module) {
	m.timers, m.queue, m.waiting = old.timers, old.queue, old.waiting
	m.quit, m.worked, m.counts = old.quit, old.worked, old.counts
	old.inherited = true
	for _, o := range old.before {
		if o.pool.size() > 0 {
			m.before = append(m.before, o)
		} else { // it is closed, and has counted what it will
			m.calls.Add(o.pool.taken())
		}
	}
	m.before = append(m.before, old)
	if m.man.WakeVersion == old.man.WakeVersion {
		m.abandoned = old.abandoned
	} else {
		close(old.abandoned)
	}
}

// start begins to deliver what the module receives, first of all the clients that
// went while it was not loaded.
func (m *module) start() {
	e := m.host.engine.Load()
	if e == nil || !m.receives() {
		return
	}
	before, worked := m.worked, make(chan struct{})
	m.worked = worked
	go func() {
		defer close(worked)
		if before != nil {
			<-before
		}
		m.work(e)
	}()
	m.host.tellGone(m.man.Name)
}

// endDeliveries stops work and what leads to it. What was to be told of clients
// is kept for the next who has the name. A module that another takes the place of
// ends by itself what it is being told.
func (m *module) endDeliveries() {
	close(m.stop)
	if m.inherited {
		return
	}
	close(m.quit)
	if m.worked != nil {
		<-m.worked
	}
	m.timers.close()
	left := m.queue.close()
	for _, d := range left {
		if d.kind == clientGone {
			m.host.bound.keep(m.man.Name, d)
		}
	}
}

// now is the module that stands in the place of m after a reload, or m.
func (m *module) now() *module {
	if n := m.host.module(m.man.Name); n != nil {
		return n
	}
	return m
}
