package plugins

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins/fuel"
	"github.com/latchkey-proxy/latchkey/plugins/manifest"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// Loading says how a module is loaded.
type Loading struct {
	Path string
	// Digest is what the file must have, "sha256:" and 64 hexadecimal digits; ""
	// takes any file.
	Digest string
	// Args are handed to the module's lk_init.
	Args []string
	// Config are values for the module's parameters, by their names in lower case,
	// such as "limiter.burst". They win over what the server's configuration says.
	Config map[string]string
}

// digestPrefix begins an argument of MODULE LOAD and loadmodule that is the
// file's digest and not the module's.
const digestPrefix = "sha256:"

// ParseLoading reads the words of MODULE LOAD and loadmodule: a path, the
// file's digest if it is to be checked, and the module's arguments.
func ParseLoading(words []string) Loading {
	l := Loading{Path: words[0], Args: words[1:]}
	if len(l.Args) > 0 && isDigest(l.Args[0]) {
		l.Digest, l.Args = l.Args[0], l.Args[1:]
	}
	return l
}

// isDigest tells whether an argument is meant as the file's digest. Letters' case does
// not matter: a module must not be loaded unchecked because of it.
func isDigest(arg string) bool {
	return len(arg) >= len(digestPrefix) && strings.EqualFold(arg[:len(digestPrefix)], digestPrefix)
}

// words are what ParseLoading reads as l.
func (l Loading) words() []string {
	words := []string{l.Path}
	if l.Digest != "" {
		words = append(words, l.Digest)
	}
	return append(words, l.Args...)
}

// Load reads, checks and compiles a module and adds its commands to t. Nothing is
// registered unless everything is right; the error says what was found and
// what was wanted. Commands of other modules run meanwhile.
func (h *Host) Load(t *command.Table, l Loading) error {
	h.loading.Lock()
	defer h.loading.Unlock()
	m, err := h.prepare(l, "")
	if err != nil {
		return err
	}
	if err := m.addParams(l.Config); err != nil {
		m.close()
		return fmt.Errorf("%s: %w", l.Path, err)
	}
	if err := t.Add(m.man.Name, m.specs); err != nil {
		m.removeParams(len(m.params.names))
		m.close()
		return fmt.Errorf("%s: %w", l.Path, err)
	}
	h.enter(m, "module loaded")
	m.start()
	return nil
}

// Reload puts a module's file, as it is now, in the place of the module; path is
// where it lies now, "" where it lay. A call under way ends on the code it began
// on, one that begins finds the new. If anything is wrong with the file all
// stays as it was.
func (h *Host) Reload(t *command.Table, name, path string) error {
	h.loading.Lock()
	defer h.loading.Unlock()
	old := h.find(name)
	if old == nil {
		return ErrNoSuchModule
	}
	l := Loading{Path: path, Args: old.args}
	if path == "" {
		l.Path, path = old.loading.Path, old.path
	}
	m, err := h.prepare(Loading{Path: path, Args: old.args}, name)
	if err != nil {
		return err
	}
	if old.loading.Digest != "" {
		l.Digest = m.loading.Digest
	}
	m.loading = l
	if err := m.takeParams(old); err != nil {
		m.close()
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := t.Replace(name, m.specs); err != nil {
		err = errors.Join(err, m.returnParams(old))
		m.close()
		return fmt.Errorf("%s: %w", path, err)
	}
	m.inherit(old)
	h.enter(m, "module reloaded")
	old.close()
	m.start()
	return nil
}

// Check does all of loading beside the commands of t, which stay as they are, and
// says what is wrong.
func (h *Host) Check(t *command.Table, l Loading) error {
	h.loading.Lock()
	defer h.loading.Unlock()
	m, err := h.prepare(l, "")
	if err != nil {
		return err
	}
	defer m.close()
	if err := t.Add(m.man.Name, m.specs); err != nil {
		return fmt.Errorf("%s: %w", l.Path, err)
	}
	t.Remove(m.man.Name)
	return nil
}

// Read returns the bytes of a module's file, as Load would take them.
func (h *Host) Read(path string) ([]byte, error) {
	wasm, _, err := h.read(path)
	return wasm, err
}

// InstrumentedSize is how many bytes a module has with its fuel.
func InstrumentedSize(wasm []byte, man *manifest.Manifest) (int, error) {
	code, err := fuel.Instrument(wasm, rewriting(man.Limits.MemoryPages))
	return len(code), err
}

// rewriting says how modules are rewritten: a command's reply that is a lone integer
// leaves the guest with its return, and a comparison that is foreseen does not leave it.
func rewriting(pages int) fuel.Options {
	return fuel.Options{
		MemoryPages: uint32(pages), Entry: "lk_command",
		Kept:     fuel.Import{Module: abiModule, Name: "reply_int"},
		Foreseen: fuel.Import{Module: abiModule, Name: "cad_args"},
	}
}

// prepare does all of loading but the registering. A module that takes the place
// of another must have its name.
func (h *Host) prepare(l Loading, instead string) (*module, error) {
	wasm, path, err := h.read(l.Path)
	if err != nil {
		return nil, err
	}
	m, err := h.build(wasm, path, l, instead)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.Path, err)
	}
	return m, nil
}

func (h *Host) build(wasm []byte, path string, l Loading, instead string) (*module, error) {
	if err := checkDigest(wasm, l.Digest); err != nil {
		return nil, err
	}
	man, err := manifest.Read(wasm)
	if err != nil {
		return nil, err
	}
	switch {
	case instead != "" && man.Name != instead:
		return nil, fmt.Errorf("the file holds the module %s, wanted %s", man.Name, instead)
	case instead == "" && h.find(man.Name) != nil:
		return nil, fmt.Errorf("a module named %s is loaded already; MODULE RELOAD %s takes its new version", man.Name, man.Name)
	case man.ABI.Min > abiVersion || man.ABI.Max < abiVersion:
		return nil, fmt.Errorf("the module wants ABI %d to %d, this latchkey has %d", man.ABI.Min, man.ABI.Max, abiVersion)
	}
	code, err := fuel.Instrument(wasm, rewriting(h.pages(man)))
	if err != nil {
		return nil, err
	}
	if err := h.open(); err != nil {
		return nil, err
	}
	if h.cache != nil {
		if err := h.cache.fill(code, time.Duration(h.maxCompile.Load())); err != nil {
			return nil, fmt.Errorf("the module cannot be compiled: %w", err)
		}
	}
	ctx := context.Background()
	compiled, err := h.runtime.CompileModule(ctx, code)
	if err != nil {
		return nil, fmt.Errorf("the module cannot be compiled: %w", err)
	}
	m, err := newModule(h, man, compiled, path, l.Args)
	if err != nil {
		compiled.Close(ctx)
		return nil, err
	}
	m.loading = l
	// An argument that looks like a digest would be read as one at the next start.
	if instead != "" || l.Digest == "" && len(l.Args) > 0 && isDigest(l.Args[0]) {
		m.loading.Digest = fmt.Sprintf("%s%x", digestPrefix, sha256.Sum256(wasm))
	}
	return m, nil
}

// pages is how many pages of memory a module may have: what it asks for or what the
// administrator allows, whichever is less.
func (h *Host) pages(man *manifest.Manifest) int {
	if asked := man.Limits.MemoryPages; asked > 0 {
		return min(asked, h.opt.MaxPages)
	}
	return h.opt.MaxPages
}

func checkDigest(wasm []byte, want string) error {
	if want == "" {
		return nil
	}
	digits := want
	if isDigest(want) {
		digits = want[len(digestPrefix):]
	}
	if b, err := hex.DecodeString(digits); err != nil || len(b) != sha256.Size {
		return fmt.Errorf("found %q for the file's digest, wanted %s and the 64 hexadecimal digits of its SHA-256", want, digestPrefix)
	}
	if sum := sha256.Sum256(wasm); !strings.EqualFold(hex.EncodeToString(sum[:]), digits) {
		return fmt.Errorf("the file's SHA-256 is %x, wanted %s", sum, strings.ToLower(digits))
	}
	return nil
}

// find is the module of a name, nil if none is loaded.
func (h *Host) find(name string) *module {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.modules[name]
}

// enter makes m the module of its name.
func (h *Host) enter(m *module, event string) {
	h.mu.Lock()
	if old := h.modules[m.man.Name]; old != nil {
		m.number = old.number
	} else {
		h.entered++
		m.number = h.entered
	}
	h.modules[m.man.Name] = m
	h.publish()
	h.mu.Unlock()
	h.changed()
	h.opt.Log.Info(event, "module", m.man.Name, "version", m.man.Version.String(), "path", m.path,
		"commands", len(m.man.Commands), "reads", Prefixes(m.granted.Read), "writes", Prefixes(m.granted.Write),
		"calls", strings.Join(m.granted.Commands, " "), "events", strings.Join(m.granted.Events, " "),
		"capabilities", strings.Join(m.granted.Names(), " "), "withheld", strings.Join(m.denied, " "))
}

// changed tells what there is to load now. Under loading.
func (h *Host) changed() {
	if h.opt.Changed == nil {
		return
	}
	h.mu.Lock()
	modules := slices.SortedFunc(maps.Values(h.modules), func(a, b *module) int { return cmp.Compare(a.number, b.number) })
	h.mu.Unlock()
	lines := make([][]string, len(modules))
	for i, m := range modules {
		lines[i] = m.loading.words()
	}
	h.opt.Changed(lines)
}

// Prefixes are the keys that a capability grants, in words.
func Prefixes(list []string) string {
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

// ErrNoSuchModule is what Unload, Reload and Kill answer for a name they do not know.
var ErrNoSuchModule = errors.New("no such module with that name")

// Unload takes a module's commands out of t and ends its instances.
// Calls under way end on them. A module in whose commands clients wait stays.
func (h *Host) Unload(t *command.Table, name string) error {
	h.loading.Lock()
	defer h.loading.Unlock()
	m := h.find(name)
	if m == nil {
		return ErrNoSuchModule
	}
	if n := m.waiting.Load(); n > 0 {
		return fmt.Errorf("%d clients wait in its commands", n)
	}
	h.mu.Lock()
	delete(h.modules, name)
	h.publish()
	h.mu.Unlock()
	t.Remove(name)
	m.removeParams(len(m.params.names))
	m.close()
	h.changed()
	h.opt.Log.Info("module unloaded", "module", name)
	return nil
}

// Kill ends the calls of a module that are under way, which are undone, and
// returns how many there were.
func (h *Host) Kill(name string) (int, error) {
	m := h.find(name)
	if m == nil {
		return 0, ErrNoSuchModule
	}
	return m.kill(), nil
}
