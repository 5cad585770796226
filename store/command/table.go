package command

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Table is the one table of commands. Rooms hand in their families when it is
// made; modules add and remove theirs while the server runs. Look-ups take no
// lock.
type Table struct {
	mu      sync.Mutex
	byName  atomic.Pointer[map[string]*Spec]
	version atomic.Uint64
}

// Version grows whenever commands are added or removed, so that whoever keeps a
// Spec knows when to look it up again.
func (t *Table) Version() uint64 { return t.version.Load() }

// NewTable puts the families together. A bad Spec is an error that names it.
func NewTable(families ...[]*Spec) (*Table, error) {
	t := &Table{}
	empty := make(map[string]*Spec)
	t.byName.Store(&empty)
	for _, f := range families {
		if err := t.Add("", f); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Add adds commands, all or none, on behalf of a module ("" for our own).
func (t *Table) Add(module string, specs []*Spec) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.add(maps.Clone(*t.byName.Load()), module, specs)
}

// Replace puts specs in the place of a module's commands, all or none. Nobody
// who looks a command up meanwhile finds none where one was and is.
func (t *Table) Replace(module string, specs []*Spec) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := *t.byName.Load()
	for _, s := range specs {
		if old := was[s.Name]; old != nil && old.module == module {
			s.carried = old.Usage()
		}
	}
	return t.add(t.without(module), module, specs)
}

// Remove takes the commands of a module out.
func (t *Table) Remove(module string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := t.without(module)
	t.byName.Store(&next)
	t.version.Add(1)
}

// without is a copy of the table that lacks a module's commands.
func (t *Table) without(module string) map[string]*Spec {
	next := maps.Clone(*t.byName.Load())
	if module != "" {
		maps.DeleteFunc(next, func(_ string, s *Spec) bool { return s.module == module })
	}
	return next
}

// add puts specs into next, which becomes the table when all are right.
func (t *Table) add(next map[string]*Spec, module string, specs []*Spec) error {
	for _, s := range specs {
		if err := s.check(); err != nil {
			return err
		}
		if other, taken := next[s.Name]; taken {
			by := "the server's own"
			if other.module != "" {
				by = "the module " + other.module + "'s"
			}
			return fmt.Errorf("command %q: the name is taken, it is %s", s.Name, by)
		}
		next[s.Name] = s
	}
	for _, s := range specs {
		s.module = module
		s.fullName = s.Name
		s.counted, s.single, s.plain = s.isCounted(), s.oneKey(), s.isPlain()
		for _, sub := range s.Sub {
			sub.parent = s
			sub.module = module
			sub.fullName = s.Name + "|" + sub.Name
		}
	}
	t.byName.Store(&next)
	t.version.Add(1)
	return nil
}

// Errors of Rename, in Redis's words.
var (
	ErrRenameUnknown = errors.New("No such command in rename-command")
	ErrRenameTaken   = errors.New("Target command name already exists")
	ErrRenameName    = fmt.Errorf("the new name must have at most %d bytes", maxName)
)

// Rename has a command called by another name, or with "" by none. Its Spec
// keeps its own name: COMMAND, INFO and errors show that, as Redis does. It is
// for the start, before anyone calls the command.
func (t *Table) Rename(name, to string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	name, to = strings.ToLower(name), strings.ToLower(to)
	old := *t.byName.Load()
	s := old[name]
	switch {
	case s == nil:
		return ErrRenameUnknown
	case len(to) > maxName:
		return ErrRenameName
	case to != name && old[to] != nil:
		return ErrRenameTaken
	}
	next := maps.Clone(old)
	delete(next, name)
	if to != "" {
		next[to] = s
		s.renamed = to != s.Name
	}
	t.byName.Store(&next)
	t.version.Add(1)
	return nil
}

// check refuses an entry that cannot be right.
func (s *Spec) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("command %q: %s", s.Name, fmt.Sprintf(format, args...))
	}
	if s.Name == "" || s.Name != strings.ToLower(s.Name) || strings.ContainsAny(s.Name, " |\r\n") {
		return bad("the name must be lower case, without blanks or |")
	}
	if s.Arity == 0 {
		return bad("arity must not be 0")
	}
	if s.Handler == nil && len(s.Sub) == 0 {
		return bad("it has neither a handler nor sub-commands")
	}
	if s.Flags&Write != 0 && s.Flags&ReadOnly != 0 {
		return bad("it cannot be both write and readonly")
	}
	if s.Access > Free {
		return bad("unknown access %d", s.Access)
	}
	if s.Instant && (s.Access != Free || s.Outside || s.Flags&Blocking != 0) {
		return bad("only a free command that neither blocks nor acts outside of the keyspace can be instant")
	}
	if s.Brief && !s.oneKey() {
		return bad("only a command of one key by its place can be brief")
	}
	if len(s.Keys) == 0 && s.Extra == nil && len(s.Sub) == 0 && s.Access <= Locked {
		return bad("access by keys, but no key specs")
	}
	for _, k := range s.Keys {
		switch {
		case k.Keyword == "" && k.Begin < 1:
			return bad("a key spec begins at %d, want at least 1", k.Begin)
		case k.Step < 0 || k.Limit < 0 || k.CountAt < 0 || k.FirstAt < 0:
			return bad("a key spec has a negative step, limit or offset")
		case !k.Count && k.Last >= 0 && k.Keyword == "" && s.minArgs() <= k.Begin+k.Last && k.Flags&KeyIncomplete == 0:
			return bad("arity %d allows fewer arguments than the key spec needs", s.Arity)
		}
	}
	seen := make(map[string]bool)
	for _, sub := range s.Sub {
		if seen[sub.Name] {
			return bad("sub-command %q stands twice", sub.Name)
		}
		seen[sub.Name] = true
		if len(sub.Sub) != 0 {
			return bad("sub-command %q has sub-commands", sub.Name)
		}
		if err := sub.check(); err != nil {
			return fmt.Errorf("command %q: %w", s.Name, err)
		}
	}
	return nil
}

func (s *Spec) minArgs() int {
	if s.Arity < 0 {
		return -s.Arity
	}
	return s.Arity
}

// maxName bounds what a look-up compares; no command's name is longer.
const maxName = 64

// Lookup finds a command by its name in any case, nil if there is none. It does
// not allocate.
func (t *Table) Lookup(name []byte) *Spec {
	if len(name) > maxName {
		return nil
	}
	var buf [maxName]byte
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		buf[i] = c
	}
	return (*t.byName.Load())[string(buf[:len(name)])]
}

// Find finds the command of an argument vector, descending to the sub-command
// where there is one. Unknown commands and sub-commands, and a wrong number of
// arguments, come back as the text of the error reply.
func (t *Table) Find(args [][]byte) (*Spec, string) {
	s := t.Lookup(args[0])
	if s == nil {
		return nil, unknownCommand(args)
	}
	return s.Resolve(args)
}

// Resolve is Find from the command on.
func (s *Spec) Resolve(args [][]byte) (*Spec, string) {
	if len(s.Sub) != 0 {
		if len(args) < 2 && s.Handler == nil {
			return nil, WrongArity(s)
		}
		if len(args) >= 2 {
			sub := s.sub(args[1])
			if sub == nil {
				return nil, unknownSubcommand(args)
			}
			s = sub
		}
	}
	if s.Arity > 0 && len(args) != s.Arity || len(args) < -s.Arity {
		return nil, WrongArity(s)
	}
	return s, ""
}

func (s *Spec) sub(name []byte) *Spec {
	for _, sub := range s.Sub {
		if equalFold(name, sub.Name) {
			return sub
		}
	}
	return nil
}

// SubByName returns the sub-command of that name (any case), or nil.
func (s *Spec) SubByName(name []byte) *Spec { return s.sub(name) }

// ModuleName is the module that brought the command, "" for our own.
func (s *Spec) ModuleName() string { return s.module }

// equalFold compares a name from outside with a lower-case one of ours.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// All returns the commands sorted by name.
func (t *Table) All() []*Spec {
	m := *t.byName.Load()
	out := make([]*Spec, 0, len(m))
	for _, s := range m {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *Spec) int { return strings.Compare(a.Name, b.Name) })
	return out
}
