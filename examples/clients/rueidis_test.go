package clients

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// TestRueidis uses one connection for everything, as rueidis does: commands of all goroutines share a pipeline, and
// messages come between the replies as pushes.
func TestRueidis(t *testing.T) {
	for _, resp2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("AlwaysRESP2=%t", resp2), func(t *testing.T) {
			ctx, name := bounded(t), "lock"
			c, err := rueidis.NewClient(rueidis.ClientOption{
				InitAddress: []string{start(t).Addr}, SelectDB: 4, ClientName: "rueidis",
				DisableCache: resp2, AlwaysRESP2: resp2, DisableRetry: true,
			})
			must(t, err)
			defer c.Close()

			text, err := c.Do(ctx, c.B().Set().Key(name).Value("mine").Nx().Px(time.Minute).Build()).ToString()
			want(t, "SET NX PX of a free lock", text, err, "OK")
			err = c.Do(ctx, c.B().Set().Key(name).Value("mine").Nx().Px(time.Minute).Build()).Error()
			want(t, "SET NX PX of a taken lock answers nil", rueidis.IsRedisNil(err), nil, true)
			release := rueidis.NewLuaScript(unlock)
			n, err := release.Exec(ctx, c, []string{name}, []string{"another's"}).AsInt64()
			want(t, "release of another's lock", n, err, 0)
			n, err = release.Exec(ctx, c, []string{name}, []string{"mine"}).AsInt64()
			want(t, "release of my lock", n, err, 1)

			pipeline := make(rueidis.Commands, 0, 1000)
			for range cap(pipeline) {
				pipeline = append(pipeline, c.B().Incr().Key(name).Build())
			}
			for i, reply := range c.DoMulti(ctx, pipeline...) {
				n, err := reply.AsInt64()
				want(t, "INCR in a pipeline", n, err, int64(i+1))
			}

			// WATCH needs a connection of its own.
			err = c.Dedicated(func(own rueidis.DedicatedClient) error {
				if err := own.Do(ctx, own.B().Watch().Key(name).Build()).Error(); err != nil {
					return err
				}
				if err := c.Do(ctx, c.B().Getset().Key(name).Value("meddled").Build()).Error(); err != nil {
					return err
				}
				replies := own.DoMulti(ctx, own.B().Multi().Build(), own.B().Set().Key(name).Value("mine").Build(), own.B().Exec().Build())
				return replies[2].Error()
			})
			want(t, "EXEC after another's GETSET answers nil", rueidis.IsRedisNil(err), nil, true)

			receive(t, c, name)
		})
	}
}

// receive subscribes, and publishes when the subscription is confirmed.
func receive(t *testing.T, c rueidis.Client, channel string) {
	t.Helper()
	ctx := bounded(t)
	own, release := c.Dedicate()
	defer release()
	subscribed, messages := make(chan struct{}), make(chan string, 1)
	lost := own.SetPubSubHooks(rueidis.PubSubHooks{
		OnSubscription: func(s rueidis.PubSubSubscription) {
			if s.Kind == "subscribe" {
				close(subscribed)
			}
		},
		OnMessage: func(m rueidis.PubSubMessage) { messages <- m.Message },
	})
	must(t, own.Do(ctx, own.B().Subscribe().Channel(channel).Build()).Error())
	select {
	case <-subscribed:
	case err := <-lost:
		t.Fatalf("the subscription ended: %v", err)
	case <-ctx.Done():
		t.Fatal("no confirmation of subscribe")
	}
	n, err := c.Do(ctx, c.B().Publish().Channel(channel).Message("free").Build()).AsInt64()
	want(t, "PUBLISH", n, err, 1)
	select {
	case m := <-messages:
		want(t, "the message", m, nil, "free")
	case err := <-lost:
		t.Fatalf("the subscription ended: %v", err)
	case <-ctx.Done():
		t.Fatal("the message never came")
	}
}

// TestRueidisClientSideCache: with the settings that it comes with, rueidis caches, and serves what it has until the
// server says that it is stale.
func TestRueidisClientSideCache(t *testing.T) {
	ctx, name, addr := bounded(t), "lock", []string{start(t).Addr}
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addr})
	must(t, err)
	defer c.Close()
	other, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addr, DisableCache: true})
	must(t, err)
	defer other.Close()
	for i := range 3 {
		must(t, other.Do(ctx, other.B().Set().Key(name).Value(fmt.Sprint(i)).Build()).Error())
		for { // the invalidation is a message: it may come after the reply to the SET
			must(t, ctx.Err())
			got, err := c.DoCache(ctx, c.B().Get().Key(name).Cache(), time.Minute).ToString()
			must(t, err)
			if got == fmt.Sprint(i) {
				break
			}
		}
	}
}
