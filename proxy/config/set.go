package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/latchkey-proxy/latchkey/store/glob"
)

// Pair is a directive's name and its value as CONFIG GET prints it.
type Pair struct{ Name, Value string }

// maxSetBytes bounds one value of CONFIG SET.
const maxSetBytes = 64 << 10

// Get answers CONFIG GET: the directives that the patterns match, each once, those of the first pattern first. A name
// without *, ? or [ is looked up in any case and shown as it was asked for, as Redis does; patterns match aliases too
// and leave out hidden directives.
func (c *Config) Get(patterns ...string) []Pair { return c.GetWhile(nil, patterns...) }

// GetWhile is Get that goes on while goOn says so, as glob.MatchWhile; what it returns then is not whole.
func (c *Config) GetWhile(goOn func(steps int) bool, patterns ...string) []Pair {
	r := c.known.Load()
	var pairs []Pair
	seen := make(map[string]bool)
	show := func(e *entry, key, name string) {
		if e.Kind != Lines && !seen[key] {
			seen[key] = true
			pairs = append(pairs, Pair{name, e.value.Load().text})
		}
	}
	for _, pattern := range patterns {
		if !strings.ContainsAny(pattern, "[*?") {
			if e, lower := r.lookup(pattern); e != nil {
				show(e, lower, pattern)
			}
			continue
		}
		for _, e := range r.order {
			if e.Hidden {
				continue
			}
			if goOn != nil && !goOn(min(len(pattern), len(e.Name))) {
				return nil
			}
			if glob.MatchWhile(pattern, e.Name, true, goOn) {
				show(e, e.Name, e.Name)
			}
			for _, alias := range e.Aliases {
				if glob.MatchWhile(pattern, alias, true, goOn) {
					show(e, alias, alias)
				}
			}
		}
	}
	return pairs
}

// change is one directive's part of a Set.
type change struct {
	entry    *entry
	name     string // as the directive is known, for the error
	old, new *value
}

// Set answers CONFIG SET: all of the pairs take effect, or none and the error is a *ReplyError with Redis's text. local
// says that the client is connected by loopback or Unix socket, for protected directives.
func (c *Config) Set(pairs []Pair, local bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	entries, err := c.settable(pairs, local)
	if err != nil {
		return err
	}
	var changes []*change
	staged := make(map[*entry]*change, len(entries))
	for i, e := range entries {
		name := strings.ToLower(pairs[i].Name)
		ch := staged[e]
		if ch == nil {
			old := e.value.Load()
			ch = &change{entry: e, old: old, new: old}
			staged[e] = ch
			changes = append(changes, ch)
		}
		ch.name = name
		v, err := e.parseSet(pairs[i].Value, ch.new)
		if err != nil {
			return setFailed(name, err.Error())
		}
		ch.new = v
	}
	// As in Redis all values are in place before the first hook runs: a hook that reads a neighbour sees its new value.
	for _, ch := range changes {
		ch.entry.value.Store(ch.new)
	}
	for i, ch := range changes {
		ran, err := ch.run()
		if err == nil {
			continue
		}
		for _, back := range changes {
			back.entry.value.Store(back.old)
		}
		ch.undo(ran)
		for j := i - 1; j >= 0; j-- {
			changes[j].undo(len(changes[j].entry.hooks))
		}
		return setFailed(ch.name, err.Error())
	}
	return nil
}

// settable finds the entries of the pairs, or the first reason why they cannot be set.
func (c *Config) settable(pairs []Pair, local bool) ([]*entry, error) {
	r := c.known.Load()
	entries := make([]*entry, len(pairs))
	seen := make(map[string]bool, len(pairs))
	for i, p := range pairs {
		e, lower := r.lookup(p.Name)
		switch {
		case e == nil || e.Kind == Lines:
			return nil, replyError("ERR Unknown option or number of arguments for CONFIG SET - '" + clipReply(p.Name) + "'")
		case !e.Mutable:
			return nil, setFailed(p.Name, "can't set immutable config")
		case e.Protected && !c.Allowed("enable-protected-configs", local):
			return nil, setFailed(p.Name, "can't set protected config")
		case seen[lower]:
			return nil, setFailed(p.Name, "duplicate parameter")
		}
		seen[lower] = true
		entries[i] = e
	}
	return entries, nil
}

func setFailed(name, reason string) error {
	return replyError(fmt.Sprintf("ERR CONFIG SET failed (possibly related to argument '%s') - %s", clipReply(name), reason))
}

// parseSet reads a value of CONFIG SET; it replaces what a Repeatable directive has.
func (e *entry) parseSet(text string, prev *value) (*value, error) {
	if len(text) > maxSetBytes {
		return nil, errors.New("argument is longer than 64 KiB")
	}
	args := []string{text}
	if e.Kind.manyArguments() {
		// One space separates, as in Redis: two have an empty word between them, and nothing at all has no word.
		args = nil
		if text != "" {
			args = strings.Split(text, " ")
		}
	}
	if e.Kind == Words {
		prev = nil
	}
	v, err := e.parse(args, prev)
	if err == nil && e.Unsupported != "" && v.text != e.initial.text {
		err = errors.New(e.Unsupported)
	}
	return v, err
}

// run calls the hooks of a change until one refuses, and returns how many agreed.
func (ch *change) run() (int, error) {
	if ch.old.equal(ch.new) {
		return 0, nil
	}
	for i, hook := range ch.entry.hooks {
		if err := hook(ch.old.text, ch.new.text); err != nil {
			return i, err
		}
	}
	return len(ch.entry.hooks), nil
}

// undo calls the first n hooks with the values exchanged, the last first. What they answer cannot help any more.
func (ch *change) undo(n int) {
	if ch.old.equal(ch.new) {
		return
	}
	for i := n - 1; i >= 0; i-- {
		_ = ch.entry.hooks[i](ch.new.text, ch.old.text)
	}
}
