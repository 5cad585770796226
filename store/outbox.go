package store

import "sync"

// EventKind tells the events of an outbox apart.
type EventKind uint8

// The kinds of event.
const (
	EventPublish  EventKind = iota + 1 // PUBLISH Channel Payload
	EventSPublish                      // SPUBLISH Channel Payload
	EventKeyspace                      // keyspace notification: Channel is the event's name, Payload the key
	EventDo                            // Do is called
)

// Event is something that leaves a transaction once, at its commit, in the
// order of the effect log. Its bytes are its own.
type Event struct {
	Kind    EventKind
	DB      int
	Class   uint32 // of a keyspace event: the sink's flag bits
	Channel []byte
	Payload []byte
	// Do is what EventDo calls.
	Do func()
	// Weight is how many bytes Do holds, for Tx.Weight, which counts Channel and
	// Payload by itself.
	Weight int
	// Origin is who caused the event, for the sink; nil: nobody in particular.
	Origin any
	// Cause is what a keyspace event came from, for the listener; nil: a client.
	Cause any
}

// Sink receives the events of committed transactions, one call at a time, in
// the order of their LSN. It must not begin a transaction nor block.
type Sink interface{ Deliver(ev *Event) }

// outbox is the queue between commits and the Sink.
type outbox struct {
	mu      sync.Mutex // held across Append and push, so that the orders agree
	queue   []sealed
	deliver sync.Mutex // held while events are handed to the sink
	batch   []sealed
}

type sealed struct {
	lsn uint64
	ev  Event
}

// drain hands all queued events to the sink. Every committer drains after its
// release, so its own events have left when its Commit returns.
func (s *Store) drain() {
	o := &s.outbox
	o.deliver.Lock()
	defer o.deliver.Unlock()
	for {
		o.mu.Lock()
		o.batch, o.queue = o.queue, o.batch[:0]
		o.mu.Unlock()
		if len(o.batch) == 0 {
			return
		}
		for i := range o.batch {
			item := &o.batch[i]
			// What others are told must survive as a reply must. After a failed
			// write the outcome is unknown and nothing is told.
			if s.log.Wait(item.lsn) == nil {
				s.tell(&item.ev)
			}
			*item = sealed{}
		}
	}
}

func (s *Store) tell(ev *Event) {
	if ev.Kind == EventDo {
		ev.Do()
		return
	}
	if s.sink != nil {
		s.sink.Deliver(ev)
	}
	if ev.Kind == EventKeyspace && s.heard.Load()&ev.Class != 0 {
		if listen := s.listen.Load(); listen != nil {
			(*listen)(ev)
		}
	}
}
