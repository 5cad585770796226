package command_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/proxy/resp"
	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// harness is an engine with all data families and one session, without a
// server around it.
type harness struct {
	t      testing.TB
	store  *store.Store
	log    *store.MemoryLog
	events *recordingSink
	engine *command.Engine
	*session
}

// session is one asker of the engine.
type session struct {
	engine *command.Engine
	s      *command.Session
	w      *resp.Writer
	call   command.Call
	asked  []byte // the bytes of all arguments before the call
}

// recordingSink keeps the keyspace events of commits as "event key".
type recordingSink struct{ events []string }

func (r *recordingSink) Deliver(ev *store.Event) {
	r.events = append(r.events, string(ev.Channel)+" "+string(ev.Payload))
}

func (r *recordingSink) take() []string {
	out := r.events
	r.events = nil
	return out
}

func newHarness(t testing.TB, o store.Options) *harness {
	t.Helper()
	h := &harness{t: t, log: &store.MemoryLog{Keep: true}, events: &recordingSink{}}
	if o.Log == nil {
		o.Log = h.log
	}
	o.Sink = h.events
	var err error
	if h.store, err = store.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.store.Close)
	table, err := command.NewTable(command.Families()...)
	if err != nil {
		t.Fatal(err)
	}
	h.engine = &command.Engine{Table: table, Store: h.store, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	h.engine.SlowAfter.Store(-1)
	h.session = newSession(h.engine)
	return h
}

func newSession(e *command.Engine) *session {
	s := &session{engine: e, s: &command.Session{Proto: 2, Tx: e.Store.NewTx()}, w: resp.NewWriter()}
	s.s.BeginBatch()
	return s
}

// proto chooses RESP2 or RESP3.
func (s *session) proto(version int) {
	s.s.Proto = version
	s.w.SetProto(version)
}

// run runs one command and returns the bytes of its reply, which live until the
// next one. No command may write to its arguments: they can be the memory of a
// script's own strings.
func (s *session) run(args ...[]byte) []byte {
	s.w.Reset()
	s.asked = s.asked[:0]
	for _, a := range args {
		s.asked = append(s.asked, a...)
	}
	defer func() {
		rest := s.asked
		for i, a := range args {
			if !bytes.Equal(a, rest[:len(a)]) {
				panic(fmt.Sprintf("%s has changed its argument %d to %q", args[0], i, a))
			}
			rest = rest[len(a):]
		}
	}()
	spec, refusal := s.engine.Table.Find(args)
	if spec == nil {
		s.w.Error(refusal)
		return s.w.Bytes()
	}
	s.call = command.Call{S: s.s, Spec: spec, Args: args, Reply: s.w}
	s.engine.Run(&s.call)
	return s.w.Bytes()
}

// do runs a command line of words parted by blanks; a word may be quoted as in
// Go, without blanks.
func (s *session) do(line string) string {
	return string(s.run(words(line)...))
}

func words(line string) [][]byte {
	var args [][]byte
	for _, w := range strings.Fields(line) {
		if w[0] == '"' {
			if text, err := strconv.Unquote(w); err == nil {
				w = text
			}
		}
		args = append(args, []byte(w))
	}
	return args
}

// expect runs a command line and compares its reply, written without the final
// CRLF and with a blank for every CRLF within.
func (h *harness) expect(line, want string) {
	h.t.Helper()
	got := strings.ReplaceAll(strings.TrimSuffix(h.do(line), "\r\n"), "\r\n", " ")
	if got != want {
		h.t.Errorf("%s\n have %s\n want %s", line, got, want)
	}
}

// script runs pairs of a command line and its reply.
func (h *harness) script(lines [][2]string) {
	h.t.Helper()
	for _, l := range lines {
		h.expect(l[0], l[1])
	}
}
