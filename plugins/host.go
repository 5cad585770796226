package plugins

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
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
	// MaxTime is how long one call of a plugin command may run; default 1 s.
	MaxTime time.Duration
	// MaxPages is how many pages of 64 KiB an instance's memory may have;
	// default 256.
	MaxPages int
	// MaxInstances is how many instances of a module may exist at a time, and
	// so how many of its commands run at a time; default 64.
	MaxInstances int
}

// Host loads modules and runs their commands. Its methods may be called by any
// goroutine.
type Host struct {
	opt     Options
	maxTime atomic.Int64 // MaxTime, in ns
	runtime wazero.Runtime

	mu      sync.Mutex // one load or unload at a time
	modules map[string]*module
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
	ctx := context.Background()
	h := &Host{opt: o, modules: make(map[string]*module)}
	h.SetMaxTime(o.MaxTime)
	h.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2).
		WithMemoryLimitPages(uint32(o.MaxPages)))
	if err := h.exportABI(ctx); err != nil {
		h.runtime.Close(ctx)
		return nil, fmt.Errorf("plugins: %w", err)
	}
	return h, nil
}

// SetMaxTime bounds how long calls that begin from now on may run; 0 or less is
// a second.
func (h *Host) SetMaxTime(d time.Duration) {
	if d <= 0 {
		d = time.Second
	}
	h.maxTime.Store(int64(d))
}

// Close drops all modules. No call may be under way.
func (h *Host) Close() error { return h.runtime.Close(context.Background()) }

// Loaded describes a module for MODULE LIST, HELLO and INFO.
type Loaded struct {
	Name    string
	Version int
	Path    string
	Args    []string
}

// List returns the loaded modules by name.
func (h *Host) List() []Loaded {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []Loaded
	for _, m := range h.modules {
		out = append(out, Loaded{m.man.Name, m.man.Version.Number(), m.path, m.args})
	}
	slices.SortFunc(out, func(a, b Loaded) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// maxFile bounds the file of a module, in bytes.
const maxFile = 16 << 20

// Load reads, checks and compiles a module and adds its commands to t. Nothing is
// registered unless everything is right; the error says what was found and
// what was wanted.
func (h *Host) Load(t *command.Table, path string, args []string) error {
	wasm, real, err := h.read(path)
	if err != nil {
		return err
	}
	return h.load(t, real, wasm, args)
}

// read returns the bytes of a module's file, which must lie in Dir.
func (h *Host) read(path string) ([]byte, string, error) {
	real, err := filepath.Abs(path)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, plain(err))
	}
	if h.opt.Dir != "" {
		dir, err := filepath.Abs(h.opt.Dir)
		if err == nil {
			dir, err = filepath.EvalSymlinks(dir)
		}
		if err != nil {
			return nil, "", fmt.Errorf("plugin-dir %s: %w", h.opt.Dir, plain(err))
		}
		if rel, err := filepath.Rel(dir, real); err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return nil, "", fmt.Errorf("%s: modules are loaded from plugin-dir %s only", path, h.opt.Dir)
		}
	}
	f, err := os.Open(real)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, plain(err))
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, "", fmt.Errorf("%s: not a regular file", path)
	}
	wasm, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, plain(err))
	}
	switch {
	case len(wasm) > maxFile:
		return nil, "", fmt.Errorf("%s: the file is larger than %d MiB", path, maxFile>>20)
	case bytes.HasPrefix(wasm, []byte("\x7fELF")):
		return nil, "", fmt.Errorf("%s: this is a native library (ELF), made for Redis's C module API; latchkey loads WebAssembly modules (.wasm) with a %s section", path, manifest.SectionName)
	case !bytes.HasPrefix(wasm, []byte("\x00asm")):
		return nil, "", fmt.Errorf("%s: not a WebAssembly module: it does not begin with \\0asm", path)
	}
	return wasm, real, nil
}

// plain leaves out of a path error what the caller says itself.
func plain(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func (h *Host) load(t *command.Table, path string, wasm []byte, args []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	man, err := manifest.Read(wasm)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if _, there := h.modules[man.Name]; there {
		return fmt.Errorf("%s: a module named %s is loaded already", path, man.Name)
	}
	if man.ABI.Min > abiVersion || man.ABI.Max < abiVersion {
		return fmt.Errorf("%s: the module wants ABI %d to %d, this latchkey has %d", path, man.ABI.Min, man.ABI.Max, abiVersion)
	}
	pages := h.opt.MaxPages
	if man.Limits.MemoryPages > 0 {
		pages = min(pages, man.Limits.MemoryPages)
	}
	code, err := fuel.Instrument(wasm, fuel.Options{MemoryPages: uint32(pages)})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	ctx := context.Background()
	compiled, err := h.runtime.CompileModule(ctx, code)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	m, err := newModule(h, man, compiled, path, args)
	if err != nil {
		compiled.Close(ctx)
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := t.Add(man.Name, m.specs); err != nil {
		m.close()
		return fmt.Errorf("%s: %w", path, err)
	}
	h.modules[man.Name] = m
	h.opt.Log.Info("module loaded", "module", man.Name, "version", man.Version.String(), "path", path,
		"commands", len(man.Commands), "reads", prefixes(man.Capabilities.Read), "writes", prefixes(man.Capabilities.Write))
	return nil
}

// prefixes are the keys that a capability grants, in words.
func prefixes(list []string) string {
	if slices.Contains(list, "") {
		return "every key"
	}
	if len(list) == 0 {
		return "no key"
	}
	var b strings.Builder
	for i, p := range list {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%q", p)
	}
	return b.String()
}

// ErrNoSuchModule is what Unload answers for a name it does not know.
var ErrNoSuchModule = errors.New("no such module with that name")

// Unload takes a module's commands out of t and ends its instances.
// Calls under way end on them.
func (h *Host) Unload(t *command.Table, name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.modules[name]
	if m == nil {
		return ErrNoSuchModule
	}
	delete(h.modules, name)
	t.Remove(name)
	m.close()
	h.opt.Log.Info("module unloaded", "module", name)
	return nil
}
