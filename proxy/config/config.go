package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Config is the settings and their current values. Its methods may be called from any goroutine; the typed reads
// (Bool, Int, Memory, String, Strings, Lines and so on) take no lock and panic when asked for a directive that is not
// in the table or is of another kind, which is a mistake in the program.
type Config struct {
	mu    sync.Mutex // held by whoever changes values, hooks or the registry
	known atomic.Pointer[registry]

	path     string // of the configuration file, absolute; empty without one
	warnings []Warning
	ignored  []Setting

	// moduleSettings are name.parameter lines waiting for the module to come and register them.
	moduleSettings map[string]moduleSetting
	savesGiven     bool // a file's first save line replaces the default, later ones add
}

type moduleSetting struct {
	args   []string
	origin Origin
}

// registry is the set of known directives; it is replaced, never changed.
type registry struct {
	order  []*entry          // table order
	byName map[string]*entry // by name and alias
}

type entry struct {
	*Directive
	value   atomic.Pointer[value]
	initial *value // the default
	hooks   []func(old, new string) error
	kept    bool // SetLines has taken the lines over
}

// New returns a Config with every directive at its default.
func New() *Config {
	table := directives()
	r := &registry{byName: make(map[string]*entry, len(table)+32)}
	for i := range table {
		e, err := newEntry(&table[i])
		if err != nil {
			panic(fmt.Sprintf("config: table: %v", err))
		}
		if err := r.add(e); err != nil {
			panic(fmt.Sprintf("config: table: %v", err))
		}
	}
	c := &Config{moduleSettings: make(map[string]moduleSetting)}
	c.known.Store(r)
	return c
}

// newEntry parses the default, so a table entry whose default breaks its own rules cannot start the program.
func newEntry(d *Directive) (*entry, error) {
	e := &entry{Directive: d, initial: &value{}}
	if d.Kind != Lines {
		args := []string{d.Default}
		if d.Kind.manyArguments() && d.Default != "" {
			args = strings.Split(d.Default, " ")
		}
		v, err := d.parse(args, nil)
		if err != nil {
			return nil, fmt.Errorf("default of %s: %w", d.Name, err)
		}
		e.initial = v
	}
	e.value.Store(e.initial)
	return e, nil
}

func (r *registry) add(e *entry) error {
	for _, name := range append([]string{e.Name}, e.Aliases...) {
		if r.byName[name] != nil || name == "" || name != strings.ToLower(name) {
			return fmt.Errorf("name %q is taken or is not in lower case", name)
		}
		r.byName[name] = e
	}
	r.order = append(r.order, e)
	return nil
}

// lookup finds a directive by name or alias, in any case, and the name it is known by.
func (r *registry) lookup(name string) (*entry, string) {
	lower := strings.ToLower(name)
	return r.byName[lower], lower
}

// Lookup returns the directive of that name or alias, in any case, or nil.
func (c *Config) Lookup(name string) *Directive {
	if e, _ := c.known.Load().lookup(name); e != nil {
		return e.Directive
	}
	return nil
}

// Directives returns the known directives in table order: groups stay together.
func (c *Config) Directives() []*Directive {
	r := c.known.Load()
	list := make([]*Directive, len(r.order))
	for i, e := range r.order {
		list[i] = e.Directive
	}
	return list
}

func (c *Config) must(name string) *entry {
	e := c.known.Load().byName[name]
	if e == nil {
		panic(fmt.Sprintf("config: no directive %q", name))
	}
	return e
}

func (c *Config) read(name string, ok func(Kind) bool) *value {
	e := c.must(name)
	if !ok(e.Kind) {
		panic(fmt.Sprintf("config: directive %q is of kind %q and was read as another", name, e.Kind))
	}
	return e.value.Load()
}

// Bool returns whether a Bool directive is yes.
func (c *Config) Bool(name string) bool {
	return c.read(name, func(k Kind) bool { return k == Bool }).num != 0
}

// Int returns an Int or Octal directive.
func (c *Config) Int(name string) int64 {
	return c.read(name, func(k Kind) bool { return k == Int || k == Octal }).num
}

// Memory returns a Memory directive in bytes. A percentage is returned as a negative number.
func (c *Config) Memory(name string) int64 {
	return c.read(name, func(k Kind) bool { return k == Memory || k == MemoryOrPercent }).num
}

// String returns the value of any directive but those of kind Lines, as CONFIG GET prints it.
func (c *Config) String(name string) string {
	return c.read(name, func(k Kind) bool { return k != Lines }).text
}

// Strings returns the words of a directive with several; the caller must not change them.
func (c *Config) Strings(name string) []string {
	return c.read(name, func(k Kind) bool { return k.manyArguments() && k != Lines }).words
}

// Lines returns the arguments of each line of a Lines directive such as loadmodule, in order; the caller must not
// change them.
func (c *Config) Lines(name string) [][]string {
	return c.read(name, func(k Kind) bool { return k == Lines }).lines
}

// SetLines replaces a Lines directive, so that Rewrite writes what is loaded now and not what the file said.
// The Config keeps lines.
func (c *Config) SetLines(name string, lines [][]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.must(name)
	if e.Kind != Lines {
		panic(fmt.Sprintf("config: directive %q has no lines", name))
	}
	e.value.Store(&value{lines: lines})
	e.kept = true
}

// Given reports whether the sources, or CONFIG SET, have given the directive a value, its default included.
func (c *Config) Given(name string) bool {
	e := c.must(name)
	return e.value.Load() != e.initial
}

// BufferLimits returns client-output-buffer-limit of normal clients, replicas and subscribers.
func (c *Config) BufferLimits() (normal, replica, pubsub BufferLimit) {
	words := c.Strings("client-output-buffer-limit")
	var limits [len(bufferClasses)]BufferLimit
	for i := range limits {
		var n [3]int64
		for j := range n {
			n[j], _ = parseInt(words[4*i+1+j])
		}
		limits[i] = BufferLimit{Hard: n[0], Soft: n[1], SoftSeconds: n[2]}
	}
	return limits[0], limits[1], limits[2]
}

// KeyspaceEvents returns every letter that notify-keyspace-events has switched on, with A written out, and n beside
// it, which CONFIG GET does not show then.
func (c *Config) KeyspaceEvents() string {
	return c.must("notify-keyspace-events").value.Load().words[0]
}

// Allowed reports whether one of the enable-*-command and enable-protected-configs directives lets a client do what
// it guards; local says that the client is connected by loopback or Unix socket.
func (c *Config) Allowed(name string, local bool) bool {
	switch c.String(name) {
	case "yes":
		return true
	case "local":
		return local
	}
	return false
}

// Redacted reports whether the value of the directive of that name, in any case, is a secret: SLOWLOG, MONITOR and
// the log show "(redacted)" for the argument that follows it in CONFIG SET.
func (c *Config) Redacted(name string) bool {
	d := c.Lookup(name)
	return d != nil && d.Redacted
}

// Path returns the absolute path of the configuration file, or "".
func (c *Config) Path() string { return c.path }

// Warnings returns what the operator should know about the sources that were loaded, in their order.
func (c *Config) Warnings() []Warning { return c.warnings }

// Ignored returns the settings in the sources that have no effect here, for a line each at debug level.
func (c *Config) Ignored() []Setting { return c.ignored }

// Unclaimed returns the settings of modules, by name, that the sources give and no module has registered.
func (c *Config) Unclaimed() []Setting {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Setting
	for _, name := range slices.Sorted(maps.Keys(c.moduleSettings)) {
		if c.known.Load().byName[name] == nil {
			out = append(out, Setting{c.moduleSettings[name].origin, name})
		}
	}
	return out
}

// OnChange has f called by Set when the named directive's value changes, with the texts CONFIG GET shows. It is called
// once all values of that Set can be read and before Set returns, one call at a time. If f or a later hook returns an
// error, all values of that Set are put back, and f is called again with old and new exchanged, to undo what it did;
// its error is then logged nowhere. The error's text reaches the client. f must not call Set, SetLines, Register,
// OnChange or Rewrite.
func (c *Config) OnChange(name string, f func(old, new string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.must(name)
	e.hooks = append(e.hooks, f)
}

// Register adds a module's setting, named module.parameter, to the table: CONFIG GET and SET know it from then on.
// A value that is given here is taken, otherwise one that the sources gave. It must not be of kind Lines, nor
// Unsupported.
func (c *Config) Register(d Directive, given ...string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d.Name = strings.ToLower(d.Name)
	if module, parameter, _ := strings.Cut(d.Name, "."); module == "" || parameter == "" {
		return fmt.Errorf("config: setting %q is not named module.parameter", d.Name)
	}
	if d.Kind == Lines || d.Unsupported != "" {
		return fmt.Errorf("config: setting %q cannot be a module's", d.Name)
	}
	e, err := newEntry(&d)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	source, ok := c.moduleSettings[d.Name]
	if len(given) > 0 {
		source, ok = moduleSetting{args: given}, true
	}
	if ok {
		v, err := d.parse(source.args, e.initial)
		if err != nil {
			return &Error{Origin: source.origin, Directive: d.Name, Value: strings.Join(source.args, " "), Reason: err.Error(), Suggestion: "it takes " + d.Takes()}
		}
		e.value.Store(v)
	}
	old := c.known.Load()
	r := &registry{order: slices.Clone(old.order), byName: maps.Clone(old.byName)}
	if err := r.add(e); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	c.known.Store(r)
	return nil
}

// Unregister takes a module's setting out of the table again. It reports whether it was there.
func (c *Config) Unregister(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.known.Load()
	e, lower := old.lookup(name)
	if e == nil || !strings.Contains(lower, ".") {
		return false
	}
	r := &registry{byName: maps.Clone(old.byName)}
	for _, other := range old.order {
		if other != e {
			r.order = append(r.order, other)
		}
	}
	delete(r.byName, e.Name)
	for _, alias := range e.Aliases {
		delete(r.byName, alias)
	}
	c.known.Store(r)
	return true
}
