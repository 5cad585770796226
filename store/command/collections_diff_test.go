package command_test

import (
	"bufio"
	"strconv"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command/transcript"
	"github.com/latchkey-proxy/latchkey/store/rdb"
)

func (d dice) end() string { return d.pick("LEFT", "RIGHT", "left", "Right", "LEFT", "RIGHT", "up") }

// element is one of few, so that commands meet.
func (d dice) element() string {
	if d.IntN(12) == 0 {
		return d.value()
	}
	return d.pick("x", "y", "z", "1", "2", "")
}

func (d dice) elements() []string {
	out := make([]string, 1+d.IntN(6))
	for i := range out {
		out[i] = d.element()
	}
	return out
}

// at is an index near a short list, or anything.
func (d dice) at() string {
	if d.IntN(8) == 0 {
		return d.int()
	}
	return strconv.Itoa(d.IntN(14) - 7)
}

// otherKind makes a key hold what lists and sets cannot use, or none.
func (d dice) otherKind(k string) []string {
	switch d.IntN(8) {
	case 0:
		return []string{"SET", k, d.value()}
	case 1:
		return []string{"COPY", k, d.key(), "REPLACE"}[:3+d.IntN(2)]
	case 2:
		return []string{"RENAME", k, d.key()}
	case 3:
		return []string{"GET", k}
	case 4:
		return []string{"TYPE", k}
	case 5:
		return []string{"RPUSH", k, "x"}
	case 6:
		return []string{"SADD", k, "x", "1"}
	}
	return []string{"DEL", k}
}

func (d dice) listCommand() []string {
	k := d.key()
	switch d.IntN(24) {
	case 0:
		return d.otherKind(k)
	case 1, 2, 3:
		return append([]string{d.pick("LPUSH", "RPUSH"), k}, d.elements()...)
	case 4:
		return append([]string{d.pick("LPUSHX", "RPUSHX"), k}, d.elements()...)
	case 5, 6:
		return []string{d.pick("LPOP", "RPOP"), k, d.at(), "1"}[:2+min(2, d.IntN(6))]
	case 7:
		return []string{"LLEN", k}
	case 8, 9:
		return []string{"LRANGE", k, d.at(), d.at()}
	case 10, 11:
		return []string{"LINDEX", k, d.at()}
	case 12:
		return []string{"LSET", k, d.at(), d.element()}
	case 13, 14:
		return []string{"LINSERT", k, d.pick("BEFORE", "AFTER", "after", "behind"), d.element(), d.element()}
	case 15, 16:
		return []string{"LREM", k, d.at(), d.element()}
	case 17:
		return []string{"LTRIM", k, d.at(), d.at()}
	case 18, 19:
		cmd := []string{"LPOS", k, d.element()}
		for range d.IntN(4) {
			cmd = append(cmd, d.pick("RANK", "COUNT", "MAXLEN", "rank", "first"), d.at())
		}
		return cmd[:len(cmd)-d.IntN(20)/19]
	case 20, 21:
		return []string{"LMOVE", k, d.key(), d.end(), d.end()}
	case 22:
		return []string{"RPOPLPUSH", k, d.key()}
	default:
		return []string{"LMPOP", d.pick("1", "2", "2", "3", "0", "-1", "x"), k, d.key(), d.end(), "COUNT", d.at()}[:5+d.IntN(3)]
	}
}

func (d dice) setCommand() []string {
	k := d.key()
	switch d.IntN(20) {
	case 0:
		return d.otherKind(k)
	case 1, 2, 3:
		return append([]string{"SADD", k}, d.elements()...)
	case 4, 5:
		return append([]string{"SREM", k}, d.elements()...)
	case 6:
		return []string{"SMOVE", k, d.key(), d.element()}
	case 7:
		return []string{"SISMEMBER", k, d.element()}
	case 8:
		return append([]string{"SMISMEMBER", k}, d.elements()...)
	case 9:
		return []string{"SCARD", k}
	case 10, 11:
		return []string{"SMEMBERS", k}
	case 12, 13:
		return []string{d.pick("SINTER", "SUNION", "SDIFF"), k, d.key(), d.key()}[:2+d.IntN(3)]
	case 14, 15:
		return []string{d.pick("SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE"), k, d.key(), d.key(), d.key()}[:3+d.IntN(3)]
	case 16:
		return []string{"SINTERCARD", d.pick("1", "2", "2", "3", "0", "-1", "x"), k, d.key(), d.pick("LIMIT", "limit", "k"), d.at()}[:3+d.IntN(4)]
	case 17:
		// What is drawn at random differs; only how many there are may not.
		return []string{"SPOP", k, d.pick("1000", "0", "-1", "x", "99999999999"), "1"}[:3+d.IntN(8)/7]
	case 18:
		return []string{"SRANDMEMBER", k, d.pick("1000", "0", "-9223372036854775808", "x"), "1"}[:3+d.IntN(8)/7]
	default:
		return []string{"SSCAN", k, d.pick("0", "0", "0", "x", "-"), "COUNT", "1000", "MATCH", d.pick("*", "[a-y]", "1*")}[:5+d.IntN(3)]
	}
}

// What DUMP makes of a list or a set redis-server restores, and so do we; what is
// no such value is refused as redis-server refuses it.
func TestDumpOfCollectionsAsRedis(t *testing.T) {
	judge := startRedis(t)()
	h := newHarness(t, store.Options{})
	long := strings.Repeat("x", 300)
	for _, line := range []string{"RPUSH l a b 1 -200 70000 " + long, "SADD s a", "SADD i 5"} {
		h.do(line)
		key := words(line)[1]
		reply, err := transcript.ReadReply(bufio.NewReader(strings.NewReader(h.do("DUMP " + string(key)))))
		if err != nil {
			t.Fatal(err)
		}
		restore := [][]byte{[]byte("RESTORE"), key, []byte("100000"), []byte(reply.Text), []byte("REPLACE")}
		compareReplies(t, h, judge, 0, restore)
		if ttl := h.do("TTL " + string(key)); ttl != ":100\r\n" && ttl != ":99\r\n" {
			t.Errorf("%s: TTL %q after RESTORE, want 100", key, ttl)
		}
		if line[0] == 'R' {
			compareReplies(t, h, judge, 0, words("LRANGE l 0 -1"))
		} else {
			compareReplies(t, h, judge, 0, [][]byte{[]byte("SMEMBERS"), key})
		}
	}
	for _, value := range []string{"\x01\x00", "\x02\x00", "\x01", "\x01\x02\x01a", "\x02\x02\x01a\x01a", "\x01\xc0\x01", "\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff"} {
		compareReplies(t, h, judge, 0, [][]byte{[]byte("RESTORE"), []byte("bad"), []byte("0"), rdb.Seal([]byte(value))})
	}
}
