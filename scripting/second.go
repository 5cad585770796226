package scripting

import (
	"errors"
	"log/slog"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/scripting/closure"
	"github.com/latchkey-proxy/latchkey/scripting/value"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// Scripts run on the second engine, package closure, when it covers them; the
// others, and all when it is switched off, run on the virtual machine. Which one
// is decided for the whole script before its first effect.

// second is the second engine.
type second struct {
	world    *closure.World
	off      atomic.Bool
	machines sync.Pool // of *worker

	mu        sync.Mutex // of what follows
	scripts   EngineCounts
	libraries EngineCounts
}

// worker is a machine of the second engine with what a run hands to it.
type worker struct {
	machine  *closure.Machine
	in       *closure.Input // that of the invocation
	engine   *Engine
	script   *Script
	function *Function // nil for scripts and bodies of libraries
	kept     instances
}

func (w *worker) name() string { return nameOf(w.script, w.function) }

func (w *worker) log(at slog.Level, text string) { w.engine.log(w.name(), at, text) }

// line is where the script is.
func (w *worker) line() int {
	_, line := w.machine.Stopped()
	return line
}

func (e *Engine) openSecond() {
	e.second.world = closure.NewWorld(closure.Options{
		Version: e.opts.Version, Number: e.version,
		Clock: func() float64 { return e.opts.Now().Sub(e.born).Seconds() },
		Logs:  e.logs,
	})
	e.SetSecondEngine(!e.opts.VMOnly)
}

// SetSecondEngine switches the second engine on or off. Sources are compiled
// accordingly from now on. Of what is compiled, runs that begin from now on go by
// it, once Ready was called for it.
func (e *Engine) SetSecondEngine(on bool) { e.second.off.Store(!on) }

// EngineCounts counts sources compiled since the start.
type EngineCounts struct {
	// Closures are those for the second engine, VM those for the virtual machine.
	Closures, VM int64
	// Fallbacks counts those of VM by what the second engine does not cover:
	// "coroutine", "loadstring", or "switched off".
	Fallbacks map[string]int64
}

func (c *EngineCounts) count(reason string) {
	if reason == "" {
		c.Closures++
		return
	}
	c.VM++
	if c.Fallbacks == nil {
		c.Fallbacks = map[string]int64{}
	}
	c.Fallbacks[reason]++
}

func (c *EngineCounts) clone() EngineCounts {
	return EngineCounts{c.Closures, c.VM, maps.Clone(c.Fallbacks)}
}

// EngineStats tells which engine sources were compiled for: scripts, and libraries
// of functions.
type EngineStats struct{ Scripts, Libraries EngineCounts }

// EngineStats returns the present numbers.
func (e *Engine) EngineStats() EngineStats {
	s := &e.second
	s.mu.Lock()
	defer s.mu.Unlock()
	return EngineStats{s.scripts.clone(), s.libraries.clone()}
}

// switchedOff is why a source has no program that was compiled while the second
// engine was off.
const switchedOff = "switched off"

// compileSecond makes the program of a tree; nil, and the reason, when the virtual
// machine must run it.
func (e *Engine) compileSecond(s *Script, tree chunkTree) (p *closure.Program, reason string) {
	if reason = switchedOff; !e.second.off.Load() {
		p, reason = e.program(s, tree)
	}
	counts := &e.second.scripts
	if s.library {
		counts = &e.second.libraries
	}
	e.second.mu.Lock()
	counts.count(reason)
	e.second.mu.Unlock()
	return p, reason
}

func (e *Engine) program(s *Script, tree chunkTree) (p *closure.Program, reason string) {
	if s.library {
		return e.second.world.CompileLibrary(tree.stmts)
	}
	return e.second.world.Compile(tree.stmts)
}

// Ready compiles s for the engine that is to run it if there is no code for that one
// yet, because the second engine was switched on or off since. It may take long. To be
// called before a transaction takes its locks; without it s goes on on the engine that
// it was compiled for, as it does when the other one does not take the source.
func (e *Engine) Ready(s *Script) {
	if e.second.off.Load() == (s.why != switchedOff) {
		s.once.Do(func() { e.compileOther(s) })
	}
}

// compileOther makes the code of s for the engine that it was not compiled for.
func (e *Engine) compileOther(s *Script) {
	if s.program.Load() == nil && s.why != switchedOff {
		return // the machine alone takes it
	}
	body, err := s.body()
	if err != nil {
		return
	}
	tree, err := e.parseSource(body, s.chunk())
	if err != nil {
		return
	}
	if s.why != switchedOff {
		s.both.Store(e.compileVM(s, tree) == nil)
	} else if p, _ := e.program(s, tree); p != nil {
		s.both.Store(true)
		s.program.Store(p)
	}
}

// body is what is compiled of the source.
func (s *Script) body() (body string, err error) {
	if s.library {
		_, body, err = libraryHead(s.Source)
		return body, err
	}
	return (&Script{Source: s.Source}).shebang()
}

// onSecond tells whether the second engine runs s.
func (e *Engine) onSecond(s *Script) bool {
	return s.program.Load() != nil && !(e.second.off.Load() && s.both.Load())
}

// worker gets a machine of the second engine for a run.
func (e *Engine) worker(s *Script, f *Function, inv *Invocation) *worker {
	w := inv.worker
	if w == nil || w.engine != e {
		if w, _ = e.second.machines.Get().(*worker); w == nil {
			w = &worker{machine: closure.NewMachine(e.second.world), engine: e}
		}
		w.in = &inv.input
	}
	w.script, w.function = s, f
	in := w.in
	in.Terms = e.terms(inv, 0)
	in.Keys, in.Args = inv.Keys, inv.Args
	if !inv.same || in.Caller == nil {
		in.Caller, in.Placer = inv.Caller, inv.placer
		in.Fence, in.CheckACL, in.Log = inv.Fence, inv.CheckACL, inv.Log
		if inv.Log == nil && e.opts.Logger != nil {
			in.Log = w.log
		}
	}
	inv.account = &w.machine.Account
	if inv.Trace {
		inv.line = w.line
	}
	return w
}

// done gives the machine of a run back, or to the invocation that keeps it, unless it
// must not be used again.
func (w *worker) done(inv *Invocation, reusable bool) {
	inv.Used = w.machine.Used()
	switch {
	case !reusable && !mutantKeepSpoiled:
		inv.worker = nil
	case inv.keeps:
		inv.worker = w
	default:
		w.rest()
	}
}

// rest puts the machine where the next run may find it.
func (w *worker) rest() {
	w.machine.Rest()
	w.in.Keys, w.in.Args = nil, nil
	w.in, w.script, w.function = nil, nil, nil
	w.engine.second.machines.Put(w)
}

// runSecond is Run on the second engine.
func (e *Engine) runSecond(s *Script, inv *Invocation, out command.Reply) error {
	w := e.worker(s, nil, inv)
	reusable, err := w.machine.Run(s.program.Load(), w.in, out)
	if err != nil {
		err = w.failure(inv, err)
	}
	w.done(inv, reusable)
	return err
}

// callSecond is Call on the second engine.
func (e *Engine) callSecond(f *Function, inv *Invocation, out command.Reply) error {
	w := e.worker(f.Library.Body, f, inv)
	reusable, err := w.machine.Call(w.callback, f.Library.plainArgs, w.in, out)
	if err != nil {
		err = w.failure(inv, err)
	}
	w.done(inv, reusable)
	return err
}

// callback finds the function that is called.
func (w *worker) callback() (value.Value, error) {
	return w.kept.callback(w.engine, w.function, &w.machine.Account, w.in.Terms.Limits, func(ld *loading) {
		w.machine.Body(w.script.program.Load(), closure.Loader{Register: ld.add, Flag: namedFlag, Again: true})
	})
}

// loadSecond runs a library's body on the second engine.
func (e *Engine) loadSecond(ld *loading, inv *Invocation) (timedOut bool, err error) {
	body := ld.lib.Body
	w := e.worker(body, nil, inv)
	reusable, err := w.machine.Load(body.program.Load(), w.in, closure.Loader{Register: ld.add, Flag: namedFlag})
	timedOut = err == budget.ErrTime
	if err != nil {
		err = w.failed(inv, err, "")
	}
	w.done(inv, reusable)
	return timedOut, err
}

// failure turns how a script ended into Run's error.
func (w *worker) failure(inv *Invocation, err error) error {
	source, number := w.machine.Stopped()
	line := strconv.Itoa(number)
	var e *closure.Error
	if errors.As(err, &e) {
		if source, line = e.Source, e.Line; source == "" {
			return w.failed(inv, err, "") // of the reply, when the script was over
		}
	}
	trailer := place(w.name(), source, line)
	if trailer == "" && e == nil {
		trailer = nowhere(w.name())
	}
	return w.failed(inv, err, trailer)
}

// failed is failure with the words that name the place.
func (w *worker) failed(inv *Invocation, err error, trailer string) error {
	var e *closure.Error
	if !errors.As(err, &e) {
		return stopped(err, trailer)
	}
	inv.Told = e.Told
	switch {
	case e.Returned:
		return &Failure{Returned, e.Text}
	case e.Broken:
		return &Failure{Broken, e.Text}
	}
	return &Failure{Uncaught, e.Text + trailer}
}

// nowhere names a script or function that its account has ended between two places
// that are noted.
func nowhere(name string) string { return " script: " + name + "." }

// place names a script or function and a line of it, after the text of an error.
func place(name, source, line string) string {
	if source == "" {
		return ""
	}
	return " script: " + name + ", on " + source + ":" + line + "."
}
