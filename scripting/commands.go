package scripting

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// Settings are what may change while scripts run. A run keeps those it began with.
type Settings struct {
	Limits Limits
	// KeepOnError keeps what a script wrote before an uncaught error, as Redis
	// does (script-error-rollback no).
	KeepOnError bool
	// Libraries bounds the function libraries, those loaded from now on.
	Libraries LibraryBounds
}

// Runner runs scripts for clients: it is the scripting room of a server.
type Runner struct {
	engine   *Engine
	log      *slog.Logger
	settings atomic.Pointer[Settings]
	permits  chan struct{} // of scripts that run long

	libraries loaded
	loadTurn  chan struct{} // who loads libraries has put something in

	mu      sync.Mutex
	running map[*scriptCall]struct{} // those that run long

	// OnLong, when it is set before the first script, is told on a script's
	// goroutine when it begins to run long, and when it has ended: the program
	// gives the network processors of its own meanwhile.
	OnLong func(running bool)

	// Rollbacks counts scripts undone after an uncaught error that had written,
	// which Redis would have left half done; Killed those ended from outside or
	// by a limit.
	Rollbacks, Killed atomic.Int64
	// Undeclared counts keys that scripts reached without having declared them,
	// Reruns scripts begun anew because such a key was held.
	Undeclared, Reruns atomic.Int64

	tally  tally
	tracer Tracer      // usually nil
	file   *scriptFile // nil: scripts are gone when the program ends
}

// NewRunner makes a runner; longScripts is how many scripts may run for longer
// than 2 ms at a time, at least one.
func NewRunner(e *Engine, s Settings, longScripts int, log *slog.Logger) *Runner {
	r := &Runner{engine: e, log: log, permits: make(chan struct{}, max(longScripts, 1)), running: map[*scriptCall]struct{}{}, loadTurn: make(chan struct{}, 1)}
	r.libraries.init()
	r.Set(s)
	return r
}

// Set changes the settings, for scripts that begin from now on.
func (r *Runner) Set(s Settings) {
	s.Libraries.setDefaults()
	r.settings.Store(&s)
}

// Engine is the engine that r runs scripts on.
func (r *Runner) Engine() *Engine { return r.engine }

// scriptFlags are EVAL's, as COMMAND INFO of Redis 7 has them.
const scriptFlags = command.NoScript | command.Stale | command.SkipMonitor | command.NoMandatoryKeys | command.MovableKeys

// Specs are the commands of the scripting family, made anew by each call.
func (r *Runner) Specs() []*command.Spec {
	const source, sha = "script numkeys [key [key ...]] [arg [arg ...]]", "sha1 numkeys [key [key ...]] [arg [arg ...]]"
	eval := scriptSpec("eval", "Runs a Lua script.", "2.6.0", source, 0, keysRW, r.eval, r.prepare)
	evalRO := scriptSpec("eval_ro", "Runs a Lua script that may not write.", "7.0.0", source, command.ReadOnly, keysRO, r.evalRO, r.prepare)
	evalSHA := scriptSpec("evalsha", "Runs a Lua script from the cache, named by its SHA1.", "2.6.0", sha, 0, keysRW, r.evalSHA, r.prepareCached)
	evalSHARO := scriptSpec("evalsha_ro", "Runs a Lua script from the cache that may not write.", "7.0.0", sha, command.ReadOnly, keysRO, r.evalSHARO, r.prepareCached)
	evalSHA.Keys[0].Notes, evalSHARO.Keys[0].Notes = "", ""
	evalSHA.Queued, evalSHARO.Queued = r.pin, r.pin
	eval.Declared = func(args [][]byte) command.Flags {
		s, _ := r.source(args[1])
		return s.declared(eval.Flags)
	}
	evalSHA.Declared = func(args [][]byte) command.Flags { return r.cached(args[1]).declared(evalSHA.Flags) }
	return append([]*command.Spec{eval, evalSHA, evalRO, evalSHARO, r.scriptSpec()}, r.functionSpecs()...)
}

// What scripts may do with their keys, and what COMMAND INFO notes on it.
var (
	keysRW = command.KeySpec{Flags: command.KeyRW | command.KeyAccess | command.KeyUpdate, Notes: "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE"}
	keysRO = command.KeySpec{Flags: command.KeyRO | command.KeyAccess, Notes: "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS"}
)

const scriptDiffers = "An uncaught error rolls back what the script wrote (script-error-rollback), and scripts that have written can be killed. Scripts on different keys run at the same time."

// scriptSpec is the Spec of a command that runs a script or a function.
func scriptSpec(name, what, since, syntax string, flags command.Flags, keys command.KeySpec, h, prepare command.Handler) *command.Spec {
	keys.Begin, keys.Count, keys.FirstAt, keys.Step = 2, true, 1, 1
	if flags&command.ReadOnly == 0 {
		flags |= command.MayReplicate // CLIENT PAUSE WRITE holds it
	}
	return &command.Spec{
		Name: name, Arity: -3, Flags: scriptFlags | flags, Categories: command.CatScripting, Keys: []command.KeySpec{keys},
		Access: command.Bounded, Handler: h, Prepare: prepare,
		Summary: what, Since: since, Group: "scripting", Complexity: "Depends on the script that is executed.",
		Syntax: syntax, Differs: scriptDiffers,
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
