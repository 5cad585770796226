package command_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// coarsest is the most work that a command may charge at once, in units of a Meter:
// about a quarter of a millisecond, and less than anybody notices who waits for one
// that was killed. Only a string is copied in one go, whatever its length.
const coarsest = 1<<14 + 1<<13

// budget is a Meter that says no when so much was charged.
type budget struct {
	units, bytes       int // left
	paid, took, coarse int // all of it, and the most units at once
	refused, after     int // how often it said no, and the units charged after that
	copying            int // bytes taken since the last work, which are copied in one go
}

func unlimited() *budget { return &budget{units: 1 << 60, bytes: 1 << 60} }

func (b *budget) ok() bool {
	if b.units >= 0 && b.bytes >= 0 {
		return true
	}
	b.refused++
	return false
}

func (b *budget) Pay(n int) bool {
	if b.refused > 0 {
		b.after += n
	}
	b.units, b.paid, b.coarse = b.units-n, b.paid+n, max(b.coarse, n-b.copying/8)
	b.copying = 0
	return b.ok()
}

func (b *budget) Alloc(n int) bool {
	b.bytes, b.took, b.copying = b.bytes-n, b.took+n, b.copying+n
	return b.ok()
}

func (b *budget) Check() bool { return b.ok() }

// metered runs a command as a script does whose budget is b, and then commits or
// undoes what it did.
func (h *harness) metered(b *budget, line string, commit bool) string {
	args := words(line)
	spec, refusal := h.engine.Table.Find(args)
	if spec == nil {
		h.t.Fatalf("%s: %s", line, refusal)
	}
	h.w.Reset()
	tx := h.s.Tx
	tx.Begin()
	keys, _ := spec.AppendKeys(nil, args)
	for _, k := range keys {
		tx.Add(0, args[k.Index])
	}
	if spec.Access == command.Alone {
		if err := tx.AcquireAll(nil); err != nil {
			h.t.Fatal(err)
		}
	} else if err := tx.Acquire(nil); err != nil {
		h.t.Fatal(err)
	}
	tx.SetMeter(b)
	c := command.Call{S: h.s, Spec: spec, Args: args, Tx: tx, Reply: h.w, From: command.FromScript}
	h.engine.Exec(&c)
	tx.SetMeter(nil)
	if !commit {
		tx.Rollback()
	} else if err := tx.Commit(); err != nil {
		h.t.Fatal(err)
	}
	return string(h.w.Bytes())
}

const (
	manyMembers = 20_000
	manyBytes   = 4 << 20
)

// big fills the harness with values that it takes a while to go through.
func (h *harness) big() {
	push := func(command, key, form string) {
		args := [][]byte{[]byte(command), []byte(key)}
		for i := range manyMembers {
			args = append(args, fmt.Appendf(nil, form, i))
		}
		if got := string(h.run(args...)); got != fmt.Sprintf(":%d\r\n", manyMembers) {
			h.t.Fatalf("%s %s: %s", command, key, got)
		}
	}
	push("RPUSH", "list", "element:%d")
	push("SADD", "set", "member:%d")
	push("SADD", "other", "member:%d")
	h.run([]byte("SETRANGE"), []byte("string"), fmt.Append(nil, manyBytes-1), []byte("x"))
	h.run([]byte("SETRANGE"), []byte("string2"), fmt.Append(nil, manyBytes-1), []byte("x"))
	h.run([]byte("SET"), []byte("word"), []byte(strings.Repeat("ab", 2000)))
	for i := range manyMembers {
		h.run([]byte("SET"), fmt.Appendf(nil, "key:%d", i), []byte("v"))
	}
}

// unbounded are the commands whose cost their arguments do not bound, each in the
// ways in which it may take long.
var unbounded = map[string][]string{
	"append":      {"APPEND string x"},
	"bitcount":    {"BITCOUNT string", "BITCOUNT string 1 -2", "BITCOUNT string 3 -3 BIT"},
	"bitfield":    {"BITFIELD new SET u8 33554432 1"},
	"bitop":       {"BITOP NOT new string", "BITOP AND new string string2 string string2", "BITOP OR new string word", "BITOP XOR new string string2"},
	"bitpos":      {"BITPOS string 1", "BITPOS string 1 2 -2 BIT"},
	"copy":        {"COPY string new", "COPY list new", "COPY set new"},
	"digest":      {"DIGEST string"},
	"delex":       {"DELEX string IFDEQ 0123456789abcdef", "DELEX string IFDNE 0123456789abcdef"},
	"dump":        {"DUMP string", "DUMP list", "DUMP set"},
	"getrange":    nil, // the reply charges its bytes
	"keys":        {"KEYS *", "KEYS no*", "KEYS *no*"},
	"lcs":         {"LCS word word LEN", "LCS word word"},
	"linsert":     {"LINSERT list BEFORE element:19000 x", "LINSERT list AFTER none x"},
	"lmpop":       {"LMPOP 1 list LEFT COUNT 15000", "LMPOP 1 list RIGHT COUNT 20000"},
	"lpop":        {"LPOP list 15000", "LPOP list 20000"},
	"lpos":        {"LPOS list none", "LPOS list element:19999", "LPOS list none RANK -1 COUNT 0"},
	"lrange":      {"LRANGE list 0 -1"},
	"lrem":        {"LREM list 0 none", "LREM list 1 element:19000", "LREM list -1 element:1000"},
	"ltrim":       {"LTRIM list 6000 -6000", "LTRIM list 3000 -3000"},
	"move":        {"MOVE list 1", "MOVE set 1"},
	"rename":      {"RENAME list new", "RENAME set new"},
	"renamenx":    {"RENAMENX list new", "RENAMENX set new"},
	"rpop":        {"RPOP list 15000", "RPOP list 20000"},
	"scan":        {"SCAN 0 COUNT 100000", "SCAN 0 COUNT 100000 MATCH no*", "SCAN 0 COUNT 100000 MATCH *no* TYPE string"},
	"sdiff":       {"SDIFF set none", "SDIFF set other"},
	"sdiffstore":  {"SDIFFSTORE new set none", "SDIFFSTORE new set other"},
	"set":         {"SET string v IFDEQ 0123456789abcdef"},
	"setbit":      {"SETBIT new 33554432 1"},
	"setrange":    {"SETRANGE new 4194304 x", "SETRANGE string 4194304 x"},
	"sinter":      {"SINTER set other"},
	"sintercard":  {"SINTERCARD 2 set other", "SINTERCARD 2 set other LIMIT 19000"},
	"sinterstore": {"SINTERSTORE new set other"},
	"smembers":    {"SMEMBERS set"},
	"spop":        {"SPOP set 15000", "SPOP set 20000"},
	"srandmember": {"SRANDMEMBER set 15000", "SRANDMEMBER set 20000", "SRANDMEMBER set -20000"},
	"sscan":       {"SSCAN set 0 COUNT 20000", "SSCAN set 0 COUNT 20000 MATCH *no*"},
	"substr":      nil,
	"sunion":      {"SUNION set other", "SUNION set"},
	"sunionstore": {"SUNIONSTORE new set other", "SUNIONSTORE new set"},
}

// bounded are the commands that scripts may call whose cost their arguments, or a
// constant, bound, but for the reply, which charges for itself.
const bounded = `
	bitfield_ro cad cas dbsize decr decrby del delifeq exists expire expireat expiretime flushall flushdb get getbit
	getdel getex getset incr incrby incrbyfloat lindex llen lmove lpush lpushx lset mget mset msetex msetnx object|encoding
	object|freq object|help object|idletime object|refcount persist pexpire pexpireat pexpiretime psetex pttl randomkey restore
	rpoplpush rpush rpushx sadd scard select setex setnx sismember smismember smove srem strlen swapdb touch ttl type
	unlink wait`

// TestMetered: each command that goes through much charges whoever calls it while
// it does so, a little at a time, and is given up and undone as soon as they say no.
func TestMetered(t *testing.T) {
	h := newHarness(t, store.Options{Clock: store.NewManualClock(1_700_000_000_000)})
	h.big()
	whole := h.do("SINTERCARD 2 set other") + h.do("DIGEST string") + h.do("LPOS list element:19999")
	for _, name := range slices.Sorted(maps.Keys(unbounded)) {
		for _, line := range unbounded[name] {
			t.Run(line, func(t *testing.T) {
				defer h.within(t)()
				before := h.values()
				all := unlimited()
				h.metered(all, line, false)
				switch {
				case all.paid < 200:
					t.Fatalf("it charges %d units of work, want more", all.paid)
				case all.coarse > coarsest:
					t.Errorf("it charges %d units at once, want %d at most", all.coarse, coarsest)
				}
				budgets := []int{0, all.paid / 3, all.paid / 2, all.paid * 9 / 10, all.paid - 1}
				for _, units := range budgets {
					b := unlimited()
					b.units = units
					h.endedEarly(b, line, before)
				}
				if all.took > 0 {
					b := unlimited()
					b.bytes = all.took - 1
					h.endedEarly(b, line, before)
				}
			})
		}
	}
	if got := h.do("SINTERCARD 2 set other") + h.do("DIGEST string") + h.do("LPOS list element:19999"); got != whole {
		t.Errorf("in the end the values are %q, want %q", got, whole)
	}
}

// within makes t the test that h reports to, until the returned function runs.
func (h *harness) within(t *testing.T) func() {
	outer := h.t
	h.t = t
	return func() { h.t = outer }
}

// endedEarly runs a command whose budget does not suffice.
func (h *harness) endedEarly(b *budget, line, before string) {
	h.t.Helper()
	limits := *b
	got := h.metered(b, line, true)
	if want := "-" + command.ErrCancelled + "\r\n"; got != want {
		h.t.Errorf("with %d units and %d bytes: it answers %.60q, want %q", limits.units, limits.bytes, got, want)
	}
	if b.after > coarsest {
		h.t.Errorf("with %d units and %d bytes: it went on for %d units after that", limits.units, limits.bytes, b.after)
	}
	if after := h.values(); after != before {
		h.t.Fatalf("with %d units and %d bytes: it has left something: %s\nwas %s", limits.units, limits.bytes, after, before)
	}
}

// values tells enough of the values of big to see that one has changed.
func (h *harness) values() string {
	var b strings.Builder
	for _, line := range []string{
		"DBSIZE", "LLEN list", "SCARD set", "SCARD other", "STRLEN string", "STRLEN word", "EXISTS new", "EXISTS list",
		"LINDEX list 0", "LINDEX list 7000", "LINDEX list -1", "SISMEMBER set member:19000", "OBJECT ENCODING set", "GETRANGE string -3 -1",
	} {
		b.WriteString(strings.ReplaceAll(h.do(line), "\r\n", " "))
	}
	return b.String()
}

// TestMeteredTable: every command that a script may call is known to charge, or to
// need no charge.
func TestMeteredTable(t *testing.T) {
	h := newHarness(t, store.Options{})
	known := map[string]bool{}
	for _, name := range strings.Fields(bounded) {
		known[name] = true
	}
	for name := range unbounded {
		if known[name] {
			t.Errorf("%s is said to be bounded and not to be", name)
		}
		known[name] = true
	}
	var walk func(specs []*command.Spec)
	walk = func(specs []*command.Spec) {
		for _, s := range specs {
			if len(s.Sub) != 0 {
				walk(s.Sub)
				continue
			}
			if s.Flags&command.NoScript != 0 {
				continue
			}
			if !known[s.FullName()] {
				t.Errorf("%s: nobody knows whether its arguments bound what it costs; if they do not it charges c.Tx (see meter.go), and is listed here", s.FullName())
			}
			delete(known, s.FullName())
		}
	}
	walk(h.engine.Table.All())
	for name := range known {
		t.Errorf("%s is no command that a script may call", name)
	}
}
