package command

import (
	"math/rand/v2"
	"testing"
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
