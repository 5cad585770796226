package scripting

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

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
		if got := <-reply; !strings.HasPrefix(got, "-ERR Script killed by user with SCRIPT KILL.") {
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
