package proxy

import (
	"testing"

	"github.com/latchkey-proxy/latchkey/store/command"
)

// TestUpstreamModuleState: a command that uses the state of its module, a key of
// latchkey's own, runs where its other keys say, whatever own names.
func TestUpstreamModuleState(t *testing.T) {
	redis := startRedis(t)
	ran := func(c *command.Call) { c.Reply.Status("HERE") }
	state := func(_ *command.Call, add func(db int, name []byte)) {
		add(command.StateDB, []byte(command.StatePrefix+"m"))
	}
	specs := []*command.Spec{
		{Name: "m.run", Arity: -2, Flags: command.Write, Access: command.Bounded, Keys: []command.KeySpec{{Begin: 1, Last: -1, Step: 1, Flags: command.KeyRW}}, Extra: state, Handler: ran, Summary: "Runs.", Group: "server"},
		{Name: "m.alone", Arity: 1, Flags: command.Write, Access: command.Bounded, Extra: state, Handler: ran, Summary: "Runs.", Group: "server"},
	}
	c := startServerWith(t, Options{Families: [][]*command.Spec{specs}}, "--upstream", "redis://"+redis, "--own", "lock:*").dial(t)
	c.each("keys of latchkey's", "M.RUN lock:1", "+HERE", "M.RUN lock:1 lock:2", "+HERE", "M.ALONE", "+HERE")
	c.each("keys of both", "M.RUN lock:1 user:1", crossOwner)
	c.each("keys of the upstream's", "M.RUN user:1", "-ERR unknown command 'M.RUN', with args beginning with: 'user:1' ")
	c.each("in MULTI", "MULTI", "+OK", "M.RUN lock:1", "+QUEUED", "M.ALONE", "+QUEUED", "SET lock:2 v", "+QUEUED", "EXEC", "*[+HERE +HERE +OK]")
	c.each("the state itself", "SET latchkey:module:m v", "+OK", "GET latchkey:module:m", `"v"`, "DEL latchkey:module:m", ":1")
}
