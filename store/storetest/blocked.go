package storetest

import (
	"fmt"
	"testing/synctest"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
)

var blockedTests = []test{
	{name: "a signal hands the key to the blocked command, nobody steals", run: testSignal},
	{name: "blocked commands are served in their order", run: testBlockedOrder},
	{name: "who does not find what it needs passes the key on", run: testBlockedPassesOn},
	{name: "DoneLast ends the hand-over", run: testDoneLast},
	{name: "what is there already is taken at once", run: testBlockedAtOnce},
	{name: "a signal that is undone wakes nobody", run: testSignalUndone},
	{name: "blocked on several keys", run: testBlockedOnMany},
	{name: "a blocked command times out", run: testBlockedTimeout},
	{name: "a blocked command is cancelled, or unblocked", run: testBlockedCancelled},
	{name: "a blocked command stays with its logical database", run: testBlockedSwap},
	{name: "the gate waits for who was handed a key", run: testGateAfterHandOver},
}

// pop is a blocked command that takes the value of one of its keys.
type pop struct {
	out   chan error
	got   string
	tries int
}

func (f *fixture) block(w *store.Wait, last store.Outcome, keys ...string) *pop {
	p := &pop{out: make(chan error, 1)}
	names := make([][]byte, len(keys))
	for i, k := range keys {
		names[i] = []byte(k)
	}
	go func() {
		tx := f.s.NewTx()
		p.out <- tx.Await(0, names, w, func() (store.Outcome, error) {
			p.tries++
			for _, name := range names {
				if k := tx.Key(0, name); k.Exists() {
					p.got = string(name) + "=" + string(k.Str())
					k.Delete()
					return last, nil
				}
			}
			return store.NotYet, nil
		})
	}()
	synctest.Wait()
	return p
}

// push sets a key and signals, in each of the modes.
func (f *fixture) push(m mode, key, value string) {
	f.Helper()
	tx := m.begin(key)
	k := at(tx, key)
	k.SetString([]byte(value), store.NoTTL)
	k.Signal()
	f.commit(tx)
}

func testSignal(f *fixture) {
	for _, m := range f.modes() {
		p := f.block(nil, store.Done, "k")
		f.waits(m.name+": a blocked command", p.out)
		f.push(m, "k", "v")
		if tx, ok := f.tryLatch("k"); ok {
			if at(tx, "k").Exists() {
				f.Errorf("%s: a stranger got what a blocked command was waiting for", m.name)
			}
			tx.Rollback()
		}
		f.wantErr(m.name, f.ended("the blocked command", p.out), nil)
		if p.got != "k=v" {
			f.Errorf("%s: it got %q, want %q", m.name, p.got, "k=v")
		}
		f.want("k", absent)
	}
	if n := f.s.Counter.BlockedClients.Load(); n != 0 {
		f.Errorf("%d clients count as blocked, want 0", n)
	}
}

func testBlockedSwap(f *fixture) {
	swap := func() {
		tx := f.s.NewTx()
		tx.Begin()
		f.wantErr("AcquireAll", tx.AcquireAll(nil), nil)
		tx.SwapDB(0, 1)
		f.commit(tx)
		synctest.Wait()
	}
	for _, m := range f.modes() {
		p := f.block(nil, store.Done, "j", "k")
		swap()
		f.waits(m.name+": what it waits for is in neither database", p.out)
		f.push(m, "k", "v")
		f.wantErr(m.name, f.ended("the blocked command, by a push into the database it waits in", p.out), nil)

		p = f.block(nil, store.Done, "j", "k")
		tx := f.s.NewTx()
		tx.Begin()
		tx.Add(1, []byte("k"))
		f.wantErr("Acquire", tx.Acquire(nil), nil)
		tx.Key(1, []byte("k")).SetString([]byte("w"), store.NoTTL)
		tx.Key(1, []byte("k")).Signal()
		f.commit(tx)
		f.waits(m.name+": a push into another database", p.out)
		swap()
		f.wantErr(m.name, f.ended("the blocked command, when SWAPDB brought the key", p.out), nil)
		if p.got != "k=w" {
			f.Errorf("%s: it got %q, want %q", m.name, p.got, "k=w")
		}
	}
	if n := f.s.Counter.BlockedClients.Load(); n != 0 {
		f.Errorf("%d clients count as blocked, want 0", n)
	}
}

func testBlockedOrder(f *fixture) {
	for _, m := range f.modes() {
		var all []*pop
		for range 4 {
			all = append(all, f.block(nil, store.Done, "k"))
		}
		if n := f.s.Counter.BlockedClients.Load(); n != 4 {
			f.Errorf("%d clients count as blocked, want 4", n)
		}
		for i, p := range all {
			f.push(m, "k", fmt.Sprint(i))
			f.wantErr(m.name, f.ended(fmt.Sprint("blocked command ", i), p.out), nil)
			for _, later := range all[i+1:] {
				f.waits("who came later", later.out)
			}
			if want := fmt.Sprint("k=", i); p.got != want {
				f.Errorf("%s: command %d got %q, want %q", m.name, i, p.got, want)
			}
		}
	}
}

func testBlockedPassesOn(f *fixture) {
	for _, m := range f.modes() {
		picky := make(chan error, 1)
		go func() {
			tx := f.s.NewTx()
			picky <- tx.Await(0, [][]byte{[]byte("k")}, &store.Wait{Timeout: time.Minute}, func() (store.Outcome, error) {
				return store.NotYet, nil
			})
		}()
		synctest.Wait()
		p := f.block(nil, store.Done, "k")
		f.push(m, "k", "v")
		f.wantErr(m.name, f.ended("the second blocked command", p.out), nil)
		if p.got != "k=v" {
			f.Errorf("%s: the second got %q, want %q", m.name, p.got, "k=v")
		}
		f.waits("the first", picky)
		time.Sleep(2 * time.Minute)
		f.wantErr("the first", f.ended("the first", picky), store.ErrTimeout)
	}
}

func testDoneLast(f *fixture) {
	first := f.block(nil, store.DoneLast, "k")
	second := f.block(nil, store.Done, "k")
	f.push(f.modes()[0], "k", "v")
	f.wantErr("the first", f.ended("the first", first.out), nil)
	f.waits("the second", second.out)
	if second.tries != 1 {
		f.Errorf("the second tried %d times, want once: nothing was left for it", second.tries)
	}
	f.push(f.modes()[1], "k", "w")
	f.wantErr("the second", f.ended("the second", second.out), nil)
}

func testBlockedAtOnce(f *fixture) {
	f.set("k", "v")
	p := f.block(nil, store.Done, "none", "k")
	f.wantErr("it", f.ended("a command that finds what it needs", p.out), nil)
	if p.got != "k=v" || p.tries != 1 {
		f.Errorf("it got %q in %d tries, want %q in 1", p.got, p.tries, "k=v")
	}
}

func testSignalUndone(f *fixture) {
	p := f.block(nil, store.Done, "k")
	for _, m := range f.modes() {
		tx := m.begin("k")
		at(tx, "k").SetString([]byte("v"), store.NoTTL)
		at(tx, "k").Signal()
		tx.Rollback()
		tx = m.begin("k")
		sp := tx.Savepoint()
		at(tx, "k").Signal()
		tx.RollbackTo(sp)
		f.commit(tx)
	}
	f.waits("the blocked command", p.out)
	if p.tries != 1 {
		f.Errorf("it tried %d times, want once", p.tries)
	}
	f.push(f.modes()[1], "k", "v")
	f.wantErr("it", f.ended("it", p.out), nil)
}

func testBlockedOnMany(f *fixture) {
	names := []string{"a", "b", "c"}
	for _, m := range f.modes()[:2] {
		for _, held := range names {
			for _, pushed := range names {
				if held == pushed {
					continue
				}
				p := f.block(nil, store.Done, names...)
				holder := f.lock(held)
				f.push(m, pushed, "v")
				f.waits("a command that was handed one key while another is held", p.out)
				holder.Rollback()
				f.wantErr("it", f.ended("it", p.out), nil)
				if want := pushed + "=v"; p.got != want {
					f.Errorf("%s, %s held: it got %q, want %q", m.name, held, p.got, want)
				}
			}
		}
	}
	for _, name := range names {
		tx, ok := f.tryLatch(name)
		if !ok {
			f.Errorf("%s is locked though nobody holds it", name)
			continue
		}
		tx.Rollback() // the next key may have the same latch
	}
}

func testBlockedTimeout(f *fixture) {
	begun := time.Now()
	p := f.block(&store.Wait{Timeout: 3 * time.Second}, store.Done, "k")
	time.Sleep(2 * time.Second)
	f.waits("it", p.out)
	time.Sleep(2 * time.Second)
	f.wantErr("it", f.ended("it", p.out), store.ErrTimeout)
	if time.Since(begun) > 4*time.Second {
		f.Errorf("it took %v", time.Since(begun))
	}
	f.push(f.modes()[0], "k", "v")
	f.want("k", "v") // nobody is left to take it
	if n := f.s.Counter.BlockedClients.Load(); n != 0 {
		f.Errorf("%d clients count as blocked, want 0", n)
	}
}

func testBlockedCancelled(f *fixture) {
	done, unblock := make(chan struct{}), make(chan error, 1)
	a := f.block(&store.Wait{Done: done}, store.Done, "k")
	b := f.block(&store.Wait{Unblocked: unblock}, store.Done, "k")
	c := f.block(nil, store.Done, "k")
	close(done)
	f.wantErr("who was cancelled", f.ended("who was cancelled", a.out), store.ErrCancelled)
	unblock <- store.ErrUnblocked
	f.wantErr("who was unblocked", f.ended("who was unblocked", b.out), store.ErrUnblocked)
	f.waits("the third", c.out)
	f.push(f.modes()[1], "k", "v")
	f.wantErr("the third", f.ended("the third", c.out), nil)
}

func testGateAfterHandOver(f *fixture) {
	hold, entered := make(chan struct{}), make(chan struct{})
	out := make(chan error, 1)
	go func() {
		tx := f.s.NewTx()
		out <- tx.Await(0, [][]byte{[]byte("k")}, nil, func() (store.Outcome, error) {
			if !tx.Key(0, []byte("k")).Exists() {
				return store.NotYet, nil
			}
			close(entered)
			<-hold
			return store.Done, nil
		})
	}()
	synctest.Wait()
	f.push(f.modes()[0], "k", "v")
	<-entered
	flushed := make(chan error, 1)
	go func() {
		tx := f.s.NewTx()
		tx.Begin()
		err := tx.AcquireAll(nil)
		if err == nil {
			tx.FlushAll()
			err = tx.Commit()
		}
		flushed <- err
	}()
	f.waits("who closes the gate", flushed)
	close(hold)
	f.wantErr("the blocked command", f.ended("the blocked command", out), nil)
	f.wantErr("who closes the gate", f.ended("who closes the gate", flushed), nil)
	f.want("k", absent)
}
