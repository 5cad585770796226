package proxy

import "github.com/latchkey-proxy/latchkey/store/command"

// Module is a loaded module, as HELLO and INFO name it.
type Module struct {
	Name    string
	Version int
	Path    string
	Args    []string

	Calls, Errors, Traps int64 // since it was loaded
	Running              int   // calls under way
	Instances            int
	MemoryBytes          int64 // of linear memory, of all instances

	Delivered, Dropped int64 // timers, events and ends of clients
	Queued, Timers     int   // to be delivered
	Waiting            int64 // clients that wait in its commands
	Disabled           bool
}

// modules are the loaded modules.
func (s *Server) modules() []Module {
	if s.opt.Modules == nil {
		return nil
	}
	return s.opt.Modules()
}

// replyModules is the list of modules in HELLO.
func (s *Server) replyModules(c *command.Call) {
	loaded := s.modules()
	c.Reply.Array(len(loaded))
	for _, m := range loaded {
		c.Reply.Map(4)
		c.Reply.BulkString("name")
		c.Reply.BulkString(m.Name)
		c.Reply.BulkString("ver")
		c.Reply.Int(int64(m.Version))
		c.Reply.BulkString("path")
		c.Reply.BulkString(m.Path)
		c.Reply.BulkString("args")
		c.Reply.Array(len(m.Args))
		for _, a := range m.Args {
			c.Reply.BulkString(a)
		}
	}
}

// ScriptStats is what INFO says of scripts.
type ScriptStats struct {
	Cached       int64 // scripts in the cache
	CachedBytes  int64 // of them: sources and, estimated, code
	Libraries    int64 // of functions
	Functions    int64
	LibraryBytes int64 // of them: sources, texts and, estimated, code
	Evicted      int64 // scripts that left the cache for others, since the start
	Long         int64 // running now, for longer than 2 ms
	Rollbacks    int64 // undone after an uncaught error where Redis would have kept writes
	Killed       int64 // ended from outside or by a limit
	Undeclared   int64 // keys reached without having been declared
	Reruns       int64 // begun anew because such a key was held
	// Compiled counts the sources of scripts, CompiledLibraries those of functions.
	Compiled, CompiledLibraries EngineCounts
	// File is where loaded scripts are kept for the next start, empty if they are
	// not, and FileErr why the newest are not in it.
	File      string
	FileBytes int64
	FileErr   error
}

// EngineCounts counts sources by the engine that they were compiled for.
type EngineCounts struct {
	Closures, VM int64
	// Fallbacks counts those of VM by the reason why they did not get the faster one.
	Fallbacks map[string]int64
}

// ScriptCounts are those of one script, by its SHA1 or the name of a function.
type ScriptCounts struct {
	Name                                 string
	Undeclared, Reruns, Rollbacks, Kills int64
}

// scripts are the present counts of scripts.
func (s *Server) scripts() ScriptStats {
	if s.opt.Scripts == nil {
		return ScriptStats{}
	}
	return s.opt.Scripts()
}
