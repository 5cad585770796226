package command

import (
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/latchkey-proxy/latchkey/proxy/resp"
	"github.com/latchkey-proxy/latchkey/store"
)

// TestPassesAsAdmitted: whatever stands in the way of a script's command, it comes to the
// same whether the short way through the gate is open to it or not.
func TestPassesAsAdmitted(t *testing.T) {
	type surroundings struct {
		e *Engine
		s *Session
	}
	hindrances := map[string]func(surroundings){
		"nothing":          func(surroundings) {},
		"no writes":        func(o surroundings) { o.s.Denied = ErrReadOnlyScript },
		"no memory":        func(o surroundings) { o.e.Store.SetMaxMemory(1) },
		"memory allowed":   func(o surroundings) { o.e.Store.SetMaxMemory(1); o.s.AllowOOM = true },
		"a guard":          func(o surroundings) { o.s.Guard = func(*Call) string { return "ERR guarded" } },
		"a guard that may": func(o surroundings) { o.s.Guard = func(*Call) string { return "" } },
		"another's key":    func(o surroundings) { o.e.Owns = func(int, []byte) bool { return false } },
		"one's own key":    func(o surroundings) { o.e.Owns = func(int, []byte) bool { return true } },
		"a monitor":        func(o surroundings) { o.e.Monitors.Store(1) },
		"a slow log":       func(o surroundings) { o.e.SlowAfter.Store(0) },
		"a heavy script":   func(o surroundings) { o.e.MaxWeight.Store(1) },
	}
	commands := [][]string{
		{"GET", "k"},
		{"GET", "other"},
		{"GET", "list"},
		{"SET", "k", "v"},
		{"SET", "k", "v", "NX", "GET"},
		{"DEL", "k"},
		{"DEL", "k", "l"},
		{"DEL", "other"},
		{"INCR", "k"},
		{"INCR", "list"},
		{"PEXPIRE", "k", "10"},
		{"LPUSH", "list", "a"},
		{"MSET", "k", "v"},
		{"EXISTS", "k", "k"},
		{"MGET", "k"},
		{"OBJECT", "ENCODING", "k"},
		{"RENAME", "k", "l"},
		{"KEYS", "k"},
		{"TYPE", "k"},
		{"DELIFEQ", "k", "1"},
	}
	tables := map[bool]*Table{}
	for _, shortcut := range []bool{true, false} {
		table, err := NewTable(Families()...)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range table.All() {
			s.plain = s.plain && shortcut
		}
		tables[shortcut] = table
	}
	outcome := func(name string, words []string, short, shortcut bool) string {
		st, err := store.New(store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		table := tables[shortcut]
		for _, s := range table.All() {
			s.usage.Reset()
		}
		told := ""
		e := &Engine{Table: table, Store: st, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
		e.MaxValue.Store(1 << 20)
		e.SlowAfter.Store(-1)
		e.Slow = func(c *Call, _ int64) { told += " slow " + c.Spec.Name }
		e.Monitor = func(c *Call, inTx bool) { told += fmt.Sprint(" monitor ", c.Spec.Name, inTx) }
		e.OnError = func(msg string) { told += " error " + msg }
		s := &Session{Proto: 2, Tx: st.NewTx()}
		call := func(w *resp.Writer, words ...string) *Call {
			args := make([][]byte, len(words))
			for i, w := range words {
				args[i] = []byte(w)
			}
			spec, msg := table.Find(args)
			if spec == nil {
				t.Fatal(msg)
			}
			return &Call{S: s, Tx: s.Tx, Spec: spec, Args: args, Reply: w}
		}
		run := func(words ...string) string {
			w := resp.NewWriter()
			e.Run(call(w, words...))
			return string(w.Bytes())
		}
		run("SET", "k", "1")
		run("LPUSH", "list", "b")
		s.FlushStats()
		s.Tx.Begin()
		for _, key := range []string{"k", "list"} {
			s.Tx.Add(0, []byte(key))
		}
		if !short {
			if err := s.Tx.Acquire(nil); err != nil {
				t.Fatal(err)
			}
		} else if !s.Tx.AcquireFast() {
			t.Fatal("the keys are not free")
		}
		hindrances[name](surroundings{e, s})
		out := ""
		for range 3 { // the first is measured, and each meets what the one before has left
			w := resp.NewWriter()
			c := call(w, words...)
			c.From = FromScript
			e.Exec(c)
			out += fmt.Sprintf("%q failed %q clash %v effects %d; ", w.Bytes(), c.Failed(), s.Tx.Clash(), s.Tx.Effects())
			if s.Tx.Clash() {
				break
			}
		}
		if s.Tx.Clash() {
			s.Tx.Rollback()
			s.inner.forget()
		} else if err := s.Tx.Commit(); err != nil {
			t.Fatal(err)
		}
		e.settle(s)
		s.FlushStats()
		for _, spec := range table.All() {
			u := spec.Usage()
			measured := int64(0)
			for i := range u.Histogram {
				measured += u.Histogram[i].Load()
			}
			if n := u.Calls.Load(); n+u.Rejected.Load() != 0 {
				out += fmt.Sprintf("%s %d calls, %d measured, %d failed, %d rejected; ", spec.Name, n, measured, u.Failed.Load(), u.Rejected.Load())
			}
		}
		return out + told
	}
	passed := 0
	for name := range hindrances {
		for _, words := range commands {
			for _, short := range []bool{true, false} {
				got, want := outcome(name, words, short, true), outcome(name, words, short, false)
				if got != want {
					t.Errorf("%s in the way of %q, short %v:\nthe short way %s\n the long way %s", name, words, short, got, want)
				}
				passed++
			}
		}
	}
	if passed < 400 {
		t.Errorf("only %d cases were tried", passed)
	}
}
