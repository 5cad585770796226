package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/latchkey-proxy/latchkey/store/command/transcript"
)

// redisServer is a live redis-server to compare with.
type redisServer struct {
	ask  func(args ...string) transcript.Reply
	conf string
}

// startRedis starts a redis-server with a configuration file of the given text. It ends with the test.
func startRedis(t *testing.T, conf string) *redisServer {
	t.Helper()
	s := &redisServer{conf: filepath.Join(t.TempDir(), "redis.conf")}
	if err := os.WriteFile(s.conf, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	s.ask = transcript.StartJudge(t, s.conf, "--enable-debug-command", "no", "--unixsocket", "").Ask(t)
	return s
}

// do sends a command and returns the reply's words; an error reply is one word that begins with "ERR" or the like.
func (s *redisServer) do(args ...string) []string { return s.ask(args...).Words() }
