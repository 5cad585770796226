package plugins

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/latchkey-proxy/latchkey/plugins/manifest"
)

// Setting is a parameter of a module as a setting of the server, named
// module.parameter.
type Setting struct {
	Name      string
	Type      manifest.ParamType
	Default   string
	Min, Max  int64
	Values    []string
	Immutable bool
	Summary   string
	// Given is the value that whoever loads the module has given; nil: none, and
	// what the server's configuration says counts.
	Given *string
	// Changed is told the value whenever it changes.
	Changed func(value string)
}

// Settings are where the parameters of modules are kept for CONFIG GET and SET.
type Settings interface {
	// Add makes a setting known and returns its value.
	Add(s Setting) (value string, err error)
	// Remove forgets a setting.
	Remove(name string)
}

// params are the present values of a module's parameters.
type params struct {
	names  []string
	values []atomic.Pointer[string]
}

// param is the present value of a parameter.
func (m *module) param(name string) (string, bool) {
	if i := slices.Index(m.params.names, name); i >= 0 {
		return *m.params.values[i].Load(), true
	}
	return "", false
}

// addParams makes the module's parameters known, with the values given for them.
func (m *module) addParams(given map[string]string) error {
	config := m.man.Config
	for name := range given {
		if !slices.ContainsFunc(config, func(p manifest.Param) bool { return strings.ToLower(m.man.Name+"."+p.Name) == name }) {
			return fmt.Errorf("found a value for %q, wanted one of the module's parameters: %s", name, m.parameters())
		}
	}
	if m.params.names == nil { // otherwise it takes them back, and calls read them meanwhile
		m.params = params{names: make([]string, len(config)), values: make([]atomic.Pointer[string], len(config))}
		for i := range config {
			m.params.names[i] = config[i].Name
		}
	}
	settings := m.host.opt.Settings
	for i := range config {
		p := &config[i]
		value := p.Default
		s := Setting{
			Name: m.man.Name + "." + p.Name, Type: p.Type, Default: p.Default, Min: p.Min, Max: p.Max,
			Values: p.Values, Immutable: p.Immutable, Summary: p.Summary,
			Changed: func(v string) { m.params.values[i].Store(&v) },
		}
		if v, ok := given[strings.ToLower(s.Name)]; ok {
			s.Given = &v
		}
		switch {
		case settings != nil:
			var err error
			if value, err = settings.Add(s); err != nil {
				m.removeParams(i)
				return err
			}
		case s.Given != nil:
			m.removeParams(i)
			return errors.New("parameters cannot be given: there is no configuration")
		}
		m.params.values[i].Store(&value)
	}
	return nil
}

// parameters are the names of the module's parameters, in words.
func (m *module) parameters() string {
	var names []string
	for _, p := range m.man.Config {
		names = append(names, m.man.Name+"."+p.Name)
	}
	if names == nil {
		return "none, it has no parameters"
	}
	return strings.Join(names, ", ")
}

// removeParams forgets the first n parameters.
func (m *module) removeParams(n int) {
	if m.host.opt.Settings == nil {
		return
	}
	for _, name := range m.params.names[:n] {
		m.host.opt.Settings.Remove(m.man.Name + "." + name)
	}
}

// takeParams makes the parameters of m known instead of those of old, whose place
// it takes, with their values as they are now where m has one of the name.
func (m *module) takeParams(old *module) error {
	given := old.values()
	maps.DeleteFunc(given, func(name string, _ string) bool {
		return !slices.ContainsFunc(m.man.Config, func(p manifest.Param) bool { return strings.ToLower(m.man.Name+"."+p.Name) == name })
	})
	old.removeParams(len(old.params.names))
	if err := m.addParams(given); err != nil {
		return errors.Join(err, old.addParams(old.values()))
	}
	return nil
}

// returnParams is what takes back takeParams: m does not take the place of old.
func (m *module) returnParams(old *module) error {
	m.removeParams(len(m.params.names))
	return old.addParams(old.values())
}

// values are the parameters as they are now, by the names of their settings.
func (m *module) values() map[string]string {
	values := make(map[string]string, len(m.params.names))
	for i, name := range m.params.names {
		values[strings.ToLower(m.man.Name+"."+name)] = *m.params.values[i].Load()
	}
	return values
}
