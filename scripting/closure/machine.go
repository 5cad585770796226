package closure

import (
	"fmt"
	"log/slog"
	"strconv"
	"unsafe"

	"github.com/latchkey-proxy/latchkey/scripting/arith"
	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/scripting/lib"
	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/scripting/value"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// Value is one Lua value.
type Value = value.Value

// Table is one Lua table.
type Table = value.Table

// Bounds of what nests.
const (
	// callWeight bounds the Go stack of a script: the closures of all waiting
	// functions, each as deep as its source nests, a few hundred bytes apiece,
	// are no more than this for each call that may wait. Functions that nest
	// deeper overflow before they are that many.
	callWeight = 12
	// maxStack is how many values may be on their way to functions, the arguments
	// of those that wait included.
	maxStack = 1 << 19
	// maxNative bounds calls that a library function or a metamethod makes, as
	// Lua's LUAI_MAXCCALLS.
	maxNative = 200

	// keptFrames and keptStack are what a machine keeps between runs.
	keptFrames = 64
	keptStack  = 1024
	// retireAfter is how many instructions a run may take before its machine is
	// not used again.
	retireAfter = 1 << 16
)

// Native is a library function. Its results are valid until the machine runs
// anything else, and so are the arguments after it has called back.
type Native func(m *Machine, args []Value) []Value

// Function is what a function value points to.
type Function struct {
	proto  *proto
	native Native
	ups    []Value
}

// value makes a Lua value of a function.
func (fn *Function) value() Value { return value.Func(unsafe.Pointer(fn)) }

func functionOf(v Value) *Function { return (*Function)(v.Pointer()) }

// cell is a variable that functions share and someone assigns.
type cell struct{ v Value }

func newCell(v Value) Value { return value.Cell(unsafe.Pointer(&cell{v})) }

func cellOf(v Value) *cell { return (*cell)(v.Pointer()) }

const (
	cellBytes     = 16
	functionBytes = 64
)

// proto is a compiled function.
type proto struct {
	params   int
	slots    int
	vararg   bool
	plain    bool // neither varargs nor parameters in cells
	needsArg bool // the table arg of Lua 5.0, which is in slot params
	cells    []int
	captures []capture
	body     stmt
	value    expr // of a body that is nothing but the return of a value; otherwise nil
	cost     int  // of one call, about as many instructions as the virtual machine takes
	weight   int  // closures that nest
	line     int
	later    *proto // what a function becomes once the body of its library has ended
}

// capture says where a new function finds one of its upvalues.
type capture struct {
	local bool // a slot of the function around it, otherwise an upvalue of that
	index int
}

// site is a place that calls.
type site struct {
	line int
	name operand
}

// frame is a function at work.
type frame struct {
	m       *Machine
	slots   []Value
	varargs []Value
	fn      *Function // nil stands for a library function that calls back
	site    *site     // of the last call
	tails   int       // functions that ended with a call of this one
	extra   []Value   // holds varargs between calls
}

// Machine runs programs, one at a time.
type Machine struct {
	budget.Account
	world    *World
	frames   []*frame
	depth    int
	native   int     // nested calls of library functions and metamethods
	calls    int     // how many functions may wait for each other
	nesting  int     // how deep tables may nest in replies
	weight   int     // closures of the functions that wait
	heaviest int     // how much that may be
	stack    []Value // arguments on their way
	rets     []Value // what the last function returned
	one      Value   // the same, if it is one value

	tail     Value
	tailBase int

	keys, argv *Table
	// tables says that the run has KEYS and ARGV as tables, otherwise as args.
	tables bool
	args   arguments
	// own says that keys and argv were handed to a script that may have kept or
	// changed them.
	own     bool
	in      *Input
	chunk   string // what messages call the source
	resp    int
	random  arith.Random
	garbage budget.Collector
	reply   reply
	words   words
	hosted  lib.Call
	format  formatArguments
	finder  text.Matcher
	// settings and json are those of the table cjson, once a run has used it.
	settings lib.Settings
	json     map[string]lib.Func
	// loading is set while the body of a library runs.
	loading *loading
}

// Caller runs one command for a script, as in package scripting.
type Caller interface {
	Call(argv [][]byte, r command.Reply) error
}

// Place is a place of a script that calls a command by a literal name: its address
// stands for the name.
type Place struct{ _ byte }

// Placer is a Caller that may know by the place which command is called.
type Placer interface {
	CallAt(at *Place, argv [][]byte, r command.Reply) error
}

// Input is what one run works on.
type Input struct {
	Terms      *budget.Terms
	Keys, Args [][]byte
	Caller     Caller
	Placer     Placer // called where the place is known; nil: Caller is
	Fence      func() (int64, error)
	CheckACL   func(argv [][]byte) (allowed, known bool)
	Log        func(level slog.Level, text string)
}

// NewMachine makes a machine for programs of w.
func NewMachine(w *World) *Machine {
	m := &Machine{world: w, stack: make([]Value, 0, 64), rets: make([]Value, 0, 16)}
	m.Idle()
	m.keys, m.argv = value.NewTable(0, 0), value.NewTable(0, 0)
	m.reply.m, m.format.m = m, m
	m.finder.Failer, m.finder.Account = m, &m.Account
	return m
}

// Error is how a script ended otherwise than by returning a plain result.
type Error struct {
	// Returned is set for an error reply that the script returned.
	Returned bool
	// Broken is set for a failure of the engine itself.
	Broken bool
	// Text is the reply, its code included, without the trailer.
	Text string
	// Told is set when the error is a command's reply, which was counted when the
	// command gave it.
	Told bool
	// Source and Line say where an uncaught error was raised; Source is "" when
	// that is not known.
	Source, Line string
}

func (e *Error) Error() string { return e.Text }

// Run runs p and describes its result to out. It returns nil, or an *Error, or
// the reason why the account was closed; then nothing was described.
// The machine may be used again when reusable.
func (m *Machine) Run(p *Program, in *Input, out command.Reply) (reusable bool, err error) {
	m.begin(in, scriptChunk)
	mark := out.Mark()
	err = m.protected(p, out)
	return m.finish(mark, err, out)
}

// finish closes the account of a run.
func (m *Machine) finish(mark int, err error, out command.Reply) (reusable bool, _ error) {
	m.End()
	if err != nil {
		out.Rewind(mark)
		return false, err
	}
	return m.reusable(), nil
}

// begin makes the machine ready for a run.
func (m *Machine) begin(in *Input, chunk string) {
	m.Begin(in.Terms)
	m.calls, m.nesting = in.Terms.Limits.Calls(), in.Terms.Limits.Tables()
	m.heaviest = m.calls * callWeight
	if len(m.frames) > m.calls { // as many as there may be
		clear(m.frames[m.calls:])
		m.frames = m.frames[:m.calls]
	}
	m.in, m.chunk, m.resp, m.random = in, chunk, 2, arith.Random{}
	m.garbage = budget.Collector{}
	m.json, m.args.bound = nil, 0
	m.depth, m.native, m.weight = 0, 0, 0
	m.stack = m.stack[:0]
}

// bind makes KEYS and ARGV, if the script uses them as tables; they escape when it
// could keep or change them.
func (m *Machine) bind(tables, escape bool) {
	if m.tables = tables; !tables {
		return
	}
	if escape || m.own {
		m.keys, m.argv = value.NewTable(0, 0), value.NewTable(0, 0)
	}
	m.own = escape
	m.keys.Account, m.argv.Account = &m.Account, &m.Account
	m.list(m.keys, m.in.Keys)
	m.list(m.argv, m.in.Args)
	if m.Due() {
		m.look()
	}
}

// list makes t the array of words and nothing else; t has an array part only.
func (m *Machine) list(t *Table, words [][]byte) {
	t.Resize(value.ArraySize(len(words)))
	have := t.Slots()
	for i, w := range words {
		// A hot lock comes again and again with the same words.
		if old := have[i]; old.IsString() && old.AsString() == string(w) {
			continue
		}
		m.Mem += int64(32 + len(w))
		have[i] = value.String(string(w))
	}
	if len(have) > value.ArraySize(len(words)) {
		t.Shrink(value.ArraySize(len(words)))
		have = t.Slots()
	}
	clear(have[len(words):])
	t.Filled(len(words))
}

// reusable says whether the machine may be kept.
func (m *Machine) reusable() bool {
	return m.Used() < retireAfter && !m.Heavy() && len(m.frames) <= keptFrames && cap(m.stack) <= keptStack && cap(m.rets) <= keptStack
}

// Rest drops what the runs referred to. A machine that is idle for long rests before;
// between two runs it need not.
func (m *Machine) Rest() {
	m.in, m.json = nil, nil
	m.format.args = nil
	m.finder.Renew("", "")
	m.words.forget()
	m.args.forget()
	if len(m.keys.Slots()) > keptStack || len(m.argv.Slots()) > keptStack {
		m.own, m.keys, m.argv = true, nil, nil // the next run gets others
	}
	m.reply.reset()
}

// protected runs the main chunk and describes its result.
func (m *Machine) protected(p *Program, out command.Reply) (err error) {
	returned := false
	defer m.caught(&returned, &err)
	m.bind(p.tables, p.argsEscape)
	f := m.open(&p.main)
	f.varargs = nil
	err = m.answer(m.run(f), out)
	returned = true
	return err
}

// caught, deferred, makes an error of what unwinds the script, unless it has returned.
func (m *Machine) caught(returned *bool, err *error) {
	if *returned { // to ask the runtime takes longer
		return
	}
	if r := recover(); r != nil {
		*err = m.failure(r)
	}
}

// failure turns what unwound the script into Run's error.
func (m *Machine) failure(p any) error {
	if m.Stop != nil {
		return m.Stop
	}
	e, ok := p.(*raised)
	if !ok {
		if text, ok := command.TooLarge(p); ok {
			return &Error{Text: text}
		}
		return &Error{Broken: true, Text: fmt.Sprint("ERR internal error: ", p)}
	}
	reply, told := "ERR nil", false
	switch v := e.v; v.Kind() {
	case value.KindTable:
		if t := v.AsTable(); t.Meta != nil || t.ReadOnly {
			return m.uncaught(e, t)
		}
		reply = unknownError
		if s, ok := textOf(v.AsTable().GetStr("err")); ok {
			reply, told = s, v.AsTable().GetStr(toldField).Truthy()
		}
	case value.KindNil:
	default:
		reply = "ERR " + plainText(v)
	}
	return &Error{Text: text.CString(reply), Told: told, Source: e.source, Line: strconv.Itoa(e.line)}
}

// Stopped says where the last run was when its account ended it; source is ""
// when that is not known.
func (m *Machine) Stopped() (source string, line int) {
	for i := m.depth - 1; i >= 0; i-- {
		if f := m.frames[i]; f.fn != nil && f.site != nil {
			return "@" + m.chunk, f.site.line
		}
	}
	return "", 0
}

// lookAt is look in a loop at a line.
func (m *Machine) lookAt(line int) {
	if !m.Check() {
		m.at(line)
		panic(budget.Ended{})
	}
}

// pay charges n instructions, and ends the script when they are not there.
func (m *Machine) pay(n int) {
	if m.Left -= n; m.Left <= 0 {
		m.look()
	}
}

func (m *Machine) look() {
	if !m.Check() {
		panic(budget.Ended{})
	}
}

// alloc charges n bytes before they are taken.
func (m *Machine) alloc(n int) { m.MustAlloc(n) }

// push makes a frame for a function. open has the same written out.
func (m *Machine) push(fn *Function, weight int) *frame {
	weight += m.weight
	if m.depth >= len(m.frames) || weight > m.heaviest {
		m.deeper(weight)
	}
	m.weight = weight
	f := m.frames[m.depth]
	m.depth++
	f.fn, f.tails, f.site = fn, 0, nil
	return f
}

// deeper makes another frame, or ends the script if it may have none of that weight.
func (m *Machine) deeper(weight int) {
	if m.depth >= m.calls || weight > m.heaviest {
		m.overflow()
	}
	m.frames = append(m.frames, &frame{m: m})
	m.Mem += 128
}

func (m *Machine) overflow() {
	if m.depth > 0 {
		if f := m.frames[m.depth-1]; f.fn != nil {
			line := max(f.fn.proto.line, 1)
			if f.site != nil {
				line = f.site.line
			}
			m.throw(line, "stack overflow")
		}
	}
	m.raise(0, "stack overflow")
}

// resize makes n slots.
func (f *frame) resize(n int) {
	if cap(f.slots) < n {
		f.slots = make([]Value, n, n+4)
		f.m.Mem += int64(16 * n)
	}
	f.slots = f.slots[:n]
}

// load puts the arguments where a function expects them.
func (f *frame) load(p *proto, args []Value) {
	if len(f.slots) != p.slots {
		f.resize(p.slots)
	}
	n := copy(f.slots[:p.params], args)
	clear(f.slots[n:p.params])
	if p.vararg {
		if extra := len(args) - n; extra > cap(f.extra) {
			f.m.alloc(16 * extra)
		}
		f.extra = append(f.extra[:0], args[n:]...)
		f.varargs = f.extra
		if p.slots > p.params && p.hasArg() {
			f.slots[p.params] = value.Nil
			if p.needsArg {
				f.slots[p.params] = f.m.argTable(f.varargs)
			}
		}
	}
	for _, i := range p.cells {
		f.slots[i] = newCell(f.slots[i])
	}
}

// hasArg says that the function has the local arg, which the main chunk has not.
func (p *proto) hasArg() bool { return p.line > 0 }

func (m *Machine) argTable(values []Value) Value {
	t := value.New(&m.Account, len(values), 1)
	for i, v := range values {
		t.SetInt(i+1, v)
	}
	t.SetStr("n", value.Int(len(values)))
	return value.FromTable(t)
}

// open makes the frame of a plain function or a main chunk for run. Its caller
// stores the arguments.
func (m *Machine) open(fn *Function) *frame {
	p := fn.proto
	weight := m.weight + p.weight
	if m.depth >= len(m.frames) || weight > m.heaviest {
		m.deeper(weight)
	}
	m.weight = weight
	f := m.frames[m.depth]
	m.depth++
	f.fn, f.tails, f.site = fn, 0, nil
	if m.Left -= p.cost; m.Left <= 0 {
		m.look()
	}
	if len(f.slots) != p.slots {
		f.resize(p.slots)
	}
	return f
}

// run runs the function that open made a frame for. It returns the first of its results.
func (m *Machine) run(f *frame) Value {
	p := f.fn.proto
	if p.value != nil {
		v := p.value(f)
		m.weight -= p.weight
		m.depth--
		return v
	}
	sig := p.body(f)
	if sig == sigValue {
		m.weight -= p.weight
		m.depth--
		return m.one
	}
	return first(m.after(f, p, sig))
}

// enter runs a Lua function, and what it ends with a call of.
func (m *Machine) enter(fn *Function, args []Value) []Value {
	p := fn.proto
	f := m.push(fn, p.weight)
	if m.Left -= p.cost; m.Left <= 0 {
		m.look()
	}
	f.load(p, args)
	return m.after(f, p, p.body(f))
}

// after is the results of a function whose body has ended with sig; if that is by a
// call, it runs what is called.
func (m *Machine) after(f *frame, p *proto, sig signal) []Value {
	for {
		m.weight -= p.weight
		switch sig {
		case sigValue:
			m.depth--
			return m.ret1(m.one)
		case sigReturn:
			m.depth--
			return m.rets
		case sigTail:
		default:
			m.depth--
			return nil
		}
		base := m.tailBase // where the arguments stand
		args := m.stack[base:]
		fn := functionOf(m.tail)
		if fn.native != nil {
			res := fn.native(m, args)
			m.stack = m.stack[:base]
			m.depth--
			return res
		}
		p = fn.proto
		f.fn = fn
		f.tails++
		if m.weight += p.weight; m.weight > m.heaviest {
			m.overflow()
		}
		if m.Left -= p.cost; m.Left <= 0 {
			m.look()
		}
		f.load(p, args)
		m.stack = m.stack[:base]
		sig = p.body(f)
	}
}

// call calls a function that is one.
func (m *Machine) call(fn *Function, args []Value) []Value {
	if fn.native != nil {
		if m.Left--; m.Left <= 0 {
			m.look()
		}
		return fn.native(m, args)
	}
	return m.enter(fn, args)
}

// back calls v for a library function or a metamethod, on the Go stack.
// A library function stands between the caller and v, a metamethod does not.
func (m *Machine) back(v Value, library bool, args ...Value) []Value {
	if m.native >= maxNative {
		m.raise(1, "C stack overflow")
	}
	m.native++
	base := len(m.stack)
	m.stack = append(m.stack, args...)
	if !v.IsFunction() {
		h := m.metamethod(v, value.EventCall)
		if !h.IsFunction() {
			level := 1
			if library {
				level = 0
			}
			m.raise(level, "attempt to call a "+typeName(v)+" value")
		}
		m.stack = append(append(m.stack[:base], v), args...)
		v = h
	}
	if library {
		m.push(nil, 1)
	}
	res := m.call(functionOf(v), m.stack[base:])
	if library {
		m.depth--
		m.weight--
	}
	m.stack = m.stack[:base]
	m.native--
	return res
}

// back1 is back for one result.
func (m *Machine) back1(v Value, library bool, args ...Value) Value {
	if res := m.back(v, library, args...); len(res) > 0 {
		return res[0]
	}
	return value.Nil
}

// extend puts a list of values on the stack.
func (m *Machine) extend(values []Value) {
	if n := len(m.stack) + len(values); n > cap(m.stack) {
		if n > maxStack {
			m.overflow()
		}
		m.alloc(32 * n)
	}
	m.Left -= len(values) >> 3
	m.stack = append(m.stack, values...)
}

// ret1 is a result of one value.
func (m *Machine) ret1(v Value) []Value {
	m.rets = append(m.rets[:0], v)
	return m.rets
}

// ret2 is a result of two values.
func (m *Machine) ret2(a, b Value) []Value {
	m.rets = append(m.rets[:0], a, b)
	return m.rets
}
