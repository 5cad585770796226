package lock_test

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-proxy/latchkey/examples/locks/contention"
	"github.com/latchkey-proxy/latchkey/examples/locks/internal/demo"
	"github.com/latchkey-proxy/latchkey/examples/locks/lock"
)

func TestWrongSetThenExpireDyingInBetweenLocksForEver(t *testing.T) {
	c, key := client(t)
	dying := lock.WrongSetThenExpire{Client: c, Key: key, TTL: ttl, Hook: contention.DieAt(lock.StepSet)}
	_, err := dying.TryAcquire(t.Context())
	wantErr(t, err, contention.ErrDied, "TryAcquire of a client that dies after SETNX")
	gone, err := contention.Lapse(t.Context(), c, key)
	must(t, err)
	if gone {
		t.Error("the lock has ended; without an expiry it must stay")
	}
	next := lock.WrongSetThenExpire{Client: c, Key: key, TTL: ttl}
	_, err = next.TryAcquire(t.Context())
	wantErr(t, err, lock.ErrTaken, "the next TryAcquire")
}

func TestWrongRepairTakesASlowClientForADeadOne(t *testing.T) {
	c, key := client(t)
	paused := contention.PauseAt(lock.StepSet)
	a := lock.WrongSetThenExpire{Client: c, Key: key, TTL: ttl, Repair: true, Hook: paused.Hook}
	b := lock.WrongSetThenExpire{Client: c, Key: key, TTL: ttl, Repair: true}
	must(t, paused.Start(t.Context(), func(ctx context.Context) error {
		_, err := a.TryAcquire(ctx)
		return err
	}))
	_, err := b.TryAcquire(t.Context())
	must(t, err)
	wantErr(t, paused.Finish(), nil, "A's TryAcquire, though B holds the lock,")
}

func TestSetThenExpire(t *testing.T) {
	c, key := client(t)
	dying := lock.SetThenExpire{Client: c, Key: key, TTL: ttl, Hook: contention.DieAt(lock.StepNotSet)}
	_, err := dying.TryAcquire(t.Context())
	wantErr(t, err, contention.ErrDied, "TryAcquire of a client that dies before the script")
	l := lock.SetThenExpire{Client: c, Key: key, TTL: ttl}
	held, err := l.TryAcquire(t.Context())
	must(t, err)
	wantValue(t, c, key, held.Token(), "while held")
	if left := c.PTTL(t.Context(), key).Val(); left <= 0 || left > ttl {
		t.Errorf("PTTL is %v, want more than 0 and at most %v", left, ttl)
	}
	_, err = l.TryAcquire(t.Context())
	wantErr(t, err, lock.ErrTaken, "TryAcquire of a held lock")
	must(t, held.Release(t.Context()))
	wantValue(t, c, key, "", "after Release")
}

func TestToken(t *testing.T) {
	c, key := client(t)
	l := lock.Token{Client: c, Key: key, TTL: ttl}
	before := time.Now()
	held, err := l.TryAcquire(t.Context())
	must(t, err)
	wantValue(t, c, key, held.Token(), "while held")
	if left := c.PTTL(t.Context(), key).Val(); left <= 0 || left > ttl {
		t.Errorf("PTTL is %v, want more than 0 and at most %v", left, ttl)
	}
	if end := before.Add(ttl); !held.ValidUntil().Before(time.Now().Add(ttl)) || held.ValidUntil().Before(end.Add(-ttl/50)) {
		t.Errorf("valid until %v, want a little before %v, the earliest end of the lock", held.ValidUntil(), end)
	}
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(held.Token()) {
		t.Errorf("the token is %q, want 32 hex digits", held.Token())
	}
	_, err = l.TryAcquire(t.Context())
	wantErr(t, err, lock.ErrTaken, "TryAcquire of a held lock")
	must(t, held.Release(t.Context()))
	wantValue(t, c, key, "", "after Release")
	wantErr(t, held.Release(t.Context()), lock.ErrLost, "a second Release")
	again, err := l.TryAcquire(t.Context())
	must(t, err)
	if again.Token() == held.Token() {
		t.Error("two attempts have the same token")
	}
}

func TestTTLBelowTheServersResolution(t *testing.T) {
	c, key := client(t)
	l := lock.Token{Client: c, Key: key, TTL: time.Microsecond}
	if _, err := l.TryAcquire(t.Context()); err == nil || errors.Is(err, lock.ErrTaken) {
		t.Errorf("TryAcquire with a TTL of 1µs returned %v, want an error that names the TTL", err)
	}
}

// lostReply is a network that loses the reply to the first SET.
type lostReply struct{ lost bool }

var errReplyLost = errors.New("the reply was lost")

func (l *lostReply) DialHook(next redis.DialHook) redis.DialHook { return next }
func (l *lostReply) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *lostReply) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "set" && !l.lost {
			l.lost = true
			return errReplyLost
		}
		return err
	}
}

func TestTokenReleasesWhatItMayHaveTaken(t *testing.T) {
	c, key := client(t)
	unlucky := demo.Dial(servers.Addrs[0])
	defer unlucky.Close()
	unlucky.AddHook(&lostReply{})
	l := lock.Token{Client: unlucky, Key: key, TTL: ttl}
	_, err := l.TryAcquire(t.Context())
	wantErr(t, err, errReplyLost, "TryAcquire whose reply was lost")
	wantValue(t, c, key, "", "after TryAcquire whose reply was lost")
}

func TestWaitEndsWithItsContext(t *testing.T) {
	c, key := client(t)
	l := lock.Token{Client: c, Key: key, TTL: ttl}
	_, err := l.TryAcquire(t.Context())
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	_, err = lock.Wait(ctx, time.Millisecond, func(ctx context.Context) (*lock.Held, error) {
		if tries++; tries == 3 {
			defer cancel() // while Wait is about to pause
		}
		return l.TryAcquire(ctx)
	})
	wantErr(t, err, lock.ErrTaken, "Wait that was cancelled")
	wantErr(t, err, context.Canceled, "Wait that was cancelled")
	if tries != 3 {
		t.Errorf("tried %d times, want 3", tries)
	}
}

// A is stopped while it lets go (or wants to); its time runs out, B takes the lock, and A goes on.
func TestLateRelease(t *testing.T) {
	compared := func(release func(context.Context, *lock.Held, lock.Hook) error) func(*contention.Paused) func(context.Context, *lock.Held) error {
		return func(p *contention.Paused) func(context.Context, *lock.Held) error {
			return func(ctx context.Context, h *lock.Held) error { return release(ctx, h, p.Hook) }
		}
	}
	before := func(release func(context.Context, *lock.Held) error) func(*contention.Paused) func(context.Context, *lock.Held) error {
		return func(p *contention.Paused) func(context.Context, *lock.Held) error {
			return func(ctx context.Context, h *lock.Held) error {
				if err := p.Hook(ctx, lock.StepCompared); err != nil {
					return err
				}
				return release(ctx, h)
			}
		}
	}
	script := func(ctx context.Context, h *lock.Held) error { return h.Release(ctx) }
	for _, test := range []struct {
		name    string
		release func(*contention.Paused) func(context.Context, *lock.Held) error
		want    error // of A's release
		deletes bool  // B's lock
	}{
		{"wrong: GET, compare, DEL", compared(lock.WrongCompareRelease), nil, true},
		{"right: WATCH", compared(lock.WatchRelease), lock.ErrLost, false},
		{"wrong: MULTI, GET, DEL, EXEC", before(lock.WrongTransactionRelease), lock.ErrLost, true},
		{"right: script", before(script), lock.ErrLost, false},
	} {
		for _, overtaken := range []bool{true, false} {
			name := test.name + ", another holds it"
			if !overtaken {
				name = test.name + ", nobody holds it"
			}
			t.Run(name, func(t *testing.T) {
				c, key := client(t)
				l := lock.Token{Client: c, Key: key, TTL: ttl}
				held, err := l.TryAcquire(t.Context())
				must(t, err)
				paused := contention.PauseAt(lock.StepCompared)
				release := test.release(paused)
				must(t, paused.Start(t.Context(), func(ctx context.Context) error { return release(ctx, held) }))
				_, err = contention.Lapse(t.Context(), c, key)
				must(t, err)
				want := ""
				if overtaken {
					b, err := l.TryAcquire(t.Context())
					must(t, err)
					if !test.deletes {
						want = b.Token()
					}
				}
				wantErr(t, paused.Finish(), test.want, "A's release")
				wantValue(t, c, key, want, "after A's late release")
			})
		}
	}
}

func TestReleaseOfAHeldLock(t *testing.T) {
	for name, release := range map[string]func(context.Context, *lock.Held) error{
		"script": func(ctx context.Context, h *lock.Held) error { return h.Release(ctx) },
		"WATCH":  func(ctx context.Context, h *lock.Held) error { return lock.WatchRelease(ctx, h, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			c, key := client(t)
			l := lock.Token{Client: c, Key: key, TTL: ttl}
			held, err := l.TryAcquire(t.Context())
			must(t, err)
			must(t, c.ScriptFlush(t.Context()).Err()) // a server that was restarted: NOSCRIPT, then EVAL
			must(t, release(t.Context(), held))
			wantValue(t, c, key, "", "after the release")
		})
	}
}

func TestWrongNoTokenDeletesTheNextHoldersLock(t *testing.T) {
	c, key := client(t)
	l := lock.WrongNoToken{Client: c, Key: key, TTL: ttl}
	must(t, l.TryAcquire(t.Context()))
	_, err := contention.Lapse(t.Context(), c, key)
	must(t, err)
	must(t, l.TryAcquire(t.Context())) // the next holder
	must(t, l.Release(t.Context()))    // the first one, late
	wantErr(t, l.TryAcquire(t.Context()), nil, "a third TryAcquire, though the second holds the lock,")
}
