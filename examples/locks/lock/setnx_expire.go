package lock

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// WrongSetThenExpire is way 2 as it is often written: SETNX, and then, when it created the key, EXPIRE. A
// client that dies between the two leaves a key without an end, and nobody will ever hold the lock again.
type WrongSetThenExpire struct {
	Client redis.UniversalClient
	Key    string
	TTL    time.Duration
	// Repair is the usual mend, and makes it worse: who finds the lock without an end takes the holder for
	// dead, deletes the key and sets its own. The holder may just be slow: then two hold it.
	Repair bool
	Hook   Hook
}

// TryAcquire takes the lock, or returns ErrTaken.
func (w *WrongSetThenExpire) TryAcquire(ctx context.Context) (*Held, error) {
	if err := checkTTL(w.TTL); err != nil {
		return nil, err
	}
	token := newToken()
	created, err := w.setNX(ctx, token)
	if err != nil {
		return nil, err
	}
	if !created && w.Repair {
		created, err = w.repair(ctx, token)
		if err != nil {
			return nil, err
		}
	}
	if !created {
		return nil, ErrTaken
	}
	if err := w.Hook.reach(ctx, StepSet); err != nil {
		return nil, err
	}
	start := time.Now()
	if err := w.Client.PExpire(ctx, w.Key, w.TTL).Err(); err != nil {
		return nil, err
	}
	return newHeld(w.Client, w.Key, token, validUntil(start, w.TTL)), nil
}

func (w *WrongSetThenExpire) repair(ctx context.Context, token string) (bool, error) {
	ttl, err := w.Client.PTTL(ctx, w.Key).Result()
	if err != nil || ttl != -1 { // go-redis passes -1, "no expiry", on as it is
		return false, err
	}
	if err := w.Client.Del(ctx, w.Key).Err(); err != nil {
		return false, err
	}
	return w.setNX(ctx, token)
}

func (w *WrongSetThenExpire) setNX(ctx context.Context, token string) (bool, error) {
	return w.Client.Do(ctx, "SETNX", w.Key, token).Bool()
}

var setThenExpire = redis.NewScript(`
if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then
	return redis.call('pexpire', KEYS[1], ARGV[2])
else
	return 0
end`)

// SetThenExpire is way 2, done right: the same two commands in one script, which happens whole or not at all.
// MULTI and EXEC would not do: EXPIRE would run after a failed SETNX, too, and prolong another's lock. Token
// does the same with one command; this is for code that must stay with SETNX.
type SetThenExpire struct {
	Client redis.UniversalClient
	Key    string
	TTL    time.Duration // at least 1ms
	Hook   Hook          // for demonstrations; nil in applications
}

// TryAcquire takes the lock, or returns ErrTaken. After another error the outcome is unknown; if the lock was
// taken, it ends with its TTL.
func (l *SetThenExpire) TryAcquire(ctx context.Context) (*Held, error) {
	if err := checkTTL(l.TTL); err != nil {
		return nil, err
	}
	if err := l.Hook.reach(ctx, StepNotSet); err != nil {
		return nil, err
	}
	token, start := newToken(), time.Now()
	created, err := setThenExpire.Run(ctx, l.Client, []string{l.Key}, token, l.TTL.Milliseconds()).Bool()
	if err != nil {
		return nil, err
	}
	if !created {
		return nil, ErrTaken
	}
	return newHeld(l.Client, l.Key, token, validUntil(start, l.TTL)), nil
}
