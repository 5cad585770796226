package plugins

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/latchkey-proxy/latchkey/plugins/fuel"
	"github.com/latchkey-proxy/latchkey/plugins/manifest"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// yieldEvery is how long a guest computes before others are let run.
const yieldEvery = time.Millisecond

// fuelNanos is about what a unit of fuel takes, in ns: what a call under latches
// spends of its transaction's allowance.
const fuelNanos = 1

// briefFuel is how much a call uses, host functions included, that counts as brief
// (command.Call.Brief): to free a lock takes some 300, host functions being charged
// 100 each.
const briefFuel = 4096 / fuelNanos

// instance is one instance of a module with a linear memory of its own. It runs
// one call at a time. It is also the context.Context of its guest's calls,
// which is how a host function finds it without a look-up.
type instance struct {
	context.Context
	m        *module
	number   uint32 // in its pool
	guest    api.Module
	memory   linear
	fuel     api.MutableGlobal
	kept     api.MutableGlobal // whether a reply was kept in the guest: fuel.KeptAwait
	foresees api.MutableGlobal // whether what was foreseen was answered in the guest: fuel.ForeseenAwait
	command  api.Function
	arenaFn  api.Function
	wakeFn   api.Function // these may be missing
	timerFn  api.Function
	eventFn  api.Function
	closedFn api.Function
	stack    []uint64
	arena    uint32
	arenaLen uint32

	turn
	kills    int64              // the module's count when the call began
	declared []command.Position // keys among the call's arguments
	open     []openReply        // what is open of the reply
	late     recorder           // the outermost of those that wait for their length
	rand     *rand.ChaCha8

	called      []called // replies of commands that the guest called
	calledBytes int
	spareRec    []*recorder
	argv        [][]byte
	inner       command.Call
	touched     []command.Position
	guard       func(*command.Call) string
	line        []byte // printed, and not ended yet
	slept       uint64 // the guest's own clock, in ns

	left    int64 // fuel that the guest has when it is called, and had when it returned
	counted int64 // of m.memory
}

// turn is what an instance knows of the call that is bound. Each begins with a new
// one; call is nil in between.
type turn struct {
	call     *command.Call
	db       int  // the database that the call is in
	readOnly bool // the command may not write
	reaches  bool // keys need not be declared
	replies  bool // somebody waits for a reply
	mayBlock bool
	short    bool // latches are held: no more than the transaction's allowance
	keeping  bool // the guest may keep its reply, an integer, until it returns
	filled   bool // it has: integer, to be given when the call has ended
	seeded   bool
	stateful manifest.State // what the call may do with the module's state
	cmd      *guestCommand  // what it asks first is to be remembered; or nil
	foreseen foreseen
	parked   *parked

	failed  string
	entered string // name of the function that the guest is in

	began      time.Time     // when the clock was first looked at, once it was
	yielded    time.Duration // since began, when others were let run last
	within     *cause        // the guest whose call this call is part of, or nil
	ending     *trap         // why the guest must end, once a command that it called was told so
	deferred   int           // how many of the open replies wait for their length
	nextHandle int64
	integer    int64
	timersSet  int
	logged     int   // lines written to the log
	paid       int64 // of used, charged to the script that called
	first      int64 // fuel that is granted without a look whether the call may go on
	slice      int64 // fuel granted last
	spent      int64 // fuel of the slices before it
	hosted     int64 // what host functions cost since the clock was last looked at
	dueAt      int64 // how much of that there may be
	worked     int64 // what they cost before
	written    int64 // bytes of values written
	replied    int64 // bytes of the reply
}

// Value is context.Context's. wazero asks for an allocator of memory when it makes
// the instance, and at each call whether somebody wants snapshots of it.
func (in *instance) Value(key any) any {
	if in.guest == nil {
		return in.Context.Value(key)
	}
	return nil
}

// trap ends a guest's call from within a host function.
type trap struct{ reason string }

func (t *trap) Error() string { return t.reason }

// instantiate makes an instance and lets it initialise itself. Its time begins with
// its first instruction, which asks for fuel: what the host does before is bounded by
// the shape of the module, and waits for a processor when there is much to do.
func (m *module) instantiate() (in *instance, err error) {
	in = &instance{m: m, turn: turn{dueAt: fuel.Slice}, stack: make([]uint64, 8)}
	in.Context = experimental.WithMemoryAllocator(context.Background(), in)
	in.guard = in.judge
	guest, err := m.host.runtime.InstantiateModule(in, m.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, fmt.Errorf("the module cannot be instantiated: %s", reason(err))
	}
	in.guest = guest
	in.command, in.arenaFn = guest.ExportedFunction(fuel.EntryName), guest.ExportedFunction("lk_arena")
	in.wakeFn, in.timerFn = guest.ExportedFunction("lk_wake"), guest.ExportedFunction("lk_timer")
	in.eventFn, in.closedFn = guest.ExportedFunction("lk_event"), guest.ExportedFunction("lk_closed")
	in.fuel, _ = guest.ExportedGlobal(fuel.GlobalName).(api.MutableGlobal)
	in.kept, _ = guest.ExportedGlobal(fuel.KeptName).(api.MutableGlobal)
	in.foresees, _ = guest.ExportedGlobal(fuel.ForeseenName).(api.MutableGlobal)
	defer func() {
		if err != nil {
			guest.Close(in)
		}
	}()
	if in.fuel == nil || in.kept == nil || in.foresees == nil {
		return nil, errors.New("the module was not instrumented")
	}
	if start := guest.ExportedFunction("_initialize"); start != nil {
		if _, err := start.Call(in); err != nil {
			return nil, fmt.Errorf("_initialize failed: %s", reason(err))
		}
	}
	for _, step := range []struct {
		name string
		want int32
	}{{"lk_abi", abiVersion}, {"lk_init", 0}} {
		out, err := guest.ExportedFunction(step.name).Call(in)
		if err != nil {
			return nil, fmt.Errorf("%s failed: %s", step.name, reason(err))
		}
		if got := int32(out[0]); got != step.want {
			return nil, fmt.Errorf("%s returned %d, wanted %d", step.name, got, step.want)
		}
	}
	return in, nil
}

func (in *instance) close() { in.guest.Close(in) }

// prepare makes an instance, before any key is acquired, if there is none ready
// and there may be another. It is not taken yet: those who wait for one hot key
// would hold all instances meanwhile, and no other key's command could run.
func (m *module) prepare() {
	if m.pool.spare() {
		if in, err := m.fill(); err == nil { // otherwise the call will say so
			m.give(in)
		}
	}
}

// errUnloaded: the module was unloaded or reloaded.
var errUnloaded = errors.New("the module was unloaded")

// take returns an instance that is ready, makes one, or waits for one. Under
// latches it takes what is ready, or nil. errUnloaded: the module is gone.
//
// Whoever waits here holds the keys of its call. It cannot wait in a circle:
// an instance is taken after all keys of a call are held, the guest never waits
// for another key or instance, and it is ended when its time is up. So every
// holder of an instance goes on, whoever waits for its keys.
func (m *module) take(c *command.Call) (*instance, error) {
	if in := m.pool.ready(); in != nil {
		return in, nil
	}
	if c.Tx.Short() {
		in := m.pool.another()
		if in != nil {
			m.calls.Add(1)
		}
		return in, nil
	}
	// What a plugin has called, by a script or not, holds an instance of the caller's, and
	// somebody who holds one of this module may wait for one of that: a circle.
	in, place, next, open := m.pool.acquire(c.From == command.FromTimer || depthOf(c.S) == 0)
	if !open {
		return nil, errUnloaded
	}
	m.calls.Add(1)
	switch {
	case in != nil:
		return in, nil
	case place:
		return m.fill()
	case next == nil:
		return nil, m.busy()
	}
	// All instances are in use, each for MaxTime at most; others wait for the
	// keys of this call, so it does not wait for longer.
	timer := time.NewTimer(time.Duration(m.host.maxTime.Load()))
	defer timer.Stop()
	var problem error
	select {
	case in = <-next:
	case <-done(c):
		problem = errors.New("the client is gone")
	case <-timer.C:
		problem = m.busy()
	}
	if problem != nil {
		if m.pool.cancel(next) {
			return nil, problem
		}
		in = <-next // it came in the last moment, and nobody else has it
	}
	if in == nil { // an instance trapped and left its place
		return m.fill()
	}
	return in, nil
}

func (m *module) busy() error { return fmt.Errorf("all %d instances are busy", m.pool.most) }

// fill makes an instance in a place that was just taken.
func (m *module) fill() (*instance, error) {
	in, err := m.instantiate()
	if err != nil {
		m.vacate(nil)
		m.host.opt.Log.Warn("an instance of a module could not be made", "module", m.man.Name, "reason", err.Error())
		m.failed(err)
		return nil, err
	}
	m.pool.fill(in)
	return in, nil
}

// done is closed when the client that a call is for was killed or is gone.
func done(c *command.Call) <-chan struct{} {
	if c.S.Wait == nil {
		return nil
	}
	return c.S.Wait.Done
}

// give returns an instance after a call.
func (m *module) give(in *instance) {
	in.count(int64(len(in.memory)))
	if in = m.pool.put(in); in != nil {
		m.discard(in)
	}
}

// discard ends an instance whose memory cannot be trusted any more.
func (m *module) discard(in *instance) {
	in.count(0)
	in.close()
	m.vacate(in)
}

// vacate gives back the place of an instance that is gone, or was never made: nil.
func (m *module) vacate(in *instance) {
	if m.pool.vacate(in) {
		m.dropCode()
	}
}

// count brings the module's account of linear memory up to date.
func (in *instance) count(size int64) {
	if size != in.counted {
		in.m.memory.Add(size - in.counted)
		in.counted = size
	}
}

// run is the handler of a plugin command.
func (m *module) run(c *command.Call, cmd *guestCommand) {
	short := c.Tx.Short()
	var p *parked
	if in, b := m.begin(c, short); in != nil {
		p = m.end(c, in, b, in.run(c, cmd))
	}
	if short {
		if p != nil && c.Tx.Short() {
			c.Tx.Promote() // it may wait with its keys in its hand only
			m.calls.Add(-1)
		}
		cmd.hint.Tried(c.Tx.Short() && !c.Tx.Clash())
	}
	if p != nil && !c.Tx.Clash() {
		m.park(c, p)
	}
}

// guest has an instance run for c. It answers what went wrong, or returns what
// the guest wants to wait for.
func (m *module) guest(c *command.Call, run func(in *instance) error) *parked {
	in, b := m.begin(c, c.Tx.Short())
	if in == nil {
		return nil
	}
	return m.end(c, in, b, run(in))
}

// before is what a call of a guest puts back when it has ended.
type before struct {
	mark  int // of the reply
	cause any // of the session
}

// begin takes an instance for c, to be given back by end. When it returns none it
// has answered why, or the call runs again.
func (m *module) begin(c *command.Call, short bool) (in *instance, b before) {
	kills := m.kills.Load()
	if m.pool.closed() {
		m.gone(c)
		return nil, b
	}
	if why := m.disabled.Load(); why != nil {
		c.Err("PLUGINDISABLED " + m.man.Name + ": " + *why)
		return nil, b
	}
	if short && c.Tx.Allowance() <= 0 {
		c.Tx.Promote()
		return nil, b
	}
	in, err := m.take(c)
	switch {
	case err == errUnloaded:
		m.gone(c)
		return nil, b
	case err != nil:
		m.errors.Add(1)
		c.Err(m.problem(err.Error()))
		return nil, b
	case in == nil:
		c.Tx.Promote()
		return nil, b
	}
	b = before{c.Reply.Mark(), c.S.Cause}
	c.S.Cause = m.causeOf(b.cause, c.From == command.FromTimer)
	in.kills = kills
	return in, b
}

// end gives the instance back after a call that ended with err. It answers what
// went wrong, or returns what the guest wants to wait for.
func (m *module) end(c *command.Call, in *instance, b before, err error) *parked {
	c.S.Cause = b.cause
	if c.Meter != nil && err == nil {
		in.payCaller() // who ends for it when it looks
	}
	if err != nil {
		in.left = int64(in.fuel.Get())
	}
	if in.short {
		used := in.spent + in.slice - in.left + in.worked + in.hosted
		c.Tx.Spend(used * fuelNanos)
		// What a command that it has called takes is not in used, nor is the log.
		c.Brief(used <= briefFuel && in.nextHandle == 1 && in.logged == 0 && in.parked == nil && err == nil)
		in.short = false
	}
	if err != nil {
		m.ended(c, in, b, err)
		return nil
	}
	failed, p, complete := in.failed, in.parked, in.complete()
	filled, integer := in.filled, in.integer
	if p != nil && in.replied > 0 {
		failed = m.problem("a command that waits has given a reply")
	}
	in.unbind()
	m.give(in)
	switch {
	case failed != "":
		m.errors.Add(1)
		c.Reply.Rewind(b.mark)
		c.Err(failed)
	case p != nil:
		return p
	case !complete:
		m.errors.Add(1)
		c.Reply.Rewind(b.mark)
		c.Err(m.problem("the reply is not complete"))
	case filled:
		c.Reply.Int(integer) // it may throw, when there is nothing left to give back
	}
	return nil
}

// ended is end for a call whose guest had to be ended.
func (m *module) ended(c *command.Call, in *instance, b before, err error) {
	if c.Tx.Clash() { // all of it is run again
		m.calls.Add(-1)
		m.discard(in)
		c.Reply.Rewind(b.mark)
		return
	}
	in.flushLine(slog.LevelWarn)
	m.discard(in)
	c.Reply.Rewind(b.mark)
	m.trapped(c.Spec.Name, err)
	c.Err(m.problem(err.Error()))
}

// gone answers a call whose Spec was looked up before its module was unloaded or
// reloaded: queued by MULTI, or on its way. A module that was reloaded runs it, if
// the keys that were locked for it are still those it needs.
func (m *module) gone(c *command.Call) {
	now := m.now()
	if now == m {
		c.Err(m.problem("the module was unloaded"))
		return
	}
	if cmd := now.successor(c, m); cmd != nil {
		c.Spec = cmd.spec
		cmd.spec.Handler(c)
		return
	}
	c.Err(m.problem(errOtherNow))
}

const errOtherNow = "the module was reloaded meanwhile, and the command is gone or takes other arguments now; send it again"

// successor is the command that serves a call that was of the module old, in whose
// place m stands: that of the same name, if the keys that were acquired for the
// call are still those it needs.
func (m *module) successor(c *command.Call, old *module) *guestCommand {
	was, cmd := old.served[c.Spec.Name], m.served[c.Spec.Name]
	switch {
	case m == old:
		return cmd
	case cmd == nil || was == nil || !slices.Equal(cmd.spec.Keys, c.Spec.Keys):
		return nil
	case cmd.state != manifest.StateNone && was.state == manifest.StateNone:
		return nil
	}
	if _, problem := cmd.spec.Resolve(c.Args); problem != "" {
		return nil
	}
	return cmd
}

// problem is the error reply for what is wrong with the module.
func (m *module) problem(reason string) string { return "PLUGINERR " + m.man.Name + ": " + reason }

// bind gives the instance a call to act for, in which nothing is allowed yet.
func (in *instance) bind(c *command.Call) {
	// Emptied where it stands: a value that is built is copied, too.
	in.turn = turn{}
	in.call, in.db, in.short = c, c.DB(), c.Tx.Short()
	in.nextHandle, in.dueAt = 1, fuel.Slice
	if in.short {
		in.dueAt = store.Allowance / fuelNanos
	}
	in.declared = in.declared[:0]
	in.open = in.open[:0]
	if in.within = c.S.Cause.(*cause).caller(); in.within != nil {
		in.began = in.within.began // its time is up when this is over
	}
	// What the call before has left serves as a part of the first slice, the rest of
	// which is granted when it is asked for: most calls never ask.
	if in.first = in.grant(); in.left > in.first || in.left < in.first/2 {
		in.left = in.first
	} else {
		in.slice = in.left
	}
}

// bindCommand is bind for a command of the module.
func (in *instance) bindCommand(c *command.Call, cmd *guestCommand) (err error) {
	in.bind(c)
	in.open = append(in.open, openReply{left: 1})
	in.replies, in.readOnly, in.stateful = true, cmd.readOnly, cmd.state
	if in.declared, err = c.Spec.AppendKeys(in.declared, c.Args); err != nil {
		in.failed = command.ErrSyntax
		return err
	}
	return nil
}

// run calls the guest. An error means that the instance must go.
func (in *instance) run(c *command.Call, cmd *guestCommand) error {
	if in.bindCommand(c, cmd) != nil {
		return nil
	}
	in.mayBlock = true
	if err := in.writeFrame(c.Args); err != nil {
		return in.unfit(err)
	}
	// What else there is to tell each other goes along, see fuel.Options.Entry.
	in.keeping = true
	in.entered = "lk_command"
	stack := in.stack[:7]
	stack[5] = in.foresee(cmd, c.Args)
	stack[0], stack[1], stack[2], stack[3] = uint64(uint32(cmd.id)), uint64(len(c.Args)), uint64(in.arena), uint64(in.left)
	stack[4], stack[6] = uint64(in.foreseen.state), uint64(uint32(in.foreseen.answer))
	if err := in.command.CallWithStack(in, stack); err != nil {
		return errors.New(reason(err))
	}
	in.left, in.keeping = int64(stack[1]), false
	if uint32(stack[4]) == fuel.ForeseenAnswered {
		in.answered()
	}
	if uint32(stack[2]) == fuel.KeptFilled {
		// It is the only one, or the host would know.
		in.hosted += hostCall
		in.replied, in.open = replyHead, in.open[:0]
		in.filled, in.integer = true, int64(stack[3])
	}
	in.returned(int32(stack[0]))
	return nil
}

// wake calls the guest for a client that has waited as p says.
func (in *instance) wake(c *command.Call, cmd *guestCommand, p *parked, reason uint64) error {
	if in.bindCommand(c, cmd) != nil {
		return nil
	}
	if err := in.writeFrame(c.Args); err != nil {
		return in.unfit(err)
	}
	code, err := in.enter("lk_wake", in.wakeFn, uint64(p.token), reason, uint64(len(c.Args)), uint64(in.arena))
	if code == wakeAgain && err == nil && in.failed == in.codeText(code) {
		in.failed, in.parked = "", p
	}
	return err
}

// enter calls a function of the guest. Whatever else than 0 it returns makes the
// call fail.
func (in *instance) enter(export string, fn api.Function, params ...uint64) (code int32, err error) {
	in.entered = export
	copy(in.stack, params)
	if err := in.callGuest(fn); err != nil {
		return 0, errors.New(reason(err))
	}
	code = int32(in.stack[0])
	in.returned(code)
	return code, nil
}

// callGuest calls a function of the guest with the fuel that it has left.
func (in *instance) callGuest(fn api.Function) error {
	in.fuel.Set(uint64(in.left))
	err := fn.CallWithStack(in, in.stack)
	in.left = int64(in.fuel.Get())
	return err
}

// returned notes what a function of the guest has returned.
func (in *instance) returned(code int32) {
	if code != 0 && in.failed == "" {
		in.failed = in.codeText(code)
	}
}

func (in *instance) unbind() {
	in.flushLine(slog.LevelInfo)
	in.call, in.parked = nil, nil
	in.failed = ""
	if len(in.called) > 0 || len(in.spareRec) > 0 {
		in.freeAll()
	}
	if in.deferred > 0 {
		in.late.reset()
	}
}

// codeText is the error reply for what a function of the guest has returned.
func (in *instance) codeText(code int32) string {
	switch code {
	case codeWrongType:
		return command.ErrWrongType
	case codeDenied:
		return "NOPERM " + in.m.man.Name + ": not declared by the command, or not granted to the module"
	case codeOOM:
		return command.ErrOOM
	case codeInvalid:
		return "ERR invalid argument"
	case codeNotInt:
		return command.ErrNotInteger
	case codeLimit:
		return "ERR " + in.m.man.Name + ": the module has as many as it may have"
	case codeContext:
		return "ERR " + in.m.man.Name + ": not allowed in MULTI, in a script or within another plugin's command"
	}
	return in.m.problem(fmt.Sprintf("%s returned %d", in.entered, code))
}

// refill is asked when a guest's fuel has run out. It lets Go schedule, looks
// whether the call may go on, and grants another slice.
func (in *instance) refill(left int64) int64 {
	if left == fuel.DepthExceeded {
		panic(&trap{"calls are nested too deeply"})
	}
	in.spent += in.slice - left // what it owes is spent, too: a bulk instruction is charged at once
	in.slice = 0
	if in.spent < in.first {
		in.slice = in.first - in.spent
		return in.slice
	}
	in.mayGoOn()
	return in.grant()
}

// used is what the call has cost so far in fuel, that of host functions included.
func (in *instance) used() int64 {
	return in.spent + in.slice - int64(in.fuel.Get()) + in.worked + in.hosted
}

// grant is the next slice of fuel: as much as the manifest leaves, a slice at
// most.
func (in *instance) grant() int64 {
	in.slice = fuel.Slice
	if in.short {
		in.slice = min(in.slice, max(1, in.call.Tx.Allowance()/fuelNanos))
	}
	if limit := in.m.man.Limits.Fuel; limit > 0 && in.call != nil {
		in.slice = min(in.slice, limit-in.spent)
	}
	return in.slice
}

// start is when the call began, but for the slice of fuel before the clock was
// first looked at: most calls end within it, and none pays for a clock.
func (in *instance) start() time.Time {
	if in.began.IsZero() {
		in.began = time.Now()
	}
	return in.began
}

// reason is an error of wazero in the words of the trap behind it, on one line.
func reason(err error) string {
	var t *trap
	if errors.As(err, &t) {
		return t.reason
	}
	text := err.Error()
	for i := 0; i < len(text); i++ {
		if text[i] == '\n' || text[i] == '\r' {
			return text[:i]
		}
	}
	return text
}
