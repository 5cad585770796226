package lock

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

var releaseScript = redis.NewScript(`
if redis.call('get', KEYS[1]) == ARGV[1] then
	return redis.call('del', KEYS[1])
else
	return 0
end`)

// Release is way 5, done right: comparing and deleting are one script, so nothing comes in between. It sends
// EVALSHA, and EVAL when the server answers NOSCRIPT because it was restarted or has never seen the script.
// ErrLost means that the lock was no longer ours, and that the key, perhaps another's by now, was left alone.
// After another error the outcome is unknown, and Release may be called again.
func (h *Held) Release(ctx context.Context) error {
	deleted, err := releaseScript.Run(ctx, h.client, []string{h.key}, h.token).Bool()
	if err == nil && !deleted {
		return ErrLost
	}
	return err
}

// WrongTransactionRelease is what looks like way 5 to those who read that MULTI is atomic: it is, but DEL does
// not depend on what GET returned. The comparison comes after EXEC, and tells whose lock was deleted.
func WrongTransactionRelease(ctx context.Context, h *Held) error {
	var get *redis.StringCmd
	_, err := h.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		get = p.Get(ctx, h.key)
		p.Del(ctx, h.key)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	if get.Val() != h.token {
		return ErrLost
	}
	return nil
}
