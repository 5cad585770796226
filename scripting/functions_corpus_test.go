package scripting

import (
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/store/command/transcript"
	"github.com/latchkey-proxy/latchkey/store/underrace"
)

// TestCorpusFunctions makes a function of every script of the corpus and asks
// redis-server and both engines to call it, twice, so that the second call meets
// what the first has left: replies and keys are redis-server's, but where the
// corpus lists a difference of that engine for the script.
func TestCorpusFunctions(t *testing.T) {
	redis := redisAsker(t)
	ours := map[string]*asker{}
	for engine, vmOnly := range map[string]bool{"vm": true, "closures": false} {
		// What a function wrote before an uncaught error stays, as in Redis.
		addr := startLatchkey(t, Options{Version: "7.0.15", VMOnly: vmOnly}, Settings{KeepOnError: true, Limits: Limits{Time: underrace.Slow * 10 * time.Second}})
		ours[engine] = dialServer(t, addr)
	}
	asked := 0
	for _, f := range readCorpus(t) {
		for _, s := range underrace.Sample(f.snippets, 24) {
			if strings.Contains(s.want.reply, "ERR Error compiling") && strings.ContainsAny(unescapedLines.Replace(s.source), "\r\n") {
				continue // redis-server's FUNCTION LOAD sends the line break within its error
			}
			want, err := s.replayFunction(redis)
			if err != nil {
				t.Fatalf("%s:%d: %s\nredis-server: %v", s.file, s.line, s.source, err)
			}
			for engine, a := range ours {
				if s.differsIn(engine) != nil {
					continue
				}
				got, err := s.replayFunction(a)
				if err != nil {
					t.Fatalf("%s:%d: %s\n%s: %v", s.file, s.line, s.source, engine, err)
				}
				asked++
				if !got.equal(want) {
					t.Errorf("%s:%d: as a function on %s: %s\n got  %s\n want %s", s.file, s.line, engine, s.source, got, want)
				}
			}
		}
	}
	t.Logf("%d answers compared", asked)
}

var unescapedLines = strings.NewReplacer(`\n`, "\n", `\r`, "\r")

// replayFunction is replay with the script as a function of a library; the reply
// is that of FUNCTION LOAD if it fails, otherwise those of both calls.
func (s *snippet) replayFunction(a *asker) (got outcome, err error) {
	if _, err := a.ask(2, "FLUSHALL"); err != nil {
		return got, err
	}
	for _, words := range s.setup {
		if _, err := a.ask(2, words...); err != nil {
			return got, err
		}
	}
	call, flags := "FCALL", ""
	if s.command == "EVAL_RO" {
		call, flags = "FCALL_RO", "'no-writes'"
	}
	library := "#!lua name=corpus\nredis.register_function{function_name = 'f', flags = {" + flags + "}, callback = function(KEYS, ARGV)\n" + s.source + "\nend}"
	r, err := a.ask(2, "FUNCTION", "LOAD", "REPLACE", library)
	if err != nil || r.Kind == transcript.Error {
		got.reply = lineOf(r)
		return got, err
	}
	for range 2 {
		r, err := a.ask(s.proto, s.words(call, "f")...)
		if err != nil {
			return got, err
		}
		got.reply += lineOf(r) + " "
	}
	got.keys, err = dump(a)
	return got, err
}
