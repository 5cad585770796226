package main

import "strings"

// setup is what every case begins with, behind RESET.
var setup = []string{
	"FLUSHALL", "SCRIPT FLUSH", "CONFIG SET maxmemory 0", "SET str \"hello world\"", "SET num 10", "SET big 9223372036854775806",
	"SET a ohmytext", "SET b mynewtext", "SET ttl v PX 1000000", "RPUSH lst a b c a 1", "SADD st a b c",
	"SADD is 1 2 3", "SELECT 1", "SET a other", "SELECT 0",
}

// pools are the arguments that templates name. The first six of each are drawn
// most.
var pools = map[string][]string{
	"key": {"a", "b", "c", "str", "num", "lst", "big", "st", "is", "ttl", "none", "", "k\x00b", "{t}a"},
	"int": {
		"0", "1", "2", "5", "-1", "10", "-2", "3", "7", "8", "16", "63", "64", "100", "-100", "+1", "-0", "01", " 1", "1 ", "",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
		"18446744073709551616", "2147483647", "2147483648", "-2147483648", "-2147483649", "4294967296", "1e3", "0x10", "1.0",
		"abc", "1a", "99999999999999999999999", "9223372036854775", "9223372036854776", "1\x00",
	},
	"when": {
		"100", "1000", "100000", "4000000000", "4000000000000", "1000", "0", "-1", "1", "", "abc", "1.5", " 100", "9223372036854775807",
		"-9223372036854775808", "9223372036854775", "9223372036854776", "99999999999999999999",
	},
	"float": {
		"1", "1.5", "-1.5", "0.1", "5.0e3", "1e17", "0", "-0", "nan", "inf", "-inf", "+inf", "Infinity", "infinit", "0x1p3", "1 ", " 1",
		"", "1e308", "1e309", "1e-400", "4.9e-324", "3.0000000000000000001", "123456789012345678", "1.", ".5", ".", "1e", "abc",
		"1,5", "1\x00", "99999999999999999999999999999999999999", "1e4931", "1e4932",
	},
	"value": {
		"x", "hello", "10", "ohmytext", "1.5", "\x00\xff", "", "-1", "00", "9223372036854775807", "-9223372036854775808", "foo bar",
		"\r\n", "\x80", " 1", "1e3", "nan", strings.Repeat("x", 44), strings.Repeat("x", 45), strings.Repeat("y", 100), "\"q\"", "%s",
	},
	"bit":    {"0", "1", "0", "1", "0", "1", "2", "-1", "", "abc", "01"},
	"offset": {"0", "1", "7", "8", "100", "31", "-1", "4294967296", "", "abc", "01", " 1"},
	"type":   {"u8", "i8", "u1", "i16", "u63", "i64", "u64", "i65", "u0", "i0", "u-1", "x8", "", "u", "8", "U8", "u08", "i5"},
	"place":  {"0", "8", "#0", "#1", "5", "100", "#-1", "-1", "#", "", "4294967296", "#9223372036854775807", "abc", "01"},
	"db":     {"0", "1", "2", "9", "15", "1", "16", "-1", "", "abc", "9223372036854775808", "2147483648"},
	"glob":   {"*", "a*", "?", "[ab]", "[^a]", "s?", "", "**", "a[", "[a-", "*\x00*", "[]", "\\a", "a\\", "[z-a]"},
	"kind":   {"string", "list", "set", "zset", "STRING", "bogus", ""},
	"member": {"a", "b", "c", "1", "2", "3", "", "x", "-1", "01", "\x00", "9223372036854775807", strings.Repeat("m", 70)},
	"name":   {"n", "name", "a:b", "", "a b", "x\n", "\xff", "~!"},
	"script": {
		"return 1", "return redis.call('get',KEYS[1])", "return redis.call('set',KEYS[1],ARGV[1])", "return {1,2,nil,3}", "return 1.9",
		"return {err='My err'}", "return {ok='fine'}", "return redis.call('nosuch')", "return redis.pcall('nosuch')",
		"return redis.call('get')", "return redis.call()", "return nosuch", "error('x')", "error({err='MY err'})", "return true",
		"return false", "return redis.error_reply('x')", "return redis.error_reply('-X y')", "return redis.status_reply('x')", "x=1",
		"syntax error (", "return redis.pcall('lpush',KEYS[1],'a')", "return redis.call('incr',KEYS[1])", "return redis.sha1hex(ARGV[1])",
		"return #KEYS", "return ARGV", "redis.setresp(3) return redis.call('get','none')", "return {double=1.5}", "return {map={a=1}}",
		"return redis.call('select','1')", "return redis.call('multi')", "return cjson.encode({1,{a=1}})", "return redis.pcall('get','lst')",
		"return math.huge", "return 1e100", "#!lua\nreturn 1", "#!lua flags=no-writes\nreturn redis.call('set',KEYS[1],'1')",
		"#!lua flags=bogus\nreturn 1", "#!bogus\nreturn 1", "#!lua", "return redis.call('expire',KEYS[1],'abc')",
	},
	"sha": {"e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB", "abc", "", strings.Repeat("x", 40)},
}

// families are the templates of each family of commands, all of one reply each
// that depends on nothing but the keyspace. What could pause or end a server or a
// connection when an argument is left out is not among them.
var families = map[string][]string{
	"strings": {
		"SET $key $value", "SET $key $value {NX|XX|GET|KEEPTTL|EX $when|PX $when|EXAT $when|PXAT $when|EX|BOGUS}", "GET|STRLEN|GETDEL $key",
		"GETSET|SETNX|APPEND $key $value", "SETEX|PSETEX $key $when $value", "GETEX $key {EX $when|PX $when|EXAT $when|PXAT $when|PERSIST|EX|NX}",
		"GETRANGE|SUBSTR $key $int $int", "SETRANGE $key $offset $value", "INCR|DECR $key", "INCRBY|DECRBY $key $int", "INCRBYFLOAT $key $float",
		"SET $key $float", "SET $key $int", "MGET $key...", "MSET|MSETNX $key $value {$key $value|$key}",
		"LCS $key $key {LEN|IDX|MINMATCHLEN $int|WITHMATCHLEN|MINMATCHLEN|BOGUS}",
	},
	"bits": {
		"SETBIT $key $offset $bit", "GETBIT $key $offset", "BITCOUNT $key", "BITCOUNT $key $int $int {BYTE|BIT|BOGUS}", "BITPOS $key $bit",
		"BITPOS $key $bit $int", "BITPOS $key $bit $int $int {BYTE|BIT|BOGUS}", "BITOP AND|OR|XOR|NOT|BOGUS $key $key...",
		"BITFIELD $key {GET $type $place|SET $type $place $int|INCRBY $type $place $int|OVERFLOW WRAP|OVERFLOW SAT|OVERFLOW FAIL|OVERFLOW BOGUS}",
		"BITFIELD_RO $key {GET $type $place|GET $type $place|SET $type $place $int}",
	},
	"keys": {
		"DEL|UNLINK|EXISTS|TOUCH $key...", "EXPIRE|PEXPIRE|EXPIREAT|PEXPIREAT $key $when {NX|XX|GT|LT|BOGUS}", "TTL|PTTL|EXPIRETIME|PEXPIRETIME $key",
		"PERSIST|TYPE $key", "KEYS $glob", "SCAN 0 {MATCH $glob|TYPE $kind|COUNT $int|MATCH|BOGUS} COUNT 1000", "RENAME|RENAMENX $key $key",
		"COPY $key $key {DB $db|REPLACE|DB|BOGUS}", "MOVE $key $db", "OBJECT ENCODING|REFCOUNT|IDLETIME|FREQ|BOGUS $key", "DUMP $key",
		"RESTORE $key $when $value {REPLACE|ABSTTL|IDLETIME $int|FREQ $int|BOGUS}", "SELECT $db", "SWAPDB $db $db", "FLUSHDB {ASYNC|SYNC|BOGUS}",
		"DEBUG DIGEST-VALUE $key...",
	},
	"lists": {
		"LPUSH|RPUSH|LPUSHX|RPUSHX $key $member $member...", "LPOP|RPOP $key {$int}", "LLEN $key", "LRANGE|LTRIM $key $int $int", "LINDEX $key $int",
		"LSET|LREM $key $int $member", "LINSERT $key BEFORE|AFTER|BOGUS $member $member", "LPOS $key $member {RANK $int|COUNT $int|MAXLEN $int|RANK|BOGUS}",
		"RPOPLPUSH $key $key", "LMOVE $key $key LEFT|RIGHT|BOGUS LEFT|RIGHT|BOGUS", "LMPOP $int $key $key LEFT|RIGHT|BOGUS {COUNT $int|COUNT|BOGUS}",
		"LMPOP 2 $key $key LEFT|RIGHT {COUNT $int}",
	},
	"sets": {
		"SADD|SREM $key $member $member...", "SCARD|SMEMBERS $key", "SISMEMBER $key $member", "SMISMEMBER $key $member...", "SMOVE $key $key $member",
		"SINTER|SUNION|SDIFF $key $key...", "SINTERSTORE|SUNIONSTORE|SDIFFSTORE $key $key $key...", "SINTERCARD $int $key $key {LIMIT $int|LIMIT|BOGUS}",
		"SINTERCARD 2 $key $key {LIMIT $int}", "SSCAN $key 0 {MATCH $glob|COUNT $int|BOGUS} COUNT 1000", "SRANDMEMBER $key $bit",
	},
	"transactions": {
		"MULTI", "EXEC", "EXEC", "DISCARD", "WATCH $key $key...", "UNWATCH", "NOSUCH x", "GET", "SET a $value", "INCR $key", "COPY a c DB $db", "MOVE a $db",
		"SELECT $db", "EVAL $script 1 $key", "LPUSH lst $member", "SADD st $member", "SWAPDB 0 1", "RESTORE c 0 x", "SUBSTR str $int $int",
	},
	"scripts": {
		"EVAL|EVAL_RO $script 1 $key $value...", "EVAL|EVAL_RO $script $int $key...", "EVALSHA|EVALSHA_RO $sha $int $key...", "SCRIPT LOAD $script",
		"SCRIPT EXISTS $sha...", "SCRIPT FLUSH {ASYNC|SYNC|BOGUS}", "FCALL|FCALL_RO nosuch $int $key...", "GET $key",
	},
	"connection": {
		"PING {$value}", "ECHO $value", "CLIENT SETNAME $name", "CLIENT GETNAME", "CLIENT KILL {ADDR 1.1.1.1:1|LADDR 1.1.1.1:1|ID abc|TYPE bogus|USER nobody|SKIPME bogus|BOGUS}",
		"CLIENT NO-EVICT ON|OFF|BOGUS", "CLIENT UNBLOCK 1000000000 {TIMEOUT|ERROR|BOGUS}",
		"CLIENT CACHING YES|NO|BOGUS", "CLIENT TRACKINGINFO", "CLIENT GETREDIR", "CLIENT LIST TYPE bogus", "CLIENT BOGUS", "AUTH $value...", "READONLY|READWRITE|ASKING",
		"SELECT $db", "CLUSTER KEYSLOT|COUNTKEYSINSLOT|BOGUS $key",
	},
	"server": {
		"CONFIG SET slowlog-max-len|hz|list-max-listpack-size|lfu-log-factor|bogus $int", "CONFIG SET notify-keyspace-events KEA|KEx|AKEnm|KEq|g$lshzxet",
		"CONFIG GET maxmemory|maxclients|slowlog-max-len|bogus|timeout", "CONFIG SET maxmemory 0|1gb|-1|abc|18446744073709551615", "SLOWLOG RESET|BOGUS", "LATENCY RESET|HISTORY|BOGUS {nosuch|fork}",
		"MEMORY USAGE none {SAMPLES $int|BOGUS}", "PUBSUB CHANNELS|NUMSUB|NUMPAT|SHARDCHANNELS|SHARDNUMSUB|BOGUS {x}", "PUBLISH|SPUBLISH $key $value",
		"OBJECT|PUBSUB|CONFIG|CLIENT|SCRIPT|SLOWLOG|LATENCY|MEMORY|CLUSTER BOGUS $int...", "ROLE",
		"MODULE LIST|BOGUS", "ACL WHOAMI|USERS|BOGUS",
	},
}
