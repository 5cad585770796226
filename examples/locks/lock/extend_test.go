package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-proxy/latchkey/examples/locks/contention"
	"github.com/latchkey-proxy/latchkey/examples/locks/lock"
)

// A is stopped while it extends its lock; its time runs out, B takes the lock, and A goes on.
func TestLateExtend(t *testing.T) {
	for _, test := range []struct {
		name   string
		extend func(ctx context.Context, h *lock.Held, hook lock.Hook) error
		want   error
	}{
		{"wrong: GET, compare, PEXPIRE", func(ctx context.Context, h *lock.Held, hook lock.Hook) error {
			return lock.WrongCompareExtend(ctx, h, 10*ttl, hook)
		}, nil},
		{"right: script", func(ctx context.Context, h *lock.Held, hook lock.Hook) error {
			if err := hook(ctx, lock.StepCompared); err != nil {
				return err
			}
			return h.Extend(ctx, 10*ttl)
		}, lock.ErrLost},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, key := client(t)
			l := lock.Token{Client: c, Key: key, TTL: ttl}
			held, err := l.TryAcquire(t.Context())
			must(t, err)
			paused := contention.PauseAt(lock.StepCompared)
			must(t, paused.Start(t.Context(), func(ctx context.Context) error { return test.extend(ctx, held, paused.Hook) }))
			_, err = contention.Lapse(t.Context(), c, key)
			must(t, err)
			_, err = l.TryAcquire(t.Context())
			must(t, err)
			wantErr(t, paused.Finish(), test.want, "A's extension of B's lock")
			if prolonged := c.PTTL(t.Context(), key).Val() > ttl; prolonged != (test.want == nil) {
				t.Errorf("B's lock was prolonged: %v, want %v", prolonged, test.want == nil)
			}
		})
	}
}

func TestExtend(t *testing.T) {
	c, key := client(t)
	l := lock.Token{Client: c, Key: key, TTL: ttl}
	held, err := l.TryAcquire(t.Context())
	must(t, err)
	before := held.ValidUntil()
	must(t, held.Extend(t.Context(), 10*ttl))
	if left := c.PTTL(t.Context(), key).Val(); left <= ttl || left > 10*ttl {
		t.Errorf("PTTL after Extend is %v, want more than %v and at most %v", left, ttl, 10*ttl)
	}
	if gained := held.ValidUntil().Sub(before); gained < 8*ttl {
		t.Errorf("Extend by nine times the TTL moved ValidUntil by %v only", gained)
	}
	must(t, held.Release(t.Context()))
	valid := held.ValidUntil()
	wantErr(t, held.Extend(t.Context(), ttl), lock.ErrLost, "Extend of a released lock")
	if !held.ValidUntil().Equal(valid) {
		t.Error("a failed Extend has moved ValidUntil")
	}
}

func TestKeepExtends(t *testing.T) {
	c, key := client(t)
	l := lock.Token{Client: c, Key: key, TTL: ttl}
	held, err := l.TryAcquire(t.Context())
	must(t, err)
	working, stop := lock.Keep(bounded(t), held, ttl, time.Millisecond)
	defer stop()
	for extended := 0; extended < 3; extended++ {
		// Most of the time passes; the watchdog must put it back.
		must(t, c.PExpire(t.Context(), key, ttl/2).Err())
		for c.PTTL(t.Context(), key).Val() <= ttl/2 {
			must(t, context.Cause(working))
		}
	}
	stop()
	stop()
	must(t, held.Release(t.Context()))
	wantErr(t, context.Cause(working), context.Canceled, "the cause after stop")
}

func TestKeepNoticesTheLoss(t *testing.T) {
	c, key := client(t)
	l := lock.Token{Client: c, Key: key, TTL: ttl}
	held, err := l.TryAcquire(t.Context())
	must(t, err)
	working, stop := lock.Keep(bounded(t), held, ttl, time.Millisecond)
	defer stop()
	must(t, c.Set(t.Context(), key, "another's", 10*ttl).Err())
	<-working.Done()
	wantErr(t, context.Cause(working), lock.ErrLost, "the cause after the loss")
	stop()
	wantErr(t, held.Release(t.Context()), lock.ErrLost, "Release after the loss")
	wantValue(t, c, key, "another's", "after the loss")
	if left := c.PTTL(t.Context(), key).Val(); left <= 9*ttl {
		t.Errorf("the other's lock has %v left, want about %v: it was touched", left, 10*ttl)
	}
}

// silent is a lock whose server stops answering after some extensions.
type silent struct {
	answers int
	until   time.Time
	hang    bool // instead of failing at once
}

func (s *silent) ValidUntil() time.Time { return s.until }

func (s *silent) Extend(ctx context.Context, ttl time.Duration) error {
	if s.answers--; s.answers >= 0 {
		s.until = time.Now().Add(ttl)
		return nil
	}
	if s.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return errors.New("no route to host")
}

func TestKeepGivesUpWhenTheValidityEnds(t *testing.T) {
	for name, hang := range map[string]bool{"fails": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const ttl, interval = 9 * time.Second, 3 * time.Second
				start := time.Now()
				held := &silent{answers: 2, until: start.Add(ttl), hang: hang}
				working, stop := lock.Keep(t.Context(), held, ttl, interval)
				defer stop()
				<-working.Done()
				wantErr(t, context.Cause(working), lock.ErrLost, "the cause")
				if got, want := time.Since(start), 2*interval+ttl; got != want {
					t.Errorf("the work was stopped after %v, want %v: one TTL after the last answer", got, want)
				}
			})
		})
	}
}

func TestDo(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct {
		name string
		work func(t *testing.T, ctx context.Context, cancel func(), steal func()) error
		want []error
		left string // in the key afterwards
	}{
		{"success", func(*testing.T, context.Context, func(), func()) error { return nil }, nil, ""},
		{"failure", func(*testing.T, context.Context, func(), func()) error { return broken }, []error{broken}, ""},
		{"cancelled: releases nevertheless", func(_ *testing.T, ctx context.Context, cancel, _ func()) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}, []error{context.Canceled}, ""},
		{"lost: reported, and the other's lock left alone", func(_ *testing.T, _ context.Context, _, steal func()) error {
			steal()
			return nil
		}, []error{lock.ErrLost}, "another's"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, key := client(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l := lock.Token{Client: c, Key: key, TTL: ttl}
			err := l.Do(ctx, func(ctx context.Context) error {
				other := lock.Token{Client: c, Key: key, TTL: ttl}
				_, err := other.TryAcquire(t.Context())
				wantErr(t, err, lock.ErrTaken, "another's TryAcquire during the work")
				return test.work(t, ctx, cancel, func() { must(t, c.Set(t.Context(), key, "another's", 0).Err()) })
			})
			if len(test.want) == 0 {
				must(t, err)
			}
			for _, want := range test.want {
				wantErr(t, err, want, "Do")
			}
			wantValue(t, c, key, test.left, "after Do")
		})
	}

	t.Run("panic: releases on the way", func(t *testing.T) {
		c, key := client(t)
		l := lock.Token{Client: c, Key: key, TTL: ttl}
		func() {
			defer func() {
				if got := recover(); got != broken {
					t.Errorf("recovered %v, want the panic of the work", got)
				}
			}()
			_ = l.Do(t.Context(), func(context.Context) error { panic(broken) })
		}()
		wantValue(t, c, key, "", "after the panic")
	})
}
