package lock

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// compare is GET and the comparison with the own token: ErrLost if the key holds another, or none. What is done
// next is done later: hook stands in between.
func (h *Held) compare(ctx context.Context, client redis.Cmdable, hook Hook) error {
	value, err := client.Get(ctx, h.key).Result()
	if errors.Is(err, redis.Nil) || err == nil && value != h.token {
		return ErrLost
	}
	if err != nil {
		return err
	}
	return hook.reach(ctx, StepCompared)
}

// WrongCompareRelease is way 4 as it is often written: GET, compare with the own token, DEL. When the lock ends
// between GET and DEL and another takes it, DEL deletes the other's.
func WrongCompareRelease(ctx context.Context, h *Held, hook Hook) error {
	if err := h.compare(ctx, h.client, hook); err != nil {
		return err
	}
	return h.client.Del(ctx, h.key).Err()
}

// WatchRelease is way 4, done right without a script: WATCH before GET makes the server refuse the DEL of
// MULTI, DEL, EXEC when the key has changed or ended since. Five commands in four trips instead of one; for
// servers and proxies without scripts. The key is not touched when ErrLost is returned.
func WatchRelease(ctx context.Context, h *Held, hook Hook) error {
	err := h.client.Watch(ctx, func(tx *redis.Tx) error {
		if err := h.compare(ctx, tx, hook); err != nil {
			return err
		}
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			return p.Del(ctx, h.key).Err()
		})
		return err
	}, h.key)
	if errors.Is(err, redis.TxFailedErr) {
		return ErrLost
	}
	return err
}
