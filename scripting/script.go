package scripting

import "github.com/latchkey-proxy/latchkey/store/command"

func (r *Runner) scriptLoad(c *command.Call) {
	s, problem := r.source(c.Args[2])
	if problem != "" {
		c.Err(oneLine(problem))
		return
	}
	r.engine.Cache().Add(s, true)
	c.Reply.BulkString(s.SHA.String())
}

func (r *Runner) scriptExists(c *command.Call) {
	c.Reply.Array(len(c.Args) - 2)
	for _, a := range c.Args[2:] {
		name, ok := ParseSHA1(a)
		c.Reply.Int(int64(b2i(ok && r.engine.Cache().Has(name))))
	}
}

func (r *Runner) scriptFlush(c *command.Call) {
	if len(c.Args) > 3 || len(c.Args) == 3 && !c.Is(2, "sync") && !c.Is(2, "async") {
		c.Err("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
		return
	}
	r.engine.Cache().Flush()
	c.OK()
}

// scriptDebug: there is no debugger.
func (r *Runner) scriptDebug(c *command.Call) {
	switch {
	case c.Is(2, "no"):
		c.OK()
	case c.Is(2, "yes"), c.Is(2, "sync"):
		c.Err("ERR SCRIPT DEBUG is not supported, there is no Lua debugger here")
	default:
		c.Err("ERR Use SCRIPT DEBUG YES/SYNC/NO")
	}
}
