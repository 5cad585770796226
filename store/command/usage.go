package command

import (
	"math/bits"
	"sync/atomic"
)

// Usage counts the calls of one command for INFO commandstats and LATENCY
// HISTOGRAM.
type Usage struct {
	Calls, Nanos     atomic.Int64
	Rejected, Failed atomic.Int64
	// Histogram counts calls by duration: bucket i holds those below 2^i
	// microseconds... of 1024 ns each.
	Histogram [histBuckets]atomic.Int64
}

const histBuckets = 32

// Reset sets all to zero.
func (u *Usage) Reset() {
	u.Calls.Store(0)
	u.Nanos.Store(0)
	u.Rejected.Store(0)
	u.Failed.Store(0)
	for i := range u.Histogram {
		u.Histogram[i].Store(0)
	}
}

// ledger gathers the usage of commands, so that a pipeline costs one visit to the
// shared counters for each command in it, and none of what was undone.
type ledger struct {
	accounts []account
	last     int      // the account found last
	open     bool     // something was looked up since the ledger was emptied
	errors   []string // replies that are to be told of, maxErrors at most
}

// account is the usage of one command.
type account struct {
	spec *Spec
	// typical is how long a brief call took when it was measured last. Within a
	// script not every call is measured: what was not counts as typical.
	typical int64
	since   int // calls in scripts since then
	// pending are the calls of the running transaction that count as typical, settled
	// those of transactions that have ended. Neither is among calls.
	pending, settled int64

	calls    int64
	nanos    int64
	failed   int64
	rejected int64
	home     int    // where moveTo found its account in the other ledger last
	used     uint32 // buckets that are not zero
	hist     [histBuckets]uint32
}

// find returns the place of a command's account, which stays until the ledger is
// flushed.
func (l *ledger) find(s *Spec) int {
	l.open = true
	if l.last < len(l.accounts) && l.accounts[l.last].spec == s {
		return l.last
	}
	for i := range l.accounts {
		if l.accounts[i].spec == s {
			l.last = i
			return i
		}
	}
	l.last = len(l.accounts)
	l.accounts = append(l.accounts, account{spec: s})
	return l.last
}

func (a *account) add(nanos int64) { a.addSome(nanos, 1) }

// addSome enters n calls that took so long each.
func (a *account) addSome(nanos, n int64) {
	if n == 0 {
		return
	}
	a.calls += n
	a.nanos += n * nanos
	b := bucket(nanos)
	a.hist[b] += uint32(n)
	a.used |= 1 << b
}

// bucket is where a call that took so long stands in a histogram.
func bucket(nanos int64) int { return min(bits.Len64(uint64(nanos)>>10), histBuckets-1) }

// measureEvery is how many calls of a command in scripts share one measurement: to
// read the clock twice takes as long as a quick command.
const measureEvery = 16

// due tells whether the next call is to be measured.
func (a *account) due() bool { return a.since == 0 }

func (a *account) measured(nanos int64) {
	a.publish()
	a.addSome(a.typical, a.pending)
	a.typical, a.since, a.pending = nanos, 1, 0
	a.add(nanos)
}

func (a *account) estimated() {
	if a.since++; a.since == measureEvery {
		a.since = 0
	}
	a.pending++
}

// publish hands the settled calls to the command's usage.
func (a *account) publish() {
	if n := a.settled; n != 0 {
		u := &a.spec.usage
		u.Calls.Add(n)
		u.Nanos.Add(n * a.typical)
		u.Histogram[bucket(a.typical)].Add(n)
		a.settled = 0
	}
}

// forget drops what was counted.
func (l *ledger) forget() {
	for i := range l.accounts {
		l.accounts[i].empty()
	}
	l.trim()
}

func (a *account) empty() {
	for a.used != 0 {
		b := bits.TrailingZeros32(a.used)
		a.hist[b] = 0
		a.used &^= 1 << b
	}
	a.calls, a.nanos, a.failed, a.rejected, a.pending = 0, 0, 0, 0, 0
}

// moveTo adds what was counted to another ledger and empties this one, in which
// only settled calls stay.
func (l *ledger) moveTo(to *ledger) {
	for i := range l.accounts {
		a := &l.accounts[i]
		a.settled += a.pending
		a.pending = 0
		if a.calls|a.rejected|a.failed == 0 {
			continue
		}
		if a.home >= len(to.accounts) || to.accounts[a.home].spec != a.spec {
			a.home = to.find(a.spec)
		}
		b := &to.accounts[a.home]
		b.calls += a.calls
		b.nanos += a.nanos
		b.failed += a.failed
		b.rejected += a.rejected
		b.used |= a.used
		for used := a.used; used != 0; used &= used - 1 {
			i := bits.TrailingZeros32(used) % histBuckets
			b.hist[i] += a.hist[i]
			a.hist[i] = 0
		}
		a.used, a.calls, a.nanos, a.failed, a.rejected = 0, 0, 0, 0, 0
	}
	to.open = true
	l.trim()
}

// flush adds what was counted to the commands' usage and empties the ledger.
func (l *ledger) flush() {
	for i := range l.accounts {
		a := &l.accounts[i]
		if a.calls|a.rejected|a.failed == 0 {
			continue
		}
		u := a.spec.Usage()
		u.Calls.Add(a.calls)
		u.Nanos.Add(a.nanos)
		if a.failed|a.rejected != 0 {
			u.Failed.Add(a.failed)
			u.Rejected.Add(a.rejected)
		}
		for used := a.used; used != 0; used &= used - 1 {
			b := bits.TrailingZeros32(used)
			u.Histogram[b].Add(int64(a.hist[b]))
		}
		a.empty()
	}
	l.trim()
}

// publish hands the settled calls of all commands to their usage.
func (l *ledger) publish() {
	for i := range l.accounts {
		l.accounts[i].publish()
	}
}

// What an idle ledger keeps at most, and what waits in one.
const (
	maxAccounts = 8
	maxErrors   = 64
)

// trim ends the emptying of a ledger.
func (l *ledger) trim() {
	l.open = false
	if len(l.accounts) > maxAccounts {
		l.publish()
		l.accounts, l.last = nil, 0
	}
	if len(l.errors) != 0 {
		clear(l.errors)
		l.errors = l.errors[:0]
	}
}

// BeginBatch stamps the time from which the next command's duration counts.
func (s *Session) BeginBatch() {
	s.Measure()
	s.run = run{}
	s.stamp = monotonic()
}

// FlushStats hands the session's counts to the shared counters. The proxy does
// so before a batch's replies leave.
func (s *Session) FlushStats() {
	s.Measure()
	s.rest()
	s.inner.publish()
	s.acc.flush()
	s.Tx.FlushStats()
}
