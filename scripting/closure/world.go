package closure

import (
	"errors"
	"log/slog"

	"github.com/latchkey-proxy/latchkey/scripting/lib"
	"github.com/latchkey-proxy/latchkey/scripting/value"
)

const readOnlyTable = "Attempt to modify a readonly table"

// Options are what the libraries of a World say of their surroundings.
type Options struct {
	// Version is redis.REDIS_VERSION, Number redis.REDIS_VERSION_NUM.
	Version string
	Number  int
	// Clock is os.clock, in seconds.
	Clock func() float64
	// Logs tells whether anybody wants a line of redis.log at a level.
	Logs func(slog.Level) bool
}

// World is the libraries. They never change, so that any number of machines share them.
type World struct {
	opts    Options
	globals map[string]Value // but KEYS and ARGV
	args    bool             // KEYS and ARGV are there
	loads   bool             // it is the world of a library's body
	// functions is what functions of libraries see, loading what the body of a library sees.
	functions, loading *World
	// elsewhere has the globals that only the virtual machine has, and what to
	// call them as the reason why a script is not covered.
	elsewhere map[string]string

	stringTable Value
	stringMeta  Value
	// what compiled code does without a call
	call, pcall, next, pairsStep, ipairsStep Value
}

// Elsewhere are the globals that this engine leaves to the virtual machine.
var Elsewhere = []string{"_G", "coroutine", "load", "loadstring"}

// NewWorld makes the libraries.
func NewWorld(o Options) *World {
	w := &World{opts: o, globals: map[string]Value{}, elsewhere: map[string]string{}, args: true}
	for _, name := range Elsewhere {
		w.elsewhere[name] = name
	}
	for name, fn := range baseLibrary {
		w.globals[name] = native(fn)
	}
	w.next = w.globals["next"]
	w.pairsStep = native(baseNext)
	w.ipairsStep = native(ipairsStep)
	w.globals["_VERSION"] = value.String("Lua 5.1")
	w.stringTable = w.open("string", stringLibrary, nil)
	w.stringTable.AsTable().SetStr("gfind", w.stringTable.AsTable().GetStr("gmatch"))
	w.open("table", tableLibrary, nil)
	maths := w.open("math", mathLibrary(), mathValues).AsTable()
	maths.SetStr("mod", maths.GetStr("fmod"))
	w.open("os", osLibrary, nil)
	w.call, w.pcall = native(redisCall), native(redisPCall)
	api := w.redisTable()
	api.SetStr("call", w.call)
	api.SetStr("pcall", w.pcall)
	for _, l := range lib.Libraries {
		w.globals[l.Name] = readOnly(hosted(l))
	}
	w.globals["cjson"] = readOnly(w.jsonTable())
	meta := value.NewTable(0, 1)
	meta.SetStr("__index", w.stringTable)
	w.stringMeta = readOnly(meta)
	for name, v := range w.globals {
		if v.IsTable() {
			lib.Arrange(name, v.AsTable())
		}
	}
	w.openLibraries()
	return w
}

// Globals are the names that scripts find, for a comparison with the other engine's.
func (w *World) Globals() map[string][]string {
	out := map[string][]string{}
	for name, v := range w.globals {
		out[name] = nil
		if v.IsTable() {
			t := v.AsTable()
			for at, k, _ := t.NextAt(0); !k.IsNil(); at, k, _ = t.NextAt(at) {
				out[name] = append(out[name], k.AsString())
			}
		}
	}
	return out
}

func native(fn Native) Value { return (&Function{native: fn}).value() }

func readOnly(t *Table) Value {
	t.ReadOnly = true
	return value.FromTable(t)
}

func (w *World) open(name string, functions map[string]Native, values map[string]Value) Value {
	t := value.NewTable(0, len(functions)+len(values))
	for name, fn := range functions {
		t.SetStr(name, native(fn))
	}
	for name, v := range values {
		t.SetStr(name, v)
	}
	w.globals[name] = readOnly(t)
	return w.globals[name]
}

// hosted makes a table of a library that works on values, for every engine.
func hosted(l lib.Library) *Table {
	t := value.NewTable(0, len(l.Funcs)+len(l.Texts)+len(l.Values))
	for name, fn := range l.Funcs {
		t.SetStr(name, native(func(m *Machine, args []Value) []Value { return m.host(fn, args) }))
	}
	for name, text := range l.Texts {
		t.SetStr(name, value.String(text))
	}
	for name, v := range l.Values {
		t.SetStr(name, v)
	}
	return t
}

// host calls a function of package lib.
func (m *Machine) host(fn lib.Func, args []Value) []Value {
	c := &m.hosted
	c.Account = &m.Account
	c.Args = append(c.Args[:0], args...)
	c.Results = c.Results[:0]
	if err := fn(c); err != nil {
		m.raiseHosted(err)
	}
	if m.Stop != nil {
		m.Ended()
	}
	m.rets = append(m.rets[:0], c.Results...)
	c.Forget()
	return m.rets
}

func (m *Machine) raiseHosted(err error) {
	var e *lib.Error
	switch {
	case m.Stop != nil:
		m.Ended()
	case !errors.As(err, &e):
		m.raise(1, err.Error())
	case e.IsArg:
		m.argError(e.Arg, e.Text)
	case e.Bare:
		m.raise(0, e.Text)
	}
	m.raise(1, e.Text)
}

// jsonTable is cjson, whose functions work with the settings of the machine that
// runs them: each run begins with new ones.
func (w *World) jsonTable() *Table {
	defaults := lib.Defaults()
	l := lib.CJSON(&defaults)
	funcs := map[string]lib.Func{}
	t := hosted(lib.Library{Texts: l.Texts, Values: l.Values})
	for name := range l.Funcs {
		funcs[name] = nil
		t.SetStr(name, native(func(m *Machine, args []Value) []Value {
			if m.json == nil {
				m.settings = lib.Defaults()
				m.json = lib.CJSON(&m.settings).Funcs
			}
			return m.host(m.json[name], args)
		}))
	}
	t.SetStr("new", native(newJSON))
	return t
}

// newJSON is cjson.new: a table of the script's own, with settings of its own.
func newJSON(m *Machine, _ []Value) []Value {
	m.alloc(8 << 10)
	settings := lib.Defaults()
	t := hosted(lib.CJSON(&settings))
	t.SetStr("new", native(newJSON))
	lib.Arrange("cjson", t)
	t.Account = &m.Account
	return m.ret1(value.FromTable(t))
}
