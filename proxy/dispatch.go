package proxy

import (
	"bytes"
	"strings"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// execute judges one command, in the order in which Redis does, and runs,
// queues, forwards or refuses it.
func (c *client) execute(args [][]byte, frame []byte) {
	c.mark = c.w.Len()
	c.dispatch(args, frame)
	if c.own.any.Load() {
		c.own.take(&c.w)
	}
	silent := c.reply == replySkip || c.reply == replyOff
	switch c.reply {
	case replyOn:
	case replySkipNext:
		c.reply = replySkip
	case replySkip:
		c.w.Rewind(c.mark)
		c.dropForwards(c.mark)
		c.reply = replyOn
	case replyOff:
		c.w.Rewind(c.mark)
		c.dropForwards(c.mark)
	}
	if c.tracking.on.Load() {
		c.tracked(args, silent)
	}
}

func (c *client) dispatch(args [][]byte, frame []byte) {
	spec := c.named
	if spec == nil || !bytes.Equal(args[0], c.lastName) || c.lastTable != c.s.engine.Table.Version() {
		if spec = c.lookUp(args); spec == nil {
			return
		}
	}
	if len(spec.Sub) != 0 || spec.Arity > 0 && len(args) != spec.Arity || len(args) < -spec.Arity {
		if spec = c.resolve(spec, args); spec == nil {
			return
		}
	}
	c.lastSpec = spec
	if (!c.authed || c.multi != nil || c.subs.any.Load() || c.monitoring.Load() || c.s.engine.Pausing.Load()) && !c.passes(spec, args) {
		return
	}
	call := &c.call
	call.Reuse(spec, args)
	call.Frame = frame
	if c.multi != nil && !runsInMulti(spec) {
		c.sess.Measure()
		c.queue(call)
		return
	}
	if c.tracking.on.Load() {
		c.tracking.remember(call)
	}
	if r := c.s.router.Load(); r != nil && r.forward(c, call) {
		return
	}
	if len(c.forwards) != 0 && spec.Flags&command.Blocking != 0 {
		c.flush() // or the upstream's replies would wait for as long as it does
	}
	c.s.engine.Run(call)
}

// What follows is out of dispatch, which runs for each command, because what seldom runs
// would take room in the processor's cache of instructions there.

// lookUp finds the Spec of a command's name, or answers why there is none.
func (c *client) lookUp(args [][]byte) *command.Spec {
	spec := c.s.engine.Table.Lookup(args[0])
	if spec != nil {
		if c.named = nil; len(spec.Sub) == 0 {
			c.named = spec
			c.lastName = append(c.lastName[:0], args[0]...)
			c.lastTable = c.s.engine.Table.Version()
		}
		return spec
	}
	c.named = nil
	if spokenByBrowsers(args[0]) {
		c.warnOfBrowsers()
		c.quitting = true
		return nil
	}
	msg := ""
	if r := c.s.router.Load(); r != nil && (c.authed || !c.mustAuth()) {
		spec, msg = r.foreign.lookup(args, c.done)
	} else {
		_, msg = c.s.engine.Table.Find(args)
	}
	if spec == nil {
		c.refuse(nil, msg)
	}
	return spec
}

// resolve finds the subcommand, or answers what is wrong with the number of arguments.
func (c *client) resolve(spec *command.Spec, args [][]byte) *command.Spec {
	found, msg := spec.Resolve(args)
	if found == nil {
		c.lastSpec = spec
		c.refuse(spec, msg)
	}
	return found
}

// passes tells whether a command may run in the state that the client or the server is
// in. Otherwise it has answered, or the client is gone.
func (c *client) passes(spec *command.Spec, args [][]byte) bool {
	switch {
	case !c.authed && spec.Flags&command.NoAuth == 0 && c.mustAuth():
		c.refuse(spec, command.ErrNoAuth)
	case c.multi != nil && c.s.store.OverLimit() && c.overLimit(spec):
		c.refuse(spec, command.ErrOOM)
	case c.subs.any.Load() && c.sess.Proto == 2 && !allowedWhileSubscribed(spec):
		if spec.Flags&command.DenyOOM != 0 && c.s.store.OverLimit() {
			c.refuse(spec, command.ErrOOM) // Redis looks at memory first
			break
		}
		c.refuse(spec, "ERR Can't execute '"+spec.FullName()+"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
	case c.monitoring.Load() && spec.Flags&(command.Write|command.ReadOnly|command.MayReplicate) != 0:
		c.refuse(spec, "ERR Replica can't interact with the keyspace") // monitors are replicas of a kind
	case c.s.engine.Pausing.Load() && !c.holdCommand(spec, args):
		c.quitting = true
	default:
		return true
	}
	return false
}

// overLimit tells whether maxmemory forbids a command within MULTI: as in Redis
// none is queued, and a transaction that would write is not run.
func (c *client) overLimit(spec *command.Spec) bool {
	if !runsInMulti(spec) {
		return spec.Name != "unwatch" || spec.Parent() != nil
	}
	if !isExec(spec) {
		return false
	}
	for i := range c.multi.queue {
		if c.multi.queue[i].spec.Flags&command.DenyOOM != 0 {
			return true
		}
	}
	return false
}

func isExec(spec *command.Spec) bool { return spec.Name == "exec" && spec.Parent() == nil }

// refuse answers a command that is not run. Within MULTI it spoils the
// transaction; EXEC itself, refused, ends it.
func (c *client) refuse(spec *command.Spec, msg string) {
	c.sess.Measure()
	if spec != nil && isExec(spec) {
		c.leaveMulti()
		msg = "EXECABORT Transaction discarded because of: " + strings.TrimPrefix(msg, "ERR ")
	}
	if c.multi != nil {
		c.multi.spoiled = true
	}
	if spec != nil {
		spec.Usage().Rejected.Add(1)
	}
	c.s.stats.errorReply(msg)
	c.w.Error(msg)
}

func allowedWhileSubscribed(spec *command.Spec) bool {
	switch spec.Name {
	case "ping", "subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ssubscribe", "sunsubscribe", "quit", "reset":
		return spec.Parent() == nil
	}
	return false
}

// runsInMulti are the commands that act at once within MULTI.
func runsInMulti(spec *command.Spec) bool {
	if spec.Parent() != nil {
		return false
	}
	switch spec.Name {
	case "exec", "discard", "multi", "watch", "quit", "reset":
		return true
	}
	return false
}
