package scripting

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func compiled(t *testing.T, e *Engine, src string) *Script {
	t.Helper()
	s, err := e.Compile([]byte(src))
	if err != nil {
		t.Fatalf("Compile(%q): %v", src, err)
	}
	return s
}

func TestCacheOrder(t *testing.T) {
	e := newEngine(t, Options{CacheScripts: 4})
	c := e.Cache()
	script := func(n int) *Script { return compiled(t, e, fmt.Sprintf("return %d", n)) }
	have := func(want ...int) {
		t.Helper()
		var got []int
		for n := range 20 {
			if c.Has(script(n).SHA) {
				got = append(got, n)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("cached are %v, want %v", got, want)
		}
	}
	c.Add(script(0), true)
	c.Add(script(1), false)
	c.Add(script(2), true)
	c.Add(script(3), false)
	c.Get(script(1).SHA) // now 3 is the EVAL source used longest ago
	c.Add(script(4), false)
	have(0, 1, 2, 4)
	c.Add(script(5), true)
	have(0, 2, 4, 5) // sources of EVAL leave before loaded ones
	c.Add(script(6), true)
	have(0, 2, 5, 6)
	c.Get(script(0).SHA)
	c.Add(script(7), true) // only loaded ones are left: the oldest use goes
	have(0, 5, 6, 7)
	c.Pin(script(5).SHA)
	c.Pin(script(5).SHA)
	c.Add(script(8), true)
	have(0, 5, 7, 8)
	c.Unpin(script(5).SHA)
	c.Pin(script(9).SHA) // not there yet
	c.Add(script(9), false)
	c.Add(script(10), true)
	c.Add(script(11), false)
	have(5, 9, 10, 11)
	c.Pin(script(10).SHA) // more than half of the cache is not pinned
	c.Add(script(12), true)
	c.Add(script(13), true)
	have(5, 9, 12, 13)
	c.Unpin(script(5).SHA)
	c.Unpin(script(9).SHA)
	c.Unpin(script(10).SHA)
	if got := c.Stats(); got.Scripts != 4 || got.Evicted != 10 {
		t.Errorf("Stats are %+v, want 4 scripts and 10 evicted", got)
	}
	c.Flush()
	have()
	if got := c.Stats().Bytes; got != 0 {
		t.Errorf("an empty cache holds %d bytes", got)
	}
	if len(c.pins) != 0 || c.pinned.Len() != 0 || c.pinnedBytes != 0 {
		t.Errorf("after the last Unpin: %d pins, %d pinned scripts of %d bytes", len(c.pins), c.pinned.Len(), c.pinnedBytes)
	}
}

// TestCacheKeepsOneThatIsNamed: however small the cache is, one script that a queued
// command names stays in it.
func TestCacheKeepsOneThatIsNamed(t *testing.T) {
	for name, o := range map[string]Options{"one entry": {CacheScripts: 1}, "three entries": {CacheScripts: 3}, "few bytes": {CacheBytes: 1500}} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, o)
			c := e.Cache()
			named, other := compiled(t, e, "return 'named'"), compiled(t, e, "return 'other'")
			c.Add(named, false)
			c.Pin(named.SHA)
			for n := range 10 {
				c.Add(compiled(t, e, fmt.Sprintf("return %d", n)), true)
			}
			if !c.Has(named.SHA) {
				t.Error("the script that is named has left")
			}
			c.Unpin(named.SHA)
			for n := range 10 {
				c.Add(compiled(t, e, fmt.Sprintf("return %d", n)), true)
			}
			if kept, _ := c.Add(other, true); !kept || c.Has(named.SHA) {
				t.Error("the script stays when nobody names it any more")
			}
		})
	}
}

func TestCacheBytes(t *testing.T) {
	e := newEngine(t, Options{CacheBytes: 100_000})
	c := e.Cache()
	for n := range 50 {
		c.Add(compiled(t, e, fmt.Sprintf("--%s\nreturn %d", strings.Repeat("x", 500), n)), n%2 == 0)
		if got := c.Stats().Bytes; got > 100_000 {
			t.Fatalf("after %d scripts the cache holds %d bytes, its bound is 100000", n, got)
		}
	}
	big := compiled(t, e, "--"+strings.Repeat("x", 100_000))
	c.Add(big, true)
	if c.Has(big.SHA) || c.Stats().Scripts == 0 {
		t.Error("a script larger than the cache pushed the others out")
	}
}

func TestConcurrentRuns(t *testing.T) {
	e := newEngine(t, Options{CacheScripts: 8})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			store := newFakeStore()
			for i := range 200 {
				src := fmt.Sprintf("KEYS.x = %d return KEYS.x + #ARGV", g*1000+i)
				if i%2 == 0 {
					src = fmt.Sprintf("return {%d, KEYS[1] .. ARGV[2]}", i)
				}
				s, err := e.Compile([]byte(src))
				if err != nil {
					t.Error(err)
					return
				}
				e.Cache().Add(s, i%3 == 0)
				want := fmt.Sprintf(":%d\r\n", g*1000+i+2)
				if i%2 == 0 {
					want = fmt.Sprintf("*2\r\n:%d\r\n$4\r\nk1a2\r\n", i)
				}
				if got := eval(e, store, src, Limits{}); got != want {
					t.Errorf("%s\n got %q\nwant %q", src, got, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestShebang(t *testing.T) {
	e := newEngine(t, Options{})
	for _, c := range []struct {
		src   string
		flags Flags
		err   string
	}{
		{"return 1", 0, ""},
		{"\xef\xbb\xbfreturn 1", 0, ""},
		{"#!lua\nreturn 1", HasShebang, ""},
		{"#!lua flags=no-writes\nreturn 1", HasShebang | NoWrites, ""},
		{
			"#!lua flags=no-writes,allow-oom,allow-stale,no-cluster,allow-cross-slot-keys\nreturn 1",
			HasShebang | NoWrites | AllowOOM | AllowStale | NoCluster | AllowCrossSlotKeys, "",
		},
		{"#!lua name=x\nreturn 1", 0, "ERR Unknown lua shebang option: name=x"},
		{"#!lua flags=what\nreturn 1", 0, "ERR Unexpected flag in script shebang: what"},
		{"#!python\nreturn 1", 0, "ERR Unexpected engine in script shebang: #!python"},
		{"#!lua", 0, "ERR Invalid script shebang"},
		{"#!wasm\n", 0, "ERR Engine 'wasm' is reserved: load WASM with MODULE LOAD"},
		{"#!\nreturn 1", 0, "ERR Unexpected engine in script shebang: #!"},
	} {
		s, err := e.Compile([]byte(c.src))
		switch {
		case c.err != "":
			if err == nil || err.Error() != c.err {
				t.Errorf("Compile(%q) says %v, want %q", c.src, err, c.err)
			}
		case err != nil:
			t.Errorf("Compile(%q): %v", c.src, err)
		case s.Flags != c.flags:
			t.Errorf("Compile(%q) has flags %b, want %b", c.src, s.Flags, c.flags)
		}
	}
	// Lines count as in the source.
	if got := eval(e, newFakeStore(), "#!lua\nerror('x')", Limits{}); !strings.Contains(got, "user_script:2: x") {
		t.Errorf("an error on the second line says %q", got)
	}
}

func TestRESP3Values(t *testing.T) {
	e := newEngine(t, Options{})
	for _, c := range []struct{ name, src, want string }{
		{"map", `return redis.call('HGETALL', 'h').map.f`, "$1\r\nv\r\n"},
		{"no map", `redis.setresp(2) return redis.call('HGETALL', 'h')`, "*2\r\n$1\r\nf\r\n$1\r\nv\r\n"},
		{"null", `return tostring(redis.call('GET', 'none'))`, "$3\r\nnil\r\n"},
		{"no null", `redis.setresp(2) return tostring(redis.call('GET', 'none'))`, "$5\r\nfalse\r\n"},
		{"null in an array", `local r = redis.call('MGET', 'none', 'x', 'none') return {type(r[1]), r[2], type(r[3])}`, "*3\r\n$3\r\nnil\r\n$1\r\n1\r\n$3\r\nnil\r\n"},
		{"true", `return true`, ":1\r\n"},
		{"false", `return false`, ":0\r\n"},
		{"double", `return {double = 1.5}`, "$3\r\n1.5\r\n"},
	} {
		store := newFakeStore()
		store.hashes["h"] = [][2]string{{"f", "v"}}
		store.strings["x"] = "1"
		if got := eval(e, store, "redis.setresp(3) "+c.src, Limits{}); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A script that sessions have at hand is used without the cache's lock.
func TestCacheSecondChance(t *testing.T) {
	e := newEngine(t, Options{CacheScripts: 3})
	c := e.Cache()
	add := func(src string) *Script {
		s, err := e.Compile([]byte(src))
		if err != nil {
			t.Fatal(err)
		}
		c.Add(s, false)
		return s
	}
	first := add("return 0")
	if !first.InCache() {
		t.Fatal("a script that was added is not in the cache")
	}
	for i := 1; i <= 10; i++ {
		add("return " + strconv.Itoa(i))
		if !first.InCache() || !c.Has(first.SHA) {
			t.Fatalf("after %d more scripts one in use is gone", i)
		}
	}
	for i := 11; i <= 20 && first.cached.Load(); i++ {
		add("return " + strconv.Itoa(i))
	}
	if first.InCache() || c.Has(first.SHA) {
		t.Error("a script that nobody uses any more stays")
	}
	c.Add(first, true)
	if !first.InCache() {
		t.Error("a script that came back is not in the cache")
	}
	c.Flush()
	if first.InCache() {
		t.Error("a script is in the cache after a flush")
	}
}
