package plugins_test

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/scripting"
	"github.com/latchkey-proxy/latchkey/store/underrace"
)

// attack is one module of the hostile corpus: how it is made, and what must
// become of it. Whatever it does, the checks of run hold.
type attack struct {
	name string

	// guest is the module, unless file makes one. What lk_command does begins with
	// a write, which must be undone, unless it is idle.
	guest guest
	idle  bool
	// file makes the bytes of the module's file, its manifest included.
	file func() []byte

	// refused stands in the error of MODULE LOAD; "": the module is loaded.
	refused string
	// want stands in the error that each command is answered with; "": anything,
	// also that it succeeds, so long as nothing is written.
	want string
	// commands are those sent one after the other, "H.RUN k" if there are none. %d
	// stands for the number of the command, which the guest then has.
	commands []string
	// maxTime is plugin-max-time; default a minute, which is never reached.
	maxTime time.Duration
	// heap is how much the heap may grow meanwhile; default 256 MiB.
	heap uint64
	// kept: the instance goes on to serve. It was not the guest that failed.
	kept bool
	// traps is how many calls of lk_timer or lk_event must end in a trap before the
	// module may go.
	traps int64
	// scene, if it is set, is what clients do instead of sending commands; it returns
	// the reply that is looked at.
	scene func(t *testing.T, b *bench) string
	// dead: not even H.CALLS can be called.
	dead bool
}

// corpus is all of it, by subject.
func corpus() []attack {
	return slices.Concat(loops(), memories(), replies(), shapes(), malformed(), pointers(), exports(), wakes(), deliveries(), reentrant(), manifests())
}

// TestCorpus counts the modules, and that no two are of one name.
func TestCorpus(t *testing.T) {
	const least = 100
	all := corpus()
	names := make(map[string]bool)
	for _, a := range all {
		if names[a.name] {
			t.Errorf("two modules of the corpus are named %q", a.name)
		}
		names[a.name] = true
	}
	if len(names) < least {
		t.Errorf("the hostile corpus has %d modules, want %d at least", len(names), least)
	}
}

// Bounds that hold for each module of the corpus. They are wide, for machines
// that do other things; without the bound they are for, it would take minutes and
// gigabytes.
const (
	loadTime  = underrace.Slow * 30 * time.Second
	callTime  = underrace.Slow * 30 * time.Second
	replyTime = underrace.Slow * 10 * time.Second // to another client, meanwhile
	heapRoom  = 256 << 20                         // for the heap while it is loaded and runs
	heapLeft  = 24 << 20                          // of it when the module is gone
)

// attackAll tries modules one after the other: what they take of the heap is
// measured.
func attackAll(t *testing.T, list []attack) {
	for _, a := range underrace.Sample(list, 3) {
		t.Run(strings.ReplaceAll(a.name, "/", " "), func(t *testing.T) { a.run(t) })
	}
}

func (a attack) run(t *testing.T) {
	if a.maxTime == 0 {
		a.maxTime = time.Minute
	}
	if a.heap == 0 {
		a.heap = heapRoom
	}
	path := a.build(t)
	runtime.GC()
	heap := watchHeap(t)

	b := newBench(t, plugins.Options{MaxTime: a.maxTime})
	addEval(t, b)
	b.want("+OK", "MODULE", "LOAD", cad("wat"))
	for _, key := range []string{"other", "r:1", "theirs"} {
		b.want("+OK", "SET", key, "before "+key)
	}
	before, commands := b.dump(), len(b.eng.Table.All())

	var loaded string
	a.beside(t, b, "MODULE LOAD", loadTime, func() { loaded = b.do("MODULE", "LOAD", path) })
	if a.refused != "" {
		if !strings.HasPrefix(loaded, "-ERR Error loading the extension: ") || !strings.Contains(loaded, a.refused) {
			t.Errorf("MODULE LOAD replied %q, want an error with %q", clip(loaded), a.refused)
		}
		if n, m := len(b.eng.Table.All())-commands, len(b.host.List()); n != 0 || m != 1 {
			t.Errorf("a module that was refused left %d commands behind, and %d modules are loaded, want 1", n, m)
		}
	} else if loaded != "+OK" {
		t.Fatalf("MODULE LOAD replied %q", clip(loaded))
	} else {
		a.attack(t, b)
		a.awaitTraps(t, b)
	}
	if after := b.dump(); after != before {
		t.Errorf("what is stored has changed from %q to %q", clip(before), clip(after))
	}
	if a.refused == "" {
		b.want("+OK", "MODULE", "UNLOAD", "h")
	}
	// The module beside it is as it was.
	b.want("+OK", "SET", "theirs", "mine")
	b.want(":1", "CAD.WASM", "theirs", "mine")
	b.host.Close()
	heap.check(a.heap)
}

// attack has the loaded module do what it can.
func (a attack) attack(t *testing.T, b *bench) {
	if a.scene != nil {
		var got string
		a.beside(t, b, a.name, callTime+a.maxTime%time.Minute, func() { got = a.scene(t, b.another(t)) })
		if !strings.Contains(got, a.want) || strings.Contains(got, "internal error") || strings.Contains(got, "wazero)") {
			t.Errorf("the client got %q, want %q", clip(got), a.want)
		}
		return
	}
	if a.commands == nil {
		a.commands = []string{"H.RUN k"}
	}
	for _, line := range a.commands {
		records := len(b.log.Records())
		var got string
		a.beside(t, b, line, callTime+a.maxTime%time.Minute, func() { got = b.do(strings.Fields(line)...) })
		if a.want != "" && (!strings.HasPrefix(got, "-") || !strings.Contains(got, a.want) || strings.Contains(got, "\n")) {
			t.Errorf("%s replied %q, want an error with %q", line, clip(got), a.want)
		}
		if strings.Contains(got, "wazero)") || strings.Contains(got, "runtime error") || strings.Contains(got, "internal error") {
			t.Errorf("%s replied %q: the host panicked", line, clip(got))
		}
		if left := b.log.Records()[records:]; len(left) != 0 && strings.HasPrefix(line, "H.") {
			t.Errorf("%s left the effects %q behind", line, clip(strings.Join(left, " ")))
		}
		switch got := b.calls(); {
		case a.dead:
		case a.kept && got == ":1", !a.kept && a.want != "" && got != ":1", !strings.HasPrefix(got, ":"):
			t.Errorf("after %s, H.CALLS replied %q; whether the instance is kept is %v", line, clip(got), a.kept)
		}
	}
}

// calls asks the module. What runs in its instance without a client may have been given it just before, and a wait
// for it be over first: then it is asked again, until that must have ended.
func (b *bench) calls() (got string) {
	for until := time.Now().Add(callTime); ; {
		if got = b.do("H.CALLS"); !strings.Contains(got, "instances are busy") || time.Now().After(until) {
			return got
		}
	}
}

// awaitTraps waits until so many calls that no client waits for have trapped.
func (a attack) awaitTraps(t *testing.T, b *bench) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		n := int64(-1)
		for _, m := range b.host.List() {
			if m.Name == "h" {
				n = m.Traps
			}
		}
		if n >= a.traps {
			return
		}
		if time.Since(began) > callTime {
			t.Fatalf("%d calls have trapped after %v, want %d", n, callTime, a.traps)
		}
	}
}

// beside does something while another client sends commands, those of a good
// module among them, and checks that neither takes too long.
func (a attack) beside(t *testing.T, b *bench, what string, limit time.Duration, do func()) {
	t.Helper()
	began, done := time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	victim := b.another(t)
	for ended := false; !ended; {
		sent := time.Now()
		victim.want("$13\r\nbefore theirs", "GET", "theirs")
		victim.want(":0", "CAD.WASM", "theirs", "not this")
		if took := time.Since(sent); took > replyTime {
			t.Errorf("beside %s two commands of another client took %v, want less than %v", what, took, replyTime)
		}
		select {
		case <-done:
			ended = true
		case <-time.After(5 * time.Millisecond):
		}
	}
	if took := time.Since(began); took > limit {
		t.Errorf("%s took %v, want less than %v", what, took, limit)
	}
}

func (a attack) build(t *testing.T) string {
	if a.file == nil {
		if !a.idle {
			a.guest.body = write + a.guest.body
		}
		return a.guest.build(t)
	}
	path := filepath.Join(t.TempDir(), "h.wasm")
	if err := os.WriteFile(path, a.file(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// addEval gives the bench EVAL.
func addEval(t testing.TB, b *bench) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	engine, err := scripting.New(scripting.Options{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.eng.Table.Add("", scripting.NewRunner(engine, scripting.Settings{}, 2, log).Specs()); err != nil {
		t.Fatal(err)
	}
}

// dump is all that is stored, in words.
func (b *bench) dump() string {
	var keys []string
	for i, field := range strings.Split(b.do("KEYS", "*"), "\r\n") {
		if i > 0 && i%2 == 0 {
			keys = append(keys, field)
		}
	}
	slices.Sort(keys)
	var out strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&out, "%s=%s %s\n", k, b.do("GET", k), b.do("PTTL", k))
	}
	return out.String()
}

// heapWatch looks at the size of the heap every few milliseconds.
type heapWatch struct {
	t     testing.TB
	began uint64
	most  atomic.Uint64
	stop  chan struct{}
	ended chan struct{}
}

func watchHeap(t testing.TB) *heapWatch {
	w := &heapWatch{t: t, began: heapBytes(), stop: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for {
			w.most.Store(max(w.most.Load(), heapBytes()))
			select {
			case <-w.stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(w.end)
	return w
}

func (w *heapWatch) end() {
	select {
	case <-w.stop:
	default:
		close(w.stop)
		<-w.ended
	}
}

// check ends the watch: the heap grew by no more than room, and shrinks again.
func (w *heapWatch) check(room uint64) {
	w.t.Helper()
	w.end()
	if most := w.most.Load(); most > w.began+room {
		w.t.Errorf("the heap grew from %d to %d MiB, want %d MiB more at most", w.began>>20, most>>20, room>>20)
	}
	runtime.GC()
	runtime.GC() // what has a finalizer goes with the second
	if now := heapBytes(); now > w.began+heapLeft {
		w.t.Errorf("%d MiB of heap are left of %d in the beginning", now>>20, w.began>>20)
	}
}

func heapBytes() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
