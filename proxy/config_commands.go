package proxy

import (
	"github.com/latchkey-proxy/latchkey/proxy/config"
	"github.com/latchkey-proxy/latchkey/store/command"
)

const configFlags = command.Admin | command.NoScript | command.Loading | command.Stale

// configCommands are the Specs of this family, made anew for each server.
func configCommands() []*command.Spec {
	return []*command.Spec{{
		Name: "config", Arity: -2, Access: command.Free, Group: "server", Since: "2.0.0", Complexity: "Depends on subcommand.",
		Summary: "A container for commands about the directives.",
		Help: []string{
			"GET <pattern>",
			"    Return parameters matching the glob-like <pattern> and their values.",
			"SET <directive> <value>",
			"    Set the configuration <directive> to <value>.",
			"RESETSTAT",
			"    Reset statistics reported by the INFO command.",
			"REWRITE",
			"    Rewrite the configuration file.",
		},
		Sub: []*command.Spec{
			{
				Name: "get", Arity: -3, Flags: configFlags, Access: command.Free, Handler: configGet,
				Group: "server", Since: "2.0.0", Complexity: "O(N) when N is the number of configuration parameters provided",
				Summary: "Returns directives and their values.", Syntax: "parameter [parameter ...]",
			},
			{
				Name: "set", Arity: -4, Flags: configFlags, Access: command.Free, Outside: true, Handler: configSet,
				Group: "server", Since: "2.0.0", Complexity: "O(N) when N is the number of configuration parameters provided",
				Summary: "Sets directives while the server runs: all of them or none.", Syntax: "parameter value [parameter value ...]",
			},
			{
				Name: "resetstat", Arity: 2, Flags: configFlags, Access: command.Free, Outside: true, Handler: configResetStat,
				Group: "server", Since: "2.0.0", Complexity: "O(1)", Summary: "Sets the statistics of INFO to zero.",
			},
			{
				Name: "rewrite", Arity: 2, Flags: configFlags, Access: command.Free, Outside: true, Handler: configRewrite,
				Group: "server", Since: "2.8.0", Complexity: "O(1)", Summary: "Writes the present directives into the configuration file.",
			},
			command.HelpSpec("config", "5.0.0"),
		},
	}}
}

func configGet(c *command.Call) {
	patterns := make([]string, len(c.Args)-2)
	for i, a := range c.Args[2:] {
		patterns[i] = string(a)
	}
	pairs := asServer(c).cfg.GetWhile(c.GoesOn, patterns...)
	if !c.GoOn(len(pairs)) {
		return
	}
	c.Reply.Map(len(pairs))
	for _, p := range pairs {
		c.Reply.BulkString(p.Name)
		c.Reply.BulkString(p.Value)
	}
}

func configSet(c *command.Call) {
	args := c.Args[2:]
	if len(args)%2 != 0 {
		c.Err(command.ErrSyntax)
		return
	}
	pairs := make([]config.Pair, len(args)/2)
	for i := range pairs {
		pairs[i] = config.Pair{Name: string(args[2*i]), Value: string(args[2*i+1])}
	}
	if err := asServer(c).cfg.Set(pairs, IsLocal(c)); err != nil {
		c.Err(err.Error())
		return
	}
	c.OK()
}

// IsLocal tells whether the command came over loopback or a unix socket, as the
// enable-*-command directives mean it.
func IsLocal(c *command.Call) bool {
	cl, ok := c.S.Client.(*client)
	return !ok || cl.local
}

func configResetStat(c *command.Call) {
	c.S.FlushStats() // so that what ran before does not count afterwards
	asServer(c).resetStats()
	c.OK()
}

func configRewrite(c *command.Call) {
	s := asServer(c)
	if err := s.cfg.Rewrite(s.cfg.Path()); err != nil {
		c.Err(err.Error())
		return
	}
	c.OK()
}
