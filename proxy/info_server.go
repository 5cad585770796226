package proxy

import (
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// roundsPerSecond is how often everySoOften runs, whatever hz says.
const roundsPerSecond = 10

func (s *Server) infoServer(t *infoText) {
	up := int64(time.Since(s.started) / time.Second)
	executable, _ := os.Executable()
	t.str("redis_version", RedisVersion)
	t.str("latchkey_version", s.opt.Version)
	t.str("redis_git_sha1", "00000000")
	t.int("redis_git_dirty", 0)
	t.str("redis_build_id", buildID())
	t.str("redis_mode", "standalone")
	t.str("os", systemName())
	t.int("arch_bits", strconv.IntSize)
	t.str("monotonic_clock", "POSIX clock_gettime")
	t.str("multiplexing_api", "epoll")
	t.str("atomicvar_api", "sync/atomic")
	t.str("gcc_version", "0.0.0")
	t.str("latchkey_go_version", strings.TrimPrefix(runtime.Version(), "go"))
	t.int("process_id", int64(os.Getpid()))
	t.str("process_supervised", "no")
	t.str("run_id", s.runID)
	t.int("tcp_port", int64(s.tcpPort()))
	t.int("server_time_usec", s.clock.NowMicro())
	t.int("uptime_in_seconds", up)
	t.int("uptime_in_days", up/86400)
	t.int("hz", roundsPerSecond)
	t.int("configured_hz", s.cfg.Int("hz"))
	t.int("lru_clock", s.seconds()&(1<<24-1))
	t.str("executable", executable)
	t.str("config_file", s.cfg.Path())
	t.int("io_threads_active", 0)
	for i, l := range s.listenerLines() {
		t.str("listener"+strconv.Itoa(i), l)
	}
}

// tcpPort is the port that is listened on, 0 if none is.
func (s *Server) tcpPort() int {
	for _, a := range s.Addrs() {
		if tcp, ok := a.(*net.TCPAddr); ok {
			return tcp.Port
		}
	}
	return 0
}

// listenerLines are Redis 7.2's lines on what is listened on.
func (s *Server) listenerLines() []string {
	var tcp, local string
	port := 0
	for _, a := range s.Addrs() {
		switch a := a.(type) {
		case *net.TCPAddr:
			tcp += ",bind=" + a.IP.String()
			port = a.Port
		case *net.UnixAddr:
			local += ",bind=" + a.Name
		}
	}
	var lines []string
	if tcp != "" {
		lines = append(lines, "name=tcp"+tcp+",port="+strconv.Itoa(port))
	}
	if local != "" {
		lines = append(lines, "name=unix"+local)
	}
	return lines
}

// buildID is the revision that the program was built from, as long as Redis's.
func buildID() string {
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, kv := range b.Settings {
			if kv.Key == "vcs.revision" && len(kv.Value) >= 16 {
				return kv.Value[:16]
			}
		}
	}
	return strings.Repeat("0", 16)
}

func systemName() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return runtime.GOOS + " " + runtime.GOARCH
	}
	text := unix.ByteSliceToString
	return text(u.Sysname[:]) + " " + text(u.Release[:]) + " " + text(u.Machine[:])
}

func (s *Server) infoClients(t *infoText) {
	input, output, tracking := 0, int64(0), int64(0)
	s.clients.each(func(c *client) {
		c.mu.Lock()
		input = max(input, c.shown.qbuf+c.shown.qbufFree)
		c.mu.Unlock()
		output = max(output, c.out.pending.Load())
		if c.tracking.on.Load() {
			tracking++
		}
	})
	t.int("connected_clients", int64(s.clients.len()))
	t.int("cluster_connections", 0)
	t.int("maxclients", s.cfg.Int("maxclients"))
	t.int("client_recent_max_input_buffer", int64(input))
	t.int("client_recent_max_output_buffer", output)
	t.int("blocked_clients", s.store.Counter.BlockedClients.Load())
	t.int("tracking_clients", tracking)
	t.zeros("clients_in_timeout_table")
}

func (s *Server) infoMemory(t *infoText) {
	u := s.memoryUse()
	limit := s.cfg.Memory("maxmemory")
	t.size("used_memory", u.used)
	t.size("used_memory_rss", u.rss)
	t.size("used_memory_peak", u.peak)
	t.percent("used_memory_peak_perc", 100*ratio(u.used, u.peak))
	t.int("used_memory_overhead", u.overhead)
	t.int("used_memory_startup", u.startup)
	t.int("used_memory_dataset", u.dataset)
	t.percent("used_memory_dataset_perc", u.datasetPercent())
	t.int("allocator_allocated", u.allocated)
	t.int("allocator_active", u.active)
	t.int("allocator_resident", u.resident)
	t.size("total_system_memory", systemMemory())
	// Running scripts' memory is part of the runtime's account and not told apart.
	t.zeros("used_memory_lua", "used_memory_vm_eval")
	t.str("used_memory_lua_human", humanBytes(0))
	scripts := s.scripts()
	t.int("used_memory_scripts_eval", scripts.CachedBytes)
	t.int("number_of_cached_scripts", scripts.Cached)
	t.int("number_of_functions", scripts.Functions)
	t.int("number_of_libraries", scripts.Libraries)
	t.zeros("used_memory_vm_functions")
	t.size("used_memory_vm_total", 0)
	t.int("used_memory_functions", scripts.LibraryBytes)
	t.size("used_memory_scripts", scripts.CachedBytes+scripts.LibraryBytes)
	t.size("maxmemory", limit)
	t.str("maxmemory_policy", s.cfg.String("maxmemory-policy"))
	t.float("allocator_frag_ratio", ratio(u.active, u.allocated), 2)
	t.int("allocator_frag_bytes", u.active-u.allocated)
	t.float("allocator_rss_ratio", ratio(u.resident, u.active), 2)
	t.int("allocator_rss_bytes", u.resident-u.active)
	t.float("rss_overhead_ratio", ratio(u.rss, u.resident), 2)
	t.int("rss_overhead_bytes", u.rss-u.resident)
	t.float("mem_fragmentation_ratio", ratio(u.rss, u.used), 2)
	t.int("mem_fragmentation_bytes", u.rss-u.used)
	// maxmemory compares with the entries' account alone.
	t.int("mem_not_counted_for_evict", u.overhead)
	t.zeros("mem_replication_backlog", "mem_total_replication_buffers", "mem_clients_slaves")
	t.int("mem_clients_normal", u.clients)
	t.zeros("mem_cluster_links", "mem_aof_buffer")
	t.str("mem_allocator", runtime.Version())
	t.zeros("active_defrag_running", "lazyfree_pending_objects", "lazyfreed_objects")
}

func (s *Server) infoPersistence(t *infoText) {
	t.zeros("loading", "async_loading", "current_cow_peak", "current_cow_size", "current_cow_size_age")
	t.float("current_fork_perc", 0, 2)
	t.zeros("current_save_keys_processed", "current_save_keys_total")
	t.int("rdb_changes_since_last_save", s.store.Counter.Commits.Load())
	t.int("rdb_bgsave_in_progress", 0)
	t.int("rdb_last_save_time", s.started.Unix())
	t.str("rdb_last_bgsave_status", "ok")
	t.int("rdb_last_bgsave_time_sec", -1)
	t.int("rdb_current_bgsave_time_sec", -1)
	t.zeros("rdb_saves", "rdb_last_cow_size", "rdb_last_load_keys_expired", "rdb_last_load_keys_loaded")
	t.zeros("aof_enabled", "aof_rewrite_in_progress", "aof_rewrite_scheduled")
	t.int("aof_last_rewrite_time_sec", -1)
	t.int("aof_current_rewrite_time_sec", -1)
	t.str("aof_last_bgrewrite_status", "ok")
	t.zeros("aof_rewrites", "aof_rewrites_consecutive_failures")
	t.str("aof_last_write_status", "ok")
	t.zeros("aof_last_cow_size", "module_fork_in_progress", "module_fork_last_cow_size")
}

func (s *Server) infoReplication(t *infoText) {
	t.str("role", "master")
	t.int("connected_slaves", 0)
	t.str("master_failover_state", "no-failover")
	t.str("master_replid", *s.stats.replID.Load())
	t.str("master_replid2", strings.Repeat("0", 40))
	t.int("master_repl_offset", 0)
	t.int("second_repl_offset", -1)
	t.int("repl_backlog_active", 0)
	t.int("repl_backlog_size", s.cfg.Memory("repl-backlog-size"))
	t.zeros("repl_backlog_first_byte_offset", "repl_backlog_histlen")
}

func (s *Server) infoCPU(t *infoText) {
	var self, children unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &self)
	unix.Getrusage(unix.RUSAGE_CHILDREN, &children)
	seconds := func(name string, tv unix.Timeval) { t.float(name, float64(tv.Nano())/1e9, 6) }
	seconds("used_cpu_sys", self.Stime)
	seconds("used_cpu_user", self.Utime)
	seconds("used_cpu_sys_children", children.Stime)
	seconds("used_cpu_user_children", children.Utime)
	// Commands run on all threads here; a single one's time would mean nothing.
	seconds("used_cpu_sys_main_thread", self.Stime)
	seconds("used_cpu_user_main_thread", self.Utime)
}
