package proxy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// infoLines are the section headers and field names of INFO, in their order.
func infoLines(text string) []string {
	var out []string
	for line := range strings.SplitSeq(text, "\r\n") {
		if line != "" {
			name, _, _ := strings.Cut(line, ":")
			out = append(out, name)
		}
	}
	return out
}

// infoField is the value of a field of INFO.
func infoField(t *testing.T, text, name string) string {
	t.Helper()
	for line := range strings.SplitSeq(text, "\r\n") {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return v
		}
	}
	t.Fatalf("INFO has no field %s:\n%s", name, text)
	return ""
}

// TestInfoHasRedisFields wants every section and field of redis-server 7.0, in
// its order; others may stand between them.
func TestInfoHasRedisFields(t *testing.T) {
	theirs, ours := dial(t, startRedis(t)), startServerWith(t, Options{}).dial(t)
	for _, args := range [][]string{{"INFO"}, {"INFO", "everything"}} {
		want, got := infoLines(theirs.text(args...)), infoLines(ours.text(args...))
		want = slices.DeleteFunc(want, func(name string) bool { // of what has run before
			return strings.HasPrefix(name, "cmdstat_") || strings.HasPrefix(name, "latency_percentiles") || strings.HasPrefix(name, "errorstat_")
		})
		at := 0
		for _, name := range want {
			i := slices.Index(got[at:], name)
			if i < 0 {
				t.Errorf("%s: %q is missing, or stands before %q", args, name, got[max(0, at-1)])
				continue
			}
			at += i + 1
		}
		if len(want) < 150 {
			t.Errorf("%s: redis-server has %d lines; the comparison means little", args, len(want))
		}
	}
}

func TestInfoSections(t *testing.T) {
	c := startServerWith(t, Options{Version: "1.2.3"}).dial(t)
	headers := func(args ...string) string {
		var out []string
		for _, l := range infoLines(c.text(append([]string{"INFO"}, args...)...)) {
			if name, ok := strings.CutPrefix(l, "# "); ok {
				out = append(out, name)
			}
		}
		return strings.Join(out, " ")
	}
	const usual = "Server Clients Memory Persistence Stats Replication CPU Modules Errorstats Cluster Keyspace Latchkey"
	const all = "Server Clients Memory Persistence Stats Replication CPU Modules Commandstats Errorstats Latencystats Cluster Keyspace Latchkey Scriptstats"
	for _, tt := range []struct{ args, want string }{
		{"", usual},
		{"default", usual},
		{"DEFAULT commandstats", strings.Replace(usual, "Errorstats", "Commandstats Errorstats", 1)},
		{"all", all},
		{"Everything", all},
		{"none", ""},
		{"keyspace", "Keyspace"},
		{"KeySpace CLUSTER keyspace none", "Cluster Keyspace"},
		{"module_list", "Modules"},
	} {
		if got := headers(strings.Fields(tt.args)...); got != tt.want {
			t.Errorf("INFO %s\n got %s\nwant %s", tt.args, got, tt.want)
		}
	}
	if got := c.text("INFO", "keyspace"); got != "# Keyspace\r\n" {
		t.Errorf("INFO keyspace of an empty server: %q", got)
	}
	c.want("SET a 1", "+OK")
	c.want("SET b 1 EX 100", "+OK")
	c.want("SELECT 3", "+OK")
	c.want("SET c 1", "+OK")
	if got, want := c.text("INFO", "keyspace"), "# Keyspace\r\ndb0:keys=2,expires=1,avg_ttl=0\r\ndb3:keys=1,expires=0,avg_ttl=0\r\n"; got != want {
		t.Errorf("INFO keyspace: %q, want %q", got, want)
	}
	text := c.text("INFO")
	for name, want := range map[string]string{
		"redis_version": RedisVersion, "latchkey_version": "1.2.3", "connected_clients": "1", "connected_slaves": "0", "role": "master",
		"maxmemory_policy": "noeviction", "maxclients": "10000", "latchkey_owns": "*", "latchkey_upstream": "none",
		"latchkey_lsn": "3", "latchkey_commits": "3",
	} {
		if got := infoField(t, text, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name, pattern := range map[string]string{
		"run_id": `[0-9a-f]{40}`, "master_replid": `[0-9a-f]{40}`, "used_memory": `[1-9][0-9]*`, "used_memory_rss": `[1-9][0-9]*`,
		"used_memory_human": `[0-9.]+[BKMG]`, "total_system_memory": `[1-9][0-9]*`, "used_cpu_user": `[0-9]+\.[0-9]{6}`,
		"tcp_port": `[1-9][0-9]*`, "used_memory_peak_perc": `[0-9.]+%`, "latchkey_used_memory": `[1-9][0-9]*`, "total_net_input_bytes": `[1-9][0-9]*`, "total_reads_processed": `[1-9][0-9]*`, "total_writes_processed": `[1-9][0-9]*`,
	} {
		if got := infoField(t, text, name); !regexp.MustCompile("^" + pattern + "$").MatchString(got) {
			t.Errorf("%s is %q, want %s", name, got, pattern)
		}
	}
	c.do("HELLO 3")
	if got := c.do("INFO cluster"); got != `="txt:# Cluster\r\ncluster_enabled:0\r\n"` {
		t.Errorf("INFO in RESP3: %s, want a verbatim string", got)
	}
}

func TestInfoCountsCommandsAndErrors(t *testing.T) {
	s := startServerWith(t, Options{})
	s.resetStats() // the counts belong to the table, which outlives a server
	c := s.dial(t)
	c.want("CONFIG RESETSTAT", "+OK")
	c.want("SET k v", "+OK")
	c.want("GET k", `"v"`)
	c.want("GET none", "(nil)")
	c.want("INCR k", "-ERR value is not an integer or out of range")
	c.do("GET")
	c.do("NOSUCH")
	text := c.text("INFO", "commandstats", "errorstats", "latencystats", "stats")
	for name, pattern := range map[string]string{
		"cmdstat_get":                  `calls=2,usec=\d+,usec_per_call=\d+\.\d\d,rejected_calls=1,failed_calls=0`,
		"cmdstat_incr":                 `calls=1,usec=\d+,usec_per_call=\d+\.\d\d,rejected_calls=0,failed_calls=1`,
		"cmdstat_config|resetstat":     `calls=1,.*`,
		"errorstat_ERR":                `count=3`,
		"latency_percentiles_usec_get": `p50=\d+\.\d{3},p99=\d+\.\d{3},p99\.9=\d+\.\d{3}`,
		"total_commands_processed":     `5`,
		"total_error_replies":          `3`,
		"keyspace_hits":                `1`,
		"keyspace_misses":              `1`,
	} {
		if got := infoField(t, text, name); !regexp.MustCompile("^" + pattern + "$").MatchString(got) {
			t.Errorf("%s is %q, want %s", name, got, pattern)
		}
	}
	// A pipeline: what stands before RESETSTAT does not count after it.
	c.send("GET", "k")
	c.send("CONFIG", "RESETSTAT")
	c.send("INFO", "commandstats", "stats", "errorstats")
	c.read()
	c.read()
	text = c.read()
	if strings.Contains(text, "cmdstat_get") || strings.Contains(text, "errorstat_") || !strings.Contains(text, `keyspace_hits:0\r\n`) {
		t.Errorf("after CONFIG RESETSTAT: %s", text)
	}
	c.want("CONFIG SET latency-tracking no", "+OK")
	if got := c.text("INFO", "latencystats"); got != "# Latencystats\r\n" {
		t.Errorf("INFO latencystats with latency-tracking no: %q", got)
	}
}

func TestErrorCodesAreBounded(t *testing.T) {
	var e errorCounts
	for i := range 1000 {
		e.add(fmt.Sprintf("CODE%d made up by a script", i))
	}
	e.add("CODE3 again")
	e.add(strings.Repeat("x", 100) + " a word that is too long for a code")
	n, codes := int64(0), map[string]int64{}
	e.each(func(code string, count int64) { codes[code] = count; n += count })
	if len(codes) != maxErrorCodes+1 || n != 1002 || codes["CODE3"] != 2 || codes[otherErrors] != 1000-maxErrorCodes+1 {
		t.Errorf("%d codes for %d errors, CODE3 %d times, beyond the limit %d; want %d for 1002, 2 and %d",
			len(codes), n, codes["CODE3"], codes[otherErrors], maxErrorCodes+1, 1000-maxErrorCodes+1)
	}
}

func TestRates(t *testing.T) {
	var r rates
	at := time.Unix(1, 0)
	for i := range int64(20) {
		r.add(at, [rateKinds]int64{rateCommands: 50 * i})
		at = at.Add(100 * time.Millisecond)
	}
	if got := r.perSecond(rateCommands); got < 499.9 || got > 500.1 {
		t.Errorf("50 commands each 100 ms are %v per second, want 500", got)
	}
	r.add(at, [rateKinds]int64{}) // the counter was reset
	if got := r.perSecond(rateCommands); got < 0 {
		t.Errorf("a reset counter makes the rate negative: %v", got)
	}
}

func TestHumanBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0B", 1023: "1023B", 1024: "1.00K", 1237760: "1.18M", 25276514304: "23.54G", 1 << 40: "1.00T"} {
		if got := humanBytes(n); got != want {
			t.Errorf("humanBytes(%d) is %q, want %q", n, got, want)
		}
	}
}

// TestInfoOfTheRooms: what INFO says of scripts and modules is what the rooms say.
func TestInfoOfTheRooms(t *testing.T) {
	c := startServerWith(t, Options{
		Scripts: func() ScriptStats {
			return ScriptStats{
				Cached: 1, CachedBytes: 2048, Evicted: 3, Long: 4, Rollbacks: 5, Killed: 6, Undeclared: 8, Reruns: 7,
				Compiled:          EngineCounts{10, 11, map[string]int64{"coroutine": 12, "_G": 13, "switched off": 14}},
				CompiledLibraries: EngineCounts{15, 16, map[string]int64{"loadstring": 17}},
			}
		},
		ScriptTally: func() []ScriptCounts { return []ScriptCounts{{"abc", 1, 2, 3, 4}, {"a:b", 0, 0, 0, 1}} },
		Modules: func() []Module {
			return []Module{{Name: "limiter", Version: 2, Calls: 9, Errors: 3, Traps: 1, Running: 2, Instances: 4, MemoryBytes: 65536}}
		},
	}).dial(t)
	text := c.text("INFO", "memory", "modules", "latchkey", "scriptstats")
	for name, want := range map[string]string{
		"number_of_cached_scripts":             "1",
		"used_memory_scripts_eval":             "2048",
		"used_memory_scripts":                  "2048",
		"used_memory_scripts_human":            "2.00K",
		"latchkey_scripts_evicted":             "3",
		"latchkey_scripts_running_long":        "4",
		"latchkey_script_rollbacks":            "5",
		"latchkey_script_kills":                "6",
		"latchkey_script_undeclared_keys":      "8",
		"latchkey_script_reruns":               "7",
		"latchkey_scripts_compiled_closures":   "10",
		"latchkey_scripts_compiled_vm":         "11",
		"latchkey_scripts_vm_coroutine":        "12",
		"latchkey_scripts_vm_G":                "13",
		"latchkey_scripts_vm_switched_off":     "14",
		"latchkey_libraries_compiled_closures": "15",
		"latchkey_libraries_compiled_vm":       "16",
		"latchkey_libraries_vm_loadstring":     "17",
		"script_abc":                           "undeclared_keys=1,reruns=2,rollbacks=3,kills=4",
		"script_a_b":                           "undeclared_keys=0,reruns=0,rollbacks=0,kills=1",
		"module":                               "name=limiter,ver=2,api=1,filters=0,usedby=[],using=[],options=[]",
		"latchkey_module_limiter":              "calls=9,errors=3,traps=1,running=2,instances=4,memory=65536,waiting=0,timers=0,queued=0,delivered=0,dropped=0,disabled=0",
	} {
		if got := infoField(t, text, name); got != want {
			t.Errorf("INFO says %s:%s, want %s", name, got, want)
		}
	}
}
