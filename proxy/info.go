package proxy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// infoCommands are the Specs of this family, made anew for each server.
func infoCommands() []*command.Spec {
	return []*command.Spec{{
		Name: "info", Arity: -1, Flags: command.Loading | command.Stale, Categories: command.CatDangerous,
		Access: command.Free, Handler: infoCommand,
		Group: "server", Since: "1.0.0", Complexity: "O(1)",
		Summary: "Returns facts and statistics about the server.", Syntax: "[section [section ...]]",
		Differs: "Has a section of latchkey's own. used_memory is the Go runtime's account; what maxmemory compares with is latchkey_used_memory.",
	}}
}

// infoSection is one section of INFO. Redis's come first, in Redis's order.
type infoSection struct {
	name     string // as it is asked for, in lower case
	title    string
	optional bool // not part of INFO without arguments
	write    func(s *Server, t *infoText)
}

var infoSections = []infoSection{
	{name: "server", title: "Server", write: (*Server).infoServer},
	{name: "clients", title: "Clients", write: (*Server).infoClients},
	{name: "memory", title: "Memory", write: (*Server).infoMemory},
	{name: "persistence", title: "Persistence", write: (*Server).infoPersistence},
	{name: "stats", title: "Stats", write: (*Server).infoStats},
	{name: "replication", title: "Replication", write: (*Server).infoReplication},
	{name: "cpu", title: "CPU", write: (*Server).infoCPU},
	{name: "modules", title: "Modules", write: (*Server).infoModules},
	{name: "commandstats", title: "Commandstats", optional: true, write: (*Server).infoCommandstats},
	{name: "errorstats", title: "Errorstats", write: (*Server).infoErrorstats},
	{name: "latencystats", title: "Latencystats", optional: true, write: (*Server).infoLatencystats},
	{name: "cluster", title: "Cluster", write: (*Server).infoCluster},
	{name: "keyspace", title: "Keyspace", write: (*Server).infoKeyspace},
	{name: "latchkey", title: "Latchkey", write: (*Server).infoLatchkey},
	{name: "scriptstats", title: "Scriptstats", optional: true, write: (*Server).infoScriptstats},
}

// sectionWork is what a section costs, in units of work.
const sectionWork = 500

func infoCommand(c *command.Call) {
	c.S.FlushStats() // what this client has just run counts too
	usual, all := len(c.Args) == 1, false
	var names []string
	for _, a := range c.Args[1:] {
		switch name := strings.ToLower(string(a)); name {
		case "default":
			usual = true
		case "all", "everything":
			all = true
		case "module_list":
			names = append(names, "modules")
		default:
			names = append(names, name)
		}
	}
	s := asServer(c)
	var t infoText
	for i := range infoSections {
		sec := &infoSections[i]
		if all || usual && !sec.optional || slices.Contains(names, sec.name) {
			if !c.GoOn(sectionWork) {
				return
			}
			t.begin(sec.title)
			sec.write(s, &t)
		}
	}
	c.Reply.Verbatim("txt", string(t.b))
}

// infoText is the text of INFO as it grows.
type infoText struct{ b []byte }

func (t *infoText) begin(title string) {
	if len(t.b) != 0 {
		t.b = append(t.b, "\r\n"...)
	}
	t.b = append(t.b, "# "...)
	t.b = append(t.b, title...)
	t.end()
}

func (t *infoText) end() { t.b = append(t.b, "\r\n"...) }

func (t *infoText) field(name string) {
	t.b = append(t.b, name...)
	t.b = append(t.b, ':')
}

// str writes a text, in which line ends have no place.
func (t *infoText) str(name, value string) {
	t.field(name)
	if strings.ContainsAny(value, "\r\n") {
		value = strings.NewReplacer("\r", " ", "\n", " ").Replace(value)
	}
	t.b = append(t.b, value...)
	t.end()
}

func (t *infoText) int(name string, n int64) {
	t.field(name)
	t.b = strconv.AppendInt(t.b, n, 10)
	t.end()
}

// size writes a number of bytes twice, as Redis does.
func (t *infoText) size(name string, n int64) {
	t.int(name, n)
	t.str(name+"_human", humanBytes(n))
}

// zeros writes what there can be nothing of here.
func (t *infoText) zeros(names ...string) {
	for _, name := range names {
		t.int(name, 0)
	}
}

func (t *infoText) float(name string, f float64, decimals int) {
	t.field(name)
	t.b = strconv.AppendFloat(t.b, f, 'f', decimals, 64)
	t.end()
}

func (t *infoText) percent(name string, f float64) {
	t.field(name)
	t.b = strconv.AppendFloat(t.b, f, 'f', 2, 64)
	t.b = append(t.b, '%')
	t.end()
}

// safeField replaces what would break a field's name.
func safeField(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("#:\r\n", r) {
			return '_'
		}
		return r
	}, name)
}

func (s *Server) infoStats(t *infoText) {
	st := &s.stats
	n := &s.store.Counter
	t.int("total_connections_received", st.connections.Load())
	t.int("total_commands_processed", st.commandsRun())
	t.int("instantaneous_ops_per_sec", int64(st.rates.perSecond(rateCommands)))
	t.int("total_net_input_bytes", st.netIn.Load())
	t.int("total_net_output_bytes", st.netOut.Load())
	t.zeros("total_net_repl_input_bytes", "total_net_repl_output_bytes")
	t.float("instantaneous_input_kbps", st.rates.perSecond(rateNetIn)/1024, 2)
	t.float("instantaneous_output_kbps", st.rates.perSecond(rateNetOut)/1024, 2)
	t.float("instantaneous_input_repl_kbps", 0, 2)
	t.float("instantaneous_output_repl_kbps", 0, 2)
	t.int("rejected_connections", st.rejected.Load())
	t.zeros("sync_full", "sync_partial_ok", "sync_partial_err")
	t.int("expired_keys", n.Expired.Load())
	t.float("expired_stale_perc", 0, 2) // not estimated
	t.int("expired_time_cap_reached_count", st.expireCapped.Load())
	t.int("expire_cycle_cpu_milliseconds", st.expireMicros.Load()/1000)
	t.zeros("evicted_keys", "evicted_clients", "total_eviction_exceeded_time", "current_eviction_exceeded_time")
	t.int("keyspace_hits", n.Hits.Load())
	t.int("keyspace_misses", n.Misses.Load())
	channels, patterns, shard := s.hub.sizes()
	t.int("pubsub_channels", int64(channels))
	t.int("pubsub_patterns", int64(patterns))
	t.int("pubsubshard_channels", int64(shard))
	t.zeros("latest_fork_usec", "total_forks", "migrate_cached_sockets", "slave_expires_tracked_keys",
		"active_defrag_hits", "active_defrag_misses", "active_defrag_key_hits", "active_defrag_key_misses",
		"total_active_defrag_time", "current_active_defrag_time",
		"tracking_total_keys", "tracking_total_items", "tracking_total_prefixes",
		"unexpected_error_replies")
	t.int("total_error_replies", st.errorReplies.Load())
	t.zeros("dump_payload_sanitizations")
	t.int("total_reads_processed", st.reads.Load())
	t.int("total_writes_processed", st.writes.Load())
	t.zeros("io_threaded_reads_processed", "io_threaded_writes_processed",
		"reply_buffer_shrinks", "reply_buffer_expands")
	t.int("client_query_buffer_limit_disconnections", st.queryLimit.Load())
	t.int("client_output_buffer_limit_disconnections", st.outputLimit.Load())
	t.int("acl_access_denied_auth", st.authDenied.Load())
	t.zeros("acl_access_denied_cmd", "acl_access_denied_key", "acl_access_denied_channel")
}

// sizes are the numbers of channels, patterns and shard channels in use.
func (h *hub) sizes() (channels, patterns, shard int) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.channels.byName), len(h.patterns.byName), len(h.shard.byName)
}

func (s *Server) infoModules(t *infoText) {
	for _, m := range s.modules() {
		t.str("module", "name="+safeField(m.Name)+",ver="+strconv.Itoa(m.Version)+",api=1,filters=0,usedby=[],using=[],options=[]")
		t.str("latchkey_module_"+safeField(m.Name), fmt.Sprintf("calls=%d,errors=%d,traps=%d,running=%d,instances=%d,memory=%d,waiting=%d,timers=%d,queued=%d,delivered=%d,dropped=%d,disabled=%d",
			m.Calls, m.Errors, m.Traps, m.Running, m.Instances, m.MemoryBytes, m.Waiting, m.Timers, m.Queued, m.Delivered, m.Dropped, oneIf(m.Disabled)))
	}
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// infoScriptstats is latchkey's own section: what the author of a script may want
// to mend, by SHA1 or name of the function.
func (s *Server) infoScriptstats(t *infoText) {
	if s.opt.ScriptTally == nil {
		return
	}
	for _, n := range s.opt.ScriptTally() {
		t.field("script_" + safeField(n.Name))
		for i, f := range []struct {
			name  string
			count int64
		}{{"undeclared_keys", n.Undeclared}, {"reruns", n.Reruns}, {"rollbacks", n.Rollbacks}, {"kills", n.Kills}} {
			if i > 0 {
				t.b = append(t.b, ',')
			}
			t.b = append(t.b, f.name...)
			t.b = append(t.b, '=')
			t.b = strconv.AppendInt(t.b, f.count, 10)
		}
		t.end()
	}
}

func (s *Server) infoCommandstats(t *infoText) {
	for _, spec := range s.stats.allCommands() {
		u := spec.Usage()
		calls, rejected, failed := u.Calls.Load(), u.Rejected.Load(), u.Failed.Load()
		if calls == 0 && rejected == 0 && failed == 0 {
			continue
		}
		micros, each := u.Nanos.Load()/1000, 0.0
		if calls > 0 {
			each = float64(u.Nanos.Load()) / 1000 / float64(calls)
		}
		t.field("cmdstat_" + safeField(spec.FullName()))
		t.b = append(t.b, "calls="...)
		t.b = strconv.AppendInt(t.b, calls, 10)
		t.b = append(t.b, ",usec="...)
		t.b = strconv.AppendInt(t.b, micros, 10)
		t.b = append(t.b, ",usec_per_call="...)
		t.b = strconv.AppendFloat(t.b, each, 'f', 2, 64)
		t.b = append(t.b, ",rejected_calls="...)
		t.b = strconv.AppendInt(t.b, rejected, 10)
		t.b = append(t.b, ",failed_calls="...)
		t.b = strconv.AppendInt(t.b, failed, 10)
		t.end()
	}
}

func (s *Server) infoErrorstats(t *infoText) {
	s.stats.errors.each(func(code string, n int64) {
		t.str("errorstat_"+safeField(code), "count="+strconv.FormatInt(n, 10))
	})
}

func (s *Server) infoLatencystats(t *infoText) {
	if !s.cfg.Bool("latency-tracking") {
		return
	}
	percents := s.cfg.Strings("latency-tracking-info-percentiles")
	for _, spec := range s.stats.allCommands() {
		h := histogramOf(spec)
		if h.total == 0 {
			continue
		}
		t.field("latency_percentiles_usec_" + safeField(spec.FullName()))
		for i, p := range percents {
			if i > 0 {
				t.b = append(t.b, ',')
			}
			percent, err := strconv.ParseFloat(p, 64)
			if err != nil {
				continue // the directive's check lets numbers through only
			}
			t.b = append(t.b, 'p')
			t.b = append(t.b, p...)
			t.b = append(t.b, '=')
			t.b = strconv.AppendFloat(t.b, h.percentile(percent), 'f', 3, 64)
		}
		t.end()
	}
}

func (s *Server) infoCluster(t *infoText) { t.zeros("cluster_enabled") }

func (s *Server) infoKeyspace(t *infoText) {
	for db := range s.store.Databases() {
		keys, expires := s.store.Size(db), s.store.Volatile(db)
		if keys == 0 && expires == 0 {
			continue
		}
		// The mean TTL is not sampled; 0 is what Redis says before it has been.
		t.str("db"+strconv.Itoa(db), "keys="+strconv.FormatInt(keys, 10)+",expires="+strconv.FormatInt(expires, 10)+",avg_ttl=0")
	}
}

// infoLatchkey is what only latchkey has.
func (s *Server) infoLatchkey(t *infoText) {
	n := &s.store.Counter
	up, behind := s.upstreamStats()
	owns := "*"
	if behind {
		owns = strings.Join(s.cfg.Strings("own"), " ")
	}
	t.str("latchkey_owns", owns)
	t.int("latchkey_used_memory", s.store.UsedMemory())
	t.int("latchkey_used_memory_peak", s.store.PeakMemory())
	t.int("latchkey_query_memory", s.queryMemory.Load())
	t.int("latchkey_commits", n.Commits.Load())
	t.int("latchkey_rollbacks", n.Rollbacks.Load())
	t.int("latchkey_reruns", n.Reruns.Load())
	t.int("latchkey_lock_waits", n.LockWaits.Load())
	t.int("latchkey_lock_waiting", n.LockWaiting.Load())
	scripts := s.scripts()
	switch {
	case scripts.File == "":
		t.str("latchkey_script_file", "none")
	case scripts.FileErr != nil:
		t.str("latchkey_script_file", "failed: "+scripts.FileErr.Error())
	default:
		t.str("latchkey_script_file", scripts.File)
	}
	t.int("latchkey_script_file_bytes", scripts.FileBytes)
	t.int("latchkey_scripts_running_long", scripts.Long)
	t.int("latchkey_scripts_evicted", scripts.Evicted)
	t.int("latchkey_script_rollbacks", scripts.Rollbacks)
	t.int("latchkey_script_kills", scripts.Killed)
	t.int("latchkey_script_undeclared_keys", scripts.Undeclared)
	t.int("latchkey_script_reruns", scripts.Reruns)
	for _, of := range []struct {
		name string
		EngineCounts
	}{{"scripts", scripts.Compiled}, {"libraries", scripts.CompiledLibraries}} {
		t.int("latchkey_"+of.name+"_compiled_closures", of.Closures)
		t.int("latchkey_"+of.name+"_compiled_vm", of.VM)
		for _, reason := range slices.Sorted(maps.Keys(of.Fallbacks)) {
			t.int("latchkey_"+of.name+"_vm_"+strings.ReplaceAll(strings.TrimLeft(reason, "_"), " ", "_"), of.Fallbacks[reason])
		}
	}
	if log, ok := s.opt.EffectLog.(interface{ LSN() uint64 }); ok {
		t.int("latchkey_lsn", int64(log.LSN()))
	}
	if !behind {
		t.str("latchkey_upstream", "none")
		return
	}
	state := "up"
	if up.Unreachable != "" {
		state = "down"
	}
	t.str("latchkey_upstream", up.Address)
	t.str("latchkey_upstream_status", state)
	if up.Unreachable != "" {
		t.str("latchkey_upstream_error", up.Unreachable)
	}
	t.int("latchkey_upstream_connections", int64(up.Connected))
	t.int("latchkey_upstream_in_flight", int64(up.InFlight))
	t.int("latchkey_upstream_commands", int64(up.Sent))
	t.int("latchkey_upstream_errors", int64(up.Errors))
	t.int("latchkey_upstream_reconnects", int64(up.Reconnects))
	t.int("latchkey_upstream_reply_bytes", up.ReplyBytes)
}
