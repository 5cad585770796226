package command_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
)

// The replies are judged by the transcripts; here is what they do not show: the
// keyspace events and the effects.
func TestKeyEventsAndEffects(t *testing.T) {
	h := newHarness(t, store.Options{Clock: store.NewManualClock(1_700_000_000_000)})
	h.store.SetNotify(^uint32(0))
	tests := []struct{ line, events, effects string }{
		{"SET a 1", "", "SET a 1"},
		{"EXISTS none", "keymiss none", ""},
		{"TYPE none", "keymiss none", ""},
		{"TTL none", "keymiss none", ""},
		{"TOUCH none", "keymiss none", ""},
		{"DUMP none", "keymiss none", ""},
		{"COPY none b", "keymiss none", ""},
		{"OBJECT ENCODING none", "", ""},
		{"DEL none", "", ""},
		{"EXPIRE none 10", "", ""},
		{"RENAME none b", "", ""},
		{"EXPIRE a 10", "expire a", "PEXPIREAT a 1700000010000"},
		{"EXPIRE a 5 GT", "", ""},
		{"PEXPIREAT a 1700000010001", "expire a", "PEXPIREAT a 1700000010001"},
		{"PERSIST a", "persist a", "PERSIST a"},
		{"PERSIST a", "", ""},
		{"RENAME a b", "new b, rename_from a, rename_to b", "DEL a SET b 1"},
		{"RENAME b b", "", ""},
		{"SET c 2", "", "SET c 2"},
		{"RENAMENX b c", "", ""},
		{"RENAME b c", "new c, rename_from b, rename_to c", "DEL b SET c 1"},
		{"COPY c d", "new d, copy_to d", "SET d 1"},
		{"COPY c d", "", ""},
		{"COPY c d DB 1", "new d, copy_to d", "SET d 1"},
		{"MOVE c 1", "new c, move_from c, move_to c", "DEL c SET c 1"},
		{"MOVE d 1", "", ""},
		{"SET e 1", "", "SET e 1"},
		{"DEL d e none", "del d, del e", "DEL d DEL e"},
		{"SET d 1", "", "SET d 1"},
		{"UNLINK d d", "del d", "DEL d"},
		{"SET d 1", "", "SET d 1"},
		{"EXPIRE d 0", "del d", "DEL d"},
		{`RESTORE d 0 "\x00\x05hello\x0a\x00cr\xdfve4\x20\x0a"`, "new d, restore d", "SET d hello"},
		{`RESTORE d 1 "\x00\x05hello\x0a\x00cr\xdfve4\x20\x0a" REPLACE ABSTTL`, "del d", "DEL d"},
		{`RESTORE d 1 "\x00\x05hello\x0a\x00cr\xdfve4\x20\x0a" ABSTTL`, "", ""},
		{`RESTORE d 9 "\x00\x05hello\x0a\x00cr\xdfve4\x20\x0a"`, "new d, restore d", "SET d hello PXAT 1700000000009"},
		{"SWAPDB 0 1", "", "SWAPDB 0 1"},
		{"FLUSHDB", "", "FLUSHDB"},
		{"FLUSHALL", "", "FLUSHALL"},
	}
	for _, c := range tests {
		h.events.take()
		logged := len(h.log.Records())
		h.do(c.line)
		var events []string
		for _, ev := range h.events.take() {
			if !strings.HasPrefix(c.line, "SET ") {
				events = append(events, ev)
			}
		}
		if got := strings.Join(events, ", "); got != c.events {
			t.Errorf("%s\n  events %s\n  want   %s", c.line, got, c.events)
		}
		var effects []string
		for _, rec := range h.log.Records()[logged:] {
			for _, line := range strings.Split(rec, "\r\n") {
				if line != "" && line[0] != '*' && line[0] != '$' {
					effects = append(effects, line)
				}
			}
		}
		if got := strings.Join(effects, " "); got != c.effects {
			t.Errorf("%s\n  effects %s\n  want    %s", c.line, got, c.effects)
		}
	}
}

func TestExpiredKeys(t *testing.T) {
	clock := store.NewManualClock(1_700_000_000_000)
	h := newHarness(t, store.Options{Clock: clock})
	h.store.SetNotify(store.NotifyExpired | store.NotifyGeneric)
	h.script([][2]string{
		{"SET a 1 PX 100", "+OK"},
		{"SET b 1", "+OK"},
		{"PEXPIRE b 100", ":1"},
		{"PTTL a", ":100"},
	})
	clock.Advance(50 * time.Millisecond)
	h.script([][2]string{
		{"PTTL a", ":50"},
		{"TTL a", ":0"},
		{"PEXPIRETIME a", ":1700000000100"},
		{"EXPIRETIME a", ":1700000000"},
	})
	clock.Advance(50 * time.Millisecond)
	h.events.take()
	h.script([][2]string{
		{"TTL a", ":-2"},
		{"RANDOMKEY", "$-1"},
		{"DBSIZE", ":2"},
		{"DEL a", ":0"},
		{"COPY b c", ":0"},
		{"DBSIZE", ":1"},
	})
	if got := h.events.take(); len(got) != 1 || got[0] != "expired a" {
		t.Errorf("events %q, want expired a alone", got)
	}
}

func TestScanPatternsAreLinear(t *testing.T) {
	h := newHarness(t, store.Options{})
	h.run([]byte("SET"), bytes.Repeat([]byte("a"), 1000), []byte("v"))
	pattern := []byte(strings.Repeat("*a", 300) + "b")
	begun := time.Now()
	h.run([]byte("KEYS"), pattern)
	h.run([]byte("SCAN"), []byte("0"), []byte("COUNT"), []byte("1000"), []byte("MATCH"), pattern)
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("a pattern of 300 stars took %v", took)
	}
	h.expect(`SET "" v`, "+OK")
	h.expect("SCAN 0 COUNT 1000 MATCH ?", "*2 $1 0 *0")
}

func TestScanCursors(t *testing.T) {
	h := newHarness(t, store.Options{})
	for _, c := range [][2]string{
		{"0", "0"},
		{`""`, "0"},
		{"+5", "0"},
		{"-1", "0"},
		{"18446744073709551615", "0"},
		{`"\x00x"`, "0"},
		{"18446744073709551616", ""},
		{"99999999999999999999", ""},
		{"-", ""},
		{"+-1", ""},
		{"1x", ""},
		{`"\t1"`, ""},
	} {
		want := "-ERR invalid cursor"
		if c[1] != "" {
			want = "*2 $1 0 *0"
		}
		h.expect("SCAN "+c[0], want)
	}
}

// What one dumps the other restores.
func TestDumpWithRedis(t *testing.T) {
	judge := startRedis(t)()
	h := newHarness(t, store.Options{})
	values := []string{"", "0", "-1", "127", "128", "-129", "32767", "32768", "-2147483648", "2147483648", "9223372036854775807", "007", "\x00\xff"}
	for _, n := range []int{1, 20, 21, 63, 64, 200, 16383, 16384, 100_000} {
		values = append(values, strings.Repeat("a", n), fmt.Sprintf("%0*d", n, n), strings.Repeat("abcdefghij", n/10+1))
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i * i >> 3)
		}
		values = append(values, string(b))
	}
	for _, v := range values {
		name, value := []byte("k"), []byte(v)
		judge.do(t, [][]byte{[]byte("SET"), name, value})
		theirs := judge.do(t, words("DUMP k")).Text
		h.run([]byte("RESTORE"), name, []byte("0"), []byte(theirs), []byte("REPLACE"))
		ours := bulk(t, h.run([]byte("DUMP"), name))
		if got := bulk(t, h.run([]byte("GET"), name)); got != v {
			t.Errorf("redis-server's %.40q of %d bytes is restored as %.40q", v, len(v), got)
		}
		if reply := judge.do(t, [][]byte{[]byte("RESTORE"), name, []byte("0"), []byte(ours), []byte("REPLACE")}); reply.Text != "OK" {
			t.Errorf("redis-server does not restore our %.40q: %s", v, reply.Text)
		}
		if got := judge.do(t, words("GET k")).Text; got != v {
			t.Errorf("our %.40q of %d bytes is restored by redis-server as %.40q", v, len(v), got)
		}
	}
}

// bulk is the text of a bulk reply.
func bulk(t *testing.T, reply []byte) string {
	t.Helper()
	_, rest, ok := bytes.Cut(reply, []byte("\r\n"))
	if !ok || reply[0] != '$' || len(rest) < 2 {
		t.Fatalf("%.60q is no bulk reply", reply)
	}
	return string(rest[:len(rest)-2])
}

func TestFirstKey(t *testing.T) {
	h := newHarness(t, store.Options{})
	for name, want := range map[string]struct {
		at   int
		read bool
	}{
		"setnx": {1, false}, "getset": {1, true}, "get": {1, true}, "strlen": {1, false},
		"bitop": {2, false}, "randomkey": {1, false}, "sintercard": {2, true},
	} {
		at, read := h.engine.Table.Lookup([]byte(name)).FirstKey()
		if at != want.at || read != want.read {
			t.Errorf("%s: the first key is argument %d, its value is read: %v; want %v", name, at, read, want)
		}
	}
}
