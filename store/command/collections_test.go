package command_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// contents is what the keys of the dice hold.
func (h *harness) contents() string {
	var out strings.Builder
	for _, key := range []string{"a", "b", "c", "d"} {
		kind := strings.TrimSpace(h.do("TYPE " + key))
		out.WriteString(key + " " + kind + ":")
		switch kind {
		case "+list":
			out.WriteString(h.do("LRANGE " + key + " 0 -1"))
		case "+set":
			reply, err := transcript.ReadReply(bufio.NewReader(strings.NewReader(h.do("SMEMBERS " + key))))
			if err != nil {
				h.t.Fatal(err)
			}
			var members []string
			for _, m := range reply.Elems {
				members = append(members, m.Text)
			}
			slices.Sort(members)
			fmt.Fprintf(&out, "%q", members)
		case "+string":
			out.WriteString(h.do("GET " + key))
		}
		out.WriteString("\n")
	}
	return out.String()
}

// replay runs a record of the log, commands in RESP, as a restart would.
func (h *harness) replay(record string) {
	h.t.Helper()
	for r := bufio.NewReader(strings.NewReader(record)); ; {
		cmd, err := transcript.ReadReply(r)
		if err != nil {
			return
		}
		var args [][]byte
		for _, a := range cmd.Elems {
			args = append(args, []byte(a.Text))
		}
		if reply := h.run(args...); bytes.HasPrefix(reply, []byte("-")) {
			h.t.Fatalf("the effect %q was answered %q", args, reply)
		}
	}
}

// The effects of commands, some of which draw at random, must make the same
// lists and sets when they are run again.
func TestEffectsOfCollections(t *testing.T) {
	for seed := range uint64(4) {
		h, again := newHarness(t, store.Options{}), newHarness(t, store.Options{})
		d := dice{rand.New(rand.NewPCG(randomSeed, seed))}
		replayed := 0
		for i := range 3000 {
			words := d.listCommand()
			switch d.IntN(8) {
			case 0:
				words = []string{"SPOP", d.key(), d.pick("1", "2", "3")}
			case 1, 2, 3:
				words = d.setCommand()
			}
			var args [][]byte
			for _, w := range words {
				args = append(args, []byte(w))
			}
			h.run(args...)
			records := h.log.Records()
			for _, record := range records[replayed:] {
				again.replay(record)
			}
			replayed = len(records)
			if have, want := again.contents(), h.contents(); have != want {
				t.Fatalf("command %d of seed %d: %q\n its effects make\n%s\n want\n%s", i, seed, words, have, want)
			}
		}
	}
}

func TestEventsOfCollections(t *testing.T) {
	h := newHarness(t, store.Options{})
	h.store.SetNotify(1<<31 - 1)
	for _, step := range []struct{ line, events string }{
		{"RPUSH l a b c", "new l, rpush l"},
		{"LPUSH l z", "lpush l"},
		{"LPUSHX none z", ""},
		{"LSET l 0 y", "lset l"},
		{"LINSERT l AFTER a b", "linsert l"},
		{"LINSERT l AFTER none b", ""},
		{"LREM l 0 none", ""},
		{"LREM l 0 b", "lrem l"},
		{"LTRIM l 0 99", "ltrim l"},
		{"LMOVE l l LEFT RIGHT", "rpush l, lpop l"},
		{"RPOPLPUSH l m", "new m, lpush m, rpop l"},
		{"LMOVE m l LEFT LEFT", "lpush l, lpop m, del m"},
		{"LMPOP 2 m l RIGHT", "rpop l"},
		{"LPOP l 0", ""},
		{"LPOP l 9", "lpop l, del l"},
		{"LPOP l", ""},
		{"RPUSH l a", "new l, rpush l"},
		{"LTRIM l 1 0", "ltrim l, del l"},
		{"SADD s a b", "new s, sadd s"},
		{"SADD s a", ""},
		{"SREM s none", ""},
		{"SMOVE s u a", "srem s, new u, sadd u"},
		{"SMOVE s u b", "srem s, del s, sadd u"},
		{"SUNIONSTORE v u", "new v, sunionstore v"},
		{"SINTERSTORE v u", "sinterstore v"},
		{"SDIFFSTORE v u u", "del v"},
		{"SPOP u", "spop u"},
		{"SPOP u 9", "spop u, del u"},
		{"SADD s a", "new s, sadd s"},
		{"SREM s a", "srem s, del s"},
	} {
		h.events.take()
		h.do(step.line)
		if got := strings.Join(h.events.take(), ", "); got != step.events {
			t.Errorf("%s\n told %q\n want %q", step.line, got, step.events)
		}
	}
}

// The judge of encodings is Redis 7.2, with its settings as they are by default.
func TestEncodingsOfCollections(t *testing.T) {
	h := newHarness(t, store.Options{})
	many := func(name, format string, n int) string {
		var b strings.Builder
		b.WriteString(name)
		for i := range n {
			fmt.Fprintf(&b, " "+format, i)
		}
		return b.String()
	}
	for _, step := range []struct{ line, key, encoding string }{
		{"RPUSH l a", "l", "listpack"},
		{many("RPUSH l", "%0100d", 80), "l", "listpack"},
		{many("RPUSH l", "%0100d", 1), "l", "quicklist"},
		{"LTRIM l 0 60", "l", "quicklist"},
		{"LTRIM l 0 30", "l", "listpack"},
		{"SADD s 1 2", "s", "intset"},
		{"SADD s x", "s", "listpack"},
		{"SREM s x", "s", "listpack"},
		{many("SADD s", "%d", 128), "s", "listpack"},
		{"SADD s y", "s", "hashtable"},
		{many("SADD i", "%d", 512), "i", "intset"},
		{"SADD i 512", "i", "hashtable"},
		{"SADD j 01", "j", "listpack"},
		{"SADD k " + strings.Repeat("x", 65), "k", "hashtable"},
	} {
		h.do(step.line)
		if got := h.do("OBJECT ENCODING " + step.key); !strings.Contains(got, step.encoding) {
			t.Errorf("after %.40s: %q, want %s", step.line, got, step.encoding)
		}
	}
}
