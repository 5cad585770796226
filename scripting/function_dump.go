package scripting

import (
	"fmt"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
	"github.com/latchkey-proxy/latchkey/store/rdb"
)

// Redis's opcodes before a library in a payload: that of 7.0, and that of its
// release candidates.
const (
	opFunction      = 245
	opFunctionPreGA = 246
)

// functionDump writes what Redis 7.0 reads: every library's source, and the
// footer with version and checksum.
func (r *Runner) functionDump(c *command.Call) {
	var payload []byte
	for _, lib := range r.libraries.seenBy(c).sorted() {
		payload = rdb.AppendString(append(payload, opFunction), []byte(lib.Source))
	}
	c.Reply.Bulk(rdb.Seal(payload))
}

// librarySources takes the sources out of a payload, or tells what is wrong with
// it, as Redis has it. All together are not longer than limit.
func librarySources(payload []byte, limit int64) (sources [][]byte, problem string) {
	b, err := rdb.Open(payload)
	if err != nil {
		return nil, "ERR DUMP payload version or checksum are wrong"
	}
	for len(b) > 0 {
		switch b[0] {
		case opFunction:
		case opFunctionPreGA:
			return nil, "ERR Pre-GA function format not supported"
		default:
			return nil, "ERR given type is not a function"
		}
		var src []byte
		if src, b, err = rdb.ReadString(b[1:], limit); err != nil {
			return nil, "ERR Failed loading library payload"
		}
		limit -= int64(len(src))
		sources = append(sources, src)
	}
	return sources, ""
}

// restorePolicy says what becomes of the libraries that there are.
type restorePolicy uint8

const (
	restoreAppend restorePolicy = iota
	restoreReplace
	restoreFlush
)

func restoreOptions(c *command.Call) (policy restorePolicy, problem string) {
	switch {
	case len(c.Args) > 4:
		return 0, command.UnknownSubcommand(c.Spec, c.Args[1])
	case len(c.Args) == 3 || c.Is(3, "append"):
		return restoreAppend, ""
	case c.Is(3, "replace"):
		return restoreReplace, ""
	case c.Is(3, "flush"):
		return restoreFlush, ""
	}
	return 0, "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE."
}

// prepareRestore is FUNCTION RESTORE's Prepare.
func (r *Runner) prepareRestore(c *command.Call) {
	if c.Prepared != nil {
		return
	}
	if _, problem := restoreOptions(c); problem == "" {
		c.Prepared = r.madeOf(c, c.Args[2])
	}
}

func (r *Runner) madeOf(c *command.Call, payload []byte) *made {
	bounds := r.settings.Load().Libraries
	// A library counts as its source and its code: more of sources than this does
	// not fit, whatever is in them.
	sources, problem := librarySources(payload, bounds.Bytes/(1+codeFactor))
	if problem == "" && len(sources) > bounds.Libraries {
		problem = fmt.Sprintf("ERR the payload has %d function libraries, more than %d are not allowed (function-max-libraries)", len(sources), bounds.Libraries)
	}
	if problem != "" {
		return &made{problem: problem}
	}
	m := r.makeLibraries(c, sources)
	if m.problem != "" {
		return m
	}
	libraries, functions := map[string]bool{}, map[string]bool{}
	for _, lib := range m.libs {
		if libraries[lib.Name] {
			return &made{problem: fmt.Sprintf("ERR Library '%s' already exists", lib.Name)}
		}
		libraries[lib.Name] = true
		for _, f := range lib.Functions {
			if functions[foldName(f.Name)] {
				return &made{problem: fmt.Sprintf("ERR Function %s already exists", f.Name)}
			}
			functions[foldName(f.Name)] = true
		}
	}
	return m
}

func (r *Runner) functionRestore(c *command.Call) {
	policy, problem := restoreOptions(c)
	if problem != "" {
		c.Err(problem)
		return
	}
	r.prepareRestore(c)
	m := c.Prepared.(*made)
	if m.problem != "" {
		c.Err(m.problem)
		return
	}
	set := r.libraries.seenBy(c)
	var effects []store.Effect
	if policy == restoreFlush {
		effects = append(effects, functionEffect("FLUSH"))
		set = noLibraries
	}
	// Those to be replaced go first, or a function that has moved from one library
	// to another would be there twice when a log is replayed.
	for _, lib := range m.libs {
		if set.libraries[lib.Name] != nil {
			effects = append(effects, functionEffect("DELETE", lib.Name))
		}
	}
	for _, lib := range m.libs {
		effects = append(effects, loadEffect(lib))
	}
	next, problem := set.with(m.libs, policy == restoreReplace, r.settings.Load().Libraries, "ERR Library %s already exists")
	if problem != "" {
		c.Err(problem)
		return
	}
	if len(effects) != 0 {
		r.change(c, next, effects)
	}
	c.OK()
}
