package scripting

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/scripting/budget"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// spin starts an endless script that has written to key, and returns where its
// reply will come. It runs long when spin returns.
func (r *room) spin(key string) (reply chan string, name string) {
	const src = "redis.call('set', KEYS[1], 'dirty') while true do end"
	before := r.runner.Long()
	reply = make(chan string, 1)
	go func() { reply <- r.client().do("EVAL", src, "1", key) }()
	for r.runner.Long() == before {
		runtime.Gosched() // until the script itself says that it runs long
	}
	return reply, SumSHA1([]byte(src)).String()
}

func (r *room) counts(name string) Counts {
	r.t.Helper()
	all := r.runner.Tally()
	i := slices.IndexFunc(all, func(c Counts) bool { return c.Name == name })
	if i < 0 {
		return Counts{}
	}
	return all[i]
}

// TestKillEndsAll: SCRIPT KILL ends every script past the threshold, those that
// wait for a permit among them.
func TestKillEndsAll(t *testing.T) {
	r := newRoom(t, Settings{}) // two permits
	var replies []chan string
	name := ""
	for _, key := range []string{"a", "b", "c", "d"} {
		reply, n := r.spin(key)
		replies, name = append(replies, reply), n
	}
	c := r.client()
	c.expect("+OK", "SCRIPT", "KILL")
	for _, reply := range replies {
		if got := <-reply; !strings.HasPrefix(got, "-ERR Script killed by user with SCRIPT KILL...") {
			t.Errorf("a killed script answered %q", got)
		}
	}
	c.expect(":0", "EXISTS", "a", "b", "c", "d")
	if got := r.counts(name); got.Kills != 4 || r.runner.Killed.Load() != 4 {
		t.Errorf("counted %+v and %d kills in all, want 4", got, r.runner.Killed.Load())
	}
	c.expect("-NOTBUSY No scripts in execution right now.", "SCRIPT", "KILL")
	c.expect("$4 free", "EVAL", "local e = os.clock() + 0.01 repeat until os.clock() > e return 'free'", "0") // the permits are back
}

// TestKillEndsWhatIsCalledBusy: whoever is answered -BUSY for a key can kill the
// script that holds it, though that one began to run after its transaction had the
// key, as in a MULTI behind other commands.
func TestKillEndsWhatIsCalledBusy(t *testing.T) {
	const threshold = 50 * time.Millisecond
	born := time.Now()
	var looks atomic.Int64
	slow := func() time.Time { // by which nothing ever reaches the threshold
		return born.Add(min(time.Duration(looks.Add(1))*10*time.Microsecond, threshold/2))
	}
	r := newRoomOn(t, Settings{}, store.Options{}, Options{Version: "7.0.15", Now: slow})
	reply, _ := r.spin("k")
	defer r.runner.Kill(false, "", 0) // if the test fails
	r.engine.Busy.Store(int64(threshold))
	c := r.client()
	c.sess.Wait.Busy = threshold
	c.expect("-"+command.ErrBusyScript, "GET", "k")
	if got := c.do("SCRIPT", "KILL"); got != "+OK\r\n" {
		t.Fatalf("SCRIPT KILL: %q", got)
	}
	if got := <-reply; !strings.HasPrefix(got, "-ERR Script killed by user with SCRIPT KILL...") {
		t.Errorf("the killed script answered %q", got)
	}
	c.expect(":0", "EXISTS", "k")
}

// TestTimeLimitWhileWaiting: script-max-time ends a script that waits for a
// permit too.
func TestTimeLimitWhileWaiting(t *testing.T) {
	r := newRoom(t, Settings{})
	first, _ := r.spin("a")
	second, _ := r.spin("b")
	r.runner.Set(Settings{Limits: Limits{Time: 20 * time.Millisecond}})
	c := r.client()
	got := c.do("EVAL", "redis.call('set', KEYS[1], 'dirty') while true do end", "1", "k")
	if !strings.HasPrefix(got, "-ERR Script exceeded its time limit") {
		t.Errorf("the script that waits answered %q", got)
	}
	c.expect(":0", "EXISTS", "k")
	c.expect("+OK", "SCRIPT", "KILL")
	<-first
	<-second
}

// TestKillTellsFunctionsFromScripts: each command ends its own sort and names the
// other.
func TestKillTellsFunctionsFromScripts(t *testing.T) {
	r := newRoom(t, Settings{})
	reply, name := r.spin("k")
	if killed, others := r.runner.Kill(true, "", 0); killed != 0 || others != 1 {
		t.Errorf("FUNCTION KILL beside a script: %d killed, %d of the other sort; want 0 and 1", killed, others)
	}
	w := &respWriter{}
	r.runner.functionKill(&command.Call{E: r.engine, Reply: w})
	if got := string(w.b); got != "-"+command.ErrBusyScript+"\r\n" {
		t.Errorf("FUNCTION KILL beside a script answers %q", got)
	}
	if killed, _ := r.runner.Kill(false, "another", 0); killed != 0 {
		t.Error("SCRIPT KILL ended a script of another name")
	}
	if killed, _ := r.runner.Kill(false, name, 0); killed != 1 {
		t.Error("SCRIPT KILL did not end the script that it named")
	}
	<-reply
}

// TestRollbacksAreCountedByScript: only where Redis would have kept writes.
func TestRollbacksAreCountedByScript(t *testing.T) {
	r := newRoom(t, Settings{})
	c := r.client()
	clean, dirty, returned := "error('stop')", "redis.call('set', KEYS[1], 1) error('stop')", "redis.call('set', KEYS[1], 1) return redis.error_reply('MY error')"
	undone := "redis.pcall('set', KEYS[1], 1, 'bad') redis.pcall('incr', ARGV[1]) error('stop')"
	c.expect("+OK", "SET", "text", "x")
	for _, src := range []string{clean, dirty, dirty, returned, undone} {
		if got := c.do("EVAL", src, "2", "k", "text", "text"); !strings.HasPrefix(got, "-") {
			t.Errorf("%s answers %q, want an error", src, got)
		}
	}
	for src, want := range map[string]int64{clean: 0, dirty: 2, returned: 0, undone: 0} {
		if got := r.counts(SumSHA1([]byte(src)).String()).Rollbacks; got != want {
			t.Errorf("%s: %d rollbacks counted, want %d", src, got, want)
		}
	}
	if n := r.runner.Rollbacks.Load(); n != 2 {
		t.Errorf("%d rollbacks in all, want 2", n)
	}
	r.runner.ResetTally()
	if got := r.runner.Tally(); len(got) != 0 || r.runner.Rollbacks.Load() != 0 {
		t.Errorf("after ResetTally: %v and %d rollbacks", got, r.runner.Rollbacks.Load())
	}
}

func TestUndeclaredKeysAreCountedByScript(t *testing.T) {
	r := newRoom(t, Settings{})
	const src = "redis.call('set', ARGV[1], 1) return redis.call('incr', ARGV[2])"
	name := SumSHA1([]byte(src)).String()
	c := r.client()
	c.expect(":1", "EVAL", src, "2", "a", "b", "a", "b")
	if got := r.counts(name); got != (Counts{}) {
		t.Errorf("a script that declares its keys is counted: %+v", got)
	}
	c.expect(":1", "EVAL", src, "1", "a", "a", "c")
	c.expect(":1", "EVAL", src, "0", "d", "e")
	if got := r.counts(name); got != (Counts{Name: name, Undeclared: 3}) {
		t.Errorf("counted %+v, want 3 undeclared keys", got)
	}
	// One that is held makes the script begin anew.
	hold := r.client()
	hold.sess.Tx.Begin()
	hold.sess.Tx.Add(0, []byte("held"))
	if err := hold.sess.Tx.Acquire(nil); err != nil {
		t.Fatal(err)
	}
	done := make(chan string)
	go func() { done <- c.do("EVAL", src, "1", "a", "a", "held") }()
	for r.engine.Store.Counter.LockWaiting.Load() == 0 {
		runtime.Gosched()
	}
	hold.sess.Tx.Rollback()
	if got := <-done; got != ":1\r\n" {
		t.Errorf("the script that began anew answered %q", got)
	}
	if got := r.counts(name); got != (Counts{Name: name, Undeclared: 4, Reruns: 1}) {
		t.Errorf("counted %+v, want 4 undeclared keys and 1 rerun", got)
	}
}

func TestTallyIsBounded(t *testing.T) {
	var ta tally
	for i := range 3 * maxTallied {
		ta.add(string(rune('a'+i%26))+strings.Repeat("x", i/26), Counts{Kills: 1})
	}
	ta.add("hot", Counts{Reruns: 1})
	var kills, reruns int64
	list := ta.list()
	for _, c := range list {
		kills += c.Kills
		reruns += c.Reruns
	}
	if len(list) != maxTallied+1 || list[maxTallied].Name != "others" || kills != 3*maxTallied || reruns != 1 {
		t.Errorf("%d entries, the last is %q, %d kills and %d reruns; want %d, others, %d and 1",
			len(list), list[len(list)-1].Name, kills, reruns, maxTallied+1, 3*maxTallied)
	}
}

// TestAllScriptsTogether: many scripts, each far below its own limit, do not take
// more than lua-max-total-memory together; some go, the others end well.
func TestAllScriptsTogether(t *testing.T) {
	const limit = 64 << 20
	e := newEngine(t, Options{MaxTotalMemory: limit})
	s, err := e.Compile([]byte(`
		local t = {}
		for i = 1, 8 do t[i] = string.rep('x', 2^20) .. i end
		local e = os.clock() + 0.2
		repeat until os.clock() > e
		return #t`))
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	before, most := budget.ReadHeap().Objects, int64(0)
	var wg sync.WaitGroup
	var ended, killed atomic.Int32
	for range 40 {
		wg.Go(func() {
			w := &respWriter{}
			err := e.Run(s, &Invocation{Caller: newFakeStore()}, w)
			var f *Failure
			switch {
			case err == nil:
				ended.Add(1)
			case errors.As(err, &f) && f.Kind == Exhausted && strings.HasPrefix(f.Reply, "ERR Script held the most of the memory"):
				killed.Add(1)
			default:
				t.Errorf("a script ended with %v", err)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(5 * time.Millisecond):
			most = max(most, budget.ReadHeap().Live-before)
		}
	}
	if ended.Load() == 0 || killed.Load() == 0 {
		t.Errorf("%d scripts ended and %d were killed, want some of both", ended.Load(), killed.Load())
	}
	if most > 3*limit {
		t.Errorf("the scripts held %d MB together, the limit is %d", most>>20, limit>>20)
	}
	t.Logf("%d ended, %d were killed, they held %d MB at most", ended.Load(), killed.Load(), most>>20)
}

// TestDepthsAreSettings: the bounds of nesting are those of the run.
func TestDepthsAreSettings(t *testing.T) {
	e := newEngine(t, Options{})
	const deep = "local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end return f(%s)"
	const nested = "local t = {} for i = 1, %s do t = {t} end return t"
	for _, tt := range []struct {
		limits    Limits
		src, n    string
		wantError string
	}{
		{Limits{}, deep, "8000", ""},
		{Limits{}, deep, "9000", "stack overflow"},
		{Limits{CallDepth: 500}, deep, "490", ""},
		{Limits{CallDepth: 500}, deep, "510", "stack overflow"},
		{Limits{CallDepth: 20000}, deep, "19000", ""},
		{Limits{}, nested, "990", ""},
		{Limits{}, nested, "1010", "reached lua stack limit"},
		{Limits{TableDepth: 20}, nested, "15", ""},
		{Limits{TableDepth: 20}, nested, "25", "reached lua stack limit"},
		{Limits{TableDepth: 10000}, nested, "9000", ""},
	} {
		got := eval(e, newFakeStore(), strings.Replace(tt.src, "%s", tt.n, 1), tt.limits)
		if failed := strings.Contains(got, "-ERR"); failed != (tt.wantError != "") || !strings.Contains(got, tt.wantError) {
			t.Errorf("with %+v, %s deep: %q, want %q", tt.limits, tt.n, clipText(got), tt.wantError)
		}
	}
}

// TestDeepestCallsFitTheStack: with the highest call depth, no shape of function
// takes half of what the Go stack may grow to, which would end the process.
func TestDeepestCallsFitTheStack(t *testing.T) {
	const most = 256 << 20 // it grows by doubling, to less than 1e9 bytes
	for shape, src := range map[string]string{
		"sum":         "local function f(n) return 1 + f(n) end return f(1)",
		"arguments":   "local function f(...) return (f(1, ...)) end return f(1)",
		"method":      "local o = {} function o:f(n) return 1 + self:f(n) end return o:f(1)",
		"parentheses": "local function f(n) return " + strings.Repeat("1+(", 60) + "f(n)" + strings.Repeat(")", 60) + " end return f(1)",
		"blocks":      "local function f(n) " + strings.Repeat("while n do ", 150) + "n = f(n) " + strings.Repeat("end ", 150) + "end return f(1)",
		"loops":       "local function f(n) " + strings.Repeat("for i = 1, 2 do ", 40) + "n = f(n) " + strings.Repeat("end ", 40) + "end return f(1)",
		"iterators":   "local function f(n) " + strings.Repeat("for k, v in pairs({1}) do ", 30) + "n = f(n) " + strings.Repeat("end ", 30) + "end return f(1)",
		"tables":      "local function f(n) return " + strings.Repeat("{", 150) + "f(n)" + strings.Repeat("}", 150) + " end return f(1)",
		"commands":    "local function f(n) return redis.call('SET', 'k', f(n)) .. 'x' end return f(1)",
		"logic":       "local function f(n) return " + strings.Repeat("n and (", 90) + "f(n)" + strings.Repeat(")", 90) + " end return f(1) + 1",
		"calls":       "local function f(n) return 1 + " + strings.Repeat("f(", 90) + "n" + strings.Repeat(")", 90) + " end return f(1)",
		"metamethods": "local t = setmetatable({}, {__index = function(t, k) return t[k] .. 'x' end}) return t.x",
		"locals":      "local function f(n) local " + strings.Repeat("a,", 150) + "a = 1 return 1 + f(n) end return f(1)",
		"conditions":  "local function f(n) if not (f(n) == 1) then return 1 end end return f(1)",
	} {
		t.Run(shape, func(t *testing.T) {
			e := newEngine(t, Options{})
			var stats runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&stats)
			before := stats.StackInuse
			got := eval(e, newFakeStore(), src, Limits{CallDepth: 1 << 30})
			runtime.ReadMemStats(&stats) // before a collection gives the stack back
			if !strings.Contains(got, "overflow") {
				t.Errorf("answered %q, want an overflow", clipText(got))
			}
			if took := int64(stats.StackInuse - before); took > most {
				t.Errorf("took a stack of %d MB, want at most %d", took>>20, most>>20)
			} else {
				t.Logf("a stack of %d MB", took>>20)
			}
		})
	}
}

// TestKillEndsLongCommands: SCRIPT KILL ends a script in the midst of one command
// that would go on for hours, and in a loop of long ones.
func TestKillEndsLongCommands(t *testing.T) {
	long := strings.Repeat("a", 2<<20)
	hostile := "*" + long[:1<<20] + "b"
	for engine, vmOnly := range map[string]bool{"vm": true, "closures": false} {
		for name, call := range map[string]string{
			"LCS":   "redis.call('SET', KEYS[1], 'x') while true do redis.pcall('LCS', 'text', 'text', 'LEN') end",
			"KEYS":  "redis.call('SET', KEYS[1], 'x') redis.pcall('KEYS', ARGV[1])",
			"SCAN":  "redis.call('SET', KEYS[1], 'x') redis.pcall('SCAN', 0, 'COUNT', 1000, 'MATCH', ARGV[1])",
			"SSCAN": "redis.call('SET', KEYS[1], 'x') redis.pcall('SSCAN', 'set', 0, 'COUNT', 10, 'MATCH', ARGV[1])",
		} {
			r := newRoomOn(t, Settings{}, store.Options{}, Options{VMOnly: vmOnly})
			c := r.client()
			c.expect("+OK", "MSET", "text", long[:10_000], long, "1")
			c.expect(":1", "SADD", "set", long)
			reply := make(chan string, 1)
			go func() { reply <- r.client().do("EVAL", call+" return 'end'", "1", "k", hostile) }()
			for r.runner.Long() == 0 && len(reply) == 0 {
				runtime.Gosched()
			}
			if len(reply) > 0 {
				t.Errorf("%s: %s answers %q before it is killed", engine, name, clipText(<-reply))
				continue
			}
			c.expect("+OK", "SCRIPT", "KILL")
			if got := <-reply; !strings.HasPrefix(got, "-ERR Script killed by user with SCRIPT KILL...") {
				t.Errorf("%s: a script killed in %s answers %q", engine, name, clipText(got))
			}
			c.expect(":0", "EXISTS", "k")
		}
	}
}
