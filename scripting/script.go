package scripting

import (
	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// scriptLoad stays, as in Redis, when a MULTI that it is part of is undone: what
// the cache holds is no part of the keyspace.
func (r *Runner) scriptLoad(c *command.Call) {
	s, problem := r.source(c.Args[2])
	if problem != "" {
		c.Err(text.ErrorLine(problem))
		return
	}
	if !r.load(s) {
		c.Err("ERR the script cache has no room for the script, see script-cache-max-bytes and script-cache-max-entries")
		return
	}
	c.Reply.BulkString(s.SHA.String())
}

// load makes a script a loaded one and keeps it for the next start; it returns
// false when the cache has no room for it.
func (r *Runner) load(s *Script) bool {
	if f := r.file; f != nil {
		return f.load(s)
	}
	kept, _ := r.engine.Cache().Add(s, true)
	return kept
}

// pin keeps the script that a queued EVALSHA names in the cache until EXEC or
// DISCARD.
func (r *Runner) pin(args [][]byte) (release func()) {
	name, ok := ParseSHA1(args[1])
	if !ok {
		return nil
	}
	cache := r.engine.Cache()
	cache.Pin(name)
	return func() { cache.Unpin(name) }
}

// scriptExists is no use of a script: one that is asked for may leave all the same.
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
	if f := r.file; f != nil {
		f.flush()
	} else {
		r.engine.Cache().Flush()
	}
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
