package proxy

import (
	"bytes"
	"slices"

	"github.com/latchkey-proxy/latchkey/store/command"
)

const commandFlags = command.Loading | command.Stale

// introspectionCommands are the Specs of this family, made anew for each server.
func introspectionCommands() []*command.Spec {
	return []*command.Spec{
		{
			Name: "command", Arity: -1, Flags: commandFlags, Categories: command.CatConnection, Access: command.Free, Handler: commandAll,
			Group: "server", Since: "2.8.13", Complexity: "O(N) where N is the total number of Redis commands",
			Summary: "Describes all commands.",
			Help: []string{
				"(no subcommand)",
				"    Return details about all Redis commands.",
				"COUNT",
				"    Return the total number of commands in this Redis server.",
				"LIST",
				"    Return a list of all commands in this Redis server.",
				"INFO [<command-name> ...]",
				"    Return details about multiple Redis commands.",
				"    If no command names are given, documentation details for all",
				"    commands are returned.",
				"DOCS [<command-name> ...]",
				"    Return documentation details about multiple Redis commands.",
				"    If no command names are given, documentation details for all",
				"    commands are returned.",
				"GETKEYS <full-command>",
				"    Return the keys from a full Redis command.",
				"GETKEYSANDFLAGS <full-command>",
				"    Return the keys and the access flags from a full Redis command.",
			},
			Sub: []*command.Spec{
				{
					Name: "count", Arity: 2, Flags: commandFlags, Categories: command.CatConnection, Access: command.Free, Handler: commandCount,
					Group: "server", Since: "2.8.13", Complexity: "O(1)", Summary: "Counts the commands.",
				},
				{
					Name: "docs", Arity: -2, Flags: commandFlags, Categories: command.CatConnection, Access: command.Free, Handler: commandDocs,
					Group: "server", Since: "7.0.0", Complexity: "O(N) where N is the number of commands to look up",
					Summary: "Documents commands.", Syntax: "[command-name [command-name ...]]",
				},
				{
					Name: "getkeys", Arity: -3, Flags: commandFlags, Categories: command.CatConnection, Access: command.Free, Handler: commandGetKeys,
					Group: "server", Since: "2.8.13", Complexity: "O(N) where N is the number of arguments to the command",
					Summary: "Returns the keys of a command with its arguments.", Syntax: "command [arg [arg ...]]",
				},
				{
					Name: "getkeysandflags", Arity: -3, Flags: commandFlags, Categories: command.CatConnection, Access: command.Free, Handler: commandGetKeysAndFlags,
					Group: "server", Since: "7.0.0", Complexity: "O(N) where N is the number of arguments to the command",
					Summary: "Returns the keys of a command with its arguments, and what it does with them.", Syntax: "command [arg [arg ...]]",
				},
				{
					Name: "info", Arity: -2, Flags: commandFlags, Categories: command.CatConnection, Access: command.Free, Handler: commandInfo,
					Group: "server", Since: "2.8.13", Complexity: "O(N) where N is the number of commands to look up",
					Summary: "Describes commands: arity, flags, keys, ACL categories.", Syntax: "[command-name [command-name ...]]",
				},
				{
					Name: "list", Arity: -2, Flags: commandFlags, Categories: command.CatConnection, Access: command.Free, Handler: commandList,
					Group: "server", Since: "7.0.0", Complexity: "O(N) where N is the total number of Redis commands",
					Summary: "Lists the names of the commands.", Syntax: "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]",
				},
				connectionHelp("command", "5.0.0"),
			},
		},
		monitorCommand,
	}
}

func commandAll(c *command.Call) {
	all := c.E.Table.All()
	c.Reply.Array(len(all))
	for _, s := range all {
		if describe(c.Reply, s); !c.GoOn(describeWork) {
			return
		}
	}
}

func commandCount(c *command.Call) { c.Reply.Int(int64(len(c.E.Table.All()))) }

func commandInfo(c *command.Call) {
	if len(c.Args) == 2 {
		commandAll(c)
		return
	}
	c.Reply.Array(len(c.Args) - 2)
	for _, name := range c.Args[2:] {
		if s := commandNamed(c.E.Table, name); s != nil {
			describe(c.Reply, s)
		} else {
			c.Reply.Null()
		}
		if !c.GoOn(describeWork) {
			return
		}
	}
}

// commandNamed finds "get", or a sub-command as "config|get"; nil if there is
// none.
func commandNamed(t *command.Table, name []byte) *command.Spec {
	name, sub, within := bytes.Cut(name, []byte("|"))
	s := t.Lookup(name)
	if s == nil || !within {
		return s
	}
	return s.SubByName(sub)
}

// What it costs to describe a command, to document it and to tell its name, in
// units of work, beside what each part of a reply costs who gets it.
const (
	describeWork = 50
	documentWork = 200
	nameWork     = 10
)

// hiddenFlags are the flags that COMMAND does not tell, as Redis does not.
const hiddenFlags = command.MayReplicate | command.Protected | command.MovableKeys

// describe is the entry of COMMAND INFO: name, arity, flags, first key, last
// key, step, ACL categories, tips, key specs, sub-commands.
func describe(r command.Reply, s *command.Spec) {
	keys, complete := s.KeyRange()
	flags := s.Flags &^ hiddenFlags
	if !complete {
		flags |= command.MovableKeys
	}
	r.Array(10)
	r.BulkString(s.FullName())
	r.Int(int64(s.Arity))
	statuses(r, "", flags.Names())
	r.Int(int64(keys.First))
	r.Int(int64(keys.Last))
	r.Int(int64(keys.Step))
	statuses(r, "@", s.AllCategories().Names())
	tips := s.Tips()
	r.Set(len(tips))
	for _, t := range tips {
		r.BulkString(t)
	}
	r.Set(len(s.Keys))
	for i := range s.Keys {
		describeKeys(r, &s.Keys[i])
	}
	if len(s.Sub) == 0 {
		r.Set(0)
		return
	}
	r.Array(len(s.Sub))
	for _, sub := range s.Sub {
		describe(r, sub)
	}
}

func statuses(r command.Reply, prefix string, names []string) {
	r.Set(len(names))
	for _, n := range names {
		r.Status(prefix + n)
	}
}

func describeKeys(r command.Reply, k *command.KeySpec) {
	step := int64(max(k.Step, 1))
	if k.Notes != "" {
		r.Map(4)
		r.BulkString("notes")
		r.BulkString(k.Notes)
	} else {
		r.Map(3)
	}
	r.BulkString("flags")
	statuses(r, "", k.Flags.Names())

	r.BulkString("begin_search")
	if k.Keyword != "" {
		searchType(r, "keyword", 2)
		r.BulkString("keyword")
		r.BulkString(k.Keyword)
		number(r, "startfrom", int64(k.From))
	} else {
		searchType(r, "index", 1)
		number(r, "index", int64(k.Begin))
	}

	r.BulkString("find_keys")
	if k.Count {
		searchType(r, "keynum", 3)
		number(r, "keynumidx", int64(k.CountAt))
		number(r, "firstkey", int64(k.FirstAt))
		number(r, "keystep", step)
	} else {
		searchType(r, "range", 3)
		number(r, "lastkey", int64(k.Last))
		number(r, "keystep", step)
		number(r, "limit", int64(k.Limit))
	}
}

// searchType opens the map of one half of a key spec.
func searchType(r command.Reply, name string, fields int) {
	r.Map(2)
	r.BulkString("type")
	r.BulkString(name)
	r.BulkString("spec")
	r.Map(fields)
}

func number(r command.Reply, name string, n int64) {
	r.BulkString(name)
	r.Int(n)
}

func commandList(c *command.Call) {
	keep := func(*command.Spec) bool { return true }
	switch {
	case len(c.Args) == 2:
	case len(c.Args) != 5 || !c.Is(2, "filterby"):
		c.Err(command.ErrSyntax)
		return
	case c.Is(3, "module"):
		module := string(c.Args[4])
		keep = func(s *command.Spec) bool { return module != "" && s.ModuleName() == module }
	case c.Is(3, "aclcat"):
		category := command.CategoryByName(string(bytes.ToLower(c.Args[4])))
		keep = func(s *command.Spec) bool { return s.AllCategories()&category != 0 }
	case c.Is(3, "pattern"):
		pattern := bytes.ToLower(c.Args[4])
		keep = func(s *command.Spec) bool { return c.Match(pattern, s.FullName()) }
	default:
		c.Err(command.ErrSyntax)
		return
	}
	var names []string
	for _, s := range c.E.Table.All() {
		if !c.GoOn(nameWork * (1 + len(s.Sub))) {
			return
		}
		if keep(s) {
			names = append(names, s.FullName())
		}
		for _, sub := range s.Sub {
			if keep(sub) {
				names = append(names, sub.FullName())
			}
		}
	}
	if !c.GoOn(len(names)) { // the last match may have been given up
		return
	}
	c.Reply.Array(len(names))
	for _, n := range names {
		c.Reply.BulkString(n)
	}
}

func commandGetKeys(c *command.Call) { keysOf(c, false) }

func commandGetKeysAndFlags(c *command.Call) { keysOf(c, true) }

func keysOf(c *command.Call, withFlags bool) {
	args := c.Args[2:]
	s := c.E.Table.Lookup(args[0])
	if s != nil && len(s.Sub) != 0 && len(args) > 1 {
		s = s.SubByName(args[1])
	}
	switch {
	case s == nil:
		c.Err("ERR Invalid command specified")
		return
	case !s.HasKeys():
		c.Err("ERR The command has no key arguments")
		return
	case s.Arity > 0 && len(args) != s.Arity || len(args) < -s.Arity:
		c.Err("ERR Invalid number of arguments specified for command")
		return
	}
	keys, err := s.AppendKeys(nil, args)
	if err != nil || len(keys) == 0 {
		if s.Flags&command.NoMandatoryKeys == 0 {
			c.Err("ERR Invalid arguments specified for command")
			return
		}
		keys = nil
	}
	c.Reply.Array(len(keys))
	for _, k := range keys {
		if !withFlags {
			c.Reply.Bulk(args[k.Index])
			continue
		}
		c.Reply.Array(2)
		c.Reply.Bulk(args[k.Index])
		flags := k.Flags
		if flags&command.KeyVariable != 0 {
			flags = variableFlags(s, args)
		}
		statuses(c.Reply, "", flags.Names())
	}
}

// variableFlags are the key flags of a command that writes or reads according
// to its arguments.
func variableFlags(s *command.Spec, args [][]byte) command.KeyFlags {
	switch s.Name {
	case "set":
		if !slices.ContainsFunc(args[3:], isWord("get")) {
			return command.KeyOW | command.KeyUpdate
		}
	case "bitfield":
		if onlyGets(args[2:]) {
			return command.KeyRO | command.KeyAccess
		}
	}
	return command.KeyRW | command.KeyAccess | command.KeyUpdate
}

func isWord(word string) func(arg []byte) bool {
	return func(arg []byte) bool { return bytes.EqualFold(arg, []byte(word)) }
}

// onlyGets tells whether the operations of a BITFIELD change nothing. Those that are
// not in order count as if they did, as in Redis.
func onlyGets(ops [][]byte) bool {
	for len(ops) > 0 {
		switch n := len(ops); {
		case n >= 3 && isWord("get")(ops[0]):
			ops = ops[3:]
		case n >= 2 && isWord("overflow")(ops[0]):
			ops = ops[2:]
		default:
			return false
		}
	}
	return true
}

func commandDocs(c *command.Call) {
	var specs []*command.Spec
	if len(c.Args) == 2 {
		specs = c.E.Table.All()
	}
	for _, name := range c.Args[2:] {
		if s := commandNamed(c.E.Table, name); s != nil {
			specs = append(specs, s)
		}
	}
	c.Reply.Map(len(specs))
	for _, s := range specs {
		c.Reply.BulkString(s.FullName())
		if document(c.Reply, s); !c.GoOn(documentWork) {
			return
		}
	}
}

// document is the entry of COMMAND DOCS.
func document(r command.Reply, s *command.Spec) {
	args, err := s.Arguments()
	if err != nil {
		args = nil // a test sees to ours; a module's may be wrong
	}
	group := s.Group
	if s.ModuleName() != "" {
		group = "module"
	}
	texts := [...]struct{ name, text string }{
		{"summary", s.Summary}, {"since", s.Since}, {"group", group}, {"complexity", s.Complexity}, {"module", s.ModuleName()},
	}
	n := 0
	for _, t := range texts {
		if t.text != "" {
			n++
		}
	}
	if len(args) != 0 {
		n++
	}
	if len(s.Sub) != 0 {
		n++
	}
	r.Map(n)
	for _, t := range texts {
		if t.text != "" {
			r.BulkString(t.name)
			r.BulkString(t.text)
		}
	}
	if len(args) != 0 {
		r.BulkString("arguments")
		documentArguments(r, args)
	}
	if len(s.Sub) != 0 {
		r.BulkString("subcommands")
		r.Map(len(s.Sub))
		for _, sub := range s.Sub {
			r.BulkString(sub.FullName())
			document(r, sub)
		}
	}
}

func documentArguments(r command.Reply, args []command.Argument) {
	r.Array(len(args))
	for i := range args {
		a := &args[i]
		var flags []string
		if a.Optional {
			flags = append(flags, "optional")
		}
		if a.Multiple {
			flags = append(flags, "multiple")
		}
		if a.TokenEach {
			flags = append(flags, "multiple_token")
		}
		n := 3 // name, type, and the text displayed or the parts
		if a.Key >= 0 {
			n++
		}
		if a.Token != "" {
			n++
		}
		if len(flags) != 0 {
			n++
		}
		r.Map(n)
		r.BulkString("name")
		r.BulkString(a.Name)
		r.BulkString("type")
		r.BulkString(a.Type)
		if len(a.Args) == 0 {
			r.BulkString("display_text")
			r.BulkString(a.Name)
		}
		if a.Key >= 0 {
			number(r, "key_spec_index", int64(a.Key))
		}
		if a.Token != "" {
			r.BulkString("token")
			r.BulkString(a.Token)
		}
		if len(flags) != 0 {
			r.BulkString("flags")
			statuses(r, "", flags)
		}
		if len(a.Args) != 0 {
			r.BulkString("arguments")
			documentArguments(r, a.Args)
		}
	}
}
