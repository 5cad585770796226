package plugins

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/latchkey-proxy/latchkey/plugins/fuel"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// fuelSlice is what an instance may spend before the host is asked again: some
// milliseconds, so that Go can schedule and collect in between.
const fuelSlice = 4 << 20

// instance is one instance of a module with a linear memory of its own. It runs
// one call at a time. It is also the context.Context of its guest's calls,
// which is how a host function finds it without a look-up.
type instance struct {
	context.Context
	m        *module
	guest    api.Module
	mem      api.Memory
	fuel     api.MutableGlobal
	command  api.Function
	arenaFn  api.Function
	stack    []uint64
	arena    uint32
	arenaLen uint32
	frame    []byte

	// Of the call that is bound; call is nil in between.
	call     *command.Call
	declared []command.Position
	open     []int // of each reply that is open, how many are still to come in it
	failed   string
	began    time.Time
	kills    int64 // the module's count when the call began
	slice    int64 // fuel granted last
	spent    int64 // fuel of the slices before it
	hosted   int64 // what host functions cost since the clock was last looked at
	written  int64 // bytes of values written
	replied  int64 // bytes of the reply
	counted  int64 // of m.memory
	logged   int   // lines written to the log
}

// trap ends a guest's call from within a host function.
type trap struct{ reason string }

func (t *trap) Error() string { return t.reason }

// instantiate makes an instance and lets it initialise itself.
func (m *module) instantiate() (in *instance, err error) {
	in = &instance{Context: context.Background(), m: m, began: time.Now(), stack: make([]uint64, 8)}
	guest, err := m.host.runtime.InstantiateModule(in, m.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, fmt.Errorf("the module cannot be instantiated: %s", reason(err))
	}
	in.guest, in.mem = guest, guest.Memory()
	in.command, in.arenaFn = guest.ExportedFunction("lk_command"), guest.ExportedFunction("lk_arena")
	in.fuel, _ = guest.ExportedGlobal(fuel.GlobalName).(api.MutableGlobal)
	defer func() {
		if err != nil {
			guest.Close(in)
		}
	}()
	if in.fuel == nil {
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

// take returns an instance that is ready, makes one, or waits for one.
//
// Whoever waits here holds the keys of its call. It cannot wait in a circle:
// an instance is taken after all keys of a call are held, the guest never waits
// for another key or instance, and it is ended when its time is up. So every
// holder of an instance goes on, whoever waits for its keys.
func (m *module) take(c *command.Call) (*instance, error) {
	select {
	case in := <-m.ready:
		return in, nil
	default:
	}
	select {
	case in := <-m.ready:
		return in, nil
	case m.slots <- struct{}{}:
		return m.fill()
	default:
	}
	// All instances are in use, each for MaxTime at most; others wait for the
	// keys of this call, so it does not wait for longer.
	timer := time.NewTimer(time.Duration(m.host.maxTime.Load()))
	defer timer.Stop()
	select {
	case in := <-m.ready:
		return in, nil
	case m.slots <- struct{}{}: // an instance trapped and left its place
		return m.fill()
	case <-done(c):
		return nil, errors.New("the client is gone")
	case <-timer.C:
		return nil, fmt.Errorf("all %d instances are busy", cap(m.slots))
	}
}

// fill makes an instance in a slot that was just taken.
func (m *module) fill() (*instance, error) {
	in, err := m.instantiate()
	if err != nil {
		<-m.slots
	}
	return in, err
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
	in.count(int64(in.mem.Size()))
	m.mu.Lock()
	closed := m.closed
	if !closed {
		// Under the lock, lest close has emptied ready before. It has room for
		// all instances there can be.
		m.ready <- in
	}
	m.mu.Unlock()
	if closed {
		m.discard(in)
	}
}

// discard ends an instance whose memory cannot be trusted any more.
func (m *module) discard(in *instance) {
	in.count(0)
	in.close()
	<-m.slots
}

// count brings the module's account of linear memory up to date.
func (in *instance) count(size int64) {
	if size != in.counted {
		in.m.memory.Add(size - in.counted)
		in.counted = size
	}
}

// run is the handler of a plugin command.
func (m *module) run(c *command.Call, id int32) {
	kills, ok := m.enter()
	if !ok {
		m.gone(c)
		return
	}
	defer m.leave()
	m.calls.Add(1)
	in, err := m.take(c)
	if err != nil {
		m.errors.Add(1)
		c.Err("PLUGINERR " + m.man.Name + ": " + err.Error())
		return
	}
	mark := c.Reply.Mark()
	if err := in.run(c, id, kills); err != nil {
		m.traps.Add(1)
		m.discard(in)
		m.host.opt.Log.Warn("a plugin command was undone and its instance replaced", "module", m.man.Name, "command", c.Spec.Name, "reason", err.Error())
		c.Reply.Rewind(mark)
		c.Err("PLUGINERR " + m.man.Name + ": " + err.Error())
		return
	}
	failed, complete := in.failed, in.complete()
	in.unbind()
	m.give(in)
	switch {
	case failed != "":
		m.errors.Add(1)
		c.Reply.Rewind(mark)
		c.Err(failed)
	case !complete:
		m.errors.Add(1)
		c.Reply.Rewind(mark)
		c.Err("PLUGINERR " + m.man.Name + ": the reply is not complete")
	}
}

// gone answers a call whose Spec was looked up before its module was unloaded or
// reloaded: queued by MULTI, or on its way. A module that was reloaded runs it, if
// the keys that were locked for it are still those it needs.
func (m *module) gone(c *command.Call) {
	now := c.E.Table.Lookup([]byte(c.Spec.Name))
	if now == nil || now == c.Spec || now.ModuleName() != m.man.Name {
		c.Err("PLUGINERR " + m.man.Name + ": the module was unloaded")
		return
	}
	_, problem := now.Resolve(c.Args)
	switch {
	case problem == "" && slices.Equal(now.Keys, c.Spec.Keys):
		c.Spec = now
		now.Handler(c)
	default:
		c.Err("PLUGINERR " + m.man.Name + ": the module was reloaded meanwhile, and the command takes other arguments now; send it again")
	}
}

// run calls the guest. An error means that the instance must go.
func (in *instance) run(c *command.Call, id int32, kills int64) error {
	in.call, in.failed = c, ""
	in.open = append(in.open[:0], 1)
	in.spent, in.hosted, in.written, in.replied, in.logged = 0, 0, 0, 0, 0
	in.began = time.Now()
	in.kills = kills
	var err error
	if in.declared, err = c.Spec.AppendKeys(in.declared[:0], c.Args); err != nil {
		in.failed = command.ErrSyntax
		return nil
	}
	in.fuel.Set(uint64(in.grant()))
	if err := in.writeFrame(c.Args); err != nil {
		return err
	}
	in.stack[0], in.stack[1], in.stack[2] = uint64(uint32(id)), uint64(len(c.Args)), uint64(in.arena)
	if err := in.command.CallWithStack(in, in.stack); err != nil {
		return errors.New(reason(err))
	}
	if code := int32(in.stack[0]); code != 0 && in.failed == "" {
		in.failed = in.codeText(code)
	}
	return nil
}

func (in *instance) unbind() {
	in.call = nil
	in.failed = ""
	if cap(in.frame) > 64<<10 {
		in.frame = nil
	}
}

// codeText is the error reply for what lk_command returned.
func (in *instance) codeText(code int32) string {
	switch code {
	case codeWrongType:
		return command.ErrWrongType
	case codeDenied:
		return "NOPERM " + in.m.man.Name + ": the key was not declared by the command or is not granted to the module"
	case codeOOM:
		return command.ErrOOM
	case codeInvalid:
		return "ERR invalid argument"
	}
	return fmt.Sprintf("PLUGINERR %s: lk_command returned %d", in.m.man.Name, code)
}

// The frame in front of a command's arguments:
//
//	offset  0       4       8          12        16            16+8i
//	        argc    nkeys   first_key  reserved  ptr0 len0 ... ptr_i len_i ...
//
// then the bytes of all arguments, one after the other.
const frameHead = 16

func (in *instance) writeFrame(args [][]byte) error {
	size := frameHead + 8*len(args)
	for _, a := range args {
		size += len(a)
	}
	if size > 1<<30 {
		return errors.New("the arguments are larger than a guest's memory may be")
	}
	if uint32(size) > in.arenaLen {
		in.stack[0] = uint64(max(size, 4096))
		if err := in.arenaFn.CallWithStack(in, in.stack); err != nil {
			return errors.New("lk_arena: " + reason(err))
		}
		at := uint32(in.stack[0])
		if at == 0 || at%8 != 0 || uint64(at)+uint64(max(size, 4096)) > uint64(in.mem.Size()) {
			return fmt.Errorf("lk_arena(%d) returned %d: no room for the arguments", max(size, 4096), at)
		}
		in.arena, in.arenaLen = at, uint32(max(size, 4096))
	}
	b := append(in.frame[:0], make([]byte, frameHead)...)
	binary.LittleEndian.PutUint32(b, uint32(len(args)))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(in.declared)))
	if len(in.declared) > 0 {
		binary.LittleEndian.PutUint32(b[8:], uint32(in.declared[0].Index))
	}
	at := in.arena + uint32(frameHead+8*len(args))
	for _, a := range args {
		b = binary.LittleEndian.AppendUint32(b, at)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(a)))
		at += uint32(len(a))
	}
	for _, a := range args {
		b = append(b, a...)
	}
	in.frame = b
	if !in.mem.Write(in.arena, b) {
		return errors.New("the room that lk_arena gave is not in memory")
	}
	return nil
}

// refill is asked when a guest's fuel has run out. It lets Go schedule, looks
// whether the call may go on, and grants another slice.
func (in *instance) refill(left int64) int64 {
	if left == fuel.DepthExceeded {
		panic(&trap{"calls are nested too deeply"})
	}
	in.spent += in.slice
	in.mayGoOn()
	return in.grant()
}

// grant is the next slice of fuel: as much as the manifest leaves, a slice at
// most.
func (in *instance) grant() int64 {
	in.slice = fuelSlice
	if limit := in.m.man.Limits.Fuel; limit > 0 && in.call != nil {
		in.slice = min(in.slice, limit-in.spent)
	}
	return in.slice
}

// mayGoOn ends a call that has run for too long, or that nobody waits for.
func (in *instance) mayGoOn() {
	in.hosted = 0
	runtime.Gosched()
	if limit := in.m.man.Limits.Fuel; limit > 0 && in.call != nil && in.spent >= limit {
		panic(&trap{fmt.Sprintf("out of fuel: more than the %d units of its manifest", limit)})
	}
	if limit := time.Duration(in.m.host.maxTime.Load()); time.Since(in.began) > limit {
		panic(&trap{fmt.Sprintf("ran for longer than plugin-max-time, %v", limit)})
	}
	if in.call != nil {
		if in.m.kills.Load() != in.kills {
			panic(&trap{"killed by MODULE KILL"})
		}
		select {
		case <-done(in.call):
			panic(&trap{"the client was killed or is gone"})
		default:
		}
	}
}

// charge counts what a host function does, in units of fuel, so that a guest
// which does little but call them is asked as often as one that computes. It
// costs the guest no fuel of its manifest.
func (in *instance) charge(units int64) {
	if in.hosted += units; in.hosted >= fuelSlice {
		in.mayGoOn()
	}
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
