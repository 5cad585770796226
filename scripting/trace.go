package scripting

import (
	"reflect"
	"slices"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// Tracer is told what scripts do, on their goroutines: `latchkey script check`
// looks at one script with it. Whoever traces pays for it, nobody else.
type Tracer interface {
	// Begin is told of each run. One that begins anew begins again: what was told
	// of the run before did not happen.
	Begin(name string)
	// Step is told of each redis.call and redis.pcall, when it has returned.
	Step(s Step)
}

// Step is one command that a script called.
type Step struct {
	Line  int // of the source, 0 if the engine does not know
	Words []string
	Keys  []StepKey
	// Wrote tells that the command changed something.
	Wrote bool
	Error string // its error reply, or ""
}

// StepKey is a key of a command that a script called.
type StepKey struct {
	DB       int
	Name     string
	Declared bool
}

// SetTracer has t told of every run that begins from now on; it is called before
// the first.
func (r *Runner) SetTracer(t Tracer) { r.tracer = t }

// traced is the Caller of a script that is traced.
type traced struct {
	*scriptCall
	tracer Tracer
	db     int // in which the keys are declared
}

// Call runs the command as scriptCall does, and tells of it.
func (t traced) Call(argv [][]byte, reply command.Reply) error {
	sc, c := t.scriptCall, t.outer
	step := Step{Line: sc.lineNow()}
	for _, a := range argv {
		step.Words = append(step.Words, string(a))
	}
	spec, refusal := sc.resolve(argv)
	if refusal == "" {
		probe := command.Call{E: c.E, S: c.S, Spec: spec, Args: argv, Tx: c.Tx, From: command.FromScript}
		probe.EachKey(func(db int, name []byte) {
			declared := db == t.db && slices.ContainsFunc(sc.Keys, func(k []byte) bool { return string(k) == string(name) })
			step.Keys = append(step.Keys, StepKey{db, string(name), declared})
		})
	}
	before := c.Tx.Effects()
	err := sc.Call(argv, reply)
	if err != nil {
		return err // it runs again, or nobody waits for it
	}
	step.Wrote = c.Tx.Effects() != before
	if step.Error = refusal; refusal == "" {
		step.Error = sc.inner.Failed()
	}
	t.tracer.Step(step)
	return nil
}

// lineNow is the line of the source that is being executed.
func (inv *Invocation) lineNow() int {
	if inv.line == nil {
		return 0
	}
	return inv.line()
}

// lineNow is the line of the function that called the host.
func (st *state) lineNow() int {
	L := st.reply.L
	if L == nil {
		return 0
	}
	for level := 1; level < 3; level++ {
		if dbg, ok := L.GetStack(level); ok {
			if _, err := L.GetInfo("Sl", dbg, nil); err == nil && dbg.CurrentLine > 0 {
				return dbg.CurrentLine
			}
		}
	}
	return 0
}

// Engine is what the script was compiled for: "closures", or "vm" and what of the
// script the faster one does not cover.
func (s *Script) Engine() (name, why string) {
	if s.program.Load() != nil {
		return "closures", ""
	}
	return "vm", s.why
}

// Global is a use of a global name in a source.
type Global struct {
	Name     string
	Line     int
	Known    bool // every script has it
	Assigned bool // which is an error when it is reached
}

// Globals lists the global names that a source uses, each once, or twice if it is
// assigned too, in the order of the source. The error is that of Compile.
func (e *Engine) Globals(src []byte) ([]Global, error) {
	s := &Script{Source: string(src)}
	body, err := s.shebang()
	if err != nil {
		return nil, err
	}
	tree, err := parseChunk(body, scriptChunk)
	if err != nil {
		return nil, err
	}
	st := newState(e, minFrames)
	st.enter(scriptRealm)
	g := &globals{kinds: tree.kinds, seen: map[Global]bool{}, known: func(name string) bool {
		return st.globals.RawGetString(name) != lua.LNil
	}}
	g.walk(reflect.ValueOf(tree.stmts))
	slices.SortStableFunc(g.found, func(a, b Global) int { return a.Line - b.Line })
	return g.found, nil
}

type globals struct {
	kinds map[*ast.IdentExpr]varKind
	known func(name string) bool
	seen  map[Global]bool
	found []Global
}

func (g *globals) note(x *ast.IdentExpr, assigned bool) {
	if g.kinds[x] != varGlobal {
		return
	}
	use := Global{Name: x.Value, Assigned: assigned}
	if !g.seen[use] {
		g.seen[use] = true
		g.found = append(g.found, Global{x.Value, x.Line(), g.known(x.Value), assigned})
	}
}

// walk visits a tree, whose depth the parser has bounded.
func (g *globals) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		g.walk(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			g.walk(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			g.walk(v.Field(i))
		}
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if !v.CanInterface() {
			return
		}
		switch x := v.Interface().(type) {
		case *ast.IdentExpr:
			g.note(x, false)
			return
		case *ast.AssignStmt:
			for _, lhs := range x.Lhs {
				if id, ok := lhs.(*ast.IdentExpr); ok {
					g.note(id, true)
				} else {
					g.walk(reflect.ValueOf(lhs))
				}
			}
			g.walk(reflect.ValueOf(x.Rhs))
			return
		case *ast.FuncDefStmt:
			if id, ok := x.Name.Func.(*ast.IdentExpr); ok {
				g.note(id, true)
			} else {
				g.walk(reflect.ValueOf(x.Name))
			}
			g.walk(reflect.ValueOf(x.Func))
			return
		}
		g.walk(v.Elem())
	}
}
