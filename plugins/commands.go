package plugins

import (
	"errors"
	"strings"

	"github.com/latchkey-proxy/latchkey/store/command"
)

const moduleFlags = command.Admin | command.NoScript

// loadFlags are those of the commands that compile a module, or wait for who does: EXEC does not run them, for all
// others would wait.
const loadFlags = moduleFlags | command.Protected | command.NoAsyncLoading | command.NoMulti

const errModuleDenied = "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server."

// Commands are the Specs of the MODULE family and of LATCHKEY PLUGIN, acting on h.
func (h *Host) Commands() []*command.Spec {
	return []*command.Spec{{
		Name: "module", Arity: -2, Access: command.Free, Group: "server", Since: "4.0.0", Complexity: "Depends on subcommand.",
		Summary: "A container for commands about modules.",
		Help: []string{
			"LIST",
			"    Return a list of loaded modules.",
			"KILL <name>",
			"    End the calls of a module that are under way, and undo them.",
			"LOAD <path> [sha256:<digest>] [<arg> ...]",
			"    Load a module library from <path>, passing to it any optional arguments.",
			"LOADEX <path> [sha256:<digest>] [[CONFIG NAME VALUE]...] [ARGS ...]",
			"    Load a module library from <path>, while passing it module configurations and optional arguments.",
			"RELOAD <name> [<path>]",
			"    Put the module's file, as it is now, in the place of the module.",
			"UNLOAD <name>",
			"    Unload a module.",
		},
		Sub: []*command.Spec{
			{
				Name: "list", Arity: 2, Flags: moduleFlags, Access: command.Free, Handler: h.list,
				Group: "server", Since: "4.0.0", Complexity: "O(N) where N is the number of loaded modules.",
				Summary: "Lists the loaded modules.",
			},
			{
				Name: "kill", Arity: 3, Flags: moduleFlags | command.AllowBusy, Access: command.Free, Handler: h.killCommand,
				Group: "server", Since: "7.2.0", Complexity: "O(1)",
				Summary: "Ends the calls of a module that are under way, and undoes them.", Syntax: "name",
				Differs: "latchkey's own.",
			},
			{
				Name: "load", Arity: -3, Flags: loadFlags, Access: command.Free, Handler: h.loadCommand,
				Group: "server", Since: "4.0.0", Complexity: "O(1)",
				Summary: "Loads a WebAssembly module and adds its commands.", Syntax: "path [sha256:digest] [arg [arg ...]]",
				Differs: "Modules are WebAssembly (.wasm), sandboxed, and loaded from plugin-dir only. With a digest, only a file that has it is loaded. Refused in MULTI: others would wait while it is compiled.",
			},
			{
				Name: "loadex", Arity: -3, Flags: loadFlags, Access: command.Free, Handler: h.loadExCommand,
				Group: "server", Since: "7.0.0", Complexity: "O(1)",
				Summary: "Loads a WebAssembly module with values for its parameters.", Syntax: "path [sha256:digest] [CONFIG name value [CONFIG name value ...]] [ARGS args [args ...]]",
				Differs: "Modules are WebAssembly (.wasm), sandboxed, and loaded from plugin-dir only. With a digest, only a file that has it is loaded. Refused in MULTI: others would wait while it is compiled.",
			},
			{
				Name: "reload", Arity: -3, Flags: loadFlags, Access: command.Free, Handler: h.reloadCommand,
				Group: "server", Since: "7.2.0", Complexity: "O(1)",
				Summary: "Puts a module's file, as it is now, in the place of the module; no call is lost.", Syntax: "name [path]",
				Differs: "latchkey's own. Refused in MULTI, as MODULE LOAD is.",
			},
			{
				Name: "unload", Arity: 3, Flags: loadFlags, Access: command.Free, Handler: h.unloadCommand,
				Group: "server", Since: "4.0.0", Complexity: "O(1)",
				Summary: "Takes a module and its commands away.", Syntax: "name",
				Differs: "Refused in MULTI, as MODULE LOAD is.",
			},
			command.HelpSpec("module", "5.0.0"),
		},
	}, h.putSpec()}
}

func (h *Host) allowed(c *command.Call) bool {
	if h.opt.Allowed != nil && h.opt.Allowed(c) {
		return true
	}
	c.Err(errModuleDenied)
	return false
}

func (h *Host) list(c *command.Call) {
	loaded := h.List()
	r := c.Reply
	r.Array(len(loaded))
	for _, m := range loaded {
		r.Map(6)
		r.BulkString("name")
		r.BulkString(m.Name)
		r.BulkString("ver")
		r.Int(int64(m.Version))
		r.BulkString("path")
		r.BulkString(m.Path)
		r.BulkString("args")
		words(r, m.Args)
		r.BulkString("capabilities")
		words(r, m.Capabilities)
		r.BulkString("withheld")
		words(r, m.Withheld)
	}
}

func words(r command.Reply, list []string) {
	r.Array(len(list))
	for _, s := range list {
		r.BulkString(s)
	}
}

// loadExCommand is MODULE LOADEX: path, then CONFIG name value any number of
// times, then ARGS and the rest.
func (h *Host) loadExCommand(c *command.Call) {
	if !h.allowed(c) {
		return
	}
	l := Loading{Path: string(c.Args[2]), Config: make(map[string]string)}
	for i := 3; i < len(c.Args); i++ {
		switch {
		case c.Is(i, "config") && i+2 < len(c.Args):
			name := strings.ToLower(string(c.Args[i+1]))
			if _, twice := l.Config[name]; twice {
				c.Err("ERR Error loading the extension: " + name + " is given twice")
				return
			}
			l.Config[name] = string(c.Args[i+2])
			i += 2
		case c.Is(i, "args"):
			l.Args = texts(c.Args[i+1:])
			i = len(c.Args)
		case i == 3 && isDigest(string(c.Args[i])):
			l.Digest = string(c.Args[i])
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	if err := h.Load(c.E.Table, l); err != nil {
		h.refused(c, err)
		return
	}
	c.OK()
}

func (h *Host) loadCommand(c *command.Call) {
	if !h.allowed(c) {
		return
	}
	l := ParseLoading(texts(c.Args[2:]))
	if err := h.Load(c.E.Table, l); err != nil {
		h.refused(c, err)
		return
	}
	c.OK()
}

func texts(args [][]byte) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = string(a)
	}
	return out
}

func (h *Host) refused(c *command.Call, err error) {
	h.opt.Log.Warn("a module was refused", "err", err)
	c.Err("ERR Error loading the extension: " + err.Error())
}

func (h *Host) reloadCommand(c *command.Call) {
	if !h.allowed(c) {
		return
	}
	if len(c.Args) > 4 {
		c.Err(command.WrongArity(c.Spec))
		return
	}
	path := ""
	if len(c.Args) == 4 {
		path = string(c.Args[3])
	}
	err := h.Reload(c.E.Table, string(c.Args[2]), path)
	switch {
	case errors.Is(err, ErrNoSuchModule):
		c.Err("ERR Error reloading module: no such module with that name")
	case err != nil:
		h.refused(c, err)
	default:
		c.OK()
	}
}

func (h *Host) killCommand(c *command.Call) {
	if !h.allowed(c) {
		return
	}
	n, err := h.Kill(string(c.Args[2]))
	switch {
	case err != nil:
		c.Err("ERR Error killing the calls of a module: " + err.Error())
	case n == 0:
		c.Err("NOTBUSY No calls of the module in execution right now.")
	default:
		c.OK()
	}
}

func (h *Host) unloadCommand(c *command.Call) {
	if !h.allowed(c) {
		return
	}
	err := h.Unload(c.E.Table, string(c.Args[2]))
	switch {
	case errors.Is(err, ErrNoSuchModule):
		c.Err("ERR Error unloading module: no such module with that name")
	case err != nil:
		c.Err("ERR Error unloading module: " + err.Error())
	default:
		c.OK()
	}
}
