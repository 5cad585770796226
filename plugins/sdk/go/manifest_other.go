//go:build !wasip1

package latchkey

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Main prints the manifest of the module that was registered.
func Main() {
	if err := writeManifest(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "latchkey:", err)
		os.Exit(1)
	}
}

type object map[string]any

func writeManifest(to io.Writer) error {
	if err := check(&module); err != nil {
		return err
	}
	b, err := json.MarshalIndent(manifest(), "", "  ")
	if err != nil {
		return err
	}
	_, err = to.Write(append(b, '\n'))
	return err
}

// check refuses a module whose functions are not those that it needs. What else may be wrong with
// it latchkey says when the manifest is packed.
func check(m *Module) error {
	if m.Name == "" {
		return errors.New("no module was registered: call latchkey.Register in an init function")
	}
	for i := range m.Commands {
		if m.Commands[i].Run == nil {
			return fmt.Errorf("the command %s has no function Run", m.Commands[i].Name)
		}
	}
	asks := &m.Capabilities
	for _, need := range []struct {
		asked, there   bool
		asks, function string
	}{
		{asks.Timers, m.Timer != nil, "Timers", "Timer"},
		{len(asks.Events) > 0, m.Event != nil, "Events", "Event"},
		{asks.Clients, m.Closed != nil, "Clients", "Closed"},
	} {
		if need.asked && !need.there {
			return fmt.Errorf("the module asks for the capability %s and has no function %s", need.asks, need.function)
		}
	}
	return nil
}

func manifest() object {
	m := &module
	o := object{
		"name": m.Name, "version": m.Version, "abi": object{"min": 1, "max": 1},
		"capabilities": m.Capabilities.object(),
	}
	commands := []object{} // a module may have none, and timers or events
	for i := range m.Commands {
		commands = append(commands, m.Commands[i].object())
	}
	o["commands"] = commands
	limits := object{}
	put(limits, "fuel", m.Limits.Fuel)
	put(limits, "memory_pages", m.Limits.MemoryPages)
	put(limits, "instances", m.Limits.Instances)
	o["limits"] = limits
	var params []object
	for _, p := range m.Config {
		params = append(params, p.object())
	}
	if params != nil {
		o["config"] = params
	}
	put(o, "wake_version", m.WakeVersion)
	return o
}

// put sets a field unless it has its zero value.
func put[T comparable](o object, name string, value T) {
	var zero T
	if value != zero {
		o[name] = value
	}
}

func putList(o object, name string, list []string) {
	if len(list) > 0 {
		o[name] = list
	}
}

func (c *Command) object() object {
	o := object{"name": c.Name, "id": c.id, "arity": c.Arity}
	putList(o, "flags", c.Flags)
	if c.Keys != (Keys{}) {
		o["keys"] = object{"first": c.Keys.First, "last": c.Keys.Last, "step": c.Keys.Step}
	}
	putList(o, "acl", c.ACL)
	put(o, "summary", c.Summary)
	put(o, "since", c.Since)
	put(o, "group", c.Group)
	put(o, "state", c.State)
	return o
}

func (c *Capabilities) object() object {
	o := object{}
	putList(o, "read", c.Read)
	putList(o, "write", c.Write)
	putList(o, "commands", c.Commands)
	put(o, "timers", c.Timers)
	putList(o, "events", c.Events)
	put(o, "state", c.State)
	put(o, "block", c.Block)
	put(o, "clients", c.Clients)
	return o
}

func (p *Param) object() object {
	o := object{"name": p.Name, "type": p.Type, "default": p.Default}
	put(o, "summary", p.Summary)
	if p.Min != 0 || p.Max != 0 {
		o["min"], o["max"] = p.Min, p.Max
	}
	putList(o, "values", p.Values)
	put(o, "immutable", p.Immutable)
	return o
}
