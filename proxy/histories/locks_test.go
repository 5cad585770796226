package histories

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	fighters = 64
	ttl      = 50 // ms of the server's clock
)

// rounds is how many histories a test makes.
func rounds() int {
	if testing.Short() {
		return 3
	}
	return 12
}

// fight is one round: clients that fight over one key, each writing down what
// it did.
type fight struct {
	s    *server
	key  string
	lang language
	// fair: time passes only while nobody tries or holds, so that no two may
	// ever hold at once. Otherwise it passes at any time, and only the history
	// is judged.
	fair   bool
	time   sync.RWMutex // held by those who try or hold, in a fair fight
	tick   sync.Mutex
	inside atomic.Int32 // holders
	next   atomic.Int64 // process numbers
	broken atomic.Pointer[error]
	twice  atomic.Int32 // holders seen at once, when there were too many
}

// fighter is a client in a fight.
type fighter struct {
	*fight
	*client
	recorder
	id   string // CLIENT ID of the connection
	past []porcupine.Operation
	n    int
}

func (f *fight) fail(err error) { f.broken.CompareAndSwap(nil, &err) }

// run lets all of them loose and judges what they did.
func (f *fight) run(play func(*fighter)) {
	t := f.s.t
	t.Helper()
	m := model(f.s.clock.NowMilli())
	all := make([]*fighter, fighters)
	for i := range all {
		all[i] = &fighter{fight: f}
		if err := all[i].arrive(); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for _, x := range all {
		wg.Go(func() {
			<-begin
			play(x)
			x.conn.Close()
		})
	}
	close(begin)
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	// The expiry cycle must change nothing that anybody can see.
	for done := false; !done; runtime.Gosched() {
		select {
		case <-ended:
			done = true
		default:
			f.s.Store().ExpireCycle(time.Millisecond)
		}
	}
	if p := f.broken.Load(); p != nil {
		t.Fatal(*p)
	}
	var ops []porcupine.Operation
	for _, x := range all {
		ops = append(append(ops, x.past...), x.ops...)
	}
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	judge(t, m, ops)
	if n := f.twice.Load(); n != 0 {
		t.Fatalf("%d clients held the lock %s at once", n, f.key)
	}
}

// arrive connects, as a process that has done nothing yet.
func (x *fighter) arrive() error {
	if x.client != nil {
		x.conn.Close()
	}
	c, err := x.s.connect()
	if err != nil {
		return err
	}
	r, err := c.do("CLIENT", "ID")
	if err != nil {
		return err
	}
	x.client, x.id = c, r.Text
	x.past = append(x.past, x.ops...)
	x.recorder = recorder{process: int(x.next.Add(1)) - 1}
	return nil
}

// token is a value that nobody else writes.
func (x *fighter) token() string {
	x.n++
	return fmt.Sprintf("%d.%d", x.process, x.n)
}

// op sends a command as an operation of the history.
func (x *fighter) op(o operation, args ...string) string {
	out := x.call(o, func() string {
		out, err := outcome(x.do(args...))
		if err != nil {
			x.fail(fmt.Errorf("%.60q: %w", args, err))
			return unknown
		}
		return out
	})
	if out == unknown {
		if err := x.arrive(); err != nil {
			x.fail(err)
		}
	}
	return out
}

func (x *fighter) script(command []string, args ...string) []string {
	return append(append(slices.Clone(command), x.key), args...)
}

// pass lets time pass, as an operation of the history.
func (x *fighter) pass(ms int64) {
	x.tick.Lock() // time is one thing: its steps do not overlap
	defer x.tick.Unlock()
	x.call(operation{kind: opAdvance, ms: ms}, func() string {
		x.s.clock.Advance(time.Duration(ms) * time.Millisecond)
		return "OK"
	})
}

// hold is the critical section of one who has the lock.
func (x *fighter) hold() {
	if n := x.inside.Add(1); n != 1 && x.fair {
		x.twice.Store(n)
	}
	runtime.Gosched()
	x.inside.Add(-1)
}

// rivalry plays the attempts of one client at a lock with an expiry.
func rivalry(attempts int, acquire func(x *fighter, token string) bool, release func(x *fighter, token string)) func(*fighter) {
	return func(x *fighter) {
		for range attempts {
			if x.broken.Load() != nil {
				return
			}
			if x.fair {
				x.time.RLock()
			}
			token := x.token()
			got := acquire(x, token)
			overslept := got && rand.IntN(6) == 0
			if got && !overslept {
				x.hold()
				release(x, token)
			}
			if x.fair {
				x.time.RUnlock()
			}
			switch {
			case overslept && x.fair:
				x.time.Lock()
				x.pass(ttl + 1)
				x.time.Unlock()
				release(x, token)
			case overslept:
				x.pass(rand.Int64N(2 * ttl))
				release(x, token)
			case rand.IntN(8) == 0:
				x.op(operation{kind: opGet}, "GET", x.key)
			}
		}
	}
}

// each runs rounds of a fight, fair ones and others in turn.
func each(t *testing.T, s *server, lang language, play func(*fighter)) {
	t.Helper()
	for i := range rounds() {
		f := &fight{s: s, key: fmt.Sprintf("lock:%s:%d", lang.name, i), lang: lang, fair: i%2 == 0}
		f.run(play)
	}
}

// TestTimestampLock is the way by SETNX and GETSET: the value is the time until
// which the lock is held, and whoever finds it past takes over by GETSET.
func TestTimestampLock(t *testing.T) {
	s := start(t)
	for i := range rounds() {
		// Time passes only by the death of a holder, and nobody's view of it is
		// old: otherwise this way to lock is not safe on any server.
		f := &fight{s: s, key: fmt.Sprintf("lock:%d", i), fair: true}
		f.run(func(x *fighter) {
			for range 10 {
				x.time.RLock()
				token, got := x.takeByTimestamp()
				if got && rand.IntN(5) != 0 {
					x.hold()
					x.op(operation{kind: opDel, token: token}, "DEL", x.key)
					got = false
				}
				x.time.RUnlock()
				if got { // the holder dies
					x.time.Lock()
					s.clock.Advance(2 * ttl * time.Millisecond)
					x.time.Unlock()
				}
				if x.broken.Load() != nil {
					return
				}
			}
		})
	}
}

// takeByTimestamp tries once and returns what it has written, if it has the lock.
func (x *fighter) takeByTimestamp() (mine string, got bool) {
	now := x.s.clock.NowMilli()
	past := func(value string) bool {
		ms, _, _ := strings.Cut(value, "/")
		until, err := strconv.ParseInt(ms, 10, 64)
		if err != nil {
			x.fail(fmt.Errorf("the lock holds %q, which nobody wrote", value))
		}
		return until < now
	}
	mine = fmt.Sprintf("%d/%s", now+ttl+1, x.token())
	if x.op(operation{kind: opSetNX, token: mine}, "SETNX", x.key, mine) == "1" {
		return mine, true
	}
	old := x.op(operation{kind: opGet}, "GET", x.key)
	if old == none || !past(old) {
		return mine, false
	}
	was := x.op(operation{kind: opGetSet, token: mine}, "GETSET", x.key, mine)
	return mine, was == none || past(was)
}

// setNXPX tries by SET NX PX, mostly with GET: who is refused is then told by
// whom, which says more about the order of things.
func setNXPX(x *fighter, token string) bool {
	if rand.IntN(8) != 0 {
		return x.op(operation{kind: opSetNXGet, token: token, ms: ttl}, "SET", x.key, token, "NX", "GET", "PX", strconv.Itoa(ttl)) == none
	}
	return x.op(operation{kind: opSetNXPX, token: token, ms: ttl}, "SET", x.key, token, "NX", "PX", strconv.Itoa(ttl)) == "OK"
}

func releaseByScript(x *fighter, token string) {
	x.op(operation{kind: opReleaseIf, token: token, ms: tellsValue}, x.script(x.lang.release, token)...)
}

// TestTokenLock is the way by SET NX PX with a token and DELIFEQ.
func TestTokenLock(t *testing.T) {
	each(t, start(t), language{name: "delifeq"}, rivalry(8, setNXPX, func(x *fighter, token string) {
		x.op(operation{kind: opReleaseIf, token: token}, "DELIFEQ", x.key, token)
	}))
}

// TestTokenLockUnderFire is TestTokenLock while connections are killed: whoever
// does not see the reply does not know whether he holds the lock.
func TestTokenLockUnderFire(t *testing.T) {
	s := start(t)
	play := rivalry(6, setNXPX, func(x *fighter, token string) {
		x.op(operation{kind: opReleaseIf, token: token}, "DELIFEQ", x.key, token)
	})
	for i := range rounds() {
		f := &fight{s: s, key: fmt.Sprintf("lock:%d", i)}
		f.run(func(x *fighter) {
			// Each pending operation doubles what porcupine has to think of, so
			// only a few are killed.
			if x.process%8 != 0 || x.process >= fighters {
				play(x)
				return
			}
			killer, err := s.connect()
			if err != nil {
				x.fail(err)
				return
			}
			defer killer.conn.Close()
			id := x.id
			var kill sync.WaitGroup
			kill.Go(func() {
				if _, err := killer.do("CLIENT", "KILL", "ID", id); err != nil {
					x.fail(err)
				}
			})
			play(x)
			kill.Wait()
		})
	}
}

// TestReleaseByScript is the way by SET NX PX with a token and a script that
// compares and deletes. Some take the lock by a script as well, and some run
// scripts that write to it and then fail.
func TestReleaseByScript(t *testing.T) {
	s := start(t)
	for _, lang := range s.languages() {
		t.Run(lang.name, func(t *testing.T) {
			defer s.within(t)()
			each(t, s, lang, rivalry(6, func(x *fighter, token string) bool {
				switch rand.IntN(8) {
				case 0:
					x.op(operation{kind: opPoison, token: token}, x.script(lang.poison, token)...)
				case 1, 2, 3, 4:
					until := x.s.clock.NowMilli() + ttl
					return x.op(operation{kind: opAcquire, token: token, ms: until}, x.script(lang.acquire, token, strconv.FormatInt(until, 10))...) == "1"
				}
				return setNXPX(x, token)
			}, releaseByScript))
		})
	}
}

// TestCounterByScript adds one by scripts that read and then write: a lost
// update shows as a number that was given twice.
func TestCounterByScript(t *testing.T) {
	s := start(t)
	for _, lang := range s.languages() {
		t.Run(lang.name, func(t *testing.T) {
			defer s.within(t)()
			each(t, s, lang, func(x *fighter) {
				for range 6 {
					x.op(operation{kind: opIncr}, x.script(lang.incr)...)
				}
			})
		})
	}
}

// TestManyKeysAsOne swaps the values of more keys than are latched together, in
// a MULTI: all of them must always have the same value, as if they were one.
func TestManyKeysAsOne(t *testing.T) {
	s := start(t)
	const width = 12
	for i := range rounds() {
		f := &fight{s: s, key: fmt.Sprintf("wide:%d", i)}
		f.run(func(x *fighter) {
			for range 5 {
				token := x.token()
				x.call(operation{kind: opGetSet, token: token}, func() string { return x.swapAll(width, token) })
				if x.broken.Load() != nil {
					return
				}
			}
		})
	}
}

func (x *fighter) swapAll(width int, token string) string {
	commands := [][]string{{"MULTI"}}
	for _, j := range rand.Perm(width) {
		commands = append(commands, []string{"GETSET", x.key + ":" + strconv.Itoa(j), token})
	}
	commands = append(commands, []string{"EXEC"})
	var b []byte
	for _, args := range commands {
		b = appendCommand(b, args...)
	}
	if _, err := x.conn.Write(b); err != nil {
		x.fail(err)
		return unknown
	}
	for i := range commands {
		r, err := x.read()
		if err != nil {
			x.fail(err)
			return unknown
		}
		if i < len(commands)-1 {
			continue
		}
		if len(r.Elems) != width {
			x.fail(fmt.Errorf("EXEC answered %q with %d replies, want %d", r.Text, len(r.Elems), width))
			return unknown
		}
		for _, e := range r.Elems {
			if textOf(e) != textOf(r.Elems[0]) {
				x.fail(fmt.Errorf("a transaction saw another one half done, so the history is not linearizable: %q beside %q", textOf(e), textOf(r.Elems[0])))
				return unknown
			}
		}
		return textOf(r.Elems[0])
	}
	return unknown
}

// TestRefusedByLog lets the effect log refuse some appends: the server then
// answers that nothing was done, and nothing must have been, neither of a single
// command nor of a script.
func TestRefusedByLog(t *testing.T) {
	s := start(t)
	s.log.refuseSome(6)
	langs := s.languages()
	for i := range rounds() {
		f := &fight{s: s, key: fmt.Sprintf("lock:%d", i), lang: langs[i%len(langs)]}
		f.run(rivalry(8, func(x *fighter, token string) bool {
			if rand.IntN(4) == 0 {
				x.op(operation{kind: opGetSet, token: token}, "GETSET", x.key, token)
				return true
			}
			return setNXPX(x, token)
		}, releaseByScript))
	}
	if s.log.refused == 0 {
		t.Error("the log refused nothing, so this test has shown nothing")
	}
}

// within makes t the test that s reports to, until the returned function runs.
func (s *server) within(t *testing.T) func() {
	outer := s.t
	s.t = t
	return func() { s.t = outer }
}
