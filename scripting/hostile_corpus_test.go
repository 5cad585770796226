package scripting

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command/transcript"
	"github.com/latchkey-proxy/latchkey/store/underload"
	"github.com/latchkey-proxy/latchkey/store/underrace"
)

// hostileScript is one script of testdata/hostile.
type hostileScript struct {
	file   string
	line   int
	source string
}

func (h hostileScript) String() string {
	return fmt.Sprintf("%s:%d: %.120s", h.file, h.line, h.source)
}

// readHostile reads testdata/hostile/*.txt: a line that begins with "> " is the
// beginning of a script, "* N text" adds a text in quotes N times, "< text"
// once. "# " is a comment.
func readHostile(t *testing.T) (list []hostileScript) {
	t.Helper()
	files, err := filepath.Glob("testdata/hostile/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in testdata/hostile: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
			mark, rest, _ := strings.Cut(line, " ")
			times := 1
			switch mark {
			case "", "#":
				continue
			case ">":
				list = append(list, hostileScript{filepath.Base(file), i + 1, rest})
				continue
			case "*":
				var n string
				n, rest, _ = strings.Cut(rest, " ")
				if times, err = strconv.Atoi(n); err != nil {
					t.Fatalf("%s:%d: not a number of times: %q", file, i+1, n)
				}
			case "<":
			default:
				t.Fatalf("%s:%d: unknown mark %q", file, i+1, mark)
			}
			words, err := transcript.SplitWords(rest)
			if err != nil || len(words) != 1 || len(list) == 0 {
				t.Fatalf("%s:%d: not one text in quotes below a script: %q", file, i+1, line)
			}
			list[len(list)-1].source += strings.Repeat(words[0], times)
		}
	}
	return list
}

const (
	hostileDeadline = 40 * time.Millisecond
	hostileMemory   = 32 << 20
	// hostileHeap is by how much the heap may grow meanwhile: between two
	// collections the account lets a script allocate four times its limit, and its
	// reply stands in a buffer that doubles.
	hostileHeap = 10 * hostileMemory
	// compileTime is what a source may take that is bounded by its shape, not by
	// the script's deadline.
	compileTime = underrace.Slow * 800 * time.Millisecond
)

// TestHostileCorpus runs each script of testdata/hostile in both engines: it ends
// within twice its deadline, the heap stays under what the account allows, a script
// that was stopped leaves no key, and the next script finds the world as it was.
func TestHostileCorpus(t *testing.T) {
	list := readHostile(t)
	if least := 200; len(list) < least {
		t.Errorf("%d scripts, want at least %d", len(list), least)
	}
	list = underrace.Sample(list, 8)
	world, err := os.ReadFile("testdata/hostile/world.lua")
	if err != nil {
		t.Fatal(err)
	}
	for engine, vmOnly := range map[string]bool{"vm": true, "closures": false} {
		t.Run(engine, func(t *testing.T) {
			for rest := list; len(rest) > 0; {
				n := 1
				for n < len(rest) && rest[n].file == rest[0].file {
					n++
				}
				t.Run(strings.TrimSuffix(rest[0].file, ".txt"), func(t *testing.T) { runHostile(t, rest[:n], string(world), vmOnly) })
				rest = rest[n:]
			}
		})
	}
}

func runHostile(t *testing.T, list []hostileScript, world string, vmOnly bool) {
	r := newRoomOn(t, Settings{}, store.Options{}, Options{Version: "7.0.15", VMOnly: vmOnly})
	c := r.client()
	engine := r.runner.Engine()
	look := func() string { return c.do("EVAL", world, "2", "k1", "k2", "a1", "a2") }
	limit := func(d time.Duration) {
		r.runner.Set(Settings{Limits: Limits{Time: d, Memory: hostileMemory}})
	}
	limit(0)
	want := look()
	if strings.HasPrefix(want, "-") || strings.Contains(want, "poisoned=1") {
		t.Fatalf("a fresh world shows %s", clipText(want))
	}
	fresh := describeWorld(newState(engine, new(Limits).Calls()))
	stopped, looked := 0, 0
	for _, h := range list {
		args := []string{"EVAL", h.source, "2", "k1", "k2", "a1", "a2"}
		// The script's deadline is wall time, of which a loaded machine takes its
		// part: what is too late again and again, with ever longer deadlines, is.
		for try, deadline := 0, hostileDeadline; ; try, deadline = try+1, deadline*3/2 {
			limit(deadline)
			late := underrace.Slow * 2 * deadline
			if h.file == "sources.txt" {
				late += compileTime
				c.do("SCRIPT", "FLUSH")
			}
			grown := watchHeap()
			before, begin := underload.Now(), time.Now()
			reply := c.do(args...)
			took := time.Since(begin)
			late = before.Stretch(late)
			if most := grown(); most > hostileHeap {
				t.Errorf("%s\nthe heap grew by %d MB with a limit of %d", h, most>>20, hostileMemory>>20)
			}
			if reply == "" {
				t.Errorf("%s\nno reply", h)
			}
			ended := strings.HasPrefix(reply, "-ERR Script exceeded")
			limit(0)
			if keys := c.do("KEYS", "*"); ended && keys != "*0\r\n" {
				t.Errorf("%s\nwas stopped and left the keys %s", h, clipText(keys))
			}
			c.do("FLUSHALL")
			if took > late && try < 5 {
				continue
			}
			if took > late {
				t.Errorf("%s\ntook %v, want at most %v; reply %s", h, took, late, clipText(reply))
			}
			if ended {
				stopped++
			}
			break
		}
		if got := look(); got != want {
			t.Errorf("%s\nthe next script sees another world:\n%s", h, worldDifference(got, want))
		}
		if st, _ := engine.states.Get().(*state); st != nil {
			looked++
			if got := describeWorld(st); !slices.Equal(got, fresh) {
				t.Errorf("%s\nleft a state with another world:\n%s", h, worldDifference(strings.Join(got, "\r\n"), strings.Join(fresh, "\r\n")))
			}
			engine.states.Put(st)
		}
	}
	t.Logf("%d scripts, %d of them stopped; %d states looked into", len(list), stopped, looked)
}

// worldDifference shows the first line that two texts do not share.
func worldDifference(got, want string) string {
	a, b := strings.Split(got, "\r\n"), strings.Split(want, "\r\n")
	for i := range max(len(a), len(b)) {
		x, y := "nothing", "nothing"
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return fmt.Sprintf("%d lines, line %d is %q, was %q", len(a), i, clipText(x), clipText(y))
		}
	}
	return "no difference"
}

// watchHeap samples the heap until the function it returns is called, which says
// by how much it grew at most.
func watchHeap() func() int64 {
	runtime.GC()
	before := budget.ReadHeap().Objects
	var most atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	sample := func() { most.Store(max(most.Load(), budget.ReadHeap().Objects-before)) }
	go func() {
		defer close(done)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				sample()
			case <-stop:
				return
			}
		}
	}()
	return func() int64 {
		sample()
		close(stop)
		<-done
		return most.Load()
	}
}

// describeWorld writes down all that a script can reach in a state of the virtual
// machine: tables with their metatables, functions by the code behind them, and
// the metatables of the types that have one for all their values.
func describeWorld(st *state) (lines []string) {
	seen := map[*lua.LTable]string{}
	var walk func(path string, v lua.LValue)
	walk = func(path string, v lua.LValue) {
		switch v := v.(type) {
		case *lua.LTable:
			if first, ok := seen[v]; ok {
				lines = append(lines, path+" is "+first)
				return
			}
			seen[v] = path
			lines = append(lines, path+" is a table")
			if strings.HasSuffix(path, ".string KEYS") || strings.HasSuffix(path, ".string ARGV") {
				return // made for each run
			}
			var keys []string
			values := map[string]lua.LValue{}
			v.ForEach(func(k, e lua.LValue) {
				keys = append(keys, k.Type().String()+" "+k.String())
				values[keys[len(keys)-1]] = e
			})
			slices.Sort(keys)
			for _, k := range keys {
				walk(path+"."+k, values[k])
			}
			walk(path+" metatable", v.Metatable)
		case *lua.LFunction:
			code := fmt.Sprintf("%p", v.Proto)
			if v.IsG {
				code = fmt.Sprintf("%x", reflect.ValueOf(v.GFunction).Pointer())
			}
			lines = append(lines, path+" runs "+code)
			if v.Env != nil && v.Env != st.env {
				walk(path+" environment", v.Env)
			}
		case *lua.LUserData: // its address is nobody's business
			lines = append(lines, path+" is userdata")
			walk(path+" metatable", v.Metatable)
		default:
			lines = append(lines, path+" is "+v.Type().String()+" "+v.String())
		}
	}
	walk("environment", st.env)
	walk("globals", st.globals)
	for _, v := range []lua.LValue{lua.LString(""), lua.LNumber(0), lua.LTrue, lua.LNil, st.pairs, st.L} {
		walk("metatable of "+v.Type().String(), st.L.GetMetatable(v))
	}
	walk("what strings show", st.stringMeta)
	walk("what globals show", st.globalsMeta)
	return lines
}
