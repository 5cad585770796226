package plugins

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/latchkey-proxy/latchkey/plugins/fuel"
	"github.com/latchkey-proxy/latchkey/plugins/manifest"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// module is a loaded module: its compiled code, its commands, its instances.
type module struct {
	host     *Host
	man      *manifest.Manifest
	compiled wazero.CompiledModule
	path     string
	args     []string
	loading  Loading // by which it would be loaded again; without the parameters
	number   int64   // in the order of loading; that of the module it takes the place of
	specs    []*command.Spec
	served   map[string]*guestCommand // by the names of specs

	pool     pool
	dropOnce sync.Once // of its code

	granted  manifest.Capabilities // what it asks for, less what is withheld
	denied   []string              // what is withheld of that
	callable map[string]bool
	exports  exports

	stateKey []byte
	params   params
	told     *command.Spec // stands for the module where it is no command that runs
	alone    *cause        // nobody but the module

	timers *timers
	queue  *deliveries
	events uint32        // classes of keyspace events that it receives
	stop   chan struct{} // closed when it must begin no further delivery
	quit   chan struct{} // closed when the one under way must end, too
	worked chan struct{} // closed when work has ended; nil if it never began

	mu       sync.Mutex
	failures []time.Time // of late

	disabled  atomic.Pointer[string] // why
	waiting   *atomic.Int64          // clients that wait in a command of the module
	abandoned chan struct{}          // closed when these cannot be woken any more
	// inherited: another module has taken over the three above and what it is told.
	inherited bool
	// before are those whose places it takes: the last, and of the others those on
	// whose code calls ran still when it took them.
	before []*module

	kills  atomic.Int64 // by MODULE KILL, which ends the calls begun before it
	memory atomic.Int64 // bytes of the instances' linear memories, as of their last call

	*counts
}

// counts are what INFO counts of a module from its loading on, over its reloads.
type counts struct {
	calls                             atomic.Int64 // beside those that a pool counts: see pool.ready
	errors, traps, delivered, dropped atomic.Int64
}

// exports tells which optional functions a guest exports.
type exports struct{ wake, timer, event, closed bool }

// guestExports are what a module must export, with their types.
var guestExports = []struct {
	name            string
	params, results []api.ValueType
}{
	{"lk_abi", nil, []api.ValueType{api.ValueTypeI32}},
	{"lk_arena", []api.ValueType{api.ValueTypeI32}, []api.ValueType{api.ValueTypeI32}},
	{"lk_init", nil, []api.ValueType{api.ValueTypeI32}},
	{"lk_command", []api.ValueType{api.ValueTypeI32, api.ValueTypeI32, api.ValueTypeI32}, []api.ValueType{api.ValueTypeI32}},
}

// optionalExports are what a module may export, with their types.
var optionalExports = []struct {
	name            string
	params, results []api.ValueType
	there           func(e *exports) *bool
}{
	{"lk_wake", types(i64, i32, i32, i32), types(i32), func(e *exports) *bool { return &e.wake }},
	{"lk_timer", types(i64), types(i32), func(e *exports) *bool { return &e.timer }},
	{"lk_event", types(i32, i32, i32), types(i32), func(e *exports) *bool { return &e.event }},
	{"lk_closed", types(i64, i32, i32), types(i32), func(e *exports) *bool { return &e.closed }},
}

// checkExports refuses a module that does not export what it must, or not as
// it must.
func (m *module) checkExports() error {
	exported := m.compiled.ExportedFunctions()
	wrong := func(name string, def api.FunctionDefinition, params, results []api.ValueType) error {
		if sameTypes(def.ParamTypes(), params) && sameTypes(def.ResultTypes(), results) {
			return nil
		}
		return fmt.Errorf("the module exports %s%s, wanted %s", name, signature(def.ParamTypes(), def.ResultTypes()), signature(params, results))
	}
	for _, want := range guestExports {
		def := exported[want.name]
		if def == nil {
			return fmt.Errorf("the module does not export the function %s%s", want.name, signature(want.params, want.results))
		}
		if err := wrong(want.name, def, want.params, want.results); err != nil {
			return err
		}
	}
	for _, want := range optionalExports {
		if def := exported[want.name]; def != nil {
			*want.there(&m.exports) = true
			if err := wrong(want.name, def, want.params, want.results); err != nil {
				return err
			}
		}
	}
	for _, need := range []struct {
		asked        bool
		there        bool
		name, reason string
	}{
		{m.man.Capabilities.Timers, m.exports.timer, "lk_timer", "timers"},
		{len(m.man.Capabilities.Events) > 0, m.exports.event, "lk_event", "events"},
		{m.man.Capabilities.Clients, m.exports.closed, "lk_closed", "clients"},
	} {
		if need.asked && !need.there {
			return fmt.Errorf("the manifest asks for %s, and the module does not export the function %s that they need", need.reason, need.name)
		}
	}
	if m.compiled.ExportedMemories()["memory"] == nil {
		return errors.New("the module does not export its memory as \"memory\"")
	}
	return nil
}

// newModule checks what a compiled module imports and exports, makes its first
// instance, and the Specs of its commands.
func newModule(h *Host, man *manifest.Manifest, compiled wazero.CompiledModule, path string, args []string) (*module, error) {
	if err := checkImports(compiled); err != nil {
		return nil, err
	}
	instances := h.opt.MaxInstances
	if man.Limits.Instances > 0 {
		instances = min(instances, man.Limits.Instances)
	}
	m := &module{
		host: h, man: man, compiled: compiled, path: path, args: args,
		pool:     newPool(instances),
		stateKey: []byte(statePrefix + man.Name), told: &command.Spec{Name: man.Name},
		timers: newTimers(), queue: newDeliveries(), waiting: new(atomic.Int64), abandoned: make(chan struct{}), stop: make(chan struct{}), quit: make(chan struct{}),
		served: make(map[string]*guestCommand, len(man.Commands)), counts: new(counts),
	}
	m.alone = &cause{m: m, depth: 1}
	if err := m.checkExports(); err != nil {
		return nil, err
	}
	if err := m.grant(); err != nil {
		return nil, err
	}
	first, err := m.instantiate()
	if err != nil {
		return nil, err
	}
	m.pool.acquire(false) // the place
	m.pool.fill(first)
	m.give(first)
	for i := range man.Commands {
		spec, err := m.spec(&man.Commands[i])
		if err != nil {
			m.close()
			return nil, fmt.Errorf("command %s: %w", man.Commands[i].Name, err)
		}
		m.specs = append(m.specs, spec)
	}
	return m, nil
}

// checkImports refuses what no host function answers to.
func checkImports(compiled wazero.CompiledModule) error {
	for _, def := range compiled.ImportedFunctions() {
		from, name, _ := def.Import()
		if from == fuel.HostModule && name == fuel.RefillName {
			continue
		}
		var f *hostFunc
		switch from {
		case abiModule:
			if f = abiByName(name); f == nil {
				return fmt.Errorf("the module imports %s.%s, which ABI %d does not have", from, name, abiVersion)
			}
		case wasiModule:
			if f = wasiFunctions[name]; f == nil {
				return fmt.Errorf("the module imports %s.%s, which WASI preview 1 does not have", from, name)
			}
		default:
			return fmt.Errorf("the module imports %s.%s; only functions of %s and %s can be imported", from, name, abiModule, wasiModule)
		}
		if !sameTypes(def.ParamTypes(), f.params) || !sameTypes(def.ResultTypes(), f.results) {
			return fmt.Errorf("the module imports %s.%s as %s, wanted %s", from, name,
				signature(def.ParamTypes(), def.ResultTypes()), signature(f.params, f.results))
		}
	}
	if len(compiled.ImportedMemories()) != 0 {
		return errors.New("the module imports a memory; it must have one of its own")
	}
	return nil
}

func sameTypes(a, b []api.ValueType) bool { return string(a) == string(b) }

func signature(params, results []api.ValueType) string {
	names := func(ts []api.ValueType) string {
		var out []string
		for _, t := range ts {
			out = append(out, api.ValueTypeName(t))
		}
		return strings.Join(out, ", ")
	}
	s := "(" + names(params) + ")"
	if len(results) > 0 {
		s += " -> " + names(results)
	}
	return s
}

// guestCommand is a command of a module, as its instances know it.
type guestCommand struct {
	spec     *command.Spec
	id       int32
	readOnly bool
	state    manifest.State // what it may do with the module's
	hint     command.Hint
	asked    atomic.Uint64 // what it asks first: see comparison
}

// spec is the table's record of a plugin command.
func (m *module) spec(c *manifest.Command) (*command.Spec, error) {
	s := &command.Spec{
		Name: strings.ToLower(c.Name), Arity: c.Arity, Flags: command.Module, Access: command.Bounded,
		Summary: c.Summary, Since: c.Since, Group: c.Group, Complexity: "Depends on the module.",
	}
	for _, name := range c.Flags {
		f := command.FlagByName(strings.ToLower(name))
		if f == 0 {
			return nil, fmt.Errorf("unknown flag %q", name)
		}
		s.Flags |= f
	}
	for _, name := range c.ACL {
		cat := command.CategoryByName(strings.ToLower(name))
		if cat == 0 {
			return nil, fmt.Errorf("unknown ACL category %q", name)
		}
		s.Categories |= cat
	}
	if c.Keys != nil {
		last := c.Keys.Last
		if last >= 0 {
			last -= c.Keys.First
		}
		flags := command.KeyRW | command.KeyAccess | command.KeyUpdate
		if s.Flags&command.ReadOnly != 0 {
			flags = command.KeyRO | command.KeyAccess
		}
		s.Keys = []command.KeySpec{{Begin: c.Keys.First, Last: last, Step: c.Keys.Step, Flags: flags}}
	}
	cmd := &guestCommand{spec: s, id: c.ID, readOnly: s.Flags&command.ReadOnly != 0, state: m.setState(s, c)}
	m.served[s.Name] = cmd
	s.Handler = func(call *command.Call) { m.run(call, cmd) }
	s.Prepare = func(call *command.Call) {
		m.prepare()
		call.Lengthy = cmd.hint.Lengthy()
	}
	return s, nil
}

// close ends the instances as they come back.
func (m *module) close() {
	ready, last := m.pool.close()
	m.endDeliveries()
	if last {
		m.dropCode()
	}
	for _, in := range ready {
		m.discard(in)
	}
}

// dropCode forgets the compiled code, once: a module that is loaded again may have
// the same.
func (m *module) dropCode() {
	m.dropOnce.Do(func() { m.compiled.Close(context.Background()) })
}

// kill ends the calls under way, on the code before it, too, and returns how many
// there are.
func (m *module) kill() int {
	total := 0
	for _, m := range m.all() {
		if n := m.pool.running(); n > 0 {
			m.kills.Add(1)
			total += n
		}
	}
	return total
}

// all are the module and those before it.
func (m *module) all() []*module { return append(slices.Clip(m.before), m) }

func (m *module) running() int {
	total := 0
	for _, m := range m.all() {
		total += m.pool.running()
	}
	return total
}

// called is how many calls were begun, on the code before it, too.
func (m *module) called() int64 {
	total := m.calls.Load()
	for _, m := range m.all() {
		total += m.pool.taken()
	}
	return total
}

func (m *module) describe() Loaded {
	l := Loaded{
		Name: m.man.Name, Version: m.man.Version.Number(), Path: m.path, Args: m.args,
		Calls: m.called(), Errors: m.errors.Load(), Traps: m.traps.Load(),
		Running: m.running(), Instances: m.pool.size(), MemoryBytes: m.memory.Load(),
		Capabilities: m.granted.Names(), Withheld: m.denied,
		Delivered: m.delivered.Load(), Dropped: m.dropped.Load(), Queued: m.queue.length(), Timers: m.timers.count(), Waiting: m.waiting.Load(),
	}
	if why := m.disabled.Load(); why != nil {
		l.Disabled = *why
	}
	return l
}
