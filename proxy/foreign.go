package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy/upstream"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// foreign are the commands that the upstream has and latchkey has not: hashes,
// streams, those of its modules. They are learned from its COMMAND, which says
// where a command's keys stand, and forwarded when the keys are the upstream's.
type foreign struct {
	pool *upstream.Pool
	db   int
	log  *slog.Logger

	table atomic.Pointer[command.Table] // nil until it has been learned

	mu      sync.Mutex
	asked   time.Time     // when the last COMMAND was answered
	pending chan struct{} // closed when the COMMAND under way has ended; nil without
	err     error         // of the last COMMAND
	running sync.WaitGroup
}

// relearnAfter is how old the table must be for a name that it lacks to have it
// learned anew: the upstream may have loaded a module.
const relearnAfter = time.Second

// lookup finds a command of the upstream, learning first if it must. When there
// is none, the text of the error comes back. A client that ends meanwhile gets
// an error that nobody reads.
func (f *foreign) lookup(args [][]byte, done <-chan struct{}) (*command.Spec, string) {
	if t := f.table.Load(); t != nil {
		if s := t.Lookup(args[0]); s != nil {
			return s, ""
		}
	}
	select {
	case <-f.learn():
	case <-done:
		return nil, command.ErrCancelled
	}
	t := f.table.Load()
	if t == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		return nil, f.unlearned(args[0])
	}
	if s := t.Lookup(args[0]); s != nil {
		return s, ""
	}
	_, msg := t.Find(args)
	return nil, msg
}

// unlearned is the reply while nothing is known of the upstream's commands.
func (f *foreign) unlearned(name []byte) string {
	var down *upstream.Error
	if errors.As(f.err, &down) {
		return down.Error()
	}
	return fmt.Sprintf("ERR command %.64q is not latchkey's, and the upstream's commands are not known: %v", name, f.err)
}

// learn begins to learn the upstream's commands, unless that is under way or was
// done just now, and returns what is closed at the end.
func (f *foreign) learn() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pending != nil {
		return f.pending
	}
	ended := make(chan struct{})
	if f.table.Load() != nil && time.Since(f.asked) < relearnAfter {
		close(ended)
		return ended
	}
	f.pending = ended
	f.running.Go(func() {
		table, err := f.ask()
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.err = err; err == nil {
			f.table.Store(table)
			f.asked = time.Now()
		}
		f.pending = nil
		close(ended)
	})
	return ended
}

// close waits for the learning under way, which ends with the pool.
func (f *foreign) close() { f.running.Wait() }

// ask sends COMMAND and makes a table of the reply.
func (f *foreign) ask() (*command.Table, error) {
	call := f.pool.Do(upstream.Request{DB: f.db, Proto: 2, Raw: upstream.AppendCommand(nil, "COMMAND")})
	defer call.Release()
	frame, err := call.Wait(nil)
	if err != nil {
		return nil, err
	}
	all, err := parseReply(frame)
	if err != nil {
		return nil, err
	}
	if all.kind == '-' {
		return nil, fmt.Errorf("it answered COMMAND with %.200s", all.text)
	}
	table, err := command.NewTable()
	if err != nil {
		return nil, err
	}
	var specs []*command.Spec
	for i := range all.elems {
		if s := foreignSpec(&all.elems[i], ""); s != nil {
			specs = append(specs, s)
		}
	}
	if err := table.Add("", specs); err == nil {
		return table, nil
	}
	// One of them is odd; the others are none the worse for it.
	for _, s := range specs {
		if err := table.Add("", []*command.Spec{s}); err != nil {
			f.log.Warn("a command of the upstream is not forwarded: its description makes no sense", "command", s.Name, "err", err)
		}
	}
	return table, nil
}

// foreignSpec makes a Spec of an entry of COMMAND, nil if it is none: name, arity,
// flags, first key, last key, step, and since Redis 7 categories, tips, key specs
// and sub-commands.
func foreignSpec(entry *reply, container string) *command.Spec {
	e := entry.elems
	if len(e) < 6 {
		return nil
	}
	name := strings.ToLower(string(e[0].text))
	name = strings.TrimPrefix(name, container+"|")
	s := &command.Spec{Name: name, Arity: int(e[1].n), Access: command.Free, Upstream: true, Handler: foreignHandler}
	for _, flag := range e[2].elems {
		s.Flags |= command.FlagByName(string(flag.text))
	}
	s.Flags &^= command.DenyOOM // its memory is not ours
	if s.Flags&command.Write != 0 {
		s.Flags &^= command.ReadOnly
	}
	if len(e) >= 7 {
		for _, c := range e[6].elems {
			s.Categories |= command.CategoryByName(strings.TrimPrefix(string(c.text), "@"))
		}
	}
	if len(e) >= 10 {
		for i := range e[8].elems {
			s.Keys = append(s.Keys, foreignKeys(&e[8].elems[i]))
		}
		for i := range e[9].elems {
			if sub := foreignSpec(&e[9].elems[i], name); sub != nil {
				s.Sub = append(s.Sub, sub)
			}
		}
		if len(s.Sub) != 0 {
			s.Handler = nil
		}
		return s
	}
	if first, last := int(e[3].n), int(e[4].n); first > 0 {
		k := command.KeySpec{Begin: first, Last: last, Step: int(e[5].n)}
		if last >= 0 {
			k.Last = last - first
		}
		if s.Flags&command.MovableKeys != 0 {
			k.Flags |= command.KeyIncomplete
		}
		s.Keys = []command.KeySpec{k}
	}
	return s
}

// foreignKeys makes a key spec of its description. What cannot be told so is
// marked as incomplete.
func foreignKeys(r *reply) command.KeySpec {
	var k command.KeySpec
	for _, flag := range r.field("flags").elems {
		switch string(flag.text) {
		case "not_key":
			k.Flags |= command.KeyNotKey
		case "incomplete":
			k.Flags |= command.KeyIncomplete
		}
	}
	begin, find := r.field("begin_search"), r.field("find_keys")
	at := begin.field("spec")
	switch string(begin.field("type").text) {
	case "index":
		k.Begin = int(at.field("index").n)
	case "keyword":
		k.Keyword = string(at.field("keyword").text)
		k.From = int(at.field("startfrom").n)
	default:
		k.Begin = 1
		k.Flags |= command.KeyIncomplete
	}
	at = find.field("spec")
	switch string(find.field("type").text) {
	case "range":
		k.Last, k.Step, k.Limit = int(at.field("lastkey").n), int(at.field("keystep").n), int(at.field("limit").n)
	case "keynum":
		k.Count = true
		k.CountAt, k.FirstAt, k.Step = int(at.field("keynumidx").n), int(at.field("firstkey").n), int(at.field("keystep").n)
	default:
		k.Flags |= command.KeyIncomplete
	}
	return k
}

// foreignHandler is reached only in a transaction on keys of ours; any other such
// command is forwarded or refused before.
func foreignHandler(c *command.Call) {
	c.Err(errForeignOnOwn(c.Spec))
}

// asks tells whether only the upstream can say where a command's keys stand.
func asks(s *command.Spec) bool {
	for i := range s.Keys {
		if s.Keys[i].Flags&command.KeyIncomplete != 0 {
			return true
		}
	}
	return len(s.Keys) == 0 && s.Flags&command.MovableKeys != 0
}

// askOwner asks the upstream for the keys of a command. When it cannot say,
// forwarding the command will tell why.
func (r *router) askOwner(cl *client, c *command.Call) owner {
	args := append([][]byte{[]byte("COMMAND"), []byte("GETKEYS")}, upstreamArgs(c.Spec, c.Args)...)
	call := r.pool.Do(upstream.Request{DB: r.baseDB, Proto: 2, Raw: upstream.AppendCommand(nil, args...), Sticky: uint64(cl.id)})
	defer call.Release()
	frame, err := call.Wait(cl.done)
	if err != nil {
		return ownerUpstream
	}
	keys, err := parseReply(frame)
	if err != nil || keys.kind != '*' {
		return ownerUpstream
	}
	whose := ownerNone
	for i := range keys.elems {
		whose = whose.and(r.ownerOfKey(c.DB(), keys.elems[i].text))
	}
	return whose
}

// foreignRefusal says why a command of the upstream is not forwarded even if its
// keys are there, "" if it is: the connections to the upstream are shared, so
// nothing may block one, or change what it is. Within MULTI nothing blocks.
func foreignRefusal(s *command.Spec, args [][]byte, inMulti bool) string {
	const refused = "ERR command '%s' is not forwarded to the upstream: %s"
	switch {
	case s.Flags&command.PubSub != 0:
		return fmt.Sprintf(refused, s.FullName(), "channels are latchkey's own")
	case s.Flags&command.Blocking != 0 && !inMulti && blocks(s, args):
		return errForwardBlocking
	case s.Flags&(command.Admin|command.NoAuth|command.NoMulti) != 0 || s.Categories&command.CatConnection != 0:
		return fmt.Sprintf(refused, s.FullName(), "it is about the server or the connection; send it there yourself")
	}
	return ""
}

// errForeignOnOwn answers a command of the upstream's on keys of ours.
func errForeignOnOwn(s *command.Spec) string {
	return "ERR command '" + s.FullName() + "' is known to the upstream only, and its keys are latchkey's"
}

const errForwardBlocking = "ERR blocking commands on keys of the upstream are not supported yet"

// blocks tells whether a command that may block does: XREAD and XREADGROUP only
// with BLOCK, which stands before their keys.
func blocks(s *command.Spec, args [][]byte) bool {
	if s.Name != "xread" && s.Name != "xreadgroup" {
		return true
	}
	for i := 1; i < len(args) && !bytes.EqualFold(args[i], []byte("streams")); i++ {
		if bytes.EqualFold(args[i], []byte("block")) {
			return true
		}
	}
	return false
}
