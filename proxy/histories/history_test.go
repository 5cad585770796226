package histories

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/latchkey-proxy/latchkey/store/command"
	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// kind is what an operation does to the lock.
type kind uint8

const (
	opSetNX     kind = iota // SETNX: 1 or 0
	opGet                   // GET: value
	opGetSet                // GETSET: old value; the expiry goes
	opDel                   // DEL: 1 or 0
	opSetNXPX               // SET NX PX: OK or (nil)
	opSetNXGet              // SET NX GET PX: (nil) or the value that is there
	opReleaseIf             // compare and delete: 1 or 0, or by script: 1 or the value
	opAcquire               // by script, until a time: 1 or the value that is there
	opPoison                // by script that writes and fails: an error
	opIncr                  // by script: the new number
	opAdvance               // of the clock, by the test itself
)

var kindNames = [...]string{"SETNX", "GET", "GETSET", "DEL", "SET NX PX", "SET NX GET PX", "compare and delete", "acquire by script", "failing script", "increment by script", "clock forward"}

// operation is one operation on the one register of a history.
type operation struct {
	kind  kind
	token string
	ms    int64 // TTL, Unix time or step, as the kind has it
}

// tellsValue in the ms of opReleaseIf: when refused it answers the value.
const tellsValue = 1

const (
	none    = "(nil)"
	unknown = "(unknown)" // the connection broke before the reply
	undone  = "(undone)"  // the server says that nothing was done
)

// register is what the server should be: one string with an expiry, and a
// clock. Its operations happen at one instant each.
type register struct {
	value  string
	exists bool
	at     int64 // Unix ms, 0: never
	now    int64
}

func (s register) with(value string, at int64) register {
	s.value, s.exists, s.at = value, true, at
	if at != 0 && at <= s.now {
		return s.without()
	}
	return s
}

func (s register) without() register { return register{now: s.now} }

// step runs an operation and says what must be answered.
func (s register) step(o operation) (register, string) {
	if s.exists && s.at != 0 && s.at <= s.now {
		s = s.without()
	}
	old := none
	if s.exists {
		old = s.value
	}
	switch o.kind {
	case opSetNX:
		if s.exists {
			return s, "0"
		}
		return s.with(o.token, 0), "1"
	case opGet:
		return s, old
	case opGetSet:
		return s.with(o.token, 0), old
	case opDel:
		if !s.exists {
			return s, "0"
		}
		return s.without(), "1"
	case opSetNXPX:
		if s.exists {
			return s, none
		}
		return s.with(o.token, s.now+o.ms), "OK"
	case opSetNXGet:
		if s.exists {
			return s, old
		}
		return s.with(o.token, s.now+o.ms), none
	case opReleaseIf:
		switch {
		case s.exists && s.value == o.token:
			return s.without(), "1"
		case o.ms == tellsValue:
			return s, old
		}
		return s, "0"
	case opAcquire:
		if s.exists {
			return s, old
		}
		return s.with(o.token, o.ms), "1"
	case opPoison:
		return s, undone
	case opIncr:
		n, _ := strconv.ParseInt(s.value, 10, 64)
		next := strconv.FormatInt(n+1, 10)
		return s.with(next, s.at), next
	case opAdvance:
		s.now += o.ms
		return s, "OK"
	}
	panic("histories: operation without a meaning")
}

// model is the register for porcupine, with the clock at now in the beginning.
func model(now int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return register{now: now} },
		Step: func(state, input, output any) (bool, any) {
			s, o := state.(register), input.(operation)
			next, want := s.step(o)
			switch output.(string) {
			case undone:
				return true, s
			case unknown:
				// Nobody knows when it was done, if ever: its end is never, and
				// done after everything else is as good as not done.
				return true, next
			}
			return output.(string) == want, next
		},
		DescribeOperation: func(input, output any) string {
			o := input.(operation)
			return fmt.Sprintf("%s %s %d: %s", kindNames[o.kind], o.token, o.ms, output)
		},
		DescribeState: func(state any) string {
			s := state.(register)
			if !s.exists {
				return fmt.Sprintf("free, now %d", s.now)
			}
			return fmt.Sprintf("%s until %d, now %d", s.value, s.at, s.now)
		},
	}
}

// recorder writes down the operations of one process. A process does one thing
// at a time; when its connection breaks, another takes its place.
type recorder struct {
	process int
	ops     []porcupine.Operation
}

// never is when an operation ends whose reply nobody has seen.
const never = math.MaxInt64

var born = time.Now()

func instant() int64 { return int64(time.Since(born)) }

func (r *recorder) call(o operation, do func() string) string {
	begin := instant()
	out := do()
	end := instant()
	if out == unknown {
		end = never
	}
	r.ops = append(r.ops, porcupine.Operation{ClientId: r.process, Input: o, Output: out, Call: begin, Return: end})
	return out
}

// outcome is what a history says of a reply.
func outcome(r transcript.Reply, err error) (string, error) {
	if err != nil {
		var op *net.OpError
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.As(err, &op) && !op.Timeout() {
			return unknown, nil
		}
		return unknown, err
	}
	if r.Kind == transcript.Error {
		if r.Text == command.ErrMisconf || isPoison(r.Text) {
			return undone, nil
		}
		return "", fmt.Errorf("the server answered -%s", r.Text)
	}
	return textOf(r), nil
}

// decideWithin is how long porcupine may take over one history.
const decideWithin = 10 * time.Second

// judge fails the test if no order of the operations that agrees with their
// beginnings and ends could have come out of one register.
func judge(t testing.TB, m porcupine.Model, ops []porcupine.Operation) {
	t.Helper()
	whole := ops
	ops = sharpen(whole)
	for _, o := range ops {
		if o.Call > o.Return {
			t.Fatalf("a history of %d operations is not linearizable: %s would have to come both before and after others that saw its token or its end", len(whole), m.DescribeOperation(o.Input, o.Output))
		}
	}
	if text := contradiction(m, ops); text != "" {
		verdict := porcupine.CheckOperationsTimeout(m, ops, decideWithin/5)
		t.Fatalf("a history of %d operations is not linearizable: %s (porcupine: %s)", len(whole), text, verdict)
	}
	narrowed, hopeless := arrange(m, ops)
	if narrowed != nil {
		ops = narrowed
	}
	verdict, picture := porcupine.CheckOperationsVerbose(m, ops, decideWithin)
	switch {
	case verdict == porcupine.Ok:
		return
	case verdict == porcupine.Unknown && !hopeless:
		t.Fatalf("a history of %d operations could not be decided within %v and %d places; make it shorter", len(whole), decideWithin, patience)
	}
	path := filepath.Join(t.ArtifactDir(), "history.html")
	if err := porcupine.VisualizePath(m, picture, path); err != nil {
		t.Logf("draw the history: %v", err)
	}
	t.Fatalf("a history of %d operations is not linearizable: no single lock could have answered like this (porcupine: %s; a search of all orders found none: %t; run with -artifacts to keep its picture, %s)", len(whole), verdict, hopeless, path)
}
