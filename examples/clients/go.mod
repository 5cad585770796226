module github.com/latchkey-proxy/latchkey/examples/clients

go 1.26.0

require (
	github.com/bsm/redislock v0.9.4
	github.com/go-redsync/redsync/v4 v4.18.1
	github.com/gomodule/redigo v1.9.3
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.79
	github.com/stvp/tempredis v0.0.0-20181119212430-b82af8480203
	go.uber.org/goleak v1.3.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

// What redsync's own tests import: a starter of redis-server, here one that knows what servers print today, and
// rueidiscompat, here a release that module proxies serve.
replace (
	github.com/redis/rueidis/rueidiscompat => github.com/redis/rueidis/rueidiscompat v1.0.69
	github.com/stvp/tempredis => ./tempredis
)
