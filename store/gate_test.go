package store

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// A short transaction that was there before the gate closed may hand its key to
// a blocked command: who closes the gate must wait for that one too.
func TestGateWaitsForHandOverByShort(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	name := []byte("k")
	var alone, together atomic.Bool
	blocked := make(chan error, 1)
	go func() {
		tx := s.NewTx()
		blocked <- tx.Await(0, [][]byte{name}, nil, func() (Outcome, error) {
			if !tx.Key(0, name).Exists() {
				return NotYet, nil
			}
			for range 10_000 {
				if alone.Load() {
					together.Store(true)
				}
				runtime.Gosched()
			}
			return Done, nil
		})
	}()
	for s.Counter.BlockedClients.Load() == 0 {
		runtime.Gosched()
	}
	tx := s.NewTx()
	tx.Begin()
	tx.Add(0, name)
	for !tx.AcquireFast() { // until the blocked command has let go
		runtime.Gosched()
	}
	closer := make(chan error, 1)
	go func() {
		tx := s.NewTx()
		tx.Begin()
		err := tx.AcquireAll(nil)
		alone.Store(true)
		tx.Rollback()
		closer <- err
	}()
	for !s.gate.closed.Load() {
		runtime.Gosched()
	}
	for range 1000 { // it goes as far as it can
		runtime.Gosched()
	}
	k := tx.Key(0, name)
	k.SetString([]byte("v"), NoTTL)
	k.Signal()
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-blocked; err != nil {
		t.Error(err)
	}
	if err := <-closer; err != nil {
		t.Error(err)
	}
	if together.Load() {
		t.Error("a transaction was alone while a blocked command ran")
	}
}
