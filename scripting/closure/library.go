package closure

import (
	"maps"

	"github.com/yuin/gopher-lua/ast"

	"github.com/latchkey-proxy/latchkey/scripting/lib"
	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/scripting/value"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// The code of a function library runs in two worlds. While the body runs it sees
// nothing but a redis table that registers functions; the functions see what
// scripts see when they are called later. A function that the body itself calls
// sees the body's world until the body ends. Globals are constants, so every
// function of a library is compiled for both, and turned when the body has ended.

// openLibraries makes the worlds of libraries out of the world of scripts.
func (w *World) openLibraries() {
	functions := *w
	w.functions = &functions
	functions.functions = &functions
	functions.args, functions.globals = false, maps.Clone(w.globals)
	api, scripts := value.NewTable(0, 32), w.globals["redis"].AsTable()
	for at, k, v := scripts.NextAt(0); !k.IsNil(); at, k, v = scripts.NextAt(at) {
		switch k.AsString() {
		case "breakpoint", "debug", "replicate_commands": // EVAL alone has them
		default:
			api.SetStr(k.AsString(), v)
		}
	}
	lib.Arrange(lib.Functions, api)
	functions.globals["redis"] = readOnly(api)

	loading := functions
	loading.loads = true
	api = value.NewTable(0, 8)
	for _, name := range []string{"log", "LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING", "REDIS_VERSION", "REDIS_VERSION_NUM"} {
		api.SetStr(name, scripts.GetStr(name))
	}
	api.SetStr("register_function", native(redisRegisterFunction))
	unknown := value.NewTable(0, 1) // reading what is not there is an error
	unknown.SetStr("__index", native(unknownField))
	api.Meta = readOnly(unknown).AsTable()
	loading.globals = map[string]Value{"redis": readOnly(api)}
	w.loading = &loading
}

func unknownField(m *Machine, args []Value) []Value {
	name, ok := textOf(arg(args, 2))
	if !ok {
		m.raise(1, "Second argument to luaProtectedTableError must be a string or number")
	}
	m.raise(1, "Script attempted to access nonexistent global variable '"+text.CString(name)+"'")
	return nil
}

// CompileLibrary makes a program of the body of a function library, as Compile
// does of a script. Load and Call run it.
func (w *World) CompileLibrary(stmts []ast.Stmt) (p *Program, reason string) {
	c, reason := w.functions.resolve(stmts)
	if c == nil {
		return nil, reason
	}
	c.world, c.called = w.loading, map[*ast.FunctionExpr]*proto{}
	return &Program{main: Function{proto: c.proto(c.fn, stmts)}}, ""
}

// loaded compiles a function that the body of a library makes: for the body, and
// for the time after it.
func (c *compiler) loaded(x *ast.FunctionExpr, slot int) expr {
	p := c.proto(c.funcs[x], x.Stmts)
	world := c.world
	c.world = world.functions
	p.later = c.once(x)
	c.world = world
	makes := c.maker(p, slot)
	return func(f *frame) Value {
		v := makes(f)
		f.m.Mem += 8
		f.m.loading.made = append(f.m.loading.made, functionOf(v))
		return v
	}
}

// once compiles a function; one of a library that is compiled already is taken.
func (c *compiler) once(x *ast.FunctionExpr) *proto {
	p := c.called[x]
	if p == nil {
		p = c.proto(c.funcs[x], x.Stmts)
		if c.called != nil {
			c.called[x] = p
		}
	}
	return p
}

// Loader takes what the body of a library registers.
type Loader struct {
	// Register takes a function, or says what is wrong with it. The callback is
	// for Call, on the same machine.
	Register func(lib.Registration) (problem string)
	// Flag is the flag of a name in lower case, 0 if there is none.
	Flag func(name string) uint8
	// Again says that the library was loaded before: its log lines are known.
	Again bool
}

// loading is a run of a library's body.
type loading struct {
	Loader
	made []*Function
}

// Load runs the body of a library. The error is Run's. The machine may be used
// again when reusable.
func (m *Machine) Load(p *Program, in *Input, l Loader) (reusable bool, err error) {
	m.begin(in, libraryChunk)
	err = m.load(p, l)
	m.End()
	return err == nil && m.reusable(), err
}

func (m *Machine) load(p *Program, l Loader) (err error) {
	returned := false
	defer m.caught(&returned, &err)
	m.Body(p, l)
	returned = true
	return nil
}

// Body runs the body of a library within Call, for whoever looks for a function of
// it. What it makes belongs to the machine, and may be kept for the machine's next runs.
func (m *Machine) Body(p *Program, l Loader) {
	m.loading = &loading{Loader: l}
	m.enter(&p.main, nil)
	if m.Due() {
		m.look()
	}
	for _, fn := range m.loading.made {
		fn.proto = fn.proto.later
	}
	m.loading = nil
}

// Call runs a function of a library with the keys and the arguments of in, as Run
// runs a script. find finds the function, and may run Body for it; its error is
// Call's. plain says that the function only reads the tables of its keys and
// arguments, so that the next call may have the same tables.
func (m *Machine) Call(find func() (Value, error), plain bool, in *Input, out command.Reply) (reusable bool, err error) {
	m.begin(in, libraryChunk)
	mark := out.Mark()
	err = m.protectedCall(find, plain, out)
	return m.finish(mark, err, out)
}

func (m *Machine) protectedCall(find func() (Value, error), plain bool, out command.Reply) (err error) {
	returned := false
	defer m.caught(&returned, &err)
	fn, err := find()
	if err == nil {
		m.bind(true, !plain)
		m.stack = append(m.stack, value.FromTable(m.keys), value.FromTable(m.argv))
		err = m.answer(first(m.call(functionOf(fn), m.stack)), out)
	}
	returned = true
	return err
}

// redisRegisterFunction is redis.register_function, of libraries that are loaded.
func redisRegisterFunction(m *Machine, args []Value) []Value {
	l := m.loading
	if l == nil {
		m.raiseReply("redis.register_function can only be called on FUNCTION LOAD command")
	}
	c := &m.hosted
	c.Account = &m.Account
	c.Args = append(c.Args[:0], args...)
	r, problem := c.ReadRegistration(l.Flag)
	c.Forget()
	if problem == "" {
		problem = l.Register(r)
	}
	if problem != "" {
		m.raiseReply(problem)
	}
	return nil
}
