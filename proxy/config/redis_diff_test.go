package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// different lists the directives whose default is not Redis's, and why.
var different = map[string]string{
	"port": "6380, so that both can run on one machine",
	"bind": "loopback only",
	"save": "no snapshots are written",
	"dir":  "depends on the machine",
}

// TestDefaultsAsRedis compares the whole of CONFIG GET * with redis-server.
func TestDefaultsAsRedis(t *testing.T) {
	s := startRedis(t, "")
	c := New()
	reply := s.do("CONFIG", "GET", "*")
	if len(reply) < 300 {
		t.Fatalf("CONFIG GET * of redis-server has only %d words", len(reply))
	}
	ours := make(map[string]string)
	for _, p := range c.Get("*") {
		ours[p.Name] = p.Value
	}
	for i := 0; i < len(reply); i += 2 {
		name, want := reply[i], reply[i+1]
		if name == "aof-disable-auto-gc" {
			continue // hidden in 7.2
		}
		got, ok := ours[name]
		if !ok {
			t.Errorf("%s is not in the table", name)
		} else if _, differs := different[name]; got != want && !differs {
			t.Errorf("default of %s is %q, redis-server has %q", name, got, want)
		}
	}
}

// TestMutableAsRedis sets every directive to its own value: redis-server and the table must agree on which may be set.
func TestMutableAsRedis(t *testing.T) {
	s := startRedis(t, "")
	c := New()
	for _, d := range c.Directives() {
		if d.Kind == Lines || d.Name == "jemalloc-bg-thread" || d.Name == "port" || d.Name == "bind" || d.Name == "tls-port" {
			continue
		}
		for _, name := range append([]string{d.Name}, d.Aliases...) {
			value := s.do("CONFIG", "GET", name)
			if len(value) != 2 || d.Name == "dir" {
				continue // 7.2's, or ours
			}
			if _, differs := different[d.Name]; differs {
				value[1] = d.Default
			}
			want := s.do("CONFIG", "SET", name, value[1])[0]
			if got := setReply(c, name, value[1]); got != want {
				t.Errorf("CONFIG SET %s %q: got %q, redis-server says %q", name, value[1], got, want)
			}
		}
	}
}

func setReply(c *Config, args ...string) string {
	var pairs []Pair
	for i := 0; i+1 < len(args); i += 2 {
		pairs = append(pairs, Pair{args[i], args[i+1]})
	}
	if err := c.Set(pairs, true); err != nil {
		return err.Error()
	}
	return "OK"
}

// setCases are the arguments of CONFIG SET that redis-server and the table must answer alike, with the same values
// afterwards.
var setCases = [][]string{
	{"maxmemory", "1gb"},
	{"MAXMEMORY", "2g"},
	{"maxmemory", "3MB"},
	{"maxmemory", "4k"},
	{"maxmemory", "5b"},
	{"maxmemory", "100"},
	{"maxmemory", ""},
	{"maxmemory", "kb"},
	{"maxmemory", "-1"},
	{"maxmemory", "1x"},
	{"maxmemory", "1.5gb"},
	{"maxmemory", " 1"},
	{"maxmemory", "0"},
	{"maxclients", "0"},
	{"maxclients", "-1"},
	{"maxclients", "abc"},
	{"maxclients", "4294967296"},
	{"maxclients", "77"},
	{"timeout", "-1"},
	{"timeout", "2147483648"},
	{"timeout", "01"},
	{"timeout", "+1"},
	{"timeout", "1 "},
	{"timeout", ""},
	{"timeout", "60"},
	{"timeout", "-0"},
	{"hash-max-listpack-entries", "-1"},
	{"hash-max-ziplist-entries", "7"},
	{"HASH-max-ziplist-value", "1kb"},
	{"list-max-ziplist-size", "-5"},
	{"list-max-listpack-size", "3000000000"},
	{"set-max-intset-entries", "99999999999"},
	{"proto-max-bulk-len", "1"},
	{"client-query-buffer-limit", "1000kb"},
	{"slowlog-log-slower-than", "-2"},
	{"slowlog-log-slower-than", "-1"},
	{"slowlog-max-len", "9223372036854775808"},
	{"busy-reply-threshold", "1"},
	{"lua-time-limit", "2"},
	{"active-expire-effort", "11"},
	{"active-defrag-cycle-min", "0"},
	{"hz", "100000"},
	{"hz", "0"},
	{"hz", "-1"},
	{"hz", "20"},
	{"maxmemory-clients", "5%"},
	{"maxmemory-clients", "101%"},
	{"maxmemory-clients", "-1%"},
	{"maxmemory-clients", "%"},
	{"maxmemory-clients", "x"},
	{"maxmemory-clients", "1mb"},
	{"maxmemory-clients", "0%"},
	{"lazyfree-lazy-expire", "maybe"},
	{"lazyfree-lazy-expire", "YES"},
	{"latency-tracking", ""},
	{"latency-tracking", "no"},
	{"maxmemory-policy", "foo"},
	{"maxmemory-policy", "NoEviction"},
	{"appendfsync", "sometimes"},
	{"appendfsync", "Always"},
	{"loglevel", "verbose"},
	{"acl-pubsub-default", "AllChannels"},
	{"oom-score-adj-values", "1 2"},
	{"oom-score-adj-values", "1 2 4000"},
	{"oom-score-adj-values", "1 2 x"},
	{"oom-score-adj-values", "1 +2  3"},
	{"shutdown-on-sigterm", "save nosave"},
	{"shutdown-on-sigterm", "force now"},
	{"shutdown-on-sigterm", "default save"},
	{"shutdown-on-sigterm", "later"},
	{"shutdown-on-sigterm", ""},
	{"shutdown-on-sigint", "default"},
	{"notify-keyspace-events", "KEA"},
	{"notify-keyspace-events", "Q"},
	{"notify-keyspace-events", "Elg"},
	{"notify-keyspace-events", "KEg$lshzxetdmn"},
	{"notify-keyspace-events", "gn"},
	{"notify-keyspace-events", "AKn"},
	{"notify-keyspace-events", "K E"},
	{"notify-keyspace-events", ""},
	{"notify-keyspace-events", "Km"},
	{"save", "1 2 3"},
	{"save", "a b"},
	{"save", "900 1  300 2"},
	{"save", "0 1"},
	{"save", "1 -1"},
	{"save", "900 1 300 10"},
	{"save", " "},
	{"save", "100 0"},
	{"save", ""},
	{"client-output-buffer-limit", "normal 1mb 2mb 3"},
	{"client-output-buffer-limit", "replica 1 2 3 pubsub 4 5 6"},
	{"client-output-buffer-limit", "slave 7 8 9"},
	{"client-output-buffer-limit", "foo 0 0 0"},
	{"client-output-buffer-limit", "master 0 0 0"},
	{"client-output-buffer-limit", "normal 0 0"},
	{"client-output-buffer-limit", "normal 0 0 "},
	{"client-output-buffer-limit", "normal -1 0 0"},
	{"client-output-buffer-limit", "normal 0 0 -1"},
	{"client-output-buffer-limit", "PUBSUB 1 2 x"},
	{"client-output-buffer-limit", ""},
	{"latency-tracking-info-percentiles", "50 a"},
	{"latency-tracking-info-percentiles", "50 101"},
	{"latency-tracking-info-percentiles", "-1"},
	{"latency-tracking-info-percentiles", "50 99.90 100"},
	{"latency-tracking-info-percentiles", "0.001 33.3333333"},
	{"latency-tracking-info-percentiles", ""},
	{"latency-tracking-info-percentiles", "nan"},
	{"cluster-announce-hostname", "a b"},
	{"cluster-announce-hostname", strings.Repeat("a", 256)},
	{"cluster-announce-hostname", "a.b-c"},
	{"proc-title-template", "{nope}"},
	{"proc-title-template", "{title"},
	{"proc-title-template", "x {port}"},
	{"databases", "3"},
	{"DATABASES", "3"},
	{"tcp-backlog", "1"},
	{"unixsocketperm", "777"},
	{"replicaof", "a 1"},
	{"slaveof", "no one"},
	{"cluster-enabled", "yes"},
	{"dir", "/"},
	{"dbfilename", "a"},
	{"nosuch", "1"},
	{"include", "a"},
	{"loadmodule", "a"},
	{"user", "x"},
	{"rename-command", "x"},
	{"maxclients", "10", "nosuch", "1"},
	{"databases", "1", "nosuch", "1"},
	{"nosuch", "1", "databases", "1"},
	{"timeout", "5", "databases", "1"},
	{"timeout", "5", "TIMEOUT", "6"},
	{"timeout", "6", "maxclients", "x"},
	{"hash-max-ziplist-entries", "5", "hash-max-listpack-entries", "6"},
	{"timeout", "9", "slowlog-max-len", "9", "maxmemory", "9mb"},
	{"requirepass", ""},
	{"masterauth", "secret"},
	{"masterauth", ""},
}

func TestSetAsRedis(t *testing.T) {
	s := startRedis(t, "")
	c := New()
	for _, args := range setCases {
		want := s.do(append([]string{"CONFIG", "SET"}, args...)...)[0]
		if got := setReply(c, args...); got != want {
			t.Errorf("CONFIG SET %q: got %q, redis-server says %q", args, got, want)
		}
		for i := 0; i < len(args); i += 2 {
			name := args[i]
			if name == "dir" {
				continue
			}
			want := s.do("CONFIG", "GET", name)
			var got []string
			for _, p := range c.Get(name) {
				got = append(got, p.Name, p.Value)
			}
			if !slices.Equal(got, want) {
				t.Errorf("CONFIG GET %s after CONFIG SET %q: got %q, redis-server says %q", name, args, got, want)
			}
		}
	}
}

// TestGetAsRedis compares which directives patterns match; Redis's order is that of its hash table.
func TestGetAsRedis(t *testing.T) {
	s := startRedis(t, "")
	c := New()
	s.do("CONFIG", "SET", "save", "")
	for _, patterns := range [][]string{
		{"max*"},
		{"MAX*"},
		{"slave*"},
		{"*ziplist*"},
		{"hash-max-*"},
		{"[h]z", "h?"},
		{"maxmemory", "MAXMEMORY", "max*"},
		{"MAXMEMORY"},
		{"nosuch"},
		{"use-exit-on-panic"},
		{"use-exit*"},
		{"requirepass"},
		{"save"},
		{"rdb*", "*rdb*"},
		{"replicaof", "slaveof"},
		{"include"},
		{`max\*`},
		{""},
	} {
		names := func(words []string) []string {
			var list []string
			for i := 0; i < len(words); i += 2 {
				list = append(list, words[i]+"="+words[i+1])
			}
			slices.Sort(list)
			return list
		}
		want := names(s.do(append([]string{"CONFIG", "GET"}, patterns...)...))
		var words []string
		for _, p := range c.Get(patterns...) {
			if s.knows(p.Name) {
				words = append(words, p.Name, p.Value)
			}
		}
		if got := names(words); !slices.Equal(got, want) {
			t.Errorf("CONFIG GET %q: got %q, redis-server says %q", patterns, got, want)
		}
	}
}

// knows reports whether redis-server has that directive: ours has its own, and those of 7.2.
func (s *redisServer) knows(name string) bool { return len(s.do("CONFIG", "GET", name)) == 2 }

// TestRewriteAsRedis lets both rewrite the same file after the same changes: a start must find the same values.
func TestRewriteAsRedis(t *testing.T) {
	const conf = "# a comment\nmaxclients 100\n\n# memory\nmaxmemory 1gb\nhash-max-ziplist-entries 9\nclient-output-buffer-limit pubsub 1 2 3\nnotify-keyspace-events KE\"A\"\n"
	s := startRedis(t, strings.Replace(conf, `KE"A"`, "KEA", 1))
	path := filepath.Join(t.TempDir(), "lk.conf")
	if err := os.WriteFile(path, []byte(strings.Replace(conf, `KE"A"`, "KEA", 1)), 0o640); err != nil {
		t.Fatal(err)
	}
	c, err := Load(Sources{File: path})
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"maxclients", "50", "maxmemory", "2097152", "timeout", "5", "hash-max-listpack-entries", "3", "client-output-buffer-limit", "normal 1024 5 6",
		"requirepass", "", "latency-tracking-info-percentiles", "1 2", "masterauth", "a \"b\"\n\x01é", "lazyfree-lazy-expire", "yes", "maxmemory-clients", "7%", "save", "60 1 30 2",
	}
	if got := s.do(append([]string{"CONFIG", "SET"}, args...)...)[0]; got != "OK" {
		t.Fatal(got)
	}
	if got := setReply(c, args...); got != "OK" {
		t.Fatal(got)
	}
	if got := s.do("CONFIG", "REWRITE")[0]; got != "OK" {
		t.Fatal(got)
	}
	if err := c.Rewrite(path); err != nil {
		t.Fatal(err)
	}
	// Each reads the other's file.
	theirs, err := Load(Sources{File: s.conf})
	if err != nil {
		t.Fatal(err)
	}
	ours, err := Load(Sources{File: path})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(args); i += 2 {
		if a, b := ours.String(args[i]), theirs.String(args[i]); a != b || a != c.String(args[i]) {
			t.Errorf("%s is %q, after our rewrite %q, after redis-server's %q", args[i], c.String(args[i]), a, b)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s2 := startRedis(t, string(text))
	for i := 0; i < len(args); i += 2 {
		if args[i] == "save" {
			continue // startRedis's own flag
		}
		if got := s2.do("CONFIG", "GET", args[i]); got[1] != c.String(args[i]) {
			t.Errorf("redis-server reads %s from our file as %q, it is %q", args[i], got[1], c.String(args[i]))
		}
	}
}
