package manifest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Bounds of what a manifest may ask for.
const (
	maxCommands = 256
	maxParams   = 256
	maxList     = 1024
	maxArity    = 1024
	maxFuel     = 1 << 40
	maxPages    = 65536
	maxReady    = 1024
)

var (
	knownFlags = []string{"write", "readonly", "denyoom", "fast", "noscript", "blocking"}
	knownACL   = []string{
		"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "geo",
		"stream", "pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting",
	}
	knownEvents = []string{"generic", "string", "list", "set", "hash", "zset", "stream", "expired", "evicted", "new", "module"}
	knownTypes  = []string{string(String), string(Int), string(Bool), string(Enum)}
	knownStates = []string{"none", "read", "write"}
)

// Parse reads a manifest. The error is an [*Error].
func Parse(document []byte) (*Manifest, error) {
	d := &decoder{}
	root := d.document(document)
	m := &Manifest{}
	top := d.object("", root)
	if _, there := top.fields["functions"]; there {
		d.fail("functions", "a list", "nothing: functions in WebAssembly are reserved for a later version of latchkey")
	}
	m.Name = d.matching(top, "name", moduleName, "1 to 64 letters, digits, '_' or '-', the first a letter")
	m.Version = d.version(top, "version")
	abi := d.object("abi", top.need("abi"))
	m.ABI.Min = int(d.integer(abi, "min", 1, math.MaxInt32))
	m.ABI.Max = int(d.integer(abi, "max", int64(m.ABI.Min), math.MaxInt32))
	abi.close()

	var inherits []bool // of each command, whether it says nothing of the state
	ids, names := map[int32]string{}, map[string]string{}
	for i, v := range d.list("commands", top.take("commands"), maxCommands) {
		path := fmt.Sprintf("commands[%d]", i)
		c, stated := d.command(d.object(path, v))
		inherits = append(inherits, !stated)
		if other, taken := ids[c.ID]; taken {
			d.fail(path+".id", strconv.Itoa(int(c.ID)), "an id of its own: "+other+" has it already")
		}
		if other, taken := names[strings.ToUpper(c.Name)]; taken {
			d.fail(path+".name", strconv.Quote(c.Name), "a name of its own: "+other+" has it already")
		}
		ids[c.ID], names[strings.ToUpper(c.Name)] = path, path
		m.Commands = append(m.Commands, c)
	}
	if v := top.take("capabilities"); v != nil {
		d.capabilities(d.object("capabilities", v), &m.Capabilities)
	}
	for i := range m.Commands {
		c, path := &m.Commands[i], fmt.Sprintf("commands[%d].state", i)
		switch {
		case inherits[i]:
			c.State = m.Capabilities.State
		case c.State > m.Capabilities.State:
			d.fail(path, strconv.Quote(c.State.String()), "no more than capabilities.state, "+strconv.Quote(m.Capabilities.State.String()))
		}
		if !slices.Contains(c.Flags, "write") {
			c.State = min(c.State, StateRead)
		}
	}
	if v := top.take("limits"); v != nil {
		o := d.object("limits", v)
		m.Limits.Fuel = d.optional(o, "fuel", 1, maxFuel)
		m.Limits.MemoryPages = int(d.optional(o, "memory_pages", 1, maxPages))
		m.Limits.Instances = int(d.optional(o, "instances", 1, maxReady))
		o.close()
	}
	params := map[string]string{}
	for i, v := range d.list("config", top.take("config"), maxParams) {
		path := fmt.Sprintf("config[%d]", i)
		p := d.param(d.object(path, v))
		if other, taken := params[p.Name]; taken {
			d.fail(path+".name", strconv.Quote(p.Name), "a name of its own: "+other+" has it already")
		}
		params[p.Name] = path
		m.Config = append(m.Config, p)
	}
	m.WakeVersion = int(d.optional(top, "wake_version", 0, math.MaxInt32))
	top.close()
	if len(m.Commands) == 0 && !m.Capabilities.Timers && len(m.Capabilities.Events) == 0 {
		d.fail("commands", "none", "at least one, unless there are timers or events")
	}
	if d.err != nil {
		return nil, d.err
	}
	return m, nil
}

func (d *decoder) command(o object) (c Command, stated bool) {
	c = Command{
		Name:    d.matching(o, "name", commandName, "1 to 64 letters, digits, '.', '_' or '-', the first a letter"),
		ID:      int32(d.integer(o, "id", 0, math.MaxInt32)),
		Arity:   int(d.integer(o, "arity", -maxArity, maxArity)),
		Flags:   d.words(o, "flags", knownFlags),
		ACL:     d.words(o, "acl", knownACL),
		Summary: d.text(o, "summary", 1, 256),
		Group:   "module",
	}
	if c.Arity == 0 {
		d.fail(o.path+".arity", "0", "the number of arguments with the name; negative for at least as many")
	}
	if o.has("since") {
		c.Since = d.version(o, "since").String()
	}
	if stated = o.has("state"); stated {
		c.State = d.state(o, "state")
	}
	if o.has("group") {
		c.Group = d.matching(o, "group", groupName, "1 to 32 lower case letters, digits, '_' or '-'")
	}
	write, read := slices.Contains(c.Flags, "write"), slices.Contains(c.Flags, "readonly")
	if v := o.take("keys"); v != nil {
		c.Keys = d.keys(d.object(o.path+".keys", v), c.Arity)
		if write == read {
			d.fail(o.path+".flags", quoteList(c.Flags), `either "write" or "readonly", since it has keys`)
		}
	} else if write && read {
		d.fail(o.path+".flags", quoteList(c.Flags), `"write" or "readonly", not both`)
	}
	o.close()
	return c, stated
}

// keys reads a key range and checks that it can be met by a command of that arity.
func (d *decoder) keys(o object, arity int) *Keys {
	least := max(arity, -arity) // arguments there are at least
	k := &Keys{
		First: int(d.integer(o, "first", 1, maxArity)),
		Last:  int(d.integer(o, "last", -maxArity, maxArity)),
		Step:  int(d.integer(o, "step", 1, maxArity)),
	}
	o.close()
	if k.First >= least {
		d.fail(o.path+".first", strconv.Itoa(k.First), fmt.Sprintf("less than %d, the number of arguments by arity", least))
	}
	last := k.Last
	if last < 0 {
		last += least
	}
	switch {
	case last < k.First:
		d.fail(o.path+".last", strconv.Itoa(k.Last), fmt.Sprintf("an argument not before the first key, %d", k.First))
	case last >= least:
		d.fail(o.path+".last", strconv.Itoa(k.Last), fmt.Sprintf("less than %d, the number of arguments by arity, or negative", least))
	}
	return k
}

func (d *decoder) capabilities(o object, c *Capabilities) {
	prefixes := func(name string) []string {
		var out []string
		for i, v := range d.list(o.path+"."+name, o.take(name), maxList) {
			path := fmt.Sprintf("%s.%s[%d]", o.path, name, i)
			s := d.string(path, v)
			if len(s) > 256 {
				d.fail(path, fmt.Sprintf("%d bytes", len(s)), "a prefix of at most 256 bytes")
			}
			out = append(out, s)
		}
		return out
	}
	c.Read, c.Write = prefixes("read"), prefixes("write")
	for i, v := range d.list(o.path+".commands", o.take("commands"), maxList) {
		path := fmt.Sprintf("%s.commands[%d]", o.path, i)
		s := d.string(path, v)
		name, sub, container := strings.Cut(s, "|")
		if !commandName(name) || container && !commandName(sub) {
			d.fail(path, strconv.Quote(s), "the name of a command, or of a sub-command such as \"CONFIG|GET\"")
		}
		c.Commands = append(c.Commands, strings.ToUpper(s))
	}
	if v := o.take("timers"); v != nil {
		c.Timers = d.bool(o.path+".timers", v)
	}
	c.Events = d.words(o, "events", knownEvents)
	if o.has("state") {
		c.State = d.state(o, "state")
	}
	if v := o.take("block"); v != nil {
		c.Block = d.bool(o.path+".block", v)
	}
	if v := o.take("clients"); v != nil {
		c.Clients = d.bool(o.path+".clients", v)
	}
	o.close()
}

func (d *decoder) param(o object) Param {
	p := Param{
		Name: d.matching(o, "name", groupName, "1 to 32 lower case letters, digits, '_' or '-'"),
		Type: ParamType(d.text(o, "type", 1, 16)),
	}
	path := o.path + ".default"
	v := o.need("default")
	if v2 := o.take("immutable"); v2 != nil {
		p.Immutable = d.bool(o.path+".immutable", v2)
	}
	switch p.Type {
	case Int:
		p.Min, p.Max = math.MinInt64, math.MaxInt64
		if o.has("min") {
			p.Min = d.integer(o, "min", math.MinInt64, math.MaxInt64)
		}
		if o.has("max") {
			p.Max = d.integer(o, "max", p.Min, math.MaxInt64)
		}
	case Enum:
		p.Values = d.values(o, "values")
	}
	switch p.Type {
	case String:
		if p.Default = d.string(path, v); len(p.Default) > 1024 {
			d.fail(path, fmt.Sprintf("%d bytes", len(p.Default)), "at most 1024 bytes")
		}
	case Int:
		p.Default = strconv.FormatInt(d.number(path, v, p.Min, p.Max), 10)
	case Enum:
		if p.Default = d.string(path, v); !slices.Contains(p.Values, p.Default) {
			d.fail(path, strconv.Quote(p.Default), "one of "+quoteList(p.Values))
		}
	case Bool:
		p.Default = "no"
		if d.bool(path, v) {
			p.Default = "yes"
		}
	default:
		d.fail(o.path+".type", strconv.Quote(string(p.Type)), "one of "+quoteList(knownTypes))
	}
	if o.has("summary") {
		p.Summary = d.text(o, "summary", 1, 256)
	}
	o.close()
	return p
}

// values reads the choices of an enum.
func (d *decoder) values(o object, name string) []string {
	var out []string
	for i, v := range d.list(o.join(name), o.need(name), maxList) {
		path := fmt.Sprintf("%s[%d]", o.join(name), i)
		s := d.string(path, v)
		switch {
		case !isName(s, 64, "._-", true):
			d.fail(path, strconv.Quote(s), "1 to 64 letters, digits, '.', '_' or '-'")
		case slices.ContainsFunc(out, func(other string) bool { return strings.EqualFold(other, s) }):
			d.fail(path, strconv.Quote(s)+" again", "each once")
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		d.fail(o.join(name), "none", "at least one")
	}
	return out
}

// state reads a use of the module's state.
func (d *decoder) state(o object, name string) State {
	s := d.string(o.join(name), o.need(name))
	i := slices.Index(knownStates, s)
	if i < 0 {
		d.fail(o.join(name), strconv.Quote(s), "one of "+quoteList(knownStates))
		return StateNone
	}
	return State(i)
}

// version reads three numbers separated by dots.
func (d *decoder) version(o object, name string) (v Version) {
	s := d.string(o.join(name), o.need(name))
	parts := strings.Split(s, ".")
	fields := []*int{&v.Major, &v.Minor, &v.Patch}
	ok := len(parts) == len(fields)
	for i := 0; ok && i < len(fields); i++ {
		n, err := strconv.ParseUint(parts[i], 10, 16)
		*fields[i] = int(n)
		ok = err == nil && strconv.FormatUint(n, 10) == parts[i] && (i == 0 || n <= 99)
	}
	if !ok {
		d.fail(o.join(name), strconv.Quote(s), `a version such as "1.12.3", the second and third number at most 99`)
	}
	return v
}

func moduleName(s string) bool { return isName(s, 64, "_-", true) && isLetter(s[0]) }

func commandName(s string) bool { return isName(s, 64, "._-", true) && isLetter(s[0]) }

func groupName(s string) bool { return isName(s, 32, "_-", false) }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isName(s string, most int, punctuation string, upper bool) bool {
	if s == "" || len(s) > most {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case upper && 'A' <= c && c <= 'Z':
		case strings.IndexByte(punctuation, c) >= 0:
		default:
			return false
		}
	}
	return true
}
