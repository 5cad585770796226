package scripting

import "github.com/latchkey-proxy/latchkey/store/command"

// functionSpecs are the commands of the function family, made anew by each call.
func (r *Runner) functionSpecs() []*command.Spec {
	const syntax = "function numkeys [key [key ...]] [arg [arg ...]]"
	differs := scriptDiffers + " Every call sees its library as FUNCTION LOAD left it: what a call stores in the library's local variables and tables is gone with the call."
	fcall := scriptSpec("fcall", "Calls a function.", "7.0.0", syntax, 0, keysRW, r.fcall, r.prepareCall)
	fcall.Differs = differs
	fcallRO := scriptSpec("fcall_ro", "Calls a function that may not write.", "7.0.0", syntax, command.ReadOnly, keysRO, r.fcallRO, r.prepareCall)
	fcallRO.Differs = differs
	fcall.Declared = func(args [][]byte) command.Flags {
		if f := r.libraries.committed.Load().find(args[1]); f != nil {
			return f.Flags.command(fcall.Flags)
		}
		return fcall.Flags
	}
	return []*command.Spec{fcall, fcallRO, r.functionSpec()}
}

func (r *Runner) functionSpec() *command.Spec {
	sub := func(name, what, complexity, syntax string, arity int, flags command.Flags, access command.Access, h command.Handler) *command.Spec {
		return &command.Spec{
			Name: name, Arity: arity, Flags: command.NoScript | flags, Categories: command.CatScripting, Access: access, Handler: h,
			Summary: what, Since: "7.0.0", Group: "scripting", Complexity: complexity, Syntax: syntax,
		}
	}
	const write, growing = command.Write, command.Write | command.DenyOOM
	load := sub("load", "Loads a library of functions.", "O(1) (considering compilation time is redundant)",
		"[REPLACE] function-code", -3, growing, command.Alone, r.functionLoad)
	load.Prepare = r.prepareLoad
	load.Differs = "The engine name wasm is reserved. How many libraries there may be, and how large, is bounded by function-max-libraries, function-max-functions and function-max-bytes."
	restore := sub("restore", "Loads the libraries that FUNCTION DUMP has returned.", "O(N) where N is the number of functions on the payload",
		"serialized-value [FLUSH | APPEND | REPLACE]", -3, growing, command.Alone, r.functionRestore)
	restore.Prepare = r.prepareRestore
	kill := sub("kill", "Ends the functions that run for longer than busy-reply-threshold.", "O(1)", "", 2, command.AllowBusy, command.Free, r.functionKill)
	kill.Differs = "Ends every function past the threshold, after writes too: they are rolled back."
	stats := sub("stats", "Tells what function runs, and how many there are.", "O(1)", "", 2, command.AllowBusy, command.Free, r.functionStats)
	stats.Differs = "Of several functions that run, the one that has run for longest is told. A running script of EVAL is no error."
	help := command.HelpSpec("function", "7.0.0")
	help.Categories |= command.CatScripting
	return &command.Spec{
		Name: "function", Arity: -2,
		Summary: "A container for function commands.", Since: "7.0.0", Group: "scripting", Complexity: "Depends on subcommand.",
		Sub: []*command.Spec{
			sub("delete", "Deletes a library and its functions.", "O(1)", "library-name", 3, write, command.Alone, r.functionDelete),
			sub("dump", "Returns all libraries in Redis's own format, for FUNCTION RESTORE.", "O(N) where N is the number of functions", "", 2, 0, command.Free, r.functionDump),
			sub("flush", "Deletes all libraries.", "O(N) where N is the number of functions deleted", "[ASYNC | SYNC]", -2, write, command.Alone, r.functionFlush),
			help, kill,
			sub("list", "Tells what libraries there are.", "O(N) where N is the number of functions",
				"[LIBRARYNAME library-name-pattern] [WITHCODE]", -2, 0, command.Free, r.functionList),
			load, restore, stats,
		},
		Help: []string{
			"LOAD [REPLACE] <FUNCTION CODE>",
			"    Create a new library with the given library name and code.",
			"DELETE <LIBRARY NAME>",
			"    Delete the given library.",
			"LIST [LIBRARYNAME PATTERN] [WITHCODE]",
			"    Return general information on all the libraries:",
			"    * Library name",
			"    * The engine used to run the Library",
			"    * Library description",
			"    * Functions list",
			"    * Library code (if WITHCODE is given)",
			"    It also possible to get only function that matches a pattern using LIBRARYNAME argument.",
			"STATS",
			"    Return information about the current function running:",
			"    * Function name",
			"    * Command used to run the function",
			"    * Duration in MS that the function is running",
			"    If no function is running, return nil",
			"    In addition, returns a list of available engines.",
			"KILL",
			"    Kill the current running function.",
			"FLUSH [ASYNC|SYNC]",
			"    Delete all the libraries.",
			"    When called without the optional mode argument, the behavior is determined by the",
			"    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
			"    * ASYNC: Asynchronously flush the libraries.",
			"    * SYNC: Synchronously flush the libraries.",
			"DUMP",
			"    Return a serialized payload representing the current libraries, can be restored using FUNCTION RESTORE command",
			"RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
			"    Restore the libraries represented by the given payload, it is possible to give a restore policy to",
			"    control how to handle existing libraries (default APPEND):",
			"    * FLUSH: delete all existing libraries.",
			"    * APPEND: appends the restored libraries to the existing libraries. On collision, abort.",
			"    * REPLACE: appends the restored libraries to the existing libraries, On collision, replace the old",
			"      libraries with the new libraries (notice that even on this option there is a chance of failure",
			"      in case of functions name collision with another library).",
		},
	}
}
