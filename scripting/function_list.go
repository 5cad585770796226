package scripting

import (
	"bytes"
	"time"

	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/store/command"
	"github.com/latchkey-proxy/latchkey/store/glob"
)

func (r *Runner) functionList(c *command.Call) {
	withCode, named := false, false
	var pattern []byte
	for i := 2; i < len(c.Args); i++ {
		switch {
		case !withCode && c.Is(i, "withcode"):
			withCode = true
		case !named && c.Is(i, "libraryname"):
			if i++; i == len(c.Args) {
				c.Err("ERR library name argument was not given")
				return
			}
			pattern, named = c.Args[i], true
		default:
			c.Err("ERR Unknown argument " + text.OneLine(string(c.Args[i])))
			return
		}
	}
	var libs []*Library
	for _, lib := range r.libraries.seenBy(c).sorted() {
		if !named || glob.Match(pattern, []byte(lib.Name), true) {
			libs = append(libs, lib)
		}
	}
	c.Reply.Array(len(libs))
	for _, lib := range libs {
		lib.describe(c.Reply, withCode)
	}
}

// describe is an entry of FUNCTION LIST.
func (l *Library) describe(r command.Reply, withCode bool) {
	r.Map(3 + b2i(withCode))
	r.BulkString("library_name")
	r.BulkString(l.Name)
	r.BulkString("engine")
	r.BulkString(engineName)
	r.BulkString("functions")
	r.Array(len(l.Functions))
	for _, f := range l.Functions {
		r.Map(3)
		r.BulkString("name")
		r.BulkString(f.Name)
		r.BulkString("description")
		if f.Described {
			r.BulkString(f.Description)
		} else {
			r.Null()
		}
		r.BulkString("flags")
		names := f.Flags.Names()
		r.Set(len(names))
		for _, name := range names {
			r.Status(name)
		}
	}
	if withCode {
		r.BulkString("library_code")
		r.BulkString(l.Source)
	}
}

// runningFunction is a call of a function that runs for longer than 2 ms.
type runningFunction struct {
	name string
	args [][]byte
	took time.Duration
}

// longestFunction is the call of a function that has run for longest, nil without.
func (r *Runner) longestFunction() *runningFunction {
	now := r.engine.opts.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	var longest *scriptCall
	for sc := range r.running {
		if sc.function != nil && (longest == nil || sc.started.Before(longest.started)) {
			longest = sc
		}
	}
	if longest == nil {
		return nil
	}
	// The arguments are views into its client's buffer, for as long as it runs.
	f := &runningFunction{name: longest.function.Name, took: now.Sub(longest.started)}
	for _, a := range longest.outer.Args {
		f.args = append(f.args, bytes.Clone(a))
	}
	return f
}

func (r *Runner) functionStats(c *command.Call) {
	set, f, reply := r.libraries.seenBy(c), r.longestFunction(), c.Reply
	reply.Map(2)
	reply.BulkString("running_script")
	if f == nil {
		reply.Null()
	} else {
		reply.Map(3)
		reply.BulkString("name")
		reply.BulkString(f.name)
		reply.BulkString("command")
		reply.Array(len(f.args))
		for _, a := range f.args {
			reply.Bulk(a)
		}
		reply.BulkString("duration_ms")
		reply.Int(f.took.Milliseconds())
	}
	reply.BulkString("engines")
	reply.Map(1)
	reply.BulkString(engineName)
	reply.Map(2)
	reply.BulkString("libraries_count")
	reply.Int(int64(len(set.libraries)))
	reply.BulkString("functions_count")
	reply.Int(int64(len(set.functions)))
}

// LibraryStats is what INFO says about the function libraries.
type LibraryStats struct {
	Libraries, Functions int
	Bytes                int64 // of sources, texts and, estimated, code
}

// LibraryStats returns the present numbers.
func (r *Runner) LibraryStats() LibraryStats {
	s := r.libraries.committed.Load()
	return LibraryStats{len(s.libraries), len(s.functions), s.bytes}
}
