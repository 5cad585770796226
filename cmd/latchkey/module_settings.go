package main

import (
	"strings"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/plugins/manifest"
	"github.com/latchkey-proxy/latchkey/proxy/config"
)

// moduleSettings keep the parameters of modules among the directives.
type moduleSettings struct{ cfg *config.Config }

// Add implements plugins.Settings.
func (m moduleSettings) Add(s plugins.Setting) (string, error) {
	name := strings.ToLower(s.Name)
	d := config.Directive{
		Name: name, Default: s.Default, Min: s.Min, Max: s.Max, Enum: s.Values,
		Summary: s.Summary, Mutable: !s.Immutable,
	}
	switch s.Type {
	case manifest.Int:
		d.Kind = config.Int
	case manifest.Bool:
		d.Kind = config.Bool
	case manifest.Enum:
		d.Kind = config.Enum
	default:
		d.Kind = config.String
	}
	var given []string
	if s.Given != nil {
		given = []string{*s.Given}
	}
	if err := m.cfg.Register(d, given...); err != nil {
		return "", err
	}
	m.cfg.OnChange(name, func(_, now string) error {
		s.Changed(now)
		return nil
	})
	return m.cfg.Get(name)[0].Value, nil
}

// Remove implements plugins.Settings.
func (m moduleSettings) Remove(name string) { m.cfg.Unregister(name) }

// withheld are the capabilities that plugin-deny takes from a module.
func withheld(cfg *config.Config) func(module string) []string {
	return func(module string) []string {
		var out []string
		for _, line := range cfg.Lines("plugin-deny") {
			if line[0] == "*" || strings.EqualFold(line[0], module) {
				out = append(out, line[1:]...)
			}
		}
		return out
	}
}
