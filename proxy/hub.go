package proxy

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/latchkey-proxy/latchkey/proxy/resp"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/glob"
)

// hub knows who listens to what and hands messages out. It is the store's Sink:
// what transactions publish arrives here in the order of their commits.
//
// Its mutex is taken before an output's.
type hub struct {
	s        *Server
	mu       sync.RWMutex
	channels topics
	shard    topics
	patterns topics

	listening atomic.Int64 // channels, shard channels and patterns in use
}

// topics are the channels, or the patterns, that somebody listens to.
type topics struct {
	byName map[string]*listeners
	order  []*listeners // as they were first wanted; nil: nobody wants it any more
	gone   int          // how many of order are nil
}

// listeners are the clients of one channel.
type listeners struct {
	name    string
	place   int             // in topics.order
	clients []*client       // in the order in which they came; nil: has left
	at      map[*client]int // where in clients each is
}

// subscriptions are what one client listens to; they belong to its goroutine,
// but for any.
type subscriptions struct {
	channels, patterns, shard map[string]struct{}
	any                       atomic.Bool
}

func newHub(s *Server) *hub {
	h := &hub{s: s}
	for _, t := range []*topics{&h.channels, &h.shard, &h.patterns} {
		t.byName = make(map[string]*listeners)
	}
	return h
}

func (l *listeners) add(c *client) {
	if _, there := l.at[c]; there {
		return
	}
	l.at[c] = len(l.clients)
	l.clients = append(l.clients, c)
}

func (l *listeners) remove(c *client) {
	at, there := l.at[c]
	if !there {
		return
	}
	delete(l.at, c)
	l.clients[at] = nil
	if len(l.at) > len(l.clients)/2 {
		return // as in topics.drop: all of them may leave at once
	}
	kept := make([]*client, 0, len(l.at))
	for _, c := range l.clients {
		if c != nil {
			l.at[c] = len(kept)
			kept = append(kept, c)
		}
	}
	l.clients = kept
}

// count is how many listen.
func (l *listeners) count() int { return len(l.at) }

// listen adds c to a topic and, under the hub's mutex, queues the confirmation,
// so that no message can come before it nor be lost after it.
func (h *hub) listen(t *topics, name string, c *client, confirm []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := t.byName[name]
	if l == nil {
		l = &listeners{name: name, place: len(t.order), at: make(map[*client]int)}
		t.byName[name] = l
		h.listening.Add(1)
		t.order = append(t.order, l)
	}
	l.add(c)
	if confirm != nil {
		c.out.push(confirm)
	}
}

// drop forgets a topic that nobody listens to. A client may leave a million of
// them at once, so the order is closed up only when half of it is empty.
func (t *topics) drop(l *listeners) {
	delete(t.byName, l.name)
	t.order[l.place] = nil
	t.gone++
	if t.gone <= len(t.order)/2 {
		return
	}
	kept := make([]*listeners, 0, len(t.order)-t.gone)
	for _, l := range t.order {
		if l != nil {
			l.place = len(kept)
			kept = append(kept, l)
		}
	}
	t.order, t.gone = kept, 0
}

// unlisten removes c and queues the confirmation, if there is one.
func (h *hub) unlisten(t *topics, name string, c *client, confirm []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := t.byName[name]; l != nil {
		l.remove(c)
		if l.count() == 0 {
			t.drop(l)
			h.listening.Add(-1)
		}
	}
	if confirm != nil {
		c.out.push(confirm)
	}
}

// leave removes a client that has gone, or RESET, from everything.
func (h *hub) leave(c *client) {
	for name := range c.subs.channels {
		h.unlisten(&h.channels, name, c, nil)
	}
	for name := range c.subs.shard {
		h.unlisten(&h.shard, name, c, nil)
	}
	for name := range c.subs.patterns {
		h.unlisten(&h.patterns, name, c, nil)
	}
	c.subs.channels, c.subs.shard, c.subs.patterns = nil, nil, nil
	c.subs.any.Store(false)
}

// ownPushes are messages that a client causes to itself. As in Redis they
// follow the reply of the command that caused them.
type ownPushes struct {
	any atomic.Bool
	mu  sync.Mutex // another committer may be the one who delivers
	buf []byte
}

func (o *ownPushes) add(frame []byte) {
	o.mu.Lock()
	o.buf = append(o.buf, frame...)
	o.mu.Unlock()
	o.any.Store(true)
}

func (o *ownPushes) take(w *resp.Writer) {
	o.mu.Lock()
	w.Raw(o.buf)
	o.buf = nil
	o.mu.Unlock()
	o.any.Store(false)
}

// message is one message, encoded once for each protocol that is wanted.
type message struct {
	kind, pattern    string
	channel, payload []byte
	frames           [2][]byte
}

func (m *message) frame(proto int) []byte {
	f := &m.frames[proto-2]
	if *f == nil {
		var w resp.Writer
		w.SetProto(proto)
		if m.pattern != "" || m.kind == "pmessage" {
			w.Push(4)
			w.BulkString(m.kind)
			w.BulkString(m.pattern)
		} else {
			w.Push(3)
			w.BulkString(m.kind)
		}
		w.Bulk(m.channel)
		w.Bulk(m.payload)
		*f = w.Bytes()
	}
	return *f
}

// publish hands a message to all who listen to the channel, directly or by a
// pattern, and returns how many that were.
func (h *hub) publish(channel, payload []byte, origin any) int {
	if h.listening.Load() == 0 {
		return 0
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	n := 0
	if l := h.channels.byName[string(channel)]; l != nil {
		m := message{kind: "message", channel: channel, payload: payload}
		n += h.send(l, &m, origin)
	}
	for _, l := range h.patterns.order {
		if l != nil && l.hears(channel) {
			m := message{kind: "pmessage", pattern: l.name, channel: channel, payload: payload}
			n += h.send(l, &m, origin)
		}
	}
	return n
}

// hearingSteps is how long a pattern is compared with a channel at most, four
// milliseconds or so: all who publish, subscribe and leave wait meanwhile.
const hearingSteps = 1 << 22

// hears tells whether the pattern that l is about matches a channel.
func (l *listeners) hears(channel []byte) bool {
	if len(l.name)*len(channel) <= hearingSteps {
		return glob.Match([]byte(l.name), channel, false)
	}
	left := hearingSteps
	return glob.MatchWhile([]byte(l.name), channel, false, func(steps int) bool {
		left -= steps
		return left > 0
	})
}

// names are those of the channels or patterns that somebody listens to.
func (h *hub) names(t *topics) []string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	names := make([]string, 0, len(t.byName))
	for name := range t.byName {
		names = append(names, name)
	}
	return names
}

// publishShard is publish for shard channels, which patterns do not reach.
func (h *hub) publishShard(channel, payload []byte, origin any) int {
	if h.listening.Load() == 0 {
		return 0
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	l := h.shard.byName[string(channel)]
	if l == nil {
		return 0
	}
	return h.send(l, &message{kind: "smessage", channel: channel, payload: payload}, origin)
}

func (h *hub) send(l *listeners, m *message, origin any) int {
	self, _ := origin.(*client)
	for _, c := range l.clients {
		if c == nil {
			continue
		}
		frame := m.frame(int(c.proto.Load()))
		if c == self {
			c.own.add(frame)
			continue
		}
		c.out.push(frame)
	}
	return l.count()
}

// Deliver implements store.Sink.
func (h *hub) Deliver(ev *store.Event) {
	switch ev.Kind {
	case store.EventPublish:
		h.publish(ev.Channel, ev.Payload, ev.Origin)
	case store.EventSPublish:
		h.publishShard(ev.Channel, ev.Payload, ev.Origin)
	case store.EventKeyspace:
		h.keyspace(ev)
	}
}

// keyspace turns an event into the messages that are asked for.
func (h *hub) keyspace(ev *store.Event) {
	classes := h.s.store.Notified()
	if classes&ev.Class == 0 || h.listening.Load() == 0 {
		return
	}
	db := strconv.Itoa(ev.DB)
	if classes&store.NotifyKeyspace != 0 {
		h.publish(append([]byte("__keyspace@"+db+"__:"), ev.Payload...), ev.Channel, ev.Origin)
	}
	if classes&store.NotifyKeyevent != 0 {
		h.publish(append([]byte("__keyevent@"+db+"__:"), ev.Channel...), ev.Payload, ev.Origin)
	}
}
