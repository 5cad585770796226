package plugins

import "sync"

// boundKey is a key that a module has bound to a client.
type boundKey struct {
	db  int
	key string
}

// bound are the keys that modules have bound to clients, by the name of the
// module, which need not be loaded any more.
type bound struct {
	mu      sync.Mutex
	modules map[string]*boundModule
}

type boundModule struct {
	keys    map[boundKey]binding
	clients map[int64]map[boundKey]struct{}
	gone    []*delivery // of clients that went, until the module can be told
}

type binding struct{ client, token int64 }

func (b *bound) module(name string) *boundModule {
	m := b.modules[name]
	if m == nil {
		m = &boundModule{keys: make(map[boundKey]binding), clients: make(map[int64]map[boundKey]struct{})}
		if b.modules == nil {
			b.modules = make(map[string]*boundModule)
		}
		b.modules[name] = m
	}
	return m
}

func (b *bound) count(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.modules[name]; m != nil {
		return len(m.keys) + len(m.gone)
	}
	return 0
}

// add binds a key to a client, and to no other.
func (b *bound) add(name string, at boundKey, client, token int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.module(name)
	m.remove(at)
	m.keys[at] = binding{client, token}
	of := m.clients[client]
	if of == nil {
		of = make(map[boundKey]struct{})
		m.clients[client] = of
	}
	of[at] = struct{}{}
}

func (b *bound) remove(name string, at boundKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.modules[name]; m != nil {
		m.remove(at)
	}
}

func (m *boundModule) remove(at boundKey) {
	was, there := m.keys[at]
	if !there {
		return
	}
	delete(m.keys, at)
	delete(m.clients[was.client], at)
	if len(m.clients[was.client]) == 0 {
		delete(m.clients, was.client)
	}
}

// leave has what was bound to a client that is gone kept for the modules that it
// concerns, and returns their names.
func (b *bound) leave(client int64) (modules []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, m := range b.modules {
		if len(m.clients[client]) == 0 {
			continue
		}
		for at := range m.clients[client] {
			m.gone = append(m.gone, &delivery{kind: clientGone, token: m.keys[at].token, db: at.db, key: []byte(at.key)})
			delete(m.keys, at)
		}
		delete(m.clients, client)
		modules = append(modules, name)
	}
	return modules
}

// keep remembers what a module must be told once it can be.
func (b *bound) keep(name string, gone *delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.module(name)
	m.gone = append(m.gone, gone)
}

// kept takes what keep has remembered.
func (b *bound) kept(name string) []*delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.modules[name]
	if m == nil {
		return nil
	}
	gone := m.gone
	m.gone = nil
	return gone
}
