package config

import "strings"

// The directives of this file are known because Redis has them. Tools and test suites set and read them, so they are
// accepted, kept, shown and, where Redis allows it, changed; nothing in latchkey depends on them.

func noEffect(list []Directive) []Directive {
	for i := range list {
		list[i].Group = groupNoEffect
		list[i].Ignored = true
	}
	return list
}

func encodingDirectives() []Directive {
	return noEffect([]Directive{
		{Name: "hash-max-listpack-entries", Aliases: []string{"hash-max-ziplist-entries"}, Kind: Int, Default: "512", Max: maxInt64, Mutable: true, Summary: "Encoding of small hashes in Redis."},
		{Name: "hash-max-listpack-value", Aliases: []string{"hash-max-ziplist-value"}, Kind: Memory, Default: "64", Max: maxInt64, Mutable: true, Summary: "Encoding of small hashes in Redis."},
		{Name: "list-max-listpack-size", Aliases: []string{"list-max-ziplist-size"}, Kind: Int, Default: "-2", Min: minInt32, Max: maxInt32, Mutable: true, Summary: "Encoding of lists in Redis."},
		{Name: "list-compress-depth", Kind: Int, Default: "0", Max: maxInt32, Mutable: true, Summary: "Compression of lists in Redis."},
		{Name: "set-max-intset-entries", Kind: Int, Default: "512", Max: maxInt64, Mutable: true, Summary: "Encoding of sets of integers in Redis."},
		{Name: "set-max-listpack-entries", Kind: Int, Default: "128", Max: maxInt64, Mutable: true, Summary: "Encoding of small sets in Redis 7.2."},
		{Name: "set-max-listpack-value", Kind: Int, Default: "64", Max: maxInt64, Mutable: true, Summary: "Encoding of small sets in Redis 7.2."},
		{Name: "zset-max-listpack-entries", Aliases: []string{"zset-max-ziplist-entries"}, Kind: Int, Default: "128", Max: maxInt64, Mutable: true, Summary: "Encoding of small sorted sets in Redis."},
		{Name: "zset-max-listpack-value", Aliases: []string{"zset-max-ziplist-value"}, Kind: Memory, Default: "64", Max: maxInt64, Mutable: true, Summary: "Encoding of small sorted sets in Redis."},
		{Name: "hll-sparse-max-bytes", Kind: Memory, Default: "3000", Max: maxInt64, Mutable: true, Summary: "Encoding of HyperLogLogs in Redis."},
		{Name: "stream-node-max-bytes", Kind: Memory, Default: "4096", Max: maxInt64, Mutable: true, Summary: "Encoding of streams in Redis."},
		{Name: "stream-node-max-entries", Kind: Int, Default: "100", Max: maxInt64, Mutable: true, Summary: "Encoding of streams in Redis."},
		{Name: "activerehashing", Kind: Bool, Default: "yes", Mutable: true, Summary: "Rehashing of Redis's hash tables in idle time."},
	})
}

func evictionDirectives() []Directive {
	return noEffect([]Directive{
		{Name: "maxmemory-samples", Kind: Int, Default: "5", Min: 1, Max: maxInt32, Mutable: true, Summary: "Eviction in Redis; latchkey never evicts."},
		{Name: "maxmemory-eviction-tenacity", Kind: Int, Default: "10", Max: 100, Mutable: true, Summary: "Eviction in Redis; latchkey never evicts."},
		{
			Name: "maxmemory-clients", Kind: MemoryOrPercent, Default: "0", Min: -100, Max: maxInt64, Mutable: true,
			Warn:    "clients are not evicted; client-query-memory-limit and client-output-buffer-limit bound their memory",
			Summary: "Eviction of clients in Redis; see client-query-memory-limit and client-output-buffer-limit.",
		},
		{Name: "lfu-log-factor", Kind: Int, Default: "10", Max: maxInt32, Mutable: true, Summary: "Eviction in Redis; latchkey never evicts."},
		{Name: "lfu-decay-time", Kind: Int, Default: "1", Max: maxInt32, Mutable: true, Summary: "Eviction in Redis; latchkey never evicts."},
		{Name: "lazyfree-lazy-eviction", Kind: Bool, Default: "no", Mutable: true, Summary: "Freeing of memory in Redis; here the Go runtime does it."},
		{Name: "lazyfree-lazy-expire", Kind: Bool, Default: "no", Mutable: true, Summary: "Freeing of memory in Redis; here the Go runtime does it."},
		{Name: "lazyfree-lazy-server-del", Kind: Bool, Default: "no", Mutable: true, Summary: "Freeing of memory in Redis; here the Go runtime does it."},
		{Name: "lazyfree-lazy-user-del", Kind: Bool, Default: "no", Mutable: true, Summary: "Freeing of memory in Redis; here the Go runtime does it."},
		{Name: "lazyfree-lazy-user-flush", Kind: Bool, Default: "no", Mutable: true, Summary: "Freeing of memory in Redis; here the Go runtime does it."},
		{Name: "activedefrag", Kind: Bool, Default: "no", Mutable: true, Summary: "Defragmentation in Redis; here the Go runtime places memory."},
		{Name: "active-defrag-cycle-min", Kind: Int, Default: "1", Min: 1, Max: 99, Mutable: true, Summary: "Defragmentation in Redis."},
		{Name: "active-defrag-cycle-max", Kind: Int, Default: "25", Min: 1, Max: 99, Mutable: true, Summary: "Defragmentation in Redis."},
		{Name: "active-defrag-threshold-lower", Kind: Int, Default: "10", Max: 1000, Mutable: true, Summary: "Defragmentation in Redis."},
		{Name: "active-defrag-threshold-upper", Kind: Int, Default: "100", Max: 1000, Mutable: true, Summary: "Defragmentation in Redis."},
		{Name: "active-defrag-max-scan-fields", Kind: Int, Default: "1000", Min: 1, Max: maxInt64, Mutable: true, Summary: "Defragmentation in Redis."},
		{Name: "active-defrag-ignore-bytes", Kind: Memory, Default: "104857600", Min: 1, Max: maxInt64, Mutable: true, Summary: "Defragmentation in Redis."},
		{Name: "jemalloc-bg-thread", Kind: Bool, Default: "yes", Mutable: true, Summary: "Redis's memory allocator."},
		{Name: "tracking-table-max-keys", Kind: Int, Default: "1000000", Max: maxInt64, Mutable: true, Summary: "Client-side caching in Redis; CLIENT TRACKING here keeps no table of keys."},
	})
}

const noSnapshots = "no snapshots are written: keys live in memory only"

func persistenceDirectives() []Directive {
	return noEffect([]Directive{
		{
			Name: "save", Kind: SavePoints, Mutable: true, Warn: noSnapshots,
			Summary: "When Redis writes a snapshot. latchkey writes none, so its default is \"\", where Redis has `3600 1 300 100 60 10000`.",
		},
		{Name: "dbfilename", Kind: String, Default: "dump.rdb", Mutable: true, Protected: true, check: fileName("dbfilename", "filename", true), Summary: "Redis's snapshot file."},
		{Name: "rdbcompression", Kind: Bool, Default: "yes", Mutable: true, Summary: "Redis's snapshot file."},
		{Name: "rdbchecksum", Kind: Bool, Default: "yes", Summary: "Redis's snapshot file."},
		{Name: "rdb-del-sync-files", Kind: Bool, Default: "no", Mutable: true, Summary: "Redis's snapshot file."},
		{Name: "rdb-save-incremental-fsync", Kind: Bool, Default: "yes", Mutable: true, Summary: "Redis's snapshot file."},
		{Name: "rdb-key-save-delay", Kind: Int, Default: "0", Min: minInt32, Max: maxInt32, Mutable: true, Hidden: true, Summary: "Redis's own tests."},
		{Name: "key-load-delay", Kind: Int, Default: "0", Min: minInt32, Max: maxInt32, Mutable: true, Hidden: true, Summary: "Redis's own tests."},
		{Name: "loading-process-events-interval-bytes", Kind: Int, Default: "2097152", Min: 1024, Max: maxInt32, Mutable: true, Hidden: true, Summary: "Redis's own tests."},
		{Name: "stop-writes-on-bgsave-error", Kind: Bool, Default: "yes", Mutable: true, Summary: "Redis's snapshot file."},
		{Name: "sanitize-dump-payload", Kind: Enum, Default: "no", Enum: []string{"no", "yes", "clients"}, Mutable: true, Summary: "Checks of RESTORE in Redis; latchkey always checks."},
		{Name: "appendfilename", Kind: String, Default: "appendonly.aof", check: fileName("appendfilename", "filename", false), Summary: "Name of the append-only file's parts."},
		{Name: "appenddirname", Kind: String, Default: "appendonlydir", check: fileName("appenddirname", "dirname", false), Summary: "Directory of the append-only file's parts."},
		{Name: "appendfsync", Kind: Enum, Default: "everysec", Enum: []string{"everysec", "always", "no"}, Mutable: true, Summary: "When the append-only file is synced to disk."},
		{Name: "no-appendfsync-on-rewrite", Kind: Bool, Default: "no", Mutable: true, Summary: "Append-only file."},
		{Name: "auto-aof-rewrite-percentage", Kind: Int, Default: "100", Max: maxInt32, Mutable: true, Summary: "Append-only file."},
		{Name: "auto-aof-rewrite-min-size", Kind: Memory, Default: "67108864", Max: maxInt64, Mutable: true, Summary: "Append-only file."},
		{Name: "aof-load-truncated", Kind: Bool, Default: "yes", Mutable: true, Summary: "Append-only file."},
		{Name: "aof-use-rdb-preamble", Kind: Bool, Default: "yes", Mutable: true, Summary: "Append-only file."},
		{Name: "aof-timestamp-enabled", Kind: Bool, Default: "no", Mutable: true, Summary: "Append-only file."},
		{Name: "aof-rewrite-incremental-fsync", Kind: Bool, Default: "yes", Mutable: true, Summary: "Append-only file."},
		{Name: "aof-disable-auto-gc", Kind: Bool, Default: "no", Mutable: true, Hidden: true, Summary: "Redis's own tests."},
	})
}

// fileName is the check of directives that name a file without its directory; the words are Redis's.
func fileName(directive, noun string, empty bool) func(string) string {
	return func(v string) string {
		if v == "" && !empty {
			return directive + " can't be empty"
		}
		for i := 0; i < len(v); i++ {
			if v[i] == '/' || v[i] == '\\' {
				return directive + " can't be a path, just a " + noun
			}
		}
		return ""
	}
}

const noReplication = "latchkey does not replicate; to put it in front of a Redis use upstream"

func replicationDirectives() []Directive {
	return noEffect([]Directive{
		{
			Name: "replicaof", Aliases: []string{"slaveof"}, Kind: HostPort, Unsupported: noReplication,
			Summary: "Always empty: latchkey does not replicate. A file that names a master gets a warning.",
		},
		{Name: "masterauth", Kind: String, Mutable: true, Redacted: true, Summary: "Replication in Redis."},
		{Name: "masteruser", Kind: String, Mutable: true, Redacted: true, Summary: "Replication in Redis."},
		{Name: "replica-serve-stale-data", Aliases: []string{"slave-serve-stale-data"}, Kind: Bool, Default: "yes", Mutable: true, Summary: "Replication in Redis."},
		{Name: "replica-read-only", Aliases: []string{"slave-read-only"}, Kind: Bool, Default: "yes", Mutable: true, Summary: "Replication in Redis."},
		{Name: "replica-ignore-maxmemory", Aliases: []string{"slave-ignore-maxmemory"}, Kind: Bool, Default: "yes", Mutable: true, Summary: "Replication in Redis."},
		{Name: "replica-ignore-disk-write-errors", Kind: Bool, Default: "no", Mutable: true, Summary: "Replication in Redis."},
		{Name: "replica-lazy-flush", Aliases: []string{"slave-lazy-flush"}, Kind: Bool, Default: "no", Mutable: true, Summary: "Replication in Redis."},
		{Name: "replica-announced", Kind: Bool, Default: "yes", Mutable: true, Summary: "Replication in Redis."},
		{Name: "replica-announce-ip", Aliases: []string{"slave-announce-ip"}, Kind: String, Mutable: true, Summary: "Replication in Redis."},
		{Name: "replica-announce-port", Aliases: []string{"slave-announce-port"}, Kind: Int, Default: "0", Max: 65535, Mutable: true, Summary: "Replication in Redis."},
		{Name: "replica-priority", Aliases: []string{"slave-priority"}, Kind: Int, Default: "100", Max: maxInt32, Mutable: true, Summary: "Replication in Redis."},
		{Name: "repl-diskless-sync", Kind: Bool, Default: "yes", Mutable: true, Summary: "Replication in Redis."},
		{Name: "repl-diskless-sync-delay", Kind: Int, Default: "5", Max: maxInt32, Mutable: true, Summary: "Replication in Redis."},
		{Name: "repl-diskless-sync-max-replicas", Kind: Int, Default: "0", Max: maxInt32, Mutable: true, Summary: "Replication in Redis."},
		{Name: "repl-diskless-load", Kind: Enum, Default: "disabled", Enum: []string{"disabled", "on-empty-db", "swapdb"}, Mutable: true, Summary: "Replication in Redis."},
		{Name: "repl-disable-tcp-nodelay", Kind: Bool, Default: "no", Mutable: true, Summary: "Replication in Redis."},
		{Name: "repl-ping-replica-period", Aliases: []string{"repl-ping-slave-period"}, Kind: Int, Default: "10", Min: 1, Max: maxInt32, Mutable: true, Summary: "Replication in Redis."},
		{Name: "repl-timeout", Kind: Int, Default: "60", Min: 1, Max: maxInt32, Mutable: true, Summary: "Replication in Redis."},
		{Name: "repl-backlog-size", Kind: Memory, Default: "1048576", Min: 1, Max: maxInt64, Mutable: true, Summary: "Replication in Redis."},
		{Name: "repl-backlog-ttl", Kind: Int, Default: "3600", Max: maxInt64, Mutable: true, Summary: "Replication in Redis."},
		{
			Name: "min-replicas-to-write", Aliases: []string{"min-slaves-to-write"}, Kind: Int, Default: "0", Max: maxInt32, Mutable: true,
			Warn: "there are no replicas to wait for: writes are accepted without", Summary: "Replication in Redis; writes are never refused for want of replicas.",
		},
		{Name: "min-replicas-max-lag", Aliases: []string{"min-slaves-max-lag"}, Kind: Int, Default: "10", Max: maxInt32, Mutable: true, Summary: "Replication in Redis."},
		{Name: "propagation-error-behavior", Kind: Enum, Default: "ignore", Enum: []string{"ignore", "panic", "panic-on-replicas"}, Mutable: true, Summary: "Replication in Redis."},
	})
}

func clusterDirectives() []Directive {
	return noEffect([]Directive{
		{
			Name: "cluster-enabled", Kind: Bool, Default: "no", Unsupported: "latchkey is one server, without cluster mode",
			Summary: "Always no. A file that says yes gets a warning.",
		},
		{Name: "cluster-config-file", Kind: String, Default: "nodes.conf", Summary: "Redis Cluster."},
		{Name: "cluster-node-timeout", Kind: Int, Default: "15000", Max: maxInt64, Mutable: true, Summary: "Redis Cluster."},
		{Name: "cluster-ping-interval", Kind: Int, Default: "0", Max: maxInt64, Mutable: true, Hidden: true, Summary: "Redis's own tests."},
		{Name: "cluster-port", Kind: Int, Default: "0", Max: 65535, Summary: "Redis Cluster."},
		{Name: "cluster-announce-ip", Kind: String, Mutable: true, Summary: "Redis Cluster."},
		{Name: "cluster-announce-port", Kind: Int, Default: "0", Max: 65535, Mutable: true, Summary: "Redis Cluster."},
		{Name: "cluster-announce-tls-port", Kind: Int, Default: "0", Max: 65535, Mutable: true, Summary: "Redis Cluster."},
		{Name: "cluster-announce-bus-port", Kind: Int, Default: "0", Max: 65535, Mutable: true, Summary: "Redis Cluster."},
		{Name: "cluster-announce-hostname", Kind: String, Mutable: true, check: checkHostname, Summary: "Redis Cluster."},
		{Name: "cluster-announce-human-nodename", Kind: String, Mutable: true, check: checkNodename, Summary: "Redis Cluster."},
		{Name: "cluster-preferred-endpoint-type", Kind: Enum, Default: "ip", Enum: []string{"ip", "hostname", "unknown-endpoint"}, Mutable: true, Summary: "Redis Cluster."},
		{Name: "cluster-require-full-coverage", Kind: Bool, Default: "yes", Mutable: true, Summary: "Redis Cluster."},
		{Name: "cluster-allow-reads-when-down", Kind: Bool, Default: "no", Mutable: true, Summary: "Redis Cluster."},
		{Name: "cluster-allow-pubsubshard-when-down", Kind: Bool, Default: "yes", Mutable: true, Summary: "Redis Cluster."},
		{Name: "cluster-allow-replica-migration", Kind: Bool, Default: "yes", Mutable: true, Summary: "Redis Cluster."},
		{Name: "cluster-migration-barrier", Kind: Int, Default: "1", Max: maxInt32, Mutable: true, Summary: "Redis Cluster."},
		{Name: "cluster-replica-no-failover", Aliases: []string{"cluster-slave-no-failover"}, Kind: Bool, Default: "no", Mutable: true, Summary: "Redis Cluster."},
		{Name: "cluster-replica-validity-factor", Aliases: []string{"cluster-slave-validity-factor"}, Kind: Int, Default: "10", Max: maxInt32, Mutable: true, Summary: "Redis Cluster."},
		{Name: "cluster-link-sendbuf-limit", Kind: Memory, Default: "0", Max: maxInt64, Mutable: true, Summary: "Redis Cluster."},
	})
}

func checkHostname(v string) string {
	if len(v) >= 256 {
		return "Hostnames must be less than 256 characters"
	}
	for i := 0; i < len(v); i++ {
		if c := v[i]; !('A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.') {
			return "Hostnames may only contain alphanumeric characters, hyphens or dots"
		}
	}
	return ""
}

func checkNodename(v string) string {
	if strings.ContainsAny(v, "!#$%&()*+:;<>?@[]^{|}~") {
		return "Announced human node name contained invalid character"
	}
	return ""
}

const noTLS = "latchkey does not speak TLS to clients; put a TLS terminator in front of it"

func tlsDirectives() []Directive {
	return noEffect([]Directive{
		{
			Name: "tls-port", Kind: Int, Default: "0", Max: 65535, Mutable: true, Unsupported: noTLS, Required: true,
			Summary: "Always 0: latchkey does not speak TLS to clients. A start with another port is refused.",
		},
		{Name: "tls-cluster", Kind: Bool, Default: "no", Mutable: true, Summary: "TLS in Redis."},
		{Name: "tls-replication", Kind: Bool, Default: "no", Mutable: true, Summary: "TLS in Redis."},
		{Name: "tls-auth-clients", Kind: Enum, Default: "yes", Enum: []string{"no", "yes", "optional"}, Mutable: true, Summary: "TLS in Redis."},
		{Name: "tls-prefer-server-ciphers", Kind: Bool, Default: "no", Mutable: true, Summary: "TLS in Redis."},
		{Name: "tls-session-caching", Kind: Bool, Default: "yes", Mutable: true, Summary: "TLS in Redis."},
		{Name: "tls-session-cache-size", Kind: Int, Default: "20480", Max: maxInt32, Mutable: true, Summary: "TLS in Redis."},
		{Name: "tls-session-cache-timeout", Kind: Int, Default: "300", Max: maxInt32, Mutable: true, Summary: "TLS in Redis."},
		{Name: "tls-cert-file", Kind: String, Mutable: true, Summary: "TLS in Redis."},
		{Name: "tls-key-file", Kind: String, Mutable: true, Summary: "TLS in Redis."},
		{Name: "tls-key-file-pass", Kind: String, Mutable: true, Redacted: true, Summary: "TLS in Redis."},
		{Name: "tls-client-cert-file", Kind: String, Mutable: true, Summary: "TLS in Redis."},
		{Name: "tls-client-key-file", Kind: String, Mutable: true, Summary: "TLS in Redis."},
		{Name: "tls-client-key-file-pass", Kind: String, Mutable: true, Redacted: true, Summary: "TLS in Redis."},
		{Name: "tls-dh-params-file", Kind: String, Mutable: true, Summary: "TLS in Redis."},
		{Name: "tls-ca-cert-file", Kind: String, Mutable: true, Summary: "TLS in Redis."},
		{Name: "tls-ca-cert-dir", Kind: String, Mutable: true, Summary: "TLS in Redis."},
		{Name: "tls-protocols", Kind: String, Mutable: true, Summary: "TLS in Redis."},
		{Name: "tls-ciphers", Kind: String, Mutable: true, Summary: "TLS in Redis."},
		{Name: "tls-ciphersuites", Kind: String, Mutable: true, Summary: "TLS in Redis."},
	})
}

func systemDirectives() []Directive {
	return noEffect([]Directive{
		{
			Name: "daemonize", Kind: Bool, Default: "no", Warn: "latchkey stays in the foreground; let systemd or the shell put it into the background",
			Summary: "latchkey stays in the foreground.",
		},
		{Name: "supervised", Kind: Enum, Default: "no", Enum: []string{"upstart", "systemd", "auto", "no"}, Summary: "How Redis tells a supervisor that it is ready."},
		{Name: "always-show-logo", Kind: Bool, Default: "no", Summary: "There is no logo."},
		{Name: "set-proc-title", Kind: Bool, Default: "yes", Summary: "Title of Redis's process."},
		{Name: "proc-title-template", Kind: String, Default: "{title} {listen-addr} {server-mode}", Mutable: true, check: checkProcTitle, Summary: "Title of Redis's process."},
		{Name: "dynamic-hz", Kind: Bool, Default: "yes", Mutable: true, Summary: "Redis's event loop."},
		{Name: "io-threads", Kind: Int, Default: "1", Min: 1, Max: 128, Summary: "Redis's threads; latchkey has event-loops."},
		{Name: "io-threads-do-reads", Kind: Bool, Default: "no", Summary: "Redis's threads; latchkey has event-loops."},
		{Name: "server_cpulist", Kind: String, Summary: "Cores for Redis's threads; use taskset."},
		{Name: "bio_cpulist", Kind: String, Summary: "Cores for Redis's threads."},
		{Name: "aof_rewrite_cpulist", Kind: String, Summary: "Cores for Redis's threads."},
		{Name: "bgsave_cpulist", Kind: String, Summary: "Cores for Redis's threads."},
		{Name: "bind-source-addr", Kind: String, Mutable: true, Summary: "Address that Redis connects from."},
		{Name: "socket-mark-id", Kind: Int, Default: "0", Max: maxUint32, Summary: "Mark on Redis's sockets."},
		{Name: "syslog-enabled", Kind: Bool, Default: "no", Summary: "Redis's log; use the journal or logfile."},
		{Name: "syslog-ident", Kind: String, Default: "redis", Summary: "Redis's log."},
		{Name: "syslog-facility", Kind: Enum, Default: "local0", Enum: []string{"user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"}, Summary: "Redis's log."},
		{Name: "crash-log-enabled", Kind: Bool, Default: "yes", Mutable: true, Summary: "Redis's crash report."},
		{Name: "crash-memcheck-enabled", Kind: Bool, Default: "yes", Mutable: true, Summary: "Redis's crash report."},
		{Name: "use-exit-on-panic", Kind: Bool, Default: "no", Mutable: true, Hidden: true, Summary: "Redis's own tests."},
		{Name: "watchdog-period", Kind: Int, Default: "0", Max: maxInt32, Mutable: true, Hidden: true, Summary: "Redis's own tests."},
		{Name: "client-default-resp", Kind: Int, Default: "2", Min: 2, Max: 3, Hidden: true, Summary: "Redis's own tests."},
		{Name: "req-res-logfile", Kind: String, Hidden: true, Summary: "Redis's own tests."},
		{Name: "disable-thp", Kind: Bool, Default: "yes", Summary: "Huge pages in Redis's process."},
		{Name: "oom-score-adj", Kind: Enum, Default: "no", Enum: []string{"no", "yes", "relative", "absolute"}, same: map[string]string{"relative": "yes"}, Mutable: true, Summary: "The kernel's choice of whom to kill when memory runs out; use systemd's OOMScoreAdjust."},
		{Name: "oom-score-adj-values", Kind: OOMScores, Default: "0 200 800", Mutable: true, Summary: "See oom-score-adj."},
		{Name: "ignore-warnings", Kind: String, Mutable: true, Summary: "Warnings of Redis about the machine."},
		{Name: "locale-collate", Kind: String, Mutable: true, Summary: "Order of SORT ALPHA in Redis 7.2."},
		{Name: "shutdown-on-sigint", Kind: Flags, Default: "default", Enum: []string{"default", "save", "nosave", "now", "force"}, Mutable: true, Summary: "What Redis saves when it is ended by SIGINT; there is nothing to save."},
		{Name: "shutdown-on-sigterm", Kind: Flags, Default: "default", Enum: []string{"default", "save", "nosave", "now", "force"}, Mutable: true, Summary: "What Redis saves when it is ended by SIGTERM; there is nothing to save."},
	})
}

// checkProcTitle wants the variables that Redis knows, closed.
func checkProcTitle(v string) string {
	const bad = "template format is invalid or contains unknown variables"
	text := false
	for i := 0; i < len(v); i++ {
		if v[i] != '{' {
			text = true
			continue
		}
		end := i + 1
		for end < len(v) && v[end] != '}' {
			end++
		}
		if end == len(v) {
			return bad
		}
		switch v[i+1 : end] {
		case "title", "listen-addr", "server-mode", "port", "tls-port", "unixsocket", "config-file":
			text = true
		default:
			return bad
		}
		i = end
	}
	if !text {
		return bad
	}
	return ""
}
