package plugins

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// abiVersion is the version of the host interface in this package.
const abiVersion = 1

// Options configure a Host.
type Options struct {
	// Log receives what guests log, and what becomes of them; default
	// slog.Default().
	Log *slog.Logger
	// Dir is the only folder that modules may be loaded from; "" allows every
	// folder.
	Dir string
	// Allowed says whether whoever sent the MODULE command may load and
	// unload; nil: nobody.
	Allowed func(c *command.Call) bool
	// PutAllowed says the same of LATCHKEY PLUGIN PUT, which writes to Dir; nil: nobody.
	PutAllowed func(c *command.Call) bool
	// MaxTime is how long one call of a plugin command may run; default 1 s.
	MaxTime time.Duration
	// MaxPages is how many pages of 64 KiB an instance's memory may have;
	// default 256.
	MaxPages int
	// CacheDir is the folder of compiled modules, which must be closed to other
	// users; it is made when the first module is loaded. "" compiles each module
	// in memory.
	CacheDir string
	// Compile compiles a module for the cache in a process of its own; nil: in
	// this one. Without CacheDir it is not used.
	Compile CompileFunc
	// MaxCompile is how much processor time a module may take to compile; default
	// 30 s.
	MaxCompile time.Duration
	// MaxInstances is how many instances of a module may exist at a time, and
	// so how many of its commands run at a time; default 64.
	MaxInstances int
	// MaxFailures is how many guests of a module may have to be ended within
	// FailureWindow before it is disabled; default 0, never. FailureWindow's
	// default is a minute.
	MaxFailures   int
	FailureWindow time.Duration
	// Withheld are the capabilities that a module does not get though its
	// manifest asks for them; default none.
	Withheld func(module string) []string
	// Settings keep the parameters of modules; nil: they have their defaults.
	Settings Settings
	// Changed, when it is set, is told what must be loaded to have the modules that
	// there are now, in the order in which they came, as ParseLoading reads it.
	Changed func(loadmodule [][]string)
	// Seed seeds the generator of a call that asks for random bytes; default
	// crypto/rand.
	Seed func() [32]byte
}

// Host loads modules and runs their commands. Its methods may be called by any
// goroutine.
type Host struct {
	opt        Options
	maxTime    atomic.Int64 // MaxTime, in ns
	maxCompile atomic.Int64 // MaxCompile, in ns

	maxFailures, failureWindow atomic.Int64

	bound  bound
	engine atomic.Pointer[command.Engine]     // nil before Attach
	loaded atomic.Pointer[map[string]*module] // modules, for those who deliver

	// loading is held while a module is read, compiled and swapped in, which may
	// take seconds. Whoever only wants to know what is loaded takes mu.
	loading sync.Mutex
	runtime wazero.Runtime // made when the first module is loaded
	cache   *codeCache     // nil: compiled in memory
	store   wazero.CompilationCache

	mu      sync.Mutex
	modules map[string]*module
	entered int64 // how many modules were entered so far, under loading
}

// New makes a host without modules.
func New(o Options) (*Host, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.MaxPages <= 0 {
		o.MaxPages = 256
	}
	if o.MaxInstances <= 0 {
		o.MaxInstances = 64
	}
	if o.FailureWindow <= 0 {
		o.FailureWindow = time.Minute
	}
	if o.Seed == nil {
		o.Seed = randomSeed
	}
	h := &Host{opt: o, modules: make(map[string]*module)}
	h.SetMaxTime(o.MaxTime)
	h.SetMaxCompile(o.MaxCompile)
	h.SetMaxFailures(o.MaxFailures, o.FailureWindow)
	h.publish()
	return h, nil
}

// open makes the runtime that compiles and runs modules, once.
func (h *Host) open() error {
	if h.runtime != nil {
		return nil
	}
	ctx := context.Background()
	config := runtimeConfig(h.opt.MaxPages)
	if h.opt.CacheDir != "" {
		compile := h.opt.Compile
		if compile == nil {
			compile = func(_ context.Context, _ time.Duration, dir string, code []byte) error {
				return CompileInto(dir, h.opt.MaxPages, code)
			}
		}
		cache, err := openCodeCache(h.opt.CacheDir, compile)
		if err != nil {
			return err
		}
		store, err := wazero.NewCompilationCacheWithDir(cache.dir)
		if err != nil {
			return fmt.Errorf("plugin-cache-dir: %w", err)
		}
		h.cache, h.store = cache, store
		config = config.WithCompilationCache(store)
	}
	rt := wazero.NewRuntimeWithConfig(ctx, config)
	if err := h.exportABI(ctx, rt); err != nil {
		rt.Close(ctx)
		if h.store != nil {
			h.store.Close(ctx)
		}
		return fmt.Errorf("plugins: %w", err)
	}
	h.runtime = rt
	return nil
}

// SetMaxTime bounds how long calls that begin from now on may run; 0 or less is
// a second.
func (h *Host) SetMaxTime(d time.Duration) {
	if d <= 0 {
		d = time.Second
	}
	h.maxTime.Store(int64(d))
}

// SetMaxCompile bounds how much processor time modules that are loaded from now on
// may take to compile; 0 or less is half a minute. The checks of their shape keep
// most far below it.
func (h *Host) SetMaxCompile(d time.Duration) {
	if d <= 0 {
		d = 30 * time.Second
	}
	h.maxCompile.Store(int64(d))
}

func randomSeed() (seed [32]byte) {
	crand.Read(seed[:]) // which does not fail
	return seed
}

// Close drops all modules. No call may be under way.
func (h *Host) Close() error {
	h.loading.Lock()
	defer h.loading.Unlock()
	h.mu.Lock()
	modules := h.modules
	h.modules = make(map[string]*module)
	h.publish()
	h.mu.Unlock()
	for _, m := range modules {
		m.endDeliveries()
	}
	if h.runtime == nil {
		return nil
	}
	ctx := context.Background()
	err := h.runtime.Close(ctx)
	if h.store != nil {
		err = errors.Join(err, h.store.Close(ctx))
	}
	return err
}

// Loaded describes a module, for MODULE LIST, HELLO and INFO.
type Loaded struct {
	Name    string
	Version int
	Path    string
	Args    []string

	// Since it was loaded: calls, those that answered an error, those that
	// trapped and lost their instance.
	Calls, Errors, Traps int64

	Running     int   // calls under way
	Instances   int   // with a linear memory each
	MemoryBytes int64 // of their linear memories, as of each one's last call

	Capabilities []string // granted, in the words of the manifest
	Withheld     []string // of those that the manifest asks for
	Disabled     string   // why it is disabled; "" if it is not

	Delivered int64 // timers, events and ends of clients
	Dropped   int64 // timers and events for which there was no room
	Queued    int   // still to be delivered
	Timers    int   // not yet due
	Waiting   int64 // clients that wait in a command
}

// List returns the loaded modules by name.
func (h *Host) List() []Loaded {
	h.mu.Lock()
	modules := slices.Collect(maps.Values(h.modules))
	h.mu.Unlock()
	var out []Loaded
	for _, m := range modules {
		out = append(out, m.describe())
	}
	slices.SortFunc(out, func(a, b Loaded) int { return strings.Compare(a.Name, b.Name) })
	return out
}
