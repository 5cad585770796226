package store

import (
	"sync/atomic"
	"time"
)

// Clock is the store's only source of time. NowMilli is the time that verdicts
// on expiry use, in Unix milliseconds; on one boot of the machine it must never
// step, whatever happens to the wall clock.
type Clock interface {
	NowMilli() int64
	// NowMicro is the same clock in microseconds (TIME).
	NowMicro() int64
}

// SystemClock is the wall clock as it was when the clock was made, moved on by
// the time elapsed since, suspension of the machine included. A step of the
// wall clock therefore neither frees nor prolongs a lock.
//
// The elapsed time is the runtime's monotonic clock, which is cheap to read but
// stops while the machine sleeps, plus a correction that Correct refreshes from
// the system's clock that does not stop: on Linux CLOCK_BOOTTIME. Where there is
// none, time asleep does not count, so that a lock may be held longer than was
// asked for, but never shorter.
type SystemClock struct {
	start     time.Time
	wallMicro int64
	bootBase  int64        // bootNano less monotonic time at start, ns
	boots     bool         // bootBase is known
	asleep    atomic.Int64 // ns slept since start
}

// NewSystemClock returns a clock that begins at the present wall time.
func NewSystemClock() *SystemClock {
	now := time.Now()
	c := &SystemClock{start: now, wallMicro: now.UnixMicro()}
	c.bootBase, c.boots = bootNano()
	return c
}

// Correct takes the time that the machine slept into account. Call it a few
// times a second.
func (c *SystemClock) Correct() {
	boot, ok := bootNano()
	if !ok || !c.boots {
		return
	}
	slept := (boot - c.bootBase) - int64(time.Since(c.start))
	// The two clocks are not read at one instant: below a millisecond it is noise.
	if slept-c.asleep.Load() > int64(time.Millisecond) {
		c.asleep.Store(slept)
	}
}

// NowMicro implements Clock.
func (c *SystemClock) NowMicro() int64 {
	return c.wallMicro + (int64(time.Since(c.start))+c.asleep.Load())/1000
}

// NowMilli implements Clock.
func (c *SystemClock) NowMilli() int64 { return c.NowMicro() / 1000 }

// ManualClock is a Clock for tests: it stands still until it is moved.
type ManualClock struct{ micro atomic.Int64 }

// NewManualClock returns a clock that shows milli.
func NewManualClock(milli int64) *ManualClock {
	c := &ManualClock{}
	c.micro.Store(milli * 1000)
	return c
}

// Advance moves the clock by d.
func (c *ManualClock) Advance(d time.Duration) { c.micro.Add(d.Microseconds()) }

// NowMicro implements Clock.
func (c *ManualClock) NowMicro() int64 { return c.micro.Load() }

// NowMilli implements Clock.
func (c *ManualClock) NowMilli() int64 { return c.micro.Load() / 1000 }
