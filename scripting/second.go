package scripting

import (
	"errors"
	"log/slog"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/latchkey-proxy/latchkey/scripting/closure"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// Scripts run on the second engine, package closure, when it covers them; the
// others, and all when it is switched off, run on the virtual machine. Which one
// is decided for the whole script before its first effect.

// second is the second engine, and the count of who runs where.
type second struct {
	world    *closure.World
	off      atomic.Bool
	machines sync.Pool // of *worker

	compiled atomic.Int64
	vm       atomic.Int64
	mu       sync.Mutex
	reasons  map[string]int64
}

// worker is a machine of the second engine with what a run hands to it.
type worker struct {
	machine *closure.Machine
	in      closure.Input
	engine  *Engine
	script  *Script
}

func (w *worker) log(at slog.Level, text string) { w.engine.log(w.script.SHA.String(), at, text) }

// line is where the script is.
func (w *worker) line() int {
	_, line := w.machine.Stopped()
	return line
}

func (e *Engine) openSecond() {
	e.second.reasons = map[string]int64{}
	e.second.world = closure.NewWorld(closure.Options{
		Version: e.opts.Version, Number: e.version,
		Clock: func() float64 { return e.opts.Now().Sub(e.born).Seconds() },
		Logs:  e.logs,
	})
	e.SetSecondEngine(!e.opts.VMOnly)
}

// SetSecondEngine switches the second engine on or off, for runs that begin from now on.
func (e *Engine) SetSecondEngine(on bool) { e.second.off.Store(!on) }

// EngineStats tells which engine scripts were compiled for.
type EngineStats struct {
	// Closures and VM count sources compiled for the second engine and for the
	// virtual machine, since the start.
	Closures, VM int64
	// Fallbacks counts those of VM by what the second engine does not cover:
	// "coroutine", "loadstring", or "switched off".
	Fallbacks map[string]int64
}

// EngineStats returns the present numbers.
func (e *Engine) EngineStats() EngineStats {
	s := &e.second
	s.mu.Lock()
	defer s.mu.Unlock()
	return EngineStats{s.compiled.Load(), s.vm.Load(), maps.Clone(s.reasons)}
}

func (s *second) fallback(reason string) {
	s.vm.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reasons[reason]++
}

// compileSecond makes the program of a script's tree; nil, and the reason, when
// the virtual machine must run it.
func (e *Engine) compileSecond(tree chunkTree) (p *closure.Program, reason string) {
	if e.second.off.Load() {
		reason = "switched off"
	} else {
		p, reason = e.second.world.Compile(tree.stmts)
	}
	if p == nil {
		e.second.fallback(reason)
		return nil, reason
	}
	e.second.compiled.Add(1)
	return p, ""
}

// vmCode is the code of a script for the virtual machine: one that the second
// engine covers gets it when that is switched off.
func (e *Engine) vmCode(s *Script) error {
	s.once.Do(func() {
		if s.proto != nil {
			return
		}
		body, err := s.shebang()
		if err == nil {
			s.proto, s.argsEscape, err = e.compileSource(body, scriptChunk)
		}
		s.vmErr = err
	})
	return s.vmErr
}

// runSecond is Run on the second engine.
func (e *Engine) runSecond(s *Script, inv *Invocation, out command.Reply) error {
	w, _ := e.second.machines.Get().(*worker)
	if w == nil {
		w = &worker{machine: closure.NewMachine(e.second.world), engine: e}
	}
	w.script = s
	in := &w.in
	in.Terms = e.terms(inv, 0)
	in.Keys, in.Args, in.Caller = inv.Keys, inv.Args, inv.Caller
	in.Fence, in.CheckACL, in.Log = inv.Fence, inv.CheckACL, inv.Log
	if inv.Log == nil && e.opts.Logger != nil {
		in.Log = w.log
	}
	inv.account = &w.machine.Account
	if inv.Trace {
		inv.line = w.line
	}
	reusable, err := w.machine.Run(s.program, in, out)
	inv.Used = w.machine.Used()
	if err != nil {
		err = w.failure(s, inv, err)
	}
	if reusable {
		w.in, w.script = closure.Input{}, nil
		e.second.machines.Put(w)
	}
	return err
}

// failure turns how a script ended into Run's error.
func (w *worker) failure(s *Script, inv *Invocation, err error) error {
	var e *closure.Error
	if errors.As(err, &e) {
		inv.Told = e.Told
		switch {
		case e.Returned:
			return &Failure{Returned, e.Text}
		case e.Broken:
			return &Failure{Broken, e.Text}
		}
		return &Failure{Uncaught, e.Text + place(s.SHA.String(), e.Source, e.Line)}
	}
	source, line := w.machine.Stopped()
	return stopped(err, place(s.SHA.String(), source, line))
}

// place names a script or function and a line of it, after the text of an error.
func place(name, source string, line int) string {
	if source == "" {
		return ""
	}
	return " script: " + name + ", on " + source + ":" + strconv.Itoa(line) + "."
}
