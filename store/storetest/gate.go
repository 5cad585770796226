package storetest

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
)

var gateTests = []test{
	{name: "who is alone waits for all others, and they for it", run: testGate},
	{name: "who gives up closing the gate opens it", run: testGateCancelled},
	{name: "who stands at the gate for too long is told that it is busy", run: testGateBusy},
	{name: "two who want to be alone take turns", run: testTwoAlone},
	{name: "beside a slow transaction the gate stays open", run: testGateBesideSlow},
	{name: "who waits for a slow transaction with the gate open is told that it is busy", run: testGateBesideSlowBusy},
	{name: "who waits for a slow transaction with the gate open can be killed", run: testGateBesideSlowCancelled},
	{name: "one slow transaction after the other", run: testGateBesideMany},
	{name: "who stood before the gate goes in before the next who wants to be alone", run: testGatePhases},
	{name: "nobody is beside who is alone", run: testGateStress, real: true},
}

// gatePatience is longer than the gate may stay closed for a slow transaction.
const gatePatience = 50 * time.Millisecond

// goAlone closes the gate in another goroutine and then calls run.
func (f *fixture) goAlone(w *store.Wait, run func(tx *store.Tx)) <-chan error {
	out := make(chan error, 1)
	go func() {
		tx := f.s.NewTx()
		tx.Begin()
		err := tx.AcquireAll(w)
		if err == nil {
			run(tx)
		}
		out <- err
	}()
	return out
}

func testGate(f *fixture) {
	f.set("k", "v")
	f.set("other", "v")
	holder := f.lock("k")
	at(holder, "k").SetString([]byte("held"), store.NoTTL)
	inside, leave := make(chan struct{}), make(chan struct{})
	flush := f.goAlone(nil, func(tx *store.Tx) {
		if got := show(at(tx, "k")); got != "held" {
			f.Errorf("who is alone sees %q, want %q", got, "held")
		}
		tx.FlushAll()
		close(inside)
		<-leave
		f.commit(tx)
	})
	f.waits("who closes the gate", flush)
	if _, ok := f.tryLatch("other"); ok {
		f.Fatal("a short transaction passed a closed gate")
	}
	behind := f.go1(nil, []string{"other", "k"}, func(tx *store.Tx) {
		if show(at(tx, "other")) != absent || show(at(tx, "k")) != absent {
			f.Error("who stood before the gate sees what was flushed")
		}
		at(tx, "other").SetString([]byte("new"), store.NoTTL)
		f.commit(tx)
	})
	f.waits("who stands before the gate", behind)
	f.commit(holder)
	<-inside
	f.waits("who stands before the gate", behind)
	close(leave)
	f.wantErr("who was alone", f.ended("who was alone", flush), nil)
	f.wantErr("who stood before the gate", f.ended("who stood before the gate", behind), nil)
	f.want("k", absent)
	f.want("other", "new")
	if f.s.Size(0) != 1 {
		f.Errorf("%d keys, want 1", f.s.Size(0))
	}
}

func testGateCancelled(f *fixture) {
	holder := f.lock("k")
	done := make(chan struct{})
	alone := f.goAlone(&store.Wait{Done: done}, func(tx *store.Tx) { tx.Rollback() })
	f.waits("who closes the gate", alone)
	behind := f.go1(nil, []string{"other"}, func(tx *store.Tx) { tx.Rollback() })
	f.waits("who stands before the gate", behind)
	close(done)
	f.wantErr("who closes the gate", f.ended("who closes the gate", alone), store.ErrCancelled)
	f.wantErr("who stands before the gate", f.ended("who stands before the gate", behind), nil)
	f.set("other", "v")
	holder.Rollback()
	f.alone().Rollback()
}

func testGateBusy(f *fixture) {
	holder := f.lock("k")
	alone := f.goAlone(&store.Wait{Busy: 5 * time.Second}, func(tx *store.Tx) { tx.Rollback() })
	f.waits("who closes the gate", alone)
	time.Sleep(6 * time.Second)
	f.wantErr("who closes the gate", f.ended("who closes the gate", alone), store.ErrBusy)
	f.set("other", "v") // the gate is open again
	holder.Rollback()

	// Who runs alone and is slow keeps all others out.
	only := f.alone()
	behind := f.go1(&store.Wait{Busy: 5 * time.Second}, []string{"k"}, func(tx *store.Tx) { tx.Rollback() })
	f.waits("who stands before the gate", behind)
	time.Sleep(6 * time.Second)
	f.wantErr("who stands before the gate", f.ended("who stands before the gate", behind), store.ErrBusy)
	why := fmt.Errorf("it counts sand: %w", store.ErrBusy)
	only.BusyAs(why)
	late := f.go1(&store.Wait{Busy: 5 * time.Second}, []string{"k"}, func(tx *store.Tx) { tx.Rollback() })
	time.Sleep(time.Millisecond)
	f.wantErr("who came when the one inside was slow already", f.ended("who came late", late), why)
	only.Rollback()
	f.alone().Rollback()
}

// testGateBesideSlow: who wants to be alone beside a slow transaction waits for it
// with the gate open, so that nobody else has to.
func testGateBesideSlow(f *fixture) {
	f.set("k", "v")
	holder := f.lock("k")
	at(holder, "k").SetString([]byte("held"), store.NoTTL)
	flush := f.goAlone(nil, func(tx *store.Tx) {
		if got := show(at(tx, "k")); got != "held" {
			f.Errorf("who is alone sees %q, want %q", got, "held")
		}
		tx.FlushAll()
		f.commit(tx)
	})
	f.waits("who wants to be alone", flush)
	behind := f.go1(nil, []string{"other"}, func(tx *store.Tx) {
		at(tx, "other").SetString([]byte("new"), store.NoTTL)
		f.commit(tx)
	})
	f.waits("who stands before the gate", behind)
	time.Sleep(gatePatience)
	f.wantErr("who stood before the gate", f.ended("who stood before the gate", behind), nil)
	for range 100 {
		f.want("other", "new")
		f.lock("another").Rollback()
		time.Sleep(gatePatience)
	}
	f.waits("who wants to be alone", flush)
	f.commit(holder)
	f.wantErr("who wanted to be alone", f.ended("who wanted to be alone", flush), nil)
	f.want("k", absent)
	f.want("other", absent)
}

func testGateBesideSlowBusy(f *fixture) {
	holder := f.lock("k")
	time.Sleep(time.Hour) // nobody knew
	w := &store.Wait{Busy: 5 * time.Second}
	first := f.goAlone(w, func(tx *store.Tx) { tx.Rollback() })
	time.Sleep(2 * time.Second)
	second := f.goAlone(w, func(tx *store.Tx) { tx.Rollback() })
	patient := f.goAlone(nil, func(tx *store.Tx) { tx.Rollback() })
	time.Sleep(2900 * time.Millisecond)
	f.waits("who has waited for 4.9 s", first)
	time.Sleep(200 * time.Millisecond)
	f.wantErr("who has waited for 5.1 s", f.ended("who has waited for 5.1 s", first), store.ErrBusy)
	f.set("other", "v")
	time.Sleep(2 * time.Second)
	f.wantErr("who came later", f.ended("who came later", second), store.ErrBusy)
	f.waits("who has patience", patient)
	why := fmt.Errorf("it counts sand: %w", store.ErrBusy)
	holder.BusyAs(why)
	third := f.goAlone(w, func(tx *store.Tx) { tx.Rollback() })
	time.Sleep(5 * time.Second)
	f.wantErr("who is told why", f.ended("who is told why", third), why)
	holder.BusyAs(nil)
	done := make(chan struct{})
	last := f.goAlone(&store.Wait{Done: done}, func(tx *store.Tx) { tx.Rollback() })
	f.waits("who stands behind the patient one", last)
	close(done)
	f.wantErr("who was killed there", f.ended("who was killed there", last), store.ErrCancelled)
	f.set("other", "v")
	holder.Rollback()
	f.wantErr("who has patience", f.ended("who has patience", patient), nil)
	f.alone().Rollback()

	// It is known by now how long the transaction has been in the way.
	holder = f.lock("k")
	first = f.goAlone(w, func(tx *store.Tx) { tx.Rollback() })
	time.Sleep(6 * time.Second)
	f.wantErr("who has waited for 6 s", f.ended("who has waited for 6 s", first), store.ErrBusy)
	late := f.goAlone(w, func(tx *store.Tx) { tx.Rollback() })
	time.Sleep(time.Millisecond)
	f.wantErr("who came when it was known to be slow", f.ended("who came late", late), store.ErrBusy)
	holder.Rollback()
	f.alone().Rollback()
}

func testGateBesideSlowCancelled(f *fixture) {
	holder := f.lock("k")
	for i := range 3 { // the second finds that the first has tried
		done := make(chan struct{})
		killed := f.goAlone(&store.Wait{Done: done}, func(tx *store.Tx) { tx.Rollback() })
		f.waits("who wants to be alone", killed)
		tx, open := f.tryLatch("other")
		if open {
			tx.Rollback()
		}
		if open != (i > 0) {
			f.Errorf("try %d: the gate is open: %v", i, open)
		}
		if i != 0 {
			time.Sleep(gatePatience)
		}
		close(done)
		f.wantErr("who was killed", f.ended("who was killed", killed), store.ErrCancelled)
		f.set("other", "v")
	}
	ends := f.goAlone(nil, func(tx *store.Tx) { tx.Rollback() })
	f.s.Close()
	f.wantErr("who waits when the store closes", f.ended("who waits when the store closes", ends), store.ErrCancelled)
	holder.Rollback()
}

// testGateBesideMany: after the first slow transaction another is in the way; who
// wants to be alone tries again when the first has ended, and no sooner.
func testGateBesideMany(f *fixture) {
	first := f.lock("a")
	alone := f.goAlone(nil, func(tx *store.Tx) { tx.Rollback() })
	f.waits("who wants to be alone", alone)
	time.Sleep(gatePatience)
	second := f.lock("b")
	time.Sleep(time.Second)
	third := f.lock("c")
	third.Rollback() // it came and went without a try
	f.set("other", "v")
	first.Rollback()
	f.waits("who wants to be alone", alone)
	time.Sleep(gatePatience)
	f.set("other", "v")
	f.waits("who wants to be alone", alone)
	second.Rollback()
	f.wantErr("who wanted to be alone", f.ended("who wanted to be alone", alone), nil)
	f.alone().Rollback()
}

func testGatePhases(f *fixture) {
	const n = 5
	var order []string
	enter := make([]chan struct{}, n)
	outs := make([]<-chan error, 0, 2*n)
	only := f.alone()
	for i := range n {
		enter[i] = make(chan struct{})
		outs = append(outs, f.goAlone(nil, func(tx *store.Tx) {
			order = append(order, fmt.Sprint("alone ", i))
			<-enter[i]
			f.commit(tx)
		}))
		synctest.Wait()
	}
	for i := range n {
		outs = append(outs, f.go1(nil, []string{"k"}, func(tx *store.Tx) {
			order = append(order, "let in")
			f.commit(tx)
		}))
		if i == 0 {
			only.Rollback()
		} else {
			close(enter[i-1])
		}
		synctest.Wait()
	}
	close(enter[n-1])
	for _, out := range outs {
		f.wantErr("one of them", f.ended("one of them", out), nil)
	}
	var want []string
	for i := range n {
		want = append(want, "let in", fmt.Sprint("alone ", i))
	}
	equal(f, "the order", order, want)
}

// testGateStress has all sorts of transactions run beside those that want to be
// alone, some of them for longer than the gate stays closed: nobody else may be
// inside with one who is alone, and all of them come to their end.
func testGateStress(f *fixture) {
	const rounds = 60
	var inside, waiting atomic.Int64
	alone := false // of whoever is alone; others read it
	var all sync.WaitGroup
	among := func() {
		inside.Add(1)
		if alone {
			f.Error("a transaction runs beside one that is alone")
		}
		inside.Add(-1)
	}
	locked := func(tx *store.Tx, i int) {
		name := []byte(fmt.Sprint("k", i%3))
		tx.Begin()
		tx.Add(0, name)
		if err := tx.Acquire(nil); err != nil {
			f.Errorf("Acquire: %v", err)
			return
		}
		among()
		if i%20 == 0 {
			time.Sleep(30 * time.Millisecond)
		}
		tx.Key(0, name).SetString([]byte("v"), store.NoTTL)
		tx.Key(0, name).Signal()
		among()
		f.commit(tx)
	}
	for g := range 4 {
		all.Go(func() {
			tx := f.s.NewTx()
			for i := range rounds {
				locked(tx, i*7+g)
			}
		})
		all.Go(func() { // short ones hand keys over too
			tx := f.s.NewTx()
			for i := range 20 * rounds {
				name := []byte(fmt.Sprint("k", i%3))
				tx.Begin()
				tx.Add(0, name)
				if !tx.AcquireFast() {
					tx.Rollback()
					runtime.Gosched()
					continue
				}
				among()
				tx.Key(0, name).SetString([]byte("v"), store.NoTTL)
				f.commit(tx)
			}
		})
	}
	stop := make(chan struct{})
	var blocked sync.WaitGroup
	for g := range 3 {
		blocked.Go(func() {
			name := []byte(fmt.Sprint("k", g))
			tx := f.s.NewTx()
			for {
				waiting.Add(1)
				err := tx.Await(0, [][]byte{name}, &store.Wait{Done: stop}, func() (store.Outcome, error) {
					among()
					k := tx.Key(0, name)
					if !k.Exists() {
						return store.NotYet, nil
					}
					k.Delete()
					return store.Done, nil
				})
				waiting.Add(-1)
				if err != nil {
					f.wantErr("a blocked command", err, store.ErrCancelled)
					return
				}
			}
		})
	}
	for range 2 {
		all.Go(func() {
			tx := f.s.NewTx()
			for i := range rounds / 2 {
				tx.Begin()
				w := &store.Wait{}
				if i%5 == 0 {
					w.Busy = 5 * time.Millisecond
				}
				if err := tx.AcquireAll(w); err != nil {
					if w.Busy == 0 || err != store.ErrBusy {
						f.Errorf("AcquireAll: %v", err)
					}
					continue
				}
				alone = true
				if n := inside.Load(); n != 0 {
					f.Errorf("%d transactions run beside one that is alone", n)
				}
				tx.FlushAll()
				alone = false
				f.commit(tx)
			}
		})
	}
	all.Wait()
	close(stop)
	blocked.Wait()
	if n := waiting.Load(); n != 0 {
		f.Errorf("%d blocked commands have not ended", n)
	}
	f.alone().Rollback()
}

func testTwoAlone(f *fixture) {
	first := f.alone()
	second := f.goAlone(nil, func(tx *store.Tx) {
		at(tx, "k").Append([]byte("2"))
		f.commit(tx)
	})
	f.waits("the second", second)
	at(first, "k").SetString([]byte("1"), store.NoTTL)
	f.commit(first)
	f.wantErr("the second", f.ended("the second", second), nil)
	f.want("k", "12")
}
