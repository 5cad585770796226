package clients

import (
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

func TestRedislock(t *testing.T) {
	ctx, c, name := bounded(t), goRedis(t, redis.Options{}), "lock"
	locker := redislock.New(c)
	lock, err := locker.Obtain(ctx, name, time.Minute, &redislock.Options{Metadata: "worker 7"})
	must(t, err)
	want(t, "metadata", lock.Metadata(), nil, "worker 7")
	_, err = locker.Obtain(ctx, name, time.Minute, nil)
	wantErr(t, "Obtain of a taken lock", err, redislock.ErrNotObtained)
	ttl, err := lock.TTL(ctx)
	want(t, "TTL is within the minute", ttl > 0 && ttl <= time.Minute, err, true)
	must(t, lock.Refresh(ctx, time.Hour, nil))
	ttl, err = lock.TTL(ctx)
	want(t, "TTL after Refresh is above the minute", ttl > time.Minute, err, true)

	// Who waits gets it when the holder lets go.
	type outcome struct {
		lock *redislock.Lock
		err  error
	}
	waiter := make(chan outcome, 1)
	go func() {
		l, err := locker.Obtain(ctx, name, time.Minute, &redislock.Options{RetryStrategy: redislock.LinearBackoff(time.Millisecond)})
		waiter <- outcome{l, err}
	}()
	must(t, lock.Release(ctx))
	wantErr(t, "Release once more", lock.Release(ctx), redislock.ErrLockNotHeld)
	got := <-waiter
	must(t, got.err)
	wantErr(t, "Refresh of what another holds", lock.Refresh(ctx, time.Hour, nil), redislock.ErrNotObtained)
	must(t, got.lock.Release(ctx))
}
