package proxy

import (
	"slices"
	"sync"
	"sync/atomic"
)

// registry knows the connected clients.
type registry struct {
	mu   sync.Mutex
	byID map[int64]*client
	last atomic.Int64
	n    atomic.Int64
}

func (r *registry) init() { r.byID = make(map[int64]*client) }

func (r *registry) nextID() int64 { return r.last.Add(1) }

func (r *registry) len() int { return int(r.n.Load()) }

func (r *registry) add(c *client) {
	r.mu.Lock()
	r.byID[c.id] = c
	r.mu.Unlock()
	r.n.Add(1)
}

func (r *registry) remove(c *client) {
	r.mu.Lock()
	delete(r.byID, c.id)
	r.mu.Unlock()
	r.n.Add(-1)
}

// all returns the clients in the order in which they came.
func (r *registry) all() []*client {
	r.mu.Lock()
	out := make([]*client, 0, len(r.byID))
	for _, c := range r.byID {
		out = append(out, c)
	}
	r.mu.Unlock()
	slices.SortFunc(out, func(a, b *client) int { return int(a.id - b.id) })
	return out
}

func (r *registry) each(f func(*client)) {
	for _, c := range r.all() {
		f(c)
	}
}

func (r *registry) get(id int64) *client {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}
