package scripting

import (
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// room is a runner on a store of its own, without a server around it.
type room struct {
	t      testing.TB
	runner *Runner
	engine *command.Engine
}

func newRoom(t testing.TB, s Settings) *room {
	t.Helper()
	return newRoomOn(t, s, store.Options{}, Options{Version: "7.0.15"})
}

func newRoomOn(t testing.TB, s Settings, so store.Options, o Options) *room {
	t.Helper()
	st, err := store.New(so)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	r := NewRunner(newEngine(t, o), s, 2, log)
	families := append(command.Families(), r.Specs())
	table, err := command.NewTable(families...)
	if err != nil {
		t.Fatal(err)
	}
	e := &command.Engine{Table: table, Store: st, Log: log}
	e.SlowAfter.Store(-1)
	e.MaxValue.Store(512 << 20)
	return &room{t, r, e}
}

// client is one asker.
type client struct {
	r    *room
	sess *command.Session
}

func (r *room) client() *client {
	c := &client{r, &command.Session{Proto: 2, Tx: r.engine.Store.NewTx(), Wait: &store.Wait{}}}
	c.sess.BeginBatch()
	return c
}

func (c *client) do(args ...string) string {
	words := make([][]byte, len(args))
	for i, a := range args {
		words[i] = []byte(a)
	}
	w := &respWriter{}
	spec, refusal := c.r.engine.Table.Find(words)
	if spec == nil {
		w.Error(refusal)
		return string(w.b)
	}
	call := command.Call{S: c.sess, Spec: spec, Args: words, Reply: w}
	c.r.engine.Run(&call)
	return string(w.b)
}

func (c *client) expect(want string, args ...string) {
	c.r.t.Helper()
	if got := strings.ReplaceAll(strings.TrimSuffix(c.do(args...), "\r\n"), "\r\n", " "); got != want {
		c.r.t.Errorf("%q\n got %q\nwant %q", args, got, want)
	}
}

// TestCommandsSameAsRedis asks redis-server and a store of ours the same.
func TestCommandsSameAsRedis(t *testing.T) {
	redis := startRedis(t)
	c := newRoom(t, Settings{}).client()
	unlock := SumSHA1([]byte(unlockScript)).String()
	for _, args := range [][]string{
		{"EVAL", "x", "a"},
		{"EVAL", "x"},
		{"EVAL", "return 1", "-1"},
		{"EVAL", "return 1", "2", "a"},
		{"EVAL", "return 1", "1.5"},
		{"EVAL", "return {#KEYS, #ARGV, KEYS[1], ARGV[1]}", "1", "k", "v"},
		{"EVAL", "return", "0"},
		{"EVALSHA", "abc", "0"},
		{"EVALSHA", unlock, "1", "lock", "token"},
		{"EVALSHA", unlock},
		{"SET", "lock", "token", "NX", "PX", "30000"},
		{"EVAL", unlockScript, "1", "lock", "wrong"},
		{"EVAL", unlockScript, "1", "lock", "token"},
		{"EXISTS", "lock"},
		{"EVALSHA", unlock, "1", "lock", "token"},
		{"EVALSHA", strings.ToUpper(unlock), "1", "lock", "token"},
		{"SCRIPT", "LOAD", unlockScript},
		{"SCRIPT", "LOAD", "x ="},
		{"SCRIPT", "EXISTS", unlock, "none", strings.Repeat("f", 40)},
		{"SCRIPT", "FLUSH", "x"},
		{"SCRIPT", "FLUSH", "sync"},
		{"SCRIPT", "FLUSH", "ASYNC"},
		{"SCRIPT", "FLUSH", "sync", "x"},
		{"SCRIPT", "EXISTS", unlock},
		{"SCRIPT", "EXISTS"},
		{"SCRIPT", "NOSUCH"},
		{"SCRIPT"},
		{"SCRIPT", "KILL"},
		{"SCRIPT", "DEBUG", "x"},
		{"SCRIPT", "DEBUG", "no"},
		{"SCRIPT", "HELP"},
		{"EVAL", "return redis.acl_check_cmd('script','nosuch')", "0"},
		{"EVAL", "return redis.acl_check_cmd('script')", "0"},
		{"EVAL", "return redis.acl_check_cmd('nosuch')", "0"},
		{"EVAL", "return redis.acl_check_cmd('get')", "0"},
		{"EVAL_RO", "return redis.call('set',KEYS[1],1)", "1", "k"},
		{"EVAL_RO", "return redis.pcall('set',KEYS[1],1)", "1", "k"},
		{"EVAL_RO", "return redis.call('get',KEYS[1])", "1", "k"},
		{"EVALSHA_RO", SumSHA1([]byte("return redis.call('get',KEYS[1])")).String(), "1", "k"},
		{"EVAL", "#!lua flags=no-writes\nreturn redis.call('set',KEYS[1],1)", "1", "k"},
		{"EVAL", "#!lua flags=what\nreturn 1", "0"},
		{"EVAL", "#!lua name=x\nreturn 1", "0"},
		{"EVAL", "#!python\nreturn 1", "0"},
		{"EVAL", "#!lua", "0"},
		{"EVAL", "#!lua\nreturn 1", "0"},
		{"EVAL", "return redis.call('nosuch')", "0"},
		{"EVAL", "return redis.call('get')", "0"},
		{"EVAL", "return redis.call('eval','return 1','0')", "0"},
		{"EVAL", "return redis.call('SCRIPT','FLUSH')", "0"},
		{"EVAL", "return redis.call('script','nosuch')", "0"},
		{"EVAL", "return redis.call('script')", "0"},
		{"SET", "s", "text"},
		{"EVAL", "return redis.call('incr','s')", "1", "s"},
		{"EVAL", "return redis.pcall('incr','s')", "1", "s"},
		{"EVAL", "return {redis.pcall('incr','s'), redis.call('append','s','!')}", "1", "s"},
		{"GET", "s"},
		{"EVAL", "redis.call('set','other','x') return redis.call('get','other')", "0"},
		{"GET", "other"},
		{"EVAL", "return redis.error_reply('MY error')", "0"},
		{"EVAL", "redis.call('set','kept','1') return redis.error_reply('MY error')", "0"},
		{"GET", "kept"},
		{"EVAL", "return redis.call('set','s','v','PX','100000')", "1", "s"},
		{"EVAL", "return redis.call('get', 's')..'!'", "1", "s"},
		{"EVAL", "return redis.call('set','s','v','BAD')", "1", "s"},
		{"EVAL", "return redis.call('mset','a','1','b','2')", "2", "a", "b"},
		{"EVAL", "return redis.call('mget','a','b','none')", "2", "a", "b"},
		{"EVAL", "return redis.call('setnx',KEYS[1],'x')", "1", "a"},
		{"EVAL", "return redis.call('set',KEYS[1],ARGV[1],'NX','GET')", "1", "a", "v"},
		{"EVAL", "return redis.call('getdel',KEYS[1])", "1", "a"},
		{"EVAL", "for i=1,100 do redis.call('incr',KEYS[1]) end return redis.call('get',KEYS[1])", "1", "n"},
		{"EVAL", "return redis.call('bitfield',KEYS[1],'set','u8',0,200,'get','u8',0)", "1", "bits"},
	} {
		want, err := redis.do(args...)
		if err != nil {
			t.Fatalf("%q: redis-server went away: %v", args, err)
		}
		want = strings.Replace(want, "Prints this help.", "Print this help.", 1) // as Redis 7.2 has it
		if got := c.do(args...); got != want {
			t.Errorf("%q\n got %q\nwant %q, as redis-server answers", args, clipText(got), clipText(want))
		}
	}
	for _, name := range []string{"eval", "evalsha", "eval_ro", "evalsha_ro"} {
		want, err := redis.do("COMMAND", "INFO", name)
		if err != nil {
			t.Fatal(err)
		}
		spec := c.r.engine.Table.Lookup([]byte(name))
		for _, flag := range spec.Flags.Names() {
			if flag != "may_replicate" && !strings.Contains(want, "+"+flag+"\r\n") { // COMMAND hides that one
				t.Errorf("%s has the flag %s, redis-server says %q", name, flag, want)
			}
		}
		for _, cat := range spec.AllCategories().Names() {
			if !strings.Contains(want, "+@"+cat+"\r\n") {
				t.Errorf("%s has the category %s, redis-server says %q", name, cat, want)
			}
		}
	}
}

func TestUncaughtErrorRollsBack(t *testing.T) {
	const src = "redis.call('set','a','1') redis.call('append','b','x') error('stop')"
	r := newRoom(t, Settings{})
	c := r.client()
	c.expect("+OK", "SET", "b", "old")
	if got := c.do("EVAL", src, "2", "a", "b"); !strings.HasPrefix(got, "-ERR user_script:1: stop script: ") {
		t.Errorf("the error is %q", got)
	}
	c.expect(":0", "EXISTS", "a")
	c.expect("$3 old", "GET", "b")
	if r.runner.Rollbacks.Load() != 1 {
		t.Errorf("%d rollbacks counted, want 1", r.runner.Rollbacks.Load())
	}
	r.runner.Set(Settings{KeepOnError: true})
	c.do("EVAL", src, "2", "a", "b")
	c.expect(":1", "EXISTS", "a")
	c.expect("$4 oldx", "GET", "b")
	// What a failed command did is undone, what the script did around it stays.
	c.expect("$2 ok", "EVAL", "redis.call('set','c','1') redis.pcall('incr','b') redis.call('set','d','1') return 'ok'", "3", "b", "c", "d")
	c.expect(":2", "EXISTS", "c", "d")
}

func TestBudgetRollsBack(t *testing.T) {
	r := newRoom(t, Settings{KeepOnError: true, Limits: Limits{Instructions: 100_000}})
	c := r.client()
	got := c.do("EVAL", "for i = 1, 100 do redis.call('set', 'k' .. i, i) end while true do end", "0")
	if !strings.HasPrefix(got, "-ERR Script exceeded its instruction budget") {
		t.Errorf("the endless script answered %q", got)
	}
	c.expect(":0", "EXISTS", "k1", "k50", "k100")
	if r.runner.Killed.Load() != 1 {
		t.Errorf("%d scripts counted as ended, want 1", r.runner.Killed.Load())
	}
}

func TestScriptKill(t *testing.T) {
	r := newRoom(t, Settings{})
	const src = "redis.call('set', KEYS[1], 'dirty') while true do end"
	done := make(chan string)
	go func() { done <- r.client().do("EVAL", src, "1", "k") }()
	for r.runner.Long() == 0 {
		runtime.Gosched() // until the script itself says that it runs long
	}
	c := r.client()
	r.engine.Busy.Store(int64(time.Hour))
	c.expect("-NOTBUSY No scripts in execution right now.", "SCRIPT", "KILL")
	r.engine.Busy.Store(0)
	c.expect("-NOTBUSY No scripts in execution right now.", "SCRIPT", "KILL", strings.Repeat("0", 40))
	c.expect("+OK", "SCRIPT", "KILL", SumSHA1([]byte(src)).String())
	if got := <-done; !strings.HasPrefix(got, "-ERR Script killed by user with SCRIPT KILL...") {
		t.Errorf("the killed script answered %q", got)
	}
	c.expect(":0", "EXISTS", "k")
	c.expect("-NOTBUSY No scripts in execution right now.", "SCRIPT", "KILL")
}

func TestClientGoneEndsScript(t *testing.T) {
	r := newRoom(t, Settings{})
	c := r.client()
	gone := make(chan struct{})
	c.sess.Wait.Done = gone
	done := make(chan string)
	go func() { done <- c.do("EVAL", "redis.call('set','k','v') while true do end", "1", "k") }()
	for r.runner.Long() == 0 {
		runtime.Gosched() // until the script itself says that it runs long
	}
	close(gone)
	if got := <-done; !strings.HasPrefix(got, "-UNBLOCKED") {
		t.Errorf("the script of a client that went away answered %q", got)
	}
	r.client().expect(":0", "EXISTS", "k")
}

// TestUndeclaredKeys: scripts that reach for each other's keys in opposite order
// all end, and none sees another half done.
func TestUndeclaredKeys(t *testing.T) {
	r := newRoom(t, Settings{})
	r.client().expect("+OK", "MSET", "a", "1000", "b", "1000")
	const move = `
		local from, to = ARGV[1], ARGV[2]
		if redis.call('get', from) + redis.call('get', to) ~= 2000 then return redis.error_reply('TORN') end
		redis.call('decrby', from, 1)
		for i = 1, 200 do end
		redis.call('incrby', to, 1)
		return 'moved'`
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			c := r.client()
			from, to := "a", "b"
			if g%2 == 1 {
				from, to = to, from
			}
			for range 100 {
				args := []string{"EVAL", move, "1", from, from, to}
				if g%4 >= 2 {
					args = []string{"EVAL", move, "0", from, to}
				}
				if got := c.do(args...); got != "$5\r\nmoved\r\n" {
					t.Errorf("a transfer answered %q", got)
					return
				}
			}
		})
	}
	wg.Wait()
	r.client().expect("*2 $4 1000 $4 1000", "MGET", "a", "b")
	t.Logf("%d reruns", r.runner.Reruns.Load())
}

// TestOneHolder: of many that take, hold and release a lock by script, never two hold it.
func TestOneHolder(t *testing.T) {
	r := newRoom(t, Settings{})
	var mu sync.Mutex
	holders, most, taken := 0, 0, 0
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			c := r.client()
			token := strconv.Itoa(g)
			for done := 0; done < 20; {
				if c.do("SET", "lock", token, "NX", "PX", "60000") != "+OK\r\n" {
					continue
				}
				mu.Lock()
				holders++
				most = max(most, holders)
				taken++
				mu.Unlock()
				mu.Lock()
				holders--
				mu.Unlock()
				if got := c.do("EVAL", unlockScript, "1", "lock", token); got != ":1\r\n" {
					t.Errorf("the holder's unlock answered %q", got)
				}
				done++
			}
		})
	}
	wg.Wait()
	if most != 1 || taken != 320 {
		t.Errorf("%d held the lock at once, taken %d times; want 1 and 320", most, taken)
	}
}

func TestScriptsSelectTheirOwnDatabase(t *testing.T) {
	r := newRoom(t, Settings{})
	c := r.client()
	c.expect("$8 done in0", "EVAL", "return 'done in'..#KEYS", "0")
	c.expect("+OK", "EVAL", "return redis.call('set','k','zero')", "1", "k")
	if c.sess.DB != 0 || c.sess.Denied != "" {
		t.Errorf("after a script the session is in database %d, denied %q", c.sess.DB, c.sess.Denied)
	}
}

// TestBombsAreNotDefusedTwice: a source that does not compile is known by its name.
func TestBombsAreNotDefusedTwice(t *testing.T) {
	r := newRoom(t, Settings{})
	c := r.client()
	for i := range 2 * maxRefusals {
		src := fmt.Sprintf("x = = %d", i)
		first, again := c.do("EVAL", src, "0"), c.do("EVAL", src, "0")
		if first != again || !strings.HasPrefix(first, "-ERR Error compiling script") {
			t.Fatalf("%q answers %q, then %q", src, first, again)
		}
	}
	if n := len(r.runner.Engine().Cache().refused); n > maxRefusals {
		t.Errorf("%d refusals are kept, want at most %d", n, maxRefusals)
	}
	names := slices.Clone(r.runner.Engine().Cache().refusals[:])
	slices.SortFunc(names, func(a, b SHA1) int { return strings.Compare(a.String(), b.String()) })
	if len(slices.Compact(names)) != maxRefusals {
		t.Error("a refusal is kept twice")
	}
}

// TestErrorsAreCountedOnce: what a command in a script answered is counted there,
// and not again when the script answers it.
func TestErrorsAreCountedOnce(t *testing.T) {
	r := newRoom(t, Settings{})
	var told []string
	r.engine.OnError = func(msg string) { told = append(told, msg) }
	c := r.client()
	c.expect("+OK", "SET", "text", "x")
	c.load("l", "redis.register_function('f', function(keys) return redis.call('incr', keys[1]) end)")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"EVAL", "return redis.call('incr', KEYS[1])", "1", "text"}, "ERR value is not an integer or out of range"},
		{[]string{"EVAL", "return redis.pcall('incr', KEYS[1])", "1", "text"}, "ERR value is not an integer or out of range"},
		{[]string{"EVAL", "return redis.pcall('incr', KEYS[1]).err", "1", "text"}, "ERR value is not an integer or out of range"},
		{[]string{"FCALL", "f", "1", "text"}, "ERR value is not an integer or out of range"},
		{[]string{"EVAL_RO", "return redis.call('incr', KEYS[1])", "1", "text"}, "ERR Write commands are not allowed from read-only scripts."},
		{[]string{"EVAL", "return redis.call('nosuch')", "0"}, unknownCommand},
		{[]string{"EVAL", "return redis.pcall('nosuch')", "0"}, unknownCommand},
		{[]string{"EVAL", "return redis.pcall('nosuch').err", "0"}, unknownCommand},
		{[]string{"EVAL", "return redis.call('get')", "0"}, wrongArity},
		{[]string{"EVAL", "return redis.call('eval', 'return 1', 0)", "0"}, notFromScripts},
		{[]string{"EVAL", "return redis.call('script', 'nosuch')", "0"}, unknownCommand},
		{[]string{"EVAL", "return redis.call()", "0"}, "ERR Please specify at least one argument for this redis lib call"},
		{[]string{"EVAL", "return redis.pcall({})", "0"}, "ERR Lua redis lib command arguments must be strings or integers"},
		{[]string{"EVAL", "return redis.error_reply('MY own')", "0"}, "MY own"},
		{[]string{"EVAL", "return {redis.pcall('incr', KEYS[1])}", "1", "text"}, "ERR value is not an integer or out of range"},
	} {
		told = nil
		c.do(tt.args...)
		if len(told) != 1 || !strings.HasPrefix(told[0], tt.want) {
			t.Errorf("%q counted %q, want %q once", tt.args, told, tt.want)
		}
	}
}
