package config

import (
	"slices"
	"strconv"
	"strings"
)

// The groups, in the order of the reference page.
const (
	groupNetwork  = "Network"
	groupOwn      = "Ownership and upstream"
	groupClients  = "Clients and their limits"
	groupSecurity = "Security"
	groupScripts  = "Scripts"
	groupPlugins  = "Plugins"
	groupMemory   = "Memory and expiry"
	groupDurable  = "Durability"
	groupObserve  = "Events and observation"
	groupRun      = "The program"
	groupNoEffect = "Accepted, without effect"
)

// directives is the table: everything latchkey knows by name, latchkey's own and Redis's.
func directives() []Directive {
	var all []Directive
	for _, part := range [][]Directive{
		networkDirectives(), ownDirectives(), clientDirectives(), securityDirectives(), scriptDirectives(),
		pluginDirectives(), memoryDirectives(), durableDirectives(), observeDirectives(), runDirectives(),
		encodingDirectives(), evictionDirectives(), persistenceDirectives(), replicationDirectives(),
		clusterDirectives(), tlsDirectives(), systemDirectives(),
	} {
		all = append(all, part...)
	}
	return all
}

// obsolete names directives that redis-server still reads and forgets, with one argument.
func obsolete(name string) bool {
	switch name {
	case "list-max-ziplist-entries", "list-max-ziplist-value", "lua-replicate-commands":
		return true
	}
	return false
}

func networkDirectives() []Directive {
	const g = groupNetwork
	return []Directive{
		{
			Name: "bind", Group: g, Kind: Words, Default: "127.0.0.1 ::1", Mutable: true,
			Summary: "Addresses to listen on, at most 16. A leading - lets an address that does not exist be skipped; * is every IPv4 address, ::* every IPv6 address. Redis's default is `* -::*`: everywhere.",
		},
		{
			Name: "port", Group: g, Kind: Int, Default: "6380", Min: 0, Max: 65535, Mutable: true,
			Summary: "TCP port; 0 listens on no TCP port. Redis's default is 6379.",
		},
		{
			Name: "tcp-backlog", Group: g, Kind: Int, Default: "511", Min: 0, Max: maxInt32,
			Summary: "Connections the kernel may hold before they are accepted; the kernel caps it at net.core.somaxconn.",
		},
		{
			Name: "tcp-keepalive", Group: g, Kind: Int, Default: "300", Min: 0, Max: maxInt32, Mutable: true,
			Summary: "Seconds of silence after which the kernel probes a client's connection; 0 never probes.",
		},
		{
			Name: "event-loops", Group: g, Kind: Int, Default: "-1", Min: -1, Max: 1024,
			Summary: "Event loops that may serve the clients, each on one core at a time; one does until it is busy all the time, then the next joins. -1 is one for every two cores, 0 gives each client a goroutine of its own. With an upstream, and elsewhere than on Linux (amd64, arm64), it is as 0.",
		},
		{
			Name: "unixsocket", Group: g, Kind: String,
			Summary: "Path of a Unix domain socket to listen on besides TCP; empty for none.",
		},
		{
			Name: "unixsocketperm", Group: g, Kind: Octal, Default: "0", Min: 0, Max: 0o777,
			Summary: "Octal permissions of the Unix socket; 0 leaves those the umask gives.",
		},
	}
}

func ownDirectives() []Directive {
	const g = groupOwn
	return []Directive{
		{
			Name: "upstream", Group: g, Kind: String, Redacted: true,
			Summary: "The Redis or Valkey behind latchkey, as `redis://[user:password@]host[:port][/db]`, with `rediss://` for TLS, or as `unix://[user:password@]/path[?db=N]`. Empty: latchkey stands alone and owns every key.",
		},
		{
			Name: "own", Group: g, Kind: Words, Repeatable: true, check: checkOwn,
			Summary: "Glob patterns of the keys that latchkey owns beside an upstream, each as `[dbN/]PATTERN`, such as `lock:*` or `db3/lock:*`. May be repeated. Without an upstream all keys are owned, whatever stands here.",
		},
		{
			Name: "upstream-connections", Group: g, Kind: Int, Default: "4", Min: 1, Max: 1024,
			Summary: "Pipelined connections to the upstream that clients share.",
		},
		{
			Name: "upstream-timeout", Group: g, Kind: Int, Default: "5000", Min: 0, Max: maxInt32,
			Summary: "Milliseconds to wait for the upstream to accept a connection, or to send a byte of a reply that it owes; 0 waits for ever.",
		},
	}
}

// OwnRule is one word of own.
type OwnRule struct {
	DB      int // -1: every database
	Pattern string
}

// ParseOwn reads [dbN/]PATTERN. N is written as INFO does: what begins with db03/ is
// a pattern.
func ParseOwn(word string) OwnRule {
	if rest, ok := strings.CutPrefix(word, "db"); ok {
		if digits, pattern, ok := strings.Cut(rest, "/"); ok {
			if n, err := strconv.ParseUint(digits, 10, 31); err == nil && strconv.FormatUint(n, 10) == digits {
				return OwnRule{DB: int(n), Pattern: pattern}
			}
		}
	}
	return OwnRule{DB: -1, Pattern: word}
}

func checkOwn(word string) string {
	if ParseOwn(word).Pattern == "" {
		return "the pattern is empty: write own * to own every key"
	}
	return ""
}

func clientDirectives() []Directive {
	const g = groupClients
	return []Directive{
		{
			Name: "maxclients", Group: g, Kind: Int, Default: "10000", Min: 1, Max: maxUint32, Mutable: true,
			Summary: "Connections served at once; the next one is told so and closed.",
		},
		{
			Name: "timeout", Group: g, Kind: Int, Default: "0", Min: 0, Max: maxInt32, Mutable: true,
			Summary: "Seconds after which an idle client is disconnected; 0 never. Subscribers are excepted, and clients whose command runs or waits; one that does not read its replies is idle.",
		},
		{
			Name: "databases", Group: g, Kind: Int, Default: "16", Min: 1, Max: maxInt32,
			Summary: "Databases that SELECT may choose from.",
		},
		{
			Name: "proto-max-bulk-len", Group: g, Kind: Memory, Default: "536870912", Min: 1 << 20, Max: maxInt64, Mutable: true,
			Summary: "Bytes that one argument of a command, and one string value, may have.",
		},
		{
			Name: "client-query-buffer-limit", Group: g, Kind: Memory, Default: "1073741824", Min: 1 << 20, Max: maxInt64, Mutable: true,
			Summary: "Bytes that one client's unfinished command may hold before the client is disconnected.",
		},
		{
			Name: "client-query-memory-limit", Group: g, Kind: Memory, Default: "1073741824", Min: 1 << 20, Max: maxInt64, Mutable: true,
			Summary: "Bytes that the unfinished commands of all clients may hold together. latchkey's own: without it maxclients times client-query-buffer-limit would be the bound.",
		},
		{
			Name: "transaction-max-memory", Group: g, Kind: Memory, Default: "536870912", Min: 1 << 20, Max: maxInt64, Mutable: true,
			Summary: "Bytes that the changes and messages of one script or MULTI may take until it ends; further commands in it are answered with -OOM. A script that overwrites one key again and again would otherwise take all memory, though it leaves one value.",
		},
		{
			Name: "client-output-buffer-limit", Group: g, Kind: BufferLimits, Mutable: true,
			Default: "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
			Summary: "For the classes normal, replica (or slave) and pubsub: bytes of unsent replies at which a client is disconnected at once, bytes at which it is after so many seconds, and the seconds; 0 is no limit. Classes not named keep theirs. The replica class is without effect.",
		},
	}
}

func securityDirectives() []Directive {
	const g = groupSecurity
	return []Directive{
		{
			Name: "requirepass", Group: g, Kind: String, Mutable: true, Redacted: true,
			Summary: "Password of the default user; empty lets everybody in who can connect.",
		},
		{
			Name: "protected-mode", Group: g, Kind: Bool, Default: "yes", Mutable: true,
			Summary: "Refuse clients from other machines as long as the default user has no password.",
		},
		{
			Name: "enable-protected-configs", Group: g, Kind: Enum, Default: "no", Enum: []string{"no", "yes", "local"},
			Summary: "Who may CONFIG SET the directives marked as protected: nobody, everybody, or clients connected by loopback or Unix socket.",
		},
		{
			Name: "enable-debug-command", Group: g, Kind: Enum, Default: "no", Enum: []string{"no", "yes", "local"},
			Summary: "Who may use DEBUG: nobody, everybody, or clients connected by loopback or Unix socket.",
		},
		{
			Name: "enable-module-command", Group: g, Kind: Enum, Default: "no", Enum: []string{"no", "yes", "local"},
			Summary: "Who may use MODULE LOAD and UNLOAD: nobody, everybody, or clients connected by loopback or Unix socket.",
		},
		{
			Name: "enable-plugin-put", Group: g, Kind: Enum, Default: "no", Enum: []string{"no", "yes", "local"},
			Summary: "Who may write modules to plugin-dir with LATCHKEY PLUGIN PUT: nobody, everybody, or clients connected by loopback or Unix socket. To load them needs enable-module-command.",
		},
		{
			Name: "user", Group: g, Kind: Lines, Min: 1, Max: maxWords, Repeatable: true, Redacted: true, line: checkUser,
			takes:   "default on nopass ~* &* +@all",
			Summary: "An ACL user and its rules. There is one, default, and its password is requirepass; a start with a line for another user, or with other rules, is refused, because without them more would be allowed than was meant.",
		},
		{
			Name: "aclfile", Group: g, Kind: String, Required: true,
			Unsupported: "latchkey does not read ACL files; it has one user, default, whose password is requirepass",
			Summary:     "Not supported: a start with an ACL file is refused, because without it more would be allowed than was meant.",
		},
		{
			Name: "acl-pubsub-default", Group: g, Kind: Enum, Default: "resetchannels", Enum: []string{"allchannels", "resetchannels"}, Mutable: true,
			Summary: "Pub/sub channels that a new ACL user may use before a rule says so.",
		},
		{
			Name: "acllog-max-len", Group: g, Kind: Int, Default: "128", Min: 0, Max: maxInt64, Mutable: true,
			Summary: "Entries that ACL LOG keeps.",
		},
		{
			Name: "rename-command", Group: g, Kind: Lines, Min: 2, Max: 2, Repeatable: true,
			takes:   "a command and its new name, or \"\" to take it away",
			Summary: "Gives a command another name, under which clients and scripts call it from then on; the empty name \"\" takes it away. One line per command, in their order. COMMAND, INFO and the upstream know it by its own name.",
		},
	}
}

func scriptDirectives() []Directive {
	const g = groupScripts
	return []Directive{
		{
			Name: "busy-reply-threshold", Aliases: []string{"lua-time-limit"}, Group: g, Kind: Int, Default: "5000", Min: 0, Max: maxInt64, Mutable: true,
			Summary: "Milliseconds after which a script counts as slow: clients that wait for its keys are answered -BUSY, and SCRIPT KILL and FUNCTION KILL may end it. With 0 nobody is answered -BUSY, and they end whatever has run for more than 2 ms.",
		},
		{
			Name: "script-max-time", Group: g, Kind: Int, Default: "0", Min: 0, Max: maxInt32, Mutable: true,
			Summary: "Milliseconds after which a script is ended and rolled back; 0 lets it run.",
		},
		{
			Name: "script-error-rollback", Group: g, Kind: Bool, Default: "yes", Mutable: true,
			Summary: "Roll back everything a script wrote when it ends in an uncaught error. `no` is Redis's behaviour: what was written before the error stays.",
		},
		{
			Name: "max-long-scripts", Group: g, Kind: Int, Default: "0", Min: 0, Max: 1024,
			Summary: "Scripts that may run for more than 2 ms at the same time; 0 is the number of cores. The program uses as many processors more.",
		},
		{
			Name: "lua-max-script-bytes", Group: g, Kind: Memory, Default: "1048576", Min: 1024, Max: 1 << 30, Mutable: true,
			Summary: "Bytes that the source of one script or library may have.",
		},
		{
			Name: "lua-max-memory", Group: g, Kind: Memory, Default: "268435456", Min: 1 << 20, Max: maxInt64, Mutable: true,
			Summary: "Bytes that the Lua values of one running script may take; beyond it the script is ended and rolled back.",
		},
		{
			Name: "lua-max-instructions", Group: g, Kind: Int, Default: "0", Min: 0, Max: maxInt64, Mutable: true,
			Summary: "Lua instructions that one call of a script may execute before it is ended and rolled back; 0 is no limit.",
		},
		{
			Name: "lua-max-total-memory", Group: g, Kind: Memory, Default: "1073741824", Min: 1 << 20, Max: maxInt64, Mutable: true,
			Summary: "Bytes that the Lua values of all running scripts may take together; beyond it the script that has taken the most is ended and rolled back.",
		},
		{
			Name: "lua-max-call-depth", Group: g, Kind: Int, Default: "8192", Min: 200, Max: 20000, Mutable: true,
			Summary: "Calls of Lua functions that may nest in a script; beyond it the script has the error of a stack overflow, and earlier when the functions that wait nest deep in their source, or, on the virtual machine, within pcall, where half as many nest as outside of it. Protected calls, coroutines and functions that C calls back nest at most 200 deep, as in Redis.",
		},
		{
			Name: "lua-max-table-depth", Group: g, Kind: Int, Default: "1000", Min: 16, Max: 10000, Mutable: true,
			Summary: "Levels that the value which a script returns may have, a plain value within a table being the second; what is deeper becomes an error in its place. cjson and cmsgpack have bounds of their own, as in Redis: cjson.encode_max_depth and cjson.decode_max_depth, 1000 unless a script sets them, and never above 8,000.",
		},
		{
			Name: "lua-engine", Group: g, Kind: Enum, Default: "auto", Enum: []string{"auto", "vm"}, Mutable: true,
			Summary: "What runs Lua scripts: auto takes the compiler to closures for the scripts it covers, which is several times faster, and the virtual machine for the others; vm takes that for all. INFO says how many scripts each got, and why.",
		},
		{
			Name: "script-cache-max-entries", Group: g, Kind: Int, Default: "10000", Min: 1, Max: maxInt32, Mutable: true,
			Summary: "Scripts kept for EVALSHA; beyond it those that only EVAL brought leave first, then those of SCRIPT LOAD, the longest unused one before the others. Those that a queued EVALSHA names stay, up to half of the cache, and one in any case.",
		},
		{
			Name: "script-cache-max-bytes", Group: g, Kind: Memory, Default: "67108864", Min: 1 << 20, Max: maxInt64, Mutable: true,
			Summary: "Bytes that the scripts kept for EVALSHA may take, about 21 for each byte of source: the source and what it was compiled to. Beyond it they leave as with `script-cache-max-entries`.",
		},
		{
			Name: "script-cache-file", Group: g, Kind: String, Default: "latchkey-scripts.resp",
			Summary: "File in `dir` that keeps the scripts of SCRIPT LOAD, so that EVALSHA finds them after a restart; empty keeps none. Nothing is kept, and no file is made, unless `dir` is given: a server that is tried out leaves nothing behind.",
		},
		{
			Name: "function-max-libraries", Group: g, Kind: Int, Default: "1024", Min: 1, Max: maxInt32, Mutable: true,
			Summary: "Function libraries that there may be; FUNCTION LOAD and FUNCTION RESTORE refuse more.",
		},
		{
			Name: "function-max-functions", Group: g, Kind: Int, Default: "1024", Min: 1, Max: maxInt32, Mutable: true,
			Summary: "Functions that one library may register.",
		},
		{
			Name: "function-max-bytes", Group: g, Kind: Memory, Default: "67108864", Min: 1 << 20, Max: maxInt64, Mutable: true,
			Summary: "Bytes that all function libraries may take together: their sources and their code, which is about twenty times as large.",
		},
	}
}

func pluginDirectives() []Directive {
	const g = groupPlugins
	return []Directive{
		{
			Name: "loadmodule", Group: g, Kind: Lines, Min: 1, Max: maxWords, Repeatable: true,
			Summary: "A WASM module to load at start, and its arguments. One line per module.",
		},
		{
			Name: "plugin-dir", Group: g, Kind: String,
			Summary: "Directory that modules must lie in once links are followed, those of loadmodule and of MODULE LOAD; empty lets them lie anywhere. Relative paths, of modules too, start in the working directory.",
		},
		{
			Name: "plugin-cache-dir", Group: g, Kind: String,
			Summary: "Folder of compiled modules, from which a module loads without being compiled again. It holds native code that the server runs, so it must belong to the server's user and be closed to all others (0700). Empty: latchkey/plugins among the user's cache files ($XDG_CACHE_HOME or ~/.cache). It is made when the first module is loaded.",
		},
		{
			Name: "plugin-max-time", Group: g, Kind: Int, Default: "1000", Min: 1, Max: maxInt32, Mutable: true,
			Summary: "Milliseconds that one call of a plugin command may take before it is ended and rolled back. There is always a limit, because others wait for the keys of the call.",
		},
		{
			Name: "plugin-max-compile-time", Group: g, Kind: Int, Default: "30000", Min: 1, Max: maxInt32, Mutable: true,
			Summary: "Milliseconds of processor time that compiling a module may take, rounded up to seconds. It happens in a process of its own, while the server goes on; then that process is ended and the module refused. What is in plugin-cache-dir is not compiled again.",
		},
		{
			Name: "plugin-max-failures", Group: g, Kind: Int, Default: "100", Min: 0, Max: maxInt32, Mutable: true,
			Summary: "Traps of one module within plugin-failure-window after which it is disabled: its commands answer -PLUGINDISABLED until MODULE RELOAD. A trap is the end of a guest that ran out of time, fuel or memory, or that is wrong. 0 never.",
		},
		{
			Name: "plugin-failure-window", Group: g, Kind: Int, Default: "60000", Min: 1, Max: maxInt32, Mutable: true,
			Summary: "Milliseconds within which the traps of a module count for plugin-max-failures.",
		},
		{
			Name: "plugin-deny", Group: g, Kind: Lines, Min: 2, Max: maxWords, Repeatable: true,
			Summary: "Capabilities withheld from a module when it is loaded, whatever its manifest asks for: its name, or * for all, and any of read, write, commands, timers, events, state, block and clients. One line per module.",
			line:    checkDeny,
		},
		{
			Name: "plugin-max-memory-pages", Group: g, Kind: Int, Default: "256", Min: 1, Max: 65536,
			Summary: "Pages of 64 KiB that one instance's linear memory may grow to; the default is 16 MiB.",
		},
		{
			Name: "plugin-max-instances", Group: g, Kind: Int, Default: "64", Min: 1, Max: 4096,
			Summary: "Instances of one module that may exist, and so how many of its commands run at the same time; more callers wait.",
		},
	}
}

// checkDeny refuses a line of plugin-deny that names no capability.
func checkDeny(args []string) string {
	for _, name := range args[1:] {
		if !slices.Contains(capabilities, name) {
			return "\"" + name + "\" is no capability; they are " + strings.Join(capabilities, ", ")
		}
	}
	return ""
}

var capabilities = []string{"read", "write", "commands", "timers", "events", "state", "block", "clients"}

func memoryDirectives() []Directive {
	const g = groupMemory
	return []Directive{
		{
			Name: "maxmemory", Group: g, Kind: Memory, Default: "0", Min: 0, Max: maxInt64, Huge: true, Mutable: true,
			Summary: "Bytes that keys and values may take, by latchkey's own accounting. Above it commands that may grow the keyspace answer -OOM, all others go on; 0 is no limit.",
		},
		{
			Name: "maxmemory-policy", Group: g, Kind: Enum, Default: "noeviction", Mutable: true,
			Enum:        []string{"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "allkeys-lru", "allkeys-lfu", "allkeys-random", "noeviction"},
			Unsupported: "latchkey never evicts: evicting a lock gives it to two holders; only noeviction is supported",
			Summary:     "Always noeviction: evicting a lock would give it to two holders. A file that asks for another policy gets a warning, CONFIG SET is refused.",
		},
		{
			Name: "active-expire-effort", Group: g, Kind: Int, Default: "1", Min: 1, Max: 10, Mutable: true,
			Summary: "How much time each round of active expiry, ten a second, may take: so many times 5 ms.",
		},
	}
}

func durableDirectives() []Directive {
	const g = groupDurable
	return []Directive{
		{
			Name: "dir", Group: g, Kind: Dir, Default: ".", Mutable: true, Protected: true,
			Summary: "Working directory; relative paths in other directives start here. The default is the directory the program was started in.",
		},
		{
			Name: "appendonly", Group: g, Kind: Bool, Default: "no", Mutable: true,
			Unsupported: "latchkey keeps its keys in memory only; an append-only file is not supported yet",
			Summary:     "Always no: keys live in memory and are gone when the program ends. A file that says yes gets a warning, CONFIG SET is refused.",
		},
	}
}

func observeDirectives() []Directive {
	const g = groupObserve
	return []Directive{
		{
			Name: "notify-keyspace-events", Group: g, Kind: KeyspaceEvents, Mutable: true,
			Summary: "Classes of keyspace events to publish, out of Ag$lshzxeKEtmdn as in Redis; empty publishes none. CONFIG GET shows them in Redis's canonical order.",
		},
		{
			Name: "slowlog-log-slower-than", Group: g, Kind: Int, Default: "10000", Min: -1, Max: maxInt64, Mutable: true,
			Summary: "Microseconds a command must take to be put into SLOWLOG; 0 logs every command, -1 none.",
		},
		{
			Name: "slowlog-max-len", Group: g, Kind: Int, Default: "128", Min: 0, Max: maxInt64, Mutable: true,
			Summary: "Entries that SLOWLOG keeps.",
		},
		{
			Name: "latency-monitor-threshold", Group: g, Kind: Int, Default: "0", Min: 0, Max: maxInt64, Mutable: true,
			Summary: "Milliseconds an event must take to be sampled for LATENCY; 0 samples none.",
		},
		{
			Name: "latency-tracking", Group: g, Kind: Bool, Default: "yes", Mutable: true,
			Summary: "Keep a histogram of each command's latency for LATENCY HISTOGRAM and INFO latencystats.",
		},
		{
			Name: "latency-tracking-info-percentiles", Group: g, Kind: Percentiles, Default: "50 99 99.9", Mutable: true,
			Summary: "Percentiles that INFO latencystats shows.",
		},
	}
}

func runDirectives() []Directive {
	const g = groupRun
	return []Directive{
		{
			Name: "include", Group: g, Kind: Lines, Min: 1, Max: 1, Repeatable: true,
			Summary: "Reads another file, or all that match a glob pattern, at this place. At most 8 files deep and 256 in all.",
		},
		{
			Name: "loglevel", Group: g, Kind: Enum, Default: "notice", Enum: []string{"debug", "verbose", "notice", "warning", "nothing"}, Mutable: true,
			Summary: "Least serious messages to log; verbose logs what notice does.",
		},
		{
			Name: "logfile", Group: g, Kind: String,
			Summary: "File to append the log to; empty writes it to standard error, and the lines about the start and the end to standard output.",
		},
		{
			Name: "pidfile", Group: g, Kind: String,
			Summary: "File to write the process id to; removed at a clean end. Empty writes none.",
		},
		{
			Name: "shutdown-timeout", Group: g, Kind: Int, Default: "10", Min: 0, Max: maxInt32, Mutable: true,
			Summary: "Seconds that SIGTERM and SHUTDOWN give running commands to finish.",
		},
		{
			Name: "hz", Group: g, Kind: Int, Default: "10", Min: 0, Max: maxInt32, Mutable: true, adjust: clampHz,
			Summary: "Shown by INFO, brought into the range from 1 to 500. Background rounds, such as the active expiry cycle's, run ten times a second whatever it says.",
		},
	}
}

// clampHz keeps hz between 1 and 500, as Redis does without a word.
func clampHz(n int64) int64 { return min(max(n, 1), 500) }
