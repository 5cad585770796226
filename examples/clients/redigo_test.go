package clients

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

func TestRedigo(t *testing.T) {
	ctx, name := bounded(t), "lock"
	addr := start(t).Addr
	pool := &redis.Pool{MaxIdle: 2, Dial: func() (redis.Conn, error) {
		return redis.Dial("tcp", addr, redis.DialDatabase(3), redis.DialReadTimeout(20*time.Second), redis.DialClientName("redigo"))
	}}
	defer func() { must(t, pool.Close()) }()
	c, err := pool.GetContext(ctx)
	must(t, err)
	defer func() { must(t, c.Close()) }()

	text, err := redis.String(c.Do("SET", name, "mine", "NX", "PX", 60_000))
	want(t, "SET NX PX of a free lock", text, err, "OK")
	_, err = redis.String(c.Do("SET", name, "mine", "NX", "PX", 60_000))
	wantErr(t, "SET NX PX of a taken lock", err, redis.ErrNil)
	release := redis.NewScript(1, unlock)
	n, err := redis.Int(release.Do(c, name, "another's"))
	want(t, "release of another's lock", n, err, 0)
	n, err = redis.Int(release.Do(c, name, "mine"))
	want(t, "release of my lock", n, err, 1)

	// A pipeline, a transaction inside it, and an error that leaves the connection usable.
	must(t, c.Send("MULTI"))
	must(t, c.Send("SETNX", name, "1"))
	must(t, c.Send("INCR", name))
	replies, err := redis.Ints(c.Do("EXEC"))
	must(t, err)
	if len(replies) != 2 || replies[0] != 1 || replies[1] != 2 {
		t.Errorf("EXEC: got %v, want [1 2]", replies)
	}
	if _, err = c.Do("GET"); err == nil || err.Error() != "ERR wrong number of arguments for 'get' command" {
		t.Errorf("GET without a key: error %v", err)
	}
	text, err = redis.String(c.Do("GETSET", name, "3"))
	want(t, "GETSET", text, err, "2")

	conn, err := pool.GetContext(ctx)
	must(t, err)
	sub := redis.PubSubConn{Conn: conn}
	must(t, sub.Subscribe(name))
	if s, ok := sub.Receive().(redis.Subscription); !ok || s.Kind != "subscribe" || s.Count != 1 {
		t.Fatalf("got %+v, want the confirmation of subscribe", s)
	}
	n, err = redis.Int(c.Do("PUBLISH", name, "free"))
	want(t, "PUBLISH", n, err, 1)
	if m, ok := sub.Receive().(redis.Message); !ok || string(m.Data) != "free" {
		t.Errorf("got %+v, want the message", m)
	}
	must(t, sub.Unsubscribe())
	if s, ok := sub.Receive().(redis.Subscription); !ok || s.Kind != "unsubscribe" || s.Count != 0 {
		t.Fatalf("got %+v, want the confirmation of unsubscribe", s)
	}
	text, err = redis.String(conn.Do("GET", name))
	want(t, "GET on a connection that has unsubscribed", text, err, "3")
	must(t, sub.Close())
}
