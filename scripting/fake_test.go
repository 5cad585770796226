package scripting

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/scripting/text"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// fakeStore is the least of a keyspace that the snippets need: strings, lists
// that can be pushed and read, and the errors of the gate.
type fakeStore struct {
	strings map[string]string
	lists   map[string][]string
	hashes  map[string][][2]string
	calls   int
	fail    error // returned by Call instead of a reply
}

func newFakeStore() *fakeStore {
	return &fakeStore{map[string]string{}, map[string][]string{}, map[string][][2]string{}, 0, nil}
}

func (f *fakeStore) Call(argv [][]byte, r command.Reply) error {
	f.calls++
	if f.fail != nil {
		return f.fail
	}
	arg := func(i int) string { return string(argv[i]) }
	arity := map[string]int{
		"get": 2, "set": -3, "del": -2, "incr": 2, "ping": -1, "lpush": -3, "lrange": 4, "echo": 2,
		"hset": -4, "hgetall": 2, "exists": -2, "rpush": -3, "mget": -2, "getset": 3, "setnx": 3,
	}
	name := strings.ToLower(arg(0))
	switch name {
	case "subscribe", "eval", "multi", "config", "blpop", "auth", "debug", "script":
		r.Error("ERR This Redis command is not allowed from script")
		return nil
	}
	want, ok := arity[name]
	switch {
	case !ok:
		r.Error("ERR Unknown Redis command called from script")
		return nil
	case want >= 0 && len(argv) != want || len(argv) < -want:
		r.Error("ERR Wrong number of args calling Redis command from script")
		return nil
	}
	if len(argv) > 1 && name != "lpush" && name != "rpush" && name != "lrange" && name != "del" && name != "exists" {
		if _, list := f.lists[arg(1)]; list && name != "set" && name != "ping" && name != "echo" {
			r.Error("WRONGTYPE Operation against a key holding the wrong kind of value")
			return nil
		}
	}
	switch name {
	case "get":
		if v, ok := f.strings[arg(1)]; ok {
			r.BulkString(v)
		} else {
			r.Null()
		}
	case "set":
		delete(f.lists, arg(1))
		f.strings[arg(1)] = arg(2)
		r.Status("OK")
	case "setnx":
		if _, ok := f.strings[arg(1)]; ok {
			r.Int(0)
		} else {
			f.strings[arg(1)] = arg(2)
			r.Int(1)
		}
	case "getset":
		if v, ok := f.strings[arg(1)]; ok {
			r.BulkString(v)
		} else {
			r.Null()
		}
		f.strings[arg(1)] = arg(2)
	case "mget":
		r.Array(len(argv) - 1)
		for i := range argv[1:] {
			if v, ok := f.strings[arg(i+1)]; ok {
				r.BulkString(v)
			} else {
				r.Null()
			}
		}
	case "del", "exists":
		n := 0
		for i := range argv[1:] {
			k := arg(i + 1)
			_, a := f.strings[k]
			_, b := f.lists[k]
			_, c := f.hashes[k]
			if a || b || c {
				n++
			}
			if name == "del" {
				delete(f.strings, k)
				delete(f.lists, k)
				delete(f.hashes, k)
			}
		}
		r.Int(int64(n))
	case "incr":
		n, err := strconv.ParseInt("0"+f.strings[arg(1)], 10, 64)
		if err != nil {
			r.Error("ERR value is not an integer or out of range")
			return nil
		}
		f.strings[arg(1)] = strconv.FormatInt(n+1, 10)
		r.Int(n + 1)
	case "ping":
		if len(argv) == 1 {
			r.Status("PONG")
		} else {
			r.Bulk(argv[1])
		}
	case "echo":
		r.Bulk(argv[1])
	case "lpush", "rpush":
		for i := range argv[2:] {
			if name == "lpush" {
				f.lists[arg(1)] = append([]string{arg(i + 2)}, f.lists[arg(1)]...)
			} else {
				f.lists[arg(1)] = append(f.lists[arg(1)], arg(i+2))
			}
		}
		r.Int(int64(len(f.lists[arg(1)])))
	case "lrange":
		r.Array(len(f.lists[arg(1)]))
		for _, v := range f.lists[arg(1)] {
			r.BulkString(v)
		}
	case "hset":
		f.hashes[arg(1)] = append(f.hashes[arg(1)], [2]string{arg(2), arg(3)})
		r.Int(1)
	case "hgetall":
		r.Map(len(f.hashes[arg(1)]))
		for _, p := range f.hashes[arg(1)] {
			r.BulkString(p[0])
			r.BulkString(p[1])
		}
	}
	return nil
}

// respWriter writes RESP2, which is what redis-server answers the tests in.
type respWriter struct{ b []byte }

func (w *respWriter) f(format string, args ...any) { w.b = fmt.Appendf(w.b, format, args...) }

func (w *respWriter) Status(s string)              { w.f("+%s\r\n", s) }
func (w *respWriter) Error(s string)               { w.f("-%s\r\n", s) }
func (w *respWriter) Int(n int64)                  { w.f(":%d\r\n", n) }
func (w *respWriter) Bulk(b []byte)                { w.f("$%d\r\n%s\r\n", len(b), b) }
func (w *respWriter) BulkString(s string)          { w.f("$%d\r\n%s\r\n", len(s), s) }
func (w *respWriter) Null()                        { w.f("$-1\r\n") }
func (w *respWriter) NullArray()                   { w.f("*-1\r\n") }
func (w *respWriter) Array(n int)                  { w.f("*%d\r\n", n) }
func (w *respWriter) Map(n int)                    { w.Array(2 * n) }
func (w *respWriter) Set(n int)                    { w.Array(n) }
func (w *respWriter) Push(n int)                   { w.Array(n) }
func (w *respWriter) Double(f float64)             { w.BulkString(doubleText(f)) }
func (w *respWriter) Bool(b bool)                  { w.Int(int64(b2i(b))) }
func (w *respWriter) BigNumber(s string)           { w.BulkString(s) }
func (w *respWriter) Verbatim(format, text string) { w.BulkString(text) }
func (w *respWriter) Mark() int                    { return len(w.b) }
func (w *respWriter) Rewind(mark int)              { w.b = w.b[:mark] }

func newEngine(t testing.TB, opts Options) *Engine {
	t.Helper()
	e, err := New(opts)
	if err != nil {
		t.Fatalf("New(%+v): %v", opts, err)
	}
	return e
}

// eval runs a source and returns the reply in RESP2, of errors too.
func eval(e *Engine, store Caller, src string, lim Limits) string {
	inv := &Invocation{
		Caller: store, Limits: lim,
		CheckACL: func(argv [][]byte) (bool, bool) { return true, string(argv[0]) != "nosuch" },
		Keys:     [][]byte{[]byte("k1"), []byte("k2")}, Args: [][]byte{[]byte("a1"), []byte("a2")},
	}
	return evalWith(e, inv, src)
}

func evalWith(e *Engine, inv *Invocation, src string) string {
	s, err := e.Compile([]byte(src))
	if err != nil {
		return "-" + text.OneLine(err.Error()) + "\r\n"
	}
	w := &respWriter{}
	if err := e.Run(s, inv, w); err != nil {
		return "-" + text.OneLine(err.Error()) + "\r\n"
	}
	return string(w.b)
}
