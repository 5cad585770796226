package scripting

import (
	"testing"

	"github.com/latchkey-proxy/latchkey/store/command"
	"github.com/latchkey-proxy/latchkey/store/underrace"
)

const unlockScript = `if redis.call("get",KEYS[1]) == ARGV[1] then
	return redis.call("del",KEYS[1])
else
	return 0
end`

// lockCaller answers get with the token and del with 1, as a held lock would.
type lockCaller struct{ token []byte }

func (c *lockCaller) Call(argv [][]byte, r command.Reply) error {
	if len(argv[0]) == 3 && argv[0][0] == 'g' {
		r.Bulk(c.token)
	} else {
		r.Int(1)
	}
	return nil
}

// discard is a Reply that takes nothing.
type discard struct{ respWriter }

func (d *discard) Int(int64) {}

func BenchmarkUnlock(b *testing.B) {
	for _, bb := range []struct {
		name string
		opts Options
	}{{"closures", Options{}}, {"vm", Options{VMOnly: true}}} {
		b.Run(bb.name, func(b *testing.B) {
			run := unlocker(b, bb.opts)
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}

// unlocker returns a function that runs the unlock script on a held lock.
func unlocker(t testing.TB, o Options) func() {
	e := newEngine(t, o)
	s, err := e.Compile([]byte(unlockScript))
	if err != nil {
		t.Fatal(err)
	}
	token := []byte("0123456789abcdef0123456789abcdef")
	inv := Invocation{Caller: &lockCaller{token}, Keys: [][]byte{[]byte("lock:orders:42")}, Args: [][]byte{token}, keeps: true}
	out := &discard{}
	return func() {
		if err := e.Run(s, &inv, out); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnlockAllocatesNothing: the script that most clients run takes no memory, as
// a script and as a function.
func TestUnlockAllocatesNothing(t *testing.T) {
	// Under the race detector a sync.Pool drops some of what it is given.
	for name, run := range map[string]func(){"script": unlocker(t, Options{}), "function": functionUnlocker(t, Options{}, "")} {
		if n := testing.AllocsPerRun(1000, run); n >= 1 && !underrace.On {
			t.Errorf("the unlock %s allocates %v times a run, want 0", name, n)
		}
	}
}

// BenchmarkFunction is the unlock script as a function, whose library a state
// keeps, and as one whose library's body runs anew each time.
func BenchmarkFunction(b *testing.B) {
	for engine, vmOnly := range map[string]bool{"vm": true, "closures": false} {
		for kind, last := range map[string]string{
			"frozen": "",
			"anew":   "local n = 0 redis.register_function('count', function() n = n + 1 return n end)",
		} {
			b.Run(engine+"/"+kind, func(b *testing.B) {
				run := functionUnlocker(b, Options{VMOnly: vmOnly}, last)
				b.ReportAllocs()
				for b.Loop() {
					run()
				}
			})
		}
	}
}

// functionUnlocker is unlocker with a function of a library that ends with last.
func functionUnlocker(t testing.TB, o Options, last string) func() {
	e := newEngine(t, o)
	bounds := LibraryBounds{}
	bounds.setDefaults()
	lib, err := e.NewLibrary([]byte(libSource("l", `redis.register_function('unlock', function(keys, args)
		if redis.call("get", keys[1]) == args[1] then
			return redis.call("del", keys[1])
		else
			return 0
		end
	end) `+last)), &Invocation{}, bounds)
	if err != nil {
		t.Fatal(err)
	}
	token := []byte("0123456789abcdef0123456789abcdef")
	inv := Invocation{Caller: &lockCaller{token}, Keys: [][]byte{[]byte("lock:orders:42")}, Args: [][]byte{token}}
	out := &discard{}
	return func() {
		if err := e.Call(lib.Functions[0], &inv, out); err != nil {
			t.Fatal(err)
		}
	}
}

func benchmarkSource(b *testing.B, src string) {
	b.Run("closures", func(b *testing.B) { benchmarkOn(b, newEngine(b, Options{}), src) })
	b.Run("vm", func(b *testing.B) { benchmarkOn(b, newEngine(b, Options{VMOnly: true}), src) })
}

func benchmarkOn(b *testing.B, e *Engine, src string) {
	s, err := e.Compile([]byte(src))
	if err != nil {
		b.Fatal(err)
	}
	out := &discard{}
	caller := &lockCaller{[]byte("token")}
	b.ReportAllocs()
	for b.Loop() {
		inv := Invocation{Caller: caller}
		if err := e.Run(s, &inv, out); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoop10000(b *testing.B) {
	benchmarkSource(b, `local n = 0 for i = 1, 10000 do n = n + i end return n`)
}

func BenchmarkTable10000(b *testing.B) {
	benchmarkSource(b, `local t = {} for i = 1, 10000 do t[#t+1] = i end return #t`)
}

func BenchmarkConcat(b *testing.B) {
	benchmarkSource(b, `local s = 0 for i = 1, 100 do s = #("key:" .. i .. ":x") end return s`)
}

func BenchmarkPCall(b *testing.B) {
	benchmarkSource(b, `for i = 1, 100 do pcall(type, i) end return 0`)
}

func BenchmarkCompileUnlock(b *testing.B) {
	e := newEngine(b, Options{})
	src := []byte(unlockScript)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Compile(src); err != nil {
			b.Fatal(err)
		}
	}
}
