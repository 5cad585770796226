package proxy

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// memoryCommands are the Specs of this family, made anew for each server.
func memoryCommands() []*command.Spec {
	return []*command.Spec{{
		Name: "memory", Arity: -2, Access: command.Free, Group: "server", Since: "4.0.0", Complexity: "Depends on subcommand.",
		Summary: "A container for commands about memory.",
		Help: []string{
			"DOCTOR",
			"    Return memory problems reports.",
			"MALLOC-STATS",
			"    Return internal statistics report from the memory allocator.",
			"PURGE",
			"    Attempt to purge dirty pages for reclamation by the allocator.",
			"STATS",
			"    Return information about the memory usage of the server.",
			"USAGE <key> [SAMPLES <count>]",
			"    Return memory in bytes used by <key> and its value. Nested values are",
			"    sampled up to <count> times (default: 5, 0 means sample all).",
		},
		Sub: []*command.Spec{
			{
				Name: "doctor", Arity: 2, Access: command.Free, Handler: memoryDoctor,
				Group: "server", Since: "4.0.0", Complexity: "O(1)", Summary: "Says what is remarkable about the memory in use.",
			},
			{
				Name: "malloc-stats", Arity: 2, Access: command.Free, Handler: memoryMallocStats,
				Group: "server", Since: "4.0.0", Complexity: "O(1)", Summary: "Returns the Go runtime's account of its memory.",
			},
			{
				Name: "purge", Arity: 2, Access: command.Free, Handler: memoryPurge,
				Group: "server", Since: "4.0.0", Complexity: "Depends on how much memory is allocated, could be slow",
				Summary: "Collects garbage and gives memory back to the system.",
			},
			{
				Name: "stats", Arity: 2, Access: command.Free, Handler: memoryStats,
				Group: "server", Since: "4.0.0", Complexity: "O(1)", Summary: "Returns what the memory in use is used for.",
				Differs: "Has no entries for single databases.",
			},
			{
				Name: "usage", Arity: -3, Flags: command.ReadOnly, Access: command.ByKeys, Handler: memoryUsage,
				Keys:  []command.KeySpec{{Begin: 2, Flags: command.KeyRO}},
				Group: "server", Since: "4.0.0", Complexity: "O(N) where N is the number of samples.",
				Summary: "Returns the bytes that a key and its value take.", Syntax: "key [SAMPLES count]",
				Differs: "By latchkey's own account, the one that maxmemory compares with.",
			},
			command.HelpSpec("memory", "4.0.0"),
		},
	}}
}

// The runtime's figures that INFO's memory section is made of.
const (
	heapObjects = iota
	heapUnused
	heapFree
	heapReleased
	mappedTotal
	runtimeFigures
)

var runtimeFigureNames = [runtimeFigures]string{
	heapObjects:  "/memory/classes/heap/objects:bytes",
	heapUnused:   "/memory/classes/heap/unused:bytes",
	heapFree:     "/memory/classes/heap/free:bytes",
	heapReleased: "/memory/classes/heap/released:bytes",
	mappedTotal:  "/memory/classes/total:bytes",
}

// memoryAccount reads the runtime's figures, without stopping the world.
type memoryAccount struct {
	mu      sync.Mutex
	samples [runtimeFigures]metrics.Sample

	startup int64
	peak    atomic.Int64
	purging sync.Mutex
}

func (m *memoryAccount) init() {
	for i, name := range runtimeFigureNames {
		m.samples[i].Name = name
	}
	m.observe()
	m.startup = m.peak.Load()
}

func (m *memoryAccount) read() (figures [runtimeFigures]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	metrics.Read(m.samples[:])
	for i := range m.samples {
		if m.samples[i].Value.Kind() == metrics.KindUint64 {
			figures[i] = int64(m.samples[i].Value.Uint64())
		}
	}
	if used := figures[heapObjects]; used > m.peak.Load() {
		m.peak.Store(used)
	}
	return figures
}

// observe notes the peak.
func (m *memoryAccount) observe() { m.read() }

// memoryUse is what INFO memory and MEMORY STATS have in common, in bytes.
type memoryUse struct {
	used, peak, startup         int64 // by the runtime's account
	overhead, dataset           int64 // used is their sum; dataset by the store's account
	allocated, active, resident int64
	rss                         int64
	clients                     int64
	keys                        int64
}

func (s *Server) memoryUse() memoryUse {
	f := s.stats.memory.read()
	u := memoryUse{
		used: f[heapObjects], peak: s.stats.memory.peak.Load(), startup: s.stats.memory.startup,
		dataset:   s.store.UsedMemory(),
		allocated: f[heapObjects], active: f[heapObjects] + f[heapUnused],
		resident: f[mappedTotal] - f[heapReleased],
		rss:      residentBytes(), clients: s.queryMemory.Load(),
	}
	u.dataset = min(u.dataset, u.used)
	u.overhead = u.used - u.dataset
	if u.rss == 0 {
		u.rss = u.resident
	}
	for db := range s.store.Databases() {
		u.keys += s.store.Size(db)
	}
	return u
}

// datasetPercent is the part of what was allocated since the start that the
// entries take.
func (u *memoryUse) datasetPercent() float64 {
	net := max(u.used-u.startup, u.dataset)
	if net <= 0 {
		return 0
	}
	return 100 * float64(u.dataset) / float64(net)
}

// bytesPerKey is the mean size of an entry.
func (u *memoryUse) bytesPerKey() int64 {
	if u.keys == 0 {
		return 0
	}
	return u.dataset / u.keys
}

func ratio(a, b int64) float64 {
	if b <= 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// residentBytes is the process's resident set, 0 if the system does not tell.
func residentBytes() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmRSS:")); ok {
			if f := bytes.Fields(rest); len(f) > 0 {
				kb, _ := strconv.ParseInt(string(f[0]), 10, 64)
				return kb << 10
			}
		}
	}
	return 0
}

// humanBytes is a size as Redis's fields ending in _human have it.
func humanBytes(n int64) string {
	const unit = 1024
	switch {
	case n < unit:
		return strconv.FormatInt(n, 10) + "B"
	case n < unit*unit:
		return fmt.Sprintf("%.2fK", float64(n)/unit)
	case n < unit*unit*unit:
		return fmt.Sprintf("%.2fM", float64(n)/(unit*unit))
	case n < unit*unit*unit*unit:
		return fmt.Sprintf("%.2fG", float64(n)/(unit*unit*unit))
	}
	return fmt.Sprintf("%.2fT", float64(n)/(unit*unit*unit*unit))
}

func memoryUsage(c *command.Call) {
	for i := 3; i < len(c.Args); i += 2 {
		if !c.Is(i, "samples") || i+1 == len(c.Args) {
			c.Err(command.ErrSyntax)
			return
		}
		n, ok := c.Int(i + 1)
		if !ok {
			return
		}
		if n < 0 {
			c.Err(command.ErrSyntax)
			return
		}
	}
	if k := c.Key(2); k.Exists() {
		c.Reply.Int(k.Size())
		return
	}
	c.Reply.Null()
}

func memoryStats(c *command.Call) {
	if !c.GoOn(4 * sectionWork) {
		return
	}
	u, scripts := asServer(c).memoryUse(), asServer(c).scripts()
	r := c.Reply
	type field struct {
		name   string
		n      int64
		f      float64
		double bool
	}
	fields := []field{
		{name: "peak.allocated", n: u.peak},
		{name: "total.allocated", n: u.used},
		{name: "startup.allocated", n: u.startup},
		{name: "replication.backlog"},
		{name: "clients.slaves"},
		{name: "clients.normal", n: u.clients},
		{name: "cluster.links"},
		{name: "aof.buffer"},
		{name: "lua.caches", n: scripts.CachedBytes},
		{name: "functions.caches", n: scripts.LibraryBytes},
		{name: "overhead.total", n: u.overhead},
		{name: "keys.count", n: u.keys},
		{name: "keys.bytes-per-key", n: u.bytesPerKey()},
		{name: "dataset.bytes", n: u.dataset},
		{name: "dataset.percentage", f: u.datasetPercent(), double: true},
		{name: "peak.percentage", f: 100 * ratio(u.used, u.peak), double: true},
		{name: "allocator.allocated", n: u.allocated},
		{name: "allocator.active", n: u.active},
		{name: "allocator.resident", n: u.resident},
		{name: "allocator-fragmentation.ratio", f: ratio(u.active, u.allocated), double: true},
		{name: "allocator-fragmentation.bytes", n: u.active - u.allocated},
		{name: "allocator-rss.ratio", f: ratio(u.resident, u.active), double: true},
		{name: "allocator-rss.bytes", n: u.resident - u.active},
		{name: "rss-overhead.ratio", f: ratio(u.rss, u.resident), double: true},
		{name: "rss-overhead.bytes", n: u.rss - u.resident},
		{name: "fragmentation", f: ratio(u.rss, u.used), double: true},
		{name: "fragmentation.bytes", n: u.rss - u.used},
	}
	r.Map(len(fields))
	for _, f := range fields {
		r.BulkString(f.name)
		if f.double {
			r.Double(f.f)
		} else {
			r.Int(f.n)
		}
	}
}

// doctorMinimum is the size below which ratios say nothing.
const doctorMinimum = 5 << 20

func memoryDoctor(c *command.Call) {
	s := asServer(c)
	u := s.memoryUse()
	var b strings.Builder
	note := func(format string, args ...any) { fmt.Fprintf(&b, " * "+format+"\n", args...) }
	if u.used < doctorMinimum {
		c.Reply.Verbatim("txt", "Too little memory is in use to say anything about it.\n")
		return
	}
	if u.peak > u.used+u.used/2 {
		note("Peak memory: more than 150%% of what is in use now. The runtime gives unused memory back over some minutes; MEMORY PURGE does it at once.")
	}
	if ratio(u.active, u.allocated) > 1.4 && u.active-u.allocated > 10<<20 {
		note("Fragmentation: allocated pages are %.1f times the objects in them.", ratio(u.active, u.allocated))
	}
	if u.overhead > u.dataset && u.overhead > 64<<20 {
		note("Overhead: the entries take %s by latchkey's account, everything else %s, garbage that is not yet collected included. Lower GOGC trades processor time for memory.", humanBytes(u.dataset), humanBytes(u.overhead))
	}
	if limit := s.cfg.Memory("maxmemory"); limit > 0 && s.store.UsedMemory() > limit-limit/10 {
		note("maxmemory: the entries take %s of %s. Beyond it writes are refused, nothing is evicted.", humanBytes(s.store.UsedMemory()), humanBytes(limit))
	}
	if b.Len() == 0 {
		c.Reply.Verbatim("txt", "Nothing about the memory in use is remarkable.\n")
		return
	}
	c.Reply.Verbatim("txt", "Remarkable about the memory in use:\n\n"+b.String())
}

func memoryMallocStats(c *command.Call) {
	var samples []metrics.Sample
	for _, d := range metrics.All() {
		if d.Kind == metrics.KindUint64 && (strings.HasPrefix(d.Name, "/memory/") || strings.HasPrefix(d.Name, "/gc/heap/")) {
			samples = append(samples, metrics.Sample{Name: d.Name})
		}
	}
	metrics.Read(samples)
	var b strings.Builder
	b.WriteString("Go runtime, see runtime/metrics:\n")
	for _, sm := range samples {
		fmt.Fprintf(&b, "%-44s %d\n", sm.Name, sm.Value.Uint64())
	}
	c.Reply.Verbatim("txt", b.String())
}

func memoryPurge(c *command.Call) {
	// It collects the whole heap: clients that ask together share one round.
	if m := &asServer(c).stats.memory; m.purging.TryLock() {
		debug.FreeOSMemory()
		m.purging.Unlock()
	}
	c.OK()
}
