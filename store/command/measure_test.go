package command

import (
	"math/rand/v2"
	"testing"

	"github.com/latchkey-proxy/latchkey/store"
)

// TestDivideAgainstMeasured divides runs at random, and holds what is counted
// against a ledger into which each run's time was entered at once.
func TestDivideAgainstMeasured(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	spec := &Spec{Name: "get", Brief: true}
	var s Session
	var calls, nanos int64
	s.divide(spec, 500, true)
	calls, nanos = 1, 500
	for range 10_000 {
		s.run.spec, s.run.calls = spec, rng.IntN(runMost)
		n, brief := int64(s.run.calls)+1, rng.IntN(10) != 0
		took := n * (100 + rng.Int64N(900))
		if rng.IntN(20) == 0 {
			took += quickly + rng.Int64N(20*quickly)
		}
		last := s.divide(spec, took, brief)
		calls, nanos = calls+n, nanos+took
		if s.run != (run{spec: spec}) {
			t.Fatalf("after a run of %d there is still %+v", n, s.run)
		}
		if last < took/n || last > took {
			t.Fatalf("of %d ns for %d calls %d are the last one's", took, n, last)
		}
		if took >= quickly+n*1000 && last < took-n*1000 {
			t.Fatalf("of %d ns for %d calls, more than brief ones take, only %d are the last one's", took, n, last)
		}
	}
	a := &s.acc.accounts[s.acc.find(spec)]
	if a.calls != calls || a.nanos != nanos {
		t.Errorf("%d calls and %d ns were counted, want %d and %d", a.calls, a.nanos, calls, nanos)
	}
	inHist := int64(0)
	for _, n := range a.hist {
		inHist += int64(n)
	}
	if inHist != calls {
		t.Errorf("the histogram holds %d calls of %d", inHist, calls)
	}
}

// Waits ends the run of those before, and the command that waits is measured by
// itself.
func TestWaitsEndsTheRun(t *testing.T) {
	spec := &Spec{Name: "get", Brief: true}
	var s Session
	s.BeginBatch()
	s.run = run{spec: spec, calls: 3}
	s.Waits()
	if s.run != (run{spec: spec, alone: true}) {
		t.Errorf("while a command waits the run is %+v", s.run)
	}
	if a := &s.acc.accounts[s.acc.find(spec)]; a.calls != 3 {
		t.Errorf("%d calls were counted before the wait, want 3", a.calls)
	}
	s.Measure()
	if !s.run.alone {
		t.Error("the command that waits is not measured by itself any more")
	}
}

// A run that was delayed is told of as its last command, also at the end of a
// batch.
func TestDelayedRunsAreTold(t *testing.T) {
	spec := &Spec{Name: "get", Brief: true}
	var told []int64
	e := &Engine{Slow: func(_ *Call, nanos int64) { told = append(told, nanos) }}
	e.SlowAfter.Store(5 * quickly)
	var s Session
	s.BeginBatch()
	s.acc.accounts[s.acc.find(spec)].typical = 1000
	s.run = run{spec: spec, calls: 4}
	s.stamp -= 10 * quickly
	e.EndRun(&Call{S: &s, Spec: spec})
	if len(told) != 1 || told[0] < 9*quickly {
		t.Errorf("of a run of 10 ms was told %v", told)
	}
	e.EndRun(&Call{S: &s, Spec: spec})
	if len(told) != 1 {
		t.Errorf("a run was told of twice: %v", told)
	}
}

// Calls in scripts that are not measured count as the last one that was: those of
// transactions that have ended, and once each, whatever becomes of the running one.
func TestEstimatedCallsAreCounted(t *testing.T) {
	get, del := &Spec{Name: "get"}, &Spec{Name: "del"}
	var s Session
	e := &Engine{}
	of := func(spec *Spec) *account { return &s.inner.accounts[s.inner.find(spec)] }
	of(get).measured(2000)
	for range 3 {
		of(get).estimated()
	}
	of(get).failed++
	e.settle(&s)
	for range 5 { // of a transaction that runs again
		of(get).estimated()
		of(del).estimated()
	}
	of(del).failed++
	s.inner.forget()
	of(del).estimated()
	of(del).failed++
	e.settle(&s)
	of(get).estimated()
	of(get).measured(9000)
	of(get).estimated()
	e.settle(&s)
	for i := range maxAccounts { // which a session does not keep
		of(&Spec{Name: string(rune('a' + i))}).estimated()
	}
	e.settle(&s)
	s.Tx = &store.Tx{}
	s.FlushStats()
	for _, want := range []struct {
		spec                 *Spec
		calls, nanos, failed int64
	}{{get, 7, 5*2000 + 2*9000, 1}, {del, 1, 0, 1}} {
		u := want.spec.Usage()
		inHist := int64(0)
		for i := range u.Histogram {
			inHist += u.Histogram[i].Load()
		}
		if u.Calls.Load() != want.calls || u.Nanos.Load() != want.nanos || u.Failed.Load() != want.failed || inHist != want.calls {
			t.Errorf("%s has %d calls, %d ns, %d failed and %d in the histogram, want %+v", want.spec.Name, u.Calls.Load(), u.Nanos.Load(), u.Failed.Load(), inHist, want)
		}
	}
	s.FlushStats()
	if n := get.Usage().Calls.Load(); n != 7 {
		t.Errorf("flushed again, get has %d calls, want 7", n)
	}
}
