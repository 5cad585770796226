package storetest

import (
	"fmt"
	"strings"
	"testing/synctest"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
)

var waitingTests = []test{
	{name: "a locked key is waited for, other keys are not", run: testLockedKeyWaits},
	{name: "waiters are served first come first served", run: testFIFO},
	{name: "a lock is handed over, nobody takes it in between", run: testHandOver},
	{name: "who is cancelled leaves the queue", run: testCancel},
	{name: "who was cancelled before its turn came gets nothing", run: testCancelledFirst},
	{name: "who has waited for a slow owner is told that it is busy", run: testBusy},
	{name: "an owner that waits for other keys is not slow", run: testBusyCountsFromAllKeys},
	{name: "closing the store ends all waiting", run: testClose},
	{name: "unpark is called when the wait has ended", run: testParked},
	{name: "a failed acquire lets go of what it held", run: testFailedAcquire},
}

// go1 acquires the keys in another goroutine and then calls run, which must end
// the transaction. The result is received from the channel.
func (f *fixture) go1(w *store.Wait, keys []string, run func(tx *store.Tx)) <-chan error {
	out := make(chan error, 1)
	go func() {
		tx := f.s.NewTx()
		err := lockIn(tx, w, keys...)
		if err == nil {
			run(tx)
		}
		out <- err
	}()
	synctest.Wait()
	return out
}

// waits tells whether out has nothing yet, though nothing can go on.
func (f *fixture) waits(what string, out <-chan error) {
	f.Helper()
	synctest.Wait()
	select {
	case err := <-out:
		f.Fatalf("%s did not wait (%v)", what, err)
	default:
	}
}

// ended receives from out, which must have something.
func (f *fixture) ended(what string, out <-chan error) error {
	f.Helper()
	synctest.Wait()
	select {
	case err := <-out:
		return err
	default:
		f.Fatalf("%s waits still", what)
		return nil
	}
}

func testLockedKeyWaits(f *fixture) {
	holder := f.lock("k")
	at(holder, "k").SetString([]byte("held"), store.NoTTL)
	if _, ok := f.tryLatch("k"); ok {
		f.Fatal("a short transaction got a key that is locked")
	}
	if _, ok := f.tryLatch("a", "k"); ok {
		f.Fatal("a short transaction got two keys of which one is locked")
	}
	out := f.go1(nil, []string{"k"}, func(tx *store.Tx) {
		at(tx, "k").Append([]byte("+"))
		tx.Commit()
	})
	for i := range 2000 { // many on the same shard
		f.set(fmt.Sprintf("other%d", i), "v")
	}
	f.waits("who wants a locked key", out)
	f.commit(holder)
	f.wantErr("the waiter", f.ended("the waiter", out), nil)
	f.want("k", "held+")
	if n := f.s.Counter.LockWaits.Load(); n != 1 {
		f.Errorf("%d waits were counted, want 1", n)
	}
}

func testFIFO(f *fixture) {
	holder := f.lock("k")
	var order []string
	var outs []<-chan error
	for i := range 6 {
		outs = append(outs, f.go1(nil, []string{"k"}, func(tx *store.Tx) {
			order = append(order, fmt.Sprint(i)) // the key's lock guards it
			tx.Rollback()
		}))
	}
	if n := f.s.Counter.LockWaiting.Load(); n != 6 {
		f.Errorf("%d transactions are waiting, want 6", n)
	}
	holder.Rollback()
	for i, out := range outs {
		f.wantErr(fmt.Sprint("waiter ", i), f.ended("a waiter", out), nil)
	}
	if got := strings.Join(order, " "); got != "0 1 2 3 4 5" {
		f.Errorf("served in the order %s, want that of their coming", got)
	}
}

func testHandOver(f *fixture) {
	holder := f.lock("k")
	release := make(chan struct{})
	out := f.go1(nil, []string{"k"}, func(tx *store.Tx) {
		<-release
		tx.Rollback()
	})
	f.commit(holder)
	if _, ok := f.tryLatch("k"); ok {
		f.Fatal("a short transaction took a key that a waiter had come for before")
	}
	late := f.go1(nil, []string{"k"}, func(tx *store.Tx) { tx.Rollback() })
	f.waits("who came later", late)
	close(release)
	f.wantErr("the waiter", f.ended("the waiter", out), nil)
	f.wantErr("who came later", f.ended("who came later", late), nil)
	if _, ok := f.tryLatch("k"); !ok {
		f.Error("the key is locked though nobody holds it")
	}
}

func testCancel(f *fixture) {
	holder := f.lock("k")
	done := make(chan struct{})
	rollback := func(tx *store.Tx) { tx.Rollback() }
	first := f.go1(nil, []string{"k"}, rollback)
	second := f.go1(&store.Wait{Done: done}, []string{"a", "k", "z"}, rollback)
	third := f.go1(nil, []string{"k"}, rollback)
	close(done)
	f.wantErr("who was cancelled", f.ended("who was cancelled", second), store.ErrCancelled)
	f.set("a", "v") // and let go of what it had
	f.set("z", "v")
	f.waits("the first", first)
	f.waits("the third", third)
	holder.Rollback()
	f.wantErr("the first", f.ended("the first", first), nil)
	f.wantErr("the third", f.ended("the third", third), nil)
	if n := f.s.Counter.LockWaiting.Load(); n != 0 {
		f.Errorf("%d transactions count as waiting, want 0", n)
	}
}

func testBusy(f *fixture) {
	holder := f.lock("k")
	out := f.go1(&store.Wait{Busy: 5 * time.Second}, []string{"k"}, func(tx *store.Tx) { tx.Rollback() })
	time.Sleep(4 * time.Second)
	f.waits("who has waited for 4 s", out)
	time.Sleep(2 * time.Second)
	f.wantErr("who has waited for 6 s", f.ended("who has waited for 6 s", out), store.ErrBusy)
	late := f.go1(&store.Wait{Busy: 5 * time.Second}, []string{"k"}, func(tx *store.Tx) { tx.Rollback() })
	time.Sleep(time.Second)
	f.wantErr("who came when the owner was slow already", f.ended("who came late", late), store.ErrBusy)
	why := fmt.Errorf("it counts sand: %w", store.ErrBusy)
	holder.BusyAs(why)
	told := f.go1(&store.Wait{Busy: 5 * time.Second}, []string{"k"}, func(tx *store.Tx) { tx.Rollback() })
	f.wantErr("who is told why", f.ended("who is told why", told), why)
	holder.Rollback()
	holder.Begin()
	holder.Add(0, []byte("k"))
	f.wantErr("Acquire", holder.Acquire(nil), nil)
	last := f.go1(&store.Wait{Busy: 5 * time.Second}, []string{"k"}, func(tx *store.Tx) { tx.Rollback() })
	time.Sleep(6 * time.Second)
	f.wantErr("who waits for the next transaction", f.ended("who waits for the next transaction", last), store.ErrBusy)
	holder.Rollback()
}

func testBusyCountsFromAllKeys(f *fixture) {
	f.busyCountsFromAllKeys("a", "b")
	f.busyCountsFromAllKeys("b", "a")
}

// busyCountsFromAllKeys checks that who holds a and waits for held is not slow,
// if a comes first in the order of locks, which differs from store to store.
func (f *fixture) busyCountsFromAllKeys(a, held string) {
	holder := f.lock(held)
	between := f.go1(nil, []string{a, held}, func(tx *store.Tx) { tx.Rollback() })
	if tx, ok := f.tryLatch(a); ok {
		tx.Rollback()
		f.commit(holder)
		f.wantErr("the owner", f.ended("the owner", between), nil)
		return
	}
	out := f.go1(&store.Wait{Busy: time.Second}, []string{a}, func(tx *store.Tx) { tx.Rollback() })
	time.Sleep(10 * time.Second)
	f.waits("who waits for a key whose owner waits itself", out)
	holder.Rollback()
	f.wantErr("the owner", f.ended("the owner", between), nil)
	f.wantErr("the waiter", f.ended("the waiter", out), nil)
}

func testClose(f *fixture) {
	holder := f.lock("k")
	key := f.go1(nil, []string{"k"}, func(tx *store.Tx) { tx.Rollback() })
	gate := f.goAlone(nil, func(tx *store.Tx) { tx.Rollback() })
	f.waits("who closes the gate", gate)
	behind := f.go1(nil, []string{"other"}, func(tx *store.Tx) { tx.Rollback() })
	f.waits("who stands before the gate", behind)
	f.s.Close()
	f.wantErr("who waits for a key", f.ended("who waits for a key", key), store.ErrCancelled)
	f.wantErr("who closes the gate", f.ended("who closes the gate", gate), store.ErrCancelled)
	if err := f.ended("who stands before the gate", behind); err != nil && err != store.ErrCancelled {
		f.Errorf("who stands before the gate: %v", err)
	}
	f.commit(holder)
}

func testParked(f *fixture) {
	var calls []string
	w := &store.Wait{Parked: func(blocked bool) func() {
		calls = append(calls, fmt.Sprint("parked ", blocked))
		return func() { calls = append(calls, "unparked") }
	}}
	holder := f.lock("k")
	out := f.go1(w, []string{"a", "k"}, func(tx *store.Tx) { tx.Rollback() })
	equal(f, "calls while it waits", calls, []string{"parked false"})
	holder.Rollback()
	f.wantErr("the waiter", f.ended("the waiter", out), nil)
	equal(f, "calls", calls, []string{"parked false", "unparked"})
}

func testFailedAcquire(f *fixture) {
	holder := f.lock("k5")
	done := make(chan struct{})
	var keys []string
	for i := range 10 {
		keys = append(keys, fmt.Sprint("k", i))
	}
	out := f.go1(&store.Wait{Done: done}, keys, func(tx *store.Tx) { tx.Rollback() })
	f.waits("who wants all", out)
	close(done)
	f.wantErr("who wants all", f.ended("who wants all", out), store.ErrCancelled)
	for _, k := range keys {
		if k != "k5" {
			f.set(k, "v")
		}
	}
	holder.Rollback()
	f.set("k5", "v")
	f.alone().Rollback() // and the gate counts nobody
}

// Both happen before the waiter runs again: it was killed, and got the key.
func testCancelledFirst(f *fixture) {
	for range 50 { // the order of a select is not to be relied on
		holder := f.lock("k")
		done, result := make(chan struct{}), make(chan error, 1)
		tx := f.s.NewTx()
		go func() { result <- lockIn(tx, &store.Wait{Done: done}, "k") }()
		f.waits("the lock", result)
		close(done)
		holder.Rollback()
		f.wantErr("a wait that was cancelled before the key was free", f.ended("the lock", result), store.ErrCancelled)
	}
	f.set("k", "v") // it was passed on
}
