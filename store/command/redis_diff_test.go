package command_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// Random commands must have the same replies as from redis-server 7.0.
const (
	randomCommands = 3000
	randomSeed     = 7
)

// redis is a connection to a redis-server that runs for the test.
type redis struct {
	nc net.Conn
	r  *bufio.Reader
}

func startRedis(t *testing.T) func() *redis {
	t.Helper()
	srv := transcript.StartJudge(t)
	return func() *redis {
		nc, err := net.Dial("tcp", srv.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		return &redis{nc, bufio.NewReader(nc)}
	}
}

func (r *redis) do(t *testing.T, args [][]byte) transcript.Reply {
	t.Helper()
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	r.nc.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := r.nc.Write(b); err != nil {
		t.Fatal(err)
	}
	reply, err := transcript.ReadReply(r.r)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return reply
}

// dice makes random commands.
type dice struct{ *rand.Rand }

func (d dice) pick(of ...string) string { return of[d.IntN(len(of))] }

func (d dice) key() string { return d.pick("a", "b", "c", "d") }

func (d dice) value() string {
	switch d.IntN(8) {
	case 0:
		return d.pick("", "0", "-1", "9223372036854775807", "-9223372036854775808", "9223372036854775808", " 1", "1 ", "+1", "007", "-0")
	case 1:
		return d.float()
	case 2:
		b := make([]byte, d.IntN(40))
		for i := range b {
			b[i] = byte(d.IntN(256))
		}
		return string(b)
	case 3:
		b := make([]byte, d.IntN(60))
		for i := range b {
			b[i] = "abc"[d.IntN(3)]
		}
		return string(b)
	case 4:
		return string(bytes.Repeat([]byte{d.pick("\x00", "\xff")[0]}, d.IntN(40)))
	}
	return strconv.FormatInt(d.integer(), 10)
}

// integer is small, or of any size.
func (d dice) integer() int64 {
	if d.IntN(4) > 0 {
		return int64(d.IntN(200)) - 100
	}
	return int64(d.Uint64()) >> d.IntN(64)
}

func (d dice) int() string {
	if d.IntN(30) == 0 {
		return d.pick("x", "", "1.5", "9223372036854775808", "01")
	}
	return strconv.FormatInt(d.integer(), 10)
}

func (d dice) float() string {
	if d.IntN(5) == 0 {
		return d.pick("inf", "-inf", "nan", "0x1.8p3", "1e400", "1e-400", "1e5000", ".5", "5.", ".", "1e", "1e+3", "0x", "1e-17", "3.00e00", "-0.0", "Infinity")
	}
	switch d.IntN(4) {
	case 0:
		return strconv.FormatFloat(d.NormFloat64()*100, 'f', d.IntN(20), 64)
	case 1:
		return strconv.FormatFloat(d.NormFloat64(), 'e', d.IntN(25), 64)
	case 2:
		return fmt.Sprintf("%d.%de%d", d.IntN(1000), d.Uint64(), d.IntN(60)-30)
	}
	return fmt.Sprintf("%d%d.%d", int64(d.Uint64()), d.Uint64(), d.Uint64())
}

// expiry does not run out while the test runs; it may be past, or wrong.
func (d dice) expiry() []string {
	if d.IntN(10) == 0 {
		return []string{d.pick("EX", "PX", "EXAT", "PXAT"), d.pick("0", "-1", "x", "9223372036854775807", "9223372036854775", "9223372036854776")}[:d.IntN(2)+1]
	}
	return [][]string{{"EX", "10000"}, {"px", "10000000"}, {"EXAT", "99999999999"}, {"PXAT", "99999999999000"}, {"EXAT", "1"}}[d.IntN(5)]
}

func (d dice) stringCommand() []string {
	k := d.key()
	switch d.IntN(24) {
	case 0, 1:
		cmd := []string{"SET", k, d.value()}
		for range d.IntN(4) {
			if d.IntN(3) == 0 {
				cmd = append(cmd, d.expiry()...)
			} else {
				cmd = append(cmd, d.pick("NX", "XX", "GET", "get", "KEEPTTL", "PERSIST"))
			}
		}
		return cmd
	case 2:
		return []string{"SETNX", k, d.value()}
	case 3:
		return []string{d.pick("SETEX", "PSETEX"), k, d.pick("100000", "100000", "0", "-5", "y", "9223372036854775807"), d.value()}
	case 4:
		return []string{"GETSET", k, d.value()}
	case 5:
		return []string{"GET", k}
	case 6:
		return []string{"GETDEL", k}
	case 7:
		cmd := []string{"GETEX", k}
		for range d.IntN(3) {
			if d.IntN(2) == 0 {
				cmd = append(cmd, d.expiry()...)
			} else {
				cmd = append(cmd, d.pick("PERSIST", "KEEPTTL", "NX"))
			}
		}
		return cmd
	case 8, 9:
		return []string{d.pick("GETRANGE", "SUBSTR"), k, d.int(), d.int()}
	case 10:
		return []string{"SETRANGE", k, d.pick(strconv.Itoa(d.IntN(80)), "-1", "536870912", "x", "9223372036854775807"), d.value()}[:4]
	case 11:
		return []string{"APPEND", k, d.value()}
	case 12:
		return []string{"STRLEN", k}
	case 13:
		return []string{d.pick("INCR", "DECR"), k}
	case 14, 15:
		return []string{d.pick("INCRBY", "DECRBY"), k, d.int()}
	case 16, 17, 18:
		return []string{"INCRBYFLOAT", k, d.float()}
	case 19:
		return []string{"MGET", k, d.key(), d.key()}
	case 20:
		return []string{d.pick("MSET", "MSETNX"), k, d.value(), d.key(), d.value(), d.key(), d.value()}[:3+d.IntN(5)]
	default:
		cmd := []string{"LCS", k, d.key()}
		for range d.IntN(4) {
			switch d.IntN(5) {
			case 0:
				cmd = append(cmd, "MINMATCHLEN", d.pick("0", "1", "2", "3", "-1", "x"))
			default:
				cmd = append(cmd, d.pick("IDX", "IDX", "LEN", "WITHMATCHLEN"))
			}
		}
		return cmd
	}
}

func (d dice) bitCommand() []string {
	k := d.key()
	bit := func() string {
		if d.IntN(20) == 0 {
			return d.pick("-1", "x", "4294967296", "34359738368")
		}
		return strconv.Itoa(d.IntN(400))
	}
	at := func() string {
		if d.IntN(20) == 0 {
			return d.int()
		}
		return strconv.Itoa(d.IntN(90) - 45)
	}
	switch d.IntN(10) {
	case 0:
		return []string{"SET", k, d.value()}
	case 1:
		return []string{"SETBIT", k, bit(), d.pick("0", "1", "0", "1", "0", "1", "2", "-1", "x")}
	case 2:
		return []string{"GETBIT", k, bit()}
	case 3, 4:
		return []string{"BITCOUNT", k, at(), at(), d.pick("BIT", "BYTE", "bit", "bits")}[:2+d.IntN(4)]
	case 5, 6:
		return []string{"BITPOS", k, d.pick("0", "1", "0", "1", "0", "1", "2", "x"), at(), at(), d.pick("BIT", "BYTE", "byte", "bits")}[:3+d.IntN(4)]
	case 7:
		return []string{"BITOP", d.pick("AND", "OR", "XOR", "NOT", "xor", "nand"), k, d.key(), d.key(), d.key()}[:4+d.IntN(3)]
	default:
		cmd := []string{d.pick("BITFIELD", "BITFIELD", "BITFIELD", "BITFIELD_RO"), k}
		for range 1 + d.IntN(4) {
			typ := d.pick("u", "i") + strconv.Itoa(d.IntN(64)+1)
			if d.IntN(4) == 0 {
				typ = d.pick("i64", "u63", "u64", "i0", "i65", "x8", "u1", "i1", "i8", "u08")
			}
			off := bit()
			if d.IntN(3) == 0 {
				off = "#" + strconv.Itoa(d.IntN(6))
			}
			switch d.IntN(6) {
			case 0, 1:
				cmd = append(cmd, "GET", typ, off)
			case 2:
				cmd = append(cmd, "SET", typ, off, d.int())
			case 3:
				cmd = append(cmd, "OVERFLOW", d.pick("WRAP", "SAT", "FAIL", "fail", "sat", "none"))
			default:
				cmd = append(cmd, "INCRBY", typ, off, d.int())
			}
		}
		return cmd
	}
}

func TestRandomCommandsAsRedis(t *testing.T) {
	dial := startRedis(t)
	families := []struct {
		name string
		next func(dice) []string
	}{
		{"strings", dice.stringCommand},
		{"bits", dice.bitCommand},
		{"lists", dice.listCommand},
		{"sets", dice.setCommand},
	}
	for _, f := range families {
		for _, proto := range []int{2, 3} {
			t.Run(fmt.Sprintf("%s/RESP%d", f.name, proto), func(t *testing.T) {
				judge := dial()
				judge.do(t, words("FLUSHALL"))
				judge.do(t, [][]byte{[]byte("HELLO"), strconv.AppendInt(nil, int64(proto), 10)})
				h := newHarness(t, store.Options{})
				h.proto(proto)
				d := dice{rand.New(rand.NewPCG(randomSeed, uint64(proto)))}
				for i := range randomCommands {
					var args [][]byte
					for _, a := range f.next(d) {
						args = append(args, []byte(a))
					}
					compareReplies(t, h, judge, i, args)
					// What a write has left is seen at once.
					compareReplies(t, h, judge, i, [][]byte{[]byte("MGET"), []byte("a"), []byte("b"), []byte("c"), []byte("d")})
					if key := changedKey(args); key != nil {
						compareReplies(t, h, judge, i, [][]byte{[]byte("LRANGE"), key, []byte("0"), []byte("-1")})
						compareReplies(t, h, judge, i, [][]byte{[]byte("SMEMBERS"), key})
					}
					if t.Failed() {
						return
					}
				}
			})
		}
	}
}

func compareReplies(t *testing.T, h *harness, judge *redis, i int, args [][]byte) {
	t.Helper()
	want := judge.do(t, args)
	raw := h.run(args...)
	got, err := transcript.ReadReply(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil {
		t.Fatalf("command %d of seed %d, %q: our reply %q: %v", i, randomSeed, args, raw, err)
	}
	if unordered[string(args[0])] {
		got, want = inOrder(got), inOrder(want)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("command %d of seed %d: %q\n have %+v\n want %+v", i, randomSeed, args, got, want)
	}
}

// unordered are the commands whose replies come in no order that means anything.
var unordered = map[string]bool{
	"SMEMBERS": true, "SINTER": true, "SUNION": true, "SDIFF": true,
	"SPOP": true, "SRANDMEMBER": true, "SSCAN": true,
}

// inOrder sorts a reply's elements, at every depth.
func inOrder(r transcript.Reply) transcript.Reply {
	r.Elems = slices.Clone(r.Elems)
	for i := range r.Elems {
		r.Elems[i] = inOrder(r.Elems[i])
	}
	slices.SortStableFunc(r.Elems, func(a, b transcript.Reply) int {
		if a.Kind != transcript.Bulk || b.Kind != transcript.Bulk {
			return 0
		}
		return strings.Compare(a.Text, b.Text)
	})
	return r
}

// changedKey is a key that a command on lists or sets may have changed.
func changedKey(args [][]byte) []byte {
	if name := string(args[0]); len(args) > 2 && (name[0] == 'L' || name[0] == 'R' || name[0] == 'S') {
		if strings.HasSuffix(name, "MPOP") || name == "LMOVE" || name == "RPOPLPUSH" || name == "SMOVE" {
			return args[2]
		}
		return args[1]
	}
	return nil
}
