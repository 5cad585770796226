package plugins

import (
	"sync"

	"github.com/latchkey-proxy/latchkey/plugins/manifest"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// maxQueued is how many events a module may have to come. Timers and the ends of
// clients are bounded where they are asked for, those that are queued included.
const maxQueued = 10_000

// goneTries is how often lk_closed is called for one client and key before it is
// given up.
const goneTries = 3

// delivery is something that a module is told in a transaction of its own.
type delivery struct {
	kind  deliveryKind
	token int64 // of a timer or a client that is gone
	db    int
	class int    // of an event, its place in the manifest's list of classes
	event []byte // its name
	key   []byte // of an event, or what was bound to a client
	cause *cause // of an event
	tries int
}

type deliveryKind uint8

const (
	timerDue deliveryKind = iota
	keyEvent
	clientGone
	deliveryKinds
)

func (k deliveryKind) String() string { return [...]string{"lk_timer", "lk_event", "lk_closed"}[k] }

// deliveries is the queue of what a module is to be told.
type deliveries struct {
	mu     sync.Mutex
	queue  []*delivery
	kinds  [deliveryKinds]int // how many there are of each
	more   chan struct{}      // has room for one: there is something, or a reason to look
	closed bool
}

func newDeliveries() *deliveries { return &deliveries{more: make(chan struct{}, 1)} }

func (q *deliveries) poke() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// push queues d, and tells whether there was room.
func (q *deliveries) push(d *delivery) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	if d.kind == keyEvent && q.kinds[keyEvent] >= maxQueued {
		return false
	}
	q.kinds[d.kind]++
	q.queue = append(q.queue, d)
	q.poke()
	return true
}

// unpop puts back what pop returned.
func (q *deliveries) unpop(d *delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.kinds[d.kind]++
	q.queue = append(q.queue, nil)
	copy(q.queue[1:], q.queue)
	q.queue[0] = d
}

func (q *deliveries) pop() *delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		return nil
	}
	d := q.queue[0]
	q.queue[0] = nil
	if q.queue = q.queue[1:]; len(q.queue) == 0 {
		q.queue = nil
	}
	q.kinds[d.kind]--
	return d
}

// of is how many deliveries of a kind are queued.
func (q *deliveries) of(kind deliveryKind) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.kinds[kind]
}

func (q *deliveries) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.queue)
}

// close ends the queue and returns what was in it.
func (q *deliveries) close() []*delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	left := q.queue
	q.queue = nil
	return left
}

// enqueue queues a delivery. An event for which there is no room is dropped and
// counted; the end of a client is kept until the module can be told.
func (m *module) enqueue(d *delivery) {
	if !m.takes(d) {
		m.leave(d)
		return
	}
	if m.queue.push(d) {
		return
	}
	if d.kind == clientGone {
		m.host.bound.keep(m.man.Name, d)
		return
	}
	if m.dropped.Add(1)%maxQueued == 1 {
		m.host.opt.Log.Warn("a module does not keep up with its events; some were dropped", "module", m.man.Name, "dropped", m.dropped.Load())
	}
}

// receives tells whether anything can be delivered to the module.
func (m *module) receives() bool {
	return m.granted.Timers || m.granted.Clients || len(m.granted.Events) > 0
}

// takes tells whether a delivery can be made to the module now. It may have been
// meant for another, in whose place it stands, which had and was granted more.
func (m *module) takes(d *delivery) bool {
	switch {
	case d.kind == clientGone:
		return m.granted.Clients
	case m.disabled.Load() != nil:
		return false
	case d.kind == timerDue:
		return m.granted.Timers
	}
	return m.events&eventClasses[manifest.EventClasses()[d.class]] != 0 && m.mayHear(d.key)
}

// leave is what becomes of a delivery that the module does not take.
func (m *module) leave(d *delivery) {
	if d.kind == clientGone {
		m.host.bound.keep(m.man.Name, d)
		return
	}
	m.dropped.Add(1)
}

// work delivers, one after the other, until the module is closed.
func (m *module) work(e *command.Engine) {
	s := &command.Session{Tx: e.Store.NewTx(), Proto: 3, Wait: &store.Wait{Done: m.quit}}
	m.queue.poke() // for what is there already
	for {
		select {
		case <-m.stop:
			return
		case <-m.queue.more:
		}
		for m.disabled.Load() == nil && !closed(m.stop) {
			d := m.queue.pop()
			if d == nil {
				break
			}
			m.deliver(e, s, d)
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// deliver calls the guest in a transaction of its own.
func (m *module) deliver(e *command.Engine, s *command.Session, d *delivery) {
	if !m.takes(d) {
		m.leave(d)
		return
	}
	s.DB, s.Cause = d.db, nil
	if d.cause != nil {
		s.Cause = d.cause
	}
	c := &command.Call{S: s, Spec: m.told, Reply: &recorder{limit: errorSlack}, From: command.FromTimer}
	switch d.kind {
	case keyEvent:
		c.Args = [][]byte{d.event, d.key}
	case clientGone:
		c.Args = [][]byte{d.key}
	}
	keys := func(add func(db int, name []byte)) {
		if d.key != nil {
			add(d.db, d.key)
		}
		if m.granted.State != manifest.StateNone {
			add(stateDB, m.stateKey)
		}
	}
	called := false
	err := e.Transact(c, keys, func(c *command.Call) {
		m.guest(c, func(in *instance) error { called = true; return in.tell(c, d) })
	})
	s.FlushStats()
	if err == "" {
		m.delivered.Add(1)
		return
	}
	if closed(m.quit) { // it goes, and tells who comes after it
		if d.kind == clientGone {
			m.host.bound.keep(m.man.Name, d)
		}
		return
	}
	if !called && (m.disabled.Load() != nil || err == m.problem(m.busy().Error())) {
		m.queue.unpop(d) // its keys were let go meanwhile
		return
	}
	m.host.opt.Log.Warn("what a module was told was undone", "module", m.man.Name, "export", d.kind.String(), "reason", err)
	if d.tries++; d.kind == clientGone && d.tries < goneTries {
		m.enqueue(d)
	}
}

// tell calls what the guest exports for a delivery.
func (in *instance) tell(c *command.Call, d *delivery) error {
	in.bind(c)
	in.reaches, in.stateful = true, in.m.granted.State
	if d.key != nil {
		in.declared = append(in.declared, command.Position{Index: len(c.Args) - 1})
	}
	if d.kind == timerDue {
		_, err := in.enter("lk_timer", in.timerFn, uint64(d.token))
		return err
	}
	if err := in.writeFrame(c.Args); err != nil {
		return in.unfit(err)
	}
	var err error
	if d.kind == keyEvent {
		_, err = in.enter("lk_event", in.eventFn, uint64(d.class), uint64(len(c.Args)), uint64(in.arena))
	} else {
		_, err = in.enter("lk_closed", in.closedFn, uint64(d.token), uint64(len(c.Args)), uint64(in.arena))
	}
	return err
}
