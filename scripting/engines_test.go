package scripting

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store/command"
	"github.com/latchkey-proxy/latchkey/store/underrace"
)

// generator writes random Lua programs out of a series of choices. They end by
// themselves, and avoid what the virtual machine is known to get wrong: the length
// and the order of tables with holes or other keys.
type generator struct {
	choices []byte
	b       strings.Builder
	depth   int
	locals  []string
	funcs   []string
	fresh   int
	dots    bool // inside a function with varargs
	loops   int
	zero    string // the body of a function that each result of arithmetic passes through, "" for none
}

func (p *generator) pick(n int) int {
	if len(p.choices) == 0 {
		return 0
	}
	c := p.choices[0]
	p.choices = p.choices[1:]
	return int(c) % n
}

func (p *generator) f(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

func (p *generator) name(prefix string) string {
	p.fresh++
	return fmt.Sprintf("%s%d", prefix, p.fresh)
}

func generate(choices []byte, zero string) string {
	p := &generator{choices: choices, zero: zero}
	p.filter()
	p.program()
	return p.b.String()
}

// filter declares what arithmetic passes the results of.
func (p *generator) filter() {
	if p.zero != "" {
		p.f("local function zero(v) %s return v end\n", p.zero)
	}
}

// arithmetic writes an operation whose result may be a zero with a sign.
func (p *generator) arithmetic(operation string) string {
	if p.zero != "" {
		return "zero(" + operation + ")"
	}
	return "(" + operation + ")"
}

func (p *generator) program() {
	p.f("local r = {}\n")
	p.block(1 + p.pick(8))
	p.f("return {%s, %s, #r}\n", p.expr(), p.expr())
}

// generateLibrary writes a library whose functions share what its body has made.
func generateLibrary(choices []byte, zero string) string {
	p := &generator{choices: choices, zero: zero}
	p.f("#!lua name=generated\n")
	p.filter()
	p.f("local r, n, t = {}, 1, {x = 1}\n")
	p.f("local function add(a) n = n + 1 t[n] = a return n end\n")
	p.f("local function make(a) return function(b) a = a or b return a, b end end\n")
	p.f("local made = make(n)\n")
	p.locals, p.funcs = []string{"n", "t", "made"}, []string{"add", "made"}
	if p.pick(3) == 0 { // most of what it may say is not there while the body runs
		p.block(p.pick(3))
	}
	for _, name := range []string{"f", "g"} {
		p.f("redis.register_function('%s', function(KEYS, ARGV)\n", name)
		locals, funcs := len(p.locals), len(p.funcs)
		p.program()
		p.locals, p.funcs = p.locals[:locals], p.funcs[:funcs]
		p.f("end)\n")
	}
	return p.b.String()
}

func (p *generator) block(n int) {
	locals, funcs := len(p.locals), len(p.funcs)
	for range n {
		p.stmt()
	}
	p.locals, p.funcs = p.locals[:locals], p.funcs[:funcs]
}

func (p *generator) stmt() {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > 5 || len(p.choices) == 0 {
		p.f("r[#r + 1] = %s\n", p.expr())
		return
	}
	switch p.pick(19) {
	case 0, 1:
		e := p.expr()
		n := p.name("v")
		p.f("local %s = %s\n", n, e)
		p.locals = append(p.locals, n)
	case 2:
		e, g := p.expr(), p.exprs(1+p.pick(2))
		a, b := p.name("v"), p.name("v")
		p.f("local %s, %s = %s, %s\n", a, b, e, g)
		p.locals = append(p.locals, a, b)
	case 3:
		if v := p.local(); v != "" {
			p.f("%s = %s\n", v, p.expr())
		}
	case 4:
		v, w := p.local(), p.local()
		if v != "" && v != w {
			p.f("%s, %s = %s, %s\n", v, w, p.expr(), p.expr())
		}
	case 5:
		p.f("if %s then\n", p.expr())
		p.block(1 + p.pick(3))
		if p.pick(2) == 0 {
			p.f("elseif %s then\n", p.expr())
			p.block(1 + p.pick(2))
		}
		if p.pick(2) == 0 {
			p.f("else\n")
			p.block(1 + p.pick(2))
		}
		p.f("end\n")
	case 6:
		i := p.name("i")
		p.f("for %s = %d, %d, %d do\n", i, p.pick(9), p.pick(9), 1+p.pick(3))
		p.loop(i)
		p.f("end\n")
	case 7:
		i := p.name("i")
		p.f("local %s = 0 while %s < %d do %s = %s + 1\n", i, i, p.pick(6), i, i)
		p.loop()
		p.f("end\n")
	case 8:
		i := p.name("i")
		p.f("local %s = 0 repeat %s = %s + 1\n", i, i, i)
		p.loop()
		p.f("until %s > %d\n", i, p.pick(5))
	case 9:
		k, v := p.name("k"), p.name("v")
		p.f("for %s, %s in ipairs({%s}) do\n", k, v, p.exprs(p.pick(4)))
		p.loop(k, v)
		p.f("end\n")
	case 10, 11:
		p.function()
	case 12:
		p.f("r[#r + 1] = tostring(%s)\n", p.scalar())
	case 13:
		p.f("r[#r + 1] = select('#', %s)\n", p.exprs(1+p.pick(3)))
	case 14:
		p.f("r[#r + 1] = {pcall(function() %s = %s end)}\n", orElse(p.local(), "r.x"), p.expr())
	case 15:
		p.f("redis.call('set', %s, %s)\n", p.text(), p.scalar())
	case 16:
		p.f("r[#r + 1] = redis.%s('%s', %s)\n", []string{"call", "pcall"}[p.pick(2)], []string{"get", "incr", "echo", "nosuch", "del"}[p.pick(5)], p.text())
	case 17:
		if v := p.local(); v != "" {
			// No holes: v may be another name of r, whose length is looked at.
			p.f("do local k, v = %s, %s if type(v) == 'table' and not (type(k) == 'number' and k >= 1) then v[k] = %s end end\n", p.expr(), v, p.expr())
		}
	case 18:
		p.f("do\n")
		p.block(1 + p.pick(3))
		p.f("end\n")
	}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (p *generator) loop(vars ...string) {
	n := len(p.locals)
	p.locals = append(p.locals, vars...)
	p.loops++
	p.block(1 + p.pick(3))
	if p.pick(4) == 0 {
		p.f("if %s then break end\n", p.expr())
	}
	p.loops--
	p.locals = p.locals[:n]
}

func (p *generator) function() {
	name := p.name("f")
	locals, dots := len(p.locals), p.dots
	params := []string{p.name("a"), p.name("a")}[:p.pick(3)]
	p.dots = p.pick(3) == 0
	list := strings.Join(params, ", ")
	if p.dots {
		list = strings.TrimPrefix(list+", ...", ", ")
	}
	p.f("local function %s(%s)\n", name, list)
	p.locals = append(p.locals, params...)
	p.block(p.pick(3))
	p.f("return %s\nend\n", p.exprs(1+p.pick(3)))
	p.locals, p.dots = p.locals[:locals], dots
	p.funcs = append(p.funcs, name)
}

func (p *generator) local() string {
	if len(p.locals) == 0 {
		return ""
	}
	return p.locals[p.pick(len(p.locals))]
}

func (p *generator) exprs(n int) string {
	list := make([]string, max(n, 1))
	for i := range list {
		list[i] = p.expr()
	}
	return strings.Join(list, ", ")
}

var literals = []string{"0", "1", "-1", "2", "0.5", "1e15", "'x'", "'10'", "' 3 '", "'0x10'", "''", "nil", "true", "false", "1/0", "100"}

func (p *generator) text() string {
	return []string{"'k1'", "KEYS[1]", "ARGV[2]", "'x' .. " + p.number(), "tostring(" + p.scalar() + ")"}[p.pick(5)]
}

func (p *generator) number() string {
	return []string{"1", "2", "7", "0.25", "-3", "#r", "#KEYS", "tonumber('12')", "math.floor(2.5)"}[p.pick(9)]
}

// scalar is an expression that is no table and no function, whose address would show.
func (p *generator) scalar() string {
	switch p.pick(5) {
	case 0:
		return literals[p.pick(len(literals))]
	case 1:
		return p.arithmetic(p.number() + []string{" + ", " - ", " * ", " / ", " % ", " ^ "}[p.pick(6)] + p.number())
	case 2:
		return "type(" + p.expr() + ")"
	case 3:
		return "(" + p.text() + ")"
	}
	return p.number() + []string{" < ", " <= ", " == ", " ~= "}[p.pick(4)] + p.number()
}

func (p *generator) expr() string {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > 7 || len(p.choices) == 0 {
		return literals[p.pick(len(literals))]
	}
	switch p.pick(24) {
	case 0, 1, 2:
		return literals[p.pick(len(literals))]
	case 3, 4, 5, 6:
		return orElse(p.local(), "r")
	case 7, 8:
		return p.arithmetic(p.expr() + []string{" + ", " - ", " * ", " / ", " % ", " ^ "}[p.pick(6)] + p.expr())
	case 9:
		return "(" + p.expr() + " .. " + p.expr() + ")"
	case 10:
		return "(" + p.expr() + []string{" < ", " <= ", " > ", " >= ", " == ", " ~= "}[p.pick(6)] + p.expr() + ")"
	case 11:
		return "(" + p.expr() + " and " + p.expr() + ")"
	case 12:
		return "(" + p.expr() + " or " + p.expr() + ")"
	case 13:
		return "(not " + p.expr() + ")"
	case 14:
		return "{" + p.scalar() + ", " + p.scalar() + ", x = " + p.expr() + "}"
	case 15:
		return "(" + p.expr() + ")[" + p.expr() + "]"
	case 16:
		if len(p.funcs) > 0 {
			return p.funcs[p.pick(len(p.funcs))] + "(" + p.exprs(1+p.pick(2)) + ")"
		}
		return "#" + p.text()
	case 17:
		n := p.locals
		e := "function(a) return " + p.expr() + ", a end"
		p.locals = n
		return "(" + e + ")(" + p.expr() + ")"
	case 18:
		if p.dots {
			return []string{"...", "(...)", "select('#', ...)", "select(-1, nil, ...)"}[p.pick(4)]
		}
		return p.arithmetic("-" + p.number())
	case 19:
		return fmt.Sprintf("(%s):%s(%s)", p.text(), []string{"sub", "rep", "byte", "find", "upper", "len"}[p.pick(6)], p.number())
	case 20:
		return "pcall(" + []string{"tostring", "error", "type", "string.rep", "tonumber"}[p.pick(5)] + ", " + p.scalar() + ")"
	case 21:
		return "setmetatable({" + p.scalar() + "}, {__index = function(t, k) return " + p.scalar() + " end, __add = function(a, b) return " +
			p.scalar() + " end, __call = function(self, a) return a end, __concat = function() return 'cat' end})"
	case 22:
		return []string{"KEYS[1]", "ARGV[1]", "#ARGV", "KEYS[9]", "math.max(1, 2)", "unpack({1, 2, 3})", "table.concat({1, 2, 'x'}, ',')", "string.format('%5.1f|%s', 2.25, 'x')"}[p.pick(8)]
	}
	return "redis.call('get', " + p.text() + ")"
}

// recorder notes what a script asked its store for.
type recorder struct {
	*fakeStore
	said bytes.Buffer
}

func (r *recorder) Call(argv [][]byte, out command.Reply) error {
	fmt.Fprintf(&r.said, "%q\n", argv)
	return r.fakeStore.Call(argv, out)
}

// outcome on one engine: how it ended, and what it said and did.
type ran struct{ class, reply, said string }

func runOn(e *Engine, src string) ran {
	r := &recorder{fakeStore: newFakeStore()}
	inv := &Invocation{
		Caller: r, Limits: Limits{Instructions: 1_000_000, Memory: 64 << 20, Time: 20 * time.Second},
		Keys: [][]byte{[]byte("k1"), []byte("k2")}, Args: [][]byte{[]byte("a1"), []byte("17")},
	}
	w := &respWriter{}
	var run func() error
	if strings.HasPrefix(src, "#!lua name=") {
		lib, err := e.NewLibrary([]byte(src), &Invocation{Limits: inv.Limits}, LibraryBounds{Libraries: 1, Functions: 8, Bytes: 1 << 20})
		if err != nil {
			return ran{class: "refused", reply: err.Error()}
		}
		run = func() error {
			if err := e.Call(lib.Functions[0], inv, w); err != nil {
				return err
			}
			return e.Call(lib.Functions[1], inv, w) // on what the first has left
		}
	} else {
		s, err := e.Compile([]byte(src))
		if err != nil {
			return ran{class: "refused", reply: err.Error()}
		}
		run = func() error { return e.Run(s, inv, w) }
	}
	class := "returned"
	if err := run(); err != nil {
		class = err.Error()
		var f *Failure
		if errors.As(err, &f) {
			class = fmt.Sprint("failure ", f.Kind)
			w.f("-%s\r\n", f.Reply)
		}
	}
	return ran{class, string(w.b), r.said.String()}
}

// The machine loses the sign of a zero, which a script sees as text, as an infinity, or as another way taken. These
// take the sign away in both engines, and spin where there is one.
const (
	unsigned = "if v == 0 then return 0 end"
	spinning = "if v == 0 and 1 / v < 0 then while true do end end"
)

// sameOnBoth compares the engines on what write makes. The texts of errors are the second engine's to have right; the
// virtual machine's are compared where the corpus has them.
func sameOnBoth(t *testing.T, vm, second *Engine, write func(zero string) string) {
	t.Helper()
	a, b := runOn(vm, write("")), runOn(second, write(""))
	if agree(a, b) {
		return
	}
	// Only if there is such a zero, and nothing but its sign makes the difference.
	if was := runOn(second, write(spinning)); was.class == "failure 3" || was.class == "refused" && b.class != "refused" {
		if agree(runOn(vm, write(unsigned)), runOn(second, write(unsigned))) {
			return
		}
	}
	t.Errorf("the engines differ on\n%s\nvm      %+v\nclosures %+v", write(""), a, b)
}

func agree(a, b ran) bool {
	if a.class == "failure 3" && b.class == a.class {
		return true // each counts instructions in its own way
	}
	if a.class != "returned" && a.class != "failure 2" {
		a.reply, b.reply = "", ""
	}
	return a == b
}

func bothEngines(t testing.TB) (vm, second *Engine) {
	return newEngine(t, Options{VMOnly: true}), newEngine(t, Options{})
}

func TestEnginesAgree(t *testing.T) {
	vm, second := bothEngines(t)
	r := rand.New(rand.NewPCG(7, 7))
	for range underrace.Fewer(2000, 10) {
		choices := make([]byte, 20+r.IntN(300))
		for i := range choices {
			choices[i] = byte(r.Uint32())
		}
		sameOnBoth(t, vm, second, func(zero string) string { return generate(choices, zero) })
		sameOnBoth(t, vm, second, func(zero string) string { return generateLibrary(choices, zero) })
		if t.Failed() {
			return
		}
	}
}

// FuzzEngines generates programs and compares the engines.
func FuzzEngines(f *testing.F) {
	f.Add([]byte("a program of some length, to begin with, 0123456789"))
	vm, second := bothEngines(f)
	f.Fuzz(func(t *testing.T, choices []byte) {
		if len(choices) > 2000 {
			return
		}
		sameOnBoth(t, vm, second, func(zero string) string { return generate(choices, zero) })
		sameOnBoth(t, vm, second, func(zero string) string { return generateLibrary(choices, zero) })
	})
}
