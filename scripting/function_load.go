package scripting

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

const (
	// loadTime is how long the body of a library may run, as in Redis.
	loadTime = 500 * time.Millisecond
	// restoreTime is how long those of all libraries of a payload may.
	restoreTime = 10 * loadTime
)

// loaded is all libraries that there are. A transaction that changes them runs
// alone: its own commands see the change at once, all others when it has ended
// well.
type loaded struct {
	committed atomic.Pointer[librarySet]
	working   atomic.Pointer[librarySet]
}

func (l *loaded) init() {
	l.committed.Store(noLibraries)
	l.working.Store(noLibraries)
}

// seenBy is the set that a command sees: what was committed, and within a
// transaction that changes it, what that has made of it so far.
func (l *loaded) seenBy(c *command.Call) *librarySet {
	s := l.committed.Load()
	if c.Tx.Alone() {
		s = l.working.Load()
	}
	c.Tx.See(s.lsn)
	return s
}

// change makes a new set the transaction's, and what a log replays of it. c is in
// a transaction that is alone.
func (r *Runner) change(c *command.Call, next *librarySet, effects []store.Effect) {
	l := &r.libraries
	before := l.working.Load()
	l.working.Store(next)
	c.Tx.Beyond(effects, func(lsn uint64) {
		// A later change of the same transaction may have been made on top.
		s := *l.working.Load()
		s.lsn = lsn
		l.working.Store(&s)
		l.committed.Store(&s)
		r.engine.ForgetLibraries()
	}, func() {
		l.working.Store(before)
		r.engine.ForgetLibraries()
	})
}

func functionEffect(args ...string) store.Effect {
	return store.Effect{Op: store.OpBeyond, Args: append([]string{"FUNCTION"}, args...)}
}

func loadEffect(lib *Library) store.Effect { return functionEffect("LOAD", "REPLACE", lib.Source) }

// made are the libraries that a command was given, compiled and registered before
// its transaction began, or the text of the error.
type made struct {
	libs    []*Library
	problem string
}

// makeLibraries compiles sources and runs their bodies, which may take long:
// nothing is held meanwhile but the turn to load, which comes to one client after
// the other. So loading never waits for scripts that run long.
func (r *Runner) makeLibraries(c *command.Call, sources [][]byte) *made {
	var done <-chan struct{}
	if w := c.S.Wait; w != nil {
		done = w.Done
	}
	select {
	case r.loadTurn <- struct{}{}:
		defer func() { <-r.loadTurn }()
	case <-done:
		return &made{problem: command.ErrCancelled}
	}
	settings, now := r.settings.Load(), r.engine.opts.Now
	deadline := now().Add(restoreTime)
	m := &made{}
	for _, src := range sources {
		left := deadline.Sub(now())
		if left <= 0 {
			return &made{problem: fmt.Sprintf("ERR loading the libraries took longer than %s", restoreTime)}
		}
		inv := &Invocation{Limits: settings.Limits, Done: done, Gone: store.ErrCancelled, LongRunning: r.longLoad}
		inv.Limits.Time = min(loadTime, left)
		lib, err := r.engine.NewLibrary(src, inv, settings.Libraries)
		if errors.Is(err, store.ErrCancelled) {
			return &made{problem: command.WaitError(err)}
		}
		if err != nil {
			return &made{problem: text.ErrorLine(err.Error())}
		}
		m.libs = append(m.libs, lib)
	}
	return m
}

// longLoad gives the network processors of its own while a library's body runs
// for long.
func (r *Runner) longLoad() (func(), error) {
	if r.OnLong == nil {
		return func() {}, nil
	}
	r.OnLong(true)
	return func() { r.OnLong(false) }, nil
}

// loadOptions reads the words between LOAD and the source.
func loadOptions(c *command.Call) (replace bool, problem string) {
	for i := 2; i < len(c.Args)-1; i++ {
		if !c.Is(i, "replace") {
			return false, fmt.Sprintf("ERR Unknown option given: %s", text.OneLine(string(c.Args[i])))
		}
		replace = true
	}
	return replace, ""
}

// prepareLoad is FUNCTION LOAD's Prepare.
func (r *Runner) prepareLoad(c *command.Call) {
	if c.Prepared != nil {
		return
	}
	if _, problem := loadOptions(c); problem == "" {
		c.Prepared = r.makeLibraries(c, c.Args[len(c.Args)-1:])
	}
}

func (r *Runner) functionLoad(c *command.Call) {
	replace, problem := loadOptions(c)
	if problem != "" {
		c.Err(problem)
		return
	}
	set := r.libraries.seenBy(c)
	const exists = "ERR Library '%s' already exists"
	if name, _, err := libraryHead(string(c.Args[len(c.Args)-1])); err == nil && !replace && set.libraries[name] != nil {
		c.Err(fmt.Sprintf(exists, name)) // whatever is wrong with the rest
		return
	}
	r.prepareLoad(c)
	m := c.Prepared.(*made)
	if m.problem != "" {
		c.Err(m.problem)
		return
	}
	next, problem := set.with(m.libs, replace, r.settings.Load().Libraries, exists)
	if problem != "" {
		c.Err(problem)
		return
	}
	lib := m.libs[0]
	r.change(c, next, []store.Effect{loadEffect(lib)})
	c.Reply.BulkString(lib.Name)
}

func (r *Runner) functionDelete(c *command.Call) {
	set := r.libraries.seenBy(c)
	lib := set.libraries[string(c.Args[2])]
	if lib == nil {
		c.Err("ERR Library not found")
		return
	}
	r.change(c, set.without(lib), []store.Effect{functionEffect("DELETE", lib.Name)})
	c.OK()
}

// functionFlush: what is dropped goes to the collector, so that ASYNC and SYNC
// are the same.
func (r *Runner) functionFlush(c *command.Call) {
	switch {
	case len(c.Args) > 3:
		c.Err(command.UnknownSubcommand(c.Spec, c.Args[1]))
		return
	case len(c.Args) == 3 && !c.Is(2, "sync") && !c.Is(2, "async"):
		c.Err("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
		return
	}
	r.change(c, noLibraries, []store.Effect{functionEffect("FLUSH")})
	c.OK()
}
