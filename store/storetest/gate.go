package storetest

import (
	"time"

	"github.com/latchkey-proxy/latchkey/store"
)

var gateTests = []test{
	{name: "who is alone waits for all others, and they for it", run: testGate},
	{name: "who gives up closing the gate opens it", run: testGateCancelled},
	{name: "who stands at the gate for too long is told that it is busy", run: testGateBusy},
	{name: "two who want to be alone take turns", run: testTwoAlone},
}

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

	only := f.alone()
	behind := f.go1(&store.Wait{Busy: 5 * time.Second}, []string{"k"}, func(tx *store.Tx) { tx.Rollback() })
	f.waits("who stands before the gate", behind)
	time.Sleep(6 * time.Second)
	f.wantErr("who stands before the gate", f.ended("who stands before the gate", behind), store.ErrBusy)
	only.Rollback()
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
