package proxy

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// RedisVersion is the version of Redis whose commands latchkey answers as.
const RedisVersion = "7.2.6"

// stats are the counters of INFO that belong to no other room. What is counted
// per command stands in command.Usage, and reaches it once per batch.
type stats struct {
	s *Server

	connections atomic.Int64
	rejected    atomic.Int64
	netIn       atomic.Int64 // bytes
	reads       atomic.Int64 // that brought them
	netOut      atomic.Int64
	writes      atomic.Int64
	queryLimit  atomic.Int64
	outputLimit atomic.Int64
	authDenied  atomic.Int64

	errorReplies atomic.Int64
	errors       errorCounts

	expireMicros atomic.Int64 // spent in the expiry cycle
	expireCapped atomic.Int64 // rounds that ran out of time

	rates    rates
	memory   memoryAccount
	commands atomic.Pointer[flatTable]
	replID   atomic.Pointer[string]
}

func (st *stats) init(s *Server) {
	st.s = s
	st.newReplID()
	st.memory.init()
}

func (st *stats) newReplID() {
	id := newRunID()
	st.replID.Store(&id)
}

// errorReply counts an error reply by its code.
func (st *stats) errorReply(msg string) {
	st.errorReplies.Add(1)
	st.errors.add(msg)
}

// sample is called ten times a second.
func (st *stats) sample() {
	st.memory.observe()
	st.rates.add(time.Now(), [rateKinds]int64{
		rateCommands: st.commandsRun(), rateNetIn: st.netIn.Load(), rateNetOut: st.netOut.Load(),
	})
}

// flatTable are all commands and sub-commands of one version of the table, in
// the order of their full names.
type flatTable struct {
	version uint64
	specs   []*command.Spec
}

// allCommands are the commands and sub-commands that there are. The slice is
// shared; it is not changed.
func (st *stats) allCommands() []*command.Spec {
	table := st.s.engine.Table
	version := table.Version() // before the look, so that a change makes it stale
	if f := st.commands.Load(); f != nil && f.version == version {
		return f.specs
	}
	f := &flatTable{version: version}
	for _, s := range table.All() {
		f.specs = append(f.specs, s)
		subs := slices.Clone(s.Sub)
		slices.SortFunc(subs, func(a, b *command.Spec) int { return strings.Compare(a.Name, b.Name) })
		f.specs = append(f.specs, subs...)
	}
	st.commands.Store(f)
	return f.specs
}

// commandsRun is the number of commands that have run.
func (st *stats) commandsRun() int64 {
	var n int64
	for _, spec := range st.allCommands() {
		n += spec.Usage().Calls.Load()
	}
	return n
}

// resetStats is CONFIG RESETSTAT: what Redis sets to zero, and our counters of
// the same sort. What tells the present state stays.
func (s *Server) resetStats() {
	for _, spec := range s.stats.allCommands() {
		spec.Usage().Reset()
	}
	st := &s.stats
	for _, n := range []*atomic.Int64{
		&st.connections, &st.rejected, &st.netIn, &st.reads, &st.netOut, &st.writes, &st.queryLimit, &st.outputLimit,
		&st.errorReplies, &st.expireMicros, &st.expireCapped,
		&s.store.Counter.Hits, &s.store.Counter.Misses, &s.store.Counter.Expired,
		&s.store.Counter.Rollbacks, &s.store.Counter.Reruns, &s.store.Counter.Promotions, &s.store.Counter.Lengthened, &s.store.Counter.LockWaits,
	} {
		n.Store(0)
	}
	st.errors.reset()
	st.rates.reset()
	if s.opt.ResetScripts != nil {
		s.opt.ResetScripts()
	}
}

// maxErrorCodes is how many codes of error replies are told apart: scripts make
// up their own, and a client must not be able to fill the memory with them.
const maxErrorCodes = 128

// otherErrors counts the codes beyond that.
const otherErrors = "ERRORSTATS_OVERFLOW"

// errorCounts counts error replies by code. Counting takes no lock once a code
// is known.
type errorCounts struct {
	mu     sync.Mutex // held by whoever replaces the map
	byCode atomic.Pointer[map[string]*atomic.Int64]
}

// errorCode is the first word of an error reply; as in Redis a text whose first
// 32 bytes hold no blank counts as ERR.
func errorCode(msg string) string {
	if i := strings.IndexByte(msg[:min(len(msg), 32)], ' '); i > 0 {
		return msg[:i]
	}
	return "ERR"
}

func (e *errorCounts) add(msg string) {
	code := errorCode(msg)
	if m := e.byCode.Load(); m != nil {
		if n := (*m)[code]; n != nil {
			n.Add(1)
			return
		}
	}
	e.counter(code).Add(1)
}

// counter finds or makes the counter of a code.
func (e *errorCounts) counter(code string) *atomic.Int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	var known map[string]*atomic.Int64
	if m := e.byCode.Load(); m != nil {
		known = *m
	}
	if n := known[code]; n != nil {
		return n
	}
	if len(known) >= maxErrorCodes {
		code = otherErrors
		if n := known[code]; n != nil {
			return n
		}
	}
	next := make(map[string]*atomic.Int64, len(known)+1)
	maps.Copy(next, known)
	n := new(atomic.Int64)
	next[strings.Clone(code)] = n // not the whole message
	e.byCode.Store(&next)
	return n
}

func (e *errorCounts) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byCode.Store(nil)
}

// each calls f with the codes in their order.
func (e *errorCounts) each(f func(code string, n int64)) {
	m := e.byCode.Load()
	if m == nil {
		return
	}
	for _, code := range slices.Sorted(maps.Keys(*m)) {
		f(code, (*m)[code].Load())
	}
}

// The rates that INFO gives as instantaneous.
const (
	rateCommands = iota
	rateNetIn
	rateNetOut
	rateKinds
)

// rateSamples is how many samples a rate is the mean of; ten are taken a second.
const rateSamples = 16

// rates turns counters into what they grow by per second.
type rates struct {
	mu      sync.Mutex
	at      time.Time
	last    [rateKinds]int64
	samples [rateKinds][rateSamples]float64
	next    int
}

// add takes the counters' present values.
func (r *rates) add(now time.Time, values [rateKinds]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	elapsed := now.Sub(r.at).Seconds()
	if !r.at.IsZero() && elapsed > 0 {
		for i, v := range values {
			r.samples[i][r.next] = float64(max(0, v-r.last[i])) / elapsed
		}
		r.next = (r.next + 1) % rateSamples
	}
	r.at, r.last = now, values
}

// perSecond is the mean of a rate over the last seconds.
func (r *rates) perSecond(kind int) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := 0.0
	for _, v := range r.samples[kind] {
		sum += v
	}
	return sum / rateSamples
}

func (r *rates) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at, r.last, r.next = time.Time{}, [rateKinds]int64{}, 0
	r.samples = [rateKinds][rateSamples]float64{}
}
