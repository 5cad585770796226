package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/latchkey-proxy/latchkey/proxy/resp"
)

// Subscriber listens to channels of the upstream over a connection of its own, which it makes for
// the first channel and makes again, with all subscriptions, when it is lost. Messages published
// upstream meanwhile are lost, as they are for any client of Redis that reconnects.
//
// Its methods may be called by any goroutine, but not from the callback.
type Subscriber struct {
	pool      *Pool
	onMessage func(channel, pattern, payload []byte)
	ctx       context.Context
	stop      context.CancelFunc
	wake      chan struct{} // holds one element when out or the sets have grown
	ended     chan struct{}

	mu       sync.Mutex
	channels map[string]struct{}
	patterns map[string]struct{}
	wire     *wire  // nil: not connected
	out      []byte // commands to be written
	// barriers are who waits for the PONGs to come, in order. Upstream answers in order, so a
	// PONG says that the SUBSCRIBE before its PING is in force. The unconnected wait here too.
	barriers []*barrier
	refusal  error // the error reply since the last PONG
}

type barrier struct {
	done chan error // nil: a heartbeat
}

// NewSubscriber makes a Subscriber, which connects to the URL's database when it is given channels.
// onMessage is called for every message, by one goroutine, which reads no further until it
// returns; pattern is nil for a message of a channel subscription. The slices are valid during the
// call only. Close it before or with the pool.
func (p *Pool) NewSubscriber(onMessage func(channel, pattern, payload []byte)) (*Subscriber, error) {
	s := &Subscriber{
		pool:      p,
		onMessage: onMessage,
		wake:      make(chan struct{}, 1),
		ended:     make(chan struct{}),
		channels:  map[string]struct{}{},
		patterns:  map[string]struct{}{},
	}
	s.ctx, s.stop = context.WithCancel(p.ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		s.stop()
		return nil, p.errClosed
	}
	p.running.Go(s.run)
	return s, nil
}

// Close ends the connection, drops all subscriptions and waits for the goroutines, so for a
// callback that is running.
func (s *Subscriber) Close() {
	s.stop()
	<-s.ended
}

// Subscribe adds channels and waits until the upstream has confirmed them, so that a message
// published after it returns is heard. An error reply of the upstream (NOPERM ...) is returned, and
// none of the channels is kept. After an [*Error] or ErrCanceled (cancel was closed; nil: never) the channels are
// kept and will be subscribed when the upstream is back.
func (s *Subscriber) Subscribe(cancel <-chan struct{}, channels ...string) error {
	return s.add(cancel, s.channels, "SUBSCRIBE", channels)
}

// Psubscribe is Subscribe for patterns.
func (s *Subscriber) Psubscribe(cancel <-chan struct{}, patterns ...string) error {
	return s.add(cancel, s.patterns, "PSUBSCRIBE", patterns)
}

// Unsubscribe drops channels; unknown ones are ignored. It does not wait: messages under way may
// still come.
func (s *Subscriber) Unsubscribe(channels ...string) {
	s.drop(s.channels, "UNSUBSCRIBE", channels)
}

// Punsubscribe is Unsubscribe for patterns.
func (s *Subscriber) Punsubscribe(patterns ...string) {
	s.drop(s.patterns, "PUNSUBSCRIBE", patterns)
}

func (s *Subscriber) add(cancel <-chan struct{}, set map[string]struct{}, command string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return s.pool.errClosed
	}
	for _, name := range names {
		set[name] = struct{}{}
	}
	if s.wire == nil {
		if down := s.pool.gate.down.Load(); down != nil {
			s.mu.Unlock()
			s.signal()
			return down
		}
	} else {
		if len(s.out) > s.pool.opt.QueueBytes {
			s.mu.Unlock()
			return newError(ErrBusy, nil, fmt.Sprintf("UPSTREAMBUSY %d bytes already wait to be sent to upstream %s", len(s.out), s.pool.target.Address))
		}
		s.out = AppendCommand(s.out, append([]string{command}, names...)...)
		s.out = AppendCommand(s.out, "PING")
	}
	b := &barrier{done: make(chan error, 1)}
	s.barriers = append(s.barriers, b)
	s.mu.Unlock()
	s.signal()
	select {
	case err := <-b.done:
		var failure *Error
		if err != nil && !errors.As(err, &failure) {
			s.drop(set, "UN"+command, names)
		}
		return err
	case <-cancel:
		return ErrCanceled
	}
}

func (s *Subscriber) drop(set map[string]struct{}, command string, names []string) {
	s.mu.Lock()
	known := []string{command}
	for _, name := range names {
		if _, ok := set[name]; ok {
			delete(set, name)
			known = append(known, name)
		}
	}
	if len(known) > 1 && s.wire != nil {
		s.out = AppendCommand(s.out, known...)
	}
	s.mu.Unlock()
	s.signal()
}

func (s *Subscriber) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Subscriber) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.channels)+len(s.patterns) == 0
}

// run connects when there is something to listen to, and again after a loss.
func (s *Subscriber) run() {
	defer close(s.ended)
	defer s.fail(s.pool.errClosed)
	made := false
	for s.ctx.Err() == nil {
		if s.idle() {
			select {
			case <-s.wake:
			case <-s.ctx.Done():
			}
			continue
		}
		w, err := s.pool.open(s.pool.target.DB, 2)
		if err == nil {
			if made {
				s.pool.reconnects.Add(1)
			}
			made = true
			s.serve(w)
			continue
		}
		s.fail(err)
		if err.only {
			s.sleep(s.pool.opt.BackoffMax)
			continue
		}
		select {
		case <-s.pool.gate.whenUp():
		case <-s.ctx.Done():
		}
	}
}

func (s *Subscriber) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ctx.Done():
	}
}

// fail ends all waits for a confirmation.
func (s *Subscriber) fail(err *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.barriers {
		if b.done != nil {
			b.done <- err
		}
	}
	s.barriers, s.refusal = nil, nil
}

// serve subscribes to everything wanted and writes what comes after, until the connection is lost.
func (s *Subscriber) serve(w *wire) {
	s.greet(w)
	readerDone := make(chan struct{})
	s.pool.running.Go(func() {
		defer close(readerDone)
		s.read(w)
	})
	s.write(w)
	w.lose(ErrClosed) // unless it has another reason
	<-readerDone

	cause := w.reason()
	address := s.pool.target.Address
	failure := unreachable(address, cause)
	if s.ctx.Err() == nil {
		s.pool.opt.Logger.Warn("upstream subscription connection lost", "address", address, "error", reason(cause))
		if time.Since(w.born) < youngLoss {
			s.pool.gate.fail(failure)
		}
	}
	s.mu.Lock()
	s.wire, s.out = nil, nil
	s.mu.Unlock()
	s.fail(failure)
}

// greet queues the subscriptions, and a PING for each barrier that waited for the connection.
func (s *Subscriber) greet(w *wire) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wire = w
	s.out = s.out[:0]
	s.resubscribe("SUBSCRIBE", s.channels)
	s.resubscribe("PSUBSCRIBE", s.patterns)
	if len(s.barriers) == 0 {
		s.barriers = append(s.barriers, &barrier{}) // who logs a refusal
	}
	for range s.barriers {
		s.out = AppendCommand(s.out, "PING")
	}
	s.signal()
}

// resubscribe queues one command for each name: one name refused does not refuse the others.
func (s *Subscriber) resubscribe(command string, set map[string]struct{}) {
	for name := range set {
		s.out = AppendCommand(s.out, command, name)
	}
}

// write sends what is queued, and a PING when the connection was silent for half the reply
// timeout; when nothing comes then either, it is lost.
func (s *Subscriber) write(w *wire) {
	timeout := s.pool.opt.ReplyTimeout
	beat := time.NewTicker(timeout / 2)
	defer beat.Stop()
	var seen uint64
	var out []byte
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-w.gone:
			return
		case <-s.wake:
		case <-beat.C:
			moved := w.moved.Load()
			s.mu.Lock()
			if moved == seen && len(s.barriers) > 0 {
				s.mu.Unlock()
				w.lose(fmt.Errorf("no answer to PING within %v", timeout/2))
				return
			}
			if moved == seen {
				s.barriers = append(s.barriers, &barrier{})
				s.out = AppendCommand(s.out, "PING")
			}
			s.mu.Unlock()
			seen = moved
		}
		s.mu.Lock()
		out, s.out = s.out, out[:0]
		s.mu.Unlock()
		if len(out) == 0 {
			continue
		}
		if err := w.conn.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
			w.lose(err)
			return
		}
		if _, err := w.send(out); err != nil {
			w.lose(err)
			return
		}
		if cap(out) > keptBuffer {
			out = nil
		}
	}
}

// read hands out messages and confirmations until the connection is lost.
func (s *Subscriber) read(w *wire) {
	var parts [4][]byte
	for {
		frame, err := w.frames.Next()
		if err != nil {
			w.lose(err)
			return
		}
		if !s.take(frame, parts[:0]) {
			w.lose(errProtocol)
			return
		}
	}
}

// take deals with one frame of a RESP2 connection that subscribes.
func (s *Subscriber) take(frame resp.Frame, parts [][]byte) bool {
	switch frame.Type {
	case '-':
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refusal = errors.New(oneLine(string(frame.ErrorText())))
		return true
	case '+': // PONG of a connection without subscriptions
		return s.pong()
	}
	parts, ok := flatArray(frame.Raw, parts)
	if !ok || len(parts) == 0 {
		return false
	}
	switch kind := string(parts[0]); {
	case kind == "message" && len(parts) == 3:
		s.onMessage(parts[1], nil, parts[2])
	case kind == "pmessage" && len(parts) == 4:
		s.onMessage(parts[2], parts[1], parts[3])
	case kind == "pong":
		return s.pong()
	case len(parts) != 3:
		return false
	}
	return true // the rest are confirmations, which the PONG after them sums up
}

// pong ends the oldest wait.
func (s *Subscriber) pong() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.barriers) == 0 {
		return false
	}
	b := s.barriers[0]
	s.barriers = s.barriers[1:]
	err := s.refusal
	s.refusal = nil
	if b.done != nil {
		b.done <- err
	} else if err != nil {
		s.pool.opt.Logger.Warn("upstream refuses a subscription", "address", s.pool.target.Address, "error", err.Error())
	}
	return true
}
