package plugins

import (
	"fmt"
	"slices"
	"strings"

	"github.com/latchkey-proxy/latchkey/plugins/manifest"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// grant works out what the module may do: what its manifest asks for, less what
// the administrator withholds.
func (m *module) grant() error {
	var withheld []string
	if m.host.opt.Withheld != nil {
		withheld = m.host.opt.Withheld(m.man.Name)
	}
	granted, unknown := m.man.Capabilities.Without(withheld)
	if unknown != "" {
		return fmt.Errorf("plugin-deny names %q for %s, which is no capability", unknown, m.man.Name)
	}
	m.granted = granted
	for _, name := range m.man.Capabilities.Names() {
		if slices.Contains(withheld, name) {
			m.denied = append(m.denied, name)
		}
	}
	m.callable = make(map[string]bool, len(granted.Commands))
	for _, name := range granted.Commands {
		m.callable[strings.ToLower(name)] = true
	}
	for _, class := range granted.Events {
		m.events |= eventClasses[class]
	}
	return nil
}

// eventClasses are the classes of keyspace events by their names in manifests.
var eventClasses = map[string]uint32{
	"generic": store.NotifyGeneric, "string": store.NotifyString, "list": store.NotifyList, "set": store.NotifySet,
	"hash": store.NotifyHash, "zset": store.NotifyZset, "stream": store.NotifyStream, "expired": store.NotifyExpired,
	"evicted": store.NotifyEvicted, "new": store.NotifyNew, "module": store.NotifyModule,
}

// classNumber is the number by which a guest knows a class of events.
func classNumber(class uint32) int {
	return slices.IndexFunc(manifest.EventClasses(), func(name string) bool { return eventClasses[name] == class })
}

// mayCall tells whether the module may call a command.
func (m *module) mayCall(s *command.Spec) bool {
	if m.callable[s.FullName()] {
		return true
	}
	return s.Parent() != nil && m.callable[s.Parent().Name]
}

// setState has a command hold the key of the module's state, if it does anything
// with it, and returns what.
func (m *module) setState(s *command.Spec, c *manifest.Command) manifest.State {
	state := min(c.State, m.granted.State)
	switch {
	case state != manifest.StateNone:
		s.Extra = func(_ *command.Call, add func(db int, name []byte)) { add(stateDB, m.stateKey) }
	case c.Keys == nil:
		s.Extra = func(*command.Call, func(int, []byte)) {} // it locks no key, and may run long
	}
	return state
}
