package scripting

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// Settings are what may change while scripts run. A run keeps those it began with.
type Settings struct {
	Limits Limits
	// KeepOnError keeps what a script wrote before an uncaught error, as Redis
	// does (script-error-rollback no).
	KeepOnError bool
}

// Runner runs scripts for clients: it is the scripting room of a server.
type Runner struct {
	engine   *Engine
	log      *slog.Logger
	settings atomic.Pointer[Settings]
	permits  chan struct{} // of scripts that run long
	calls    sync.Pool     // of *scriptCall

	mu      sync.Mutex
	running map[*scriptCall]struct{} // those that run long

	// OnLong, when it is set before the first script, is told on a script's
	// goroutine when it begins to run long, and when it has ended: the program
	// gives the network processors of its own meanwhile.
	OnLong func(running bool)

	// Rollbacks counts scripts undone after an uncaught error, which Redis
	// would have left half done; Killed those ended from outside or by a limit.
	Rollbacks, Killed atomic.Int64
	// Reruns counts scripts begun anew because a key they had not declared was held.
	Reruns atomic.Int64
}

// NewRunner makes a runner; longScripts is how many scripts may run for longer
// than 2 ms at a time, at least one.
func NewRunner(e *Engine, s Settings, longScripts int, log *slog.Logger) *Runner {
	r := &Runner{engine: e, log: log, permits: make(chan struct{}, max(longScripts, 1)), running: map[*scriptCall]struct{}{}}
	r.Set(s)
	return r
}

// Set changes the settings, for scripts that begin from now on.
func (r *Runner) Set(s Settings) { r.settings.Store(&s) }

// Engine is the engine that r runs scripts on.
func (r *Runner) Engine() *Engine { return r.engine }

// scriptFlags are EVAL's, as COMMAND INFO of Redis 7 has them.
const scriptFlags = command.NoScript | command.Stale | command.SkipMonitor | command.NoMandatoryKeys | command.MovableKeys

// Specs are the commands of the scripting family, made anew by each call.
func (r *Runner) Specs() []*command.Spec {
	keys := func(flags command.KeyFlags, notes string) []command.KeySpec {
		return []command.KeySpec{{Begin: 2, Count: true, FirstAt: 1, Step: 1, Flags: flags, Notes: notes}}
	}
	const (
		rw      = command.KeyRW | command.KeyAccess | command.KeyUpdate
		ro      = command.KeyRO | command.KeyAccess
		depends = "Depends on the script that is executed."
		differs = "An uncaught error rolls back what the script wrote (script-error-rollback), and scripts that have written can be killed. Scripts on different keys run at the same time."
	)
	eval := func(name, what, since, syntax string, flags command.Flags, ks []command.KeySpec, h command.Handler, prepare bool) *command.Spec {
		s := &command.Spec{
			Name: name, Arity: -3, Flags: scriptFlags | flags, Categories: command.CatScripting, Keys: ks,
			Access: command.Locked, Handler: h,
			Summary: what, Since: since, Group: "scripting", Complexity: depends, Syntax: syntax, Differs: differs,
		}
		if prepare {
			s.Extra = r.prepare
		}
		return s
	}
	return []*command.Spec{
		eval("eval", "Runs a Lua script.", "2.6.0", "script numkeys [key [key ...]] [arg [arg ...]]", 0,
			keys(rw, "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE"), r.eval, true),
		eval("evalsha", "Runs a Lua script from the cache, named by its SHA1.", "2.6.0", "sha1 numkeys [key [key ...]] [arg [arg ...]]", 0,
			keys(rw, ""), r.evalSHA, false),
		eval("eval_ro", "Runs a Lua script that may not write.", "7.0.0", "script numkeys [key [key ...]] [arg [arg ...]]", command.ReadOnly,
			keys(ro, "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS"), r.evalRO, true),
		eval("evalsha_ro", "Runs a Lua script from the cache that may not write.", "7.0.0", "sha1 numkeys [key [key ...]] [arg [arg ...]]", command.ReadOnly,
			keys(ro, ""), r.evalSHARO, false),
		r.scriptSpec(),
	}
}

func (r *Runner) scriptSpec() *command.Spec {
	sub := func(name, what, since, complexity, syntax string, arity int, flags command.Flags, h command.Handler) *command.Spec {
		return &command.Spec{
			Name: name, Arity: arity, Flags: command.NoScript | flags, Categories: command.CatScripting, Access: command.Free, Handler: h,
			Summary: what, Since: since, Group: "scripting", Complexity: complexity, Syntax: syntax,
		}
	}
	kill := sub("kill", "Ends the scripts that run for longer than busy-reply-threshold.", "2.6.0", "O(1)", "[sha1]", -2, command.AllowBusy, r.scriptKill)
	kill.Differs = "Ends every script past the threshold, or those of one SHA1, after writes too: they are rolled back."
	flush := sub("flush", "Empties the script cache.", "2.6.0", "O(N) with N being the number of scripts in cache", "[ASYNC | SYNC]", -2, 0, r.scriptFlush)
	flush.Outside = true
	help := command.HelpSpec("script", "5.0.0")
	help.Categories |= command.CatScripting
	return &command.Spec{
		Name: "script", Arity: -2,
		Summary: "A container for Lua scripts management commands.", Since: "2.6.0", Group: "scripting", Complexity: "Depends on subcommand.",
		Sub: []*command.Spec{
			sub("debug", "Sets the debug mode of scripts.", "3.2.0", "O(1)", "YES | SYNC | NO", 3, 0, r.scriptDebug),
			sub("exists", "Tells which scripts are in the cache.", "2.6.0", "O(N) with N being the number of scripts to check", "sha1 [sha1 ...]", -3, 0, r.scriptExists),
			flush, help, kill,
			sub("load", "Puts a script into the cache.", "2.6.0", "O(N) with N being the length in bytes of the script body", "script", 3, command.Stale, r.scriptLoad),
		},
		Help: []string{
			"DEBUG (YES|SYNC|NO)",
			"    Set the debug mode for subsequent scripts executed.",
			"EXISTS <sha1> [<sha1> ...]",
			"    Return information about the existence of the scripts in the script cache.",
			"FLUSH [ASYNC|SYNC]",
			"    Flush the Lua scripts cache. Very dangerous on replicas.",
			"    When called without the optional mode argument, the behavior is determined by the",
			"    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
			"    * ASYNC: Asynchronously flush the scripts cache.",
			"    * SYNC: Synchronously flush the scripts cache.",
			"KILL",
			"    Kill the currently executing Lua script.",
			"LOAD <script>",
			"    Load a script into the scripts cache without executing it.",
		},
	}
}

// prepare compiles the source of an EVAL. As the command's Extra it is called when
// the keys are named, before any of them is locked, and it adds none.
func (r *Runner) prepare(c *command.Call, _ func(db int, name []byte)) {
	if len(c.Args) > 1 {
		r.source(c.Args[1])
	}
}

// source finds or compiles a source of EVAL; otherwise the text of the error comes back.
func (r *Runner) source(src []byte) (*Script, string) {
	name := SumSHA1(src)
	cache := r.engine.Cache()
	if s := cache.Get(name); s != nil {
		return s, ""
	}
	if reply := cache.refusal(name); reply != "" {
		return nil, reply
	}
	s, err := r.engine.Compile(src)
	if err != nil {
		cache.refuse(name, err.Error())
		return nil, err.Error()
	}
	cache.Add(s, false)
	return s, ""
}

func (r *Runner) eval(c *command.Call)      { r.evalSource(c, false) }
func (r *Runner) evalRO(c *command.Call)    { r.evalSource(c, true) }
func (r *Runner) evalSHA(c *command.Call)   { r.evalCached(c, false) }
func (r *Runner) evalSHARO(c *command.Call) { r.evalCached(c, true) }

func (r *Runner) evalSource(c *command.Call, readOnly bool) {
	keys, args, ok := words(c)
	if !ok {
		return
	}
	s, problem := r.source(c.Args[1])
	if problem != "" {
		c.Err(oneLine(problem))
		return
	}
	r.run(c, s, keys, args, readOnly)
}

func (r *Runner) evalCached(c *command.Call, readOnly bool) {
	keys, args, ok := words(c)
	if !ok {
		return
	}
	name, ok := ParseSHA1(c.Args[1])
	var s *Script
	if ok {
		s = r.engine.Cache().Get(name)
	}
	if s == nil {
		c.Err(command.ErrNoScript)
		return
	}
	r.run(c, s, keys, args, readOnly)
}

// words splits EVAL's arguments into keys and the rest.
func words(c *command.Call) (keys, args [][]byte, ok bool) {
	n, ok := c.Int(2)
	switch {
	case !ok:
	case n > int64(len(c.Args)-3):
		c.Err("ERR Number of keys can't be greater than number of args")
		ok = false
	case n < 0:
		c.Err("ERR Number of keys can't be negative")
		ok = false
	default:
		return c.Args[3 : 3+n], c.Args[3+n:], true
	}
	return nil, nil, ok
}

// errRerun unwinds a script whose transaction must begin anew.
var errRerun = errors.New("scripting: the transaction must be run again")

// scriptCall is one run of a script for a client: the Caller of its redis.call.
type scriptCall struct {
	unwatch func() // ends the watch over the client's socket
	Invocation
	runner  *Runner
	outer   *command.Call
	script  *Script
	inner   command.Call
	started time.Time
}

const (
	unknownCommand  = "ERR Unknown Redis command called from script"
	wrongArity      = "ERR Wrong number of args calling Redis command from script"
	notFromScripts  = "ERR This Redis command is not allowed from script"
	notBusy         = "NOTBUSY No scripts in execution right now."
	killedByCommand = "Script killed by user with SCRIPT KILL."
)

// Call runs a command of the script's through the gate, as a savepoint of the
// script's transaction.
func (sc *scriptCall) Call(argv [][]byte, reply command.Reply) error {
	c := sc.outer
	spec := c.E.Table.Lookup(argv[0])
	if spec == nil {
		reply.Error(unknownCommand)
		return nil
	}
	if len(spec.Sub) != 0 && len(argv) > 1 && spec.SubByName(argv[1]) == nil {
		reply.Error(unknownCommand)
		return nil
	}
	spec, problem := spec.Resolve(argv)
	switch {
	case problem != "":
		reply.Error(wrongArity)
		return nil
	case spec.Flags&command.NoScript != 0:
		reply.Error(notFromScripts)
		return nil
	}
	sc.inner = command.Call{S: c.S, Spec: spec, Args: argv, Tx: c.Tx, Reply: reply, From: command.FromScript}
	c.E.Exec(&sc.inner)
	if c.Tx.Clash() {
		return errRerun
	}
	if spec.Flags&command.Write != 0 && sc.inner.Failed() != command.ErrOOM {
		c.S.AllowOOM = true // it has written, and is not stopped half way
	}
	return nil
}

func (r *Runner) run(c *command.Call, s *Script, keys, args [][]byte, readOnly bool) {
	oom := !c.S.AllowOOM && c.E.Store.OverLimit()
	if oom && s.Flags&(HasShebang|AllowOOM|NoWrites) == HasShebang {
		c.Err(command.ErrOOM)
		return
	}
	sc, _ := r.calls.Get().(*scriptCall)
	if sc == nil {
		sc = &scriptCall{runner: r}
		sc.Caller = sc
		sc.LongRunning = sc.longRunning
		sc.Fence = sc.fence
		sc.CheckACL = sc.checkACL
	}
	settings := r.settings.Load()
	sc.outer, sc.script = c, s
	sc.Keys, sc.Args, sc.Limits = keys, args, settings.Limits
	sc.kill.Store(nil)
	if w := c.S.Wait; w != nil {
		sc.Done, sc.Gone = w.Done, store.ErrCancelled
	}
	// SELECT and the like last until the script's end.
	db, denied, allowOOM := c.S.DB, c.S.Denied, c.S.AllowOOM
	c.S.AllowOOM = !oom || s.Flags&AllowOOM != 0
	if readOnly || s.Flags&NoWrites != 0 {
		c.S.Denied = command.ErrReadOnlyScript
	}
	err := r.engine.Run(s, &sc.Invocation, c.Reply)
	c.S.DB, c.S.Denied, c.S.AllowOOM = db, denied, allowOOM
	sc.outer, sc.script, sc.Keys, sc.Args, sc.Done = nil, nil, nil, nil, nil
	sc.inner = command.Call{}
	r.calls.Put(sc)
	if err != nil {
		r.failed(c, s, err, settings)
	}
}

// failed answers for a script that did not return a plain result.
func (r *Runner) failed(c *command.Call, s *Script, err error, settings *Settings) {
	if err == errRerun {
		r.Reruns.Add(1)
		return
	}
	var f *Failure
	if !errors.As(err, &f) {
		c.Err(command.WaitError(err))
		return
	}
	text := oneLine(f.Reply)
	switch f.Kind {
	case Returned:
		c.ErrKept(text)
		return
	case Uncaught:
		if settings.KeepOnError {
			c.ErrKept(text)
			return
		}
		r.Rollbacks.Add(1)
	case Killed, Exhausted:
		r.Killed.Add(1)
	case Broken:
		r.log.Error("the Lua machine failed", "sha", s.SHA.String(), "err", f.Reply)
		text = command.ErrInternal
	}
	c.Err(text)
}

// longRunning takes a permit, on the script's goroutine, and makes the script one
// that SCRIPT KILL can see.
func (sc *scriptCall) longRunning() (func(), error) {
	r := sc.runner
	select {
	case r.permits <- struct{}{}:
	default:
		select {
		case r.permits <- struct{}{}:
		case <-sc.Done:
			return nil, sc.Gone
		}
	}
	if r.OnLong != nil {
		r.OnLong(true)
	}
	sc.started = r.engine.opts.Now().Add(-longAfter)
	r.mu.Lock()
	r.running[sc] = struct{}{}
	r.mu.Unlock()
	// Who has gone will never read the reply: past the threshold, its script
	// only holds keys that others want.
	sc.unwatch = nil
	if w, busy := sc.outer.S.Wait, time.Duration(sc.outer.E.Busy.Load()); w != nil && w.Watch != nil && busy > 0 {
		sc.unwatch = w.Watch(busy)
	}
	return sc.ended, nil
}

func (sc *scriptCall) ended() {
	r := sc.runner
	if sc.unwatch != nil {
		sc.unwatch()
		sc.unwatch = nil
	}
	r.mu.Lock()
	delete(r.running, sc)
	r.mu.Unlock()
	if r.OnLong != nil {
		r.OnLong(false)
	}
	<-r.permits
}

// checkACL is redis.acl_check_cmd: there is but the default user, who may run
// every command that there is.
func (sc *scriptCall) checkACL(argv [][]byte) (allowed, known bool) {
	spec := sc.outer.E.Table.Lookup(argv[0])
	if spec != nil && len(spec.Sub) != 0 && len(argv) > 1 {
		spec = spec.SubByName(argv[1])
	}
	return spec != nil, spec != nil
}

func (sc *scriptCall) fence() (int64, error) { return sc.outer.Tx.Fence(), nil }

// Kill ends the scripts that have run for at least longer, those of one name if
// name is not nil, and returns how many there were.
func (r *Runner) Kill(name *SHA1, longer time.Duration) int {
	now := r.engine.opts.Now()
	n := 0
	r.mu.Lock()
	defer r.mu.Unlock()
	for sc := range r.running {
		if now.Sub(sc.started) >= longer && (name == nil || sc.script.SHA == *name) {
			sc.Kill(KilledBy(killedByCommand))
			n++
		}
	}
	return n
}

// Long is the number of scripts running for longer than 2 ms.
func (r *Runner) Long() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.running)
}

func (r *Runner) scriptKill(c *command.Call) {
	var name *SHA1
	if len(c.Args) > 3 {
		c.Err(command.WrongArity(c.Spec))
		return
	}
	if len(c.Args) == 3 {
		sha, ok := ParseSHA1(c.Args[2])
		if !ok {
			c.Err(command.ErrNoScript)
			return
		}
		name = &sha
	}
	if r.Kill(name, time.Duration(c.E.Busy.Load())) == 0 {
		c.Err(notBusy)
		return
	}
	c.OK()
}

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
