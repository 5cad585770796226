package plugins_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-proxy/latchkey/plugins"
	"github.com/latchkey-proxy/latchkey/store"
)

// comparisons are programs of the conformance guest that compare and delete by the
// indexes of arguments: argument 1 is the key, and 2 the word "1".
var comparisons = []string{
	"1 2 !cad_args =",
	"1 2 !cad_args & !reply_int",
	"1 1 !cad_args =", // another value
	// It is asked again, and what comes next sees what was done.
	"1 2 !cad_args 1 2 !cad_args =",
	"1 2 !cad_args 1 1 !cad_args 1 2 !cad_args =",
	"1 2 !cad_args @1 #1 !exists =",
	"1 2 !cad_args @1 #1 4096 64 !get =",
	"1 2 !cad_args @1 #1 'new 1 0 !set =",
	"1 2 !cad_args 'EXISTS @1 #1 % 4096 2 !call & !call_int =",
	"1 2 !cad_args 'EVAL 'return~redis.call('exists',KEYS[1]) '1 @1 #1 % 4096 4 !call & !call_int =",
	// It is asked, but not first.
	"@1 #1 !exists 1 2 !cad_args =",
	"@1 #1 'new 0 0 !set 1 2 !cad_args =",
	"@1 #1 '1 0 0 !set 1 2 !cad_args =",
	"@1 #1 !del 1 2 !cad_args =",
	// Errors and traps undo it.
	"1 2 !cad_args ^",
	"1 2 !cad_args -103 ^",
	"1 2 !cad_args -1 8 !random",
	"1 2 !cad_args !nosuch",
	"1 2 !cad_args !reply_null !reply_null",
	"1 2 !cad_args 3 !reply_array",
	"1 2 !cad_args",
	// It is refused.
	"0 2 !cad_args =",
	"2 1 !cad_args =",
	"1 99 !cad_args =",
	"-1 -1 !cad_args =",
	// It is not asked.
	"1 2 =",
	"7 !reply_int",
}

// TestForeseen runs commands of which the first comparison was foreseen rightly, wrongly
// and not at all: they reply the same and leave the same.
func TestForeseen(t *testing.T) {
	setups := []string{"", "SET abi:k 1", "SET abi:k 2", "SET abi:k abi:k", "SADD abi:k 1", "SET abi:k 1 PX 100000"}
	ways := map[string]func(b *bench, words string) string{
		"alone": func(b *bench, words string) string { return b.program(words) },
		"in a script": func(b *bench, words string) string {
			const script = "local r = redis.pcall(unpack(ARGV)) return {r, redis.call('exists', KEYS[1])}"
			return b.do(append([]string{"EVAL", script, "1", "abi:k"}, programArgs(words)...)...)
		},
		"in a script that fails": func(b *bench, words string) string {
			return b.do(append([]string{"EVAL", "redis.call(unpack(ARGV)) error('no')", "1", "abi:k"}, programArgs(words)...)...)
		},
	}
	for name, run := range ways {
		b := newBenchOn(t, plugins.Options{MaxTime: time.Minute}, store.Options{Clock: stoppedClock{}})
		b.want("+OK", "MODULE", "LOAD", "abitest/abitest.wasm")
		addEval(t, b)
		forget := func() { b.program("@1 #1 !exists =") }
		for _, words := range comparisons {
			for _, learnt := range []string{words, comparisons[0], comparisons[2], "@1 #1 'new 0 0 !set 1 2 !cad_args ="} {
				if testing.Short() && learnt != words && learnt != comparisons[0] {
					continue
				}
				for _, setup := range setups {
					do := func() string {
						b.want("+OK", "FLUSHALL")
						if setup != "" {
							b.do(strings.Fields(setup)...)
						}
						return fmt.Sprintf("%s and left %s", run(b, words), b.kept())
					}
					forget()
					want := do()
					forget()
					b.want("+OK", "FLUSHALL")
					b.program(learnt)
					if got := do(); got != want {
						t.Fatalf("%s: %s after %q and %s\nreplied %s\nwant    %s", name, words, setup, learnt, got, want)
					}
				}
			}
		}
	}
}

// What the command has asked first before is answered in the guest.
func TestForeseenStaysInTheGuest(t *testing.T) {
	b := abi(t, plugins.Options{})
	count, done := plugins.CountCalls("cad_args")
	defer done()
	for i, step := range []struct {
		setup, words, want string
		calls              int
	}{
		{"SET abi:k 2", "1 2 !cad_args =", ":0", 1},
		{"SET abi:k 2", "1 2 !cad_args =", ":0", 0},
		{"SET abi:k 1", "1 2 !cad_args =", ":1", 0},
		{"SET abi:k 1", "1 2 !cad_args 1 2 !cad_args =", ":-1", 1}, // the second
		{"SET abi:k 1", "1 1 !cad_args =", ":0", 1},
		{"SET abi:k 1", "1 1 !cad_args =", ":0", 0},
		{"SET abi:k 1", "@1 #1 !exists 1 1 !cad_args =", ":0", 1},
		{"SET abi:k 1", "1 1 !cad_args =", ":0", 1}, // forgotten
		{"SET abi:k 1", "1 1 !cad_args =", ":0", 0},
		{"SADD abi:k 1", "1 1 !cad_args =", ":-100", 0},
		{"DEL abi:k", "1 1 !cad_args =", ":-1", 0},
		{"SET abi:k 1", "7 !reply_int", ":7", 0}, // nothing else was asked: it is remembered
		{"SET abi:k 1", "1 1 !cad_args =", ":0", 0},
	} {
		b.want("+OK", "FLUSHALL")
		b.do(strings.Fields(step.setup)...)
		before := count()
		b.want(step.want, append([]string{"ABI.RUN", "abi:k"}, strings.Fields(step.words)...)...)
		if got := count() - before; got != step.calls {
			t.Errorf("step %d, %s: %d calls came to the host, want %d", i, step.words, got, step.calls)
		}
	}
}
