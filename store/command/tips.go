package command

// Tips are the command tips of COMMAND INFO, as Redis 7.2 gives them: they tell
// a client of a cluster where to send a command and how to join the replies,
// and which replies cannot be foretold. Commands of modules have none.
func (s *Spec) Tips() []string {
	if s.module != "" {
		return nil
	}
	return tips[s.fullName]
}

// The sets of tips that several commands share.
var (
	everyNodeSucceeds  = []string{"request_policy:all_nodes", "response_policy:all_succeeded"}
	everyShardSucceeds = []string{"request_policy:all_shards", "response_policy:all_succeeded"}
	oneShardSucceeds   = []string{"request_policy:all_shards", "response_policy:one_succeeded"}
	everyNodeReports   = []string{"nondeterministic_output", "request_policy:all_nodes", "response_policy:special"}
	everyShardReports  = []string{"nondeterministic_output", "request_policy:all_shards", "response_policy:special"}
	keysAddUp          = []string{"request_policy:multi_shard", "response_policy:agg_sum"}
	leastOfShards      = []string{"request_policy:all_shards", "response_policy:agg_min"}
	unforeseeable      = []string{"nondeterministic_output"}
	unordered          = []string{"nondeterministic_output_order"}
)

// tips are the commands that have some, by full name. The table is never
// changed.
var tips = map[string][]string{
	"acl|deluser":           everyNodeSucceeds,
	"acl|setuser":           everyNodeSucceeds,
	"client|info":           unforeseeable,
	"client|list":           unforeseeable,
	"client|setinfo":        everyNodeSucceeds,
	"client|setname":        everyNodeSucceeds,
	"cluster|getkeysinslot": unforeseeable,
	"cluster|info":          unforeseeable,
	"cluster|links":         unforeseeable,
	"cluster|myshardid":     unforeseeable,
	"cluster|nodes":         unforeseeable,
	"cluster|replicas":      unforeseeable,
	"cluster|shards":        unforeseeable,
	"cluster|slaves":        unforeseeable,
	"cluster|slots":         unforeseeable,
	"command":               unordered,
	"command|docs":          unordered,
	"command|info":          unordered,
	"command|list":          unordered,
	"config|resetstat":      everyNodeSucceeds,
	"config|rewrite":        everyNodeSucceeds,
	"config|set":            everyNodeSucceeds,
	"dbsize":                {"request_policy:all_shards", "response_policy:agg_sum"},
	"del":                   keysAddUp,
	"dump":                  unforeseeable,
	"exists":                keysAddUp,
	"flushall":              everyShardSucceeds,
	"flushdb":               everyShardSucceeds,
	"info":                  everyShardReports,
	"keys":                  {"request_policy:all_shards", "nondeterministic_output_order"},
	"lastsave":              unforeseeable,
	"latency|doctor":        everyNodeReports,
	"latency|graph":         everyNodeReports,
	"latency|histogram":     everyNodeReports,
	"latency|history":       everyNodeReports,
	"latency|latest":        everyNodeReports,
	"latency|reset":         {"request_policy:all_nodes", "response_policy:agg_sum"},
	"memory|doctor":         everyShardReports,
	"memory|malloc-stats":   everyShardReports,
	"memory|purge":          everyShardSucceeds,
	"memory|stats":          everyShardReports,
	"mget":                  {"request_policy:multi_shard"},
	"module|list":           unordered,
	"mset":                  {"request_policy:multi_shard", "response_policy:all_succeeded"},
	"object|encoding":       unforeseeable,
	"object|freq":           unforeseeable,
	"object|idletime":       unforeseeable,
	"object|refcount":       unforeseeable,
	"ping":                  everyShardSucceeds,
	"pttl":                  unforeseeable,
	"randomkey":             {"request_policy:all_shards", "response_policy:special", "nondeterministic_output"},
	"scan":                  {"nondeterministic_output", "request_policy:special", "response_policy:special"},
	"function|delete":       everyShardSucceeds,
	"function|flush":        everyShardSucceeds,
	"function|kill":         oneShardSucceeds,
	"function|list":         unordered,
	"function|load":         everyShardSucceeds,
	"function|restore":      everyShardSucceeds,
	"function|stats":        everyShardReports,
	"script|exists":         {"request_policy:all_shards", "response_policy:agg_logical_and"},
	"script|flush":          everyNodeSucceeds,
	"script|kill":           oneShardSucceeds,
	"script|load":           everyNodeSucceeds,
	"sdiff":                 unordered,
	"sinter":                unordered,
	"slowlog|get":           {"request_policy:all_nodes", "nondeterministic_output"},
	"slowlog|len":           {"request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"},
	"slowlog|reset":         everyNodeSucceeds,
	"smembers":              unordered,
	"spop":                  unforeseeable,
	"srandmember":           unforeseeable,
	"sscan":                 unforeseeable,
	"sunion":                unordered,
	"time":                  unforeseeable,
	"touch":                 keysAddUp,
	"ttl":                   unforeseeable,
	"unlink":                keysAddUp,
	"wait":                  leastOfShards,
	"waitaof":               leastOfShards,
}
