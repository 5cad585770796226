package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/proxy/quoting"
)

// commands are run in order, by redis-cli on one server and by this client on
// another. Between them they have every type of reply, alone and nested.
const commands = `
PING
PING "a b"
ECHO ""
ECHO "quote \" backslash \\ tab \t line \n return \r bell \a back \b form \f"
ECHO "\x01\x7f\x80\xff\xc3\xa9"
ECHO é
SET a 1
SET a 2 NX
SET a 2 XX GET
GET a
GET nothing
GETSET a 3
SETNX a 4
SETNX b 4
INCR a
INCR nothing2
DECRBY a 100
INCRBYFLOAT f 1.5
APPEND a xyz
STRLEN a
GETRANGE a 0 1
MSET k1 v1 k2 v2 k3 v3
MGET k1 nothing k2
EXISTS a b nothing
DEL k1 k2 nothing
TYPE a
TTL a
EXPIRE a 100
TTL a
KEYS nothing*
KEYS k3
SCAN 0 MATCH k3 COUNT 1000
RPUSH l 1 2 3 4 5 6 7 8 9 10 11 "t w e l v e"
LRANGE l 0 -1
LRANGE l 0 8
LRANGE l 0 9
LRANGE l 5 1
LPOP l 0
LPOP nothing 2
LPOS l 3
BLPOP nothing 0.01
HSET h f1 v1 f2 "v\n2"
HGETALL h
HGETALL nothing
HMGET h f1 nothing
SADD s one
SMEMBERS s
ZADD z 1 a 2.5 b
ZRANGE z 0 -1 WITHSCORES
ZSCORE z b
ZADD z INCR 1 a
XADD x 1-1 f v g "w w"
XADD x 1-2 f v
XRANGE x - +
XREAD COUNT 10 STREAMS x 0
XINFO STREAM x FULL
GEOADD geo 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
GEOSEARCH geo FROMLONLAT 15 37 BYRADIUS 200 km ASC WITHCOORD WITHDIST
BITFIELD bf SET u8 0 255 GET u8 0 OVERFLOW FAIL INCRBY u8 0 1
EVAL "return {1,2,{3,{},{4,'x',{5}}},'s',false,redis.status_reply('ST')}" 0
EVAL "return redis.error_reply('MY error')" 0
EVAL "return {redis.error_reply('MY error'),redis.status_reply('fine')}" 0
EVAL "return {}" 0
EVAL "return nil" 0
EVAL "error('boom')" 0
EVAL "return {{{{}}},{{{nil}}}}" 0
SCRIPT LOAD "return 1"
SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db nothing
COMMAND INFO get nothing
COMMAND COUNT
COMMAND GETKEYS MSET a b c d
COMMAND DOCS set
COMMAND DOCS nothing
CONFIG GET maxmemory
CONFIG GET nothing
OBJECT ENCODING l
OBJECT HELP
PUBLISH c m
PUBSUB NUMSUB c d
UNSUBSCRIBE
UNSUBSCRIBE one
MULTI
EXEC
DISCARD
SELECT 3
SELECT 99
LATENCY DOCTOR
LOLWUT VERSION 1
INFO nothing
CLIENT GETNAME
CLIENT NO-EVICT on
CLUSTER INFO
ROLE
DUMP nothing
DEBUG SLEEP 0
DEBUG JMAP
MEMORY USAGE nothing
OBJECT FREQ a
WRONGCOMMAND with "some args" here
GET
LPUSH a 1
HELLO 2 EXTRA
AUTH none
ACL WHOAMI
ACL CAT nothing
`

// TestRepliesAsRedisCLI sends each command with redis-cli and with this client
// and compares what they print, in every format.
func TestRepliesAsRedisCLI(t *testing.T) {
	theirs, ours := startRedis(t), startRedis(t)
	for _, format := range []string{"--no-raw", "--raw", "--csv", "--json", ""} {
		t.Run(format, func(t *testing.T) {
			theirs.redisCLI(t, "", "flushall")
			theirs.redisCLI(t, "", "script", "flush")
			ours.cli("", "flushall")
			ours.cli("", "script", "flush")
			n := 0
			for line := range strings.Lines(strings.TrimSpace(commands)) {
				args, err := quoting.Split(line)
				if err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				n++
				args = append([]string{"-2", format}, args...)
				if format == "" {
					args = args[2:]
				}
				want := theirs.redisCLI(t, "", args...)
				if got := ours.cli("", args...); got != want {
					t.Errorf("%sredis-cli: exit %d\n%s%s\nlatchkey cli: exit %d\n%s%s", line,
						want.exit, want.out, want.errOut, got.exit, got.out, got.errOut)
				}
			}
			if n < 60 {
				t.Errorf("only %d commands compared", n)
			}
		})
	}
}

// TestPipeAsRedisCLI compares sessions over one connection, read from lines.
func TestPipeAsRedisCLI(t *testing.T) {
	theirs, ours := startRedis(t), startRedis(t)
	for name, in := range map[string]string{
		"all":          commands,
		"transaction":  "multi\nset a 1\nincr a\nget\nexec\nmulti\nincr b\nlrange a 0 1\nincr b\nexec\nmulti\ndiscard\nexec",
		"databases":    "select 2\nset only here\nselect 0\nget only\nselect 2\nget only",
		"quoting":      "set 'a b' \"\\x00\\xff\"\nget \"a b\"\nget \"unbalanced\nget 'a b'x\nget \"a\"b\nstrlen 'a b'",
		"blank lines":  "\n   \n\t\nping\n\n",
		"repeat":       "3 incr n\n2 ping\n5",
		"quit":         "ping\nquit\nset after quit",
		"EXIT":         "EXIT\nping",
		"no end":       "ping",
		"crlf":         "ping\r\necho hi\r\n",
		"subscription": "unsubscribe\npunsubscribe x\nget a",
		"reset":        "select 3\nmulti\nreset\nping",
	} {
		for _, format := range []string{"--no-raw", "--raw"} {
			t.Run(name+format, func(t *testing.T) {
				theirs.redisCLI(t, "", "flushall")
				ours.cli("", "flushall")
				want := theirs.redisCLI(t, in, format)
				got := ours.cli(in, format)
				if got != want {
					t.Errorf("exit %d, redis-cli %d; errors %q, redis-cli %q; output:\n%s",
						got.exit, want.exit, got.errOut, want.errOut, difference(got.out, want.out))
				}
			})
		}
	}
}

// TestOptionsAsRedisCLI compares the options that change what is sent or how
// it is printed.
func TestOptionsAsRedisCLI(t *testing.T) {
	theirs, ours := startRedis(t), startRedis(t)
	script := t.TempDir() + "/s.lua"
	write(t, script, "return {KEYS, ARGV}")
	for _, c := range []struct {
		in   string
		args []string
	}{
		{"line\n\x00end\n", []string{"-x", "set", "k"}},
		{"", []string{"get", "k"}},
		{"swapped", []string{"-X", "TAG", "mset", "x", "TAG", "y", "TAG2"}},
		{"", []string{"--no-raw", "mget", "x", "y"}},
		{"", []string{"-d", "|", "-D", "END", "mget", "x", "y"}},
		{"", []string{"-e", "get"}},
		{"", []string{"-e", "get", "x"}},
		{"", []string{"-r", "3", "--no-raw", "incr", "counter"}},
		{"", []string{"-r", "3", "-i", "0.01", "incr", "counter"}},
		{"", []string{"-r", "0", "incr", "counter"}},
		{"", []string{"-n", "5", "set", "five", "5"}},
		{"", []string{"-n", "5", "-c", "get", "five"}},
		{"", []string{"get", "five"}},
		{"", []string{"--quoted-input", "--no-raw", "echo", `"a\x00b"`}},
		{"", []string{"--eval", script, "k1", "k2", ",", "a1", ",", "a2"}},
		{"", []string{"--no-raw", "--eval", script, "k1", "k2", ",", "a1", ",", "a2"}},
		{"", []string{"--no-raw", "--eval", script, "k1", "k2"}},
		{"", []string{"--no-raw", "--eval", script, ",", "a1"}},
		{"", []string{"--no-raw", "--eval", script}},
	} {
		want := theirs.redisCLI(t, c.in, c.args...)
		if got := ours.cli(c.in, c.args...); got != want {
			t.Errorf("%q\nredis-cli: %+v\nlatchkey cli: %+v", c.args, want, got)
		}
	}
}

// difference shows where two outputs part, with the lines before.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			from := max(0, i-3)
			return fmt.Sprintf("latchkey cli, from line %d:\n%q\nredis-cli:\n%q", from+1,
				g[min(from, len(g)):min(i+3, len(g))], w[min(from, len(w)):min(i+3, len(w))])
		}
	}
	return "none"
}
