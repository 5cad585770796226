package clients

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// goRedis connects with the settings that go-redis comes with, but for those given; without an address, to a server
// of its own.
func goRedis(t *testing.T, o redis.Options) *redis.Client {
	t.Helper()
	if o.Addr == "" {
		o.Addr = start(t).Addr
	}
	c := redis.NewClient(&o)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

// TestGoRedisHandshake: HELLO with everything it can carry, and what go-redis sends in a pipeline behind it.
func TestGoRedisHandshake(t *testing.T) {
	ctx := bounded(t)
	locked := start(t, "--requirepass", "secret")
	for _, test := range []struct {
		name    string
		options redis.Options
		info    string // must be in CLIENT INFO
		err     string // how the error of the first command begins
	}{
		{name: "default", info: "resp=3"},
		{name: "RESP2", options: redis.Options{Protocol: 2}, info: "resp=2"},
		{name: "name and database", options: redis.Options{ClientName: "smoke", DB: 9}, info: "name=smoke"},
		{name: "password", options: redis.Options{Addr: locked.Addr, Password: "secret"}, info: "user=default"},
		{name: "user and password", options: redis.Options{Addr: locked.Addr, Username: "default", Password: "secret", Protocol: 2}, info: "user=default"},
		{name: "wrong password", options: redis.Options{Addr: locked.Addr, Password: "wrong"}, err: "WRONGPASS "},
		{name: "no password", options: redis.Options{Addr: locked.Addr}, err: "NOAUTH "},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := goRedis(t, test.options)
			info, err := c.Do(ctx, "CLIENT", "INFO").Text()
			if test.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.err) {
					t.Errorf("first command: reply %q, error %v, want an error beginning %q", info, err, test.err)
				}
				return
			}
			must(t, err)
			for _, wanted := range []string{test.info, fmt.Sprintf("db=%d", test.options.DB)} {
				if !slices.Contains(strings.Fields(info), wanted) {
					t.Errorf("CLIENT INFO has no %q: %s", wanted, info)
				}
			}
			// Redis 7.0 does not know CLIENT SETINFO, and go-redis lets that pass.
			if program.Latchkey && !strings.Contains(info, " lib-name=go-redis") {
				t.Errorf("CLIENT SETINFO left no trace in CLIENT INFO: %s", info)
			}
		})
	}
}

func TestGoRedisStrings(t *testing.T) {
	ctx, c, lock := bounded(t), goRedis(t, redis.Options{}), "lock"
	got, err := c.SetNX(ctx, lock, "a", time.Minute).Result()
	want(t, "SET NX of a free lock", got, err, true)
	got, err = c.SetNX(ctx, lock, "b", time.Minute).Result()
	want(t, "SET NX of a taken lock", got, err, false)
	ttl, err := c.PTTL(ctx, lock).Result()
	want(t, "PTTL is within the minute", ttl > 0 && ttl <= time.Minute, err, true)

	text, err := c.SetArgs(ctx, lock, "c", redis.SetArgs{Mode: "XX", Get: true, KeepTTL: true}).Result()
	want(t, "SET XX GET KEEPTTL", text, err, "a")
	_, err = c.SetArgs(ctx, lock, "d", redis.SetArgs{Mode: "NX", TTL: time.Minute}).Result()
	wantErr(t, "SET NX PX of a taken lock", err, redis.Nil)
	text, err = c.GetSet(ctx, lock, "e").Result()
	want(t, "GETSET", text, err, "c")
	ttl, err = c.PTTL(ctx, lock).Result()
	want(t, "PTTL after GETSET", ttl, err, -1)
	text, err = c.GetEx(ctx, lock, time.Hour).Result()
	want(t, "GETEX", text, err, "e")
	text, err = c.GetDel(ctx, lock).Result()
	want(t, "GETDEL", text, err, "e")
	_, err = c.Get(ctx, lock).Result()
	wantErr(t, "GET of what is gone", err, redis.Nil)
	_, err = c.GetSet(ctx, lock, "f").Result()
	wantErr(t, "GETSET of what is gone", err, redis.Nil)
	text, err = c.Get(ctx, lock).Result()
	want(t, "GET", text, err, "f")

	binary := string([]byte{0, '\r', '\n', 0xff}) + strings.Repeat("x", 1<<20)
	must(t, c.Set(ctx, "binary", binary, 0).Err())
	text, err = c.Get(ctx, "binary").Result()
	want(t, "a binary value of 1 MB comes back", text == binary, err, true)
}

func TestGoRedisPipelines(t *testing.T) {
	ctx, c, n := bounded(t), goRedis(t, redis.Options{}), "n"
	const many = 10_000
	var last *redis.IntCmd
	replies, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for range many {
			last = p.Incr(ctx, n)
		}
		return nil
	})
	want(t, "replies of the pipeline", len(replies), err, many)
	want(t, "the last INCR", last.Val(), last.Err(), many)

	var before, after *redis.IntCmd
	_, err = c.Pipelined(ctx, func(p redis.Pipeliner) error {
		before = p.Incr(ctx, n)
		p.Do(ctx, "INCRBY", n, "one")
		after = p.Incr(ctx, n)
		return nil
	})
	if err == nil || err.Error() != "ERR value is not an integer or out of range" {
		t.Errorf("pipeline with an error in its middle: error %v", err)
	}
	want(t, "the command before the error", before.Val(), before.Err(), many+1)
	want(t, "the command after the error", after.Val(), after.Err(), many+2)

	var set *redis.StatusCmd
	var get *redis.StringCmd
	replies, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		set, get = p.Set(ctx, n, "1", time.Minute), p.Get(ctx, n)
		return nil
	})
	want(t, "replies of MULTI", len(replies), err, 2)
	want(t, "SET in MULTI", set.Val(), set.Err(), "OK")
	want(t, "GET in MULTI", get.Val(), get.Err(), "1")

	_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, n, "2", 0)
		p.Do(ctx, "NOSUCHCOMMAND")
		return nil
	})
	if err == nil {
		t.Error("MULTI with an unknown command: no error")
	}
	text, err := c.Get(ctx, n).Result()
	want(t, "GET after EXECABORT", text, err, "1")
}

// TestGoRedisWatch: eight clients increase a number by WATCH, GET, SET, and none of their steps is lost.
func TestGoRedisWatch(t *testing.T) {
	ctx, c, n := bounded(t), goRedis(t, redis.Options{}), "n"
	const clients, steps = 8, 25
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for done := 0; done < steps; {
				err := c.Watch(ctx, func(tx *redis.Tx) error {
					v, err := tx.Get(ctx, n).Int()
					if err != nil && !errors.Is(err, redis.Nil) {
						return err
					}
					_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
						return p.Set(ctx, n, v+1, 0).Err()
					})
					return err
				}, n)
				switch {
				case err == nil:
					done++
				case !errors.Is(err, redis.TxFailedErr):
					t.Error("WATCH:", err)
					return
				}
			}
		})
	}
	wg.Wait()
	v, err := c.Get(ctx, n).Int()
	want(t, "the number", v, err, clients*steps)

	// And one that must fail, so that the sum above does not depend on luck.
	err = c.Watch(ctx, func(tx *redis.Tx) error {
		must(t, c.Set(ctx, n, "meddled", 0).Err())
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, n, "mine", 0).Err() })
		return err
	}, n)
	wantErr(t, "EXEC after another's SET", err, redis.TxFailedErr)
}

// TestGoRedisScript: Run sends EVALSHA, and EVAL when the server does not know the script.
func TestGoRedisScript(t *testing.T) {
	ctx, c, lock := bounded(t), goRedis(t, redis.Options{}), "lock"
	release := redis.NewScript(unlock)
	for _, known := range []bool{false, true} {
		exists, err := release.Exists(ctx, c).Result()
		must(t, err)
		want(t, "SCRIPT EXISTS", exists[0], nil, known)
		must(t, c.Set(ctx, lock, "mine", time.Minute).Err())
		n, err := release.Run(ctx, c, []string{lock}, "another's").Int()
		want(t, "release of another's lock", n, err, 0)
		n, err = release.Run(ctx, c, []string{lock}, "mine").Int()
		want(t, "release of my lock", n, err, 1)
	}
	if err := c.EvalSha(ctx, strings.Repeat("0", 40), nil).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("EVALSHA of an unknown script: error %v, want NOSCRIPT", err)
	}
	sha, err := release.Load(ctx, c).Result()
	want(t, "SCRIPT LOAD", sha, err, release.Hash())

	err = redis.NewScript(`return redis.error_reply("BUSY try later")`).Run(ctx, c, nil).Err()
	if err == nil || err.Error() != "BUSY try later" {
		t.Errorf("a script's own error: %v", err)
	}
	values, err := redis.NewScript(`return {1, "two", {3, false}}`).Run(ctx, c, nil).Slice()
	want(t, "a script's table", fmt.Sprint(values), err, "[1 two [3 <nil>]]")
}

func TestGoRedisSubscribe(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			ctx, c, released := bounded(t), goRedis(t, redis.Options{Protocol: protocol}), "released"
			sub := c.Subscribe(ctx, released)
			defer func() { must(t, sub.Close()) }()
			confirmed(t, ctx, sub, "subscribe")
			must(t, sub.PSubscribe(ctx, "re*"))
			confirmed(t, ctx, sub, "psubscribe")
			must(t, sub.Ping(ctx, "still there"))
			pong, err := sub.Receive(ctx)
			want(t, "PING of a subscriber", fmt.Sprint(pong), err, "Pong<still there>")

			n, err := c.Publish(ctx, released, "free").Result()
			want(t, "PUBLISH", n, err, 2)
			for _, pattern := range []string{"", "re*"} {
				m, err := sub.ReceiveMessage(ctx)
				must(t, err)
				if m.Channel != released || m.Pattern != pattern || m.Payload != "free" {
					t.Errorf("got %+v, want free on %s by pattern %q", m, released, pattern)
				}
			}
			must(t, sub.Unsubscribe(ctx))
			confirmed(t, ctx, sub, "unsubscribe")
			n, err = c.Publish(ctx, released, "free").Result()
			want(t, "PUBLISH to the pattern alone", n, err, 1)
		})
	}
}

func confirmed(t *testing.T, ctx context.Context, sub *redis.PubSub, kind string) {
	t.Helper()
	got, err := sub.Receive(ctx)
	must(t, err)
	if s, ok := got.(*redis.Subscription); !ok || s.Kind != kind {
		t.Fatalf("got %v, want the confirmation of %s", got, kind)
	}
}

func TestGoRedisScan(t *testing.T) {
	ctx, c := bounded(t), goRedis(t, redis.Options{})
	const keys = 1000
	_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range keys {
			p.Set(ctx, fmt.Sprintf("key:%d", i), i, time.Minute)
		}
		return nil
	})
	must(t, err)
	seen := map[string]bool{}
	all := c.ScanType(ctx, 0, "key:*", 50, "string").Iterator()
	for all.Next(ctx) {
		seen[all.Val()] = true
	}
	want(t, "keys seen by SCAN", len(seen), all.Err(), keys)
}

// TestGoRedisReconnect: a pool outlives the connections that the server closes, and the server itself; scripts come
// back by themselves.
func TestGoRedisReconnect(t *testing.T) {
	ctx, s := bounded(t), start(t)
	c, other := goRedis(t, redis.Options{Addr: s.Addr}), goRedis(t, redis.Options{Addr: s.Addr})
	lock, release := "lock", redis.NewScript(unlock)
	must(t, c.Set(ctx, lock, "mine", 0).Err())
	must(t, release.Load(ctx, c).Err())

	n, err := other.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Result()
	want(t, "CLIENT KILL", n, err, 1)
	text, err := c.Get(ctx, lock).Result()
	want(t, "GET after CLIENT KILL", text, err, "mine")

	must(t, s.Restart())
	ok, err := c.SetNX(ctx, lock, "mine", time.Minute).Result()
	want(t, "SET NX after a restart", ok, err, true)
	freed, err := release.Run(ctx, c, []string{lock}, "mine").Int()
	want(t, "release by a script which the new server does not know", freed, err, 1)
}
