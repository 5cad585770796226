package scripting

import (
	"errors"
	"log/slog"
	"time"

	"github.com/latchkey-proxy/latchkey/scripting/closure"
	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// prepare compiles the source of an EVAL, which nobody should have to wait for.
func (r *Runner) prepare(c *command.Call) {
	if _, problem := numKeys(c.Args, command.ErrNotInteger); problem != "" {
		return // it does not run, and is not kept
	}
	if s, _ := r.source(c.Args[1]); s != nil {
		r.engine.Ready(s)
		c.Prepared, c.Lengthy = s, s.Lengthy()
	}
}

// prepareCached finds the script of an EVALSHA. One that is not there may yet be
// loaded by the commands before it in the same transaction.
func (r *Runner) prepareCached(c *command.Call) {
	m := memoOf(c.S)
	if s := m.script; s == nil || string(c.Args[1]) != string(s.SHA[:]) || !s.InCache() {
		m.script = r.cached(c.Args[1])
	}
	if s := m.script; s != nil {
		r.engine.Ready(s)
		c.Prepared, c.Lengthy = s, s.Lengthy()
	}
}

// memo is what a session keeps from one script to the next.
type memo struct {
	script *Script     // of the last EVALSHA
	call   *scriptCall // not in use
	rest   func()      // has call give back what it keeps
}

func memoOf(s *command.Session) *memo {
	m, _ := s.Memo.(*memo)
	if m == nil {
		m = &memo{}
		m.rest = func() {
			if m.call != nil {
				m.call.rest()
			}
		}
		s.Memo = m
	}
	return m
}

// cached is the script of that name in the cache, or nil.
func (r *Runner) cached(name []byte) *Script {
	if sha, ok := ParseSHA1(name); ok {
		return r.engine.Cache().Get(sha)
	}
	return nil
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
	keys, args, ok := words(c, command.ErrNotInteger)
	if !ok {
		return
	}
	s, _ := c.Prepared.(*Script)
	if s == nil {
		var problem string
		if s, problem = r.source(c.Args[1]); problem != "" {
			c.Err(text.ErrorLine(problem))
			return
		}
	}
	r.run(c, s, nil, keys, args, readOnly)
}

func (r *Runner) evalCached(c *command.Call, readOnly bool) {
	if len(c.Args[1]) != len(SHA1{}) { // before the number of keys is looked at, as Redis
		c.Err(command.ErrNoScript)
		return
	}
	keys, args, ok := words(c, command.ErrNotInteger)
	if !ok {
		return
	}
	s, _ := c.Prepared.(*Script)
	if s == nil || c.From == command.FromExec { // a SCRIPT FLUSH may stand before it
		s = r.cached(c.Args[1])
	}
	if s == nil {
		c.Err(command.ErrNoScript)
		return
	}
	r.run(c, s, nil, keys, args, readOnly)
}

// words splits EVAL's arguments into keys and the rest. notNumber is the error
// when the number of keys is none.
func words(c *command.Call, notNumber string) (keys, args [][]byte, ok bool) {
	if few, rest := c.Args[2], c.Args[3:]; len(few) == 1 {
		if n := uint(few[0]) - '0'; n <= 9 && n <= uint(len(rest)) {
			return rest[:n:n], rest[n:], true
		}
	}
	n, problem := numKeys(c.Args, notNumber)
	if problem != "" {
		c.Err(problem)
		return nil, nil, false
	}
	return c.Args[3 : 3+n], c.Args[3+n:], true
}

// numKeys is the number of keys that EVAL and its kin say they have, or the text
// of the error.
func numKeys(args [][]byte, notNumber string) (n int, problem string) {
	v, ok := command.ParseInt(args[2])
	switch {
	case !ok:
		return 0, notNumber
	case v > int64(len(args)-3):
		return 0, "ERR Number of keys can't be greater than number of args"
	case v < 0:
		return 0, "ERR Number of keys can't be negative"
	}
	return int(v), ""
}

// errRerun unwinds a script whose transaction must begin anew.
var errRerun = errors.New("scripting: the transaction must be run again")

// scriptCall is one run of a script for a client: the Caller of its redis.call.
type scriptCall struct {
	Invocation
	runner   *Runner
	outer    *command.Call
	script   *Script
	function *Function // the function that runs, nil for EVAL's scripts
	inner    command.Call
	settings *Settings // that Limits are of
	started  time.Time
	known    [4]known
	version  uint64 // of the table that known and placed are from
	next     int

	placed    [4]placed
	nextPlace int
	unwatch   func() // ends the watch over the client's socket
}

// name is what the script is counted and killed by: a function's name or a SHA1.
func (sc *scriptCall) name() string { return nameOf(sc.script, sc.function) }

func nameOf(s *Script, f *Function) string {
	if f != nil {
		return f.Name
	}
	return s.SHA.String()
}

const (
	unknownCommand = "ERR Unknown Redis command called from script"
	wrongArity     = "ERR Wrong number of args calling Redis command from script"
	errWriteFlag   = "ERR Can not execute a script with write flag using *_ro command."
	notFromScripts = "ERR This Redis command is not allowed from script"
)

// known is a command that a script has called, by the name that it used.
type known struct {
	name [15]byte
	size uint8
	spec *command.Spec
}

// placed is a command that may be called from a place of a script with so many words.
type placed struct {
	at    *closure.Place
	words int
	spec  *command.Spec
}

// forget drops what was found in an older version of the table.
func (sc *scriptCall) forget(version uint64) {
	sc.version = version
	clear(sc.known[:])
	clear(sc.placed[:])
}

// lookup finds a command by its name. Scripts call the same few again and again.
func (sc *scriptCall) lookup(name []byte) *command.Spec {
	t := sc.outer.E.Table
	if v := t.Version(); v != sc.version {
		sc.forget(v)
	}
	for i := range sc.known {
		k := &sc.known[i]
		if int(k.size) == len(name) && k.spec != nil && string(k.name[:k.size]) == string(name) {
			return k.spec
		}
	}
	spec := t.Lookup(name)
	k := &sc.known[sc.next%len(sc.known)]
	if spec != nil && len(name) <= len(k.name) {
		k.spec, k.size = spec, uint8(copy(k.name[:], name))
		sc.next++
	}
	return spec
}

// Call runs a command of the script's through the gate, as a savepoint of the
// script's transaction.
func (sc *scriptCall) Call(argv [][]byte, reply command.Reply) error {
	spec, refusal := sc.resolve(argv)
	return sc.exec(spec, refusal, argv, reply)
}

// CallAt is Call at a place of the script that names the command by a literal.
func (sc *scriptCall) CallAt(at *closure.Place, argv [][]byte, reply command.Reply) error {
	if v := sc.outer.E.Table.Version(); v != sc.version {
		sc.forget(v)
	}
	for i := range sc.placed {
		if p := &sc.placed[i]; p.at == at && p.words == len(argv) {
			return sc.exec(p.spec, "", argv, reply)
		}
	}
	spec, refusal := sc.resolve(argv)
	if refusal == "" && len(spec.Sub) == 0 && spec.Parent() == nil {
		sc.placed[sc.nextPlace%len(sc.placed)] = placed{at, len(argv), spec}
		sc.nextPlace++
	}
	return sc.exec(spec, refusal, argv, reply)
}

// exec runs the command that was found, or answers why not.
func (sc *scriptCall) exec(spec *command.Spec, refusal string, argv [][]byte, reply command.Reply) error {
	c := sc.outer
	sc.inner.Reuse(spec, argv)
	sc.inner.Reply = reply
	if refusal != "" {
		c.E.Reject(&sc.inner, refusal)
		return nil
	}
	c.E.Exec(&sc.inner)
	if c.Tx.Clash() {
		return errRerun
	}
	if spec.Flags&command.Write != 0 && sc.inner.Failed() != command.ErrOOM {
		c.S.AllowOOM = true // it has written, and is not stopped half way
	}
	return nil
}

// Pay, Alloc and Check implement store.Meter for the commands that the script calls.
func (sc *scriptCall) Pay(n int) bool   { return sc.account.Pay(n) }
func (sc *scriptCall) Alloc(n int) bool { return sc.account.Alloc(n) }
func (sc *scriptCall) Check() bool      { return sc.account.Check() }

// resolve finds the command that a script calls, and says why it may not if so:
// then spec is what was found of it.
func (sc *scriptCall) resolve(argv [][]byte) (spec *command.Spec, refusal string) {
	spec = sc.lookup(argv[0])
	if spec == nil || len(spec.Sub) != 0 && len(argv) > 1 && spec.SubByName(argv[1]) == nil {
		return nil, unknownCommand
	}
	sub, problem := spec.Resolve(argv)
	switch {
	case problem != "":
		return spec, wrongArity
	case sub.Flags&command.NoScript != 0:
		return sub, notFromScripts
	}
	return sub, ""
}

// run runs a script of EVAL, or f, a function whose library's body s is.
func (r *Runner) run(c *command.Call, s *Script, f *Function, keys, args [][]byte, readOnly bool) {
	flags := s.Flags
	if f != nil {
		flags = f.Flags
	}
	oom := !c.S.AllowOOM && c.E.Store.OverLimit()
	switch {
	case oom && flags&(HasShebang|AllowOOM|NoWrites) == HasShebang:
		c.Err(command.ErrOOM)
		return
	case readOnly && flags&(HasShebang|NoWrites) == HasShebang:
		c.Err(errWriteFlag)
		return
	}
	short := c.Tx.Short()
	if short && c.Tx.Allowance() < instructionNanos {
		c.Tx.Promote()
		return
	}
	m := memoOf(c.S)
	sc := m.call
	m.call = nil
	if sc == nil {
		sc = r.newCall(c.S)
	}
	settings := r.settings.Load()
	written, late := c.Tx.Effects(), 0
	if c.From == command.FromExec {
		late = c.Tx.Late() // of the commands before
	}
	sc.outer, sc.script, sc.function = c, s, f
	sc.Keys, sc.Args = keys, args
	sc.inner.Tx = c.Tx
	if sc.settings != settings {
		sc.settings, sc.Limits, sc.same = settings, settings.Limits, false
	}
	if r.tracer != nil {
		r.trace(sc)
	}
	sc.Told = false
	sc.Short = 0
	if short {
		sc.Short = c.Tx.Allowance() / instructionNanos
	}
	sc.Done, sc.Payer = nil, nil
	if w := c.S.Wait; w != nil {
		sc.Done = w.Done
	}
	// SELECT and the like last until the script's end.
	db, denied, allowOOM := c.S.DB, c.S.Denied, c.S.AllowOOM
	c.S.AllowOOM = !oom || flags&AllowOOM != 0
	if readOnly || flags&NoWrites != 0 {
		c.S.Denied = command.ErrReadOnlyScript
	}
	if c.Meter != nil { // a plugin has called
		sc.Payer = c.Meter
	}
	defer c.Tx.SetMeter(c.Tx.SetMeter(sc))
	var err error
	if f != nil {
		err = r.engine.Call(f, &sc.Invocation, c.Reply)
	} else {
		err = r.engine.Run(s, &sc.Invocation, c.Reply)
	}
	sc.same = true
	c.S.DB, c.S.Denied, c.S.AllowOOM = db, denied, allowOOM
	c.Brief(short && sc.Used <= briefInstructions)
	if short {
		c.Tx.Spend(sc.Used * instructionNanos)
		if f != nil {
			f.Tried(err != errRerun)
		} else {
			s.Tried(err != errRerun)
		}
	}
	if sc.kill.Load() != nil {
		sc.forgetKill()
	}
	if m.call != nil { // that of a script which a plugin has called meanwhile
		m.call.rest()
	}
	m.call, c.S.Rest = sc, m.rest
	if late = c.Tx.Late() - late; late > 0 || err != nil {
		r.ended(c, sc, err, late, c.Tx.Effects() > written)
	}
}

// What follows is out of run, which runs for each script, because what seldom runs would
// take room in the processor's cache of instructions there.

// newCall makes what a session's scripts run with.
func (r *Runner) newCall(s *command.Session) *scriptCall {
	sc := &scriptCall{runner: r}
	sc.inner.S, sc.inner.From, sc.inner.Meter = s, command.FromScript, sc
	sc.woken = make(chan struct{}, 1)
	sc.Caller, sc.placer, sc.keeps = sc, sc, true
	sc.Gone = store.ErrCancelled
	sc.LongRunning = sc.longRunning
	sc.Fence = sc.fence
	sc.Log = sc.log
	sc.Promote = sc.promote
	sc.CheckACL = sc.checkACL
	return sc
}

// trace has what the script calls told to the tracer.
//
//go:noinline
func (r *Runner) trace(sc *scriptCall) {
	sc.placer, sc.same = nil, false
	sc.Caller, sc.Trace = traced{sc, r.tracer, sc.outer.S.DB}, true
	r.tracer.Begin(nameOf(sc.script, sc.function))
}

// forgetKill takes back a kill that came as the script ended.
//
//go:noinline
func (sc *scriptCall) forgetKill() {
	sc.kill.Store(nil)
	select {
	case <-sc.woken:
	default:
	}
}

// ended counts the keys that a script had not declared, and what ended it if it failed, of
// which it answers as well. What runs again has not ended.
func (r *Runner) ended(c *command.Call, sc *scriptCall, err error, late int, wrote bool) {
	name := nameOf(sc.script, sc.function)
	if err == errRerun {
		if !c.Tx.Promoted() {
			r.Reruns.Add(1)
			r.tally.add(name, Counts{Reruns: 1})
		}
		return
	}
	if late > 0 {
		r.Undeclared.Add(int64(late))
		r.tally.add(name, Counts{Undeclared: int64(late)})
	}
	if err != nil {
		if sc.Told {
			c.Told()
		}
		r.failed(c, name, err, sc.settings, wrote)
	}
}

// rest gives back what the next run of the same batch would have had, and drops what
// the last one referred to.
func (sc *scriptCall) rest() {
	sc.release()
	sc.outer, sc.script, sc.function, sc.Keys, sc.Args, sc.Done, sc.Payer = nil, nil, nil, nil, nil, nil, nil
	sc.inner.Reuse(nil, nil)
	sc.inner.Reply = nil
}

// failed answers for a script that did not return a plain result.
func (r *Runner) failed(c *command.Call, name string, err error, settings *Settings, wrote bool) {
	var f *Failure
	if !errors.As(err, &f) { // its client was killed or has gone
		r.Killed.Add(1)
		r.tally.add(name, Counts{Kills: 1})
		c.Err(command.WaitError(err))
		return
	}
	reply := text.ErrorLine(f.Reply)
	switch f.Kind {
	case Returned:
		c.ErrKept(reply)
		return
	case Uncaught:
		if settings.KeepOnError {
			c.ErrKept(reply)
			return
		}
		if wrote {
			r.Rollbacks.Add(1)
			r.tally.add(name, Counts{Rollbacks: 1})
		}
	case Killed, Exhausted:
		r.Killed.Add(1)
		r.tally.add(name, Counts{Kills: 1})
	case Broken:
		r.log.Error("the Lua machine failed", "script", name, "err", f.Reply)
		reply = command.ErrInternal
	}
	c.Err(reply)
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

// log has a line of redis.log leave with the transaction, or never.
func (sc *scriptCall) log(level slog.Level, text string) {
	e, name := sc.runner.engine, sc.name()
	sc.outer.Tx.Emit(store.Event{Kind: store.EventDo, Weight: len(text), Do: func() { e.log(name, level, text) }})
}

// promote ends a run under latches that has used up its allowance.
func (sc *scriptCall) promote() error {
	sc.outer.Tx.Promote()
	return errRerun
}

func (sc *scriptCall) fence() (int64, error) { return sc.outer.Tx.Fence(), nil }
