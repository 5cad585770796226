package proxy

import (
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// timeout closes who is silent, by the server's own clock, and nobody whose command
// runs; one who does not read what it was answered is silent.
func TestTimeout(t *testing.T) {
	running, release := make(chan struct{}), make(chan struct{})
	wait := &command.Spec{
		Name: "test.wait", Arity: 1, Access: command.Free, Group: "server", Since: "0.1.0", Summary: "Waits for the test.",
		Handler: func(c *command.Call) {
			close(running)
			<-release
			c.OK()
		},
	}
	clock := store.NewManualClock(1e12)
	s := startServerWith(t, Options{Clock: clock, Families: [][]*command.Spec{{wait}}}, "--timeout", "10", "--client-output-buffer-limit", "normal 0 0 0")
	big := strings.Repeat("x", 16<<20)
	idle, listener, runner, deaf := s.dial(t), s.dial(t), s.dial(t), s.dial(t)
	idle.want("PING", "+PONG")
	listener.want("SUBSCRIBE news", `*["subscribe" "news" :1]`)
	deaf.want("SET big "+big, "+OK")
	s.closeIdle()
	idle.want("PING", "+PONG")

	runner.send("TEST.WAIT")
	<-running
	for range 4 {
		deaf.send("GET", "big")
	}
	eventually(t, "a client that does not read is stuck", func() bool {
		stuck := false
		s.clients.each(func(c *client) { stuck = stuck || c.stuck.Load() })
		return stuck
	})
	clock.Advance(time.Minute)
	s.closeIdle()
	if got := idle.read(); got != "(closed)" {
		t.Errorf("who is idle reads %s, want the end of the connection", got)
	}
	close(release)
	if got := runner.read(); got != "+OK" {
		t.Errorf("whose command runs reads %s, want its reply", got)
	}
	listener.want("PING", `*["pong" ""]`)
	eventually(t, "who does not read is closed", func() bool { return s.clients.len() == 2 })
}
