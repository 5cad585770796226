package proxy

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/latchkey-proxy/latchkey/scripting"
	"github.com/latchkey-proxy/latchkey/store/command"
)

// TestPauseHoldsScriptsThatMayWrite: CLIENT PAUSE WRITE goes by what a script or
// function has declared.
func TestPauseHoldsScriptsThatMayWrite(t *testing.T) {
	engine, err := scripting.New(scripting.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	scripts := scripting.NewRunner(engine, scripting.Settings{}, 1, log)
	s := startServerWith(t, Options{Families: [][]*command.Spec{scripts.Specs()}})
	c := s.dial(t)
	const reads = "#!lua flags=no-writes\nreturn 1"
	c.send("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('w', function() return 2 end)\nredis.register_function{function_name='r', flags={'no-writes'}, callback=function() return 1 end}")
	c.read()
	c.send("SCRIPT", "LOAD", reads)
	sha := strings.Trim(c.read(), `"`)
	for _, tt := range []struct {
		args []string
		want bool
	}{
		{[]string{"EVAL", "return 1", "0"}, true},
		{[]string{"EVAL", "#!lua\nreturn 1", "0"}, true},
		{[]string{"EVAL", "#!lua flags=allow-oom\nreturn 1", "0"}, true},
		{[]string{"EVAL", "x =", "0"}, true},
		{[]string{"EVAL", reads, "0"}, false},
		{[]string{"EVALSHA", sha, "0"}, false},
		{[]string{"EVALSHA", strings.Repeat("0", 40), "0"}, true},
		{[]string{"EVAL_RO", "return 1", "0"}, false},
		{[]string{"FCALL", "w", "0"}, true},
		{[]string{"FCALL", "R", "0"}, false},
		{[]string{"FCALL", "none", "0"}, true},
		{[]string{"FCALL_RO", "r", "0"}, false},
		{[]string{"FUNCTION", "FLUSH"}, true},
		{[]string{"FUNCTION", "LIST"}, false},
	} {
		args := make([][]byte, len(tt.args))
		for i, a := range tt.args {
			args[i] = []byte(a)
		}
		spec, problem := s.engine.Table.Find(args)
		if problem != "" {
			t.Fatalf("%q: %s", tt.args, problem)
		}
		if got := mayWrite(spec, args); got != tt.want {
			t.Errorf("CLIENT PAUSE WRITE holds %q: %v, want %v", tt.args, got, tt.want)
		}
	}
	// Those that may not write run in the pause.
	c.want("CLIENT PAUSE 60000 WRITE", "+OK")
	defer s.resumeClients()
	c.want("FCALL r 0", ":1")
	c.want("EVALSHA "+sha+" 0", ":1")
	c.want("MULTI", "+OK")
	c.want("FCALL r 0", "+QUEUED")
	c.want("EXEC", "*[:1]")
}
