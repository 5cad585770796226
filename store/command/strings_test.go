package command_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
)

func TestSetErrors(t *testing.T) {
	h := newHarness(t, store.Options{Clock: store.NewManualClock(1_700_000_000_000)})
	const (
		syntax  = "-ERR syntax error"
		integer = "-ERR value is not an integer or out of range"
		expire  = "-ERR invalid expire time in 'set' command"
	)
	h.script([][2]string{
		{"SET k v NX XX", syntax},
		{"SET k v NX NX", "+OK"},
		{"SET k v EX 1 PX 1", syntax},
		{"SET k v EX 1 EX 2", "+OK"},
		{"SET k v KEEPTTL EX 1", syntax},
		{"SET k v PERSIST", syntax},
		{"SET k v EX", syntax},
		{"SET k v EX 0", expire},
		{"SET k v PX -1", expire},
		{"SET k v EX x", integer},
		{"SET k v EX 9223372036854775", expire},
		{"SET k v EX 9223372036854776", expire},
		{"SET k v PX 9223372036854775807", expire},
		{"SET k v PX 9223370336854775807", "+OK"},
		{"SET k v PX 9223370336854775808", expire},
		{"SET k v PXAT 9223372036854775807", "+OK"},
		{"SET k v EXAT 9223372036854775807", expire},
		{"SETEX k 0 v", "-ERR invalid expire time in 'setex' command"},
		{"PSETEX k 0 v", "-ERR invalid expire time in 'psetex' command"},
		{"GETEX k EX 0", "-ERR invalid expire time in 'getex' command"},
		{"GETEX none EX 0", "$-1"},
		{"GETEX k KEEPTTL", syntax},
		{"MSET a 1 b", "-ERR wrong number of arguments for 'mset' command"},
		{"MSETNX a 1 b", "-ERR wrong number of arguments for 'msetnx' command"},
		{"SETRANGE k -1 x", "-ERR offset is out of range"},
		{"SETRANGE k 536870912 x", "-ERR string exceeds maximum allowed size (proto-max-bulk-len)"},
		{"SETRANGE k 9223372036854775807 x", "-ERR string exceeds maximum allowed size (proto-max-bulk-len)"},
		{"GET k", "$1 v"},
	})
}

func TestMaxValue(t *testing.T) {
	h := newHarness(t, store.Options{})
	h.engine.MaxValue.Store(10)
	const long = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	h.script([][2]string{
		{"SET k 123456789", "+OK"},
		{"APPEND k 0", ":10"},
		{"APPEND k 1", long},
		{"SETRANGE k 9 x", ":10"},
		{"SETRANGE k 9 xy", long},
		{"SETBIT k 79 1", ":0"},
		{"SETBIT k 80 1", "-ERR bit offset is not an integer or out of range"},
		{"BITFIELD k SET u8 #9 1", "*1 :121"},
		{"BITFIELD k SET u8 #10 1", "-ERR bit offset is not an integer or out of range"},
		{"BITFIELD k GET u8 #2305843009213693952", "-ERR bit offset is not an integer or out of range"},
		{"BITFIELD k GET i64 #1152921504606846977", "-ERR bit offset is not an integer or out of range"},
		{"LCS k k", "-ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"},
	})
}

func TestExpiryInThePast(t *testing.T) {
	clock := store.NewManualClock(1_700_000_000_000)
	h := newHarness(t, store.Options{Clock: clock})
	h.store.SetNotify(store.NotifyString | store.NotifyGeneric | store.NotifyExpired | store.NotifyNew)
	tests := []struct {
		line, reply string
		events      []string
	}{
		{"SET k v PXAT 1699999999999", "+OK", []string{"new k", "set k", "expire k", "expired k"}},
		{"GET k", "$-1", nil},
		{"SET k v", "+OK", []string{"new k", "set k"}},
		{"GETEX k EXAT 1700000000", "$1 v", []string{"del k"}},
		{"GET k", "$-1", nil},
		{"SET k v PX 5", "+OK", []string{"new k", "set k", "expire k"}},
		{"GETEX k PERSIST", "$1 v", []string{"persist k"}},
		{"GETEX k PERSIST", "$1 v", nil},
		{"SET k w XX GET", "$1 v", []string{"set k"}},
		{"SET k x NX GET", "$1 w", nil},
		{"GETDEL k", "$1 w", []string{"del k"}},
		{"GETDEL k", "$-1", nil},
		{"SET k v PX 5", "+OK", []string{"new k", "set k", "expire k"}},
		{".advance", "", nil},
		{"SET k v XX", "$-1", nil},
		{"APPEND k v", ":1", []string{"expired k", "new k", "append k"}},
		{"SETBIT k 7 0", ":0", nil},
		{"SETBIT k 0 1", ":0", []string{"setbit k"}},
		{"BITFIELD b OVERFLOW FAIL INCRBY u2 0 9", "*1 $-1", []string{"new b"}},
		{"BITFIELD b SET u8 0 0", "*1 :0", nil},
		{"BITFIELD b SET u8 8 0", "*1 :0", []string{"setbit b"}},
		{"INCRBYFLOAT f 0.1", "$3 0.1", []string{"new f", "incrbyfloat f"}},
		{"BITOP AND b none none", ":0", []string{"del b"}},
		{"CAS f 0.1 1 PX 10", ":1", []string{"set f", "expire f"}},
		{"CAD f 1", ":1", []string{"del f"}},
	}
	for _, tt := range tests {
		if tt.line == ".advance" {
			clock.Advance(5 * time.Millisecond)
			continue
		}
		h.expect(tt.line, tt.reply)
		if got := h.events.take(); !slices.Equal(got, tt.events) {
			t.Errorf("%s: events %q, want %q", tt.line, got, tt.events)
		}
	}
}

// A relative TTL is logged as an absolute one, and a change in place as that.
func TestEffects(t *testing.T) {
	h := newHarness(t, store.Options{Clock: store.NewManualClock(1000)})
	tests := []struct{ line, effect string }{
		{"SET k v PX 500", "SET k v PXAT 1500"},
		{"INCRBYFLOAT k 1", ""},
		{"GETEX k EX 1", "PEXPIREAT k 2000"},
		{"GETEX k PERSIST", "PERSIST k"},
		{"APPEND k w", "APPEND k w"},
		{"SETRANGE k 1 xyz", "SETRANGE k 1 xyz"},
		{"SETRANGE new 2 xyz", "SETRANGE new 2 xyz"},
		{"SETBIT new 7 1", "SETRANGE new 0 \x01"},
		{"SETBIT new 7 1", ""},
		{"GETSET k 5", "SET k 5"},
		{"INCR k", "SET k 6"},
		{"SETNX k 5", ""},
		{"GETDEL k", "DEL k"},
		{"CAD k v", ""},
	}
	for _, tt := range tests {
		before := len(h.log.Records())
		h.do(tt.line)
		got := ""
		if recs := h.log.Records()[before:]; len(recs) > 0 {
			var parts []string
			for i, w := range strings.Split(strings.Join(recs, ""), "\r\n") {
				if i%2 == 0 && i > 0 {
					parts = append(parts, w)
				}
			}
			got = strings.Join(parts, " ")
		}
		if got != tt.effect {
			t.Errorf("%s: effect %q, want %q", tt.line, got, tt.effect)
		}
	}
}

func TestIncrByFloat(t *testing.T) {
	h := newHarness(t, store.Options{})
	const (
		invalid = "-ERR value is not a valid float"
		nan     = "-ERR increment would produce NaN or Infinity"
	)
	// The replies are redis-server 7.0.15's on x86-64.
	tests := []struct{ value, by, want string }{
		{"10.50", "0.1", "10.6"},
		{"5.0e3", "2.0e2", "5200"},
		{"0.1", "0.2", "0.3"},
		{"-0", "-0", "0"},
		{"1", "-1", "0"},
		{"0x10", "0x1p-1", "16.5"},
		{"+.5", "5.", "5.5"},
		{"1e17", "0.1", "100000000000000000.1015625"},
		{"9223372036854775807", "1", "9223372036854775808"},
		{"3", "1e-17", "3.00000000000000001"},
		{"1", "1e-19", "1"},
		{"inf", "1", nan},
		{"1", "-Infinity", nan},
		{"1", "nan", invalid},
		{"1", "0x", invalid},
		{"1", "1e", invalid},
		{"1", ".", invalid},
		{"1", "1_0", invalid},
		{"1", "0b1", invalid},
		{"1", "--1", invalid},
		{"1", "1e4933", invalid},
		{"1", "1e-4952", invalid},
		{"1", "0e99999999999999999999", "1"},
		{"1", "1e99999999999999999999", invalid},
		{"1.1e4932", "1.1e4932", nan},
	}
	for _, tt := range tests {
		h.do("SET k " + tt.value)
		got := strings.TrimSuffix(h.do("INCRBYFLOAT k "+tt.by), "\r\n")
		if _, text, ok := strings.Cut(got, "\r\n"); ok {
			got = text
		}
		if got != tt.want {
			t.Errorf("%s + %s = %s, want %s", tt.value, tt.by, got, tt.want)
		}
	}
}

func TestCompareCommands(t *testing.T) {
	h := newHarness(t, store.Options{Clock: store.NewManualClock(1000)})
	const hello = "9555e8555c62dcfd"
	h.script([][2]string{
		{"DELIFEQ k v", ":0"},
		{"SET k v", "+OK"},
		{"DELIFEQ k w", ":0"},
		{"DELIFEQ k v", ":1"},
		{"GET k", "$-1"},

		{"SET k v IFEQ v", "$-1"},
		{"SET k v IFNE v", "+OK"},
		{"SET k v IFNE v", "$-1"},
		{"SET k w IFEQ v", "+OK"},
		{"SET k x IFEQ v GET", "$1 w"},
		{"GET k", "$1 w"},
		{"SET k x IFEQ w GET PX 10", "$1 w"},
		{"GET k", "$1 x"},
		{"SET k x IFEQ w NX", "-ERR syntax error"},
		{"SET k x XX IFEQ w", "-ERR syntax error"},
		{"SET k x IFEQ w IFNE w", "-ERR syntax error"},
		{"SET k x IFEQ", "-ERR syntax error"},
		{"SET k hello", "+OK"},
		{"SET k hello IFDEQ 123", "-ERR must be exactly 16 hexadecimal characters"},
		{"SET k hello IFDEQ zzzzzzzzzzzzzzzz", "-ERR must be exactly 16 hexadecimal characters"},
		{"SET k hello IFDNE " + hello, "$-1"},
		{"SET k hello IFDEQ " + strings.ToUpper(hello), "+OK"},
		{"SET none v IFDEQ " + hello, "$-1"},
		{"SET none v IFDNE " + hello, "+OK"},

		{"DIGEST k", "$16 " + hello},
		{"DIGEST absent", "$-1"},
		{`SET e ""`, "+OK"},
		{"DIGEST e", "$16 2d06800538d394c2"},
		{"SET e v8", "+OK"},
		{"DIGEST e", "$16 0cc76dbb41381419"},

		{"DELEX absent IFEQ v", ":0"},
		{"DELEX absent FOO v", ":0"},
		{"DELEX k FOO v", "-ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"},
		{"DELEX k IFEQ", "-ERR wrong number of arguments for 'delex' command"},
		{"DELEX k IFEQ v", ":0"},
		{"DELEX k IFNE hello", ":0"},
		{"DELEX k IFDNE " + hello, ":0"},
		{"DELEX k IFDEQ 0", "-ERR must be exactly 16 hexadecimal characters"},
		{"DELEX k ifdeq " + hello, ":1"},
		{"DELEX e", ":1"},
		{"DELEX e", ":0"},

		{"MSETEX x a 1", "-ERR invalid numkeys value"},
		{"MSETEX 0 a 1", "-ERR invalid numkeys value"},
		{"MSETEX 2147483648 a 1", "-ERR invalid numkeys value"},
		{"MSETEX 2147483647 a 1", "-ERR wrong number of key-value pairs"},
		{"MSETEX 2 a 1 b", "-ERR wrong number of key-value pairs"},
		{"MSETEX 1 a 1 FOO", "-ERR syntax error"},
		{"MSETEX 1 a 1 NX XX", "-ERR syntax error"},
		{"MSETEX 1 a 1 KEEPTTL EX 1", "-ERR syntax error"},
		{"MSETEX 1 a 1 EX 0", "-ERR invalid expire time in 'msetex' command"},
		{"MSETEX 2 a 1 b 2 NX EX 10", ":1"},
		{"MSETEX 2 c 1 b 2 NX", ":0"},
		{"MSETEX 2 a 1 c 2 XX", ":0"},
		{"MGET a b c", "*3 $1 1 $1 2 $-1"},
		{"MSETEX 2 a 3 b 4 XX KEEPTTL", ":1"},

		{"CAS absent a b", ":-1"},
		{"CAS a 1 2", ":0"},
		{"CAS a 3 4 EX 0", "-ERR syntax error"},
		{"CAS a 3 4 EX x", "-ERR syntax error"},
		{"CAS a 3 4 NX", "-ERR syntax error"},
		{"CAS a 3 4 KEEPTTL", ":1"},
		{"CAS a 4 5", ":1"},
		{"CAS a 5 6 PXAT 999", ":1"},
		{"GET a", "$-1"},
		{"CAD a 6", ":-1"},
		{"CAD b 5", ":0"},
		{"CAD b 4", ":1"},
		{"GET b", "$-1"},
	})
}

func TestLCS(t *testing.T) {
	h := newHarness(t, store.Options{})
	h.script([][2]string{
		{"MSET a ohmytext b mynewtext", "+OK"},
		{"LCS a b", "$6 mytext"},
		{"LCS a b LEN", ":6"},
		{"LCS a b LEN IDX", "-ERR If you want both the length and indexes, please just use IDX."},
		{"LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN", "*4 $7 matches *1 *3 *2 :4 :7 *2 :5 :8 :4 $3 len :6"},
		{"LCS a none", "$0 "},
		{"LCS none none IDX", "*4 $7 matches *0 $3 len :0"},
	})
}

// When the client is gone a long LCS ends.
func TestLCSIsCancelled(t *testing.T) {
	h := newHarness(t, store.Options{})
	h.run([]byte("SET"), []byte("a"), []byte(strings.Repeat("ab", 1<<10)))
	done := make(chan struct{})
	close(done)
	h.s.Wait = &store.Wait{Done: done}
	h.expect("LCS a a LEN", "-UNBLOCKED the wait for a key was ended")
}
