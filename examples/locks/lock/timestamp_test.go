package lock_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/examples/locks/contention"
	"github.com/latchkey-proxy/latchkey/examples/locks/lock"
)

// clock is the wall clock of a timestamp lock, which goes on only when it is told to.
type clock struct{ now time.Time }

func newClock() *clock                { return &clock{time.UnixMilli(1_700_000_000_000)} }
func (c *clock) Now() time.Time       { return c.now }
func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }
func (c *clock) stamp(d time.Duration) string {
	return strconv.FormatInt(c.now.Add(d).UnixMilli(), 10)
}

// Two clients read the time of a dead holder. B takes the lock over, and then A goes on.
func TestTimestampTakeover(t *testing.T) {
	type attempt = func(context.Context) (*lock.TimestampHeld, error)
	for _, test := range []struct {
		name string
		way  func(lock.Timestamp) attempt
		want error // of A
	}{
		{"wrong, DEL and SETNX: both hold it", func(l lock.Timestamp) attempt { return (*lock.WrongTimestamp)(&l).TryAcquire }, nil},
		{"right, GETSET: one holds it", func(l lock.Timestamp) attempt { return l.TryAcquire }, lock.ErrTaken},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, key := client(t)
			clock := newClock()
			must(t, c.Set(t.Context(), key, clock.stamp(-time.Second), 0).Err())
			paused := contention.PauseAt(lock.StepReadExpired)
			a := lock.Timestamp{Client: c, Key: key, Timeout: ttl + 250*time.Millisecond, Now: clock.Now, Hook: paused.Hook}
			b := lock.Timestamp{Client: c, Key: key, Timeout: ttl, Now: clock.Now}

			must(t, paused.Start(t.Context(), func(ctx context.Context) error {
				_, err := test.way(a)(ctx)
				return err
			}))
			held, err := test.way(b)(t.Context())
			must(t, err)
			wantErr(t, paused.Finish(), test.want, "A's TryAcquire, after B took the lock over,")

			// The known flaw, for the right way: A has lost and has yet written its time over B's.
			wantValue(t, c, key, clock.stamp(ttl+250*time.Millisecond+time.Millisecond), "after A's attempt")
			if got := clock.stamp(ttl + time.Millisecond); got != strconv.FormatInt(held.Until().UnixMilli(), 10) {
				t.Errorf("B holds until %v, want %s", held.Until(), got)
			}
		})
	}
}

// GETSET on a key that was released in between creates the lock; who sent it must know that it is the holder.
func TestTimestampReleasedDuringTakeover(t *testing.T) {
	c, key := client(t)
	clock := newClock()
	must(t, c.Set(t.Context(), key, clock.stamp(-time.Second), 0).Err())
	paused := contention.PauseAt(lock.StepReadExpired)
	a := lock.Timestamp{Client: c, Key: key, Timeout: ttl, Now: clock.Now, Hook: paused.Hook}
	b := lock.Timestamp{Client: c, Key: key, Timeout: ttl, Now: clock.Now}
	must(t, paused.Start(t.Context(), func(ctx context.Context) error {
		_, err := a.TryAcquire(ctx)
		return err
	}))
	held, err := b.TryAcquire(t.Context())
	must(t, err)
	must(t, held.Release(t.Context()))
	wantErr(t, paused.Finish(), nil, "A's GETSET on the released key")
	_, err = b.TryAcquire(t.Context())
	wantErr(t, err, lock.ErrTaken, "B's TryAcquire while A holds the lock")
}

func TestTimestampRelease(t *testing.T) {
	c, key := client(t)
	clock := newClock()
	l := lock.Timestamp{Client: c, Key: key, Timeout: ttl, Now: clock.Now}
	held, err := l.TryAcquire(t.Context())
	must(t, err)
	_, err = l.TryAcquire(t.Context())
	wantErr(t, err, lock.ErrTaken, "TryAcquire of a live lock")
	must(t, held.Release(t.Context()))
	wantValue(t, c, key, "", "after Release")

	t.Run("after its time it leaves the next holder's lock alone", func(t *testing.T) {
		held, err := l.TryAcquire(t.Context())
		must(t, err)
		clock.pass(ttl + 2*time.Millisecond)
		_, err = l.TryAcquire(t.Context())
		must(t, err)
		wantErr(t, held.Release(t.Context()), lock.ErrLost, "Release after the lock's time")
		wantValue(t, c, key, clock.stamp(ttl+time.Millisecond), "after the late Release")
		must(t, c.Del(t.Context(), key).Err())
	})

	t.Run("limit: stopped between its clock and DEL it deletes the next holder's lock", func(t *testing.T) {
		paused := contention.PauseAt(lock.StepBeforeDel)
		a := l
		a.Hook = paused.Hook
		held, err := a.TryAcquire(t.Context())
		must(t, err)
		must(t, paused.Start(t.Context(), held.Release))
		clock.pass(ttl + 2*time.Millisecond)
		_, err = l.TryAcquire(t.Context())
		must(t, err)
		must(t, paused.Finish())
		wantValue(t, c, key, "", "after A's late DEL")
	})
}

func TestTimestampForeignValue(t *testing.T) {
	c, key := client(t)
	must(t, c.Set(t.Context(), key, "a token", 0).Err())
	l := lock.Timestamp{Client: c, Key: key, Timeout: ttl}
	if _, err := l.TryAcquire(t.Context()); err == nil || !strings.Contains(err.Error(), "a token") {
		t.Errorf("TryAcquire of a key that holds no time returned %v; want an error that shows its value", err)
	}
	wantValue(t, c, key, "a token", "after TryAcquire")
}
